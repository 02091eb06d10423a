/* The library that `tidegate run --alltoall` preloads into every process of a job. It knows nothing of MPI, so it does
 * no harm in shells and launchers: the first MPI_Alltoall or MPI_Alltoallv, from C or Fortran, makes it load the
 * library beside it (bulk/alltoall.c), which is built for one MPI. A call that this one does not take goes on to the
 * MPI's own.
 *
 * Handles are passed on as they came: in MPICH an int, in Open MPI a pointer. On x86-64 and aarch64 both travel in one
 * register or slot of 8 bytes, so a `void *` stands for either. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *handle;
typedef int take_alltoall(const void *, int64_t, handle, void *, int64_t, handle, handle, int *);
typedef int take_alltoallv(const void *, const void *, const void *, handle, void *, const void *, const void *, handle,
                           handle, int, int *);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static take_alltoall *alltoall;
static take_alltoallv *alltoallv;
/* Whether the MPI's Fortran calls do not go through its C calls. */
static int converts;
static int (*fortran)(void **, int);

/* Present in every process that this library is preloaded into: the provider looks for it. */
int tidegate_alltoall_preloaded = 1;

struct names {
    char **list;
    size_t count;
};

/* Notes the name of a loaded object. Nothing is opened in here: another thread that opens something would wait for us,
 * and we for it. */
static int note(struct dl_phdr_info *object, size_t size, void *data) {
    struct names *names = data;
    (void)size;
    char **list = realloc(names->list, (names->count + 1) * sizeof *list);
    if (list) {
        names->list = list;
        list[names->count] = strdup(object->dlpi_name ? object->dlpi_name : "");
        names->count += list[names->count] != NULL;
    }
    return 0;
}

/* A function of one loaded object, unless it is this library's. */
static void *look_in(const char *object, const char *name) {
    void *opened = object[0] ? dlopen(object, RTLD_NOLOAD | RTLD_LAZY) : NULL;
    if (!opened) {
        return NULL;
    }
    void *found = dlsym(opened, name);
    Dl_info place, own;
    int is_known = found && dladdr(found, &place) && dladdr((void *)look_in, &own);
    dlclose(opened);
    return is_known && place.dli_fbase != own.dli_fbase ? found : NULL;
}

/* The function of this name that would have been called without this library. Python loads its MPI privately, where a
 * look in all objects does not see it. */
static void *next(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    struct names names = {0};
    if (!found) {
        dl_iterate_phdr(note, &names);
    }
    for (size_t i = 0; i < names.count; i++) {
        found = found ? found : look_in(names.list[i], name);
        free(names.list[i]);
    }
    free(names.list);
    return found;
}

static void fail(const char *what, const char *detail) {
    fprintf(stderr, "tidegate: %s: %s; run without --alltoall, or remove its folder to have it made anew\n", what,
            detail ? detail : "unknown reason");
    abort();
}

/* A rank that went its own way would keep the others waiting, so all that is wrong here ends the job. */
static void load(void) {
    Dl_info own, mpi;
    char path[PATH_MAX];
    void *plain = next("PMPI_Alltoall");
    /* The standard ABI of MPI 5 has other handles: such a job is left alone. */
    if (!plain || !dladdr(plain, &mpi) || strstr(mpi.dli_fname, "libmpi_abi") || !dladdr((void *)load, &own)) {
        return;
    }
    const char *slash = strrchr(own.dli_fname, '/');
    int folder = slash ? (int)(slash - own.dli_fname) + 1 : 0;
    snprintf(path, sizeof path, "%.*slibtidegate-alltoall.so", folder, own.dli_fname);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fail("the library for --alltoall cannot be loaded", dlerror());
    }
    void *(*of_library)(void) = (void *(*)(void))dlsym(library, "tidegate_alltoall_mpi");
    if (!of_library || of_library() != plain) {
        fail(path, "it is for another MPI than that of this program");
    }
    fortran = (int (*)(void **, int))dlsym(library, "tidegate_take_fortran");
    converts = fortran != NULL;
    alltoall = (take_alltoall *)dlsym(library, "tidegate_take_alltoall");
    alltoallv = (take_alltoallv *)dlsym(library, "tidegate_take_alltoallv");
}

