// Every rank floods every other one; at a given point one rank dies as by kill -9.
//
// usage: flood ROUNDS VICTIM WHEN      VICTIM -1: nobody dies

#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BURST = 32, SMALL = 24, EAGER = 2000, LARGE = 300000 };

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int rounds = argc > 1 ? atoi(argv[1]) : 100, victim = argc > 2 ? atoi(argv[2]) : -1, when = argc > 3 ? atoi(argv[3]) : rounds / 2;
    MPI_Request *requests = malloc((size_t)ranks * BURST * 2 * sizeof *requests);
    char *out = malloc(LARGE), *in = malloc((size_t)ranks * BURST * EAGER + (size_t)ranks * LARGE);
    memset(out, 7, LARGE);
    for (int round = 0; round < rounds; round++) {
        int count = 0;
        for (int burst = 0; burst < BURST; burst++) {
            int length = burst == BURST - 1 ? LARGE : burst % 2 ? SMALL : EAGER;
            for (int step = 1; step < ranks; step++) {
                int target = (rank + step) % ranks, source = (rank - step + ranks) % ranks;
                char *place = burst == BURST - 1 ? in + (size_t)ranks * BURST * EAGER + (size_t)source * LARGE : in + ((size_t)source * BURST + (size_t)burst) * EAGER;
                MPI_Isend(out, length, MPI_BYTE, target, burst, MPI_COMM_WORLD, &requests[count++]);
                MPI_Irecv(place, length, MPI_BYTE, source, burst, MPI_COMM_WORLD, &requests[count++]);
            }
            if (rank == victim && round == when && burst == BURST / 2) {
                printf("flood: rank %d dies\n", rank);
                fflush(stdout);
                raise(SIGKILL);
            }
        }
        MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    }
    if (rank == 0)
        printf("flood: %d rounds among %d ranks\n", rounds, ranks);
    MPI_Finalize();
    return 0;
}
