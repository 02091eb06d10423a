/* What a process has left to do when it stops calling: it goes on, unless FI_TIDEGATE_PROGRESS=calls, with which this is
 * run with `calls`. Run with few buffers or slots. */
#include "harness.h"

enum { MESSAGES = 60 };
static bool goes_on;

/* How many messages come within so many seconds. */
static int come_within(double most, uint64_t *in)
{
	double begun = seconds_of(CLOCK_MONOTONIC);
	int count = 0;
	while (count < MESSAGES && seconds_of(CLOCK_MONOTONIC) - begun < most) {
		struct fi_cq_tagged_entry entry;
		ssize_t got = fi_cq_read(my.cq, &entry, 1);
		if (got == 1) {
			EQUAL(*(uint64_t *)entry.op_context, count);
			CHECK(entry.op_context == &in[count]);
			count++;
		} else {
			EQUAL(got, -FI_EAGAIN);
		}
	}
	return count;
}

/* Rank 1 sends more than there is room for, and waits for an answer that comes in another way. */
static void messages_leave_though_their_sender_is_silent(bool injected)
{
	static uint64_t numbers[MESSAGES], in[MESSAGES];
	char byte = 0;
	meet(2);
	if (my.rank == 1) {
		for (uint64_t i = 0; i < MESSAGES; i++) {
			numbers[i] = i;
			if (injected)
				OK_WHEN_ROOM(fi_tinject(my.ep, &numbers[i], 8, my.peers[0], 1));
			else
				OK_WHEN_ROOM(fi_tsend(my.ep, &numbers[i], 8, NULL, my.peers[0], 1, NULL));
		}
		write_all(0, &byte, 1);
		read_all(0, &byte, 1);
		for (int i = 0; !injected && i < MESSAGES; i++)
			next();
		meet(2);
		return;
	}
	read_all(1, &byte, 1);
	for (int i = 0; i < MESSAGES; i++)
		OK_WHEN_ROOM(fi_trecv(my.ep, &in[i], 8, NULL, my.peers[1], 1, 0, &in[i]));
	int come = come_within(goes_on ? 20 : 0.3, in);
	if ((come == MESSAGES) != goes_on)
		FAIL("%d of %d messages have come from a silent sender", come, MESSAGES);
	write_all(1, &byte, 1);
	for (int i = come; i < MESSAGES; i++)
		next();
	meet(2);
}

/* Nothing is left, so there is nothing that wakes. */
static void who_has_nothing_left_sleeps(void)
{
	meet(2);
	nanosleep(&(struct timespec){.tv_nsec = 400000000}, NULL);
	double begun = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
	nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
	double took = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - begun;
	if (took > 0.02)
		FAIL("a second of nothing took %.3f s of processor time", took);
	meet(2);
}

static void body(void)
{
	for (int round = 0; round < 4; round++)
		messages_leave_though_their_sender_is_silent(round % 2);
	if (goes_on)
		who_has_nothing_left_sleeps();
}

int main(int count, char **arguments)
{
	CHECK(count == 2);
	goes_on = !strcmp(arguments[1], "on_demand");
	int failed = run(2, &(struct wishes){.threading = FI_THREAD_DOMAIN}, body, -1);
	failed |= run(2, &(struct wishes){.threading = FI_THREAD_SAFE}, body, -1);
	return failed;
}
