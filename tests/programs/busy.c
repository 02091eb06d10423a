// Rank 0 sends short messages to all others, which compute meanwhile and receive afterwards. No single send may take as long
// as they compute: what cannot leave waits with its sender, whose program goes on.
//
// usage: busy SECONDS

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MESSAGES = 400, TAG = 7 };

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks, failed = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    double seconds = atof(argv[1]), longest = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    for (long long i = 0; rank == 0 && i < (long long)MESSAGES * (ranks - 1); i++) {
        double begun = MPI_Wtime();
        MPI_Send(&i, 1, MPI_LONG_LONG, 1 + (int)(i % (ranks - 1)), TAG, MPI_COMM_WORLD);
        double took = MPI_Wtime() - begun;
        longest = took > longest ? took : longest;
    }
    if (rank > 0) {
        for (double begun = MPI_Wtime(); MPI_Wtime() - begun < seconds;)
            ;
        for (long long i = rank - 1, got; i < (long long)MESSAGES * (ranks - 1); i += ranks - 1) {
            MPI_Recv(&got, 1, MPI_LONG_LONG, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            failed |= got != i;
        }
    }
    failed |= longest > seconds / 3;
    if (rank == 0)
        printf("busy: the longest send took %.3f s\n", longest);
    MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_LOR, MPI_COMM_WORLD);
    MPI_Finalize();
    return failed;
}
