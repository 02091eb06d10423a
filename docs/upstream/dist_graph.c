/* Does MPI_Dist_graph_create return the graph that was described? MPICH's sometimes has edges that no rank gave, or
 * ends with MPI_ERR_TRUNCATE.
 *
 *     mpicc -O1 -g -Wall -o dist_graph dist_graph.c
 *     mpiexec -n 3 ./dist_graph [CALLS [SECONDS]]
 *
 * Each rank describes edges from itself to every rank, also to itself: rank 0 one to each, rank 1 two to each, and so
 * on. The messages that MPI_Dist_graph_create sends to a rank then have a different length from each sender. Every rank
 * looks at the edges that come to it. It ends after so many calls (1000) or seconds (20), and says how many were wrong. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, ranks;

/* Whether the graph has the edges to this rank that all ranks have given. Says the first fault. */
static int is_right(MPI_Comm graph, int call, int *is_said) {
    int in, out, is_weighted, right = 1;
    MPI_Dist_graph_neighbors_count(graph, &in, &out, &is_weighted);
    int *sources = calloc(in + 1, sizeof *sources), *targets = calloc(out + 1, sizeof *targets), *times = calloc(ranks, sizeof *times);
    MPI_Dist_graph_neighbors(graph, in, sources, MPI_UNWEIGHTED, out, targets, MPI_UNWEIGHTED);
    for (int n = 0; n < in; n++)
        if (sources[n] < 0 || sources[n] >= ranks)
            right = 0;
        else
            times[sources[n]]++;
    for (int n = 0; n < ranks; n++)
        right &= times[n] == n + 1;
    if (!right && !*is_said) {
        printf("call %d: rank %d has %d incoming edges instead of %d; their sources are", call, rank, in, ranks * (ranks + 1) / 2);
        for (int n = 0; n < in; n++)
            printf(" %d", sources[n]);
        printf("\n");
        fflush(stdout);
        *is_said = 1;
    }
    free(sources), free(targets), free(times);
    return right;
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int calls = count > 1 ? atoi(words[1]) : 1000, wrong = 0, is_said = 0, call = 0;
    double end = MPI_Wtime() + (count > 2 ? atof(words[2]) : 20);
    int degree = ranks * (rank + 1), *targets = calloc(degree, sizeof *targets);
    for (int n = 0; n < degree; n++)
        targets[n] = n % ranks;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int is_over = 0; !is_over; call++) {
        MPI_Comm graph;
        int code = MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &degree, targets, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
        if (code != MPI_SUCCESS) {
            char text[MPI_MAX_ERROR_STRING];
            int class, length;
            MPI_Error_class(code, &class);
            MPI_Error_string(class, text, &length);
            printf("call %d: rank %d got an error: %s\n", call, rank, text);
            fflush(stdout);
            MPI_Abort(MPI_COMM_WORLD, 3); /* the others may wait for this rank */
        }
        int mine = is_right(graph, call, &is_said) ? 0 : 1, any;
        MPI_Comm_free(&graph);
        MPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        wrong += any;
        is_over = rank == 0 && (call + 1 >= calls || MPI_Wtime() > end);
        MPI_Bcast(&is_over, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("%d of %d graphs are wrong\n", wrong, call);
    free(targets);
    MPI_Finalize();
    return 0;
}
