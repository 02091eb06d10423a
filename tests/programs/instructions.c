// One process with two endpoints: tagged messages from one to the other, each into a posted receive, one at a time.
//
// usage: instructions LENGTH COUNT
//
// Counted under callgrind, in `exchange_all` only. What COUNT messages more cost, divided by how many these are, is what
// one costs at both ends; what is dearer about the first ones drops out.

#include "pair.h"

static __attribute__((noipa)) void exchange_all(struct side *side, size_t length, long count) {
    static char out[LONGEST], in[LONGEST];
    for (long i = 0; i < count; i++) {
        memcpy(out, &i, sizeof i);
        exchange(side, out, in, length, i);
        if (memcmp(in, &i, sizeof i) != 0)
            check(-FI_EIO, "the wrong message");
    }
}

int main(int argc, char **argv) {
    if (argc != 3 || atoi(argv[1]) < 8 || atoi(argv[1]) > LONGEST) {
        fprintf(stderr, "usage: instructions LENGTH COUNT\n");
        return 2;
    }
    static struct side side;
    size_t length = (size_t)atoi(argv[1]);
    long count = atol(argv[2]);
    set_up(&side);
    exchange_all(&side, length, count);
    printf("%ld messages\n", count);
    fflush(stdout);
    // Taking all down costs the same whatever the count, and is not what is counted.
    _exit(0);
}
