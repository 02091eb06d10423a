/* Makes an exchange, and has its receives: which are posted, what is told of those that have completed. See
 * bulk/exchange.c. */

#include "exchange_parts.h"
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

int tgx_irecv(void *buffer, MPI_Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request *request) {
#if MPI_VERSION >= 4
    if (count > INT_MAX) {
        return PMPI_Irecv_c(buffer, count, type, from, tag, comm, request);
    }
#endif
    return count > INT_MAX ? MPI_ERR_COUNT : PMPI_Irecv(buffer, (int)count, type, from, tag, comm, request);
}

/* The length of the message of a block that begins at `offset`. The sender cuts in the same way. */
static uint64_t message_length(const struct tgx *x, const struct tgx_block *block, uint64_t offset, int *is_last) {
    uint64_t left = block->bytes - offset;
    uint64_t of_piece = x->unit - offset % x->unit;
    of_piece = !block->is_plain || of_piece > left ? left : of_piece;
    uint64_t length = block->is_plain && of_piece > TGX_MESSAGE_MOST ? TGX_MESSAGE_MOST : of_piece;
    *is_last = length == of_piece;
    return length;
}

/* Posts receives for one sender, as many as the ring holds. */
static int post(struct tgx *x, size_t sender) {
    struct tgx_incoming *in = &x->incoming[sender];
    while (in->posted < TGX_RING && in->block < in->end) {
        const struct tgx_block *block = &x->receives[in->block];
        int is_last, place = (in->first + in->posted) % TGX_RING;
        uint64_t length = message_length(x, block, in->offset, &is_last);
        MPI_Request request;
        int error = block->is_plain
            ? tgx_irecv((char *)block->buffer + in->offset, (MPI_Count)length, MPI_BYTE, in->peer, x->data_tag,
                        x->comm, &request)
            : tgx_irecv(block->buffer, block->count, block->type, in->peer, x->data_tag, x->comm, &request);
        if (error) {
            return error;
        }
        tgx_add(x, request, TGX_RECEIVE, (int)sender, place);
        in->ring[place].bytes = length;
        in->ring[place].is_last = is_last;
        in->ring[place].is_whole = x->unit == UINT64_MAX && length == block->bytes;
        in->ring[place].is_plain = block->is_plain;
        in->ring[place].is_done = 0;
        in->posted++;
        in->offset += length;
        if (in->offset == block->bytes) {
            in->offset = 0;
            in->block++;
        }
    }
    return 0;
}

/* Whether a message has come that is not as long as it should be. */
static int check_length(const struct tgx *x, int sender, int place, int error, const MPI_Status *status) {
    const struct tgx_incoming *in = &x->incoming[sender];
    int count = 0;
    if (error || !in->ring[place].is_plain) {
        return error;
    }
    PMPI_Get_count(status, MPI_BYTE, &count);
    return count < 0 || (uint64_t)count != in->ring[place].bytes ? TGX_SIZE : 0;
}

/* A receive has completed, with an error or without. Pieces are told in the order in which they were sent. A message of
 * the wrong length ends nothing if it is a whole block: the sender, and all who wait for it, could not know. */
int tgx_received(struct tgx *x, int sender, int place, int error, const MPI_Status *status) {
    struct tgx_incoming *in = &x->incoming[sender];
    error = check_length(x, sender, place, error, status);
    if (error) {
        int class = error;
        if (error > 0) {
            PMPI_Error_class(error, &class);
        }
        if (!in->ring[place].is_whole || (class != TGX_SIZE && class != MPI_ERR_TRUNCATE)) {
            return error;
        }
        x->wrong = x->wrong ? x->wrong : error;
    }
    in->ring[place].is_done = 1;
    while (in->posted > 0 && in->ring[in->first].is_done) {
        if (in->ring[in->first].is_last) {
            tidegate_bulk_event event = {.kind = TIDEGATE_BULK_ARRIVED, .peer = (uint32_t)in->peer};
            int error = tgx_event(x, &event);
            if (error) {
                return error;
            }
            in->owed += x->is_delivered;
            x->owed += (uint64_t)x->is_delivered;
        }
        in->first = (in->first + 1) % TGX_RING;
        in->posted--;
        x->left -= (in->posted == 0 && in->block == in->end);
    }
    return post(x, (size_t)sender);
}

