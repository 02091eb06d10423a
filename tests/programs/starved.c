// Ranks that have no descriptor left when they first want something of each other.
//
// usage: starved

#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <sys/resource.h>

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks, word = 0, taken = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){64, 64});
    while (open("/dev/null", O_RDONLY) >= 0)
        taken++;
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % ranks, 0, &word, 1, MPI_INT, (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("starved: rank %d had taken %d descriptors, and it went well\n", rank, taken);
    MPI_Finalize();
    return 0;
}
