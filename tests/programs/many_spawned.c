// A rank starts many more of the same program in one call, and exchanges messages with all of them while all are there.
//
// usage: many_spawned CHILDREN

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Longer than a window that is small: the last ones cannot be stored before they are received.
enum { MESSAGES = 8, INTS = 150 };

static void fill(int *ints, int child, int message) {
    for (int i = 0; i < INTS; i++)
        ints[i] = i * 7 + child * 131 + message * 10007;
}

static void check(const int *ints, int child, int message) {
    int wanted[INTS];
    fill(wanted, child, message);
    if (memcmp(ints, wanted, sizeof wanted) != 0) {
        fprintf(stderr, "many_spawned: message %d of child %d is wrong\n", message, child);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm others;
    MPI_Comm_get_parent(&others);
    int children = argc > 1 ? atoi(argv[1]) : 2, rank, ints[INTS], go = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (others != MPI_COMM_NULL) {
        MPI_Recv(&go, 1, MPI_INT, 0, 0, others, MPI_STATUS_IGNORE);
        for (int message = 0; message < MESSAGES; message++) {
            fill(ints, rank, message);
            MPI_Send(ints, INTS, MPI_INT, 0, 1, others);
        }
        // Until the parent has heard of all, nobody leaves.
        MPI_Recv(&go, 1, MPI_INT, 0, 2, others, MPI_STATUS_IGNORE);
    } else {
        MPI_Comm_spawn(argv[0], argv + 1, children, MPI_INFO_NULL, 0, MPI_COMM_SELF, &others, MPI_ERRCODES_IGNORE);
        for (int child = 0; child < children; child++)
            MPI_Send(&go, 1, MPI_INT, child, 0, others);
        // The last child first: the messages of the others come before they are received.
        for (int child = children - 1; child >= 0; child--) {
            for (int message = 0; message < MESSAGES; message++) {
                MPI_Recv(ints, INTS, MPI_INT, child, 1, others, MPI_STATUS_IGNORE);
                check(ints, child, message);
            }
        }
        for (int child = 0; child < children; child++)
            MPI_Send(&go, 1, MPI_INT, child, 2, others);
        printf("many_spawned: %d children, all as sent\n", children);
    }
    MPI_Comm_disconnect(&others);
    MPI_Finalize();
    return 0;
}