/* Defines the C calls of one kind of counts. */
#define CALLS(SUFFIX, COUNT, DISPLACEMENT, IS_LARGE)                                                                   \
    int MPI_Alltoall##SUFFIX(const void *sent, COUNT send_count, handle send_type, void *come, COUNT come_count,       \
                             handle come_type, handle comm) {                                                          \
        typedef int call(const void *, COUNT, handle, void *, COUNT, handle, handle);                                  \
        static call *own;                                                                                              \
        pthread_once(&once, load);                                                                                     \
        int taken = 0, code = 0;                                                                                       \
        if (alltoall) {                                                                                                \
            code = alltoall(sent, send_count, send_type, come, come_count, come_type, comm, &taken);                   \
        }                                                                                                              \
        own = own ? own : (call *)next("MPI_Alltoall" #SUFFIX);                                                        \
        return taken ? code : own(sent, send_count, send_type, come, come_count, come_type, comm);                     \
    }                                                                                                                  \
    int MPI_Alltoallv##SUFFIX(const void *sent, const COUNT *send_counts, const DISPLACEMENT *send_places,             \
                              handle send_type, void *come, const COUNT *come_counts, const DISPLACEMENT *come_places, \
                              handle come_type, handle comm) {                                                         \
        typedef int call(const void *, const COUNT *, const DISPLACEMENT *, handle, void *, const COUNT *,             \
                         const DISPLACEMENT *, handle, handle);                                                        \
        static call *own;                                                                                              \
        pthread_once(&once, load);                                                                                     \
        int taken = 0, code = 0;                                                                                       \
        if (alltoallv) {                                                                                               \
            code = alltoallv(sent, send_counts, send_places, send_type, come, come_counts, come_places, come_type,     \
                             comm, IS_LARGE, &taken);                                                                  \
        }                                                                                                              \
        own = own ? own : (call *)next("MPI_Alltoallv" #SUFFIX);                                                       \
        return taken ? code                                                                                            \
                     : own(sent, send_counts, send_places, send_type, come, come_counts, come_places, come_type, comm);\
    }

CALLS(, int, int, 0)
/* A program that finds these takes them for its MPI's: bulk/large_counts.c says whether that has them. */
#ifdef TIDEGATE_LARGE_COUNTS
CALLS(_c, int64_t, intptr_t, 1)
#endif

/* Fortran's calls by the names that compilers make of them, all arguments by address. Where the MPI's own go through C
 * (MPICH, Intel MPI) they are passed on and come by again. */
typedef void fortran8(void *, void *, void *, void *, void *, void *, void *, void *);
typedef void fortran10(void *, void *, void *, void *, void *, void *, void *, void *, void *, void *);

#define FORTRAN_ALLTOALL(NAME)                                                                                         \
    void NAME(void *a, void *b, void *c, void *d, void *e, void *f, void *g, void *h) {                                \
        static fortran8 *own;                                                                                          \
        void *arguments[] = {a, b, c, d, e, f, g, h};                                                                  \
        pthread_once(&once, load);                                                                                     \
        if (!converts || !fortran(arguments, 8)) {                                                                     \
            own = own ? own : (fortran8 *)next(#NAME);                                                                 \
            own(a, b, c, d, e, f, g, h);                                                                               \
        }                                                                                                              \
    }
#define FORTRAN_ALLTOALLV(NAME)                                                                                        \
    void NAME(void *a, void *b, void *c, void *d, void *e, void *f, void *g, void *h, void *i, void *j) {              \
        static fortran10 *own;                                                                                         \
        void *arguments[] = {a, b, c, d, e, f, g, h, i, j};                                                            \
        pthread_once(&once, load);                                                                                     \
        if (!converts || !fortran(arguments, 10)) {                                                                    \
            own = own ? own : (fortran10 *)next(#NAME);                                                                \
            own(a, b, c, d, e, f, g, h, i, j);                                                                         \
        }                                                                                                              \
    }

FORTRAN_ALLTOALL(mpi_alltoall)
FORTRAN_ALLTOALL(mpi_alltoall_)
FORTRAN_ALLTOALL(mpi_alltoall__)
FORTRAN_ALLTOALL(MPI_ALLTOALL)
FORTRAN_ALLTOALL(ompi_alltoall_f)
FORTRAN_ALLTOALLV(mpi_alltoallv)
FORTRAN_ALLTOALLV(mpi_alltoallv_)
FORTRAN_ALLTOALLV(mpi_alltoallv__)
FORTRAN_ALLTOALLV(MPI_ALLTOALLV)
FORTRAN_ALLTOALLV(ompi_alltoallv_f)