/* Confirms to their senders the pieces that have come. */
int tgx_confirm(struct tgx *x, int *moved) {
    for (size_t sender = 0; x->owed > 0 && sender < x->incoming_count; sender++) {
        struct tgx_incoming *in = &x->incoming[sender];
        while (in->owed > 0 && x->tell_count < TGX_TELLS) {
            int error = tgx_tell(x, in->peer, x->have_tag, NULL, 0);
            if (error) {
                return error;
            }
            in->owed--;
            x->owed--;
            *moved = 1;
        }
    }
    return 0;
}

/* Copies a block that this rank sends to itself into the next one that it receives from itself. */
int tgx_copy(struct tgx *x, const struct tgx_block *from) {
    if (x->self == x->self_end) {
        return TGX_SELF;
    }
    const struct tgx_block *to = &x->receives[x->self++];
    if (to->bytes != from->bytes) {
        return TGX_SIZE;
    }
    if (from->is_plain && to->is_plain) {
        memmove(to->buffer, from->buffer, from->bytes);
        return 0;
    }
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int error = tgx_irecv(to->buffer, to->count, to->type, x->me, x->data_tag, x->comm, &requests[0]);
    if (!error) {
        error = tgx_isend(from->buffer, from->count, from->type, x->me, x->data_tag, x->comm, &requests[1]);
    }
    return error ? error : PMPI_Waitall(2, requests, statuses);
}

static int by_sender(const void *one, const void *other) {
    const struct tgx_block *const *a = one, *const *b = other;
    if ((*a)->peer != (*b)->peer) {
        return (*a)->peer < (*b)->peer ? -1 : 1;
    }
    return *a < *b ? -1 : *a > *b;
}

/* Copies the receives, by senders, and counts those. */
static int sort_receives(struct tgx *x, const struct tgx_block *receives, size_t count) {
    const struct tgx_block **order = malloc((count + 1) * sizeof *order);
    x->receives = malloc((count + 1) * sizeof *x->receives);
    x->incoming = calloc((count < (size_t)x->nodes ? count : (size_t)x->nodes) + 1, sizeof *x->incoming);
    if (!order || !x->receives || !x->incoming) {
        free(order);
        return TGX_NO_MEMORY;
    }
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (receives[i].bytes > 0) {
            order[used++] = &receives[i];
        }
    }
    qsort(order, used, sizeof *order, by_sender);
    for (size_t i = 0; i < used; i++) {
        x->receives[i] = *order[i];
        int peer = order[i]->peer;
        if (peer == x->me) {
            x->self = x->self_end == 0 ? i : x->self;
            x->self_end = i + 1;
        } else if (x->incoming_count == 0 || x->incoming[x->incoming_count - 1].peer != peer) {
            x->incoming[x->incoming_count++] = (struct tgx_incoming){.peer = peer, .block = i, .end = i + 1};
            x->left++;
        } else {
            x->incoming[x->incoming_count - 1].end = i + 1;
        }
    }
    free(order);
    return 0;
}

/* Places for all that may be under way at once. */
static int make_room(struct tgx *x, size_t outstanding) {
    /* Twice, because those that have completed leave when all that have been looked at are done with. */
    size_t most = 2 * (x->incoming_count * TGX_RING + 2 * outstanding + TGX_TELLS + 1);
    if (most > INT_MAX) {
        return TGX_NO_MEMORY;
    }
    x->outgoing = calloc(outstanding, sizeof *x->outgoing);
    x->places = (int)outstanding;
    x->requests = malloc(most * sizeof *x->requests);
    x->slots = malloc(most * sizeof *x->slots);
    x->indices = malloc(most * sizeof *x->indices);
    x->statuses = malloc(most * sizeof *x->statuses);
    return x->outgoing && x->requests && x->slots && x->indices && x->statuses ? 0 : TGX_NO_MEMORY;
}

