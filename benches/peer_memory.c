// What peers cost in memory: the job says how much anonymous memory its ranks have (from /proc/self/smaps_rollup) and how much
// is allocated in the shared memory that they map, each file once and whether its pages were touched or not, in the mean over
// the ranks: when MPI is initialised, when each has exchanged a message with two neighbours, and when it has with all others.
// Program text does not count. As root, since it looks at files that were unlinked.
//
// usage: peer_memory

#include <inttypes.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FILES = 512 };

struct file {
    uint64_t inode, bytes;
};

static double anonymous_memory(void) {
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    long kibibytes = 0;
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "Pss_Anon: %ld", &kibibytes) == 1)
            break;
    if (file)
        fclose(file);
    return (double)kibibytes * 1024;
}

static int is_shared_memory(const char *path) {
    return !strncmp(path, "/dev/shm", 8) || !strncmp(path, "/memfd", 6) || !strncmp(path, "/SYSV", 5);
}

// The files in shared memory that we map, each once, and the bytes that are allocated for them.
static void find_files(struct file files[FILES]) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512], range[64], path[300], link[128];
    unsigned long inode;
    int count = 0;
    memset(files, 0, FILES * sizeof *files);
    while (maps && fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%63s %*s %*s %*s %lu %299s", range, &inode, path) != 3 || !is_shared_memory(path))
            continue;
        int at = 0;
        while (at < count && files[at].inode != inode)
            at++;
        struct stat about;
        snprintf(link, sizeof link, "/proc/self/map_files/%s", range);
        if (at < count || count == FILES || stat(link, &about))
            continue;
        files[count++] = (struct file){inode, (uint64_t)about.st_blocks * 512};
    }
    if (maps)
        fclose(maps);
}

static int by_inode(const void *one, const void *other) {
    const struct file *a = one, *b = other;
    return (a->inode > b->inode) - (a->inode < b->inode);
}

static void tell(const char *what, int rank, int ranks) {
    static struct file mine[FILES];
    struct file *all = rank == 0 ? malloc(sizeof mine * (size_t)ranks) : NULL;
    MPI_Barrier(MPI_COMM_WORLD);
    double anonymous = anonymous_memory(), sum = 0;
    find_files(mine);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Reduce(&anonymous, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Gather(mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (rank)
        return;
    qsort(all, (size_t)ranks * FILES, sizeof *all, by_inode);
    for (int at = 0; at < ranks * FILES; at++)
        if (all[at].inode && (at == 0 || all[at].inode != all[at - 1].inode))
            sum += (double)all[at].bytes;
    free(all);
    printf("%s %.0f\n", what, sum / ranks);
}

static void exchange(int to, int from) {
    char out[8] = {0}, in[8];
    MPI_Sendrecv(out, sizeof out, MPI_CHAR, to, 1, in, sizeof in, MPI_CHAR, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    tell("begun", rank, ranks);
    exchange((rank + 1) % ranks, (rank + ranks - 1) % ranks);
    tell("few", rank, ranks);
    for (int distance = 1; distance < ranks; distance++)
        exchange((rank + distance) % ranks, (rank + ranks - distance) % ranks);
    tell("all", rank, ranks);
    MPI_Finalize();
    return EXIT_SUCCESS;
}
