// One rank takes its time: rank SLOW sleeps before every tenth receive, while all others send to it, and to each other.
//
// usage: laggard SLOW ROUNDS PAUSE_MILLISECONDS BYTES

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { TAG = 7, BURST = 10 };

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 5) {
        fprintf(stderr, "usage: laggard SLOW ROUNDS PAUSE_MILLISECONDS BYTES\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int slow = atoi(argv[1]), rounds = atoi(argv[2]), pause = atoi(argv[3]), bytes = atoi(argv[4]);
    char *out = calloc(bytes, 1), *in = calloc((size_t)bytes, BURST);
    struct timespec nap = {pause / 1000, pause % 1000 * 1000000L};
    MPI_Request requests[BURST];
    for (int round = 0; round < rounds; round++) {
        if (rank == slow) {
            for (int from = 0; from < ranks; from++) {
                if (from == slow)
                    continue;
                nanosleep(&nap, NULL);
                for (int i = 0; i < BURST; i++)
                    MPI_Recv(in, bytes, MPI_CHAR, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            }
            continue;
        }
        // The others pass something round among themselves, too.
        int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
        next = next == slow ? (next + 1) % ranks : next;
        last = last == slow ? (last + ranks - 1) % ranks : last;
        for (int i = 0; i < BURST; i++)
            MPI_Isend(out, bytes, MPI_CHAR, slow, TAG, MPI_COMM_WORLD, &requests[i]);
        MPI_Sendrecv(out, bytes, MPI_CHAR, next, TAG + 1, in, bytes, MPI_CHAR, last, TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Waitall(BURST, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("laggard: all came\n");
    MPI_Finalize();
    return 0;
}
