// Ranks that flood others while these wait for something else, with every byte, every length and the order of all
// messages checked, and the memory that it takes.
//
// usage: pressure PRESSURE RECEIVES COUNT BYTES SENDS PAUSE_MILLISECONDS [ROOM_MIB]
//
//   PRESSURE  flood      rank 0 waits for a message of the last rank, while all between send it COUNT messages each.
//                        The last rank sends its own PAUSE after the others have started all of theirs (blocking:
//                        PAUSE after the start)
//             before     rank 0 waits for a last message of each of the others, who have started COUNT sends before it
//             everybody  every rank starts COUNT sends to every other one; then comes a barrier, and only then do they
//                        receive
//   RECEIVES  order      source by source in turn, in the order of the sends
//             reverse    the last message first; each has a tag of its own
//             wildcard   any source, any tag
//             probe      any source, any tag, by MPI_Probe, MPI_Iprobe, MPI_Mprobe and MPI_Improbe in turn
//   SENDS     blocking   MPI_Send; for `flood` without `reverse` only: the others would be wrong as MPI programs
//             starting   MPI_Isend of all, then MPI_Waitall
//   ROOM_MIB  by how much each rank's address space may grow in the end, as `ulimit -v` would limit it; 0, the default:
//             without a limit
//
// Message i of a source is BYTES bytes of that source's own stream of random words, from word i on: so all messages
// differ, both sides know them beforehand, and no send needs a buffer of its own. Memory is read in /proc/self/status:
// `before`, when all buffers of the program exist and every pair has exchanged messages of this length, and the peak
// after that (the high-water mark is reset). Rank 0 prints lines of words: for each rank `before RANK PID KIB` (at
// once, so that it is known also of a program that does not end) and `peak RANK PID KIB`, and `seconds TOTAL
// AFTER_THE_WAIT`.

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { WORD = sizeof(uint64_t), WARM_ROUNDS = 4, REST_MILLISECONDS = 300 };

static int rank, ranks, count, bytes, pause_ms, room_mib, started_tag, last_tag;
static int first_source, end_source, sources, targets;
static const char *pressure, *receives, *sends;
static uint64_t **streams;
static unsigned char *buffer;

static int is(const char *word, const char *other) { return strcmp(word, other) == 0; }

static void fail(const char *what, int source, int index) {
    fprintf(stderr, "pressure: rank %d: message %d from rank %d: %s\n", rank, index, source, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static void nap(int milliseconds) {
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    nanosleep(&time, NULL);
}

static uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

// A figure of this process, in KiB.
static long status_kib(const char *name) {
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    long value = -1;
    size_t length = strlen(name);
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, name, length) == 0 && line[length] == ':')
            value = atol(line + length + 1);
    if (file)
        fclose(file);
    return value;
}

// Where resetting the mark is forbidden, the peak is that since the process began, which may be too high and is never
// too low.
static void reset_peak(void) {
    FILE *file = fopen("/proc/self/clear_refs", "w");
    if (file) {
        fputs("5", file);
        fclose(file);
    }
}

static void limit_growth(void) {
    rlim_t most = ((rlim_t)status_kib("VmSize") << 10) + ((rlim_t)room_mib << 20);
    struct rlimit limit = {most, most};
    if (setrlimit(RLIMIT_AS, &limit) != 0)
        fail("the address space cannot be limited", rank, 0);
}

static const unsigned char *message(int source, int index) { return (unsigned char *)(streams[source] + index); }

static void make_streams(void) {
    size_t words = (size_t)count + (size_t)bytes / WORD + 1;
    streams = calloc((size_t)ranks, sizeof *streams);
    for (int source = 0; source < ranks; source++) {
        streams[source] = malloc(words * WORD);
        for (size_t at = 0; at < words; at++)
            streams[source][at] = mix(((uint64_t)source << 40) ^ at);
    }
    buffer = malloc((size_t)bytes + 1);
    memset(buffer, 0, (size_t)bytes + 1);
}

static void check(const MPI_Status *status, int source, int index) {
    int got;
    MPI_Get_count(status, MPI_BYTE, &got);
    if (status->MPI_SOURCE != source || status->MPI_TAG != index)
        fail("wrong source or tag: one has overtaken another", source, index);
    if (got != bytes)
        fail("wrong length", source, index);
    if (memcmp(buffer, message(source, index), (size_t)bytes) != 0)
        fail("wrong contents", source, index);
}

