/* Levels of completion. The receiver has little receive memory and receives nothing, so most messages stay with their
 * sender. The sender then dies: every message that had completed must be there, unless more than that was asked for:
 * then nothing may have completed.
 *
 * fi_tidegate(7): "A send completes when it has left: on one host when it lies whole in the mailbox of its receiver or,
 * if it is long, when the receiver has got it."
 * fi_tidegate(7): "Injected messages (FI_INJECT) do not complete earlier, whatever level is asked for, although their
 * buffers may be used at once."
 * fi_tidegate(7): "fi_inject and its relatives report no success; a counter counts them when they have left." */
#include "harness.h"

enum { MANY = 1500, BYTES = 64 };

/* By which call messages are sent, and what for. */
static struct kind {
	enum { BY_CALL, LONG, BY_DEFAULT, INJECTED } call;
	uint64_t flags;
	bool waits; /* until the receiver has them */
} kind;

static ssize_t send_one(char *bytes)
{
	static char large[1 << 20];
	struct iovec piece = {bytes, BYTES};
	struct fi_msg_tagged message = {.msg_iov = &piece, .iov_count = 1, .addr = my.peers[1], .tag = 1};
	if (kind.call == LONG)
		piece = (struct iovec){large, sizeof large};
	switch (kind.call) {
	case LONG:
	case BY_CALL:
		return fi_tsendmsg(my.ep, &message, kind.flags);
	case BY_DEFAULT:
		return fi_tsend(my.ep, bytes, BYTES, NULL, my.peers[1], 1, NULL);
	default:
		return fi_tinject(my.ep, bytes, BYTES, my.peers[1], 1);
	}
}

static void body(void)
{
	static char bytes[MANY][BYTES];
	long completed = 0;
	if (my.rank == 0) {
		struct fi_cq_tagged_entry entry;
		int sent = 0;
		/* All have been sent, or no more are accepted, and nothing more completes. */
		for (double quiet = seconds_of(CLOCK_MONOTONIC); seconds_of(CLOCK_MONOTONIC) - quiet < 0.15;) {
			ssize_t result = sent < MANY ? send_one(bytes[sent]) : -FI_EAGAIN;
			CHECK(result == 0 || result == -FI_EAGAIN);
			ssize_t got = fi_cq_read(my.cq, &entry, 1);
			CHECK(got == 1 || got == -FI_EAGAIN);
			sent += result == 0;
			completed += got == 1;
			if (result == 0 || got == 1)
				quiet = seconds_of(CLOCK_MONOTONIC);
		}
		if (kind.call == INJECTED)
			completed = (long)fi_cntr_read(my.counter);
		printf("%d sent, %ld completed\n", sent, completed);
		EQUAL(sent, MANY);
		CHECK(kind.waits ? completed == 0 : completed > 0 && completed < MANY);
		write_all(1, &completed, sizeof completed);
		kill(getpid(), SIGKILL);
	}
	struct pollfd quiet = {.fd = pipes[0][1][0], .events = POLLIN};
	while (poll(&quiet, 1, 0) == 0)
		make_progress();
	read_all(0, &completed, sizeof completed);
	for (long received = 0;; received++) {
		struct fi_cq_tagged_entry entry;
		struct fi_cq_err_entry error = {0};
		ssize_t got;
		OK(fi_trecv(my.ep, bytes[0], BYTES, NULL, my.peers[0], 1, 0, NULL));
		while ((got = fi_cq_read(my.cq, &entry, 1)) == -FI_EAGAIN)
			;
		if (got == 1)
			continue;
		EQUAL(fi_cq_readerr(my.cq, &error, 0), 1);
		if (error.err == FI_ETRUNC)
			continue; /* a long one */
		EQUAL(error.err, FI_ECONNABORTED);
		printf("%ld received\n", received);
		CHECK(received >= completed);
		return;
	}
}

/* fi_tidegate(7): "FI_MATCH_COMPLETE in any way, and FI_DELIVERY_COMPLETE asked for by a call (fi_sendmsg, fi_tsendmsg),
 * wait until the receiver has the message in its buffer, injected or not."
 * A message to oneself is no exception. */
static void to_oneself(void)
{
	static const struct kind kinds[] = {{BY_CALL, FI_INJECT | FI_MATCH_COMPLETE, true},
					    {BY_CALL, FI_INJECT | FI_DELIVERY_COMPLETE, true},
					    {BY_CALL, FI_MATCH_COMPLETE, true},
					    {BY_CALL, FI_INJECT | FI_TRANSMIT_COMPLETE, false},
					    {BY_CALL, FI_INJECT, false}};
	char in[BYTES], out[BYTES];
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		struct iovec piece = {out, BYTES};
		struct fi_msg_tagged message = {.msg_iov = &piece, .iov_count = 1, .addr = my.peers[0], .tag = i, .context = out};
		memset(out, 'a' + (int)i, BYTES);
		OK(fi_tsendmsg(my.ep, &message, kinds[i].flags));
		if (kinds[i].flags & FI_INJECT)
			memset(out, '?', BYTES);
		if (kinds[i].waits)
			nothing_completes();
		else
			CHECK(next().flags & FI_SEND);
		OK(fi_trecv(my.ep, in, BYTES, NULL, my.peers[0], i, 0, in));
		for (int left = kinds[i].waits ? 2 : 1; left > 0; left--)
			next();
		CHECK(in[0] == 'a' + (int)i && in[BYTES - 1] == 'a' + (int)i);
	}
}

int main(void)
{
	static const struct kind kinds[] = {
		{BY_CALL, FI_INJECT, false},
		{BY_CALL, FI_INJECT | FI_INJECT_COMPLETE, false},
		{BY_CALL, FI_INJECT | FI_TRANSMIT_COMPLETE, false},
		{BY_CALL, FI_INJECT | FI_DELIVERY_COMPLETE, true},
		{BY_CALL, FI_INJECT | FI_MATCH_COMPLETE, true},
		{BY_CALL, FI_TRANSMIT_COMPLETE, false},
		{BY_CALL, FI_MATCH_COMPLETE, true},
		{LONG, FI_TRANSMIT_COMPLETE, true},
		{BY_DEFAULT, FI_INJECT | FI_TRANSMIT_COMPLETE, false},
		{BY_DEFAULT, FI_INJECT | FI_INJECT_COMPLETE, false},
		{BY_DEFAULT, FI_INJECT | FI_MATCH_COMPLETE, true},
		{INJECTED, FI_TRANSMIT_COMPLETE, false},
	};
	int failed = 0;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds && !failed; i++) {
		kind = kinds[i];
		printf("call %d, flags %#llx\n", kind.call, (unsigned long long)kind.flags);
		struct wishes wishes = {.op_flags = kind.call <= LONG ? 0 : kind.flags,
					.counter_flags = kind.call == INJECTED ? FI_SEND : 0};
		failed = run(2, &wishes, body, 0);
	}
	return failed || run(1, &(struct wishes){0}, to_oneself, -1);
}
