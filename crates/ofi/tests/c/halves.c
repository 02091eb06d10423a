/* A message of which only the beginning has come, because its sender has no more credits and rests, keeps nobody else
 * waiting: reads end, and what others send is received, by the same endpoint and by another one of the same queue. So it
 * is while a message of ours waits for credits of a peer that rests. */
#include "harness.h"

enum { HALF = 1, WHOLE = 2, LENGTH = 2000, MESSAGES = 300 };

static struct fid_ep *second;
static fi_addr_t second_of_first;
static unsigned char out[LENGTH], in[LENGTH];

/* A second endpoint of rank 0, on the queue of the first. */
static void open_second(void)
{
	char name[64] = {0};
	size_t length = sizeof name;
	if (my.rank == 0) {
		OK(fi_endpoint(my.domain, my.info, &second, NULL));
		OK(fi_ep_bind(second, &my.av->fid, 0));
		OK(fi_ep_bind(second, &my.cq->fid, FI_TRANSMIT | FI_RECV));
		OK(fi_enable(second));
		OK(fi_getname(&second->fid, name, &length));
		write_all(2, name, sizeof name);
	} else if (my.rank == 2) {
		read_all(0, name, sizeof name);
		EQUAL(fi_av_insert(my.av, name, 1, &second_of_first, 0, NULL), 1);
	}
}

/* Rank 0: what rank 2 sends comes, by turns to each endpoint. */
static void receive_all(void)
{
	for (int message = 0; message < MESSAGES; message++) {
		struct fid_ep *endpoint = message % 2 ? second : my.ep;
		int value = -1;
		OK(fi_trecv(endpoint, &value, sizeof value, NULL, FI_ADDR_UNSPEC, WHOLE, 0, &value));
		CHECK(next().op_context == &value);
		EQUAL(value, message);
	}
}

static void send_all(void)
{
	for (int message = 0; message < MESSAGES; message++)
		OK_WHEN_ROOM(fi_tinject(my.ep, &message, sizeof message, message % 2 ? second_of_first : my.peers[0], WHOLE));
}

static void body(void)
{
	char byte = 0;
	open_second();
	if (my.rank == 1) {
		fill(out, LENGTH, 1);
		OK(fi_tsend(my.ep, out, LENGTH, NULL, my.peers[0], HALF, out));
		write_all(0, &byte, 1);
		/* Rests: no progress until rank 0 says so. */
		read_all(0, &byte, 1);
		OK(fi_trecv(my.ep, in, LENGTH, NULL, my.peers[0], HALF, 0, in));
		complete(2, (void *[]){out, in});
		check_filled(in, LENGTH, 2);
	} else if (my.rank == 0) {
		OK(fi_trecv(my.ep, in, LENGTH, NULL, my.peers[1], HALF, 0, in));
		read_all(1, &byte, 1);
		nothing_completes();
		receive_all();
		/* Ours goes to the peer that rests: its credits are spent before it is out. */
		fill(out, LENGTH, 2);
		OK(fi_tsend(my.ep, out, LENGTH, NULL, my.peers[1], HALF, out));
		nothing_completes();
		receive_all();
		write_all(1, &byte, 1);
		complete(2, (void *[]){in, out});
		check_filled(in, LENGTH, 1);
	} else {
		send_all();
		send_all();
	}
	meet(3);
	if (my.rank == 0)
		OK(fi_close(&second->fid));
}

int main(void)
{
	return run(3, &(struct wishes){0}, body, -1);
}
