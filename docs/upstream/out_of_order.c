/* A receive whose send has begun completes, however many other messages came before: does it?
 *
 *     mpicc -O1 -g -Wall -o out_of_order out_of_order.c
 *     mpiexec -n 2 ./out_of_order [MESSAGES [SECONDS]]
 *
 * Rank 1 starts so many sends (200) of tag 1, of 8 bytes each, and one of tag 2. None of them blocks. Rank 0 receives
 * tag 2 first, and waits so many seconds (3) for it; then it receives the others. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { FIRST = 1, LAST = 2, BYTES = 8 };

static char buffer[BYTES], other[BYTES];

static void send_all(int messages) {
    MPI_Request *sends = calloc(messages + 1, sizeof *sends);
    for (int n = 0; n <= messages; n++)
        MPI_Isend(buffer, BYTES, MPI_BYTE, 0, n < messages ? FIRST : LAST, MPI_COMM_WORLD, &sends[n]);
    MPI_Waitall(messages + 1, sends, MPI_STATUSES_IGNORE);
    free(sends);
}

static void receive_all(int messages, double seconds) {
    int has_come = 0;
    MPI_Request last;
    MPI_Irecv(buffer, BYTES, MPI_BYTE, 1, LAST, MPI_COMM_WORLD, &last);
    for (double start = MPI_Wtime(); !has_come && MPI_Wtime() - start < seconds;)
        MPI_Test(&last, &has_come, MPI_STATUS_IGNORE);
    printf("%d messages of tag 1 before it: the message of tag 2 %s\n", messages, has_come ? "has come" : "has not come");
    fflush(stdout);
    for (int n = 0; n < messages; n++)
        MPI_Recv(other, BYTES, MPI_BYTE, 1, FIRST, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&last, MPI_STATUS_IGNORE);
    printf("with receives for tag 1, all messages have come\n");
}

int main(int count, char **words) {
    int rank, messages = count > 1 ? atoi(words[1]) : 200;
    double seconds = count > 2 ? atof(words[2]) : 3;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (messages < 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    if (rank == 0)
        receive_all(messages, seconds);
    else if (rank == 1)
        send_all(messages);
    MPI_Finalize();
    return 0;
}
