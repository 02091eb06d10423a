// Jobs whose ranks wait, each for a known reason:
//
//   waits late MILLISECONDS ROUNDS [sleep]    rank 1 computes (or sleeps) so long before each allreduce
//   waits even MILLISECONDS ROUNDS            all ranks compute so long before each
//   waits chain MILLISECONDS ROUNDS           each rank waits for the one before it, and rank 0 computes
//   waits polls MILLISECONDS ROUNDS           rank 0 computes between its tests of a receive, and never waits
//   waits computes MILLISECONDS               one barrier, then all compute
//
// Each rank prints which part of the time between its first and last call it was inside MPI.

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size, sleeps;
static double seconds, inside;

static void work(void) {
    if (sleeps) {
        usleep((useconds_t)(seconds * 1e6));
        return;
    }
    for (double end = MPI_Wtime() + seconds; MPI_Wtime() < end;) {}
}

static void allreduce(void) {
    double one = 1, sum, begin = MPI_Wtime();
    MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    inside += MPI_Wtime() - begin;
    if (sum != size) MPI_Abort(MPI_COMM_WORLD, 1);
}

static void chain(int round) {
    int token = round;
    double begin = MPI_Wtime();
    if (rank > 0) MPI_Recv(&token, 1, MPI_INT, rank - 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank + 1 < size) MPI_Send(&token, 1, MPI_INT, rank + 1, 7, MPI_COMM_WORLD);
    inside += MPI_Wtime() - begin;
    if (token != round) MPI_Abort(MPI_COMM_WORLD, 1);
}

// Rank 0 has work for all the time until the message comes, and asks for it now and then.
static void polls(void) {
    int token = 1, done = 0;
    MPI_Request request;
    if (rank == 0) {
        MPI_Irecv(&token, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, &request);
        while (!done) {
            work();
            double begin = MPI_Wtime();
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
            inside += MPI_Wtime() - begin;
        }
    } else if (rank == 1) {
        for (int step = 0; step < 20; step++) work();
        MPI_Send(&token, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
    }
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *how = words[1];
    int rounds = count > 3 ? atoi(words[3]) : 1;
    seconds = atof(words[2]) / 1000;
    sleeps = count > 4;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int round = 0; round < rounds; round++) {
        if (!strcmp(how, "computes") || !strcmp(how, "even") || (!strcmp(how, "late") && rank == 1) || (!strcmp(how, "chain") && rank == 0)) work();
        if (!strcmp(how, "late") || !strcmp(how, "even")) allreduce();
        if (!strcmp(how, "chain")) chain(round);
        if (!strcmp(how, "polls")) polls();
    }
    printf("rank %d was inside MPI for %.4f of %.4f s\n", rank, inside, MPI_Wtime() - start);
    MPI_Finalize();
    return 0;
}
