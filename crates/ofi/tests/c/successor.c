/* A peer leaves, and another process takes its place in the table of peers. Nothing that is known of the first is ever
 * taken for the second: not the name of its last message, not a receive that is directed at it. */
#include "harness.h"

static void send_number(int number, uint64_t tag)
{
	OK_WHEN_ROOM(fi_tinject(my.ep, &number, sizeof number, my.peers[0], tag));
}

/* Lets the provider look after its peers for a while. */
static void watch(void)
{
	for (int i = 0; i < 300; i++) {
		make_progress();
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
}

static void receiver(void)
{
	int first = 0, second = 0;
	char byte = 0;
	fi_addr_t source = FI_ADDR_UNSPEC;
	hear_from(1);
	watch();
	OK(fi_trecv(my.ep, &first, sizeof first, NULL, my.peers[1], 7, 0, &first));
	OK(fi_trecv(my.ep, &second, sizeof second, NULL, my.peers[1], 8, 0, &second));
	write_all(2, &byte, 1);
	hear_from(2);
	watch();
	CHECK(next_from(&source).op_context == &first);
	EQUAL(first, 1001);
	EQUAL(source, my.peers[1]);
	nothing_completes();
	OK(fi_cancel(&my.ep->fid, &second));
	char text[256];
	EQUAL(next_error(text).err, FI_ECANCELED);
	EQUAL(second, 0);
	OK(fi_trecv(my.ep, &second, sizeof second, NULL, FI_ADDR_UNSPEC, 8, 0, &second));
	CHECK(next_from(&source).op_context == &second);
	EQUAL(second, 2002);
	EQUAL(source, my.peers[2]);
	write_all(2, &byte, 1);
}

static void body(void)
{
	char byte = 0;
	switch (my.rank) {
	case 0:
		receiver();
		return;
	case 1:
		send_number(1001, 7);
		close_endpoint();
		write_all(0, &byte, 1);
		_exit(0);
	default:
		hear_from(0);
		send_number(2002, 8);
		write_all(0, &byte, 1);
		hear_from(0);
	}
}

int main(void)
{
	return run(3, &(struct wishes){0}, body, -1);
}
