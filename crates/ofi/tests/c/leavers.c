/* Peers that have left, and whose messages nobody has received yet, keep no newcomer out. A server that has room for few
 * peers receives only what is meant for it at once; clients come one after the other, leave a message for later, and
 * close or die (the argument: `close`, `die`). At last the server receives what they left, by its senders.
 * `poor`: the server's receive memory has no room for messages of peers that have no place; then a newcomer waits until
 * the server has received some. */
#include "harness.h"

enum { CLIENTS = 5, POOR_CLIENTS = 3, AT_ONCE = 1, LATER = 9, NEVER = 77 };
static const char *way;
static char server_name[64];
static int names[2];

/* What a client sends, and how it ends. */
static void be_client(int number, size_t length)
{
	fi_addr_t server;
	char own[64] = {0};
	size_t own_length = sizeof own;
	int value = number;
	live_apart();
	open_endpoint(&(struct wishes){0});
	OK(fi_getname(&my.ep->fid, own, &own_length));
	EQUAL(write(names[1], own, sizeof own), sizeof own);
	EQUAL(fi_av_insert(my.av, server_name, 1, &server, 0, NULL), 1);
	OK_WHEN_ROOM(fi_tsend(my.ep, &value, length, NULL, server, LATER, NULL));
	next();
	OK_WHEN_ROOM(fi_tsend(my.ep, &value, length, NULL, server, AT_ONCE, NULL));
	next();
	if (!strcmp(way, "die"))
		kill(getpid(), SIGKILL);
	close_endpoint();
	_exit(0);
}

static void receive_at_once(int *in)
{
	OK(fi_trecv(my.ep, in, sizeof *in, NULL, FI_ADDR_UNSPEC, AT_ONCE, 0, in));
}

/* Makes progress until a client has ended and its end has been noticed: a receive that only it could satisfy fails if
 * it has died; if it has closed, it has said so before it ended. */
static void see_the_end_of(pid_t child, int number)
{
	int status, in;
	char text[256];
	if (!strcmp(way, "die")) {
		OK(fi_trecv(my.ep, &in, sizeof in, NULL, my.peers[number], NEVER, 0, &in));
		CHECK(next_error(text).op_context == &in);
	}
	while (waitpid(child, &status, WNOHANG) == 0)
		make_progress();
	CHECK(strcmp(way, "die") ? status == 0 : WIFSIGNALED(status));
	for (double begun = seconds_of(CLOCK_MONOTONIC); seconds_of(CLOCK_MONOTONIC) - begun < 0.2;)
		make_progress();
}

static pid_t start_client(int number, size_t length)
{
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		alarm(100);
		be_client(number, length);
	}
	printf("pid %d\n", (int)child);
	return child;
}

/* fi_tidegate(7): "Messages of a peer that has closed or died, which have not been received, keep no newcomer out: they
 * can still be received, with their sender's address, after its place has gone to another." */
static void receive_later(int number, size_t length)
{
	int in = -1;
	fi_addr_t source;
	OK(fi_trecv(my.ep, &in, sizeof in, NULL, my.peers[number], LATER, 0, &in));
	struct fi_cq_tagged_entry entry = next_from(&source);
	CHECK(entry.op_context == &in && entry.len == length && entry.tag == LATER);
	EQUAL(source, my.peers[number]);
	if (length)
		EQUAL(in, number);
}

static void learn_name_of(int number)
{
	char name[64];
	EQUAL(read(names[0], name, sizeof name), sizeof name);
	EQUAL(fi_av_insert(my.av, name, 1, &my.peers[number], 0, NULL), 1);
}

static void newcomers_get_in(void)
{
	int in, value = 0;
	fi_addr_t source;
	for (int number = 0; number < CLIENTS; number++) {
		receive_at_once(&in);
		pid_t child = start_client(number, sizeof in);
		learn_name_of(number);
		CHECK(next_from(&source).op_context == &in);
		EQUAL(in, number);
		EQUAL(source, my.peers[number]);
		see_the_end_of(child, number);
	}
	/* The first have no place any more. Nothing can be sent to them, and what they left is there: the last sent first,
	 * the others in any order. */
	EQUAL(fi_tsend(my.ep, &value, sizeof value, NULL, my.peers[0], 1, &value), -FI_ECONNABORTED);
	receive_later(CLIENTS - 1, sizeof in);
	for (int number = 0; number < CLIENTS - 1; number++)
		receive_later(number * 3 % (CLIENTS - 1), sizeof in);
	/* Nothing of them is left. */
	OK(fi_trecv(my.ep, &in, sizeof in, NULL, FI_ADDR_UNSPEC, LATER, 0, &in));
	nothing_completes();
	OK(fi_cancel(&my.ep->fid, &in));
	char text[256];
	EQUAL(next_error(text).err, FI_ECANCELED);
}

/* fi_tidegate(7): "The spare part of the receive memory pays for them and for a kilobyte for each such peer; only when it
 * is used up do newcomers wait, until some have been received." */
static void a_newcomer_waits_for_memory(void)
{
	int in;
	pid_t child = 0;
	for (int number = 0; number < POOR_CLIENTS; number++) {
		receive_at_once(&in);
		child = start_client(number, 0);
		learn_name_of(number);
		if (number == POOR_CLIENTS - 1)
			break;
		CHECK(next().op_context == &in);
		see_the_end_of(child, number);
	}
	for (double begun = seconds_of(CLOCK_MONOTONIC); seconds_of(CLOCK_MONOTONIC) - begun < 0.5;)
		EQUAL(fi_cq_read(my.cq, NULL, 0), -FI_EAGAIN);
	/* The receive of the newcomer's message is posted already: its completion may come first. */
	int later = -1;
	void *both[] = {&in, &later};
	OK(fi_trecv(my.ep, &later, sizeof later, NULL, my.peers[0], LATER, 0, &later));
	complete(2, both);
	see_the_end_of(child, POOR_CLIENTS - 1);
	receive_later(1, 0);
	receive_later(2, 0);
}

int main(int count, char **arguments)
{
	size_t length = sizeof server_name;
	CHECK(count == 2);
	way = arguments[1];
	alarm(200);
	EQUAL(pipe(names), 0);
	my.ranks = 1;
	live_apart();
	open_endpoint(&(struct wishes){0});
	printf("pid %d\n", (int)getpid());
	OK(fi_getname(&my.ep->fid, server_name, &length));
	if (strcmp(way, "poor"))
		newcomers_get_in();
	else
		a_newcomer_waits_for_memory();
	close_endpoint();
	return 0;
}
