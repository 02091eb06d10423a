// How far two processors are from each other: what writing and reading a message of 37 cache lines (2 KiB in slots)
// takes from one to the other, in nanoseconds. On a machine whose host moves it between processors this changes from
// minute to minute, and with it all that is measured between two processes.
//
// usage: distance

#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { LINES = 37, RING = 1152, WORDS = 8, ROUNDS = 3000, TRIES = 3 };

static _Alignas(4096) atomic_ulong rings[2][RING][WORDS];
static int processors[2];

static void stay_on(int processor) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

static void write_message(int ring, int at, unsigned long round) {
    for (int line = 0; line < LINES; line++) {
        atomic_ulong *words = rings[ring][(at + line) % RING];
        for (int word = 1; word < WORDS; word++)
            atomic_store_explicit(&words[word], round, memory_order_relaxed);
        atomic_store_explicit(&words[0], round, memory_order_release);
    }
}

static void read_message(int ring, int at, unsigned long round) {
    for (int line = 0; line < LINES; line++) {
        atomic_ulong *words = rings[ring][(at + line) % RING];
        while (atomic_load_explicit(&words[0], memory_order_acquire) != round)
            ;
        for (int word = 1; word < WORDS; word++)
            (void)atomic_load_explicit(&words[word], memory_order_relaxed);
    }
}

static void *answer(void *unused) {
    stay_on(processors[1]);
    for (unsigned long round = 1, at = 0; round <= ROUNDS; round++, at = (at + LINES) % RING) {
        read_message(0, (int)at, round);
        write_message(1, (int)at, round);
    }
    return unused;
}

int main(void) {
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    int found = 0;
    for (int processor = 0; processor < CPU_SETSIZE && found < 2; processor++)
        if (CPU_ISSET(processor, &allowed))
            processors[found++] = processor;
    if (found < 2) {
        puts("0");
        return 0;
    }
    stay_on(processors[0]);
    double least = 1e18;
    for (int try = 0; try < TRIES; try++) {
        struct timespec begun, ended;
        pthread_t other;
        memset(rings, 0, sizeof rings);
        pthread_create(&other, NULL, answer, NULL);
        clock_gettime(CLOCK_MONOTONIC, &begun);
        for (unsigned long round = 1, at = 0; round <= ROUNDS; round++, at = (at + LINES) % RING) {
            write_message(0, (int)at, round);
            read_message(1, (int)at, round);
        }
        clock_gettime(CLOCK_MONOTONIC, &ended);
        pthread_join(other, NULL);
        double took = (double)(ended.tv_sec - begun.tv_sec) * 1e9 + (double)(ended.tv_nsec - begun.tv_nsec);
        least = took / (2 * ROUNDS) < least ? took / (2 * ROUNDS) : least;
    }
    printf("%.0f\n", least);
    return 0;
}
