/* What ranks agree on before any of them takes a call, per communicator: so it holds for communicators of processes
 * that were started separately, for Fortran's MPI_Init, and without one.
 *
 * - At the first call on a communicator an allreduce, on the user's own communicator, finds out whether all ranks have
 *   the same settings. If not, all calls on it are the MPI's own. Being inside the same collective call, all ranks are
 *   there.
 * - Data needs a private communicator, or receives of the user for any tag could take it. It is made at the first call
 *   that is taken, at most PRIVATE_MOST per process: an MPI has few thousands. It is not a duplicate, which would call
 *   the user's functions for copying attributes.
 * - The user's MPI_Comm_free frees the private one, by the attribute's function for deletion. In MPI_Finalize ranks
 *   would free theirs in orders of their own, so none is freed there. */

#include "alltoall.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Private communicators of a process at once. */
#define PRIVATE_MOST 256
/* From which length of a block on, where the user does not say. docs/bulk.md has the measurement. */
#define LEAST "1M"
#define COPIED ((uint64_t)64 << 20)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int has_key;
static int key = MPI_KEYVAL_INVALID;
static atomic_int is_ending, privates, world_rank = -1;
static atomic_ullong seen[TGA_KINDS], taken[TGA_KINDS];

void tga_count(enum tga_kind kind, int is_taken) {
    seen[kind]++;
    taken[kind] += (unsigned)is_taken;
}

static int forget(MPI_Comm comm, int keyval, void *value, void *extra) {
    struct tga_terms *terms = value;
    (void)comm, (void)keyval, (void)extra;
    int error = MPI_SUCCESS;
    if (terms->private != MPI_COMM_NULL && !is_ending && !terms->is_used_up) {
        error = PMPI_Comm_free(&terms->private);
        privates--;
    }
    free(terms);
    return error;
}

/* MPI_Finalize begins: it deletes the attributes of MPI_COMM_SELF before all else. */
static int end(MPI_Comm comm, int keyval, void *value, void *extra) {
    (void)comm, (void)keyval, (void)value, (void)extra;
    is_ending = 1;
    if (getenv("TIDEGATE_ALLTOALL_REPORT") && world_rank == 0 && seen[TGA_ALLTOALL] + seen[TGA_ALLTOALLV] > 0) {
        fprintf(stderr, "tidegate: rank 0: %llu of %llu MPI_Alltoall and %llu of %llu MPI_Alltoallv went by %s\n",
                (unsigned long long)taken[TGA_ALLTOALL], (unsigned long long)seen[TGA_ALLTOALL],
                (unsigned long long)taken[TGA_ALLTOALLV], (unsigned long long)seen[TGA_ALLTOALLV],
                getenv("TIDEGATE_ALLTOALL"));
    }
    return MPI_SUCCESS;
}

/* The key of the attribute. It is made once; calls of MPI in here are local. */
static int get_key(int *found) {
    int error = MPI_SUCCESS;
    pthread_mutex_lock(&lock);
    if (!has_key) {
        int is_world = 0, last;
        error = PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &key, NULL);
        has_key = error == MPI_SUCCESS;
        PMPI_Initialized(&is_world);
        if (has_key && is_world) {
            int rank = -1;
            PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
            world_rank = rank;
            error = PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end, &last, NULL);
            error = error ? error : PMPI_Comm_set_attr(MPI_COMM_SELF, last, NULL);
        }
    }
    *found = key;
    pthread_mutex_unlock(&lock);
    return error;
}

/* A number of the environment with k, M or G behind it, which `tidegate run` has checked. */
static uint64_t number(const char *name, const char *fallback) {
    const char *text = getenv(name);
    char *end_of_text = NULL;
    uint64_t value = strtoull(text && text[0] ? text : fallback, &end_of_text, 10);
    switch (*end_of_text) {
    case 'k': case 'K': return value << 10;
    case 'm': case 'M': return value << 20;
    case 'g': case 'G': return value << 30;
    default: return value;
    }
}

enum { TECHNIQUE, LEAST_BYTES, UNIT, WINDOW, ROUNDS, UNFIT, WORDS };

