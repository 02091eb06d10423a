// Which ranks share memory: how many of all are in the communicator of the node, and, for "window", a window that all of it share.
//
// usage: node [window]

#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int count, char **words) {
    int rank, ranks, here, local;
    MPI_Comm node;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_size(node, &here);
    MPI_Comm_rank(node, &local);
    if (count > 1 && !strcmp(words[1], "window")) {
        int *values, bytes, unit;
        MPI_Aint size;
        MPI_Win window;
        MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, here == 1 ? MPI_COMM_WORLD : node, &values, &window);
        MPI_Win_lock_all(0, window);
        *values = rank;
        MPI_Win_sync(window);
        MPI_Barrier(node);
        MPI_Win_sync(window);
        MPI_Win_shared_query(window, here - 1 - local, &size, &unit, &values);
        bytes = (int)size;
        // Ranks are placed host by host, so the rank at the other end of the node is as far from its end as this one.
        int expected = rank - local + here - 1 - local;
        if (bytes != sizeof(int) || *values != expected) {
            printf("rank %d found %d, not %d\n", rank, *values, expected);
            MPI_Abort(MPI_COMM_WORLD, 3);
        }
        MPI_Win_unlock_all(window);
        MPI_Win_free(&window);
    }
    // What goes to another rank is a message in any case.
    int sum = 0;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("node: %d of %d ranks share memory, sum %d\n", here, ranks, sum);
    MPI_Comm_free(&node);
    MPI_Finalize();
    return 0;
}
