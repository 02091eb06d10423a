/* Large MPI_Alltoall and MPI_Alltoallv of unchanged programs by a technique of bulk-transfer scheduling. bulk/preload.c
 * calls what is here, and where that does not take a call, the MPI's own function.
 *
 * A call is taken by all ranks or by none, whatever happens on one of them: what is decided follows from arguments that
 * are the same everywhere (MPI_Alltoall: the bytes of a block), else from an allreduce that each rank takes part in
 * (MPI_Alltoallv, MPI_IN_PLACE, techniques that cut blocks: all or none can be cut). */

#include "alltoall.h"
#include <stdlib.h>
#include <string.h>

#define OWN UINT64_MAX

/* What a call sends, or receives. */
struct side {
    char *buffer;
    MPI_Datatype type;
    enum { SAME, NARROW, WIDE } kind; /* one count for all, or arrays of int, or of MPI_Count and MPI_Aint */
    MPI_Count count;
    const void *counts, *places;
    MPI_Count size;
    MPI_Aint extent;
    int is_plain;
};

struct call {
    MPI_Comm comm;
    int rank, ranks, is_in_place;
    struct side sent, come;
    struct tga_terms *terms;
    struct tgx_block *sends, *receives;
    int send_count, receive_count;
    char *copy; /* of what is sent, for MPI_IN_PLACE */
};

static MPI_Count count_of(const struct side *side, int rank) {
    switch (side->kind) {
    case SAME: return side->count;
    case NARROW: return ((const int *)side->counts)[rank];
    default: return ((const MPI_Count *)side->counts)[rank];
    }
}

static char *place_of(const struct side *side, int rank) {
    MPI_Aint place;
    switch (side->kind) {
    case SAME: place = (MPI_Aint)(side->count * rank); break;
    case NARROW: place = ((const int *)side->places)[rank]; break;
    default: place = ((const MPI_Aint *)side->places)[rank]; break;
    }
    /* A sum of numbers: with MPI_BOTTOM the buffer is NULL and the type has absolute addresses. */
    return (char *)((uintptr_t)side->buffer + (uintptr_t)(place * side->extent));
}

/* Finds out what the type is like; says whether the side can be used. */
static int look_at(struct side *side) {
    int integers, addresses, types, combiner;
    MPI_Aint low;
    if (side->type == MPI_DATATYPE_NULL || PMPI_Type_size_x(side->type, &side->size) || side->size < 0
        || PMPI_Type_get_extent(side->type, &low, &side->extent)
        || PMPI_Type_get_envelope(side->type, &integers, &addresses, &types, &combiner)) {
        return 0;
    }
    side->is_plain = combiner == MPI_COMBINER_NAMED && side->size == side->extent && low == 0;
    return 1;
}

/* The longest block in bytes, or OWN if there is one that is not to be touched. */
static uint64_t longest(const struct call *call, const struct side *side) {
    uint64_t most = 0;
    for (int rank = 0; rank < call->ranks; rank++) {
        MPI_Count count = count_of(side, rank);
        uint64_t bytes;
        if (count < 0 || __builtin_mul_overflow((uint64_t)count, (uint64_t)side->size, &bytes) || bytes >= OWN / 4) {
            return OWN;
        }
        /* Without a buffer there is no way to cut: leave it to the MPI to complain, or to know better. */
        if (bytes > 0 && side->is_plain && !side->buffer) {
            return OWN;
        }
        most = bytes > most ? bytes : most;
    }
    return most;
}

static struct tgx_block block_of(const struct side *side, int rank, int may_cut) {
    MPI_Count count = count_of(side, rank);
    uint64_t bytes = (uint64_t)count * (uint64_t)side->size;
    return (struct tgx_block){.peer = rank, .is_plain = may_cut, .buffer = place_of(side, rank),
                              .count = may_cut ? (MPI_Count)bytes : count, .type = may_cut ? MPI_BYTE : side->type,
                              .bytes = bytes};
}

