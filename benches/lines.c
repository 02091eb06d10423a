// What a cache line costs that goes from one processor to another and back: a writer writes all lines of a ring, each
// once and whole, then a reader reads them, and so on by turns. Prints nanoseconds per line of each, which is the floor
// of what a slot of a mailbox costs either side. The reader's lines come together; the writer's do not, as long as the
// reader's cache holds them.
//
// usage: lines LINES [ahead|wide]     ahead: fetches lines for writing ahead (prefetchw); wide: one store of 64 bytes

#define _GNU_SOURCE
#include <immintrin.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 200, AHEAD = 16, WORDS = 8 };

static unsigned long (*ring)[WORDS];
static long lines;
static _Alignas(128) atomic_long turn;
static _Alignas(128) volatile unsigned long sink;
static double reading;

static void stay_on(int processor) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void *read_all(void *unused) {
    stay_on(1);
    for (long round = 0; round < ROUNDS; round++) {
        while (atomic_load(&turn) != 2 * round + 1)
            ;
        double begun = now();
        for (long line = 0; line < lines; line++) {
            unsigned long sum = 0;
            for (int word = 0; word < WORDS; word++)
                sum += ((volatile unsigned long *)ring[line])[word];
            sink = sum;
        }
        reading += now() - begun;
        atomic_store(&turn, 2 * round + 2);
    }
    return unused;
}

__attribute__((target("avx512f"))) static void write_wide(unsigned long *line, unsigned long value) {
    _mm512_store_si512((void *)line, _mm512_set1_epi64((long long)value));
}

int main(int argc, char **argv) {
    lines = argc > 1 ? atol(argv[1]) : 0;
    int ahead = argc > 2 && strcmp(argv[2], "ahead") == 0, wide = argc > 2 && strcmp(argv[2], "wide") == 0;
    if (lines < 1) {
        fputs("usage: lines LINES [ahead|wide]\n", stderr);
        return 2;
    }
    size_t bytes = (size_t)(lines + AHEAD) * sizeof *ring;
    ring = aligned_alloc(2 << 20, (bytes + (2 << 20) - 1) & ~(size_t)((2 << 20) - 1));
    if (!ring)
        return 1;
    memset(ring, 0, bytes);
    pthread_t reader;
    double writing = 0;
    pthread_create(&reader, NULL, read_all, NULL);
    stay_on(0);
    for (long round = 0; round < ROUNDS; round++) {
        double begun = now();
        for (long line = 0; line < lines; line++) {
            if (ahead)
                __asm__ volatile("prefetchw %0" ::"m"(ring[line + AHEAD][0]));
            if (wide) {
                write_wide(ring[line], (unsigned long)round);
                continue;
            }
            for (int word = 1; word <= WORDS; word++)
                ((volatile unsigned long *)ring[line])[word % WORDS] = (unsigned long)round;
        }
        _mm_mfence();
        writing += now() - begun;
        atomic_store(&turn, 2 * round + 1);
        while (atomic_load(&turn) != 2 * round + 2)
            ;
    }
    pthread_join(reader, NULL);
    printf("%ld lines: read %.1f, write %.1f ns each\n", lines, reading / ROUNDS / (double)lines, writing / ROUNDS / (double)lines);
    return 0;
}
