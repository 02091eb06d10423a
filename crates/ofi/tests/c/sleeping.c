/* Who may sleep, and who must not: a process with work that only it can do goes on with it, however it waits; a process
 * that waits for others sleeps, even with sends waiting. Sleeps are counted, not timed. */
#include "harness.h"
#include <sys/mman.h>

enum { LONG_BYTES = 64 << 20, BLOCKED_SENDS = 100 };

/* Waits for a completion as an application does that sleeps on the descriptor. Returns how often it slept. */
static int sleeps_until_completion(void)
{
	struct fi_cq_tagged_entry entry;
	struct fid *fids[1] = {&my.cq->fid};
	int descriptor, sleeps = 0;
	OK(fi_control(&my.cq->fid, FI_GETWAIT, &descriptor));
	while (fi_cq_read(my.cq, &entry, 1) == -FI_EAGAIN) {
		struct pollfd sleep = {.fd = descriptor, .events = POLLIN};
		if (fi_trywait(my.fabric, fids, 1) != 0)
			continue;
		sleeps++;
		CHECK(poll(&sleep, 1, -1) >= 0);
	}
	return sleeps;
}

/* A direct transfer takes many calls of progress, of which nobody can make any but the receiver. */
static void transfer(void)
{
	unsigned char *bytes = mmap(NULL, LONG_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	fi_addr_t peer = my.peers[1 - my.rank];
	CHECK(bytes != MAP_FAILED);
	if (my.rank == 0) {
		memset(bytes, 7, LONG_BYTES);
		OK_WHEN_ROOM(fi_tsend(my.ep, bytes, LONG_BYTES, NULL, peer, 1, NULL));
		/* The other side finds all it needs. */
		meet(2);
		next();
		return;
	}
	meet(2);
	OK_WHEN_ROOM(fi_trecv(my.ep, bytes, LONG_BYTES, NULL, peer, 1, 0, NULL));
	int sleeps = sleeps_until_completion();
	CHECK(bytes[LONG_BYTES - 1] == 7);
	/* The sender may have to be asked whether its memory can be read, or for the first piece. */
	if (sleeps > 3)
		FAIL("slept %d times in one transfer, in which nobody else had anything to do", sleeps);
}

/* Rank 0 blocks with sends that have to wait for credits. Rank 1 receives none of them before it has seen rank 0 asleep
 * many times. If rank 0 polled instead, it would never be seen asleep, and the test would fail. */
static void blocked(void)
{
	fi_addr_t peer = my.peers[1 - my.rank];
	struct fi_cq_tagged_entry entry;
	int number = 0;
	if (my.rank == 0) {
		OK_WHEN_ROOM(fi_trecv(my.ep, &number, sizeof number, NULL, peer, 2, 0, NULL));
		for (int i = 0; i < BLOCKED_SENDS; i++)
			OK_WHEN_ROOM(fi_tinject(my.ep, &i, sizeof i, peer, 1));
		pid_t own = getpid();
		write_all(1, &own, sizeof own);
		EQUAL(fi_cq_sread(my.cq, &entry, 1, NULL, -1), 1);
		EQUAL(number, BLOCKED_SENDS);
		return;
	}
	pid_t sleeper;
	read_all(0, &sleeper, sizeof sleeper);
	for (int seen = 0, looked = 0; seen < 100; looked++) {
		seen += state_of(sleeper) == 'S';
		nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
		if (looked == 20000)
			FAIL("rank 0 waits with sends queued, and was seen asleep only %d times of %d", seen, looked);
	}
	for (int i = 0; i < BLOCKED_SENDS; i++) {
		OK_WHEN_ROOM(fi_trecv(my.ep, &number, sizeof number, NULL, peer, 1, 0, NULL));
		next();
		EQUAL(number, i);
	}
	number = BLOCKED_SENDS;
	OK_WHEN_ROOM(fi_tinject(my.ep, &number, sizeof number, peer, 2));
}

static void body(void)
{
	transfer();
	meet(2);
	blocked();
	meet(2);
}

int main(void)
{
	return run(2, &(struct wishes){.wait = FI_WAIT_FD}, body, -1);
}
