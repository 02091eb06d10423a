/* Does a synchronous send end that is received by MPI_Mrecv? Open MPI 4.1 over libfabric (mtl/ofi) never ends it.
 *
 *     mpicc -O1 -g -Wall -o ssend_mrecv ssend_mrecv.c
 *     mpiexec -n 2 ./ssend_mrecv [SECONDS]
 *
 * Rank 0 starts a synchronous send, and rank 1 receives it by MPI_Mprobe and MPI_Mrecv. Rank 1 then says so by a second
 * message, after which rank 0 waits at most so many seconds (2) for its send to end. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MESSAGE, HAS_COME };

static void send_and_wait(double seconds) {
    char byte = 1;
    int is_over = 0;
    MPI_Request request;
    MPI_Issend(&byte, 1, MPI_BYTE, 1, MESSAGE, MPI_COMM_WORLD, &request);
    MPI_Recv(NULL, 0, MPI_BYTE, 1, HAS_COME, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (double start = MPI_Wtime(); !is_over && MPI_Wtime() - start < seconds;)
        MPI_Test(&request, &is_over, MPI_STATUS_IGNORE);
    printf("ssend_mrecv: the send that was received by MPI_Mrecv %s\n", is_over ? "has ended" : "has not ended");
    if (!is_over)
        MPI_Request_free(&request);
}

static void receive(void) {
    char byte;
    MPI_Message message;
    MPI_Mprobe(0, MESSAGE, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(&byte, 1, MPI_BYTE, &message, MPI_STATUS_IGNORE);
    MPI_Send(NULL, 0, MPI_BYTE, 0, HAS_COME, MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        send_and_wait(argc > 1 ? atof(argv[1]) : 2);
    else if (rank == 1)
        receive();
    MPI_Finalize();
    return 0;
}
