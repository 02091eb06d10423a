/* One exchange over MPI's point-to-point calls: what bulk/tidegate_bulk.c and bulk/alltoall.c are made of. */

#ifndef TIDEGATE_EXCHANGE_H
#define TIDEGATE_EXCHANGE_H

#include "tidegate_decisions.h"
#include <mpi.h>

/* What one rank sends to another, or receives from it. Blocks of 0 bytes are left out on both sides. */
struct tgx_block {
    int peer;
    int is_plain;     /* bytes without gaps, which may be cut; else it travels as a whole, in one message */
    void *buffer;
    MPI_Count count;  /* elements of `type`; of plain blocks the same number as `bytes` */
    MPI_Datatype type;
    uint64_t bytes;
};

/* What can go wrong, beside the error codes of MPI, which are positive, and those of tidegate_bulk_error, -1 to -6. */
enum { TGX_NO_MEMORY = -101, TGX_SIZE = -102, TGX_SELF = -103, TGX_OUTSTANDING = -104 };

/* Pieces under way at once of one rank, at most. */
#define TGX_OUTSTANDING_MOST 1024

struct tgx;

/* A number that no exchange of this process has had. Ranks that make a communicator for exchanges begin with the greatest
 * of theirs: an MPI may give it the name of one that was freed, and then takes what was left there for its own. */
uint64_t tgx_number(void);

/* Begins this rank's part. All ranks of `comm` begin the same number of exchanges on it, in the same order, with the
 * same technique and settings, of which this one is number `sequence`. Nobody else may use `comm` meanwhile. The lists
 * are copied, the buffers are used until the end. Receives are in the order in which their senders send. */
int tgx_start(struct tgx **exchange, MPI_Comm comm, uint64_t sequence, int technique,
              const tidegate_bulk_settings *settings, const struct tgx_block *sends, size_t send_count,
              const struct tgx_block *receives, size_t receive_count);

/* Does what can be done now. `done`: all is sent and received. `moved`: something has happened. */
int tgx_advance(struct tgx *exchange, int *done, int *moved);

/* The same until all is sent and received. */
int tgx_finish(struct tgx *exchange);

/* Frees it. Says whether it was broken off by an error: then what is under way may go on using its buffers, and messages
 * that nobody takes may come. */
int tgx_end(struct tgx *exchange);

/* Point-to-point calls with large counts, where the MPI has them. */
int tgx_isend(const void *buffer, MPI_Count count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request *request);
int tgx_irecv(void *buffer, MPI_Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request *request);

#endif
