/* Short reads and writes of a peer's memory that follow each other without a look at the completion queue take few
 * system calls, and each of them ends as it would alone: counted by taking the place of the system's own functions.
 * `refused`: the system refuses to write to several places, as that of a container may. With FI_TIDEGATE_PROGRESS=calls
 * no thread ends a row, so the calls are the same each time. */
#include "harness.h"
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum { COUNT = 2000, STEP = 12, BYTES = COUNT * STEP, KEY = 7, OTHER = 8, SECRET = 9, PAGE = 4096 };
static unsigned char *theirs; /* what the peer reads and writes */
static uint32_t here[COUNT];
static int calls, single_writes, other;
static bool refused, only_calls;

ssize_t process_vm_readv(pid_t pid, const struct iovec *local, unsigned long ours, const struct iovec *remote, unsigned long places,
			 unsigned long flags)
{
	calls++;
	return syscall(SYS_process_vm_readv, pid, local, ours, remote, places, flags);
}

ssize_t process_vm_writev(pid_t pid, const struct iovec *local, unsigned long ours, const struct iovec *remote, unsigned long places,
			  unsigned long flags)
{
	calls++;
	if (refused) {
		errno = EPERM;
		return -1;
	}
	return syscall(SYS_process_vm_writev, pid, local, ours, remote, places, flags);
}

ssize_t pwritev64(int file, const struct iovec *local, int count, off64_t at)
{
	calls++;
	single_writes++;
	return syscall(SYS_pwritev, file, local, count, at, 0);
}

ssize_t pwritev(int file, const struct iovec *local, int count, off_t at)
{
	return pwritev64(file, local, count, at);
}

static ssize_t reads(int at, uint64_t place, uint64_t key)
{
	return fi_read(my.ep, &here[at], 4, NULL, my.peers[other], place, key, &here[at]);
}

static ssize_t writes(int at)
{
	return fi_write(my.ep, &here[at], 4, NULL, my.peers[other], (uint64_t)at * STEP, KEY, &here[at]);
}

/* `count` operations succeed, each once, in whatever order. */
static void all_complete(int count)
{
	static unsigned char seen[COUNT];
	memset(seen, 0, sizeof seen);
	for (int i = 0; i < count; i++) {
		size_t at = (size_t)((uint32_t *)next().op_context - here);
		CHECK(at < COUNT && !seen[at]++);
	}
}

/* Rank 0 reads and writes every third integer of rank 1's memory. */
static void rows(void)
{
	if (my.rank == 0) {
		for (int at = 0; at < COUNT; at++)
			OK_WHEN_ROOM(reads(at, (uint64_t)at * STEP, KEY));
		all_complete(COUNT);
		for (int at = 0; at < COUNT; at++)
			EQUAL(here[at], at * 7u);
		int of_reads = calls;
		for (int at = 0; at < COUNT; at++)
			here[at] = (uint32_t)at * 9;
		for (int at = 0; at < COUNT; at++)
			OK_WHEN_ROOM(writes(at));
		all_complete(COUNT);
		printf("%d and %d system calls for %d accesses each, %d of them for one write each\n", of_reads, calls - of_reads, COUNT,
		       single_writes);
		fflush(stdout);
		/* The first of all tries whether memory is reached. Four go at once, the others by 256; where nothing is reached directly
		 * there are none. A thread may end a row early. */
		int most = only_calls ? 14 : COUNT / 10;
		CHECK(of_reads <= most && (refused || calls - of_reads <= most));
		CHECK(!refused || single_writes >= COUNT);
	}
	meet(2);
	for (int at = 0; my.rank == 1 && at < COUNT; at++) {
		uint32_t words[3];
		memcpy(words, theirs + at * STEP, sizeof words);
		CHECK(words[0] == (uint32_t)at * 9 && words[1] == 0xdddddddd && words[2] == 0xdddddddd);
	}
	meet(2);
}

/* What a row begins ends although its process does not call, nor its target: rank 1 sees the last word change. By message it
 * would have to call. */
static void silence(void)
{
	if (my.rank == 0) {
		memset(here, 0xab, sizeof here);
		for (int at = 0; at < 40; at++)
			OK_WHEN_ROOM(writes(at));
		char byte;
		read_all(1, &byte, 1);
		all_complete(40);
	} else {
		volatile uint32_t *last = (uint32_t *)(theirs + 39 * STEP);
		int looks = 0;
		while (*last != 0xabababab)
			wait_a_little(&looks);
		write_all(0, "", 1);
	}
	meet(2);
}

