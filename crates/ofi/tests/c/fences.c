/* Fenced operations (FI_FENCE): they start when all earlier ones to the same target have completed, later ones stay
 * behind them, and nothing else waits. Rank 0 sends; ranks 1 and 2 are its targets.
 *
 * fi_tidegate(7): "An operation with FI_FENCE starts when all earlier ones to the same target have completed: it is
 * deferred, not refused."
 * fi_tidegate(7): "Later operations to this target stay behind it; operations to others go on." */
#include "harness.h"

enum { BIG = 1 << 20, SMALL = 40, KEY = 99 };
static char big[BIG], small[8][SMALL];
static uint64_t memory[2];
static struct fid_mr *region;

/* A send to `rank` with flags. */
static void send_to(int rank, uint64_t tag, void *bytes, size_t length, uint64_t flags)
{
	struct iovec piece = {bytes, length};
	struct fi_msg_tagged message = {.msg_iov = &piece, .iov_count = 1, .addr = my.peers[rank], .tag = tag, .context = bytes};
	EQUAL(fi_tsendmsg(my.ep, &message, flags), 0);
}

static void receive_tag(uint64_t tag, void *bytes, size_t length)
{
	OK(fi_trecv(my.ep, bytes, length, NULL, my.peers[0], tag, 0, bytes));
}

/* The next completion, which must be that of a receive of this tag. */
static void next_is(uint64_t tag)
{
	EQUAL(next().tag, tag);
}

/* Rank 1 receives the long message only when rank 2 has got the fenced one: refusing that one would stop everybody. */
static void others_go_on(void)
{
	if (my.rank == 0) {
		void *all[] = {big, small[0], small[1]};
		send_to(1, 1, big, BIG, 0);
		send_to(2, 2, small[0], SMALL, FI_FENCE);
		send_to(2, 2, small[1], SMALL, 0);
		complete(3, all);
	} else if (my.rank == 2) {
		receive_tag(2, small[0], SMALL);
		receive_tag(2, small[1], SMALL);
		next();
		next();
		write_all(1, "", 1);
	} else {
		hear_from(2);
		receive_tag(1, big, BIG);
		next_is(1);
	}
	meet(3);
}

/* Nothing to rank 1 gets past the fence, whatever it is and however long rank 1 looks. */
static void nothing_gets_past(void)
{
	enum { INJECTED = SMALL };
	if (my.rank == 0) {
		void *all[] = {big, small[0], small[1], small[2]};
		send_to(1, 1, big, BIG, 0);
		strcpy(small[0], "fenced");
		send_to(1, 2, small[0], SMALL, FI_FENCE);
		strcpy(small[1], "injected");
		send_to(1, 3, small[1], INJECTED, FI_INJECT | FI_FENCE);
		strcpy(small[2], "later");
		send_to(1, 4, small[2], SMALL, 0);
		strcpy(small[3], "silent");
		OK(fi_tinject(my.ep, small[3], INJECTED, my.peers[1], 5));
		/* What was injected may change as soon as the call is over. */
		strcpy(small[1], "wrong");
		strcpy(small[3], "wrong");
		meet(2);
		nothing_completes();
		meet(2);
		complete(4, all);
	} else if (my.rank == 1) {
		for (int i = 0; i < 4; i++)
			receive_tag(2 + (uint64_t)i, small[i], SMALL);
		meet(2);
		nothing_completes();
		meet(2);
		receive_tag(1, big, BIG);
		next_is(1);
		for (int i = 0; i < 4; i++)
			next_is(2 + (uint64_t)i);
		CHECK(!strcmp(small[0], "fenced") && !strcmp(small[1], "injected"));
		CHECK(!strcmp(small[2], "later") && !strcmp(small[3], "silent"));
	}
	meet(3);
}

/* Remote operations wait as well.
 * fi_tidegate(7): "Fenced remote operations go by message, never straight to the target's memory, so their end also says
 * that the target has processed all messages before them." */
