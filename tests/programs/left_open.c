// A job that ends with something open, or makes one rank wait.
//
// usage: left_open never MARK      rank 1 waits for tag 77 of rank 0, which is never sent, and for a message of any rank with any
//                                  tag in a communicator of its own; tag 5 of rank 0 comes and is not received; rank 2
//                                  probes for tag 88 of rank 0. MARK is made when rank 1 waits.
//        left_open sleeper SECONDS rank 0 sends 1 MB to rank 1, which receives it after so many seconds
//        left_open freed SECONDS   rank 0 sends long messages to rank 1, frees their requests and ends; rank 1 receives them after
//                                  so many seconds
//        left_open unwanted        rank 0 sends a long message that rank 1 does not receive; rank 1 ends a second later
//        left_open barrier         nothing is left open

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONG = 1000000, FREED = 3, FORGOTTEN = 5, NEVER_SENT = 77, PROBED = 88 };

static void never(int rank, const char *mark) {
    char byte = 1, three[3] = {0};
    MPI_Comm own;
    MPI_Request requests[2];
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Send(three, 3, MPI_BYTE, 1, FORGOTTEN, MPI_COMM_WORLD);
    if (rank == 1) {
        int there = 0;
        MPI_Irecv(&byte, 1, MPI_BYTE, 0, NEVER_SENT, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(&byte, 1, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, own, &requests[1]);
        while (!there)
            MPI_Iprobe(0, FORGOTTEN, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
        fclose(fopen(mark, "w"));
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    if (rank == 2)
        MPI_Probe(0, PROBED, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void freed(int rank, unsigned seconds) {
    static unsigned char bytes[FREED][LONG];
    // One is sent eagerly; one takes two bounce buffers, and one takes many.
    static const int lengths[FREED] = {1000, 40000, LONG};
    for (int i = 0; i < FREED && rank == 0; i++) {
        MPI_Request request;
        memset(bytes[i], 40 + i, LONG);
        MPI_Isend(bytes[i], lengths[i], MPI_BYTE, 1, i, MPI_COMM_WORLD, &request);
        MPI_Request_free(&request);
    }
    if (rank == 1) {
        sleep(seconds);
        for (int i = 0; i < FREED; i++) {
            MPI_Recv(bytes[i], LONG, MPI_BYTE, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int at = 0; at < lengths[i]; at++)
                if (bytes[i][at] != 40 + i)
                    MPI_Abort(MPI_COMM_WORLD, 3);
        }
        printf("received all\n");
    }
}

static void unwanted(int rank) {
    static char bytes[LONG];
    MPI_Request request;
    if (rank == 0)
        MPI_Isend(bytes, LONG, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
    else
        sleep(1);
}

static void sleeper(int rank, unsigned seconds) {
    static char bytes[LONG];
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Send(bytes, LONG, MPI_BYTE, 1, 3, MPI_COMM_WORLD);
    if (rank == 1) {
        sleep(seconds);
        MPI_Recv(bytes, LONG, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc == 3 && strcmp(argv[1], "never") == 0)
        never(rank, argv[2]);
    else if (argc == 3 && strcmp(argv[1], "sleeper") == 0)
        sleeper(rank, (unsigned)atoi(argv[2]));
    else if (argc == 3 && strcmp(argv[1], "freed") == 0)
        freed(rank, (unsigned)atoi(argv[2]));
    else if (argc == 2 && strcmp(argv[1], "unwanted") == 0)
        unwanted(rank);
    else if (argc == 2 && strcmp(argv[1], "barrier") == 0)
        MPI_Barrier(MPI_COMM_WORLD);
    else
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Finalize();
    return 0;
}
