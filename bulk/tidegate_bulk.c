/* The library: queues of pieces, and what ranks agree on before they are sent. bulk/exchange.c sends them. */

#include "tidegate_bulk.h"
#include "exchange.h"
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* From which length on "auto" books, where the user does not say: never, as docs/bulk.md has measured it, within a host
 * and over slow lines with TCP. Networks without a flow control of their own are what booking is for. */
#define SWITCH_BYTES UINT64_MAX
/* The number of "auto", beside those of the techniques. */
#define AUTO 1000

struct list {
    struct tgx_block *blocks;
    size_t count, room;
};

struct tgb {
    MPI_Comm comm;
    int rank, ranks, technique, chosen, error;
    tgb_settings settings;
    struct list sends, receives; /* for the next exchange */
    enum { IDLE, AGREEING, RUNNING } state;
    MPI_Request agreement;
    uint64_t mine, agreed; /* the longest piece: of this rank, of all */
    uint64_t sequence;
    struct list leaving, coming; /* of this exchange, until it is begun */
    struct tgx *exchange;
};

void tgb_defaults(tgb_settings *settings) {
    *settings = (tgb_settings){.unit = 0, .switch_bytes = SWITCH_BYTES, .picoseconds_per_byte = 0, .seed = 1,
                               .outstanding = 2, .window = 8, .rounds_per_barrier = 1, .requests_per_round = 1};
}

const char *tgb_strerror(int error) {
    static _Thread_local char text[MPI_MAX_ERROR_STRING + 1];
    switch (error) {
    case 0: return "no error";
    case TGB_BAD_ARGUMENT: return "a pointer is NULL that must not be, or a peer is not a rank of the communicator";
    case TGB_INTERCOMMUNICATOR: return "an intercommunicator has no order of ranks: merge it with MPI_Intercomm_merge";
    case TGB_DIFFERENT: return "ranks gave different techniques or settings to tgb_create: give the same on all";
    case TGB_BUSY: return "the queue is being served: call tgb_test_queue until it says done, or tgb_service_queue";
    case TGB_BROKEN: return "an earlier call has failed: free the queue with tgb_free and make a new one";
    case TGB_NO_MEMORY: return "out of memory";
    case TGB_SIZE:
        return "a piece is not as long as its receiver expected: tgb_expect must name the lengths of tgb_schedule, "
               "in the same order";
    case TGB_SELF: return "a rank needs one tgb_expect for each tgb_schedule to itself";
    case TGB_OUTSTANDING: return "outstanding must be from 1 to 1024";
    default: break;
    }
    if (error < 0) {
        return tidegate_bulk_error(error);
    }
    int length = 0;
    if (PMPI_Error_string(error, text, &length) != MPI_SUCCESS) {
        return "an error of MPI without a text";
    }
    text[length] = 0;
    return text;
}

/* A round of booking has a barrier, so it has to carry more. */
static uint64_t default_unit(int technique) {
    return technique == tidegate_bulk_technique("booking") ? (uint64_t)1 << 20 : 65536;
}

static tidegate_bulk_settings decisions(const tgb_settings *settings, int technique) {
    uint64_t unit = settings->unit ? settings->unit : default_unit(technique);
    return (tidegate_bulk_settings){.unit = unit, .picoseconds_per_byte = settings->picoseconds_per_byte,
                                    .seed = settings->seed, .outstanding = settings->outstanding,
                                    .window = settings->window, .rounds_per_barrier = settings->rounds_per_barrier,
                                    .requests_per_round = settings->requests_per_round};
}

/* Whether an exchange can go like that: tries an empty one. */
static int check(int technique, const tgb_settings *settings) {
    tidegate_bulk_settings plain = decisions(settings, technique);
    tidegate_bulk_exchange *probe = NULL;
    int error = tidegate_bulk_new(technique == AUTO ? 0 : technique, 0, 1, NULL, 0, &plain, &probe);
    tidegate_bulk_free(probe);
    return error ? error : settings->outstanding > TGX_OUTSTANDING_MOST ? TGB_OUTSTANDING : 0;
}

