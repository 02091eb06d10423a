// The library tidegate_bulk, beside what examples/random_traffic.c shows: several pieces for one rank, oneself, none at
// all, pieces of nothing, work between tests of the queue, mistakes and their names, pieces longer than an int can say.
//
//     bulk [LONGEST]

#include "tidegate_bulk.h"
#include "check.h"
#include <stdlib.h>
#include <string.h>

static int rank, ranks;

#define OK(call)                                                                                                       \
    do {                                                                                                               \
        int error = (call);                                                                                            \
        if (error) {                                                                                                   \
            fprintf(stderr, "%s\n", tgb_strerror(error));                                                              \
        }                                                                                                              \
        CHECK(!error);                                                                                                 \
    } while (0)
#define FAILS(call, wanted, text)                                                                                      \
    do {                                                                                                               \
        int found = (call);                                                                                            \
        CHECK(found == (wanted));                                                                                      \
        CHECK(strstr(tgb_strerror(found), text));                                                                      \
    } while (0)

static const char *const techniques[] = {"in_order", "interleave", "bandwidth_matching", "barriers", "tokens",
                                         "receiver_tokens", "booking", "auto"};
enum { PIECES = 3, BYTES = 5000 };

// Rank 0 sends all others several pieces and itself one; the last rank sends nothing at all; all others send one to rank
// 0. Lengths differ, one is 0.
static void uneven(const char *technique, int tests) {
    tgb_settings settings;
    tgb *queue;
    int last = ranks - 1;
    tgb_defaults(&settings);
    settings.unit = 1777;
    settings.outstanding = 3;
    settings.rounds_per_barrier = 2;
    settings.switch_bytes = BYTES;
    OK(tgb_create(MPI_COMM_WORLD, technique, &settings, &queue));
    for (int round = 0; round <= tests; round++) {
        unsigned char *sent = malloc(BYTES), *come = malloc((size_t)BYTES * (size_t)ranks * PIECES);
        memset(sent, rank + 1, BYTES);
        memset(come, 0, (size_t)BYTES * (size_t)ranks * PIECES);
        for (int i = 0; rank == 0 && i < PIECES; i++) {
            for (int to = 1; to < ranks; to++) {
                OK(tgb_schedule(queue, to, sent, i == 1 ? 0 : (size_t)(BYTES - i)));
            }
        }
        for (int i = 0; rank != 0 && i < PIECES; i++) {
            OK(tgb_expect(queue, 0, come + i * BYTES, i == 1 ? 0 : (size_t)(BYTES - i)));
        }
        for (int from = 1; from < last; from++) {
            if (rank == from) {
                OK(tgb_schedule(queue, 0, sent, BYTES));
            } else if (rank == 0) {
                OK(tgb_expect(queue, from, come + from * BYTES, BYTES));
            }
        }
        if (rank == 0) {
            OK(tgb_schedule(queue, 0, sent, 10));
            OK(tgb_expect(queue, 0, come, 10));
        }
        int done = 0;
        while (tests && !done) {
            OK(tgb_test_queue(queue, &done));
        }
        if (!tests) {
            OK(tgb_service_queue(queue));
        }
        CHECK(rank != 0 || (come[0] == 1 && come[9] == 1 && come[10] == 0));
        for (int from = 1; rank == 0 && from < last; from++) {
            CHECK(come[from * BYTES] == from + 1 && come[(from + 1) * BYTES - 1] == from + 1);
        }
        for (int i = 0; rank != 0 && i < PIECES; i++) {
            int end = i == 1 ? 0 : BYTES - i;
            CHECK(come[i * BYTES + (end ? end - 1 : 0)] == (end ? 1 : 0) && come[i * BYTES + end] == 0);
        }
        free(sent);
        free(come);
    }
    // The longest piece is rank 0's own decision, and all know of it.
    CHECK(strcmp(technique, "auto") || !strcmp(tgb_technique(queue), ranks > 1 ? "booking" : "interleave"));
    OK(tgb_free(&queue));
    CHECK(!queue);
}

