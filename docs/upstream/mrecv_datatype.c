/* Does MPI_Mrecv put what it receives where its datatype says? Open MPI's over libfabric (mtl/ofi) does not, if the
 * datatype has gaps: it says that all has come and leaves the buffer as it was.
 *
 *     mpicc -O1 -g -Wall -o mrecv_datatype mrecv_datatype.c
 *     mpiexec -n 2 ./mrecv_datatype
 *
 * Rank 0 sends the integers 1 to 4, twice. Rank 1 receives them into every second integer of a buffer, by MPI_Recv and
 * by MPI_Mprobe and MPI_Mrecv. */
#include <mpi.h>
#include <stdio.h>

enum { COUNT = 4, PLAIN = 1, MATCHED = 2 };

static void show(const char *call, const int *buffer, MPI_Status *status) {
    int count;
    MPI_Get_count(status, MPI_INT, &count);
    printf("%s: %d integers have come:", call, count);
    for (int n = 0; n < COUNT; n++)
        printf(" %d", buffer[2 * n]);
    printf("\n");
}

static void receive(void) {
    int buffer[2 * COUNT] = {0}, matched[2 * COUNT] = {0};
    MPI_Datatype every_second;
    MPI_Type_vector(COUNT, 1, 2, MPI_INT, &every_second);
    MPI_Type_commit(&every_second);
    MPI_Status status;
    MPI_Recv(buffer, 1, every_second, 0, PLAIN, MPI_COMM_WORLD, &status);
    show("MPI_Recv", buffer, &status);
    MPI_Message message;
    MPI_Mprobe(0, MATCHED, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(matched, 1, every_second, &message, &status);
    show("MPI_Mrecv", matched, &status);
    MPI_Type_free(&every_second);
}

int main(int count, char **words) {
    int rank, numbers[COUNT] = {1, 2, 3, 4};
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) {
        MPI_Send(numbers, COUNT, MPI_INT, 1, PLAIN, MPI_COMM_WORLD);
        MPI_Send(numbers, COUNT, MPI_INT, 1, MATCHED, MPI_COMM_WORLD);
    } else if (rank == 1) {
        receive();
    }
    MPI_Finalize();
    return 0;
}
