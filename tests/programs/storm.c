// All-to-all exchanges, checked, and many barriers in a row, which must end also with more ranks than cores.
//
// usage: storm ROUNDS BARRIERS

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int rounds = argc > 1 ? atoi(argv[1]) : 10, barriers = argc > 2 ? atoi(argv[2]) : 20;
    static const int lengths[] = {1, 13, 100, 600, 5000};
    for (int round = 0; round < rounds; round++) {
        int length = lengths[round % (int)(sizeof lengths / sizeof *lengths)], total = ranks * length;
        int *out = malloc((size_t)total * sizeof *out), *in = malloc((size_t)total * sizeof *in);
        for (int i = 0; i < total; i++)
            out[i] = (rank * ranks + i / length) * 10000 + i % length + round;
        MPI_Alltoall(out, length, MPI_INT, in, length, MPI_INT, MPI_COMM_WORLD);
        for (int i = 0; i < total; i++) {
            if (in[i] != ((i / length) * ranks + rank) * 10000 + i % length + round) {
                fprintf(stderr, "storm: rank %d, round %d: word %d from rank %d is wrong\n", rank, round, i % length, i / length);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
        }
        free(out), free(in);
        for (int i = 0; i < barriers; i++)
            MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("storm: %d all-to-alls and %d barriers among %d ranks\n", rounds, rounds * barriers, ranks);
    MPI_Finalize();
    return 0;
}
