// Long messages of many senders at once: how fast they come together, and when each is there.
//
// usage: orders KIND BYTES COUNT ROUNDS
//
// incast: all others send COUNT messages each to rank 0. random: each rank sends COUNT messages to others that are drawn, the same
// in each run. Rank 0 prints "KIND BYTES MB/s ms": the rate of all together, and how long a send took on average from the
// beginning of its round, in the median round of ROUNDS.

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1024 };

static int rank, ranks;
static unsigned long state = 12345;

static int draw(int below) {
    state = state * 6364136223846793005UL + 1442695040888963407UL;
    return (int)((state >> 33) % (unsigned long)below);
}

static int by_value(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

int main(int argc, char **words) {
    MPI_Init(&argc, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 5 || ranks * atoi(words[3]) > MOST)
        MPI_Abort(MPI_COMM_WORLD, 2);
    int is_incast = strcmp(words[1], "incast") == 0, bytes = atoi(words[2]), count = atoi(words[3]), rounds = atoi(words[4]);
    int sent = is_incast ? (rank > 0) * count : count, total = is_incast ? (ranks - 1) * count : ranks * count;
    char *out = malloc((size_t)bytes * (size_t)count), *in = malloc((size_t)bytes * (size_t)(ranks * count));
    memset(out, rank, (size_t)bytes * (size_t)count);
    memset(in, 1, (size_t)bytes * (size_t)(ranks * count));
    double *rates = malloc(sizeof(double) * (size_t)rounds), *means = malloc(sizeof(double) * (size_t)rounds);
    for (int round = -1; round < rounds; round++) {
        MPI_Request requests[2 * MOST];
        int receives = 0, sends = 0, to[MOST];
        for (int from = 0; from < ranks; from++)
            for (int i = 0; i < count; i++) {
                int other = is_incast ? 0 : (from + 1 + draw(ranks - 1)) % ranks;
                if (from == rank)
                    to[i] = other;
                if (other == rank && from != rank) {
                    MPI_Irecv(in + (size_t)bytes * (size_t)receives, bytes, MPI_BYTE, from, 0, MPI_COMM_WORLD, &requests[receives]);
                    receives++;
                }
            }
        MPI_Barrier(MPI_COMM_WORLD);
        double begun = MPI_Wtime(), sum = 0;
        for (; sends < sent; sends++)
            MPI_Isend(out + (size_t)bytes * (size_t)sends, bytes, MPI_BYTE, to[sends], 0, MPI_COMM_WORLD, &requests[receives + sends]);
        for (int i = 0; i < receives + sends; i++) {
            int which;
            MPI_Waitany(receives + sends, requests, &which, MPI_STATUS_IGNORE);
            sum += which >= receives ? MPI_Wtime() - begun : 0;
        }
        double took = MPI_Wtime() - begun, longest, all;
        MPI_Reduce(&took, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        MPI_Reduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
        if (round >= 0)
            rates[round] = (double)bytes * total / longest / 1e6, means[round] = all / total * 1e3;
    }
    if (rank == 0) {
        qsort(rates, (size_t)rounds, sizeof(double), by_value);
        qsort(means, (size_t)rounds, sizeof(double), by_value);
        printf("%s %d %.1f %.3f\n", words[1], bytes, rates[rounds / 2], means[rounds / 2]);
    }
    MPI_Finalize();
    return 0;
}
