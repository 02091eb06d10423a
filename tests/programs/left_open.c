// A job that ends with something open, or makes one rank wait.
//
// usage: left_open never MARK      rank 1 waits for tag 77 of rank 0, which is never sent, and for a message of any rank with any
//                                  tag in a communicator of its own; tag 5 of rank 0 comes and is not received; rank 2
//                                  probes for tag 88 of rank 0. MARK is made when rank 1 waits.
//        left_open sleeper SECONDS rank 0 sends 1 MB to rank 1, which receives it after so many seconds
//        left_open barrier         nothing is left open

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONG = 1000000, FORGOTTEN = 5, NEVER_SENT = 77, PROBED = 88 };

static void never(int rank, const char *mark) {
    char byte = 1, three[3] = {0};
    MPI_Comm own;
    MPI_Request requests[2];
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Send(three, 3, MPI_BYTE, 1, FORGOTTEN, MPI_COMM_WORLD);
    if (rank == 1) {
        int there = 0;
        MPI_Irecv(&byte, 1, MPI_BYTE, 0, NEVER_SENT, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(&byte, 1, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, own, &requests[1]);
        while (!there)
            MPI_Iprobe(0, FORGOTTEN, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
        fclose(fopen(mark, "w"));
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    if (rank == 2)
        MPI_Probe(0, PROBED, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void sleeper(int rank, unsigned seconds) {
    static char bytes[LONG];
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Send(bytes, LONG, MPI_BYTE, 1, 3, MPI_COMM_WORLD);
    if (rank == 1) {
        sleep(seconds);
        MPI_Recv(bytes, LONG, MPI_BYTE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc == 3 && strcmp(argv[1], "never") == 0)
        never(rank, argv[2]);
    else if (argc == 3 && strcmp(argv[1], "sleeper") == 0)
        sleeper(rank, (unsigned)atoi(argv[2]));
    else if (argc == 2 && strcmp(argv[1], "barrier") == 0)
        MPI_Barrier(MPI_COMM_WORLD);
    else
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Finalize();
    return 0;
}
