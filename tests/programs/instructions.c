// One process with two endpoints: tagged messages from one to the other, each into a posted receive, one at a time.
//
// usage: instructions LENGTH COUNT [PROVIDER]
//        instructions poll COUNT [PROVIDER]
//
// The second reads a completion queue COUNT times in which there is nothing. PROVIDER is tidegate unless it is given.
// Counted under callgrind, in `exchange_all` and `poll_all` only. What COUNT messages more cost, divided by how many these
// are, is what one costs at both ends; what is dearer about the first ones drops out.

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

static __attribute__((noipa)) void poll_all(struct side *side, long count) {
    for (long i = 0; i < count; i++)
        if (look(side, RECEIVER))
            check(-FI_EIO, "nobody has sent");
}

int main(int argc, char **argv) {
    int polls = argc > 1 && strcmp(argv[1], "poll") == 0;
    if (argc < 3 || argc > 4 || (!polls && (atoi(argv[1]) < 8 || atoi(argv[1]) > LONGEST))) {
        fprintf(stderr, "usage: instructions LENGTH|poll COUNT [PROVIDER]\n");
        return 2;
    }
    static struct side side;
    size_t length = polls ? 8 : (size_t)atoi(argv[1]);
    long count = atol(argv[2]);
    set_up_with(&side, argc > 3 ? argv[3] : "tidegate");
    if (polls) {
        // All that is done at the first message is done.
        for (int i = 0; i < 4; i++) {
            static char out[8], in[8];
            exchange(&side, out, in, length, i);
        }
        poll_all(&side, count);
    } else {
        exchange_all(&side, length, count);
    }
    printf("%ld %s\n", count, polls ? "polls" : "messages");
    fflush(stdout);
    // Taking all down costs the same whatever the count, and is not what is counted.
    _exit(0);
}
