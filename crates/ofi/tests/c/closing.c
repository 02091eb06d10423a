/* fi_close of an endpoint with messages that have not left: no message is lost that a peer still receives, two
 * endpoints that close do not wait for each other, closing ends whatever peers do, and meanwhile other endpoints of the
 * domain go on. Run `unlimited` with a timeout that the test never reaches, `stopped` with one second. */
#include "harness.h"
#include <pthread.h>
#include <stdatomic.h>

/* MANY is more than a receiver has room for. */
enum { COUNT = 20000, MANY = 200000 };

static void inject_all(struct fid_ep *endpoint, fi_addr_t peer, int count)
{
	for (int i = 0; i < count; i++)
		OK_WHEN_ROOM(fi_tinject(endpoint, &i, sizeof i, peer, 1));
}

/* Each side has sent messages that the other does not receive. The harness closes both, and its alarm rings if they
 * wait for each other. */
static void mutually(void)
{
	inject_all(my.ep, my.peers[1 - my.rank], MANY);
	meet(2);
}

/* Rank 0 has had an answer from rank 1. Nothing can be injected to a peer of another host before it has answered, and
 * who makes no progress does not answer. */
static void get_to_know(void)
{
	char greeting;
	if (my.rank == 0)
		OK_WHEN_ROOM(fi_tinject(my.ep, "", 1, my.peers[1], 2));
	else
		OK_WHEN_ROOM(fi_trecv(my.ep, &greeting, 1, NULL, my.peers[0], 2, 0, NULL));
	meet(2);
	if (my.rank == 1)
		next();
}

/* The receiver makes no progress while its peer closes, and still gets everything. */
static void receiver_computes(void)
{
	get_to_know();
	if (my.rank == 0) {
		inject_all(my.ep, my.peers[1], COUNT);
		write_all(1, "c", 1);
		return;
	}
	char byte;
	read_all(0, &byte, 1);
	sleep(1);
	for (int i = 0; i < COUNT; i++) {
		int number = -1;
		OK_WHEN_ROOM(fi_trecv(my.ep, &number, sizeof number, NULL, my.peers[0], 1, 0, NULL));
		next();
		EQUAL(number, i);
	}
}

static struct fid_ep *other_endpoint(fi_addr_t *address)
{
	struct fid_ep *other;
	char name[64];
	size_t length = sizeof name;
	OK(fi_endpoint(my.domain, my.info, &other, NULL));
	OK(fi_ep_bind(other, &my.av->fid, 0));
	OK(fi_ep_bind(other, &my.cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(other));
	OK(fi_getname(&other->fid, name, &length));
	EQUAL(fi_av_insert(my.av, name, 1, address, 0, NULL), 1);
	return other;
}

/* The receiver is another endpoint of the same domain, so only the closing call itself can make progress for it. */
static void within_a_domain(void)
{
	fi_addr_t address;
	struct fid_ep *other = other_endpoint(&address);
	inject_all(my.ep, address, 500);
	OK(fi_close(&my.ep->fid));
	for (int i = 0; i < 500; i++) {
		int number = -1;
		OK_WHEN_ROOM(fi_trecv(other, &number, sizeof number, NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
		next();
		EQUAL(number, i);
	}
	my.ep = other;
}

static atomic_bool closed;

static void *close_now(void *unused)
{
	(void)unused;
	OK(fi_close(&my.ep->fid));
	closed = true;
	return NULL;
}

/* The receiver is stopped. Closing gives up when its time is over, and says what is lost; another endpoint of the
 * domain, used by another thread, is not held up. */
static void stopped_receiver(void)
{
	get_to_know();
	if (my.rank == 1) {
		pid_t own = getpid();
		write_all(0, &own, sizeof own);
		raise(SIGSTOP);
		return;
	}
	pid_t receiver;
	int status;
	read_all(1, &receiver, sizeof receiver);
	do
		status = state_of(receiver);
	while (status != 'T');
	inject_all(my.ep, my.peers[1], COUNT);
	fi_addr_t address;
	struct fid_ep *other = other_endpoint(&address);
	pthread_t thread;
	EQUAL(pthread_create(&thread, NULL, close_now, NULL), 0);
	int rounds = 0;
	for (; !closed || rounds < 100; rounds++) {
		int number = -1;
		OK_WHEN_ROOM(fi_trecv(other, &number, sizeof number, NULL, address, 9, 0, &number));
		OK_WHEN_ROOM(fi_tinject(other, &rounds, sizeof rounds, address, 9));
		struct fi_cq_tagged_entry entry;
		ssize_t got;
		while ((got = fi_cq_read(my.cq, &entry, 1)) == -FI_EAGAIN)
			;
		if (got == -FI_EAVAIL)
			break;
		EQUAL(number, rounds);
	}
	pthread_join(thread, NULL);
	/* The closing thread looks a thousand times without a nap, and then once in a millisecond. */
	if (rounds < 100)
		FAIL("only %d rounds while another thread closed", rounds);
	char text[256];
	EQUAL(next_error(text).err, FI_ECANCELED);
	EQUAL(kill(receiver, SIGCONT), 0);
	my.ep = other;
	/* What is left of the errors goes with the queue. */
}

int main(int count, char **arguments)
{
	CHECK(count == 2);
	if (strcmp(arguments[1], "unlimited") == 0) {
		int failed = run(2, &(struct wishes){0}, mutually, -1);
		failed |= run(2, &(struct wishes){0}, receiver_computes, -1);
		return failed | run(1, &(struct wishes){0}, within_a_domain, -1);
	}
	return run(2, &(struct wishes){.threading = FI_THREAD_SAFE}, stopped_receiver, -1);
}
