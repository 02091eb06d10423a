// Jobs in which somebody holds up the others, for tools that have to find out who.
//
// usage: holdup slow SECONDS RANK     all others send to RANK without end; it receives one message of each and computes for a third
//                                     of a second, again and again
//        holdup tag                   the last rank waits for a message with tag 77 from rank 0 that nobody sends (rank 0 sends one
//                                     with tag 78), all others enter a barrier; it never ends
//        holdup alltoall SECONDS BYTES   exchanges of so many bytes between all, without a pause
//        holdup apart SECONDS            each rank computes, and then all meet in a barrier, again and again
//        holdup flood MESSAGES           so many messages for rank 0 from each rank but the last, for which rank 0 waits first: the
//                                        last one comes a second after the others have begun
//
// Where all others wait for seconds, by `slow` and `tag`, they nap between their looks, so that a job that somebody watches leaves
// the processors to others.

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LENGTH = 1000, DATA = 1, LAST = 2, PAUSE_US = 333000, NAP_US = 500 };

static int rank, ranks;

static void finish(MPI_Request *request) {
    int is_done = 0;
    for (MPI_Test(request, &is_done, MPI_STATUS_IGNORE); !is_done; MPI_Test(request, &is_done, MPI_STATUS_IGNORE))
        usleep(NAP_US);
}

static void send(const char *bytes, int to, int tag) {
    MPI_Request request;
    MPI_Isend(bytes, LENGTH, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request);
    finish(&request);
}

static void slow(double seconds, int receiver) {
    double end = MPI_Wtime() + seconds;
    char bytes[LENGTH] = {0};
    if (rank != receiver) {
        while (MPI_Wtime() < end)
            send(bytes, receiver, DATA);
        send(bytes, receiver, LAST);
        return;
    }
    char *is_done = calloc((size_t)ranks, 1);
    for (int left = ranks - 1; left > 0;) {
        for (int other = 0; other < ranks; other++) {
            if (other == receiver || is_done[other])
                continue;
            MPI_Status status;
            MPI_Recv(bytes, LENGTH, MPI_BYTE, other, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
            if (status.MPI_TAG == LAST) {
                is_done[other] = 1;
                left--;
            }
        }
        if (MPI_Wtime() < end)
            usleep(PAUSE_US);
    }
    free(is_done);
}

static void tag(void) {
    char byte = 0;
    MPI_Request request;
    if (rank == 0)
        MPI_Send(&byte, 1, MPI_BYTE, ranks - 1, 78, MPI_COMM_WORLD);
    if (rank == ranks - 1) {
        MPI_Irecv(&byte, 1, MPI_BYTE, 0, 77, MPI_COMM_WORLD, &request);
        finish(&request);
    }
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    finish(&request);
}

static void alltoall(double seconds, int bytes) {
    char *from = calloc((size_t)bytes * (size_t)ranks, 1), *to = calloc((size_t)bytes * (size_t)ranks, 1);
    double end = MPI_Wtime() + seconds;
    for (int goes_on = 1; goes_on;) {
        for (int round = 0; round < 10; round++)
            MPI_Alltoall(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, MPI_COMM_WORLD);
        goes_on = MPI_Wtime() < end;
        MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    free(from);
    free(to);
}

static void apart(double seconds) {
    double end = MPI_Wtime() + seconds;
    for (int goes_on = 1; goes_on;) {
        usleep(PAUSE_US);
        MPI_Barrier(MPI_COMM_WORLD);
        goes_on = MPI_Wtime() < end;
        MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
}

static void flood(int messages) {
    char bytes[LENGTH] = {0};
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == ranks - 1) {
        usleep(3 * PAUSE_US);
        MPI_Send(bytes, LENGTH, MPI_BYTE, 0, LAST, MPI_COMM_WORLD);
    } else if (rank > 0) {
        for (int i = 0; i < messages; i++)
            MPI_Send(bytes, LENGTH, MPI_BYTE, 0, DATA, MPI_COMM_WORLD);
    } else {
        MPI_Recv(bytes, LENGTH, MPI_BYTE, ranks - 1, LAST, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int left = (ranks - 2) * messages; left > 0; left--)
            MPI_Recv(bytes, LENGTH, MPI_BYTE, MPI_ANY_SOURCE, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "slow") == 0 && argc == 4)
        slow(atof(argv[2]), atoi(argv[3]));
    else if (strcmp(what, "tag") == 0)
        tag();
    else if (strcmp(what, "alltoall") == 0 && argc == 4)
        alltoall(atof(argv[2]), atoi(argv[3]));
    else if (strcmp(what, "apart") == 0 && argc == 3)
        apart(atof(argv[2]));
    else if (strcmp(what, "flood") == 0 && argc == 3 && ranks > 2)
        flood(atoi(argv[2]));
    else {
        fprintf(stderr, "usage: see the head of holdup.c\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Finalize();
    return 0;
}
