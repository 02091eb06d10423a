/* The decisions of bulk-transfer scheduling, as libtidegate-fi.so exports them: one node's part of one exchange,
 * without input or output. bulk/exchange.c turns what is to be done into MPI calls, and what has happened into events.
 *
 * libfabric is not needed. Functions return 0 or a number that is not negative, else an error that tidegate_bulk_error
 * explains. An exchange is used by one thread at a time. */

#ifndef TIDEGATE_DECISIONS_H
#define TIDEGATE_DECISIONS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tidegate_bulk_exchange tidegate_bulk_exchange;

#define TIDEGATE_BULK_SIGNAL_BYTES 24

/* What one node sends to another. */
typedef struct tidegate_bulk_block {
    uint32_t to;
    uint32_t reserved;
    uint64_t bytes;
} tidegate_bulk_block;

/* See crates/bulk/src/settings.rs; tidegate_bulk_defaults fills it in. */
typedef struct tidegate_bulk_settings {
    uint64_t unit;                 /* bytes of a piece, where a technique cuts blocks */
    uint64_t picoseconds_per_byte; /* bandwidth_matching */
    uint64_t seed;                 /* booking */
    uint32_t outstanding;          /* pieces under way at once: in_order, interleave */
    uint32_t window;               /* booking: rounds ahead */
    uint32_t rounds_per_barrier;   /* booking */
    uint32_t requests_per_round;   /* booking */
} tidegate_bulk_settings;

/* A part of a block, which is sent by itself. */
typedef struct tidegate_bulk_piece {
    uint32_t block; /* by its place among those given */
    uint32_t to;
    uint64_t offset;
    uint64_t bytes;
} tidegate_bulk_piece;

enum tidegate_bulk_step_kind {
    TIDEGATE_BULK_COPY,       /* copy `piece` to oneself, at once */
    TIDEGATE_BULK_SEND,       /* start sending `piece` */
    TIDEGATE_BULK_SIGNAL,     /* send `signal` to `peer` */
    TIDEGATE_BULK_ENTER,      /* enter a barrier that computes whether anybody has `work_left` */
    TIDEGATE_BULK_WAIT,       /* nothing until an event */
    TIDEGATE_BULK_WAIT_UNTIL, /* nothing until `until`, in nanoseconds, or an event */
    TIDEGATE_BULK_FINISHED    /* all is sent */
};

typedef struct tidegate_bulk_step_told {
    uint32_t kind;
    uint32_t peer;
    tidegate_bulk_piece piece;
    unsigned char signal[TIDEGATE_BULK_SIGNAL_BYTES];
    uint64_t until;
    uint32_t work_left;
    uint32_t reserved;
} tidegate_bulk_step_told;

enum tidegate_bulk_event_kind {
    TIDEGATE_BULK_SENT,      /* `piece` is through: where tidegate_bulk_is_delivered, its receiver has it */
    TIDEGATE_BULK_ARRIVED,   /* a piece of `peer` is here */
    TIDEGATE_BULK_SIGNALLED, /* `signal` of `peer` is here */
    TIDEGATE_BULK_PASSED,    /* all have entered the barrier; `work_left`: somebody has */
    TIDEGATE_BULK_LOST       /* `peer` is gone for good */
};

typedef struct tidegate_bulk_event {
    uint32_t kind;
    uint32_t peer;
    tidegate_bulk_piece piece;
    unsigned char signal[TIDEGATE_BULK_SIGNAL_BYTES];
    uint32_t work_left;
    uint32_t reserved;
} tidegate_bulk_event;

/* crates/ofi/src/schedule/layout.rs asserts the same sizes. */
typedef char tidegate_bulk_sizes[sizeof(tidegate_bulk_block) == 16 && sizeof(tidegate_bulk_settings) == 40
                                 && sizeof(tidegate_bulk_piece) == 24 && sizeof(tidegate_bulk_step_told) == 72
                                 && sizeof(tidegate_bulk_event) == 64 ? 1 : -1];

/* The number of a technique by its name, and its name by its number (NULL past the last). */
int tidegate_bulk_technique(const char *name);
const char *tidegate_bulk_technique_name(int technique);
/* Whether a piece counts as sent only when its receiver has it; whether blocks are cut into pieces of `unit` bytes. */
int tidegate_bulk_is_delivered(int technique);
int tidegate_bulk_cuts(int technique);

int tidegate_bulk_defaults(tidegate_bulk_settings *settings);
/* `settings` may be NULL: the defaults. */
int tidegate_bulk_new(int technique, uint32_t me, uint32_t nodes, const tidegate_bulk_block *blocks, size_t count,
                      const tidegate_bulk_settings *settings, tidegate_bulk_exchange **exchange);
int tidegate_bulk_step(tidegate_bulk_exchange *exchange, uint64_t now, tidegate_bulk_step_told *step);
int tidegate_bulk_handle(tidegate_bulk_exchange *exchange, const tidegate_bulk_event *event);
void tidegate_bulk_free(tidegate_bulk_exchange *exchange);

/* The text of an error; valid for ever. */
const char *tidegate_bulk_error(int code);

#ifdef __cplusplus
}
#endif

#endif