/* Copies what MPI_IN_PLACE sends: as bytes, or packed. Returns whether there was room. */
static int copy_sends(struct call *call) {
    const struct side *side = &call->come;
    uint64_t total = 0;
    for (int rank = 0; rank < call->ranks; rank++) {
        MPI_Count count = count_of(side, rank);
        uint64_t bytes = (uint64_t)count * (uint64_t)side->size;
        int packed = 0;
        if (rank == call->rank || bytes == 0) {
            continue;
        }
        /* The MPI is not asked for a size that no int can say: that would be an error, raised on the program's
         * communicator. */
        if (bytes > call->terms->copied
            || (!side->is_plain && PMPI_Pack_size((int)count, side->type, call->comm, &packed))) {
            return 0;
        }
        total += side->is_plain ? bytes : (uint64_t)packed;
    }
    if (total > call->terms->copied || !(call->copy = malloc(total + 1))) {
        return 0;
    }
    uint64_t used = 0;
    for (int i = 0; i < call->ranks; i++) {
        int rank = (call->rank + i) % call->ranks, packed = 0, position = 0;
        struct tgx_block *block = &call->sends[call->send_count];
        *block = block_of(side, rank, 0);
        if (rank == call->rank || block->bytes == 0) {
            continue;
        }
        if (side->is_plain) {
            memcpy(call->copy + used, block->buffer, block->bytes);
            position = (int)block->bytes;
        } else if (PMPI_Pack_size((int)block->count, side->type, call->comm, &packed)
                   || PMPI_Pack(block->buffer, (int)block->count, side->type, call->copy + used, packed, &position,
                                call->comm)) {
            return 0;
        } else {
            block->count = position;
            block->type = MPI_PACKED;
        }
        block->buffer = call->copy + used;
        used += (uint64_t)position;
        call->send_count++;
    }
    return 1;
}

/* Lists what is sent and received, in the order of a cyclic shift. */
static void list(struct call *call, int may_cut) {
    for (int i = 0; may_cut && i < call->send_count; i++) {
        struct tgx_block *copied = &call->sends[i];
        *copied = (struct tgx_block){.peer = copied->peer, .is_plain = 1, .buffer = copied->buffer,
                                     .count = (MPI_Count)copied->bytes, .type = MPI_BYTE, .bytes = copied->bytes};
    }
    for (int i = 0; i < call->ranks; i++) {
        int to = (call->rank + i) % call->ranks, from = (call->rank - i + call->ranks) % call->ranks;
        if (!call->is_in_place) {
            call->sends[call->send_count++] = block_of(&call->sent, to, may_cut);
        }
        if (!call->is_in_place || from != call->rank) {
            call->receives[call->receive_count++] = block_of(&call->come, from, may_cut);
        }
    }
}

/* Ends a call with an error. What the MPI says on the private communicator is raised on the user's. */
static int fail(struct call *call, int error) {
    if (error < 0) {
        int is_length = error == TGX_SIZE || error == TGX_SELF;
        error = error == TGX_NO_MEMORY ? MPI_ERR_NO_MEM : is_length ? MPI_ERR_TRUNCATE : MPI_ERR_INTERN;
    }
    return error ? PMPI_Comm_call_errhandler(call->comm, error), error : MPI_SUCCESS;
}

/* Whether all ranks can, and whether the blocks are long enough; `is_vector`: that is not known yet. All ranks come to
 * the same answer. */
static int agree(struct call *call, uint64_t most, int *may_cut, int *is_agreed) {
    int is_typed = !call->come.is_plain || (!call->is_in_place && !call->sent.is_plain);
    if (most != OWN && call->is_in_place && !copy_sends(call)) {
        most = OWN;
    }
    uint64_t words[2] = {most, (uint64_t)is_typed};
    int error = PMPI_Allreduce(MPI_IN_PLACE, words, 2, MPI_UINT64_T, MPI_MAX, call->comm);
    *is_agreed = !error && words[0] != OWN && words[0] >= call->terms->least;
    /* Blocks that are not cut are sent as the program describes them: what the MPI takes, it takes. */
    *may_cut = words[1] == 0 && tidegate_bulk_cuts(call->terms->technique) == 1;
    return error;
}

/* Sends and receives. */
static int carry_out(struct call *call, int may_cut) {
    struct tga_terms *terms = call->terms;
    tidegate_bulk_settings settings = terms->settings;
    if (!may_cut) {
        settings.unit = UINT64_MAX;
    }
    list(call, may_cut);
    struct tgx *exchange = NULL;
    int error = tgx_start(&exchange, terms->private, terms->sequence++, terms->technique, &settings, call->sends,
                          (size_t)call->send_count, call->receives, (size_t)call->receive_count);
    if (!error) {
        error = tgx_finish(exchange);
        if (tgx_end(exchange)) {
            call->copy = NULL; /* The MPI may still send from it. */
            terms->is_used_up = 1;
        }
    }
    return fail(call, error);
}

