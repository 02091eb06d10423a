// Alltoall and Alltoallv in many forms, with every element checked: sizes, derived types, MPI_IN_PLACE, communicators
// that come and go, intercommunicators, threads, C beside Fortran, small counts beside large ones. Whatever carries them
// out, the results are the same.
//
//     alltoall ELEMENTS [fortran [LIBRARY]] [spawn] [threads] [many]
//
// LIBRARY, with a / in front, has a variable MPI_IN_PLACE of Fortran (of Open MPI) that nobody else sees.

#define _GNU_SOURCE
#include "check.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static int world_rank, elements;

#define OK(call) CHECK((call) == MPI_SUCCESS)

// What `from` sends `to` in place `i`.
static int value(int from, int to, int i) {
    return from * 1000003 + to * 10007 + i * 31 + 7;
}

enum form { PLAIN, COLUMNS, IN_PLACE, IN_PLACE_COLUMNS, FORMS };

// Every second int of a row: 4 of 8 bytes are not to be touched.
static MPI_Datatype sparse(void) {
    MPI_Datatype vector, type;
    OK(MPI_Type_vector(1, 1, 2, MPI_INT, &vector));
    OK(MPI_Type_create_resized(vector, 0, 8, &type));
    OK(MPI_Type_free(&vector));
    OK(MPI_Type_commit(&type));
    return type;
}

static void check_all(const int *come, int rank, int ranks, int count, int stride) {
    for (int from = 0; from < ranks; from++) {
        for (int i = 0; i < count; i++) {
            int found = come[(from * count + i) * stride];
            CHECK_SAYING(found == value(from, rank, i), "place %d of rank %d of %d: %d\n", i, from, ranks, found);
            CHECK(stride == 1 || come[(from * count + i) * stride + 1] == -5);
        }
    }
}

typedef void fortran_alltoall(void *, int *, MPI_Fint *, void *, int *, MPI_Fint *, MPI_Fint *, MPI_Fint *);
static fortran_alltoall *fortran;
static void *in_place;

// One call as it may be written: in C, with large counts, in Fortran.
static void call_alltoall(void *sent, int count, MPI_Datatype type, void *come, int come_count, MPI_Datatype come_type, MPI_Comm comm,
                          int style) {
    if (style == 1 && fortran && (sent != MPI_IN_PLACE || in_place)) {
        MPI_Fint error = -1, a = MPI_Type_c2f(type), b = MPI_Type_c2f(come_type), c = MPI_Comm_c2f(comm);
        fortran(sent == MPI_IN_PLACE ? in_place : sent, &count, &a, come, &come_count, &b, &c, &error);
        CHECK(error == MPI_SUCCESS);
        return;
    }
#if MPI_VERSION >= 4
    if (style == 2) {
        OK(MPI_Alltoall_c(sent, count, type, come, come_count, come_type, comm));
        return;
    }
#endif
    OK(MPI_Alltoall(sent, count, type, come, come_count, come_type, comm));
}

static void alltoall(MPI_Comm comm, int count, enum form form, int style) {
    int rank, ranks;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    int is_sparse = form == IN_PLACE_COLUMNS || form == COLUMNS, stride = is_sparse ? 2 : 1;
    int *sent = malloc(sizeof(int) * (size_t)(ranks * count + 1)), *come = malloc(sizeof(int) * (size_t)(ranks * count * 2 + 1));
    MPI_Datatype type = is_sparse ? sparse() : MPI_INT;
    for (int i = 0; i < ranks * count * stride; i++) {
        come[i] = -5;
    }
    for (int to = 0; to < ranks; to++) {
        for (int i = 0; i < count; i++) {
            sent[to * count + i] = value(rank, to, i);
            if (form >= IN_PLACE) {
                come[(to * count + i) * stride] = value(rank, to, i);
            }
        }
    }
    if (form >= IN_PLACE) {
        call_alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, come, count, type, comm, style);
    } else {
        call_alltoall(sent, count, MPI_INT, come, count, type, comm, style);
    }
    check_all(come, rank, ranks, count, stride);
    for (int to = 0; to < ranks; to++) {
        CHECK_SAYING(count == 0 || sent[to * count] == value(rank, to, 0), "a buffer to be sent has changed\n");
    }
    if (is_sparse) {
        OK(MPI_Type_free(&type));
    }
    free(sent);
    free(come);
}

