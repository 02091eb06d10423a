/* Which receive gets which message: tags and ignored bits, senders, order, peeking, canceling, truncation,
 * multi-receive, and messages to oneself. One process can do most of it with itself; the rest is between two. */
#include "harness.h"

static int a, b, c, d; /* addresses of these are contexts */

static void send_to(int rank, const void *bytes, size_t length, uint64_t tag)
{
	OK_WHEN_ROOM(fi_tinject(my.ep, bytes, length, my.peers[rank], tag));
}

static void tags(int other)
{
	char first[8], second[8], any[8];
	fi_addr_t peer = my.peers[other];
	OK(fi_trecv(my.ep, first, 8, NULL, peer, 0x10, 0, &a));
	OK(fi_trecv(my.ep, second, 8, NULL, peer, 0x20, 0x0f, &b));
	OK(fi_trecv(my.ep, any, 8, NULL, FI_ADDR_UNSPEC, 0, ~0ull, &c));
	meet(my.ranks);
	send_to(other, "x", 2, 0x2a);
	send_to(other, "y", 2, 0x10);
	send_to(other, "z", 2, 0x10);
	for (int i = 0; i < 3; i++) {
		struct fi_cq_tagged_entry entry = next();
		EQUAL(entry.tag, entry.op_context == &b ? 0x2a : 0x10);
	}
	CHECK(!strcmp(second, "x") && !strcmp(first, "y") && !strcmp(any, "z"));
}

/* The two kinds of message do not mix. */
static void spaces(int other)
{
	char tagged[8], untagged[8];
	OK_WHEN_ROOM(fi_inject(my.ep, "u", 2, my.peers[other]));
	send_to(other, "t", 2, 1);
	OK(fi_trecv(my.ep, tagged, 8, NULL, FI_ADDR_UNSPEC, 0, ~0ull, &a));
	OK(fi_recv(my.ep, untagged, 8, NULL, FI_ADDR_UNSPEC, &b));
	complete(2, (void *[]){&a, &b});
	CHECK(!strcmp(tagged, "t") && !strcmp(untagged, "u"));
}

static void truncation(int other)
{
	char text[256];
	static unsigned char large[10000], small[100];
	fill(large, sizeof large, 5);
	for (int eager = 0; eager < 2; eager++) {
		size_t length = eager ? 1500 : sizeof large;
		OK_WHEN_ROOM(fi_tsend(my.ep, large, length, NULL, my.peers[other], 3, &b));
		OK(fi_trecv(my.ep, small, sizeof small, NULL, my.peers[other], 3, 0, &a));
		bool sent = false, truncated = false;
		while (!sent || !truncated) {
			struct fi_cq_tagged_entry entry;
			ssize_t got = fi_cq_read(my.cq, &entry, 1);
			if (got == 1) {
				CHECK(entry.op_context == &b);
				sent = true;
			} else if (got == -FI_EAVAIL) {
				struct fi_cq_err_entry error = next_error(text);
				EQUAL(error.err, FI_ETRUNC);
				CHECK(error.op_context == &a);
				EQUAL(error.len, sizeof small);
				EQUAL(error.olen, length - sizeof small);
				EQUAL(error.tag, 3);
				truncated = true;
			}
		}
		check_filled(small, sizeof small, 5);
	}
}

static void canceling(int other)
{
	char text[256], buffer[8];
	OK(fi_trecv(my.ep, buffer, 8, NULL, my.peers[other], 77, 0, &a));
	OK(fi_cancel(&my.ep->fid, &a));
	struct fi_cq_err_entry error = next_error(text);
	EQUAL(error.err, FI_ECANCELED);
	CHECK(error.op_context == &a);
	EQUAL(fi_cancel(&my.ep->fid, &a), -FI_ENOENT);
	nothing_completes();
}

