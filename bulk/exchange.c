/* Drives one exchange: what the decisions (tidegate_decisions.h) want done becomes MPI calls, and what has completed
 * becomes events. bulk/receiving.c has the receives; the two share bulk/exchange_parts.h.
 *
 * - All receives that are possible are posted first: a few per sender, the next ones as those complete.
 * - Where a piece counts as sent only when its receiver has it, the receiver sends a message of 0 bytes with a tag of
 *   its own when the piece is complete: a send that has completed may only have been copied by the MPI.
 * - Signals are looked for, not received in advance, so none is left over at the end.
 * - A message that is not as long as its receiver expects is an error of that receiver, told at the end: meanwhile it
 *   goes on, so that the others come to their end, too. All other errors end the exchange for this rank at once.
 * - A barrier is a non-blocking reduction; all other things go on meanwhile.
 * - Bounds: TELLS small messages on their way, `outstanding` pieces, RING receives per sender. When small messages do
 *   not leave, this rank takes no further steps, and goes on receiving. */

#include "exchange_parts.h"
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int tgx_isend(const void *buffer, MPI_Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request) {
#if MPI_VERSION >= 4
    if (count > INT_MAX) {
        return PMPI_Isend_c(buffer, count, type, to, tag, comm, request);
    }
#endif
    return count > INT_MAX ? MPI_ERR_COUNT : PMPI_Isend(buffer, (int)count, type, to, tag, comm, request);
}

int tgx_add(struct tgx *x, MPI_Request request, enum tgx_kind kind, int owner, int place) {
    int slot = x->used++;
    x->requests[slot] = request;
    x->slots[slot] = (struct tgx_slot){.kind = kind, .owner = owner, .place = place};
    return 0;
}

int tgx_event(struct tgx *x, const tidegate_bulk_event *event) {
    return tidegate_bulk_handle(x->decisions, event);
}

/* Sends a small message, if there is room for one: the caller has looked. */
int tgx_tell(struct tgx *x, int to, int tag, const unsigned char *bytes, int length) {
    int place = 0;
    while (x->tell_used[place]) {
        place++;
    }
    if (length > 0) {
        memcpy(x->tells[place], bytes, (size_t)length);
    }
    MPI_Request request;
    int error = PMPI_Isend(x->tells[place], length, MPI_BYTE, to, tag, x->comm, &request);
    if (error) {
        return error;
    }
    x->tell_used[place] = 1;
    x->tell_count++;
    return tgx_add(x, request, TGX_TELL, 0, place);
}

/* The next message of a piece that is under way. Long pieces are several messages, one after the other. */
static int send_message(struct tgx *x, int place) {
    struct tgx_outgoing *out = &x->outgoing[place];
    const struct tgx_block *block = &x->sends[out->piece.block];
    MPI_Request request;
    int error;
    if (block->is_plain) {
        uint64_t left = out->piece.offset + out->piece.bytes - out->next;
        uint64_t bytes = left < TGX_MESSAGE_MOST ? left : TGX_MESSAGE_MOST;
        error = tgx_isend((char *)block->buffer + out->next, (MPI_Count)bytes, MPI_BYTE, block->peer, x->data_tag,
                          x->comm, &request);
        out->next += bytes;
    } else {
        error = tgx_isend(block->buffer, block->count, block->type, block->peer, x->data_tag, x->comm, &request);
        out->next = out->piece.offset + out->piece.bytes;
    }
    if (error) {
        return error;
    }
    out->is_leaving = 1;
    return tgx_add(x, request, TGX_SEND, place, 0);
}

static int has_next(const struct tgx_outgoing *out) {
    return out->next < out->piece.offset + out->piece.bytes;
}

/* Sends to one receiver what may be sent now. Its pieces are received in the order in which they were started, so none
 * begins before all messages of those before it have. */
static int send_to(struct tgx *x, uint32_t to) {
    for (;;) {
        int first = -1;
        for (int place = 0; place < x->places; place++) {
            const struct tgx_outgoing *out = &x->outgoing[place];
            if (out->is_used && out->piece.to == to && has_next(out)
                && (first < 0 || out->number < x->outgoing[first].number)) {
                first = place;
            }
        }
        int error = first < 0 || x->outgoing[first].is_leaving ? 0 : send_message(x, first);
        if (error || first < 0 || has_next(&x->outgoing[first])) {
            return error;
        }
    }
}

static int start_send(struct tgx *x, const tidegate_bulk_piece *piece) {
    int place = 0;
    while (x->outgoing[place].is_used) {
        place++;
    }
    struct tgx_outgoing *out = &x->outgoing[place];
    *out = (struct tgx_outgoing){.piece = *piece, .next = piece->offset, .number = x->started++, .is_used = 1,
                                 .is_awaited = x->is_delivered};
    if (x->is_delivered) {
        MPI_Request request;
        int error = PMPI_Irecv(NULL, 0, MPI_BYTE, (int)piece->to, x->have_tag, x->comm, &request);
        if (error) {
            return error;
        }
        tgx_add(x, request, TGX_HEAR, place, 0);
    }
    return send_to(x, piece->to);
}

/* A message of a piece has left, or its receiver has the piece. */
static int advance_send(struct tgx *x, int place) {
    struct tgx_outgoing *out = &x->outgoing[place];
    if (has_next(out)) {
        return send_to(x, out->piece.to);
    }
    if (out->is_leaving || out->is_awaited) {
        return 0;
    }
    out->is_used = 0;
    tidegate_bulk_event event = {.kind = TIDEGATE_BULK_SENT, .piece = out->piece};
    return tgx_event(x, &event);
}

