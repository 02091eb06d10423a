// How a job ends: after a message from each rank to the next, every rank returns the number after MPI_Finalize ("returns"), calls
// MPI_Abort with it ("aborts"), or raises the signal of that number ("raises").
//
// usage: ends returns|aborts|raises number

#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **words) {
    int rank, ranks, got = -1;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (count != 3) {
        fprintf(stderr, "usage: ends returns|aborts|raises number\n");
        MPI_Abort(MPI_COMM_WORLD, 99);
    }
    int number = atoi(words[2]);
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % ranks, 0, &got, 1, MPI_INT, (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!strcmp(words[1], "aborts")) {
        MPI_Abort(MPI_COMM_WORLD, number);
    }
    if (!strcmp(words[1], "raises")) {
        raise(number);
    }
    MPI_Finalize();
    return number;
}
