/* Random traffic (Brewer et al., section 4): each rank sends pieces to receivers that it chooses at random, by each
 * technique in turn, and every byte is checked.
 *
 *     random_traffic [pieces [bytes [technique ...]]]
 *
 * Build it with the library, by the wrapper of any MPI (tidegate_bulk(3) says where the files are):
 *
 *     mpicc -O2 -I bulk examples/random_traffic.c bulk/tidegate_bulk.c bulk/exchange.c bulk/receiving.c \
 *         -L build/lib -l:libtidegate-fi.so -Wl,-rpath,$PWD/build/lib -o random_traffic
 */

#include "tidegate_bulk.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const all[] = {"in_order", "interleave", "bandwidth_matching", "barriers", "tokens",
                                  "receiver_tokens", "booking", "auto"};

static void check(int error, const char *call) {
    if (error) {
        fprintf(stderr, "%s: %s\n", call, tgb_strerror(error));
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* A number that looks random, the same on all ranks. */
static uint64_t mix(uint64_t number) {
    number += 0x9e3779b97f4a7c15u;
    number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9u;
    number = (number ^ (number >> 27)) * 0x94d049bb133111ebu;
    return number ^ (number >> 31);
}

/* The receiver of a sender's piece: any other rank, or the only one; and its length, which varies a little. */
static int receiver(int sender, int ranks, int piece) {
    if (ranks == 1) {
        return 0;
    }
    int other = (int)(mix((uint64_t)sender << 32 | (uint32_t)piece) % (uint64_t)(ranks - 1));
    return other < sender ? other : other + 1;
}

static size_t length(int sender, int piece, size_t bytes) {
    return bytes - mix((uint64_t)piece << 32 | (uint32_t)sender) % (bytes / 4 + 1);
}

static void fill(unsigned char *buffer, size_t bytes, int sender, int piece) {
    for (size_t i = 0; i < bytes; i++) {
        buffer[i] = (unsigned char)(mix((uint64_t)sender << 40 | (uint64_t)piece << 8) + i * 7);
    }
}

/* Bytes that are not what `fill` makes. */
static size_t wrong(const unsigned char *buffer, size_t bytes, int sender, int piece) {
    size_t count = 0;
    unsigned char first = (unsigned char)mix((uint64_t)sender << 40 | (uint64_t)piece << 8);
    for (size_t i = 0; i < bytes; i++) {
        count += buffer[i] != (unsigned char)(first + i * 7);
    }
    return count;
}

/* One exchange by one technique; returns its bandwidth in MB/s, of all ranks together. */
static double exchange(const char *technique, int pieces, size_t bytes, int rank, int ranks) {
    tgb *queue;
    check(tgb_create(MPI_COMM_WORLD, technique, NULL, &queue), "tgb_create");
    unsigned char **sent = calloc((size_t)pieces, sizeof *sent), **come;
    come = calloc((size_t)pieces * (size_t)ranks, sizeof *come);
    for (int piece = 0; piece < pieces; piece++) {
        size_t size = length(rank, piece, bytes);
        sent[piece] = malloc(size);
        fill(sent[piece], size, rank, piece);
        check(tgb_schedule(queue, receiver(rank, ranks, piece), sent[piece], size), "tgb_schedule");
    }
    for (int sender = 0; sender < ranks; sender++) {
        for (int piece = 0; piece < pieces; piece++) {
            if (receiver(sender, ranks, piece) == rank) {
                size_t size = length(sender, piece, bytes);
                unsigned char *place = come[sender * pieces + piece] = calloc(1, size);
                check(tgb_expect(queue, sender, place, size), "tgb_expect");
            }
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    check(tgb_service_queue(queue), "tgb_service_queue");
    MPI_Barrier(MPI_COMM_WORLD);
    double seconds = MPI_Wtime() - start, total = 0;
    for (int sender = 0; sender < ranks; sender++) {
        for (int piece = 0; piece < pieces; piece++) {
            unsigned char *place = come[sender * pieces + piece];
            size_t size = length(sender, piece, bytes);
            total += (double)size;
            if (place && wrong(place, size, sender, piece) > 0) {
                fprintf(stderr, "%s: rank %d: piece %d of rank %d is not as sent\n", technique, rank, piece, sender);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
            free(place);
        }
    }
    for (int piece = 0; piece < pieces; piece++) {
        free(sent[piece]);
    }
    free(sent);
    free(come);
    if (rank == 0) {
        printf("%-20s %9.1f MB/s%s%s\n", technique, total / seconds / 1e6, strcmp(technique, "auto") ? "" : "  by ",
               strcmp(technique, "auto") ? "" : tgb_technique(queue));
    }
    check(tgb_free(&queue), "tgb_free");
    return total / seconds / 1e6;
}

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int pieces = argc > 1 ? atoi(argv[1]) : 20;
    size_t bytes = argc > 2 ? strtoull(argv[2], NULL, 0) : 262144;
    for (int i = 3; i < argc; i++) {
        exchange(argv[i], pieces, bytes, rank, ranks);
    }
    for (size_t i = 0; argc <= 3 && i < sizeof all / sizeof *all; i++) {
        exchange(all[i], pieces, bytes, rank, ranks);
    }
    if (rank == 0) {
        printf("all as sent\n");
    }
    MPI_Finalize();
    return 0;
}
