// Ranks start more of the same program, on all hosts, and exchange messages with them, of which every byte is checked.
//
// usage: spawns CHILDREN [name of a host for each child, as MPI_Info wants it]
//
// Rank 0 of the parents prints the hosts on which children run.

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 300000, NAME = MPI_MAX_PROCESSOR_NAME };

static const int LENGTHS[] = {0, 8, 1000, 5000, LONGEST};

static void fill(unsigned char *bytes, int length, int from, int to) {
    for (int i = 0; i < length; i++)
        bytes[i] = (unsigned char)(i * 7 + (i >> 8) + from * 31 + to * 101);
}

// Everybody sends to everybody, messages of all lengths.
static void exchange(MPI_Comm all) {
    int rank, ranks;
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &ranks);
    unsigned char *out = malloc(LONGEST), *in = malloc(LONGEST), *wanted = malloc(LONGEST);
    for (int step = 1; step < ranks; step++) {
        int to = (rank + step) % ranks, from = (rank - step + ranks) % ranks;
        for (size_t kind = 0; kind < sizeof LENGTHS / sizeof *LENGTHS; kind++) {
            int length = LENGTHS[kind], got;
            MPI_Status status;
            fill(out, length, rank, to);
            fill(wanted, length, from, rank);
            MPI_Sendrecv(out, length, MPI_BYTE, to, 1, in, LONGEST, MPI_BYTE, from, 1, all, &status);
            MPI_Get_count(&status, MPI_BYTE, &got);
            if (got != length || memcmp(in, wanted, (size_t)length) != 0) {
                fprintf(stderr, "spawns: rank %d of all: %d bytes from %d are wrong\n", rank, length, from);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
        }
    }
    free(out), free(in), free(wanted);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm others, all;
    MPI_Comm_get_parent(&others);
    int is_child = others != MPI_COMM_NULL, children = argc > 1 ? atoi(argv[1]) : 2, rank, length;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!is_child) {
        MPI_Info info;
        MPI_Info_create(&info);
        if (argc > 3)
            MPI_Info_set(info, argv[2], argv[3]);
        MPI_Comm_spawn(argv[0], argv + 1, children, info, 0, MPI_COMM_WORLD, &others, MPI_ERRCODES_IGNORE);
        MPI_Info_free(&info);
    }
    MPI_Intercomm_merge(others, is_child, &all);
    exchange(all);
    // Children are behind the parents.
    int everybody;
    MPI_Comm_size(all, &everybody);
    char name[NAME] = {0}, *names = calloc((size_t)everybody, NAME);
    MPI_Get_processor_name(name, &length);
    MPI_Gather(name, NAME, MPI_CHAR, names, NAME, MPI_CHAR, 0, all);
    if (!is_child && rank == 0) {
        printf("spawns: %d children, all as sent, on", children);
        for (int child = everybody - children; child < everybody; child++)
            printf(" %s", names + (size_t)child * NAME);
        printf("\n");
    }
    free(names);
    MPI_Comm_free(&all);
    MPI_Comm_disconnect(&others);
    MPI_Finalize();
    return 0;
}
