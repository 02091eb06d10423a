/* fi_close of an endpoint with messages that have not left: no message is lost that a peer still receives, two
 * endpoints that close do not wait for each other, closing ends whatever peers do, and meanwhile other endpoints of the
 * domain go on. Run `unlimited` with a timeout that the test never reaches, `stopped` with one second, `complaint` with
 * 11, and `goodbye` where each process has a host of its own. */
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

/* A new endpoint in the place of one that is closed, for the harness to close. Returns how many seconds closing took. */
static double close_now(void)
{
	double begun = seconds_of(CLOCK_MONOTONIC);
	OK(fi_close(&my.ep->fid));
	OK(fi_endpoint(my.domain, my.info, &my.ep, NULL));
	return seconds_of(CLOCK_MONOTONIC) - begun;
}

/* The receiver makes no progress while its peer closes, and still gets everything. Between hosts it acknowledges nothing
 * meanwhile. */
static void receiver_computes(void)
{
	get_to_know();
	if (my.rank == 0) {
		inject_all(my.ep, my.peers[1], COUNT);
		write_all(1, "c", 1);
		/* fi_tidegate(7): "Closing waits up to FI_TIDEGATE_CLOSE_TIMEOUT until the other hosts have acknowledged what was
		 * sent, and then up to 2 seconds until they have acknowledged the goodbye."
		 *
		 * What was sent, here; the goodbye, below. (A progress thread of the receiver acknowledges while it computes.) */
		const char *progress = getenv("FI_TIDEGATE_PROGRESS");
		double seconds = close_now();
		CHECK(seconds > 0.8 || (progress && !strcmp(progress, "thread")));
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

/* fi_tidegate(7): "Meanwhile the domain is not locked, and all its endpoints make progress, so the receiver may be one of
 * them."
 *
 * The receiver is another endpoint of the same domain, so only the closing call itself can make progress for it. */
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

/* Rank 1 stops, and goes on when it gets SIGCONT. Returns its process. By then it has acknowledged what it has taken, which
 * it need not do at once. */
static pid_t stop_the_other(void)
{
	pid_t receiver = getpid();
	get_to_know();
	if (my.rank == 1) {
		for (double begun = seconds_of(CLOCK_MONOTONIC); seconds_of(CLOCK_MONOTONIC) - begun < 0.3;)
			make_progress();
		write_all(0, &receiver, sizeof receiver);
		raise(SIGSTOP);
		return receiver;
	}
	read_all(1, &receiver, sizeof receiver);
	while (state_of(receiver) != 'T')
		;
	return receiver;
}

/* The receiver takes nothing, and its sender says so once before it gives up. */
static void complaint(void)
{
	pid_t receiver = stop_the_other();
	if (my.rank == 1)
		return;
	inject_all(my.ep, my.peers[1], COUNT);
	double took = close_now();
	CHECK(took > 10.9 && took < 30);
	EQUAL(kill(receiver, SIGCONT), 0);
}

/* Nothing is left but the goodbye. */
static void goodbye(void)
{
	pid_t receiver = stop_the_other();
	if (my.rank == 1)
		return;
	double took = close_now();
	CHECK(took > 1.5 && took < 20);
	EQUAL(kill(receiver, SIGCONT), 0);
}

static atomic_bool closed;

static void *close_beside(void *unused)
{
	(void)unused;
	OK(fi_close(&my.ep->fid));
	closed = true;
	return NULL;
}

/* fi_tidegate(7): "It then waits for what has not left yet, as long as the receivers live, and for
 * FI_TIDEGATE_CLOSE_TIMEOUT at most; every 10 seconds a line on standard error says for which peers it waits, and how long
 * at most."
 *
 * The receiver is stopped. Closing gives up when its time is over, and says what is lost; another endpoint of the
 * domain, used by another thread, is not held up. */
static void stopped_receiver(void)
{
	pid_t receiver = stop_the_other();
	if (my.rank == 1)
		return;
	inject_all(my.ep, my.peers[1], COUNT);
	fi_addr_t address;
	struct fid_ep *other = other_endpoint(&address);
	pthread_t thread;
	EQUAL(pthread_create(&thread, NULL, close_beside, NULL), 0);
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
	if (strcmp(arguments[1], "complaint") == 0)
		return run(2, &(struct wishes){0}, complaint, -1);
	if (strcmp(arguments[1], "goodbye") == 0)
		return run(2, &(struct wishes){0}, goodbye, -1);
	return run(2, &(struct wishes){.threading = FI_THREAD_SAFE}, stopped_receiver, -1);
}
