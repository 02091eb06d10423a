// What peers cost in memory: each rank says how much memory is its own (its proportional share of what several processes
// map, from /proc/self/smaps_rollup) when MPI is initialised, when it has exchanged a message with each of two neighbours, and
// when it has with every other rank. Rank 0 prints the means over all ranks, in bytes.
//
// usage: peer_memory

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static double own_memory(void) {
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    long pss = 0;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "Pss: %ld", &pss) == 1)
            break;
    if (file)
        fclose(file);
    return (double)pss * 1024;
}

// The memory of all ranks at this moment: nobody goes on before all have looked. A sum over a tree takes messages to few.
static void tell(const char *what, int rank, int ranks) {
    MPI_Barrier(MPI_COMM_WORLD);
    double mine = own_memory(), sum = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%s %.0f\n", what, sum / ranks);
}

static void exchange(int to, int from) {
    char out[8] = {0}, in[8];
    MPI_Sendrecv(out, sizeof out, MPI_CHAR, to, 1, in, sizeof in, MPI_CHAR, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    tell("begun", rank, ranks);
    exchange((rank + 1) % ranks, (rank + ranks - 1) % ranks);
    tell("few", rank, ranks);
    for (int distance = 1; distance < ranks; distance++)
        exchange((rank + distance) % ranks, (rank + ranks - distance) % ranks);
    tell("all", rank, ranks);
    MPI_Finalize();
    return EXIT_SUCCESS;
}
