/* Memory that its own process uses and that the system copies nothing out of or into for another process (a device's
 * mapping, memfd_secret): messages out of it arrive, and remote reads and writes of it succeed, by another way than
 * others. Memory that is none fails the operation of the process that named it. Run `secret` with every way of bulk
 * data, `wrong` with FI_TIDEGATE_BULK=direct, where no process copies by itself. */
#include "harness.h"
#include <sys/mman.h>
#include <sys/syscall.h>

#ifndef SYS_memfd_secret
#define SYS_memfd_secret 447
#endif

enum { HALF = 1 << 20, ALL = 2 * HALF, ROUNDS = 24 };
static unsigned char *memory, *ordinary;
static int other;

/* Memory whose second half only this process reaches. */
static unsigned char *half_secret(void)
{
	int file = (int)syscall(SYS_memfd_secret, 0);
	CHECK(file >= 0 && ftruncate(file, HALF) == 0);
	unsigned char *all = mmap(NULL, ALL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(all != MAP_FAILED);
	if (mmap(all + HALF, HALF, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED)
		FAIL("secret memory: %s", strerror(errno));
	close(file);
	return all;
}

static bool has_secret_memory(void)
{
	int file = (int)syscall(SYS_memfd_secret, 0);
	bool has = file >= 0 && ftruncate(file, HALF) == 0;
	void *all = has ? mmap(NULL, HALF, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
	close(file);
	return all != MAP_FAILED && munmap(all, HALF) == 0;
}

/* Messages whose first part may have been copied when the rest turns out to be out of reach. Now the receive comes
 * first, now the message. */
static void messages(size_t length, bool into_secret)
{
	unsigned char *from = memory + HALF - length / 4, *into = into_secret ? from : ordinary;
	for (unsigned round = 0; round < ROUNDS; round++) {
		bool receive_is_first = round % 2;
		if (my.rank == 0) {
			fill(from, length, round);
			if (receive_is_first)
				meet(2);
			OK_WHEN_ROOM(fi_tsend(my.ep, from, length, NULL, my.peers[1], round, from));
			if (!receive_is_first)
				meet(2);
			CHECK(next().op_context == from);
		} else {
			memset(into, 0, length);
			if (!receive_is_first)
				meet(2);
			OK_WHEN_ROOM(fi_trecv(my.ep, into, length, NULL, my.peers[0], round, 0, into));
			if (receive_is_first)
				meet(2);
			EQUAL(next().len, length);
			check_filled(into, length, round);
		}
	}
	meet(2);
}

/* Each rank reads and writes the other's memory. */
static void remote_operations(void)
{
	struct fid_mr *region;
	size_t length = HALF / 2;
	uint64_t at = HALF - length / 2;
	unsigned mine = 40 + (unsigned)my.rank, theirs = 40 + (unsigned)other;
	OK(fi_mr_reg(my.domain, memory, ALL, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 7, 0, &region, NULL));
	fill(memory + at, length, mine);
	meet(2);
	OK_WHEN_ROOM(fi_read(my.ep, ordinary, length, NULL, my.peers[other], at, 7, ordinary));
	CHECK(next().op_context == ordinary);
	check_filled(ordinary, length, theirs);
	meet(2);
	fill(ordinary, length, 2 * mine);
	OK_WHEN_ROOM(fi_write(my.ep, ordinary, length, NULL, my.peers[other], at, 7, ordinary));
	CHECK(next().op_context == ordinary);
	meet(2);
	check_filled(memory + at, length, 2 * theirs);
	meet(2);
	OK(fi_close(&region->fid));
}

static void secret(void)
{
	other = 1 - my.rank;
	memory = half_secret();
	ordinary = malloc(ALL);
	CHECK(ordinary);
	static const size_t lengths[] = {3000, 20000, 65536, HALF};
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
		for (int into_secret = 0; into_secret < 2; into_secret++)
			messages(lengths[i], into_secret);
	remote_operations();
}

/* The receiver's own memory is none from the middle on: its receive fails, its process does not, and what follows is
 * received. */
static void wrong(void)
{
	char text[256];
	other = 1 - my.rank;
	memory = mmap(NULL, ALL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(memory != MAP_FAILED);
	if (my.rank == 0)
		fill(memory, ALL, 1);
	else
		EQUAL(mprotect(memory + HALF, HALF, PROT_NONE), 0);
	for (int round = 0; round < 5; round++) {
		if (my.rank == 0)
			OK_WHEN_ROOM(fi_tsend(my.ep, memory, ALL, NULL, my.peers[1], 1, memory));
		else
			OK_WHEN_ROOM(fi_trecv(my.ep, memory, ALL, NULL, my.peers[0], 1, 0, memory));
		EQUAL(next_error(text).err, FI_EFAULT);
		meet(2);
	}
	if (my.rank == 0)
		OK_WHEN_ROOM(fi_tsend(my.ep, memory, HALF, NULL, my.peers[1], 2, memory));
	else
		OK_WHEN_ROOM(fi_trecv(my.ep, memory, HALF, NULL, my.peers[0], 2, 0, memory));
	EQUAL(next().len, HALF);
	if (my.rank == 1)
		check_filled(memory, HALF, 1);
	meet(2);
}

int main(int count, char **arguments)
{
	CHECK(count == 2);
	if (strcmp(arguments[1], "wrong") == 0)
		return run(2, &(struct wishes){0}, wrong, -1);
	if (!has_secret_memory()) {
		printf("SKIPPED: this system has no memfd_secret(2), or too little memory may be locked\npid 0\n");
		return 0;
	}
	return run(2, &(struct wishes){0}, secret, -1);
}