// How much `from` sends `to`: nothing, little or much. In place it is the same both ways.
static int amount(int from, int to, int most, int is_in_place) {
    int one = is_in_place && from > to ? to : from, other = is_in_place && from > to ? from : to;
    static const int parts[] = {0, 100, 3, 1, 50, 0, 77};
    return (int)((long)most * parts[(one * 5 + other * 3) % 7] / 100);
}

static void alltoallv(MPI_Comm comm, int most, enum form form) {
    int rank, ranks;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    int is_in_place = form >= IN_PLACE, is_sparse = form == IN_PLACE_COLUMNS || form == COLUMNS, stride = is_sparse ? 2 : 1;
    MPI_Datatype type = is_sparse ? sparse() : MPI_INT;
    int counts[4][64], total[2] = {0, 0};
    // The last rank's block comes first.
    for (int i = ranks - 1; i >= 0; i--) {
        counts[0][i] = amount(rank, i, most, is_in_place);
        counts[2][i] = amount(i, rank, most, is_in_place);
        counts[1][i] = total[0];
        counts[3][i] = total[1];
        total[0] += counts[0][i];
        total[1] += counts[2][i];
    }
    int *sent = malloc(sizeof(int) * (size_t)(total[0] + 1)), *come = malloc(sizeof(int) * (size_t)(total[1] * 2 + 1));
    for (int i = 0; i < total[1] * 2; i++) {
        come[i] = -5;
    }
    for (int to = 0; to < ranks; to++) {
        for (int i = 0; i < counts[0][to]; i++) {
            sent[counts[1][to] + i] = value(rank, to, i);
            if (is_in_place) {
                come[(counts[3][to] + i) * stride] = value(rank, to, i);
            }
        }
    }
    OK(MPI_Alltoallv(is_in_place ? MPI_IN_PLACE : (void *)sent, counts[0], counts[1], MPI_INT, come, counts[2], counts[3], type, comm));
    for (int from = 0; from < ranks; from++) {
        for (int i = 0; i < counts[2][from]; i++) {
            int place = (counts[3][from] + i) * stride;
            CHECK_SAYING(come[place] == value(from, rank, i), "place %d of rank %d: %d\n", i, from, come[place]);
            CHECK(stride == 1 || come[place + 1] == -5);
        }
    }
    if (is_sparse) {
        OK(MPI_Type_free(&type));
    }
    free(sent);
    free(come);
}

// One int of each 8 bytes, the first or the second.
static MPI_Datatype half(MPI_Aint at) {
    int one = 1;
    MPI_Datatype block, type;
    OK(MPI_Type_create_hindexed(1, &one, &at, MPI_INT, &block));
    OK(MPI_Type_create_resized(block, 0, 8, &type));
    OK(MPI_Type_free(&block));
    OK(MPI_Type_commit(&type));
    return type;
}

// On rank 0 alone what comes goes between what is sent, in the same buffer.
static void interleaved(MPI_Comm comm, int count) {
    int rank, ranks;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    MPI_Datatype first = half(0), second = half(4);
    int *sent = malloc(8 * (size_t)(ranks * count + 1)), *come = malloc(sizeof(int) * (size_t)(ranks * count + 1));
    for (int i = 0; i < ranks * count; i++) {
        sent[2 * i] = value(rank, i / count, i % count);
    }
    OK(rank == 0 ? MPI_Alltoall(sent, count, first, sent, count, second, comm)
                 : MPI_Alltoall(sent, count, first, come, count, MPI_INT, comm));
    for (int i = 0; i < ranks * count; i++) {
        CHECK((rank == 0 ? sent[2 * i + 1] : come[i]) == value(i / count, rank, i % count));
        CHECK(sent[2 * i] == value(rank, i / count, i % count));
    }
    OK(MPI_Type_free(&first));
    OK(MPI_Type_free(&second));
    free(sent);
    free(come);
}