/* Any number of receives, cancelled in any order. Of several receives with one context the oldest is cancelled. */
static void canceling_many(int other)
{
	enum { MANY = 500 };
	static struct fi_context contexts[MANY];
	static char buffers[MANY];
	char text[256];
	for (int i = 0; i < MANY; i++)
		OK(fi_trecv(my.ep, &buffers[i], 1, NULL, my.peers[other], 1000 + (uint64_t)i, 0, &contexts[i % 400]));
	for (int i = MANY - 1; i >= 0; i--) {
		struct fi_context *context = &contexts[i % 400];
		OK(fi_cancel(&my.ep->fid, context));
		CHECK(next_error(text).op_context == context);
	}
	EQUAL(fi_cancel(&my.ep->fid, &contexts[0]), -FI_ENOENT);

	for (int i = 0; i < MANY; i++)
		OK(fi_trecv(my.ep, &buffers[i], 1, NULL, FI_ADDR_UNSPEC, 1000 + (uint64_t)i, 0, &contexts[0]));
	OK(fi_cancel(&my.ep->fid, &contexts[0]));
	CHECK(next_error(text).op_context == &contexts[0]);
	meet(my.ranks);
	/* The first is gone, so the message of its tag stays; all others are there. */
	for (int i = 0; i < MANY; i++)
		OK_WHEN_ROOM(fi_tinject(my.ep, "x", 1, my.peers[other], 1000 + (uint64_t)i));
	for (int i = 1; i < MANY; i++)
		CHECK(next().op_context == &contexts[0]);
	nothing_completes();
	OK(fi_trecv(my.ep, &buffers[0], 1, NULL, FI_ADDR_UNSPEC, 1000, 0, &contexts[1]));
	CHECK(next().op_context == &contexts[1]);
	meet(my.ranks);
}

/* A receive is cancelled while a message for it arrives, in one packet, in several, carried or announced. Either it is
 * cancelled, has nothing of the message, and the next receive gets all of it; or it has all of it, and completes. */
static void canceling_what_arrives(int other)
{
	static const size_t lengths[] = {8, 1500, 10000, 30000, 100000, 1000000};
	enum { LENGTHS = sizeof lengths / sizeof *lengths, ROUNDS = 60, MOST = 1000000 };
	static unsigned char bytes[MOST];
	for (int round = 0; round < LENGTHS * ROUNDS; round++) {
		size_t length = lengths[round % LENGTHS];
		if (my.rank == 1) {
			fill(bytes, length, (unsigned)round);
			meet(my.ranks);
			OK_WHEN_ROOM(fi_tsend(my.ep, bytes, length, NULL, my.peers[other], 9, bytes));
			next();
			meet(my.ranks);
			continue;
		}
		char text[256];
		struct fi_cq_tagged_entry entry;
		ssize_t got = -FI_EAGAIN;
		memset(bytes, 0xee, length);
		OK(fi_trecv(my.ep, bytes, length, NULL, FI_ADDR_UNSPEC, 9, 0, bytes));
		meet(my.ranks);
		for (int polls = round / LENGTHS * 3; polls > 0 && got == -FI_EAGAIN; polls--)
			got = fi_cq_read(my.cq, &entry, 1);
		int result = fi_cancel(&my.ep->fid, bytes);
		CHECK(result == 0 || result == -FI_ENOENT);
		while (got == -FI_EAGAIN)
			got = fi_cq_read(my.cq, &entry, 1);
		if (got == -FI_EAVAIL) {
			EQUAL(next_error(text).err, FI_ECANCELED);
			for (size_t i = 0; i < length; i++)
				CHECK(bytes[i] == 0xee);
			OK(fi_trecv(my.ep, bytes, length, NULL, FI_ADDR_UNSPEC, 9, 0, bytes));
			entry = next();
		}
		CHECK(entry.op_context == bytes);
		EQUAL(entry.len, length);
		check_filled(bytes, length, (unsigned)round);
		meet(my.ranks);
		nothing_completes();
	}
}

static ssize_t look(int other, uint64_t tag, uint64_t flags, void *context)
{
	struct fi_msg_tagged message = {.addr = my.peers[other], .tag = tag, .context = context};
	return fi_trecvmsg(my.ep, &message, flags);
}

/* Looks until a message is there, and returns its length. */
static size_t found(int other, uint64_t flags, void *context)
{
	char text[256];
	for (;;) {
		struct fi_cq_tagged_entry entry;
		ssize_t got;
		OK(look(other, 5, flags, context));
		while ((got = fi_cq_read(my.cq, &entry, 1)) == -FI_EAGAIN)
			;
		if (got == 1) {
			EQUAL(entry.tag, 5);
			CHECK(entry.op_context == context);
			return entry.len;
		}
		EQUAL(next_error(text).err, FI_ENOMSG);
	}
}