/* Fills in what this rank has been told. */
static void read_settings(struct tga_terms *terms, uint64_t words[WORDS]) {
    const char *name = getenv("TIDEGATE_ALLTOALL");
    terms->private = MPI_COMM_NULL;
    terms->technique = tidegate_bulk_technique(name ? name : "");
    terms->least = number("TIDEGATE_ALLTOALL_BYTES", LEAST);
    terms->least = terms->least == 0 ? 1 : terms->least;
    terms->copied = COPIED;
    tidegate_bulk_settings *settings = &terms->settings;
    int unfit = tidegate_bulk_defaults(settings) < 0 || terms->technique < 0;
    /* A round of booking has a barrier, so it has to carry more. */
    int books = terms->technique >= 0 && terms->technique == tidegate_bulk_technique("booking");
    settings->unit = number("TIDEGATE_ALLTOALL_UNIT", books ? "1M" : "64k");
    settings->window = (uint32_t)number("TIDEGATE_ALLTOALL_WINDOW", "8");
    settings->rounds_per_barrier = (uint32_t)number("TIDEGATE_ALLTOALL_ROUNDS", "1");
    settings->outstanding = 2;
    tidegate_bulk_exchange *probe = NULL;
    unfit = unfit || tidegate_bulk_new(terms->technique, 0, 1, NULL, 0, settings, &probe) < 0;
    tidegate_bulk_free(probe);
    words[TECHNIQUE] = (uint64_t)terms->technique;
    words[LEAST_BYTES] = terms->least;
    words[UNIT] = settings->unit;
    words[WINDOW] = settings->window;
    words[ROUNDS] = settings->rounds_per_barrier;
    words[UNFIT] = unfit ? 1 : 0;
}

int tga_terms_of(MPI_Comm comm, struct tga_terms **terms) {
    int keyval, is_there = 0;
    int error = get_key(&keyval);
    error = error ? error : PMPI_Comm_get_attr(comm, keyval, terms, &is_there);
    if (error || is_there) {
        return error;
    }
    struct tga_terms *made = calloc(1, sizeof *made);
    if (!made) {
        return MPI_ERR_NO_MEM;
    }
    uint64_t words[2 * WORDS];
    read_settings(made, words);
    for (int i = 0; i < WORDS; i++) {
        words[WORDS + i] = ~words[i];
    }
    error = PMPI_Allreduce(MPI_IN_PLACE, words, 2 * WORDS, MPI_UINT64_T, MPI_MAX, comm);
    made->is_on = words[UNFIT] == 0;
    for (int i = 0; i < WORDS; i++) {
        made->is_on = made->is_on && words[i] == ~words[WORDS + i];
    }
    error = error ? error : PMPI_Comm_set_attr(comm, keyval, made);
    if (error) {
        free(made);
        return error;
    }
    if (!made->is_on && world_rank == 0) {
        fprintf(stderr, "tidegate: ranks have different or unfit settings of --alltoall: calls on this communicator "
                        "are the MPI's own\n");
    }
    *terms = made;
    return MPI_SUCCESS;
}

/* Makes a communicator of the same ranks. What goes wrong is no matter of the user. */
static int copy(MPI_Comm comm, MPI_Comm *made) {
    MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
    MPI_Group group = MPI_GROUP_NULL;
    *made = MPI_COMM_NULL;
    int error = PMPI_Comm_get_errhandler(comm, &handler);
    error = error ? error : PMPI_Comm_group(comm, &group);
    if (error) {
        return error;
    }
    PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    error = PMPI_Comm_create(comm, group, made);
    PMPI_Comm_set_errhandler(comm, handler);
    PMPI_Errhandler_free(&handler);
    PMPI_Group_free(&group);
    return error ? error : PMPI_Comm_set_errhandler(*made, MPI_ERRORS_RETURN);
}

int tga_make_private(MPI_Comm comm, struct tga_terms *terms) {
    if (terms->is_refused || terms->private != MPI_COMM_NULL) {
        return MPI_SUCCESS;
    }
    uint64_t words[2] = {privates >= PRIVATE_MOST || is_ending, tgx_number()};
    int error = PMPI_Allreduce(MPI_IN_PLACE, words, 2, MPI_UINT64_T, MPI_MAX, comm);
    if (error || words[0]) {
        terms->is_refused = 1;
        return error;
    }
    terms->sequence = words[1];
    MPI_Comm made;
    int is_refused = copy(comm, &made) != MPI_SUCCESS;
    error = PMPI_Allreduce(MPI_IN_PLACE, &is_refused, 1, MPI_INT, MPI_MAX, comm);
    terms->is_refused = is_refused;
    if (!error && !is_refused) {
        terms->private = made;
        privates++;
    }
    return error;
}