// All forms on one communicator.
static void all_forms(MPI_Comm comm) {
    for (enum form form = 0; form < FORMS; form++) {
        static const int parts[] = {0, 1, 100};
        for (int part = 0; part < 3; part++) {
            int count = (int)((long)elements * parts[part] / 100);
            alltoall(comm, count, form, 0);
            alltoallv(comm, count, form);
        }
    }
    interleaved(comm, elements);
    // Ranks write the same call in different ways.
    for (int round = 0; round < 3; round++) {
        alltoall(comm, elements, PLAIN, (world_rank + round) % 3);
        alltoall(comm, elements, COLUMNS, (world_rank + round) % 3);
        alltoall(comm, elements, IN_PLACE, (world_rank + round) % 3);
    }
}

static int copies;
static int copy(MPI_Comm comm, int key, void *extra, void *value_in, void *value_out, int *flag) {
    (void)comm, (void)key, (void)extra, (void)value_in, (void)value_out;
    copies++;
    *flag = 0;
    return MPI_SUCCESS;
}

// Receives of the program for any tag stay its own, and its attributes are not copied behind its back.
static void beside_other_traffic(MPI_Comm comm) {
    int rank, ranks, come = -1, key, sent = 77, error_class = 0;
    MPI_Request requests[2];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    OK(MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, &key, NULL));
    OK(MPI_Comm_set_attr(comm, key, &key));
    OK(MPI_Irecv(&come, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &requests[0]));
    alltoall(comm, elements, PLAIN, 0);
    alltoallv(comm, elements, PLAIN);
    OK(MPI_Isend(&sent, 1, MPI_INT, (rank + 1) % ranks, 12345, comm, &requests[1]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    CHECK_SAYING(come == 77, "%d\n", come);
    CHECK(copies == 0);
    OK(MPI_Comm_delete_attr(comm, key));
    OK(MPI_Comm_free_keyval(&key));
    // An error is the program's to handle.
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    int code = MPI_Alltoall(&sent, -1, MPI_INT, &come, -1, MPI_INT, comm);
    CHECK(code != MPI_SUCCESS);
    OK(MPI_Error_class(code, &error_class));
    CHECK_SAYING(error_class == MPI_ERR_COUNT || error_class == MPI_ERR_ARG, "class %d\n", error_class);
}

// Communicators that come, and go in another order on each rank as far as MPI allows.
static void communicators(int many) {
    MPI_Comm half, copy_of_world, row, merged, inter;
    OK(MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, -world_rank, &half));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &copy_of_world));
    int ranks, sizes[1] = {0}, periods[1] = {1};
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    sizes[0] = ranks;
    OK(MPI_Cart_create(MPI_COMM_WORLD, 1, sizes, periods, 0, &row));
    alltoall(half, elements, PLAIN, 0);
    alltoall(row, elements, IN_PLACE, 0);
    alltoallv(copy_of_world, elements, COLUMNS);
    OK(MPI_Comm_free(&copy_of_world));
    OK(MPI_Comm_dup(row, &copy_of_world));
    OK(MPI_Comm_free(&row));
    beside_other_traffic(copy_of_world);
    OK(MPI_Comm_free(&half));
    OK(MPI_Comm_free(&copy_of_world));
    alltoall(MPI_COMM_SELF, elements, PLAIN, 0);
    if (ranks >= 2) {
        int far = -1, remote;
        OK(MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, world_rank, &half));
        OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - world_rank % 2, 5, &inter));
        OK(MPI_Comm_remote_size(inter, &remote));
        int *sent = malloc(sizeof(int) * (size_t)(elements * remote)), *come = malloc(sizeof(int) * (size_t)(elements * remote));
        for (int i = 0; i < elements * remote; i++) {
            sent[i] = world_rank;
        }
        OK(MPI_Alltoall(sent, elements, MPI_INT, come, elements, MPI_INT, inter));
        far = come[0];
        CHECK(far % 2 != world_rank % 2);
        free(sent);
        free(come);
        OK(MPI_Intercomm_merge(inter, world_rank % 2, &merged));
        alltoall(merged, elements, PLAIN, 0);
        OK(MPI_Comm_free(&merged));
        OK(MPI_Comm_free(&inter));
        OK(MPI_Comm_free(&half));
    }
    for (int i = 0; i < many; i++) {
        // Some stay: more than the library may have private ones of.
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &row));
        alltoall(row, elements, PLAIN, 0);
        if (i % 4 == 0) {
            OK(MPI_Comm_free(&row));
        }
    }
}

