// What one rank spends on messages that are answered at once (immediate.c): nothing that is received is looked at.
//
// usage: floor            prints, from rank 0, lines `name length nanoseconds`

#include <mpi.h>
#include <stdio.h>

enum { WINDOW = 64, ROUNDS = 20000, TRIES = 9, LARGEST = 4096 };

static char out[LARGEST], in[LARGEST];
static int peer;

static void ping_pong(int length) {
    MPI_Send(out, length, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
    MPI_Recv(in, length, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void sends(int length) {
    MPI_Request requests[WINDOW];
    for (int i = 0; i < WINDOW; i++)
        MPI_Isend(out, length, MPI_BYTE, peer, 2, MPI_COMM_WORLD, &requests[i]);
    MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
}

static void receives(int length) {
    MPI_Request requests[WINDOW];
    for (int i = 0; i < WINDOW; i++)
        MPI_Irecv(in, length, MPI_BYTE, peer, 2, MPI_COMM_WORLD, &requests[i]);
    MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
}

// Nanoseconds of one, the fastest of some tries.
static double measure(void (*run)(int), int length, int messages) {
    double best = 1;
    for (int try = 0; try < TRIES; try++) {
        int rounds = ROUNDS / messages;
        double start = MPI_Wtime();
        for (int i = 0; i < rounds; i++)
            run(length);
        double took = (MPI_Wtime() - start) / rounds / messages;
        best = took < best ? took : best;
    }
    return best * 1e9;
}

int main(void) {
    static const int lengths[] = {0, 8, 64, 512, 2048, 4096};
    int rank;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    peer = 1 - rank;
    for (int i = 0; i < (int)(sizeof lengths / sizeof *lengths); i++) {
        int length = lengths[i];
        double numbers[] = {measure(ping_pong, length, 1), measure(sends, length, WINDOW), measure(receives, length, WINDOW)};
        if (rank == 0)
            printf("pingpong %d %.1f\nsend %d %.1f\nreceive %d %.1f\n", length, numbers[0], length, numbers[1], length, numbers[2]);
    }
    MPI_Finalize();
    return 0;
}
