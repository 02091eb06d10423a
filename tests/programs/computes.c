// Ranks that compute, which is to say that they do not call MPI for a while, and others that want something of them.
//
// usage: computes first SECONDS     the last rank computes before anybody has ever reached it; all others write to it at once,
//                                   and wait for its answers
//        computes amid SECONDS      all ranks but the first of each host start long and short messages with rank 0, and compute;
//                                   meanwhile rank 0 and the first rank of the other half exchange long messages, and print how
//                                   long that took
//        computes farewell SECONDS  rank 0 writes to all others and leaves; they compute before they receive
//        computes queue SECONDS FILE  all know each other, and FILE appears; the last rank computes; two seconds later the ranks
//                                   of the first half write to it, and wait until it receives that
//
// Every byte that arrives is checked. Whoever waits for a rank that computes naps between its looks: these are seconds for which
// ranks by the dozen would else keep the processors from other programs.

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONG = 2 << 20, SHORT = 1500, ROUNDS = 10, COUNT = 40, NAP_MICROSECONDS = 500 };

static int rank, ranks;

static unsigned char *message(int length, int from, int to) {
    unsigned char *bytes = malloc((size_t)length);
    for (int i = 0; i < length; i++)
        bytes[i] = (unsigned char)(i * 11 + (i >> 8) + from * 37 + to * 59);
    return bytes;
}

static void check(const unsigned char *bytes, int length, int from, int to) {
    unsigned char *wanted = message(length, from, to);
    if (memcmp(bytes, wanted, (size_t)length) != 0) {
        fprintf(stderr, "computes: rank %d: %d bytes from %d are wrong\n", rank, length, from);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    free(wanted);
}

static void compute(double seconds) { usleep((useconds_t)(seconds * 1e6)); }

// Waits for so many requests.
static void finish(int count, MPI_Request *requests) {
    int done = 0;
    for (MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE); !done; MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE))
        usleep(NAP_MICROSECONDS);
}

static void receive(int length, int from, int tag) {
    unsigned char *bytes = malloc((size_t)length);
    MPI_Request request;
    MPI_Irecv(bytes, length, MPI_BYTE, from, tag, MPI_COMM_WORLD, &request);
    finish(1, &request);
    check(bytes, length, from, rank);
    free(bytes);
}

static void send(int length, int to, int tag) {
    unsigned char *bytes = message(length, rank, to);
    MPI_Request request;
    MPI_Isend(bytes, length, MPI_BYTE, to, tag, MPI_COMM_WORLD, &request);
    finish(1, &request);
    free(bytes);
}

static void first(double seconds) {
    int last = ranks - 1;
    if (rank == last) {
        compute(seconds);
        for (int other = 0; other < last; other++) {
            receive(SHORT, other, 1);
            receive(LONG, other, 2);
            send(SHORT, other, 3);
        }
    } else {
        send(SHORT, last, 1);
        send(LONG, last, 2);
        receive(SHORT, last, 3);
    }
}

// Two ranks that do not compute: how long they take, in seconds.
static double exchange(int other) {
    double begun = MPI_Wtime();
    unsigned char *out = message(LONG, rank, other), *in = malloc(LONG);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Sendrecv(out, LONG, MPI_BYTE, other, 4, in, LONG, MPI_BYTE, other, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check(in, LONG, other, rank);
    }
    free(out), free(in);
    return MPI_Wtime() - begun;
}

static void amid(double seconds) {
    int half = ranks / 2, count = 0;
    MPI_Request *requests = malloc((size_t)ranks * (2 + COUNT) * sizeof *requests);
    unsigned char **in = calloc((size_t)ranks, sizeof *in), *out = message(LONG, rank, 0), **lines = calloc((size_t)ranks, sizeof *lines);
    // All know each other.
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == half) {
        // Rank 0 has begun with the others.
        receive(SHORT, 0, 5);
        exchange(0);
    } else if (rank != 0) {
        MPI_Isend(out, LONG, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[0]);
        compute(seconds);
        finish(1, requests);
        for (int i = 0; i < COUNT; i++)
            receive(SHORT, 0, 2);
        receive(LONG, 0, 3);
    } else {
        compute(0.5);
        for (int other = 1; other < ranks; other++) {
            if (other == half)
                continue;
            in[other] = malloc(LONG), lines[other] = message(LONG, 0, other);
            MPI_Irecv(in[other], LONG, MPI_BYTE, other, 1, MPI_COMM_WORLD, &requests[count++]);
            for (int i = 0; i < COUNT; i++)
                MPI_Isend(lines[other], SHORT, MPI_BYTE, other, 2, MPI_COMM_WORLD, &requests[count++]);
            MPI_Isend(lines[other], LONG, MPI_BYTE, other, 3, MPI_COMM_WORLD, &requests[count++]);
        }
        double begun = MPI_Wtime();
        send(SHORT, half, 5);
        exchange(half);
        printf("computes: exchanged for %.3f s\n", MPI_Wtime() - begun);
        fflush(stdout);
        finish(count, requests);
        for (int other = 1; other < ranks; other++)
            if (other != half)
                check(in[other], LONG, other, 0);
    }
}

static void farewell(double seconds) {
    for (int other = 1; rank == 0 && other < ranks; other++)
        for (int i = 0; i < COUNT; i++)
            send(8 + i, other, 1);
    if (rank == 0)
        return;
    compute(seconds);
    for (int i = 0; i < COUNT; i++)
        receive(8 + i, 0, 1);
    printf("computes: rank %d has all\n", rank);
}

static void queue(double seconds, const char *file) {
    int last = ranks - 1;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        fclose(fopen(file, "w"));
    if (rank < ranks / 2) {
        compute(2);
        unsigned char *bytes = message(SHORT, rank, last);
        MPI_Request request;
        MPI_Issend(bytes, SHORT, MPI_BYTE, last, 6, MPI_COMM_WORLD, &request);
        finish(1, &request);
        free(bytes);
    } else if (rank == last) {
        compute(seconds);
        for (int other = 0; other < ranks / 2; other++)
            receive(SHORT, other, 6);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int is_queue = argc > 1 && argv[1][0] == 'q';
    if (argc != 3 + is_queue)
        MPI_Abort(MPI_COMM_WORLD, 2);
    double seconds = atof(argv[2]);
    if (is_queue)
        queue(seconds, argv[3]);
    else
        (argv[1][0] == 'a' ? amid : argv[1][1] == 'i' ? first : farewell)(seconds);
    // Who leaves, by `farewell`, leaves at once.
    if (argv[1][0] != 'f' || argv[1][1] == 'i') {
        MPI_Request all;
        MPI_Ibarrier(MPI_COMM_WORLD, &all);
        finish(1, &all);
    }
    MPI_Finalize();
    if (rank == 0)
        printf("computes: all as sent\n");
    return 0;
}
