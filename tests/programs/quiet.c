// Rank 0 sends a few short messages to the last rank, and then calls MPI no more until that has them all: what a send has
// taken over must have left when it returns, if its receiver is in MPI.
//
// usage: quiet FILE MESSAGES BYTES      FILE.N appears when everything of round N has come
//
// A receiver that does not get a processor for some milliseconds is not waited for; so one round of forty will do. (What waits
// for its sender's next call waits in each of them.)

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROUNDS = 40, TURNS = 400, TURN_US = 1000 };

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks, is_there = 0, messages = atoi(argv[2]), length = atoi(argv[3]);
    char *bytes = calloc(1, length);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int round = 0; round < ROUNDS && !is_there; round++) {
        char name[4096];
        snprintf(name, sizeof name, "%s.%d", argv[1], round);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0) {
            for (int i = 0; i < messages; i++)
                MPI_Send(bytes, length, MPI_BYTE, ranks - 1, 0, MPI_COMM_WORLD);
            for (int turn = 0; turn < TURNS && !is_there; turn++) {
                usleep(TURN_US);
                is_there = access(name, F_OK) == 0;
            }
        } else if (rank == ranks - 1) {
            for (int i = 0; i < messages; i++)
                MPI_Recv(bytes, length, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            fclose(fopen(name, "w"));
        }
        MPI_Bcast(&is_there, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("quiet: %s\n", is_there ? "all had left" : "what was sent waited for the sender's next call");
    free(bytes);
    MPI_Finalize();
    return is_there ? 0 : 1;
}
