// Ranks that exchange messages, each checked, and wait for one all the time that no rank sends, until a file is there, or
// for so many seconds. Between rounds they nap, since it is no matter how many rounds there are: other programs get the
// processors.
//
// usage: steady SECONDS FILE

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { WORDS = 500, ROUND = 1, OF_A_STRANGER = 5, NAP_MICROSECONDS = 2000 };

static void fail(int rank, const char *what) {
    fprintf(stderr, "steady: rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int count, char **arguments) {
    MPI_Init(&count, &arguments);
    int rank, ranks, sent[WORDS], received[WORDS], stranger[64], rounds = 0, goes_on = 1, came = 0;
    double end = MPI_Wtime() + (count == 3 ? atof(arguments[1]) : 1);
    MPI_Request request;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Irecv(stranger, 64, MPI_INT, MPI_ANY_SOURCE, OF_A_STRANGER, MPI_COMM_WORLD, &request);
    for (; goes_on; rounds++) {
        for (int i = 0; i < WORDS; i++)
            sent[i] = rounds * ranks + rank;
        int from = (rank + ranks - 1) % ranks;
        MPI_Sendrecv(sent, WORDS, MPI_INT, (rank + 1) % ranks, ROUND, received, WORDS, MPI_INT, from, ROUND, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        for (int i = 0; i < WORDS; i++)
            if (received[i] != rounds * ranks + from)
                fail(rank, "a message is not as it was sent");
        goes_on = MPI_Wtime() < end && (count < 3 || access(arguments[2], F_OK) != 0);
        MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
        usleep(NAP_MICROSECONDS);
    }
    MPI_Test(&request, &came, MPI_STATUS_IGNORE);
    if (came)
        fail(rank, "a message has come that no rank has sent");
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (rank == 0)
        printf("steady: %d rounds, all as sent, and nothing else\n", rounds);
    MPI_Finalize();
    return 0;
}
