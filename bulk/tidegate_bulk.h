/* Bulk transfers over any MPI's point-to-point calls: who sends which piece of a large exchange when. See
 * tidegate_bulk(3).
 *
 *     tgb *queue;
 *     tgb_create(MPI_COMM_WORLD, "auto", NULL, &queue);       all ranks
 *     tgb_expect(queue, left, from_left, bytes);              for each piece that comes
 *     tgb_schedule(queue, right, to_right, bytes);            for each piece that goes
 *     tgb_service_queue(queue);                               all ranks
 *     tgb_free(&queue);                                       all ranks
 */

#ifndef TIDEGATE_BULK_H
#define TIDEGATE_BULK_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Pieces that wait to be sent to others, and those that come. */
typedef struct tgb tgb;

/* What may be chosen. The same on all ranks. tgb_defaults fills it in. */
typedef struct tgb_settings {
    uint64_t unit;                 /* bytes sent at a time by interleave and bandwidth_matching (64 KiB), by booking
                                      (1 MiB); 0: these */
    uint64_t switch_bytes;         /* auto: booking, where anybody's longest piece has as many; never */
    uint64_t picoseconds_per_byte; /* bandwidth_matching: what a receiver needs for a byte: 0, no limit */
    uint64_t seed;                 /* booking: decides whom a rank asks first: 1 */
    uint32_t outstanding;          /* pieces on their way at once, 1 to 1024; in_order and interleave: 2 */
    uint32_t window;               /* booking: rounds ahead, 1 to 64: 8 */
    uint32_t rounds_per_barrier;   /* booking: 1 to `window`: 1 */
    uint32_t requests_per_round;   /* booking: 1 */
} tgb_settings;

void tgb_defaults(tgb_settings *settings);

/* Collective. Makes an empty queue over a duplicate of `comm`, an intracommunicator. `technique`: "auto" (interleave,
 * or booking for long pieces), "in_order", "interleave", "bandwidth_matching", "barriers", "tokens", "receiver_tokens",
 * "booking". `settings` may be NULL: the defaults. */
int tgb_create(MPI_Comm comm, const char *technique, const tgb_settings *settings, tgb **queue);

/* A piece for `peer`, which may be this rank. It is sent by the next tgb_service_queue; until that has returned the
 * buffer must not be changed. Any number of pieces of any length. */
int tgb_schedule(tgb *queue, int peer, const void *buffer, size_t bytes);

/* Where the next piece of `peer` goes. For each piece that a rank schedules for another, the other expects one of the
 * same length; those of a pair in the same order. */
int tgb_expect(tgb *queue, int peer, void *buffer, size_t bytes);

/* Collective. Sends and receives all that has been scheduled and expected. */
int tgb_service_queue(tgb *queue);

/* The same without waiting: does what can be done now, and says whether all is done. Each rank calls it until it is;
 * what is scheduled and expected meanwhile is for the next time. */
int tgb_test_queue(tgb *queue, int *done);

/* Collective. Frees a queue, and sets the pointer to NULL. NULL is allowed. */
int tgb_free(tgb **queue);

/* The technique of the last tgb_service_queue: what "auto" has come to. */
const char *tgb_technique(const tgb *queue);

/* What an answer other than 0 means: an error of MPI (positive) or of this library. For positive ones the text is valid
 * until the thread's next call. */
const char *tgb_strerror(int error);

/* Errors of this library, beside those of a few lines in tidegate_decisions.h. After one from TGB_SIZE on, and after an
 * error of MPI, the queue can only be freed. */
enum {
    TGB_BAD_ARGUMENT = -201,     /* a pointer is NULL, a peer is no rank */
    TGB_INTERCOMMUNICATOR = -202,
    TGB_DIFFERENT = -203,        /* ranks have chosen different techniques or settings */
    TGB_BUSY = -204,             /* tgb_test_queue has begun what tgb_free would end */
    TGB_BROKEN = -205,           /* an error before this call */
    TGB_NO_MEMORY = -101,
    TGB_SIZE = -102,             /* a piece is shorter than was expected; a longer one is MPI_ERR_TRUNCATE */
    TGB_SELF = -103,             /* pieces to oneself without tgb_expect, or the other way round */
    TGB_OUTSTANDING = -104
};

#ifdef __cplusplus
}
#endif

#endif
