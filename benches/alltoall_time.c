// How long MPI_Alltoall takes, by the bytes that one rank sends another: "bytes microseconds", a line each; the median of
// several calls, of the slowest rank each.
//
//     alltoall_time LEAST MOST CALLS

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_size(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 4) {
        return 2;
    }
    int least = atoi(argv[1]), most = atoi(argv[2]), calls = atoi(argv[3]);
    char *sent = malloc((size_t)most * (size_t)ranks), *come = malloc((size_t)most * (size_t)ranks);
    double *times = malloc(sizeof *times * (size_t)calls);
    memset(sent, 1, (size_t)most * (size_t)ranks);
    memset(come, 2, (size_t)most * (size_t)ranks);
    for (int bytes = least; bytes <= most; bytes *= 4) {
        for (int call = -1; call < calls; call++) {
            MPI_Barrier(MPI_COMM_WORLD);
            double start = MPI_Wtime();
            MPI_Alltoall(sent, bytes, MPI_BYTE, come, bytes, MPI_BYTE, MPI_COMM_WORLD);
            double seconds = MPI_Wtime() - start, slowest;
            MPI_Allreduce(&seconds, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
            // The first makes connections.
            if (call >= 0) {
                times[call] = slowest;
            }
        }
        qsort(times, (size_t)calls, sizeof *times, by_size);
        if (rank == 0) {
            printf("%d %.1f\n", bytes, times[calls / 2] * 1e6);
        }
    }
    MPI_Finalize();
    return 0;
}
