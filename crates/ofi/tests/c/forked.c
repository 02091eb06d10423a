/* A forked child polls, receives, sends, and closes what it has inherited, as destructors do at its exit. That belongs to
 * the parent: no message is sent twice or out of order, none is taken out of the parent's mailbox, and no place in a peer's
 * table is taken in the parent's name. */
#include "harness.h"
#include <pthread.h>
#include <stdatomic.h>

/* More than there are credits for, so that most of them wait when the child is forked. */
#define MESSAGES 400

static void fork_one_that_meddles_and_closes(void)
{
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		struct fi_cq_tagged_entry entry;
		int number = -7;
		alarm(20);
		for (int i = 0; i < 100; i++)
			EQUAL(fi_cq_read(my.cq, &entry, 1), -FI_EOPBADSTATE);
		EQUAL(fi_trecv(my.ep, &number, sizeof number, NULL, FI_ADDR_UNSPEC, 2, 0, NULL), -FI_EOPBADSTATE);
		EQUAL(fi_tinject(my.ep, &number, sizeof number, my.peers[1 - my.rank], 1), -FI_EOPBADSTATE);
		close_endpoint();
		_exit(0);
	}
	int status;
	EQUAL(waitpid(child, &status, 0), child);
	EQUAL(status, 0);
}

/* Nor does a child wait for what a thread of the provider held when it was forked (FI_TIDEGATE_PROGRESS=thread), which
 * does not exist in the child, and of which the application knows nothing. The times between the parent's last call and
 * the fork are those at which the thread takes over. */
static void fork_those_that_call(void)
{
	for (int i = 0; i < 150; i++) {
		make_progress();
		nanosleep(&(struct timespec){.tv_nsec = 1000000 + 10000 * (i % 30)}, NULL);
		pid_t child = fork();
		CHECK(child >= 0);
		if (child == 0) {
			alarm(20);
			struct fi_cq_tagged_entry entry;
			_exit(fi_cq_read(my.cq, &entry, 1) != -FI_EOPBADSTATE);
		}
		int status;
		EQUAL(waitpid(child, &status, 0), child);
		EQUAL(status, 0);
	}
}

static atomic_bool is_over;

static void *poller(void *unused)
{
	while (!is_over)
		make_progress();
	return unused;
}

/* Children are forked while another thread is inside the provider, most of the time; that thread does not exist in the
 * child. */
static void fork_while_another_thread_polls(void)
{
	pthread_t thread;
	EQUAL(pthread_create(&thread, NULL, poller, NULL), 0);
	for (int i = 0; i < 50; i++) {
		fork_one_that_meddles_and_closes();
		nanosleep(&(struct timespec){.tv_nsec = 300000}, NULL);
	}
	is_over = true;
	pthread_join(thread, NULL);
}

static int received(fi_addr_t from, uint64_t tag)
{
	int number = -1;
	OK(fi_trecv(my.ep, &number, sizeof number, NULL, from, tag, 0, &number));
	CHECK(next().op_context == &number);
	return number;
}

/* The numbers of messages begin with this one, which is no tag. */
#define FIRST 1000

/* What comes instead, if it is another number than is expected, tells a message that is lost from one that is late and
 * from one that is not what was sent. */
static void receive_all(fi_addr_t from, uint64_t tag)
{
	int others[8] = {0};
	for (int n = 0; n < MESSAGES; n++) {
		int got = received(from, tag);
		if (got == FIRST + n)
			continue;
		/* If one is lost, there is one fewer to wait for. */
		for (int i = 0; i < 8 && n + 2 + i < MESSAGES; i++)
			others[i] = received(from, tag);
		FAIL("message %d of tag %d is %d; then came %d %d %d %d %d %d %d %d", FIRST + n, (int)tag, got, others[0],
		     others[1], others[2], others[3], others[4], others[5], others[6], others[7]);
	}
}

static void send_all(uint64_t tag)
{
	for (int number = FIRST; number < FIRST + MESSAGES; number++)
		OK_WHEN_ROOM(fi_tinject(my.ep, &number, sizeof number, my.peers[1 - my.rank], tag));
}

static void body(void)
{
	fi_addr_t other = my.peers[1 - my.rank];
	if (my.rank == 0) {
		/* Sends wait for credits. */
		send_all(1);
		fork_one_that_meddles_and_closes();
		meet(2);
		/* Messages wait in the mailbox. */
		meet(2);
		fork_one_that_meddles_and_closes();
		receive_all(other, 2);
	} else {
		meet(2);
		receive_all(other, 1);
		send_all(2);
		meet(2);
	}
	meet(2);
	/* Nothing came twice. */
	nothing_completes();
	int extra;
	OK(fi_trecv(my.ep, &extra, sizeof extra, NULL, FI_ADDR_UNSPEC, 1, 3, &extra));
	nothing_completes();
	OK(fi_cancel(&my.ep->fid, &extra));
	char text[256];
	EQUAL(next_error(text).err, FI_ECANCELED);
	meet(2);
	if (my.rank == 0) {
		fork_those_that_call();
		fork_while_another_thread_polls();
	}
	meet(2);
}

int main(void)
{
	int failed = run(2, &(struct wishes){0}, body, -1);
	/* The thread that polls is the only one that calls, but for children. */
	return failed | run(2, &(struct wishes){.threading = FI_THREAD_DOMAIN}, body, -1);
}
