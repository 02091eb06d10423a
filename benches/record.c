// What recording a trace costs, within one run: messages from one endpoint to another of the same process, and a
// computation between them, in two domains of which one records; these take turns, so a disturbance meets both.
//
// usage: record FOLDER LENGTH COMPUTE_NS MESSAGES TURNS
//
// FOLDER is where the trace goes. Prints the time of a message without a trace and with one, computation included: of all
// turns the least, in which nothing else ran. Run with FI_PROVIDER=tidegate and FI_PROVIDER_PATH.
//
// gcc -O2 -o record benches/record.c -lfabric -lm

#include "../tests/programs/pair.h"
#include <math.h>
#include <time.h>

enum { TURNS_MOST = 1000 };

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static void compute(double nanoseconds) {
    for (double end = now() + nanoseconds; now() < end;)
        ;
}

// Nanoseconds of a message, with the computation before it.
static double exchanges(const struct side *side, size_t length, double computation, long messages) {
    static char out[LONGEST], in[LONGEST];
    double begun = now();
    for (long i = 0; i < messages; i++) {
        if (computation > 0)
            compute(computation);
        exchange(side, out, in, length, i);
    }
    return (now() - begun) / (double)messages;
}

int main(int argc, char **argv) {
    int turns = argc == 6 ? atoi(argv[5]) : 0;
    if (turns < 1 || turns > TURNS_MOST || atoi(argv[2]) < 0 || atoi(argv[2]) > LONGEST) {
        fprintf(stderr, "usage: record FOLDER LENGTH COMPUTE_NS MESSAGES TURNS\n");
        return 2;
    }
    double plain = INFINITY, recorded = INFINITY;
    size_t length = (size_t)atoi(argv[2]);
    double computation = atof(argv[3]);
    long messages = atol(argv[4]);
    static struct side without, with;
    unsetenv("FI_TIDEGATE_TRACE_DIR");
    set_up(&without);
    setenv("FI_TIDEGATE_TRACE_DIR", argv[1], 1);
    setenv("FI_TIDEGATE_TRACE_MOST", "4g", 1);
    set_up(&with);
    exchanges(&without, length, 0, messages), exchanges(&with, length, 0, messages);
    for (int turn = 0; turn < turns; turn++) {
        plain = fmin(plain, exchanges(&without, length, computation, messages));
        recorded = fmin(recorded, exchanges(&with, length, computation, messages));
    }
    printf("%zu bytes, %.0f ns of computation: %.0f ns without a trace, %.0f ns with one, ratio %.3f\n", length, computation,
           plain, recorded, recorded / plain);
    fflush(stdout);
    _exit(0);
}
