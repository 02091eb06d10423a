/* Sleeping until something completes: blocking reads, descriptors, signals. A thread that is never woken runs into the
 * alarm of the harness; one that is woken only by the provider's own alarm, every 200 ms, sleeps long in every
 * round. */
#include "harness.h"
#include <pthread.h>

enum { ROUNDS = 50 };

static int long_sleeps;

static long milliseconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void pause_a_little(void)
{
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

/* Ping-pong in which one side is always asleep when the other sends. */
static void blocking_reads(void)
{
	fi_addr_t peer = my.peers[1 - my.rank];
	for (int i = 0; i < ROUNDS; i++) {
		struct fi_cq_tagged_entry entry;
		int number = -1;
		if (my.rank == i % 2) {
			pause_a_little();
			OK_WHEN_ROOM(fi_tinject(my.ep, &i, sizeof i, peer, 1));
			continue;
		}
		OK_WHEN_ROOM(fi_trecv(my.ep, &number, sizeof number, NULL, peer, 1, 0, NULL));
		long start = milliseconds();
		EQUAL(fi_cq_sread(my.cq, &entry, 1, NULL, -1), 1);
		long_sleeps += milliseconds() - start > 150;
		EQUAL(number, i);
	}
	struct fi_cq_tagged_entry entry;
	EQUAL(fi_cq_sread(my.cq, &entry, 1, NULL, 30), -FI_EAGAIN);
}

static void descriptors(void)
{
	fi_addr_t peer = my.peers[1 - my.rank];
	int descriptor = -1;
	OK(fi_control(&my.cq->fid, FI_GETWAIT, &descriptor));
	CHECK(descriptor >= 0);
	for (int i = 0; i < ROUNDS; i++) {
		struct fi_cq_tagged_entry entry;
		struct fid *fids[1] = {&my.cq->fid};
		int number = -1;
		if (my.rank == i % 2) {
			pause_a_little();
			OK_WHEN_ROOM(fi_tinject(my.ep, &i, sizeof i, peer, 1));
			continue;
		}
		OK_WHEN_ROOM(fi_trecv(my.ep, &number, sizeof number, NULL, peer, 1, 0, NULL));
		long start = milliseconds();
		while (fi_cq_read(my.cq, &entry, 1) == -FI_EAGAIN) {
			int may = fi_trywait(my.fabric, fids, 1);
			if (may == 0) {
				struct pollfd sleep = {.fd = descriptor, .events = POLLIN};
				CHECK(poll(&sleep, 1, -1) >= 0);
			} else {
				EQUAL(may, -FI_EAGAIN);
			}
		}
		long_sleeps += milliseconds() - start > 150;
		EQUAL(number, i);
	}
}

static void *signal_later(void *unused)
{
	(void)unused;
	pause_a_little();
	OK(fi_cq_signal(my.cq));
	return NULL;
}

static void signals(void)
{
	struct fi_cq_tagged_entry entry;
	pthread_t thread;
	EQUAL(pthread_create(&thread, NULL, signal_later, NULL), 0);
	EQUAL(fi_cq_sread(my.cq, &entry, 1, NULL, -1), -FI_EAGAIN);
	pthread_join(thread, NULL);
}

/* A signal ends one sleep on the descriptor, the present one or the next, and no more. (The provider's alarm may make
 * the descriptor ready now and then, so one quiet round of many is enough.) */
static void one_signal_ends_one_sleep(void)
{
	struct fid *fids[1] = {&my.cq->fid};
	struct pollfd sleep = {.events = POLLIN};
	int told = 0, quiet = 0;
	OK(fi_control(&my.cq->fid, FI_GETWAIT, &sleep.fd));
	OK(fi_cq_signal(my.cq));
	EQUAL(poll(&sleep, 1, -1), 1);
	for (int round = 0; round < 100; round++) {
		int may = fi_trywait(my.fabric, fids, 1);
		CHECK(may == 0 || may == -FI_EAGAIN);
		told += may == -FI_EAGAIN;
		quiet += may == 0 && poll(&sleep, 1, 0) == 0;
	}
	CHECK(told > 0);
	CHECK(quiet > 0);
}

static void body(void)
{
	blocking_reads();
	meet(2);
	descriptors();
	meet(2);
	signals();
	one_signal_ends_one_sleep();
	meet(2);
	/* Each side slept ROUNDS times. A busy machine may delay some; all of them only if nobody is woken. */
	CHECK(long_sleeps < ROUNDS / 2);
}

static void no_wait_object(void)
{
	struct fi_cq_tagged_entry entry;
	int descriptor;
	EQUAL(fi_cq_sread(my.cq, &entry, 1, NULL, 0), -FI_EINVAL);
	EQUAL(fi_control(&my.cq->fid, FI_GETWAIT, &descriptor), -FI_ENOSYS);
}

int main(void)
{
	int failed = run(2, &(struct wishes){.wait = FI_WAIT_FD}, body, -1);
	if (!failed)
		failed = run(2, &(struct wishes){.wait = FI_WAIT_UNSPEC}, body, -1);
	return failed ? failed : run(1, &(struct wishes){0}, no_wait_object, -1);
}