static void *in_thread(void *comm) {
    for (int i = 0; i < 3; i++) {
        alltoall(*(MPI_Comm *)comm, elements, PLAIN, 0);
        alltoallv(*(MPI_Comm *)comm, elements, IN_PLACE);
    }
    return NULL;
}

// Two threads on two communicators, one of which nobody has used before.
static void threads(void) {
    MPI_Comm comms[2];
    pthread_t other;
    for (int i = 0; i < 2; i++) {
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]));
    }
    CHECK(pthread_create(&other, NULL, in_thread, &comms[0]) == 0);
    in_thread(&comms[1]);
    CHECK(pthread_join(other, NULL) == 0);
    for (int i = 0; i < 2; i++) {
        OK(MPI_Comm_free(&comms[i]));
    }
}

// Processes that came later.
static void spawn(char *program) {
    MPI_Comm parent, merged;
    OK(MPI_Comm_get_parent(&parent));
    if (parent == MPI_COMM_NULL) {
        char number[32], *arguments[] = {number, "spawn", NULL};
        snprintf(number, sizeof number, "%d", elements);
        OK(MPI_Comm_spawn(program, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &parent, MPI_ERRCODES_IGNORE));
    }
    OK(MPI_Intercomm_merge(parent, 0, &merged));
    alltoall(merged, elements, PLAIN, 0);
    alltoallv(merged, elements, PLAIN);
    OK(MPI_Comm_free(&merged));
    OK(MPI_Comm_disconnect(&parent));
}

static int asked(int argc, char **argv, const char *word) {
    for (int i = 2; i < argc; i++) {
        if (strcmp(argv[i], word) == 0) {
            return 1;
        }
    }
    return 0;
}

int main(int argc, char **argv) {
    int level;
    CHECK(MPI_Init_thread(&argc, &argv, asked(argc, argv, "threads") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level) == MPI_SUCCESS);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    elements = argc > 1 ? atoi(argv[1]) : 5000;
    if (asked(argc, argv, "fortran")) {
        *(void **)&fortran = dlsym(RTLD_DEFAULT, "mpi_alltoall_");
        CHECK(fortran);
        for (int i = 2; i < argc && !in_place; i++) {
            void *library = argv[i][0] == '/' ? dlopen(argv[i], RTLD_NOW | RTLD_LOCAL) : NULL;
            in_place = library ? dlsym(library, "mpi_fortran_in_place_") : NULL;
            CHECK(argv[i][0] != '/' || (in_place && in_place != dlsym(RTLD_DEFAULT, "mpi_fortran_in_place_")));
        }
    }
    if (asked(argc, argv, "spawn")) {
        spawn(argv[0]);
        MPI_Finalize();
        return 0;
    }
    all_forms(MPI_COMM_WORLD);
    communicators(asked(argc, argv, "many") ? 400 : 3);
    if (asked(argc, argv, "threads") && level == MPI_THREAD_MULTIPLE) {
        threads();
    }
    if (world_rank == 0) {
        printf("all as sent\n");
    }
    MPI_Finalize();
    return 0;
}