static void remote_operations_wait(void)
{
	if (my.rank == 0) {
		uint64_t one = 1, seven = 7, was = 0, is = 0;
		struct iovec from = {&seven, 8}, to = {&is, 8};
		struct fi_rma_iov first = {0, 8, KEY}, second = {8, 8, KEY};
		struct fi_msg_rma write = {.msg_iov = &from, .iov_count = 1, .addr = my.peers[1], .rma_iov = &first, .rma_iov_count = 1,
					   .context = &seven};
		struct fi_msg_rma read = {.msg_iov = &to, .iov_count = 1, .addr = my.peers[1], .rma_iov = &first, .rma_iov_count = 1,
					  .context = &is};
		struct fi_ioc operand = {&one, 1}, result = {&was, 1};
		struct fi_rma_ioc place = {second.addr, 1, KEY};
		struct fi_msg_atomic add = {.msg_iov = &operand, .iov_count = 1, .addr = my.peers[1], .rma_iov = &place,
					    .rma_iov_count = 1, .datatype = FI_UINT64, .op = FI_SUM, .context = &was};
		void *all[] = {big, small[0], &seven, &is, &was};
		send_to(1, 1, big, BIG, 0);
		EQUAL(fi_writemsg(my.ep, &write, FI_FENCE), 0);
		EQUAL(fi_fetch_atomicmsg(my.ep, &add, &result, NULL, 1, FI_FENCE), 0);
		EQUAL(fi_readmsg(my.ep, &read, FI_FENCE), 0);
		send_to(1, 2, small[0], SMALL, 0);
		meet(2);
		nothing_completes();
		meet(2);
		complete(5, all);
		EQUAL(is, 7);
		EQUAL(was, 20);
		meet(2);
		/* A message that lies in the mailbox is complete, and a fenced write comes behind it all the same. */
		send_to(1, 6, small[1], SMALL, 0);
		CHECK(next().op_context == small[1]);
		seven = 8;
		EQUAL(fi_writemsg(my.ep, &write, FI_FENCE), 0);
		write_all(1, "", 1);
		CHECK(next().op_context == &seven);
	} else if (my.rank == 1) {
		char byte;
		receive_tag(2, small[0], SMALL);
		meet(2);
		nothing_completes();
		EQUAL(memory[0], 10);
		EQUAL(memory[1], 20);
		meet(2);
		receive_tag(1, big, BIG);
		next_is(1);
		next_is(2);
		while (*(volatile uint64_t *)&memory[1] != 21)
			make_progress();
		receive_tag(6, small[1], SMALL);
		meet(2);
		read_all(0, &byte, 1);
		while (*(volatile uint64_t *)&memory[0] != 8)
			make_progress();
		/* The message has come before. */
		struct fi_cq_tagged_entry entry;
		EQUAL(fi_cq_read(my.cq, &entry, 1), 1);
		EQUAL(entry.tag, 6);
	}
	meet(3);
}

/* fi_tidegate(7): "fi_cancel(3) ends an operation that waits behind a fence with FI_ECANCELED; those behind it go on
 * waiting." */
static void cancelled(void)
{
	if (my.rank == 0) {
		char text[256];
		void *rest[] = {big, small[1]};
		send_to(1, 1, big, BIG, 0);
		send_to(1, 2, small[0], SMALL, FI_FENCE);
		send_to(1, 3, small[1], SMALL, 0);
		OK(fi_cancel(&my.ep->fid, small[0]));
		EQUAL(fi_cancel(&my.ep->fid, big), -FI_ENOENT);
		struct fi_cq_err_entry error = next_error(text);
		EQUAL(error.err, FI_ECANCELED);
		CHECK(error.op_context == small[0] && error.flags == (FI_SEND | FI_TAGGED));
		meet(2);
		nothing_completes();
		meet(2);
		complete(2, rest);
	} else if (my.rank == 1) {
		receive_tag(3, small[1], SMALL);
		meet(2);
		nothing_completes();
		meet(2);
		receive_tag(1, big, BIG);
		next_is(1);
		next_is(3);
	}
	meet(3);
}

/* Rank 0 closes its endpoint after this. What it has injected behind a fence still comes, and what it waits for. */
static void closing(void)
{
	if (my.rank == 0) {
		send_to(1, 1, big, BIG, 0);
		send_to(1, 2, small[0], SMALL, FI_FENCE);
		OK(fi_tinject(my.ep, "late", 5, my.peers[1], 3));
		meet(3);
	} else {
		meet(3);
		if (my.rank == 2)
			return;
		/* The sender is closing by now, or soon. */
		usleep(100000);
		receive_tag(3, small[2], SMALL);
		receive_tag(2, small[0], SMALL);
		receive_tag(1, big, BIG);
		for (uint64_t tag = 1; tag <= 3; tag++)
			next_is(tag);
		CHECK(!strcmp(small[2], "late"));
	}
}

static void body(void)
{
	memory[0] = 10;
	memory[1] = 20;
	OK(fi_mr_reg(my.domain, memory, sizeof memory, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &region, NULL));
	meet(3);
	others_go_on();
	nothing_gets_past();
	remote_operations_wait();
	cancelled();
	closing();
	OK(fi_close(&region->fid));
}

int main(void)
{
	return run(3, &(struct wishes){0}, body, -1);
}
