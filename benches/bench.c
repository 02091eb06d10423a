// Measures one MPI job: latency, bandwidth and message rate between two ranks; all-to-all among all; or, among more
// ranks than there are cores, a ring of Sendrecv and three collectives.
//
// usage: bench pair|alltoall|crowd SECONDS          SECONDS: measuring time of each number
//
// Rank 0 prints lines `metric length value`: bytes per second for bandwidth, messages per second for the rate, seconds
// for all else. Each value is that of the fastest of BATCHES batches, because a disturbance can
// only add time. A warm-up comes first, which also finds how many repetitions fit the time.

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCHES = 9, WINDOW = 64, LARGEST = 4 << 20 };

static int rank, ranks;
static double budget;
static char *out, *in;
static MPI_Request requests[WINDOW];

typedef void operation(int length);

// One round trip.
static void ping_pong(int length) {
    if (rank == 0) {
        MPI_Send(out, length, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(in, length, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(in, length, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(out, length, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    }
}

// A window of messages one way and one word back.
static void window(int length) {
    for (int i = 0; i < WINDOW; i++) {
        if (rank == 0)
            MPI_Isend(out, length, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &requests[i]);
        else
            MPI_Irecv(in, length, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    if (rank == 0)
        MPI_Recv(in, 4, MPI_BYTE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(out, 4, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
}

static void all_to_all(int length) { MPI_Alltoall(out, length, MPI_BYTE, in, length, MPI_BYTE, MPI_COMM_WORLD); }

// A ring: everybody to the right, and from the left.
static void ring(int length) {
    MPI_Sendrecv(out, length, MPI_BYTE, (rank + 1) % ranks, 4, in, length, MPI_BYTE, (rank + ranks - 1) % ranks, 4,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void all_reduce(int length) { MPI_Allreduce(out, in, length / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }

static void broadcast(int length) { MPI_Bcast(out, length, MPI_BYTE, 0, MPI_COMM_WORLD); }

static double timed(operation *run, int length, int repetitions) {
    MPI_Barrier(MPI_COMM_WORLD);
    double took, start = MPI_Wtime();
    for (int i = 0; i < repetitions; i++)
        run(length);
    took = (MPI_Wtime() - start) / repetitions;
    // The slowest counts: the root of a broadcast is through when it has handed over what others still wait for.
    if (ranks > 2)
        MPI_Allreduce(MPI_IN_PLACE, &took, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return took;
}

// Seconds that one `run` takes.
static double measure(operation *run, int length) {
    double best, once;
    int repetitions = 4;
    // Repetitions are doubled until a batch takes its share of the time. The first batches also connect, map memory and
    // warm caches.
    for (;;) {
        once = timed(run, length, repetitions);
        int enough = once * repetitions >= budget / BATCHES || repetitions >= 1 << 20;
        MPI_Bcast(&enough, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (enough)
            break;
        repetitions *= 2;
    }
    best = once;
    for (int i = 1; i < BATCHES; i++) {
        once = timed(run, length, repetitions);
        best = once < best ? once : best;
    }
    return best;
}

static void report(const char *metric, int length, double value) {
    if (rank == 0) {
        printf("%s %d %.9g\n", metric, length, value);
        fflush(stdout);
    }
}

static void pair(void) {
    static const int latencies[] = {0, 8, 64, 512, 2048, 4096, 16384, 65536, 262144, 1048576, 4194304};
    static const int bandwidths[] = {512, 2048, 4096, 16384, 65536, 262144, 1048576, 4194304};
    for (size_t i = 0; i < sizeof latencies / sizeof *latencies; i++)
        report("latency", latencies[i], measure(ping_pong, latencies[i]) / 2);
    for (size_t i = 0; i < sizeof bandwidths / sizeof *bandwidths; i++)
        report("bandwidth", bandwidths[i], (double)bandwidths[i] * WINDOW / measure(window, bandwidths[i]));
    report("rate", 8, WINDOW / measure(window, 8));
}

static void everybody(void) {
    static const int lengths[] = {8, 256, 2048, 16384, 131072};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        report("alltoall", lengths[i], measure(all_to_all, lengths[i]));
}

static void crowd(void) {
    static const int lengths[] = {8, 1024, 65536};
    static const struct {
        const char *name;
        operation *run;
    } operations[] = {{"sendrecv", ring}, {"allreduce", all_reduce}, {"bcast", broadcast}, {"alltoall", all_to_all}};
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        for (size_t j = 0; j < sizeof lengths / sizeof *lengths; j++)
            report(operations[i].name, lengths[j], measure(operations[i].run, lengths[j]));
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    budget = argc > 2 ? atof(argv[2]) : 0.05;
    int is_pair = argc > 1 && strcmp(argv[1], "pair") == 0;
    if (argc < 2 || (is_pair && ranks != 2)) {
        fprintf(stderr, "usage: bench pair|alltoall|crowd SECONDS; `pair` wants 2 ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    size_t room = is_pair ? LARGEST : (size_t)ranks * 131072;
    out = malloc(room), in = malloc(room);
    memset(out, 1, room), memset(in, 2, room);
    if (is_pair)
        pair();
    else if (strcmp(argv[1], "alltoall") == 0)
        everybody();
    else
        crowd();
    MPI_Finalize();
    return 0;
}
