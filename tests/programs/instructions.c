// One process with two endpoints: tagged messages from one to the other, each into a posted receive, one at a time.
//
// usage: instructions LENGTH COUNT
//
// Counted under callgrind. What COUNT messages more cost, divided by how many these are, is what one costs at both
// ends; what comes before the first drops out.

#include "pair.h"

int main(int argc, char **argv) {
    if (argc != 3 || atoi(argv[1]) < 8 || atoi(argv[1]) > LONGEST) {
        fprintf(stderr, "usage: instructions LENGTH COUNT\n");
        return 2;
    }
    static char out[LONGEST], in[LONGEST];
    static struct side side;
    size_t length = (size_t)atoi(argv[1]);
    long count = atol(argv[2]);
    set_up(&side);
    for (long i = 0; i < count; i++) {
        memcpy(out, &i, sizeof i);
        exchange(&side, out, in, length, i);
        if (memcmp(in, &i, sizeof i) != 0)
            check(-FI_EIO, "the wrong message");
    }
    printf("%ld messages\n", count);
    fflush(stdout);
    // Taking all down costs the same whatever the count, and is not what is counted.
    _exit(0);
}
