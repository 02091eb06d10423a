/* What bulk/exchange.c and bulk/receiving.c share. */

#ifndef TIDEGATE_EXCHANGE_PARTS_H
#define TIDEGATE_EXCHANGE_PARTS_H

#include "exchange.h"

/* The longest message. A longer piece is several. (Tests have shorter ones.) */
#ifndef TGX_MESSAGE_MOST
#define TGX_MESSAGE_MOST ((uint64_t)1 << 30)
#endif
/* Signals and confirmations that are on their way at once. */
#define TGX_TELLS 64
/* Receives that are posted for one sender at once. */
#define TGX_RING 4

/* Tags carry the number of the exchange: a fast neighbour may already be in the next one, and what an exchange that has
 * failed leaves behind is none of a later one's. Every MPI has tags up to 32767. */
enum {
    TGX_TAGS = 8192,
    TGX_TAG_DATA = 1,
    TGX_TAG_HAVE = TGX_TAG_DATA + TGX_TAGS,
    TGX_TAG_SIGNAL = TGX_TAG_HAVE + TGX_TAGS
};

enum tgx_kind {
    TGX_RECEIVE, /* a message of a piece: owner is its sender's place, place is in its ring */
    TGX_SEND,    /* a message of a piece: owner is the piece's place */
    TGX_HEAR,    /* the receiver of a piece has it: owner is the piece's place */
    TGX_TELL,    /* a small message: place is in `tells` */
    TGX_BARRIER
};

struct tgx_slot {
    enum tgx_kind kind;
    int owner, place;
};

/* A piece that leaves. */
struct tgx_outgoing {
    tidegate_bulk_piece piece;
    uint64_t next;   /* where its next message begins, in its block */
    uint64_t number; /* of all pieces, in the order in which they were started */
    int is_used;
    int is_leaving; /* a message of it has not completed */
    int is_awaited; /* its receiver has not said yet that it has it */
};

/* What comes from one sender: blocks `block` to `end`, of which the first has been asked for up to `offset`. */
struct tgx_incoming {
    int peer;
    size_t block, end;
    uint64_t offset;
    int first, posted; /* the ring: receives are completed in their order */
    int owed;          /* pieces that have come and are not confirmed */
    struct {
        uint64_t bytes;
        int is_last, is_done, is_plain; /* is_last: a piece ends with it */
        int is_whole;                   /* it is all of a block: whatever its length, the next is in its place */
    } ring[TGX_RING];
};

struct tgx {
    MPI_Comm comm;
    int me, nodes, is_delivered, is_finished, is_over, error;
    int wrong; /* the first error that the exchange goes on in spite of */
    int data_tag, have_tag, signal_tag;
    uint64_t unit; /* pieces of received blocks have this length, but for the last of a block */
    tidegate_bulk_exchange *decisions;
    struct tgx_block *sends, *receives; /* the latter by senders */
    struct tgx_incoming *incoming;
    size_t incoming_count, self, self_end; /* `self` to `self_end`: the receives from oneself */
    struct tgx_outgoing *outgoing;
    int places;       /* for them */
    uint64_t started; /* pieces */
    uint64_t left;  /* messages that are to be received */
    uint64_t owed;  /* pieces that are to be confirmed */
    int mine_left, any_left;
    int used;       /* requests and their slots, without gaps */
    MPI_Request *requests;
    struct tgx_slot *slots;
    int *indices;
    MPI_Status *statuses;
    unsigned char tells[TGX_TELLS][TIDEGATE_BULK_SIGNAL_BYTES];
    char tell_used[TGX_TELLS];
    int tell_count;
};

int tgx_add(struct tgx *exchange, MPI_Request request, enum tgx_kind kind, int owner, int place);
int tgx_event(struct tgx *exchange, const tidegate_bulk_event *event);
int tgx_tell(struct tgx *exchange, int to, int tag, const unsigned char *bytes, int length);
int tgx_received(struct tgx *exchange, int incoming, int place, int error, const MPI_Status *status);
int tgx_confirm(struct tgx *exchange, int *moved);
int tgx_copy(struct tgx *exchange, const struct tgx_block *block);

#endif
