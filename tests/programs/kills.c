// All ranks exchange messages that say from whom, to whom and in which round they are, until somebody from outside
// kills one of them. The others end with their first round that fails, if their MPI lets them. Whatever was received
// must be what was meant: "kills: WRONG" tells of others.
//
// usage: kills SECONDS FILE     ends by itself after so long; FILE appears when all ranks have begun

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { KINDS = 4, LARGEST = 200000, WORDS = LARGEST / sizeof(unsigned) };

static const int SIZES[KINDS] = {16, 1000, 5000, LARGEST};

/* What a message of one kind from one rank to another consists of in a round. */
static unsigned word(int from, int to, int round, int kind, size_t index) {
    return (unsigned)from << 28 ^ (unsigned)to << 24 ^ (unsigned)kind << 20 ^ (unsigned)round * 2654435761u ^ (unsigned)index * 40503u;
}

static void fill(unsigned *words, int from, int to, int round, int kind) {
    for (size_t index = 0; index < (size_t)SIZES[kind] / sizeof *words; index++)
        words[index] = word(from, to, round, kind, index);
}

static void check(const unsigned *words, const MPI_Status *status, int from, int to, int round, int kind) {
    int length = -1;
    MPI_Get_count(status, MPI_BYTE, &length);
    int wrong = status->MPI_SOURCE != from || status->MPI_TAG != kind || length != SIZES[kind];
    for (size_t index = 0; !wrong && index < (size_t)SIZES[kind] / sizeof *words; index++)
        wrong = words[index] != word(from, to, round, kind, index);
    if (wrong) {
        fprintf(stderr, "kills: WRONG: rank %d wanted kind %d of round %d from %d and got tag %d, %d bytes from %d, first word %#x\n", to, kind,
                round, from, status->MPI_TAG, length, status->MPI_SOURCE, words[0]);
        abort();
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    if (argc != 3)
        return 2;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Barrier(MPI_COMM_WORLD);
    int rank, ranks, outcome = MPI_SUCCESS;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int most = (ranks - 1) * KINDS;
    MPI_Request *requests = malloc((size_t)most * 2 * sizeof *requests);
    MPI_Status *statuses = malloc((size_t)most * 2 * sizeof *statuses);
    unsigned *out = malloc((size_t)ranks * KINDS * LARGEST), *in = malloc((size_t)ranks * KINDS * LARGEST);
    if (rank == 0) {
        fclose(fopen(argv[2], "w"));
    }
    double end = MPI_Wtime() + (atof(argv[1]));
    for (int round = 0; outcome == MPI_SUCCESS; round++) {
        // All ranks stop after the same round.
        int go_on = MPI_Wtime() < end;
        if (round % 16 == 0 && (MPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD) != MPI_SUCCESS || !go_on))
            break;
        int count = 0;
        for (int step = 1; step < ranks; step++) {
            int from = (rank - step + ranks) % ranks;
            for (int kind = 0; kind < KINDS; kind++)
                MPI_Irecv(in + (size_t)(from * KINDS + kind) * WORDS, SIZES[kind], MPI_BYTE, from, kind, MPI_COMM_WORLD, &requests[count++]);
        }
        for (int step = 1; step < ranks; step++) {
            int to = (rank + step) % ranks;
            for (int kind = 0; kind < KINDS; kind++) {
                unsigned *words = out + (size_t)(to * KINDS + kind) * WORDS;
                fill(words, rank, to, round, kind);
                if (MPI_Isend(words, SIZES[kind], MPI_BYTE, to, kind, MPI_COMM_WORLD, &requests[count]) != MPI_SUCCESS)
                    requests[count] = MPI_REQUEST_NULL;
                count++;
            }
        }
        outcome = MPI_Waitall(count, requests, statuses);
        for (int step = 1, at = 0; step < ranks; step++) {
            int from = (rank - step + ranks) % ranks;
            for (int kind = 0; kind < KINDS; kind++, at++)
                if (outcome == MPI_SUCCESS || (outcome == MPI_ERR_IN_STATUS && statuses[at].MPI_ERROR == MPI_SUCCESS))
                    check(in + (size_t)(from * KINDS + kind) * WORDS, &statuses[at], from, rank, round, kind);
        }
    }
    if (outcome != MPI_SUCCESS)
        return 3;
    MPI_Finalize();
    if (rank == 0)
        printf("kills: nobody was killed\n");
    return 0;
}