/* Whether all ranks have chosen the same, and nobody has an error. Every rank takes part, whatever it has. */
static int agree(tgb *queue, int error) {
    enum { WORDS = 10 };
    const tgb_settings *mine = &queue->settings;
    uint64_t words[2 * WORDS + 1] = {(uint64_t)queue->technique, mine->unit, mine->switch_bytes,
                                     mine->picoseconds_per_byte, mine->seed, mine->outstanding, mine->window,
                                     mine->rounds_per_barrier, mine->requests_per_round, error != 0};
    for (int i = 0; i < WORDS; i++) {
        words[WORDS + i] = ~words[i];
    }
    words[2 * WORDS] = tgx_number();
    int failed = PMPI_Allreduce(MPI_IN_PLACE, words, 2 * WORDS + 1, MPI_UINT64_T, MPI_MAX, queue->comm);
    if (failed || error) {
        return error ? error : failed;
    }
    for (int i = 0; i < WORDS; i++) {
        if (words[i] != ~words[WORDS + i]) {
            return TGB_DIFFERENT;
        }
    }
    queue->sequence = words[2 * WORDS];
    return 0;
}

int tgb_create(MPI_Comm comm, const char *technique, const tgb_settings *settings, tgb **queue) {
    int is_inter = 0, error = queue ? 0 : TGB_BAD_ARGUMENT;
    error = error ? error : PMPI_Comm_test_inter(comm, &is_inter);
    if (error || is_inter) {
        return error ? error : TGB_INTERCOMMUNICATOR;
    }
    tgb *made = calloc(1, sizeof *made);
    if (!made) {
        return TGB_NO_MEMORY;
    }
    error = PMPI_Comm_dup(comm, &made->comm);
    if (error) {
        free(made);
        return error;
    }
    PMPI_Comm_set_errhandler(made->comm, MPI_ERRORS_RETURN);
    PMPI_Comm_rank(made->comm, &made->rank);
    PMPI_Comm_size(made->comm, &made->ranks);
    tgb_defaults(&made->settings);
    if (settings) {
        made->settings = *settings;
    }
    made->technique = !technique ? TGB_BAD_ARGUMENT
                                 : strcmp(technique, "auto") == 0 ? AUTO : tidegate_bulk_technique(technique);
    made->chosen = made->technique == AUTO ? tidegate_bulk_technique("interleave") : made->technique;
    error = made->technique < 0 ? made->technique : check(made->technique, &made->settings);
    error = agree(made, error);
    if (error) {
        PMPI_Comm_free(&made->comm);
        free(made);
        return error;
    }
    *queue = made;
    return 0;
}

static int append(tgb *queue, struct list *list, int peer, void *buffer, size_t bytes) {
    if (queue->error) {
        return TGB_BROKEN;
    }
    if (peer < 0 || peer >= queue->ranks || (!buffer && bytes > 0)) {
        return TGB_BAD_ARGUMENT;
    }
    if (bytes == 0) {
        return 0;
    }
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 16;
        struct tgx_block *blocks = room > UINT32_MAX ? NULL : realloc(list->blocks, room * sizeof *blocks);
        if (!blocks) {
            return TGB_NO_MEMORY;
        }
        list->blocks = blocks;
        list->room = room;
    }
    list->blocks[list->count++] = (struct tgx_block){.peer = peer, .is_plain = 1, .buffer = buffer,
                                                     .count = (MPI_Count)bytes, .type = MPI_BYTE, .bytes = bytes};
    return 0;
}

int tgb_schedule(tgb *queue, int peer, const void *buffer, size_t bytes) {
    return queue ? append(queue, &queue->sends, peer, (void *)buffer, bytes) : TGB_BAD_ARGUMENT;
}

int tgb_expect(tgb *queue, int peer, void *buffer, size_t bytes) {
    return queue ? append(queue, &queue->receives, peer, buffer, bytes) : TGB_BAD_ARGUMENT;
}

/* How many bytes this rank has in a list for itself, and in how many pieces. */
static void count_self(const tgb *queue, const struct list *list, uint64_t *bytes, uint64_t *pieces) {
    *bytes = *pieces = 0;
    for (size_t i = 0; i < list->count; i++) {
        *bytes += list->blocks[i].peer == queue->rank ? list->blocks[i].bytes : 0;
        *pieces += list->blocks[i].peer == queue->rank;
    }
}

