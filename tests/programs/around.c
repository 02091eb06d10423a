// Every rank sends to the next before it receives from the one before: it ends as long as the sends need no receives, which
// MPI does not promise.
//
// usage: around ROUNDS BYTES

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks, rounds = argc > 1 ? atoi(argv[1]) : 10, bytes = argc > 2 ? atoi(argv[2]) : 1024;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    char *out = calloc((size_t)bytes, 1), *in = calloc((size_t)bytes, 1);
    for (int round = 0; round < rounds; round++) {
        MPI_Send(out, bytes, MPI_CHAR, (rank + 1) % ranks, 1, MPI_COMM_WORLD);
        MPI_Recv(in, bytes, MPI_CHAR, (rank + ranks - 1) % ranks, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    free(out), free(in);
    if (rank == 0)
        printf("around: %d rounds among %d ranks\n", rounds, ranks);
    MPI_Finalize();
    return 0;
}
