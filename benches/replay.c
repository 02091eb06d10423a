/* Replays a trace in GOAL over MPI, as `tidegate sim` does over its simulated machine: an operation begins as soon as what
 * it needs has begun or ended, in the order of the file; a computation keeps the processor busy for its time.
 *
 *   mpiexec -n RANKS replay TRACE.goal [TIMES]
 *
 * Prints the time of the slowest rank, the best of TIMES. benches/plan.py compares what its ranks count with what
 * `tidegate plan` says. Tags are taken modulo 32768, the least that every MPI has. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind { COMPUTE, SEND, RECEIVE };

struct edge {
    int to;
    struct edge *next;
};

struct operation {
    enum kind kind;
    long amount; /* bytes, or nanoseconds */
    int peer, tag, needs;
    struct edge *after_begin, *after_end; /* operations that wait for it */
};

struct label {
    char name[32];
    int operation;
};

static struct operation *operations;
static struct label *labels;
static int count, room, label_count;

static void fail(const char *what) {
    fprintf(stderr, "replay: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Labels are looked for from the newest on: what an operation needs stands right before it, nearly always. */
static int find(const char *name) {
    for (int at = label_count - 1; at >= 0; at--)
        if (strcmp(labels[at].name, name) == 0)
            return labels[at].operation;
    fail(name);
    return -1;
}

static void relate(const char *waiting, const char *relation, const char *needed) {
    int from = find(needed), to = find(waiting);
    struct edge *edge = malloc(sizeof *edge);
    struct edge **list = strcmp(relation, "requires") == 0 ? &operations[from].after_end : &operations[from].after_begin;
    *edge = (struct edge){to, *list};
    *list = edge;
    operations[to].needs++;
}

static void add(char *line) {
    char name[32] = "", first[16], rest[256] = "", other[32], relation[16];
    if (sscanf(line, "%31s %15s %31s", name, relation, other) == 3
        && (strcmp(relation, "requires") == 0 || strcmp(relation, "irequires") == 0)) {
        relate(name, relation, other);
        return;
    }
    char *colon = strchr(line, ':');
    name[0] = 0;
    if (colon) {
        *colon = 0;
        sscanf(line, "%31s", name);
        line = colon + 1;
    }
    if (count == room) {
        room = room ? 2 * room : 1024;
        operations = realloc(operations, room * sizeof *operations);
        labels = realloc(labels, room * sizeof *labels);
    }
    struct operation new = {0};
    if (sscanf(line, "%15s %ld%255[^\n]", first, &new.amount, rest) < 2)
        fail(line);
    if (strcmp(first, "calc") == 0)
        new.kind = COMPUTE;
    else {
        new.kind = strcmp(first, "send") == 0 ? SEND : RECEIVE;
        unsigned long long tag = 0;
        if (sscanf(rest, "b %*s %d tag %llu", &new.peer, &tag) < 1)
            fail(line);
        new.tag = tag % 32768;
    }
    if (name[0]) {
        strcpy(labels[label_count].name, name);
        labels[label_count++].operation = count;
    }
    operations[count++] = new;
}

static void read_trace(const char *path, int rank) {
    FILE *file = fopen(path, "r");
    if (!file)
        fail(path);
    char *line = NULL;
    size_t length = 0;
    int open = -1, at;
    while (getline(&line, &length, file) > 0) {
        char *comment = strstr(line, "//");
        if (comment)
            *comment = 0;
        if (sscanf(line, " rank %d {", &at) == 1)
            open = at;
        else if (strchr(line, '}'))
            open = -1;
        else if (open == rank && strspn(line, " \t\n") < strlen(line))
            add(line);
    }
    free(line);
    fclose(file);
}

static int *ready, first_ready, last_ready;

static void release(struct edge *list, int *needs) {
    for (; list; list = list->next)
        if (--needs[list->to] == 0)
            ready[last_ready++] = list->to;
}

static int compare(const void *one, const void *other) {
    return *(const int *)one - *(const int *)other;
}

static void replay(char *buffer) {
    int *needs = malloc((count + 1) * sizeof *needs), *running = malloc((count + 1) * sizeof *running), under_way = 0;
    MPI_Request *requests = malloc((count + 1) * sizeof *requests);
    first_ready = last_ready = 0;
    for (int at = 0; at < count; at++)
        if ((needs[at] = operations[at].needs) == 0)
            ready[last_ready++] = at;
    for (;;) {
        while (first_ready < last_ready) {
            int at = ready[first_ready++];
            struct operation *operation = &operations[at];
            release(operation->after_begin, needs);
            if (operation->kind == COMPUTE) {
                double until = MPI_Wtime() + operation->amount * 1e-9;
                while (MPI_Wtime() < until)
                    ;
                release(operation->after_end, needs);
                continue;
            }
            running[under_way] = at;
            if (operation->kind == SEND)
                MPI_Isend(buffer, operation->amount, MPI_BYTE, operation->peer, operation->tag, MPI_COMM_WORLD, &requests[under_way++]);
            else
                MPI_Irecv(buffer, operation->amount, MPI_BYTE, operation->peer, operation->tag, MPI_COMM_WORLD, &requests[under_way++]);
        }
        if (under_way == 0)
            break;
        int place;
        MPI_Waitany(under_way, requests, &place, MPI_STATUS_IGNORE);
        int ended = running[place];
        running[place] = running[--under_way];
        requests[place] = requests[under_way];
        release(operations[ended].after_end, needs);
        qsort(ready + first_ready, last_ready - first_ready, sizeof *ready, compare);
    }
    free(needs);
    free(running);
    free(requests);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, times = argc > 2 ? atoi(argv[2]) : 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc < 2)
        fail("which trace?");
    read_trace(argv[1], rank);
    long most = 1;
    for (int at = 0; at < count; at++)
        if (operations[at].kind != COMPUTE && operations[at].amount > most)
            most = operations[at].amount;
    char *buffer = calloc(most, 1);
    ready = malloc((count + 1) * sizeof *ready);
    double best = 1e30;
    for (int round = 0; round < times; round++) {
        double begin = MPI_Wtime();
        replay(buffer);
        double took = MPI_Wtime() - begin, slowest;
        MPI_Allreduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (slowest < best)
            best = slowest;
    }
    if (rank == 0)
        printf("time %.3f us\n", best * 1e6);
    MPI_Finalize();
    return 0;
}
