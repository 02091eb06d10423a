/* What moves while the application makes no call. Run with `thread` and FI_TIDEGATE_PROGRESS=thread, everything does,
 * and whoever has nothing to do sleeps; with `asks`, and without that variable, the same, because the application asks
 * for it; with `calls`, nothing does. With `exits`, a process ends amid the thread's work. */
#include "harness.h"

enum { BYTES = 8 << 20, WORDS = 4096 };
static unsigned char bytes[BYTES];
static bool has_thread;

/* Computes, which is to say that it makes no call, or calls what makes no progress, until the last byte has come or so
 * many seconds are over. Returns whether it has come. */
static bool comes_within(double most, bool calls)
{
	double begun = seconds_of(CLOCK_MONOTONIC);
	while (((volatile unsigned char *)bytes)[BYTES - 1] != 7) {
		if (seconds_of(CLOCK_MONOTONIC) - begun > most)
			return false;
		if (calls)
			EQUAL(fi_cancel(&my.ep->fid, &begun), -FI_ENOENT);
	}
	return true;
}

static void a_long_message_comes_while_both_compute(bool calls)
{
	char byte = 0;
	memset(bytes, my.rank == 0 ? 0 : 7, BYTES);
	/* Whoever hears from others makes progress, which could be after the message was sent: the receiver does not. */
	if (my.rank == 1) {
		read_all(0, &byte, 1);
		OK_WHEN_ROOM(fi_tsend(my.ep, bytes, BYTES, NULL, my.peers[0], 1, bytes));
		write_all(0, &byte, 1);
		read_all(0, &byte, 1);
		CHECK(next().op_context == bytes);
		meet(2);
		return;
	}
	OK_WHEN_ROOM(fi_trecv(my.ep, bytes, BYTES, NULL, my.peers[1], 1, 0, bytes));
	write_all(1, &byte, 1);
	read_all(1, &byte, 1);
	bool has_come = comes_within(has_thread ? 20 : 0.3, calls);
	if (has_come != has_thread)
		FAIL("the message has %scome without a call", has_come ? "" : "not ");
	write_all(1, &byte, 1);
	CHECK(next().op_context == bytes);
	for (int i = 0; i < BYTES; i++)
		CHECK(bytes[i] == 7);
	meet(2);
}

/* Words of memory that a peer may write to, and the other side writes while the owner computes. */
static void a_remote_write_comes_while_its_target_computes(void)
{
	static uint64_t words[WORDS];
	struct fid_mr *region;
	char byte = 0;
	OK(fi_mr_reg(my.domain, words, sizeof words, FI_REMOTE_WRITE | FI_WRITE, 0, 17, 0, &region, NULL));
	if (my.rank == 0) {
		meet(2);
		double begun = seconds_of(CLOCK_MONOTONIC);
		while (((volatile uint64_t *)words)[WORDS - 1] != 9 && seconds_of(CLOCK_MONOTONIC) - begun < 20)
			;
		EQUAL(words[WORDS - 1], 9);
		write_all(1, &byte, 1);
	} else {
		for (int i = 0; i < WORDS; i++)
			words[i] = 9;
		meet(2);
		OK_WHEN_ROOM(fi_write(my.ep, words, sizeof words, NULL, my.peers[0], 0, 17, words));
		CHECK(next().op_context == words);
		read_all(0, &byte, 1);
	}
	meet(2);
	OK(fi_close(&region->fid));
}

/* The thread sleeps while there is nothing to do, though receives wait. */
static void who_has_nothing_to_do_sleeps(void)
{
	char in[8];
	OK_WHEN_ROOM(fi_trecv(my.ep, in, sizeof in, NULL, my.peers[1 - my.rank], 3, 0, in));
	meet(2);
	nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
	double begun = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
	nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
	double took = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - begun;
	if (took > 0.1)
		FAIL("a second of nothing took %.3f s of processor time", took);
	meet(2);
	OK_WHEN_ROOM(fi_tinject(my.ep, "hello", 6, my.peers[1 - my.rank], 3));
	CHECK(next().op_context == in && !strcmp(in, "hello"));
	meet(2);
}

static void body(void)
{
	for (int round = 0; round < (has_thread ? 5 : 1); round++)
		a_long_message_comes_while_both_compute(round % 2);
	if (!has_thread)
		return;
	a_remote_write_comes_while_its_target_computes();
	who_has_nothing_to_do_sleeps();
}

/* Many endpoints one after the other, each with a thread; and the process ends without closing the last one. */
static void opened_and_closed(void)
{
	for (int i = 0; i < 30; i++) {
		close_endpoint();
		open_endpoint(&(struct wishes){0});
	}
	exit(0);
}

int main(int count, char **arguments)
{
	CHECK(count == 2);
	if (!strcmp(arguments[1], "exits"))
		return run(1, &(struct wishes){0}, opened_and_closed, -1);
	bool asks = !strcmp(arguments[1], "asks");
	has_thread = asks || !strcmp(arguments[1], "thread");
	if (!has_thread)
		return run(2, &(struct wishes){0}, body, -1);
	int failed = 0;
	if (!asks)
		failed = run(2, &(struct wishes){.threading = FI_THREAD_DOMAIN}, body, -1);
	failed |= run(2, &(struct wishes){.data_progress = FI_PROGRESS_AUTO}, body, -1);
	return failed;
}