static int enter(struct tgx *x, int work_left) {
    MPI_Request request;
    x->mine_left = work_left;
    int error = PMPI_Iallreduce(&x->mine_left, &x->any_left, 1, MPI_INT, MPI_MAX, x->comm, &request);
    return error ? error : tgx_add(x, request, TGX_BARRIER, 0, 0);
}

/* Does what the decisions say until they wait. */
static int take_steps(struct tgx *x, int *moved) {
    while (x->tell_count < TGX_TELLS) {
        struct timespec time;
        clock_gettime(CLOCK_MONOTONIC, &time);
        tidegate_bulk_step_told step;
        uint64_t now = (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
        int error = tidegate_bulk_step(x->decisions, now, &step);
        if (error) {
            return error;
        }
        x->is_finished = step.kind == TIDEGATE_BULK_FINISHED;
        switch (step.kind) {
        case TIDEGATE_BULK_COPY:
            error = tgx_copy(x, &x->sends[step.piece.block]);
            if (error == TGX_SIZE || error == TGX_SELF) {
                x->wrong = x->wrong ? x->wrong : error;
                error = 0;
            }
            break;
        case TIDEGATE_BULK_SEND:
            error = start_send(x, &step.piece);
            break;
        case TIDEGATE_BULK_SIGNAL:
            error = tgx_tell(x, (int)step.peer, x->signal_tag, step.signal, TIDEGATE_BULK_SIGNAL_BYTES);
            break;
        case TIDEGATE_BULK_ENTER:
            error = enter(x, (int)step.work_left);
            break;
        default:
            return 0;
        }
        *moved = 1;
        if (error) {
            return error;
        }
    }
    return 0;
}

/* A request has completed, with an error or without. */
static int complete(struct tgx *x, struct tgx_slot slot, int error, const MPI_Status *status) {
    if (error && slot.kind != TGX_RECEIVE) {
        return error;
    }
    switch (slot.kind) {
    case TGX_RECEIVE:
        return tgx_received(x, slot.owner, slot.place, error, status);
    case TGX_SEND:
        x->outgoing[slot.owner].is_leaving = 0;
        return advance_send(x, slot.owner);
    case TGX_HEAR:
        x->outgoing[slot.owner].is_awaited = 0;
        return advance_send(x, slot.owner);
    case TGX_TELL:
        x->tell_used[slot.place] = 0;
        x->tell_count--;
        return 0;
    default: {
        tidegate_bulk_event event = {.kind = TIDEGATE_BULK_PASSED, .work_left = (uint32_t)x->any_left};
        return tgx_event(x, &event);
    }
    }
}

/* Looks which requests have completed. */
static int look(struct tgx *x, int *moved) {
    int count = 0;
    if (x->used == 0) {
        return 0;
    }
    int error = PMPI_Testsome(x->used, x->requests, &count, x->indices, x->statuses);
    if (error && error != MPI_ERR_IN_STATUS) {
        int class = MPI_SUCCESS;
        PMPI_Error_class(error, &class);
        if (class != MPI_ERR_IN_STATUS) {
            return error;
        }
    }
    for (int i = 0; i < count && count != MPI_UNDEFINED; i++) {
        *moved = 1;
        int own = error ? x->statuses[i].MPI_ERROR : MPI_SUCCESS;
        int wrong = complete(x, x->slots[x->indices[i]], own, &x->statuses[i]);
        if (wrong) {
            return wrong;
        }
    }
    if (count > 0 && count != MPI_UNDEFINED) {
        int kept = 0;
        for (int i = 0; i < x->used; i++) {
            if (x->requests[i] != MPI_REQUEST_NULL) {
                x->requests[kept] = x->requests[i];
                x->slots[kept++] = x->slots[i];
            }
        }
        x->used = kept;
    }
    return 0;
}

/* Takes signals in the order in which they came. */
static int hear(struct tgx *x, int *moved) {
    for (int heard = 0; heard < TGX_TELLS; heard++) {
        int is_there = 0;
        MPI_Status status;
        int error = PMPI_Iprobe(MPI_ANY_SOURCE, x->signal_tag, x->comm, &is_there, &status);
        if (error || !is_there) {
            return error;
        }
        tidegate_bulk_event event = {.kind = TIDEGATE_BULK_SIGNALLED, .peer = (uint32_t)status.MPI_SOURCE};
        error = PMPI_Recv(event.signal, TIDEGATE_BULK_SIGNAL_BYTES, MPI_BYTE, status.MPI_SOURCE, x->signal_tag, x->comm,
                          MPI_STATUS_IGNORE);
        if (!error) {
            error = tgx_event(x, &event);
        }
        if (error) {
            return error;
        }
        *moved = 1;
    }
    return 0;
}

int tgx_advance(struct tgx *x, int *done, int *moved) {
    *done = *moved = 0;
    int error = x->error;
    if (!error) {
        error = take_steps(x, moved);
    }
    if (!error) {
        error = look(x, moved);
    }
    if (!error && x->is_delivered && x->nodes > 1) {
        error = hear(x, moved);
    }
    if (!error) {
        error = tgx_confirm(x, moved);
    }
    *done = !error && !*moved && x->is_finished && x->used == 0 && x->left == 0 && x->owed == 0;
    x->is_over = *done;
    if (*done && x->wrong) {
        *done = 0;
        error = x->wrong;
    }
    x->error = error;
    return error;
}

int tgx_finish(struct tgx *x) {
    for (int idle = 0;;) {
        int done, moved, error = tgx_advance(x, &done, &moved);
        if (error || done) {
            return error;
        }
        idle = moved ? 0 : idle + 1;
        /* Others may need this processor to make what is waited for. */
        if (idle > 10) {
            sched_yield();
        }
    }
}
