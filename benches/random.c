// Messages between random ranks.
//
// usage: random MESSAGES LENGTH
//
// Each rank sends MESSAGES messages of LENGTH bytes, each to another rank drawn at random, and receives what comes for it from
// anybody: WINDOW sends and as many receives are under way at a time. Rank 0 prints the seconds that the slowest rank took, as `time`.

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { WINDOW = 16 };

static uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

// To whom a rank sends its next message: everybody can tell, so everybody knows how many messages it will get.
static int target(int from, int message, int ranks) {
    int other = (int)(mix((uint64_t)from << 32 | (uint64_t)message) % (uint64_t)(ranks - 1));
    return other < from ? other : other + 1;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks, messages = argc > 2 ? atoi(argv[1]) : 0, length = argc > 2 ? atoi(argv[2]) : 0, coming = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (messages < 1 || length < 0 || ranks < 2) {
        if (rank == 0)
            fprintf(stderr, "usage: random MESSAGES LENGTH, on at least two ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int from = 0; from < ranks; from++)
        for (int i = 0; i < messages && from != rank; i++)
            coming += target(from, i, ranks) == rank;
    char *out = calloc(1, (size_t)length + 1), *in = malloc((size_t)WINDOW * (size_t)length + 1);
    MPI_Request requests[2 * WINDOW]; // Receives, then sends.
    for (int i = 0; i < 2 * WINDOW; i++)
        requests[i] = MPI_REQUEST_NULL;
    MPI_Barrier(MPI_COMM_WORLD);
    double begun = MPI_Wtime();
    for (int sent = 0, receiving = 0, done = 0, place = 0; done < messages + coming; done++) {
        for (int i = done ? place : 0; i < (done ? place + 1 : 2 * WINDOW); i++) {
            if (i < WINDOW && receiving++ < coming)
                MPI_Irecv(in + (size_t)i * (size_t)length, length, MPI_BYTE, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &requests[i]);
            else if (i >= WINDOW && sent < messages)
                MPI_Isend(out, length, MPI_BYTE, target(rank, sent++, ranks), 0, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Waitany(2 * WINDOW, requests, &place, MPI_STATUS_IGNORE);
    }
    double mine = MPI_Wtime() - begun, slowest = 0;
    MPI_Reduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("time %.9f\n", slowest);
    free(out);
    free(in);
    MPI_Finalize();
    return 0;
}