static void forget(struct list *list) {
    free(list->blocks);
    *list = (struct list){0};
}

/* Takes the lists, and asks for what has to be agreed on: how long the longest piece is. */
static int begin(tgb *queue) {
    uint64_t sent, received, out, in;
    count_self(queue, &queue->sends, &sent, &out);
    count_self(queue, &queue->receives, &received, &in);
    if (out != in) {
        return TGB_SELF;
    }
    if (sent != received) {
        return TGB_SIZE;
    }
    queue->leaving = queue->sends;
    queue->coming = queue->receives;
    queue->sends = queue->receives = (struct list){0};
    queue->state = AGREEING;
    queue->agreement = MPI_REQUEST_NULL;
    if (queue->technique != AUTO) {
        return 0;
    }
    queue->mine = 0;
    for (size_t i = 0; i < queue->leaving.count; i++) {
        uint64_t bytes = queue->leaving.blocks[i].bytes;
        queue->mine = bytes > queue->mine ? bytes : queue->mine;
    }
    return PMPI_Iallreduce(&queue->mine, &queue->agreed, 1, MPI_UINT64_T, MPI_MAX, queue->comm, &queue->agreement);
}

static int start(tgb *queue) {
    if (queue->technique == AUTO) {
        int is_long = queue->agreed >= queue->settings.switch_bytes;
        queue->chosen = tidegate_bulk_technique(is_long ? "booking" : "interleave");
    }
    tidegate_bulk_settings settings = decisions(&queue->settings, queue->chosen);
    int error = tgx_start(&queue->exchange, queue->comm, queue->sequence++, queue->chosen, &settings,
                          queue->leaving.blocks, queue->leaving.count, queue->coming.blocks, queue->coming.count);
    forget(&queue->leaving);
    forget(&queue->coming);
    queue->state = RUNNING;
    return error;
}

/* Does what can be done now. */
static int advance(tgb *queue, int *done, int *moved) {
    *done = *moved = 0;
    if (queue->state == IDLE) {
        *moved = 1;
        return begin(queue);
    }
    if (queue->state == AGREEING) {
        int error = PMPI_Test(&queue->agreement, moved, MPI_STATUS_IGNORE);
        return error || !*moved ? error : start(queue);
    }
    int error = tgx_advance(queue->exchange, done, moved);
    if (*done) {
        tgx_end(queue->exchange);
        queue->exchange = NULL;
        queue->state = IDLE;
    }
    return error;
}

int tgb_test_queue(tgb *queue, int *done) {
    int moved = 0, error = 0;
    if (!queue || !done) {
        return TGB_BAD_ARGUMENT;
    }
    *done = 0;
    if (queue->error) {
        return TGB_BROKEN;
    }
    do {
        error = advance(queue, done, &moved);
    } while (!error && !*done && moved);
    queue->error = error;
    return error;
}

int tgb_service_queue(tgb *queue) {
    for (int done = 0, idle = 0;; idle++) {
        int error = tgb_test_queue(queue, &done);
        if (error || done) {
            return error;
        }
        /* Others may need this processor to make what is waited for. */
        if (idle > 10) {
            sched_yield();
        }
    }
}

int tgb_free(tgb **queue) {
    if (!queue || !*queue) {
        return queue ? 0 : TGB_BAD_ARGUMENT;
    }
    tgb *freed = *queue;
    if (freed->state != IDLE && !freed->error) {
        return TGB_BUSY;
    }
    int is_used_up = tgx_end(freed->exchange);
    forget(&freed->sends);
    forget(&freed->receives);
    forget(&freed->leaving);
    forget(&freed->coming);
    /* Another communicator with its name would get what an exchange that was broken off has left there. */
    int error = is_used_up ? 0 : PMPI_Comm_free(&freed->comm);
    free(freed);
    *queue = NULL;
    return error;
}

const char *tgb_technique(const tgb *queue) {
    return queue ? tidegate_bulk_technique_name(queue->chosen) : NULL;
}
