/* What bulk/alltoall.c and bulk/agreement.c share: large MPI_Alltoall and MPI_Alltoallv of unchanged programs. */

#ifndef TIDEGATE_ALLTOALL_H
#define TIDEGATE_ALLTOALL_H

#include "exchange.h"

/* What the ranks of one communicator have agreed on. It is cached there as an attribute. */
struct tga_terms {
    int is_on;       /* else every call is the MPI's own */
    int technique;
    uint64_t least;  /* bytes of a block, from which on a call is taken */
    uint64_t copied; /* bytes that may be copied for MPI_IN_PLACE */
    tidegate_bulk_settings settings;
    int is_refused;    /* no private communicator could be made */
    MPI_Comm private;  /* for data and signals; MPI_COMM_NULL before the first call that is taken */
    uint64_t sequence; /* of the exchanges on it */
    int is_used_up;    /* an exchange on it was broken off: it is not freed, for another would get what is left there */
};

/* What kinds of calls have been seen, for the report. */
enum tga_kind { TGA_ALLTOALL, TGA_ALLTOALLV, TGA_KINDS };

/* The terms of an intracommunicator of several ranks; collective where they are not cached. An error is one that the
 * MPI has raised already. */
int tga_terms_of(MPI_Comm comm, struct tga_terms **terms);

/* Makes the private communicator, if there is none yet; collective. After it `is_refused` is the same on all ranks. */
int tga_make_private(MPI_Comm comm, struct tga_terms *terms);

/* Counts a call, for the report at the end. */
void tga_count(enum tga_kind kind, int is_taken);

#endif
