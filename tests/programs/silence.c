// All ranks hear of each other; then each waits for its left neighbour, for ever. Whatever befalls the network or a rank after
// that, the others have to find out by themselves.
//
// usage: silence FILE [talking|computing]      FILE appears when all have heard of each other
//
// Without `talking` nobody sends anything more: nothing is under way, and only questions can bring anything to light. With
// it, messages go round until something happens. With `computing`, all but rank 0 call nothing any more. Whoever waits naps
// between its looks: this lasts for seconds, in which other programs want the processors.

#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { NAP_US = 500 };

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks, word = 0, is_talking = argc > 2 && strcmp(argv[2], "talking") == 0, is_computing = argc > 2 && !is_talking;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
    for (int round = 0; round < 3; round++)
        MPI_Barrier(MPI_COMM_WORLD);
    // Acknowledgements that nothing carries leave a little later, in calls to MPI.
    for (double end = MPI_Wtime() + 0.2; MPI_Wtime() < end;)
        MPI_Iprobe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &word, MPI_STATUS_IGNORE);
    if (rank == 0)
        fclose(fopen(argv[1], "w"));
    while (is_computing && rank > 0)
        sleep(1);
    while (is_talking)
        MPI_Sendrecv(&rank, 1, MPI_INT, right, 0, &word, 1, MPI_INT, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Request request;
    MPI_Irecv(&word, 1, MPI_INT, left, 0, MPI_COMM_WORLD, &request);
    for (int is_done = 0; !is_done; MPI_Test(&request, &is_done, MPI_STATUS_IGNORE))
        usleep(NAP_US);
    MPI_Finalize();
    return 0;
}
