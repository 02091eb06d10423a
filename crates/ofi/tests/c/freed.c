/* A process closes a memory region, or its endpoint, while a peer writes there, and uses the memory for something else:
 * nothing of the peer's is in it, however the two came together. */
#include "harness.h"
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>

/* A write takes some milliseconds. */
enum { SIZE = 16 << 20, KEY = 7, ROUNDS = 6 };
static unsigned char *memory;

/* Nothing but zeros is there, and stays there for longer than a write takes. */
static void check_untouched(void)
{
	memset(memory, 0, SIZE);
	for (int look = 0; look < 2; look++) {
		nanosleep(&(struct timespec){.tv_nsec = 8000000}, NULL);
		for (size_t at = 0; at < SIZE / 8; at++)
			if (((volatile uint64_t *)memory)[at] != 0)
				FAIL("byte %zu was written after the memory had been given back", 8 * at);
	}
}

/* Writes once. Returns the error, or 0. */
static int write_to(fi_addr_t owner)
{
	struct fi_cq_tagged_entry entry;
	char text[256];
	ssize_t outcome;
	while ((outcome = fi_write(my.ep, memory, SIZE, NULL, owner, 0, KEY, memory)) == -FI_EAGAIN)
		fi_cq_read(my.cq, NULL, 0);
	if (outcome < 0)
		return (int)-outcome;
	while ((outcome = fi_cq_read(my.cq, &entry, 1)) == -FI_EAGAIN)
		;
	return outcome == -FI_EAVAIL ? next_error(text).err : 0;
}

/* Writes until that is refused, because the region or the endpoint is no more. */
static int write_until_refused(void)
{
	int error;
	while ((error = write_to(my.peers[0])) == 0)
		;
	return error;
}

/* fi_tidegate(7): "fi_close(3) of a memory region waits until no peer copies to or from it, and that of an endpoint until
 * no peer of this host copies to or from its memory."
 *
 * fi_tidegate(7): "From then on nothing of a peer's comes into the memory, and the application may free it."
 */
static void regions(void)
{
	for (int round = 0; round < ROUNDS; round++) {
		struct fid_mr *region;
		if (my.rank == 0)
			OK(fi_mr_reg(my.domain, memory, SIZE, FI_REMOTE_WRITE, 0, KEY, 0, &region, NULL));
		meet(2);
		if (my.rank == 0) {
			/* At another moment of a write each time. */
			nanosleep(&(struct timespec){.tv_nsec = 10000000 + 700000 * round}, NULL);
			OK(fi_close(&region->fid));
			check_untouched();
		} else {
			EQUAL(write_until_refused(), FI_EACCES);
		}
		meet(2);
	}
}

/* The region stays open: it is its domain's. */
static void endpoint(void)
{
	struct fid_mr *region;
	if (my.rank == 0)
		OK(fi_mr_reg(my.domain, memory, SIZE, FI_REMOTE_WRITE, 0, KEY, 0, &region, NULL));
	meet(2);
	if (my.rank == 0) {
		nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
		OK(fi_close(&my.ep->fid));
		check_untouched();
		OK(fi_close(&region->fid));
		OK(fi_endpoint(my.domain, my.info, &my.ep, NULL));
	} else {
		EQUAL(write_until_refused(), FI_ECONNABORTED);
	}
}

/* The process of the writer. */
static _Atomic pid_t *writer;
static atomic_bool is_closed;

static void *close_region(void *region)
{
	OK(fi_close(region));
	is_closed = true;
	return NULL;
}

/* An endpoint that opens while a region is being closed does not let the peer reach it either. */
static void open_late(struct fid_ep **late)
{
	OK(fi_endpoint(my.domain, my.info, late, NULL));
	OK(fi_ep_bind(*late, &my.av->fid, 0));
	OK(fi_ep_bind(*late, &my.cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(*late));
}

static void look_through(struct fid_ep *late)
{
	char name[64] = {0};
	size_t length = sizeof name;
	fi_addr_t address;
	if (my.rank == 0) {
		OK(fi_getname(&late->fid, name, &length));
		write_all(1, name, sizeof name);
		hear_from(1);
		OK(fi_close(&late->fid));
	} else {
		read_all(0, name, sizeof name);
		EQUAL(fi_av_insert(my.av, name, 1, &address, 0, NULL), 1);
		EQUAL(write_to(address), FI_EACCES);
		OK(fi_av_remove(my.av, &address, 1, 0));
		write_all(0, "", 1);
	}
}

/* fi_tidegate(7): "Other threads of the domain go on meanwhile."
 *
 * The peer is stopped, most times amid a write. */
static void stopped(void)
{
	struct fi_cq_tagged_entry entry;
	struct fid_mr *region;
	for (int round = 0, waited = 0; round < 20; round++) {
		if (my.rank == 0)
			OK(fi_mr_reg(my.domain, memory, SIZE, FI_REMOTE_WRITE, 0, KEY, 0, &region, NULL));
		else
			*writer = getpid();
		meet(2);
		if (my.rank == 1) {
			EQUAL(write_until_refused(), FI_EACCES);
			meet(2);
			look_through(NULL);
			continue;
		}
		pthread_t closing;
		nanosleep(&(struct timespec){.tv_nsec = 15000000}, NULL);
		OK(kill(*writer, SIGSTOP));
		is_closed = false;
		EQUAL(pthread_create(&closing, NULL, close_region, &region->fid), 0);
		nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
		struct fid_ep *late;
		open_late(&late);
		int calls = 0;
		for (; !is_closed && calls < 50; calls++)
			EQUAL(fi_cq_read(my.cq, &entry, 1), -FI_EAGAIN);
		waited += calls == 50 && !is_closed;
		OK(kill(*writer, SIGCONT));
		EQUAL(pthread_join(closing, NULL), 0);
		check_untouched();
		meet(2);
		look_through(late);
		CHECK(round < 19 || waited > 0);
	}
}

static const char *part = "";

static void body(void)
{
	memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(memory != MAP_FAILED);
	memset(memory, 9, SIZE);
	if (!strcmp(part, "stopped"))
		return stopped();
	regions();
	endpoint();
}

int main(int count, char **arguments)
{
	part = count > 1 ? arguments[1] : "";
	writer = mmap(NULL, sizeof *writer, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(writer != MAP_FAILED);
	return run(2, &(struct wishes){.threading = FI_THREAD_SAFE}, body, -1);
}
