/* Addresses that are removed, in good order or with mistakes among them. */
#include "harness.h"

static void send_one(fi_addr_t to, int expected)
{
	ssize_t result;
	while ((result = fi_tinject(my.ep, "x", 1, to, 1)) == -FI_EAGAIN)
		make_progress();
	EQUAL(result, expected);
}

static void receive_one(void)
{
	char byte;
	OK_WHEN_ROOM(fi_trecv(my.ep, &byte, 1, NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
	next();
}

/* Indices that are none of ours, or no more, are an error; the others are removed all the same, and nothing goes there any more. */
static void removing_with_mistakes(void)
{
	int other = 1 - my.rank;
	char name[64];
	size_t length = sizeof name;
	fi_addr_t removed[4];
	OK(fi_av_lookup(my.av, my.peers[other], name, &length));
	EQUAL(fi_av_insert(my.av, name, 1, &removed[0], 0, NULL), 1);
	EQUAL(fi_av_insert(my.av, name, 1, &removed[3], 0, NULL), 1);
	removed[1] = 4711;
	removed[2] = FI_ADDR_UNSPEC;
	/* The endpoint learns where they lead. */
	send_one(removed[0], 0);
	send_one(removed[3], 0);
	EQUAL(fi_av_remove(my.av, removed, 4, 0), -FI_EINVAL);
	for (int i = 0; i < 4; i++) {
		length = sizeof name;
		EQUAL(fi_av_lookup(my.av, removed[i], name, &length), -FI_EINVAL);
		send_one(removed[i], -FI_EINVAL);
	}
	send_one(my.peers[other], 0);
	for (int i = 0; i < 3; i++)
		receive_one();
	nothing_completes();
	meet(2);
}

int main(void)
{
	return run(2, &(struct wishes){0}, removing_with_mistakes, -1);
}
