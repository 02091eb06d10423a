/* Is a message that is longer than its receive an error, if the receive is from any source and comes later than the message?
 * Under MPICH it is not, and the status claims more integers than the receive has room for.
 *
 *     mpicc -O1 -g -Wall -o any_truncate any_truncate.c
 *     mpiexec -n 2 ./any_truncate
 *
 * Rank 1 sends six integers, twice. Rank 0 waits until they are there, and receives four: from rank 1, and from any source. */
#include <mpi.h>
#include <stdio.h>

enum { SENT = 6, ROOM = 4 };

static void receive(int source, const char *name) {
    int buffer[SENT] = {-1, -1, -1, -1, -1, -1}, count, class = MPI_SUCCESS;
    MPI_Status status;
    MPI_Probe(1, 0, MPI_COMM_WORLD, &status);
    int code = MPI_Recv(buffer, ROOM, MPI_INT, source, 0, MPI_COMM_WORLD, &status);
    MPI_Error_class(code, &class);
    MPI_Get_count(&status, MPI_INT, &count);
    printf("from %s: %s, %d integers of %d; behind them %d\n", name, class == MPI_ERR_TRUNCATE ? "MPI_ERR_TRUNCATE" : code ? "another error" : "no error",
           count, ROOM, buffer[ROOM]);
}

int main(int count, char **words) {
    int rank, numbers[SENT] = {1, 2, 3, 4, 5, 6};
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (rank == 0) {
        receive(1, "rank 1");
        receive(MPI_ANY_SOURCE, "any source");
    } else if (rank == 1) {
        MPI_Send(numbers, SENT, MPI_INT, 0, 0, MPI_COMM_WORLD);
        MPI_Send(numbers, SENT, MPI_INT, 0, 0, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
