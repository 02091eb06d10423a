/* What a peer still gets of an endpoint that was closed, what becomes of receives that name it, and how that differs
 * from a process that ends without closing. Run with a timeout of closing that the test never reaches. */
#include "harness.h"

enum { SHORT = 5, LENGTH = 300000, LEFT = 9, LONG = 10 };
static char long_message[LENGTH];

/* A new endpoint in the place of one that was closed, for the harness to close. */
static void close_now(void)
{
	OK(fi_close(&my.ep->fid));
	OK(fi_endpoint(my.domain, my.info, &my.ep, NULL));
}

static void say(int other)
{
	write_all(other, "", 1);
}

static void closes(void)
{
	char text[256], byte;
	get_to_know();
	if (my.rank == 0) {
		OK_WHEN_ROOM(fi_tsend(my.ep, long_message, LENGTH, NULL, my.peers[1], LONG, long_message));
		for (int i = 0; i < SHORT; i++)
			OK_WHEN_ROOM(fi_tinject(my.ep, &i, sizeof i, my.peers[1], 1));
		/* fi_tidegate(7): "What has not left then is lost: it ends with FI_ECANCELED in the queue of sends, the
		 * counter sends_lost counts it, a line on standard error tells it, and tidegate run(1) fails."
		 *
		 * A send that is not waited for ends so as well. The rest is in closing.c and in test_open_at_the_end.py. */
		close_now();
		struct fi_cq_err_entry error = next_error(text);
		EQUAL(error.err, FI_ECANCELED);
		CHECK(error.op_context == long_message);
		say(1);
		return;
	}
	read_all(0, &byte, 1);
	/* Since the other endpoint has sent anything there was no call here. */
	static int numbers[SHORT], left;
	OK_WHEN_ROOM(fi_trecv(my.ep, &left, sizeof left, NULL, my.peers[0], LEFT, 0, &left));
	/* fi_tidegate(7): "What lies in the mailbox of its receiver when an endpoint closes is not lost: the receiver still
	 * gets it."
	 */
	for (int i = 0; i < SHORT; i++) {
		OK_WHEN_ROOM(fi_trecv(my.ep, &numbers[i], sizeof numbers[i], NULL, my.peers[0], 1, 0, &numbers[i]));
		CHECK(next().op_context == &numbers[i]);
		EQUAL(numbers[i], i);
	}
	/* fi_tidegate(7): "A receive that names a closed endpoint as its source still gets what that endpoint has sent,
	 * except a long message that no receive had asked for when its sender closed: it is lost with its sender's memory,
	 * and the receive that matches it ends with FI_ECONNABORTED."
	 */
	OK_WHEN_ROOM(fi_trecv(my.ep, long_message, LENGTH, NULL, my.peers[0], LONG, 0, long_message));
	struct fi_cq_err_entry error = next_error(text);
	EQUAL(error.err, FI_ECONNABORTED);
	CHECK(error.op_context == long_message);
	/* fi_tidegate(7): "When no such message is left, the receive stays posted until it is cancelled (fi_cancel(3))."
	 *
	 * fi_tidegate(7): "Closing is no error, unlike dying: a program that keeps such a receive, and cancels it at its
	 * end, is correct, and must not be stopped by a peer that ends a little earlier."
	 *
	 * The death of a peer is noticed within a second. */
	struct fi_cq_tagged_entry entry;
	for (double end = seconds_of(CLOCK_MONOTONIC) + 1.5; seconds_of(CLOCK_MONOTONIC) < end;)
		EQUAL(fi_cq_read(my.cq, &entry, 1), -FI_EAGAIN);
	OK(fi_cancel(&my.ep->fid, &left));
	error = next_error(text);
	EQUAL(error.err, FI_ECANCELED);
	CHECK(error.op_context == &left);
}

/* fi_tidegate(7): "A process that ends without closing counts as dead for its peers, and receives that name it fail."
 */
static void ends_without_closing(void)
{
	char text[256];
	int number;
	get_to_know();
	if (my.rank == 0)
		_exit(0);
	OK_WHEN_ROOM(fi_trecv(my.ep, &number, sizeof number, NULL, my.peers[0], LEFT, 0, &number));
	struct fi_cq_err_entry error = next_error(text);
	EQUAL(error.err, FI_ECONNABORTED);
	CHECK(error.op_context == &number);
}

int main(void)
{
	int failed = run(2, &(struct wishes){0}, closes, -1);
	return failed | run(2, &(struct wishes){0}, ends_without_closing, -1);
}