static void peeking(int other)
{
	char text[256], buffer[16];
	OK(look(other, 5, FI_PEEK, &a));
	EQUAL(next_error(text).err, FI_ENOMSG);
	meet(my.ranks);

	send_to(other, "peeked", 7, 5);
	send_to(other, "claimed", 8, 5);
	send_to(other, "dropped", 8, 5);
	send_to(other, "last", 5, 5);
	EQUAL(found(other, FI_PEEK, &a), 7);
	OK(fi_trecv(my.ep, buffer, 16, NULL, my.peers[other], 5, 0, &b));
	CHECK(next().op_context == &b && !strcmp(buffer, "peeked"));

	/* Claims the second message and discards the third: other receives do not get them. */
	EQUAL(found(other, FI_PEEK | FI_CLAIM, &c), 8);
	EQUAL(found(other, FI_PEEK | FI_DISCARD, &d), 8);
	OK(fi_trecv(my.ep, buffer, 16, NULL, my.peers[other], 5, 0, &b));
	CHECK(next().op_context == &b && !strcmp(buffer, "last"));
	struct iovec iov = {buffer, sizeof buffer};
	struct fi_msg_tagged claim = {.msg_iov = &iov, .iov_count = 1, .addr = my.peers[other], .tag = 5, .context = &c};
	OK(fi_trecvmsg(my.ep, &claim, FI_CLAIM));
	CHECK(next().op_context == &c && !strcmp(buffer, "claimed"));
	EQUAL(fi_trecvmsg(my.ep, &claim, FI_CLAIM), -FI_EINVAL);
}

static void multi_receive(int other)
{
	enum { ROOM = 1000, LEAST = 100 };
	static unsigned char room[2][ROOM];
	size_t least = LEAST;
	OK(fi_setopt(&my.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least));
	least = 0;
	size_t size = sizeof least;
	OK(fi_getopt(&my.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, &size));
	EQUAL(least, LEAST);
	for (int i = 0; i < 2; i++) {
		struct iovec iov = {room[i], ROOM};
		struct fi_msg message = {.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = room[i]};
		OK(fi_recvmsg(my.ep, &message, FI_MULTI_RECV));
	}
	meet(my.ranks);
	/* Three fill the first buffer until less than LEAST are left; the fourth goes to the second. */
	static unsigned char bytes[4][310];
	for (unsigned i = 0; i < 4; i++) {
		fill(bytes[i], sizeof bytes[i], i);
		OK_WHEN_ROOM(fi_send(my.ep, bytes[i], sizeof bytes[i], NULL, my.peers[other], &a));
	}
	/* Messages get their places in the buffer in the order of the sends; where they have to be pulled, they may
	 * complete in another order. */
	unsigned got[2] = {0, 0};
	for (unsigned sent = 0; got[0] + got[1] + sent < 8;) {
		struct fi_cq_tagged_entry entry = next();
		if (entry.op_context == &a) {
			sent++;
			continue;
		}
		unsigned which = entry.op_context == room[1];
		CHECK(entry.op_context == room[which]);
		size_t offset = (size_t)((unsigned char *)entry.buf - room[which]);
		EQUAL(offset % 310, 0);
		EQUAL(entry.len, 310);
		check_filled(entry.buf, 310, which * 3 + (unsigned)(offset / 310));
		got[which]++;
		EQUAL(!!(entry.flags & FI_MULTI_RECV), which == 0 && got[0] == 3);
	}
	CHECK(got[0] == 3 && got[1] == 1);
	char text[256];
	OK(fi_cancel(&my.ep->fid, room[1]));
	EQUAL(next_error(text).err, FI_ECANCELED);
}

static void large_to_oneself(void)
{
	static unsigned char out[300000], in[300000];
	fill(out, sizeof out, 3);
	OK(fi_tsend(my.ep, out, sizeof out, NULL, my.peers[my.rank], 1, &a));
	OK(fi_trecv(my.ep, in, sizeof in, NULL, my.peers[my.rank], 1, 0, &b));
	complete(2, (void *[]){&a, &b});
	check_filled(in, sizeof in, 3);
}

static void body(void)
{
	int other = my.ranks - 1 - my.rank;
	tags(other);
	spaces(other);
	truncation(other);
	canceling(other);
	canceling_many(other);
	if (my.ranks > 1)
		canceling_what_arrives(other);
	peeking(other);
	meet(my.ranks);
	multi_receive(other);
	large_to_oneself();
	meet(my.ranks);
}

int main(void)
{
	int failed = run(1, &(struct wishes){0}, body, -1);
	return failed ? failed : run(2, &(struct wishes){.av_type = FI_AV_MAP}, body, -1);
}