static void receive_exactly(int source, int index) {
    MPI_Status status;
    MPI_Recv(buffer, bytes, MPI_BYTE, source, index, MPI_COMM_WORLD, &status);
    check(&status, source, index);
}

// Receives what comes next, by one of four ways to probe, or by none.
static void receive_any(int way, MPI_Status *status) {
    MPI_Message found;
    int is_there = 0;
    switch (way) {
    case 0:
        MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, status);
        MPI_Recv(buffer, bytes, MPI_BYTE, status->MPI_SOURCE, status->MPI_TAG, MPI_COMM_WORLD, status);
        return;
    case 1:
        while (!is_there)
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &is_there, status);
        MPI_Recv(buffer, bytes, MPI_BYTE, status->MPI_SOURCE, status->MPI_TAG, MPI_COMM_WORLD, status);
        return;
    case 2:
        MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, status);
        MPI_Mrecv(buffer, bytes, MPI_BYTE, &found, status);
        return;
    case 3:
        while (!is_there)
            MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &is_there, &found, status);
        MPI_Mrecv(buffer, bytes, MPI_BYTE, &found, status);
        return;
    default:
        MPI_Recv(buffer, bytes, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, status);
    }
}

static void receive_anything(int probes) {
    int *next = calloc((size_t)ranks, sizeof *next);
    for (int at = 0; at < sources * count; at++) {
        MPI_Status status;
        receive_any(probes ? at % 4 : -1, &status);
        check(&status, status.MPI_SOURCE, next[status.MPI_SOURCE]++);
    }
    free(next);
}

static void receive_all(void) {
    if (is(receives, "wildcard") || is(receives, "probe")) {
        receive_anything(is(receives, "probe"));
        return;
    }
    for (int at = 0; at < count; at++)
        for (int source = first_source; source < end_source; source++)
            if (source != rank)
                receive_exactly(source, is(receives, "reverse") ? count - 1 - at : at);
}

// Starts or makes all sends of this rank; what was started is in `requests`.
static void send_all(MPI_Request *requests) {
    for (int index = 0; index < count; index++) {
        for (int target = 0; target < targets; target++) {
            if (target == rank)
                continue;
            if (is(sends, "blocking"))
                MPI_Send(message(rank, index), bytes, MPI_BYTE, target, index, MPI_COMM_WORLD);
            else
                MPI_Isend(message(rank, index), bytes, MPI_BYTE, target, index, MPI_COMM_WORLD, requests++);
        }
    }
}