static void mistakes(void) {
    tgb *queue = NULL;
    char byte = 0;
    int done;
    tgb_settings settings;
    tgb_defaults(&settings);
    FAILS(tgb_create(MPI_COMM_WORLD, "token", NULL, &queue), -2, "receiver_tokens, booking");
    FAILS(tgb_create(MPI_COMM_WORLD, "tokens", NULL, NULL), TGB_BAD_ARGUMENT, "NULL");
    settings.window = 65;
    FAILS(tgb_create(MPI_COMM_WORLD, "booking", &settings, &queue), -4, "window is 1 to 64");
    settings.window = 8;
    settings.outstanding = 2000;
    FAILS(tgb_create(MPI_COMM_WORLD, "interleave", &settings, &queue), TGB_OUTSTANDING, "1024");
    settings.outstanding = 2 + (uint32_t)rank;
    if (ranks > 1) {
        FAILS(tgb_create(MPI_COMM_WORLD, "interleave", &settings, &queue), TGB_DIFFERENT, "the same on all");
        FAILS(tgb_create(MPI_COMM_WORLD, rank ? "tokens" : "booking", NULL, &queue), TGB_DIFFERENT, "different techniques");
        MPI_Comm half, inter;
        MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
        MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 5, &inter);
        FAILS(tgb_create(inter, "tokens", NULL, &queue), TGB_INTERCOMMUNICATOR, "MPI_Intercomm_merge");
        MPI_Comm_free(&inter);
        MPI_Comm_free(&half);
    }
    CHECK(!queue);
    OK(tgb_create(MPI_COMM_WORLD, "auto", NULL, &queue));
    FAILS(tgb_schedule(queue, ranks, &byte, 1), TGB_BAD_ARGUMENT, "not a rank");
    FAILS(tgb_expect(queue, -1, &byte, 1), TGB_BAD_ARGUMENT, "not a rank");
    FAILS(tgb_schedule(queue, 0, NULL, 1), TGB_BAD_ARGUMENT, "NULL");
    FAILS(tgb_test_queue(NULL, &done), TGB_BAD_ARGUMENT, "NULL");
    OK(tgb_schedule(queue, rank, &byte, 1));
    FAILS(tgb_service_queue(queue), TGB_SELF, "to itself");
    FAILS(tgb_service_queue(queue), TGB_BROKEN, "tgb_free");
    OK(tgb_free(&queue));
    OK(tgb_free(&queue));
}

// Rank 0 expects another length than rank 1 sends. Whatever becomes of it there, the others come to their end, and
// nothing of it is left for the next time.
static void lengths(void) {
    static char sent[2000], come[3000];
    tgb_settings settings;
    tgb *queue;
    tgb_defaults(&settings);
    settings.unit = 1000;
#ifdef OPEN_MPI
    // In parts: what is beyond the last that is expected goes unnoticed. (MPICH notices when the queue is freed.)
    OK(tgb_create(MPI_COMM_WORLD, "interleave", &settings, &queue));
    for (int round = 1; round <= 2; round++) {
        memset(sent, round, sizeof sent);
        OK(rank == 1 ? tgb_schedule(queue, 0, sent, 2000) : 0);
        OK(rank == 0 ? tgb_expect(queue, 1, come, round == 1 ? 1000 : 2000) : 0);
        OK(tgb_service_queue(queue));
    }
    CHECK(rank != 0 || (come[0] == 2 && come[1999] == 2));
    OK(tgb_free(&queue));
#endif
    // As a whole: rank 0 goes on, for the others wait for its tokens.
    OK(tgb_create(MPI_COMM_WORLD, "tokens", NULL, &queue));
    OK(rank == 1 ? tgb_schedule(queue, 0, sent, 2000) : 0);
    OK(rank == 0 ? tgb_expect(queue, 1, come, 3000) : 0);
    if (rank == 0) {
        FAILS(tgb_service_queue(queue), TGB_SIZE, "not as long");
    } else {
        OK(tgb_service_queue(queue));
    }
    OK(tgb_free(&queue));
}

// A piece whose length no int can say.
static void enormous(size_t bytes) {
    char *buffer = calloc(1, bytes);
    tgb *queue;
    CHECK(buffer && bytes > 100);
    OK(tgb_create(MPI_COMM_WORLD, "tokens", NULL, &queue));
    if (rank == 0) {
        buffer[0] = 1, buffer[bytes / 2] = 2, buffer[bytes - 1] = 3;
        OK(tgb_schedule(queue, 1, buffer, bytes));
    } else if (rank == 1) {
        OK(tgb_expect(queue, 0, buffer, bytes));
    }
    OK(tgb_service_queue(queue));
    CHECK(rank > 1 || (buffer[0] == 1 && buffer[bytes / 2] == 2 && buffer[bytes - 1] == 3));
    free(buffer);
    OK(tgb_free(&queue));
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc > 1) {
        enormous(strtoull(argv[1], NULL, 0));
    } else {
        mistakes();
        if (ranks > 1) {
            lengths();
        }
        for (size_t i = 0; i < sizeof techniques / sizeof *techniques; i++) {
            uneven(techniques[i], i % 2 == 0);
        }
    }
    if (rank == 0) {
        printf("all as sent\n");
    }
    MPI_Finalize();
    return 0;
}
