// An Alltoallv in which one rank expects less than another sends it: that rank gets the error, the others come to their
// end, and what follows on the same communicator is right.
//
//     alltoall_errors ELEMENTS [everywhere]
//
// everywhere: MPI_ERRORS_RETURN on the communicators that MPICH and Intel MPI ask first, too.

#include "check.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, ranks, elements;

// One call, with values of its own. Returns the class of the error.
static int call(MPI_Comm comm, int number, int is_wrong, int is_in_place) {
    int *sent = malloc(sizeof(int) * (size_t)(elements * ranks)), *come = malloc(sizeof(int) * (size_t)(elements * ranks));
    int counts[64], expected[64], places[64], class = MPI_SUCCESS;
    for (int i = 0; i < ranks; i++) {
        counts[i] = elements;
        expected[i] = is_wrong && rank == 0 && i == 1 ? elements / 2 : elements;
        places[i] = i * elements;
    }
    for (int i = 0; i < elements * ranks; i++) {
        sent[i] = 1000 * number + rank;
        come[i] = is_in_place ? sent[i] : -1;
    }
    if (is_wrong && rank == ranks - 1) {
        usleep(300000); // Its block comes when rank 0 has its error.
    }
    int code = MPI_Alltoallv(is_in_place ? MPI_IN_PLACE : (void *)sent, counts, places, MPI_INT, come, expected, places, MPI_INT, comm);
    if (code) {
        MPI_Error_class(code, &class);
    }
    for (int i = 0; !code && i < elements * ranks; i++) {
        CHECK_SAYING(come[i] == 1000 * number + i / elements, "call %d: %d of rank %d\n", number, come[i], i / elements);
    }
    free(sent);
    free(come);
    return class;
}

int main(int argc, char **argv) {
    MPI_Comm comm;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    elements = argc > 1 ? atoi(argv[1]) : 100;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    if (argc > 2 && strcmp(argv[2], "everywhere") == 0) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    }
    for (int number = 0; number < 12; number++) {
        int is_wrong = number % 3 == 0, class = call(comm, number, is_wrong, !is_wrong && number >= 6);
        int wanted = is_wrong && rank == 0 ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
        CHECK_SAYING(class == wanted, "call %d: class %d\n", number, class);
    }
    MPI_Comm_free(&comm);
    if (rank == 0) {
        printf("all as told\n");
    }
    MPI_Finalize();
    return 0;
}
