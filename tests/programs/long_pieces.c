// Pieces that are several messages each, and several of them for one rank under way at once: they arrive in their
// order. The library is compiled with messages so short that this needs little memory.
//
//     long_pieces

#include "tidegate_bulk.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const techniques[] = {"in_order", "interleave", "bandwidth_matching", "barriers", "tokens",
                                         "receiver_tokens", "booking"};
enum { PIECES = 9, BYTES = 20000 };

static int rank;

static void ok(int error) {
    if (error) {
        fprintf(stderr, "rank %d: %s\n", rank, tgb_strerror(error));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

// Rank 0 sends rank 1 pieces of several lengths, long ones and short ones.
static void send_all(const char *technique, unsigned outstanding) {
    tgb_settings settings;
    tgb *queue;
    unsigned char *sent = malloc(PIECES * BYTES), *come = calloc(PIECES, BYTES);
    tgb_defaults(&settings);
    settings.unit = BYTES / 3;
    settings.outstanding = outstanding;
    for (int i = 0; i < PIECES * BYTES; i++) {
        sent[i] = (unsigned char)(i * 7 + (i >> 8) * 3 + (i >> 16));
    }
    ok(tgb_create(MPI_COMM_WORLD, technique, &settings, &queue));
    for (int i = 0; i < PIECES; i++) {
        size_t bytes = i % 3 == 2 ? 10 : (size_t)(BYTES - i);
        if (rank == 0) {
            ok(tgb_schedule(queue, 1, sent + i * BYTES, bytes));
        } else if (rank == 1) {
            ok(tgb_expect(queue, 0, come + i * BYTES, bytes));
        }
    }
    ok(tgb_service_queue(queue));
    for (int i = 0; rank == 1 && i < PIECES; i++) {
        if (memcmp(come + i * BYTES, sent + i * BYTES, i % 3 == 2 ? 10 : (size_t)(BYTES - i))) {
            fprintf(stderr, "piece %d by %s is not as sent\n", i, technique);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    ok(tgb_free(&queue));
    free(sent);
    free(come);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (size_t i = 0; i < sizeof techniques / sizeof *techniques; i++) {
        send_all(techniques[i], 2);
        send_all(techniques[i], 5);
    }
    if (rank == 0) {
        printf("all as sent\n");
    }
    MPI_Finalize();
    return 0;
}