/* Rank 1 closes a region while reads of it wait: those fail, and what waits with them does not. */
static void revoked(struct fid_mr *region)
{
	char text[256];
	/* A thread might carry them out before. */
	if (!only_calls)
		return;
	if (my.rank == 0) {
		for (int at = 0; at < 40; at++)
			OK_WHEN_ROOM(reads(at, (uint64_t)at * STEP, at == 30 ? OTHER : KEY));
		write_all(1, "", 1);
		char byte;
		read_all(1, &byte, 1);
		for (int i = 0; i < 40; i++) {
			struct fi_cq_tagged_entry entry;
			struct fi_cq_err_entry error = {0};
			ssize_t outcome;
			while ((outcome = fi_cq_read(my.cq, &entry, 1)) == -FI_EAGAIN)
				;
			if (outcome == -FI_EAVAIL) {
				error = next_error(text);
				CHECK(error.op_context == &here[30] && error.err == FI_EACCES);
			} else {
				CHECK(outcome == 1 && entry.op_context != &here[30]);
			}
		}
	} else {
		char byte;
		read_all(0, &byte, 1);
		OK(fi_close(&region->fid));
		write_all(0, "", 1);
	}
	meet(2);
}

/* A page in the middle that its own process alone may use: what lies there is read by message, by another way than the
 * rest. */
static void hole(void)
{
	if (my.rank == 0) {
		memset(here, 0, sizeof here);
		for (int at = 0; at < 40; at++)
			OK_WHEN_ROOM(reads(at, (uint64_t)at * (3 * PAGE / 40), SECRET));
		all_complete(40);
		for (int at = 0; at < 40; at++)
			EQUAL(here[at], 0x5e5e5e5e);
	}
	meet(2);
}

/* Three pages, the second of which the system reaches for its own process only. Where there is no such memory it is like
 * the others. */
static unsigned char *three_pages(void)
{
	unsigned char *pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(pages != MAP_FAILED);
#ifdef SYS_memfd_secret
	int file = (int)syscall(SYS_memfd_secret, 0);
	if (file >= 0) {
		CHECK(ftruncate(file, PAGE) == 0);
		if (mmap(pages + PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED)
			CHECK(mmap(pages + PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
		close(file);
	}
#endif
	memset(pages, 0x5e, 3 * PAGE);
	return pages;
}

/* Rank 0 closes its endpoint while writes wait: they are in place then, or by message they lie in the mailbox of rank 1. */
static void closing(void)
{
	memset(here, 0xcd, sizeof here);
	for (int at = 0; at < 40; at++)
		OK_WHEN_ROOM(writes(at));
}

static bool all_in_place(void)
{
	for (int at = 0; at < 40; at++)
		for (int i = 0; i < 4; i++)
			if (theirs[at * STEP + i] != 0xcd)
				return false;
	return true;
}

static void body(void)
{
	struct fid_mr *region, *second, *secret;
	other = 1 - my.rank;
	theirs = malloc(BYTES);
	unsigned char *pages = three_pages();
	CHECK(theirs);
	memset(theirs, 0xdd, BYTES);
	for (uint32_t at = 0; at < COUNT; at++) {
		uint32_t value = at * 7;
		memcpy(theirs + at * STEP, &value, sizeof value);
	}
	OK(fi_mr_reg(my.domain, theirs, BYTES, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &region, NULL));
	OK(fi_mr_reg(my.domain, theirs, BYTES, FI_REMOTE_READ, 0, OTHER, 0, &second, NULL));
	OK(fi_mr_reg(my.domain, pages, 3 * PAGE, FI_REMOTE_READ, 0, SECRET, 0, &secret, NULL));
	meet(2);
	rows();
	const char *bulk = getenv("FI_TIDEGATE_BULK");
	bool is_direct = !bulk || strcmp(bulk, "mailbox");
	if (is_direct && !only_calls)
		silence();
	hole();
	revoked(second);
	if (my.rank == 0 || !only_calls)
		OK(fi_close(&second->fid));
	if (my.rank == 0) {
		OK(fi_close(&region->fid));
		OK(fi_close(&secret->fid));
		closing();
		close_endpoint();
		write_all(1, "", 1);
		_exit(0);
	}
	hear_from(0);
	int looks = 0;
	while (!is_direct && !all_in_place()) {
		fi_cq_read(my.cq, NULL, 0);
		wait_a_little(&looks);
	}
	CHECK(all_in_place());
	OK(fi_close(&region->fid));
	OK(fi_close(&secret->fid));
}

int main(int count, char **arguments)
{
	const char *progress = getenv("FI_TIDEGATE_PROGRESS");
	refused = count == 2 && strcmp(arguments[1], "refused") == 0;
	only_calls = progress && strcmp(progress, "calls") == 0;
	return run(2, &(struct wishes){0}, body, -1);
}
