// Long messages between neighbours, both ways at once, with every byte checked: of lengths from 64 KiB to 8 MiB, at odd
// addresses, and in pieces that lie apart.
//
// usage: long ROUNDS [killed]
//
// With `killed`, rank 1 kills itself in the middle of a long message from it, after the given rounds.

#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST = 8 << 20, SHIFTS = 8, HOLE = 129 };

static int rank, ranks;
static unsigned char *out, *in;

static void fill(unsigned char *bytes, int length, unsigned seed) {
    for (int i = 0; i < length; i++)
        bytes[i] = (unsigned char)(i * 31u + (unsigned)(i >> 8) * 7u + seed);
}

static void fail(const char *what, int length, int at) {
    fprintf(stderr, "long: rank %d: a message of %d bytes: %s at byte %d\n", rank, length, what, at);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static unsigned seed_of(int source, int round) { return (unsigned)source * 101u + (unsigned)round * 17u; }

// One message to the right and one from the left, each at an odd address.
static void contiguous(int length, int round) {
    int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
    unsigned char *from = out + 1 + round % SHIFTS, *to = in + 3 + round % SHIFTS;
    fill(from, length, seed_of(rank, round));
    memset(to - 1, 0x5a, (size_t)length + 2);
    MPI_Sendrecv(from, length, MPI_BYTE, right, 1, to, length, MPI_BYTE, left, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    unsigned char *wanted = malloc((size_t)length);
    fill(wanted, length, seed_of(left, round));
    for (int i = 0; i < length; i++)
        if (to[i] != wanted[i])
            fail("wrong contents", length, i);
    if (to[-1] != 0x5a || to[length] != 0x5a)
        fail("written beside the message", length, length);
    free(wanted);
}

// The same in blocks with holes between them.
static void scattered(int blocks, int block, int round) {
    int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks, step = block + HOLE, room = blocks * step;
    MPI_Datatype type;
    MPI_Type_vector(blocks, block, step, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    fill(out, room, seed_of(rank, round));
    memset(in, 0x5a, (size_t)room);
    MPI_Sendrecv(out, 1, type, right, 2, in, 1, type, left, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    unsigned char *wanted = malloc((size_t)room);
    fill(wanted, room, seed_of(left, round));
    for (int i = 0; i < room; i++)
        if (in[i] != (i % step < block ? wanted[i] : 0x5a))
            fail(i % step < block ? "wrong contents" : "written between the blocks", blocks * block, i);
    free(wanted);
    MPI_Type_free(&type);
}

// Everybody has several messages from the left under way, of which the first are received last.
static void crowd(int round) {
    enum { MANY = 12, LENGTH = 100003 };
    int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
    MPI_Request requests[2 * MANY];
    for (int i = 0; i < MANY; i++) {
        fill(out + i * LENGTH, LENGTH, seed_of(rank, round + i));
        MPI_Isend(out + i * LENGTH, LENGTH, MPI_BYTE, right, 100 + i, MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = MANY - 1; i >= 0; i--)
        MPI_Irecv(in + i * LENGTH, LENGTH, MPI_BYTE, left, 100 + i, MPI_COMM_WORLD, &requests[MANY + i]);
    MPI_Waitall(2 * MANY, requests, MPI_STATUSES_IGNORE);
    unsigned char *wanted = malloc(LENGTH);
    for (int i = 0; i < MANY; i++) {
        fill(wanted, LENGTH, seed_of(left, round + i));
        if (memcmp(in + i * LENGTH, wanted, LENGTH) != 0)
            fail("wrong contents", LENGTH, i);
    }
    free(wanted);
}

// Rank 1 dies while rank 0 gets a message from it.
static void die_amid_a_message(void) {
    MPI_Request request;
    int is_done = 0;
    if (rank == 1) {
        MPI_Isend(out, LARGEST, MPI_BYTE, 0, 3, MPI_COMM_WORLD, &request);
        for (int i = 0; i < 40; i++)
            MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
        raise(SIGKILL);
    }
    for (int i = 0; i < 1000; i++)
        MPI_Recv(in, LARGEST, MPI_BYTE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    static const int lengths[] = {65535, 65536, 65537, 262144, 262145, 1000001, 1 << 20, (4 << 20) + 5, LARGEST};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    out = malloc(LARGEST + 64), in = malloc(LARGEST + 64);
    memset(out, 1, LARGEST + 64);
    for (int round = 0; round < rounds; round++) {
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
            contiguous(lengths[i], round);
        scattered(3, 70001, round);
        scattered(40, 4099, round);
        crowd(round);
    }
    if (argc > 2)
        die_amid_a_message();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("long: %d rounds among %d ranks, all as sent\n", rounds, ranks);
    MPI_Finalize();
    return 0;
}
