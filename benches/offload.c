// What R calls offload, and its figure 6, between two ranks.
//
// usage: offload overlap BYTES ROUNDS waits|sleeps|computes
//            rank 1 receives BYTES, computes for about as long, and does both at once; meanwhile rank 0, which sends, waits in
//            MPI, sleeps without calling it, or computes. Prints by line: receive, compute, both: median seconds; and the
//            processor seconds that both ranks took in a round with both.
//        offload pingpong BYTES...
//            half a round trip for each length: the median in microseconds.

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS_MOST = 1000 };

static int rank;
static volatile double sum;

static int by_value(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double median(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, by_value);
    return values[count / 2];
}

static void compute(long steps) {
    double value = sum;
    for (long i = 0; i < steps; i++)
        value = value * 0.999999 + 1e-6;
    sum = value;
}

static double processor_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* One transfer of rank 0 to rank 1, which computes so many steps beside it. Returns how long rank 1 took. */
static double transfer(char *bytes, int length, long steps, const char *sender, double seconds) {
    MPI_Request request;
    char go = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        // The receive is posted, and the sender has begun, before anybody computes.
        MPI_Recv(&go, 1, MPI_CHAR, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Isend(bytes, length, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &request);
        if (steps > 0 && !strcmp(sender, "sleeps"))
            usleep((useconds_t)(seconds * 1e6));
        if (steps > 0 && !strcmp(sender, "computes"))
            compute(steps);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        return 0;
    }
    MPI_Irecv(bytes, length, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &request);
    MPI_Send(&go, 1, MPI_CHAR, 0, 2, MPI_COMM_WORLD);
    double begun = MPI_Wtime();
    compute(steps);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return MPI_Wtime() - begun;
}

static void overlap(int length, int rounds, const char *sender) {
    static double receive[ROUNDS_MOST], computing[ROUNDS_MOST], both[ROUNDS_MOST], took[ROUNDS_MOST];
    char *bytes = malloc((size_t)length);
    memset(bytes, rank, (size_t)length);
    long steps = 0;
    double seconds = 0;
    for (int round = 0; round < rounds + 2; round++) {
        double alone = transfer(bytes, length, 0, sender, 0);
        if (round == 1 && rank == 1) {
            // So many steps take as long as a transfer.
            double begun = MPI_Wtime();
            compute(20000000);
            steps = (long)(20000000 * alone / (MPI_Wtime() - begun));
            seconds = alone;
        }
        MPI_Bcast(&steps, 1, MPI_LONG, 1, MPI_COMM_WORLD);
        MPI_Bcast(&seconds, 1, MPI_DOUBLE, 1, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        // Nobody polls beside this one.
        double begun = MPI_Wtime();
        if (rank == 1)
            compute(steps);
        else
            usleep((useconds_t)(seconds * 1e6));
        double alone_computing = MPI_Wtime() - begun, before = processor_seconds();
        double together = transfer(bytes, length, steps, sender, seconds);
        double mine = processor_seconds() - before, all = 0;
        MPI_Reduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, 1, MPI_COMM_WORLD);
        if (round >= 2)
            receive[round - 2] = alone, computing[round - 2] = alone_computing, both[round - 2] = together, took[round - 2] = all;
    }
    if (rank == 1)
        printf("receive %.6f\ncompute %.6f\nboth %.6f\nprocessor %.6f\n", median(receive, rounds), median(computing, rounds),
               median(both, rounds), median(took, rounds));
    free(bytes);
}

static void pingpong(int length) {
    static double times[ROUNDS_MOST];
    int rounds = length <= 65536 ? 300 : length <= 1048576 ? 60 : 20;
    char *bytes = malloc((size_t)length + 1);
    memset(bytes, 1, (size_t)length + 1);
    for (int round = -5; round < rounds; round++) {
        double begun = MPI_Wtime();
        if (rank == 0)
            MPI_Send(bytes, length, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(bytes, length, MPI_CHAR, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1)
            MPI_Send(bytes, length, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
        if (round >= 0)
            times[round] = (MPI_Wtime() - begun) / 2;
    }
    if (rank == 0)
        printf("pingpong %d %.3f\n", length, median(times, rounds) * 1e6);
    free(bytes);
}

int main(int count, char **arguments) {
    MPI_Init(&count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (count == 5 && !strcmp(arguments[1], "overlap"))
        overlap(atoi(arguments[2]), atoi(arguments[3]), arguments[4]);
    for (int i = 2; count > 2 && !strcmp(arguments[1], "pingpong") && i < count; i++)
        pingpong(atoi(arguments[i]));
    MPI_Finalize();
    return 0;
}
