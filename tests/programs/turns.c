// One rank sends a long message and leaves MPI: its receiver gets the others' messages all the same.
//
// usage: turns STOPPING SECONDS FIFO
//
// Twice, all other ranks send rank 0 long messages, which it waits for in any order. Rank STOPPING is the first to send; then it
// sleeps, the first time for so many seconds, the second time until it reads a byte from FIFO, which rank 0 writes when it has all
// messages of the others. Rank 0 prints how long these took. Every byte that arrives is checked.

#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONG = 3 << 20, COUNT = 3, GO = 9 };

static int rank, ranks;

static unsigned char at(int i, int from, int round) { return (unsigned char)(i * 11 + (i >> 8) + from * 37 + round * 59); }

static unsigned char *message(int from, int round) {
    unsigned char *bytes = malloc(LONG);
    for (int i = 0; i < LONG; i++)
        bytes[i] = at(i, from, round);
    return bytes;
}

static void stop(int round, double seconds, const char *fifo) {
    if (round == 0) {
        usleep((useconds_t)(seconds * 1e6));
        return;
    }
    char byte;
    int file = open(fifo, O_RDONLY);
    if (file < 0 || read(file, &byte, 1) != 1)
        MPI_Abort(MPI_COMM_WORLD, 1);
    close(file);
}

static void send_all(int stopping, int round, double seconds, const char *fifo) {
    unsigned char *bytes = message(rank, round);
    MPI_Request requests[COUNT];
    if (rank != stopping)
        MPI_Recv(NULL, 0, MPI_BYTE, stopping, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < COUNT; i++)
        MPI_Isend(bytes, LONG, MPI_BYTE, 0, round, MPI_COMM_WORLD, &requests[i]);
    if (rank == stopping) {
        for (int other = 1; other < ranks; other++)
            if (other != stopping)
                MPI_Send(NULL, 0, MPI_BYTE, other, GO, MPI_COMM_WORLD);
        stop(round, seconds, fifo);
    }
    MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE);
    free(bytes);
}

static void tell(int round, double seconds, const char *fifo) {
    printf("turns: round %d: the others took %.3f s\n", round, seconds);
    fflush(stdout);
    if (round == 0)
        return;
    int file = open(fifo, O_WRONLY);
    if (file < 0 || write(file, "x", 1) != 1)
        MPI_Abort(MPI_COMM_WORLD, 1);
    close(file);
}

static void receive_all(int stopping, int round, const char *fifo) {
    int all = (ranks - 1) * COUNT, others = all - COUNT;
    unsigned char **bytes = malloc((size_t)all * sizeof *bytes);
    MPI_Request *requests = malloc((size_t)all * sizeof *requests);
    double begun = MPI_Wtime();
    for (int i = 0; i < all; i++) {
        bytes[i] = malloc(LONG);
        MPI_Irecv(bytes[i], LONG, MPI_BYTE, 1 + i / COUNT, round, MPI_COMM_WORLD, &requests[i]);
    }
    for (int left = all; left > 0; left--) {
        int which;
        MPI_Waitany(all, requests, &which, MPI_STATUS_IGNORE);
        int from = 1 + which / COUNT;
        for (int i = 0; i < LONG; i++)
            if (bytes[which][i] != at(i, from, round)) {
                fprintf(stderr, "turns: byte %d of rank %d is wrong\n", i, from);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
        free(bytes[which]);
        if (from != stopping && --others == 0)
            tell(round, MPI_Wtime() - begun, fifo);
    }
    free(bytes), free(requests);
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (count != 4)
        MPI_Abort(MPI_COMM_WORLD, 2);
    int stopping = atoi(words[1]);
    for (int round = 0; round < 2; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0)
            receive_all(stopping, round, words[3]);
        else
            send_all(stopping, round, atof(words[2]), words[3]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("turns: all as sent\n");
    MPI_Finalize();
    return 0;
}
