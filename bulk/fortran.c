/* Fortran's calls in Open MPI, whose Fortran library calls PMPI_Alltoall: only here can they be taken. Where some ranks
 * call from Fortran and others from C, all have to come to the same decision. The Fortran libraries of MPICH and Intel
 * MPI call MPI_Alltoall, and need nothing. */

#include <mpi.h>

#ifdef OPEN_MPI

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stddef.h>
#include <string.h>

int tidegate_take_alltoall(const void *, int64_t, MPI_Datatype, void *, int64_t, MPI_Datatype, MPI_Comm, int *);
int tidegate_take_alltoallv(const void *, const void *, const void *, MPI_Datatype, void *, const void *, const void *,
                            MPI_Datatype, MPI_Comm, int, int *);

/* Whether an argument is one of the variables that stand for a constant; their addresses are what counts, and the names
 * depend on the compiler. There may be several of one name: an extension of Python, loaded privately before the MPI, has
 * its own, which a look in all objects does not find. So the address is asked for its name, too. */
static int is_one_of(const void *argument, const char *const names[4]) {
    Dl_info found;
    int has_name = dladdr(argument, &found) && found.dli_sname && found.dli_saddr == argument;
    for (int i = 0; i < 4; i++) {
        void *place = dlsym(RTLD_DEFAULT, names[i]);
        if ((place && place == argument) || (has_name && strcmp(found.dli_sname, names[i]) == 0)) {
            return 1;
        }
    }
    return 0;
}

static void *buffer_of(void *argument) {
    static const char *const in_place[] = {"mpi_fortran_in_place", "mpi_fortran_in_place_", "mpi_fortran_in_place__",
                                           "MPI_FORTRAN_IN_PLACE"};
    static const char *const bottom[] = {"mpi_fortran_bottom", "mpi_fortran_bottom_", "mpi_fortran_bottom__",
                                         "MPI_FORTRAN_BOTTOM"};
    if (is_one_of(argument, in_place)) {
        return MPI_IN_PLACE;
    }
    return is_one_of(argument, bottom) ? MPI_BOTTOM : argument;
}

static MPI_Datatype type_of(void *argument) {
    return MPI_Type_f2c(*(MPI_Fint *)argument);
}

/* Takes a call by its arguments, which are addresses: 8 of MPI_Alltoall, 10 of MPI_Alltoallv. Says whether it was
 * taken. */
int tidegate_take_fortran(void **a, int count) {
    int taken = 0, code;
    if (sizeof(MPI_Fint) != sizeof(int)) {
        return 0;
    }
    if (count == 8) {
        void *sent = buffer_of(a[0]);
        MPI_Datatype come = type_of(a[5]);
        code = tidegate_take_alltoall(sent, *(MPI_Fint *)a[1], sent == MPI_IN_PLACE ? come : type_of(a[2]),
                                      buffer_of(a[3]), *(MPI_Fint *)a[4], come, MPI_Comm_f2c(*(MPI_Fint *)a[6]),
                                      &taken);
    } else {
        void *sent = buffer_of(a[0]);
        MPI_Datatype come = type_of(a[7]);
        code = tidegate_take_alltoallv(sent, a[1], a[2], sent == MPI_IN_PLACE ? come : type_of(a[3]), buffer_of(a[4]),
                                       a[5], a[6], come, MPI_Comm_f2c(*(MPI_Fint *)a[8]), 0, &taken);
    }
    MPI_Fint *error = a[count - 1];
    /* In the module mpi_f08 the error is an optional argument. */
    if (taken && error) {
        *error = code;
    }
    return taken;
}

#else

/* A file needs something in it. */
typedef int tidegate_fortran_calls_c;

#endif
