/* Three processes flood each other; one is killed in the middle. The others get error completions that name it, and go
 * on. */
#include "harness.h"

enum { VICTIM = 2, WINDOW = 16, BYTES = 1500 };
static unsigned char out[BYTES], in[RANKS_MOST][WINDOW][BYTES];

static void body(void)
{
	char name[32], text[256];
	bool died = false;
	int errors = 0;
	uint64_t received[RANKS_MOST] = {0};
	/* fi_tidegate(7): "So a program that tries a refused operation again reads its queue meanwhile, errors included: when a
	 * peer dies, all that was under way to it ends in errors."
	 *
	 * Buffers whose receives were refused, because the queue is full of the errors of what was injected for the dead. */
	unsigned char *refused[RANKS_MOST * WINDOW];
	int refusals = 0;

	snprintf(name, sizeof name, "pid %d", 0);
	for (int peer = 0; peer < my.ranks; peer++)
		for (int i = 0; i < WINDOW && peer != my.rank; i++)
			OK(fi_trecv(my.ep, in[peer][i], BYTES, NULL, my.peers[peer], 1, 0, in[peer][i]));
	/* The victim tells its name, floods, and kills itself with a signal that cannot be caught. */
	pid_t victim = getpid();
	if (my.rank == VICTIM) {
		for (int peer = 0; peer < VICTIM; peer++)
			write_all(peer, &victim, sizeof victim);
	} else {
		read_all(VICTIM, &victim, sizeof victim);
		snprintf(name, sizeof name, "pid %d", (int)victim);
	}
	meet(my.ranks);
	/* Flood until every receive from the dead has failed; everybody goes on receiving from everybody alive. What was
	 * injected for the dead fails too, as many messages as were still under way. */
	for (uint64_t round = 0; !died; round++) {
		for (int peer = 0; peer < my.ranks; peer++) {
			ssize_t sent = -FI_EAGAIN;
			if (peer == my.rank)
				continue;
			if (round % 4 == 0)
				sent = fi_tinject(my.ep, out, 8, my.peers[peer], 1);
			if (sent < 0 && sent != -FI_EAGAIN && peer != VICTIM)
				FAIL("sending to the living: %s", fi_strerror((int)-sent));
		}
		if (my.rank == VICTIM && round == 2000)
			kill(getpid(), SIGKILL);
		struct fi_cq_tagged_entry entry;
		ssize_t got = fi_cq_read(my.cq, &entry, 1);
		if (got == 1) {
			unsigned char *buffer = entry.op_context;
			int peer = (int)((buffer - in[0][0]) / (WINDOW * BYTES));
			received[peer]++;
			refused[refusals++] = buffer;
		} else if (got == -FI_EAVAIL) {
			struct fi_cq_err_entry error = next_error(text);
			EQUAL(error.err, FI_ECONNABORTED);
			if (!strstr(text, name))
				FAIL("the text does not name the peer: %s", text);
			CHECK(!strcmp(fi_cq_strerror(my.cq, error.prov_errno, error.err_data, NULL, 0), text));
			errors += (error.flags & FI_RECV) != 0;
			died = errors == WINDOW;
		} else {
			EQUAL(got, -FI_EAGAIN);
		}
		while (refusals > 0) {
			unsigned char *buffer = refused[refusals - 1];
			int peer = (int)((buffer - in[0][0]) / (WINDOW * BYTES));
			ssize_t posted = fi_trecv(my.ep, buffer, BYTES, NULL, my.peers[peer], 1, 0, buffer);
			if (posted == -FI_EAGAIN)
				break;
			OK(posted);
			refusals--;
		}
	}
	/* Between hosts it may have died with all that it had sent. */
	CHECK(received[VICTIM] > 0 || getenv("TEST_APART"));
	/* The survivors still reach each other, between the errors of the last messages to the dead. */
	uint64_t greeting = 0x600dull, answer = 0;
	bool greeted = false, answered = false;
	bool asked = false;
	while (!greeted || !answered) {
		struct fi_cq_tagged_entry entry;
		if (!asked) {
			ssize_t posted = fi_trecv(my.ep, &answer, sizeof answer, NULL, my.peers[1 - my.rank], 2, 0, &answer);
			CHECK(posted == 0 || posted == -FI_EAGAIN);
			asked = posted == 0;
		}
		if (!greeted) {
			ssize_t sent = fi_tinject(my.ep, &greeting, sizeof greeting, my.peers[1 - my.rank], 2);
			CHECK(sent == 0 || sent == -FI_EAGAIN);
			greeted = sent == 0;
		}
		ssize_t got = fi_cq_read(my.cq, &entry, 1);
		if (got == -FI_EAVAIL) {
			struct fi_cq_err_entry error = next_error(text);
			CHECK(error.err == FI_ECONNABORTED && (error.flags & FI_SEND) && strstr(text, name));
		}
		answered |= got == 1 && entry.op_context == &answer;
	}
	EQUAL(answer, greeting);
	meet(2);
}

int main(void)
{
	return run(3, &(struct wishes){0}, body, VICTIM);
}
