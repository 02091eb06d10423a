/* What the test programs share: a few processes, each with one endpoint of the provider `tidegate`, that know each
 * other's addresses. A failed check prints where and what, and ends the process; `main` of the first process then fails
 * too. */
#ifndef HARNESS_H
#define HARNESS_H

#define _GNU_SOURCE

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#define RANKS_MOST 8

/* Libfabric opens its files by this. When a process begins, the verbs provider of Debian's looks through the names of all of
 * the kernel's symbols, twice, for one of them, which takes longer than most of these programs do: here it finds none. */
FILE *fopen(const char *path, const char *mode)
{
	return fopen64(strcmp(path, "/proc/kallsyms") ? path : "/dev/null", mode);
}

#define FAIL(...)                                                          \
	do {                                                               \
		fprintf(stderr, "%s:%d: pid %d: ", __FILE__, __LINE__, (int)getpid()); \
		fprintf(stderr, __VA_ARGS__);                              \
		fputc('\n', stderr);                                       \
		_exit(1);                                                  \
	} while (0)

#define CHECK(condition)                                     \
	do {                                                 \
		if (!(condition))                            \
			FAIL("not true: %s", #condition);    \
	} while (0)

#define EQUAL(left, right)                                                             \
	do {                                                                           \
		long long left_ = (long long)(left), right_ = (long long)(right);      \
		if (left_ != right_)                                                   \
			FAIL("%s is %lld, not %lld (%s)", #left, left_, right_, #right); \
	} while (0)

/* A libfabric call that must succeed. */
#define OK(call)                                                                      \
	do {                                                                          \
		long long result_ = (long long)(call);                                \
		if (result_ < 0)                                                      \
			FAIL("%s: %s", #call, fi_strerror((int)-result_));            \
	} while (0)

/* A libfabric call that must succeed as soon as there is room. It only makes progress, which makes no room in a completion
 * queue: a program whose queue may fill (a peer dies, and all that was under way to it ends in errors) reads the queue
 * itself while it tries again. */
#define OK_WHEN_ROOM(call)                                     \
	do {                                                   \
		ssize_t try_;                                  \
		while ((try_ = (call)) == -FI_EAGAIN)          \
			make_progress();                       \
		if (try_ < 0)                                  \
			FAIL("%s: %s", #call, fi_strerror((int)-try_)); \
	} while (0)

/* The time by a clock. */
static inline double seconds_of(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* One process. */
static struct {
	int rank, ranks;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fid_cntr *counter; /* bound if `counter_flags` */
	fi_addr_t peers[RANKS_MOST]; /* of all processes, this one included */
} my;

/* What a program wants; zero is fine. */
struct wishes {
	uint64_t caps;
	int mr_mode;
	enum fi_threading threading;
	enum fi_progress data_progress;
	enum fi_wait_obj wait;
	enum fi_av_type av_type;
	uint64_t counter_flags;
	uint64_t cq_flags; /* beside FI_TRANSMIT and FI_RECV */
	uint64_t op_flags; /* of sends, by default */
};

static int pipes[RANKS_MOST][RANKS_MOST][2]; /* [from][to] */
static pid_t pids[RANKS_MOST];

static void write_all(int to, const void *bytes, size_t length)
{
	EQUAL(write(pipes[my.rank][to][1], bytes, length), length);
}

static void read_all(int from, void *bytes, size_t length)
{
	size_t done = 0;
	while (done < length) {
		ssize_t got = read(pipes[from][my.rank][0], (char *)bytes + done, length - done);
		CHECK(got > 0);
		done += (size_t)got;
	}
}

/* Called between two looks that found nothing: whoever has looked often without success leaves the processor to others. The
 * tests share two. */
static inline void wait_a_little(int *looks)
{
	if (++*looks > 1000)
		nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

/* The next byte from a rank. Progress goes on meanwhile: what others wait for may still have to leave. */
static inline void hear_from(int other)
{
	struct pollfd quiet = {.fd = pipes[other][my.rank][0], .events = POLLIN};
	int looks = 0;
	char byte;
	while (poll(&quiet, 1, 0) == 0) {
		fi_cq_read(my.cq, NULL, 0);
		wait_a_little(&looks);
	}
	read_all(other, &byte, 1);
}

/* Outside of libfabric: nobody goes on before all `count` first ranks have come here. Progress goes on. */
static inline void meet(int count)
{
	char byte = 0;
	for (int other = 0; other < count; other++)
		if (other != my.rank)
			write_all(other, &byte, 1);
	for (int other = 0; other < count; other++)
		if (other != my.rank)
			hear_from(other);
}

/* The state of a process as the system shows it: 'R' runs, 'S' sleeps, 'T' is stopped. */
static inline char state_of(pid_t pid)
{
	char path[64], text[512];
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	FILE *file = fopen(path, "r");
	CHECK(file && fgets(text, sizeof text, file));
	fclose(file);
	return *(strrchr(text, ')') + 2);
}

/* The bytes that are allocated of the files in /dev/shm that this process made. */
static inline long shared_memory(void)
{
	DIR *folder = opendir("/dev/shm");
	struct dirent *entry;
	char own[32], path[300];
	long bytes = 0;
	CHECK(folder);
	snprintf(own, sizeof own, "-%d-", (int)getpid());
	while ((entry = readdir(folder))) {
		struct stat about;
		snprintf(path, sizeof path, "/dev/shm/%s", entry->d_name);
		if (strstr(entry->d_name, "tidegate") && strstr(entry->d_name, own) && stat(path, &about) == 0)
			bytes += 512L * about.st_blocks;
	}
	closedir(folder);
	return bytes;
}

/* How often the thread of this process with this name has gone to sleep. There has to be one. */
static inline long naps_of(const char *name)
{
	long count = -1;
	struct dirent *entry;
	DIR *tasks = opendir("/proc/self/task");
	CHECK(tasks);
	while ((entry = readdir(tasks))) {
		char path[300], line[200], own[200];
		snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
		FILE *file = fopen(path, "r");
		bool is_meant = false;
		while (file && fgets(line, sizeof line, file)) {
			is_meant |= sscanf(line, "Name:\t%199s", own) == 1 && !strcmp(own, name);
			if (is_meant)
				sscanf(line, "voluntary_ctxt_switches: %ld", &count);
		}
		if (file)
			fclose(file);
	}
	closedir(tasks);
	CHECK(count >= 0);
	return count;
}

static struct fi_info *hints_for(const struct wishes *wishes)
{
	struct fi_info *hints = fi_allocinfo();
	CHECK(hints);
	hints->fabric_attr->prov_name = strdup("tidegate");
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = wishes->caps ? wishes->caps : FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV | FI_SOURCE;
	hints->tx_attr->op_flags = wishes->op_flags;
	hints->domain_attr->mr_mode = wishes->mr_mode;
	hints->domain_attr->threading = wishes->threading;
	hints->domain_attr->data_progress = wishes->data_progress;
	hints->domain_attr->av_type = wishes->av_type;
	return hints;
}

/* `fabric`: one that is open already, or null. */
static inline void open_endpoint_on(struct fid_fabric *fabric, const struct wishes *wishes)
{
	struct fi_info *hints = hints_for(wishes);
	struct fi_av_attr av_attr = {.type = FI_AV_UNSPEC, .count = (size_t)my.ranks};
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = wishes->wait};

	OK(fi_getinfo(FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION), NULL, NULL, 0, hints, &my.info));
	fi_freeinfo(hints);
	my.fabric = fabric;
	if (!fabric)
		OK(fi_fabric(my.info->fabric_attr, &my.fabric, NULL));
	OK(fi_domain(my.fabric, my.info, &my.domain, NULL));
	OK(fi_av_open(my.domain, &av_attr, &my.av, NULL));
	OK(fi_cq_open(my.domain, &cq_attr, &my.cq, NULL));
	OK(fi_endpoint(my.domain, my.info, &my.ep, NULL));
	OK(fi_ep_bind(my.ep, &my.av->fid, 0));
	OK(fi_ep_bind(my.ep, &my.cq->fid, FI_TRANSMIT | FI_RECV | wishes->cq_flags));
	if (wishes->counter_flags) {
		struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC};
		OK(fi_cntr_open(my.domain, &attr, &my.counter, NULL));
		OK(fi_ep_bind(my.ep, &my.counter->fid, wishes->counter_flags));
	}
	OK(fi_enable(my.ep));
}

static inline void open_endpoint(const struct wishes *wishes)
{
	open_endpoint_on(NULL, wishes);
}

static inline void exchange_names(void)
{
	char name[64] = {0};
	size_t length = sizeof name;
	OK(fi_getname(&my.ep->fid, name, &length));
	CHECK(length <= sizeof name);
	for (int other = 0; other < my.ranks; other++)
		if (other != my.rank)
			write_all(other, name, sizeof name);
	for (int other = 0; other < my.ranks; other++) {
		char theirs[64];
		if (other == my.rank)
			memcpy(theirs, name, sizeof name);
		else
			read_all(other, theirs, sizeof theirs);
		EQUAL(fi_av_insert(my.av, theirs, 1, &my.peers[other], 0, NULL), 1);
	}
}

static inline void close_endpoint(void)
{
	OK(fi_close(&my.ep->fid));
	if (my.counter)
		OK(fi_close(&my.counter->fid));
	OK(fi_close(&my.cq->fid));
	OK(fi_close(&my.av->fid));
	OK(fi_close(&my.domain->fid));
	OK(fi_close(&my.fabric->fid));
	fi_freeinfo(my.info);
}

/* Gives this process a /dev/shm of its own, if the environment has TEST_APART: by that it is on another host than the
 * other ranks, and reaches them by the network. */
static inline void live_apart(void)
{
	if (!getenv("TEST_APART"))
		return;
	if (unshare(CLONE_NEWNS) && unshare(CLONE_NEWUSER | CLONE_NEWNS))
		FAIL("no mount namespace of its own: %s", strerror(errno));
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) || mount("tmpfs", "/dev/shm", "tmpfs", 0, NULL))
		FAIL("no /dev/shm of its own: %s", strerror(errno));
}

/* Runs `body` in `ranks` processes. Returns what `main` should: whether all of them ended well, but for `victim`, which
 * is to die by SIGKILL (-1: nobody is). */
static inline int run(int ranks, const struct wishes *wishes, void (*body)(void), int victim)
{
	int failed = 0;
	/* A hanging test is a failing test. */
	const char *limit = getenv("TEST_SECONDS");
	for (int from = 0; from < ranks; from++)
		for (int to = 0; to < ranks; to++)
			if (pipe(pipes[from][to]))
				return 1;
	for (int rank = 0; rank < ranks; rank++) {
		pids[rank] = fork();
		if (pids[rank] == 0) {
			alarm(limit ? (unsigned)atoi(limit) : 60);
			my.rank = rank;
			my.ranks = ranks;
			live_apart();
			open_endpoint(wishes);
			exchange_names();
			body();
			close_endpoint();
			_exit(0);
		}
	}
	for (int rank = 0; rank < ranks; rank++) {
		int status;
		waitpid(pids[rank], &status, 0);
		printf("pid %d\n", (int)pids[rank]);
		bool as_expected = rank == victim ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
						  : WIFEXITED(status) && WEXITSTATUS(status) == 0;
		if (!as_expected) {
			fprintf(stderr, "rank %d ended with status %#x\n", rank, status);
			failed = 1;
			for (int other = 0; other < ranks; other++)
				kill(pids[other], SIGKILL);
		}
	}
	return failed;
}

/* 0 says that there is something to read: the other side may be ahead of us. */
static inline void make_progress(void)
{
	ssize_t got = fi_cq_read(my.cq, NULL, 0);
	CHECK(got == 0 || got == -FI_EAGAIN);
}

/* The next completion, which must be a success. */
static inline struct fi_cq_tagged_entry next_from(fi_addr_t *source)
{
	struct fi_cq_tagged_entry entry;
	for (;;) {
		ssize_t got = fi_cq_readfrom(my.cq, &entry, 1, source);
		if (got == 1)
			return entry;
		if (got == -FI_EAVAIL) {
			struct fi_cq_err_entry error = {0};
			EQUAL(fi_cq_readerr(my.cq, &error, 0), 1);
			FAIL("unexpected error completion: %s", fi_strerror(error.err));
		}
		EQUAL(got, -FI_EAGAIN);
	}
}

static inline struct fi_cq_tagged_entry next(void)
{
	fi_addr_t source;
	return next_from(&source);
}

/* The next completion, which must be an error. `text` has room for 256 bytes. */
static inline struct fi_cq_err_entry next_error(char *text)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error = {0};
	ssize_t got;
	while ((got = fi_cq_read(my.cq, &entry, 1)) == -FI_EAGAIN)
		;
	EQUAL(got, -FI_EAVAIL);
	error.err_data = text;
	error.err_data_size = 256;
	EQUAL(fi_cq_readerr(my.cq, &error, 0), 1);
	return error;
}

