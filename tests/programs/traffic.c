// Random traffic between all ranks, with every byte, every length and the order of every message checked.
//
// usage: traffic ROUNDS MESSAGES LARGEST SEED [posted-ssend]
//
// What rank s sends to rank d as its k-th message of a round follows from (seed, round, s, d, k) alone, so that the
// receiver knows what must come. Even ranks post all receives beforehand by source and tag; odd ranks probe for
// anything from anybody. Both see a message that overtakes another of the same source and tag, because the contents
// differ. With `posted-ssend`, synchronous sends go only to even ranks, which do not receive by MPI_Mrecv: Open MPI 4.1
// over libfabric never ends a synchronous send that was received by MPI_Mrecv (see docs/upstream/).

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAGS = 3 };

static int rank, ranks, rounds, messages, posted_ssend;
static long largest;
static uint64_t seed;

static uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static uint64_t key(int round, int source, int target, int index) {
    return mix(seed ^ mix(((uint64_t)round << 48) ^ ((uint64_t)source << 32) ^ ((uint64_t)target << 16) ^ (uint64_t)index));
}

// Lengths on both sides of every limit: payload of one packet, eager, pages, bulk pieces.
static int length_of(uint64_t key) {
    static const long lengths[] = {0, 1, 8, 39, 40, 41, 55, 56, 57, 112, 999, 2031, 2032, 2033, 2047, 2048, 2049, 4095, 4096, 4097,
                                   16384, 65535, 65536, 65537, 200003, 1048579, 4194304};
    int usable = 0;
    while (usable < (int)(sizeof lengths / sizeof *lengths) && lengths[usable] <= largest)
        usable++;
    return (int)lengths[(key >> 8) % (uint64_t)usable];
}

static int tag_of(uint64_t key) { return (int)(key % TAGS); }

static void fill(unsigned char *bytes, int length, uint64_t key) {
    for (int i = 0; i < length; i++)
        bytes[i] = (unsigned char)(key >> (8 * (i & 7))) ^ (unsigned char)(i >> 3);
}

static void fail(const char *what, int round, int source, int index) {
    fprintf(stderr, "traffic: rank %d, round %d: message %d from rank %d: %s\n", rank, round, index, source, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void check(const unsigned char *bytes, const MPI_Status *status, int round, int source, int index) {
    uint64_t wanted = key(round, source, rank, index);
    int length = length_of(wanted), got;
    MPI_Get_count(status, MPI_BYTE, &got);
    if (got != length || status->MPI_SOURCE != source || status->MPI_TAG != tag_of(wanted))
        fail("wrong length, source or tag", round, source, index);
    unsigned char *expected = malloc((size_t)length + 1);
    fill(expected, length, wanted);
    if (memcmp(bytes, expected, (size_t)length) != 0)
        fail("wrong contents", round, source, index);
    free(expected);
}

static void receive_posted(int round, unsigned char **buffers, MPI_Request *requests) {
    int total = ranks * messages;
    MPI_Status *statuses = malloc((size_t)total * sizeof *statuses);
    MPI_Waitall(total, requests, statuses);
    for (int at = 0; at < total; at++) {
        check(buffers[at], &statuses[at], round, at / messages, at % messages);
        free(buffers[at]);
    }
    free(statuses);
}

static void post_receives(int round, unsigned char **buffers, MPI_Request *requests) {
    for (int at = 0; at < ranks * messages; at++) {
        uint64_t wanted = key(round, at / messages, rank, at % messages);
        buffers[at] = malloc((size_t)length_of(wanted) + 1);
        MPI_Irecv(buffers[at], length_of(wanted), MPI_BYTE, at / messages, tag_of(wanted), MPI_COMM_WORLD, &requests[at]);
    }
}

static void receive_probed(int round) {
    int(*next)[TAGS] = calloc((size_t)ranks, sizeof *next);
    for (int count = 0; count < ranks * messages; count++) {
        MPI_Status status;
        MPI_Message message;
        MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &status);
        int source = status.MPI_SOURCE, tag = status.MPI_TAG, length, index = next[source][tag];
        while (index < messages && tag_of(key(round, source, rank, index)) != tag)
            index++;
        if (index == messages)
            fail("more messages of this tag than were sent", round, source, index);
        next[source][tag] = index + 1;
        MPI_Get_count(&status, MPI_BYTE, &length);
        unsigned char *bytes = malloc((size_t)length + 1);
        MPI_Mrecv(bytes, length, MPI_BYTE, &message, &status);
        check(bytes, &status, round, source, index);
        free(bytes);
    }
    free(next);
}

static void play(int round) {
    int total = ranks * messages, posted = rank % 2 == 0;
    unsigned char **received = calloc((size_t)total, sizeof *received), **sent = calloc((size_t)total, sizeof *sent);
    MPI_Request *receives = calloc((size_t)total, sizeof *receives), *sends = calloc((size_t)total, sizeof *sends);
    if (posted && round % 2 == 0)
        post_receives(round, received, receives);
    for (int index = 0; index < messages; index++) {
        for (int step = 0; step < ranks; step++) {
            int target = (rank + step) % ranks, at = index * ranks + step;
            uint64_t wanted = key(round, rank, target, index);
            sent[at] = malloc((size_t)length_of(wanted) + 1);
            fill(sent[at], length_of(wanted), wanted);
            // One in eight waits for its receive, so that both kinds of completion are mixed.
            int synchronous = (wanted >> 40) % 8 == 0 && !(posted_ssend && target % 2);
            int (*send)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *) = synchronous ? MPI_Issend : MPI_Isend;
            send(sent[at], length_of(wanted), MPI_BYTE, target, tag_of(wanted), MPI_COMM_WORLD, &sends[at]);
        }
    }
    // In odd rounds what the even ranks get is unexpected too.
    if (posted && round % 2 == 1)
        post_receives(round, received, receives);
    if (posted)
        receive_posted(round, received, receives);
    else
        receive_probed(round);
    MPI_Waitall(total, sends, MPI_STATUSES_IGNORE);
    for (int at = 0; at < total; at++)
        free(sent[at]);
    free(received), free(sent), free(receives), free(sends);
    // A probe for anybody must not see the next round's messages.
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 5) {
        if (rank == 0)
            fprintf(stderr, "usage: traffic ROUNDS MESSAGES LARGEST SEED [posted-ssend]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    rounds = atoi(argv[1]), messages = atoi(argv[2]), largest = atol(argv[3]), seed = strtoull(argv[4], NULL, 10);
    posted_ssend = argc > 5 && strcmp(argv[5], "posted-ssend") == 0;
    for (int round = 0; round < rounds; round++)
        play(round);
    if (rank == 0)
        printf("traffic: %d rounds of %d messages from each of %d ranks to each, all as sent\n", rounds, messages, ranks);
    MPI_Finalize();
    return 0;
}