/* What is the same for both calls. Returns the code of the call if it is taken. */
static int take(struct call *call, enum tga_kind kind, int *taken) {
    int is_vector = kind == TGA_ALLTOALLV, may_cut = 0, is_agreed = 1;
    struct tga_terms *terms = call->terms;
    int is_usable = look_at(&call->come) && (call->is_in_place || look_at(&call->sent));
    uint64_t most = is_usable ? longest(call, &call->come) : OWN;
    uint64_t of_sent = is_usable && !call->is_in_place ? longest(call, &call->sent) : 0;
    most = of_sent > most ? of_sent : most;
    /* Buffers that overlap are an error that the MPI knows how to report. Types with gaps may interleave in one buffer
     * on this rank alone, which is none. */
    int is_plain = call->sent.is_plain && call->come.is_plain;
    if (!call->is_in_place && is_plain && call->sent.buffer == call->come.buffer && call->come.buffer) {
        most = OWN;
    }
    if (!is_vector && (most == OWN || most < terms->least)) {
        return MPI_SUCCESS;
    }
    call->sends = calloc(2 * (size_t)call->ranks, sizeof *call->sends);
    int asks = is_vector || call->is_in_place || tidegate_bulk_cuts(terms->technique) == 1;
    if (!call->sends && !asks) {
        *taken = 1;
        return fail(call, TGX_NO_MEMORY);
    }
    call->receives = call->sends ? call->sends + call->ranks : NULL;
    if (asks) {
        most = call->sends ? most : OWN;
        int error = agree(call, most, &may_cut, &is_agreed);
        if (error) {
            *taken = 1;
            return error;
        }
    }
    if (!is_agreed) {
        return MPI_SUCCESS;
    }
    int error = tga_make_private(call->comm, terms);
    *taken = error || !terms->is_refused;
    return error || terms->is_refused ? error : carry_out(call, may_cut);
}

/* Looks whether anybody may take a call on this communicator, then whether this call is taken. */
static int consider(struct call *call, enum tga_kind kind, int *taken) {
    int is_inter = 0;
    *taken = 0;
    if (call->comm == MPI_COMM_NULL || PMPI_Comm_test_inter(call->comm, &is_inter) || is_inter
        || PMPI_Comm_size(call->comm, &call->ranks) || call->ranks == 1
        || PMPI_Comm_rank(call->comm, &call->rank)) {
        return MPI_SUCCESS;
    }
    int error = tga_terms_of(call->comm, &call->terms);
    if (error) {
        *taken = 1;
        return error;
    }
    if (!call->terms->is_on || call->terms->is_refused) {
        return MPI_SUCCESS;
    }
    error = take(call, kind, taken);
    free(call->sends);
    free(call->copy);
    tga_count(kind, *taken);
    return error;
}

int tidegate_take_alltoall(const void *sent, int64_t send_count, MPI_Datatype send_type, void *come, int64_t come_count,
                           MPI_Datatype come_type, MPI_Comm comm, int *taken) {
    struct call call = {.comm = comm, .is_in_place = sent == MPI_IN_PLACE,
                        .sent = {.buffer = (char *)sent, .type = send_type, .count = send_count},
                        .come = {.buffer = come, .type = come_type, .count = come_count}};
    return consider(&call, TGA_ALLTOALL, taken);
}

int tidegate_take_alltoallv(const void *sent, const void *send_counts, const void *send_places, MPI_Datatype send_type,
                            void *come, const void *come_counts, const void *come_places, MPI_Datatype come_type,
                            MPI_Comm comm, int is_large, int *taken) {
    struct call call = {.comm = comm, .is_in_place = sent == MPI_IN_PLACE,
                        .sent = {.buffer = (char *)sent, .type = send_type, .kind = is_large ? WIDE : NARROW,
                                 .counts = send_counts, .places = send_places},
                        .come = {.buffer = come, .type = come_type, .kind = is_large ? WIDE : NARROW,
                                 .counts = come_counts, .places = come_places}};
    return consider(&call, TGA_ALLTOALLV, taken);
}

/* Which MPI this is for: bulk/preload.c compares. */
void *tidegate_alltoall_mpi(void) {
    return (void *)PMPI_Alltoall;
}
