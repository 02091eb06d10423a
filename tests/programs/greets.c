// Ranks that have never heard of each other all send before they receive, as many programs do that trust their MPI to keep a
// short message.
//
// usage: greets LENGTH

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **arguments) {
    MPI_Init(&count, &arguments);
    int rank, ranks, length = count == 2 ? atoi(arguments[1]) : 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    unsigned char *sent = malloc((size_t)length + 1), *received = malloc((size_t)length + 1);
    memset(sent, rank + 1, (size_t)length);
    for (int other = 0; other < ranks; other++)
        if (other != rank)
            MPI_Send(sent, length, MPI_BYTE, other, 1, MPI_COMM_WORLD);
    for (int from = 0; from < ranks; from++) {
        if (from == rank)
            continue;
        memset(received, 0, (size_t)length);
        MPI_Recv(received, length, MPI_BYTE, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < length; i++) {
            if (received[i] != from + 1) {
                fprintf(stderr, "greets: rank %d: byte %d of %d from %d is wrong\n", rank, i, length, from);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
        }
    }
    if (rank == 0)
        printf("greets: all as sent\n");
    MPI_Finalize();
    return 0;
}