static int decide(struct tgx *x, int technique, const tidegate_bulk_settings *settings, const struct tgx_block *sends,
                  size_t count) {
    tidegate_bulk_block *blocks = malloc((count + 1) * sizeof *blocks);
    x->sends = malloc((count + 1) * sizeof *x->sends);
    if (!blocks || !x->sends) {
        free(blocks);
        return TGX_NO_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        x->sends[i] = sends[i];
        blocks[i] = (tidegate_bulk_block){.to = (uint32_t)sends[i].peer, .bytes = sends[i].bytes};
    }
    int error = tidegate_bulk_new(technique, (uint32_t)x->me, (uint32_t)x->nodes, blocks, count, settings,
                                  &x->decisions);
    free(blocks);
    return error;
}

static atomic_ullong next_number;

uint64_t tgx_number(void) {
    return next_number;
}

static void note_number(uint64_t number) {
    unsigned long long known = next_number;
    while (known <= number && !atomic_compare_exchange_weak(&next_number, &known, number + 1)) {
    }
}

int tgx_start(struct tgx **exchange, MPI_Comm comm, uint64_t sequence, int technique,
              const tidegate_bulk_settings *settings, const struct tgx_block *sends, size_t send_count,
              const struct tgx_block *receives, size_t receive_count) {
    if (settings->outstanding > TGX_OUTSTANDING_MOST) {
        return TGX_OUTSTANDING;
    }
    struct tgx *x = calloc(1, sizeof *x);
    if (!x) {
        return TGX_NO_MEMORY;
    }
    note_number(sequence);
    x->comm = comm;
    int number = (int)(sequence % TGX_TAGS);
    x->data_tag = TGX_TAG_DATA + number;
    x->have_tag = TGX_TAG_HAVE + number;
    x->signal_tag = TGX_TAG_SIGNAL + number;
    x->is_delivered = tidegate_bulk_is_delivered(technique) == 1;
    x->unit = tidegate_bulk_cuts(technique) == 1 ? settings->unit : UINT64_MAX;
    int error = PMPI_Comm_rank(comm, &x->me);
    error = error ? error : PMPI_Comm_size(comm, &x->nodes);
    error = error ? error : decide(x, technique, settings, sends, send_count);
    error = error ? error : sort_receives(x, receives, receive_count);
    error = error ? error : make_room(x, settings->outstanding);
    for (size_t sender = 0; !error && sender < x->incoming_count; sender++) {
        error = post(x, sender);
    }
    x->error = error;
    if (error) {
        tgx_end(x);
        return error;
    }
    *exchange = x;
    return 0;
}

int tgx_end(struct tgx *x) {
    if (!x) {
        return 0;
    }
    int is_under_way = 0, is_broken = !x->is_over;
    for (int i = 0; i < x->used; i++) {
        enum tgx_kind kind = x->slots[i].kind;
        /* What has completed with the error or beside it is no request any more, and that would be the next error. */
        if (x->requests[i] == MPI_REQUEST_NULL) {
            continue;
        }
        if (kind == TGX_RECEIVE || kind == TGX_HEAR) {
            PMPI_Cancel(&x->requests[i]);
        }
        if (kind != TGX_BARRIER) {
            PMPI_Request_free(&x->requests[i]);
        }
        is_under_way = 1;
    }
    tidegate_bulk_free(x->decisions);
    free(x->sends);
    free(x->receives);
    free(x->incoming);
    free(x->outgoing);
    free(x->requests);
    free(x->slots);
    free(x->indices);
    free(x->statuses);
    /* Small messages that are under way after an error are in here. */
    if (!is_under_way) {
        free(x);
    }
    return is_broken;
}