/* Looks of one kind, such as reads that are to find nothing: 1,000, or for 5 ms, but ten at least, since each may let
 * every other process of a busy machine run first. */
#define LOOK_OFTEN                                                                                                     \
	for (double begun_ = seconds_of(CLOCK_MONOTONIC), look_ = 0;                                                   \
	     look_ < 10 || (look_ < 1000 && seconds_of(CLOCK_MONOTONIC) - begun_ < 0.005); look_++)

/* Nothing is completed, however long we look. */
static inline void nothing_completes(void)
{
	struct fi_cq_tagged_entry entry;
	LOOK_OFTEN
		EQUAL(fi_cq_read(my.cq, &entry, 1), -FI_EAGAIN);
}

/* Reads until each of `contexts` has completed. */
static inline void complete(int count, void **contexts)
{
	bool seen[16] = {false};
	for (int done = 0; done < count; done++) {
		struct fi_cq_tagged_entry entry = next();
		int which = 0;
		while (which < count && (seen[which] || contexts[which] != entry.op_context))
			which++;
		CHECK(which < count);
		seen[which] = true;
	}
}

/* Rank 0 has had an answer from rank 1. Nothing can be injected to a peer of another host before it has answered, and
 * who makes no progress does not answer. */
static inline void get_to_know(void)
{
	char greeting;
	if (my.rank == 0)
		OK_WHEN_ROOM(fi_tinject(my.ep, "", 1, my.peers[1], 2));
	else
		OK_WHEN_ROOM(fi_trecv(my.ep, &greeting, 1, NULL, my.peers[0], 2, 0, NULL));
	meet(2);
	if (my.rank == 1)
		next();
}

static inline void fill(unsigned char *bytes, size_t length, unsigned seed)
{
	for (size_t i = 0; i < length; i++)
		bytes[i] = (unsigned char)(seed * 31 + i * 7 + (i >> 8));
}

static inline void check_filled(const unsigned char *bytes, size_t length, unsigned seed)
{
	for (size_t i = 0; i < length; i++)
		if (bytes[i] != (unsigned char)(seed * 31 + i * 7 + (i >> 8)))
			FAIL("byte %zu of %zu is wrong", i, length);
}

#endif
