// One rank whose memory takes data slowly, among others: what it costs them. R §1 and §4, on real machines.
//
// usage: slow_sink SECONDS BYTES RATE
//        The first half of the ranks send, the second half receive. Each sender keeps a message of BYTES under way to each receiver,
//        and sends the next one when it has been received. The memory of the last rank takes RATE MB/s and not more: its pages are
//        taken away before each receive, and a thread gives them back at that rate, one part after the other, as they are touched
//        (userfaultfd; root, or vm.unprivileged_userfaultfd=1). RATE 0: no rank is slow.
//        Prints what was received in the time, in MB/s: `others`, mean over all receivers but the last one, `least`, the least of
//        theirs, and `slow`, the last one's. All bytes that come in whole messages are checked.

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <mpi.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PART = 64 << 10, SENDERS_MOST = 64 };

struct slowness {
    int faults;
    double bytes_per_second;
};

static void fail(const char *what) {
    fprintf(stderr, "slow_sink: %s: %s\n", what, strerror(errno));
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Gives pages back as they are touched, a part at a time, at the rate. */
static void *give_back(void *argument) {
    const struct slowness *slowness = argument;
    double next = MPI_Wtime();
    for (;;) {
        struct pollfd waits = {.fd = slowness->faults, .events = POLLIN};
        struct uffd_msg message;
        if (poll(&waits, 1, -1) < 0 || read(slowness->faults, &message, sizeof message) != sizeof message)
            continue;
        double now = MPI_Wtime();
        if (next < now)
            next = now;
        next += PART / slowness->bytes_per_second;
        double left = next - now;
        struct timespec pause = {(time_t)left, (long)(1e9 * (left - (double)(time_t)left))};
        nanosleep(&pause, NULL);
        struct uffdio_zeropage zero = {.range = {message.arg.pagefault.address & ~(uint64_t)(PART - 1), PART}};
        if (ioctl(slowness->faults, UFFDIO_ZEROPAGE, &zero) != 0) {
            // A part of it is there already: wake whoever waits.
            struct uffdio_range range = zero.range;
            for (uint64_t page = range.start; page < range.start + PART; page += 4096) {
                struct uffdio_zeropage one = {.range = {page, 4096}};
                ioctl(slowness->faults, UFFDIO_ZEROPAGE, &one);
            }
            ioctl(slowness->faults, UFFDIO_WAKE, &range);
        }
    }
    return NULL;
}

static void slow_down(struct slowness *slowness, void *memory, size_t bytes) {
    slowness->faults = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    if (slowness->faults < 0)
        fail("userfaultfd (root, or sysctl vm.unprivileged_userfaultfd=1)");
    struct uffdio_api api = {.api = UFFD_API};
    if (ioctl(slowness->faults, UFFDIO_API, &api) != 0)
        fail("UFFDIO_API");
    struct uffdio_register range = {.range = {(uint64_t)memory, bytes}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    if (ioctl(slowness->faults, UFFDIO_REGISTER, &range) != 0)
        fail("UFFDIO_REGISTER");
    pthread_t thread;
    if (pthread_create(&thread, NULL, give_back, slowness) != 0)
        fail("pthread_create");
    pthread_detach(thread);
}

static void send_all(int receivers, int first, int bytes, double seconds) {
    char *data = malloc((size_t)bytes);
    MPI_Request requests[SENDERS_MOST];
    if (data == NULL)
        fail("malloc");
    memset(data, 1, (size_t)bytes);
    for (int to = 0; to < receivers; to++)
        MPI_Isend(data, bytes, MPI_CHAR, first + to, 0, MPI_COMM_WORLD, &requests[to]);
    double end = MPI_Wtime() + seconds;
    for (int left = receivers; left > 0;) {
        int done[SENDERS_MOST], count;
        MPI_Waitsome(receivers, requests, &count, done, MPI_STATUSES_IGNORE);
        for (int index = 0; index < count; index++) {
            int to = done[index];
            if (MPI_Wtime() < end) {
                MPI_Isend(data, bytes, MPI_CHAR, first + to, 0, MPI_COMM_WORLD, &requests[to]);
            } else {
                // Nothing in it: the last one.
                MPI_Send(data, 0, MPI_CHAR, first + to, 0, MPI_COMM_WORLD);
                left--;
            }
        }
    }
    free(data);
}

/* Returns how many MB/s came. */
static double receive_all(int senders, int bytes, double seconds, double rate) {
    size_t each = ((size_t)bytes + PART - 1) / PART * PART, all = each * (size_t)senders + PART;
    char *memory = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        fail("mmap");
    char *data = (char *)(((uintptr_t)memory + PART - 1) & ~(uintptr_t)(PART - 1));
    madvise(data, each * (size_t)senders, MADV_NOHUGEPAGE);
    static struct slowness slowness;
    if (rate > 0) {
        slowness.bytes_per_second = rate * 1e6;
        slow_down(&slowness, data, each * (size_t)senders);
    }
    MPI_Request requests[SENDERS_MOST];
    for (int from = 0; from < senders; from++)
        MPI_Irecv(data + each * (size_t)from, bytes, MPI_CHAR, from, 0, MPI_COMM_WORLD, &requests[from]);
    double begin = MPI_Wtime(), received = 0;
    for (int left = senders; left > 0;) {
        int done[SENDERS_MOST], count;
        MPI_Status statuses[SENDERS_MOST];
        MPI_Waitsome(senders, requests, &count, done, statuses);
        double now = MPI_Wtime();
        for (int index = 0; index < count; index++) {
            int from = done[index], length;
            char *place = data + each * (size_t)from;
            MPI_Get_count(&statuses[index], MPI_CHAR, &length);
            if (length == 0) {
                left--;
                continue;
            }
            if (length != bytes || place[0] != 1 || place[bytes - 1] != 1 || memcmp(place, place + 1, (size_t)bytes - 1) != 0) {
                fprintf(stderr, "slow_sink: wrong data from rank %d\n", from);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
            if (now < begin + seconds)
                received += bytes;
            if (rate > 0)
                madvise(place, each, MADV_DONTNEED);
            else
                memset(place, 0, (size_t)bytes);
            MPI_Irecv(place, bytes, MPI_CHAR, from, 0, MPI_COMM_WORLD, &requests[from]);
        }
    }
    munmap(memory, all);
    return received / 1e6 / seconds;
}

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    double seconds = argc > 3 ? atof(argv[1]) : 0, rate = argc > 3 ? atof(argv[3]) : 0;
    int bytes = argc > 3 ? atoi(argv[2]) : 0, half = ranks / 2;
    if (seconds <= 0 || bytes <= 0 || rate < 0 || ranks < 4 || ranks % 2 != 0 || half > SENDERS_MOST) {
        fprintf(stderr, "usage: slow_sink SECONDS BYTES RATE, with an even number of ranks from 4 to %d\n", 2 * SENDERS_MOST);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double came = 0, *all = calloc((size_t)ranks, sizeof *all);
    if (rank < half)
        send_all(half, half, bytes, seconds);
    else
        came = receive_all(half, bytes, seconds, rank == ranks - 1 ? rate : 0);
    MPI_Gather(&came, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        double sum = 0, least = all[half];
        for (int other = half; other < ranks - 1; other++) {
            sum += all[other];
            least = all[other] < least ? all[other] : least;
        }
        printf("others %.3f\nleast %.3f\nslow %.3f\n", sum / (half - 1), least, all[ranks - 1]);
    }
    free(all);
    MPI_Finalize();
}
