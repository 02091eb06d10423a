/* A job of many processes, each with one endpoint and little receive memory: each sends to those that stand 1, 2, 4, … places
 * from it, and to rank 0, which so hears of all; what comes is looked at. Then each says what it takes: the anonymous
 * memory that it has touched since libfabric had loaded its providers, and what is allocated of the shared memory that it made.
 *
 * usage: crowd [processes [most bytes of each]] */
#include "harness.h"

#include <sys/mman.h>

#define PROCESSES_MOST 1024
#define NAME_BYTES 64
#define ROUNDS 3
/* Of a message with the number of its sender in each of them. */
#define WORDS 30

/* Shared by all processes. */
static struct {
	_Atomic int opened, exchanged, measured;
	char names[PROCESSES_MOST][NAME_BYTES];
	long anonymous[PROCESSES_MOST], shared[PROCESSES_MOST];
} *common;

static fi_addr_t addresses[PROCESSES_MOST];

/* Between two looks: many processes share few processors, so naps become longer, up to 20 ms. */
static void nap(long *nanoseconds)
{
	nanosleep(&(struct timespec){.tv_nsec = *nanoseconds}, NULL);
	if (*nanoseconds < 20000000)
		*nanoseconds *= 2;
}

static void wait_for(_Atomic int *count, bool is_progressing)
{
	long nanoseconds = 100000;
	++*count;
	while (*count < my.ranks) {
		if (is_progressing)
			make_progress();
		nap(&nanoseconds);
	}
}

/* In bytes. */
static long anonymous_memory(void)
{
	FILE *file = fopen("/proc/self/smaps_rollup", "r");
	char line[256];
	long kibibytes = -1;
	while (file && fgets(line, sizeof line, file))
		if (sscanf(line, "Pss_Anon: %ld", &kibibytes) == 1)
			break;
	CHECK(kibibytes >= 0);
	fclose(file);
	return kibibytes * 1024;
}

static int partners(int *found)
{
	int count = 0;
	for (int distance = 1; distance < my.ranks; distance *= 2)
		found[count++] = distance;
	return count;
}

static void exchange(void)
{
	int distances[16], count = partners(distances), expected = count + (my.rank == 0 ? my.ranks - 1 : 0), left = 0;
	static uint32_t out[WORDS], in[PROCESSES_MOST + 16][WORDS];
	for (int at = 0; at < WORDS; at++)
		out[at] = (uint32_t)my.rank;
	for (int at = 0; at < expected; at++, left++) {
		int from = at < count ? (my.rank - distances[at] + my.ranks) % my.ranks : at - count + 1;
		OK_WHEN_ROOM(fi_trecv(my.ep, in[at], sizeof in[at], NULL, FI_ADDR_UNSPEC, (uint64_t)from << 1 | (at >= count), 0, NULL));
	}
	for (int at = 0; at < count + (my.rank != 0); at++, left++) {
		int to = at < count ? (my.rank + distances[at]) % my.ranks : 0;
		OK_WHEN_ROOM(fi_tsend(my.ep, out, sizeof out, NULL, addresses[to], (uint64_t)my.rank << 1 | (at == count), NULL));
	}
	for (long nanoseconds = 10000; left > 0;) {
		struct fi_cq_tagged_entry entry;
		ssize_t got = fi_cq_read(my.cq, &entry, 1);
		if (got == 1) {
			left--;
			nanoseconds = 10000;
		} else if (got == -FI_EAGAIN) {
			nap(&nanoseconds);
		} else {
			next();
		}
	}
	for (int at = 0; at < expected; at++) {
		int from = at < count ? (my.rank - distances[at] + my.ranks) % my.ranks : at - count + 1;
		EQUAL(in[at][0], from);
		EQUAL(in[at][WORDS - 1], from);
	}
}

static void live(void)
{
	size_t length = NAME_BYTES;
	struct wishes plain = {0};
	struct fi_info *hints = hints_for(&plain), *info;
	OK(fi_getinfo(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), NULL, NULL, 0, hints, &info));
	fi_freeinfo(hints);
	fi_freeinfo(info);
	long before = anonymous_memory();
	open_endpoint(&plain);
	OK(fi_getname(&my.ep->fid, common->names[my.rank], &length));
	wait_for(&common->opened, false);
	for (int rank = 0; rank < my.ranks; rank++)
		EQUAL(fi_av_insert(my.av, common->names[rank], 1, &addresses[rank], 0, NULL), 1);
	for (int round = 0; round < ROUNDS; round++)
		exchange();
	wait_for(&common->exchanged, true);
	common->anonymous[my.rank] = anonymous_memory() - before;
	common->shared[my.rank] = shared_memory();
	wait_for(&common->measured, true);
	close_endpoint();
}

static int by_size(const void *one, const void *other)
{
	long a = *(const long *)one, b = *(const long *)other;
	return (a > b) - (a < b);
}

int main(int argc, char **argv)
{
	int failed = 0;
	const char *limit = getenv("TEST_SECONDS");
	my.ranks = argc > 1 ? atoi(argv[1]) : 32;
	long most = argc > 2 ? atol(argv[2]) : 0;
	CHECK(my.ranks > 1 && my.ranks <= PROCESSES_MOST);
	common = mmap(NULL, sizeof *common, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(common != MAP_FAILED);
	pid_t *processes = calloc((size_t)my.ranks, sizeof *processes);
	for (my.rank = 0; my.rank < my.ranks; my.rank++) {
		processes[my.rank] = fork();
		CHECK(processes[my.rank] >= 0);
		if (processes[my.rank] == 0) {
			alarm(limit ? (unsigned)atoi(limit) : 60);
			live();
			_exit(0);
		}
	}
	for (int rank = 0; rank < my.ranks; rank++) {
		int status;
		waitpid(processes[rank], &status, 0);
		printf("pid %d\n", (int)processes[rank]);
		if (!WIFEXITED(status) || WEXITSTATUS(status)) {
			fprintf(stderr, "rank %d ended with status %#x\n", rank, status);
			for (int other = rank + 1; other < my.ranks; other++)
				kill(processes[other], SIGKILL);
			failed = 1;
		}
	}
	long first = common->anonymous[0] + common->shared[0], sums[PROCESSES_MOST];
	for (int rank = 0; rank < my.ranks; rank++)
		sums[rank] = common->anonymous[rank] + common->shared[rank];
	qsort(sums, (size_t)my.ranks, sizeof *sums, by_size);
	printf("%d processes: rank 0 takes %ld bytes, the median %ld, the most %ld; shared memory of the median rank %ld\n", my.ranks,
	       first, sums[my.ranks / 2], sums[my.ranks - 1], common->shared[my.ranks / 2]);
	if (most && sums[my.ranks - 1] > most) {
		fprintf(stderr, "a process takes %ld bytes, and not at most %ld\n", sums[my.ranks - 1], most);
		failed = 1;
	}
	return failed;
}
