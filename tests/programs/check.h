// What programs of the tests say when something is not as it should be, before they end the job.

#include <mpi.h>
#include <stdio.h>

#define CHECK_SAYING(what, ...)                                                                                        \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            int checked_rank;                                                                                          \
            MPI_Comm_rank(MPI_COMM_WORLD, &checked_rank);                                                              \
            fprintf(stderr, "rank %d, line %d: %s\n", checked_rank, __LINE__, #what);                                  \
            fprintf(stderr, __VA_ARGS__);                                                                              \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                              \
        }                                                                                                              \
    } while (0)
#define CHECK(what) CHECK_SAYING(what, "\n")
