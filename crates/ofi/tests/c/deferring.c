/* Messages for which their receiver has no room: FI_TIDEGATE_RX_MEMORY is as small as it may be. Deferred messages can
 * be received in any order, are found by peeking, and arrive although their sender closes. A send that asks for
 * delivery complete waits for its receiver, an injected one does not. */
#include "harness.h"

enum { COUNT = 400, BYTES = 300 };

static unsigned char out[COUNT][BYTES], in[BYTES];

static void send_all(int to)
{
	for (unsigned i = 0; i < COUNT; i++) {
		fill(out[i], BYTES, i);
		OK_WHEN_ROOM(fi_tsend(my.ep, out[i], BYTES, NULL, my.peers[to], i, out[i]));
	}
}

/* Receives a message by its tag; completions of sends may come in between, and are counted. */
static int receive(int from, unsigned tag)
{
	int sent = 0;
	OK_WHEN_ROOM(fi_trecv(my.ep, in, BYTES, NULL, my.peers[from], tag, 0, in));
	for (;; sent++) {
		struct fi_cq_tagged_entry entry = next();
		if (entry.op_context != in)
			continue;
		EQUAL(entry.tag, tag);
		EQUAL(entry.len, BYTES);
		check_filled(in, BYTES, tag);
		return sent;
	}
}

/* Both send far more than there is room for, and receive the last first. */
static void last_first(int other)
{
	int sent = 0;
	send_all(other);
	meet(2);
	for (unsigned i = COUNT; i-- > 0;)
		sent += receive(other, i);
	for (; sent < COUNT; sent++)
		next();
	meet(2);
}

/* Peeks for a message from `from` with this tag, and returns how that ended. */
static int look(int from, unsigned tag)
{
	char text[256];
	struct fi_cq_tagged_entry entry;
	ssize_t got;
	struct fi_msg_tagged message = {.addr = my.peers[from], .tag = tag, .context = text};
	OK(fi_trecvmsg(my.ep, &message, FI_PEEK));
	while ((got = fi_cq_read(my.cq, &entry, 1)) == -FI_EAGAIN)
		;
	if (got == -FI_EAVAIL)
		return next_error(text).err;
	EQUAL(got, 1);
	CHECK(entry.op_context == text);
	EQUAL(entry.len, BYTES);
	return 0;
}

/* A peek finds a message that its sender has deferred, sooner or later, and never one that was not sent. The sender
 * that is queried has to make progress: `meet` does. */
static void looking(int other)
{
	if (my.rank == 0) {
		send_all(other);
		meet(2);
		for (int sent = 0; sent < COUNT; sent++)
			next();
		meet(2);
		return;
	}
	meet(2);
	int found;
	while ((found = look(other, COUNT - 1)) == FI_ENOMSG)
		;
	EQUAL(found, 0);
	EQUAL(look(other, COUNT), FI_ENOMSG);
	for (unsigned i = 0; i < COUNT; i++)
		EQUAL(receive(other, i), 0);
	meet(2);
}

/* A send whose call asks for delivery complete does not complete before it is received. */
static void asked_for(int other)
{
	struct iovec iov = {out[0], BYTES};
	struct fi_msg_tagged message = {.msg_iov = &iov, .iov_count = 1, .addr = my.peers[other], .tag = 1, .context = out[0]};
	if (my.rank == 0) {
		fill(out[0], BYTES, 1);
		OK_WHEN_ROOM(fi_tsendmsg(my.ep, &message, FI_DELIVERY_COMPLETE | FI_COMPLETION));
		nothing_completes();
		meet(2);
		CHECK(next().op_context == out[0]);
	} else {
		meet(2);
		receive(other, 1);
	}
	meet(2);
}

/* Injected messages are complete for their sender, which then closes: they arrive all the same. */
static void injected_and_gone(int other)
{
	if (my.rank == 0) {
		for (uint64_t i = 0; i < COUNT; i++)
			OK_WHEN_ROOM(fi_tinject(my.ep, &i, sizeof i, my.peers[other], 5));
		return;
	}
	for (uint64_t i = 0; i < COUNT; i++) {
		uint64_t number = ~i;
		OK_WHEN_ROOM(fi_trecv(my.ep, &number, sizeof number, NULL, my.peers[other], 5, 0, &number));
		CHECK(next().op_context == &number);
		EQUAL(number, i);
	}
}

static void body(void)
{
	int other = 1 - my.rank;
	last_first(other);
	looking(other);
	asked_for(other);
	injected_and_gone(other);
}

int main(void)
{
	return run(2, &(struct wishes){0}, body, -1);
}
