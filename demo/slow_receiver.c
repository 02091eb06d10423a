// One slow receiver among ranks that are in a hurry.
//
// usage: slow_receiver MESSAGES PAUSE_MICROSECONDS
//
// Rank 0 works PAUSE_MICROSECONDS between looking at its messages. About half of the other ranks, the flooders, each send it MESSAGES
// messages of 2 KiB, as fast as it lets them, and before every one of them do a small exchange with the next flooder: what they can
// do beside waiting for the slow one. The others, the fast pairs, exchange the same number of 2 KiB messages among themselves.
// Rank 0 prints the seconds that each group took: `flood`, `beside` (a flooder's time in its small exchanges) and `pairs`.

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LENGTH = 2048, SMALL = 16, WINDOW = 16, BATCH = 8 };
enum { FLOOD, BESIDE, PAIRS, TIMES };

static int rank, ranks, messages, pause_us;
static double times[TIMES];

static void receive_slowly(int flooders) {
    char (*buffers)[LENGTH] = malloc((size_t)BATCH * LENGTH);
    MPI_Request requests[BATCH];
    for (int left = flooders * messages; left > 0;) {
        int batch = left < BATCH ? left : BATCH;
        for (int i = 0; i < batch; i++)
            MPI_Irecv(buffers[i], LENGTH, MPI_BYTE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &requests[i]);
        MPI_Waitall(batch, requests, MPI_STATUSES_IGNORE);
        left -= batch;
        usleep((useconds_t)pause_us); // It computes, and looks at no message meanwhile.
    }
    free(buffers);
}

static void flood(int index, int flooders) {
    char data[LENGTH], in[SMALL], out[SMALL];
    MPI_Request requests[WINDOW];
    int next = 1 + (index + 1) % flooders, previous = 1 + (index + flooders - 1) % flooders;
    memset(data, index, sizeof data);
    memset(out, index, sizeof out);
    for (int i = 0; i < WINDOW; i++)
        requests[i] = MPI_REQUEST_NULL;
    double start = MPI_Wtime();
    for (int i = 0; i < messages; i++) {
        double before = MPI_Wtime();
        MPI_Sendrecv(out, SMALL, MPI_BYTE, next, 2, in, SMALL, MPI_BYTE, previous, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        times[BESIDE] += MPI_Wtime() - before;
        MPI_Wait(&requests[i % WINDOW], MPI_STATUS_IGNORE);
        MPI_Isend(data, LENGTH, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[i % WINDOW]);
    }
    MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    times[FLOOD] = MPI_Wtime() - start;
}

static void exchange(int partner) {
    char in[LENGTH], out[LENGTH];
    memset(out, rank, sizeof out);
    double start = MPI_Wtime();
    for (int i = 0; i < messages; i++)
        MPI_Sendrecv(out, LENGTH, MPI_BYTE, partner, 3, in, LENGTH, MPI_BYTE, partner, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    times[PAIRS] = MPI_Wtime() - start;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    messages = argc > 1 ? atoi(argv[1]) : 1000;
    pause_us = argc > 2 ? atoi(argv[2]) : 1000;
    if (ranks < 4) {
        fprintf(stderr, "slow_receiver: at least 4 ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int paired = ranks / 4 * 2, flooders = ranks - 1 - paired, first = 1 + flooders;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        receive_slowly(flooders);
    else if (rank < first)
        flood(rank - 1, flooders);
    else
        exchange((rank - first) % 2 == 0 ? rank + 1 : rank - 1);
    double worst[TIMES];
    MPI_Reduce(times, worst, TIMES, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("flood %.6f\nbeside %.6f\npairs %.6f\n", worst[FLOOD], worst[BESIDE], worst[PAIRS]);
    MPI_Finalize();
    return 0;
}