// Every pair exchanges a few messages of this length, so that connections and bounce buffers are there.
static void warm_up(void) {
    unsigned char *in = malloc((size_t)bytes + 1);
    for (int round = 0; round < WARM_ROUNDS; round++)
        for (int step = 1; step < ranks; step++)
            MPI_Sendrecv(message(rank, 0), bytes, MPI_BYTE, (rank + step) % ranks, 0, in, bytes, MPI_BYTE, (rank - step + ranks) % ranks, 0,
                         MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    free(in);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void play_receiver(void) {
    if (is(pressure, "flood"))
        MPI_Recv(NULL, 0, MPI_BYTE, ranks - 1, last_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else if (is(pressure, "before"))
        for (int source = 1; source < ranks; source++)
            MPI_Recv(NULL, 0, MPI_BYTE, source, last_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void play_sender(MPI_Request *requests, int *started) {
    send_all(requests);
    *started = is(sends, "blocking") ? 0 : count * (targets - (rank < targets));
    if (is(pressure, "flood") && *started > 0)
        MPI_Send(NULL, 0, MPI_BYTE, ranks - 1, started_tag, MPI_COMM_WORLD);
    if (is(pressure, "before"))
        MPI_Isend(NULL, 0, MPI_BYTE, 0, last_tag, MPI_COMM_WORLD, &requests[(*started)++]);
    if (is(pressure, "everybody"))
        MPI_Barrier(MPI_COMM_WORLD);
}

static void play_last(void) {
    for (int source = 1; source < ranks - 1 && is(sends, "starting"); source++)
        MPI_Recv(NULL, 0, MPI_BYTE, source, started_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    nap(pause_ms);
    MPI_Send(NULL, 0, MPI_BYTE, 0, last_tag, MPI_COMM_WORLD);
}

// Plays this rank's part; `seconds` gets the time of all, and of that the time after what was waited for had come.
static void play(MPI_Request *requests, double *seconds) {
    int started = 0, everybody = is(pressure, "everybody");
    double start = MPI_Wtime();
    if (is(pressure, "flood") && rank == ranks - 1)
        play_last();
    if (targets > 0)
        play_sender(requests, &started);
    if (rank == 0)
        play_receiver();
    double freed = MPI_Wtime();
    if (rank == 0 || everybody)
        receive_all();
    MPI_Waitall(started, requests, MPI_STATUSES_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    seconds[0] = MPI_Wtime() - start;
    seconds[1] = MPI_Wtime() - freed;
}

// Rank 0 prints a line for each rank: a word, the rank, its process id, a value in KiB.
static void print_from_all(const char *word, long kib) {
    long mine[] = {getpid(), kib}, *all = calloc((size_t)ranks * 2, sizeof *all);
    MPI_Gather(mine, 2, MPI_LONG, all, 2, MPI_LONG, 0, MPI_COMM_WORLD);
    for (int at = 0; rank == 0 && at < ranks; at++)
        printf("%s %d %ld %ld\n", word, at, all[2 * at], all[2 * at + 1]);
    fflush(stdout);
    free(all);
}

static void report(const double *seconds) {
    print_from_all("peak", status_kib("VmHWM"));
    if (rank == 0) {
        printf("seconds %.6f %.6f\n", seconds[0], seconds[1]);
        printf("pressure: %d times %d messages of %d bytes, all as sent\n", sources, count, bytes);
        fflush(stdout);
    }
    // Time for whoever measures from outside to look once more.
    nap(REST_MILLISECONDS);
}

// Who sends, to whom, and from whom rank 0 (or everybody) receives.
static void cast(void) {
    int everybody = is(pressure, "everybody");
    first_source = everybody ? 0 : 1;
    end_source = is(pressure, "flood") ? ranks - 1 : ranks;
    sources = ranks - 1 - is(pressure, "flood");
    targets = everybody ? ranks : rank >= first_source && rank < end_source;
    started_tag = count, last_tag = count + 1;
}

static const char *mistake(void) {
    int *most, found, blocking = is(sends, "blocking");
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &found);
    if (!is(pressure, "flood") && !is(pressure, "before") && !is(pressure, "everybody"))
        return "PRESSURE is flood, before or everybody";
    if (!is(receives, "order") && !is(receives, "reverse") && !is(receives, "wildcard") && !is(receives, "probe"))
        return "RECEIVES is order, reverse, wildcard or probe";
    if (!blocking && !is(sends, "starting"))
        return "SENDS is blocking or starting";
    if (blocking && (!is(pressure, "flood") || is(receives, "reverse")))
        return "blocking sends only with flood, and not in reverse: the program would be wrong";
    if (count < 1 || bytes < 0 || (found && *most <= count))
        return "COUNT is at least 1 and less than the largest tag, BYTES at least 0";
    return ranks < (is(pressure, "flood") ? 3 : 2) ? "too few ranks: 3 for flood, else 2" : NULL;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const char *wrong = "six arguments or seven";
    if (argc == 7 || argc == 8) {
        pressure = argv[1], receives = argv[2], count = atoi(argv[3]), bytes = atoi(argv[4]), sends = argv[5], pause_ms = atoi(argv[6]);
        room_mib = argc == 8 ? atoi(argv[7]) : 0;
        wrong = mistake();
    }
    if (wrong) {
        if (rank == 0)
            fprintf(stderr, "pressure: %s\nusage: pressure PRESSURE RECEIVES COUNT BYTES SENDS PAUSE_MILLISECONDS [ROOM_MIB]\n", wrong);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    cast();
    make_streams();
    size_t most = (size_t)count * (size_t)ranks + 1;
    MPI_Request *requests = malloc(most * sizeof *requests);
    memset(requests, 0, most * sizeof *requests);
    warm_up();
    print_from_all("before", status_kib("VmRSS"));
    MPI_Barrier(MPI_COMM_WORLD);
    reset_peak();
    if (room_mib > 0)
        limit_growth();
    double seconds[2];
    play(requests, seconds);
    report(seconds);
    MPI_Finalize();
    return 0;
}
