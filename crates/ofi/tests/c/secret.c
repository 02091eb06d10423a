/* Two processes that have all that an endpoint shows of itself: segments, sockets to be woken by, locks, counters, traces,
 * a service, a log. Each says its address, and they stay until their standard input ends. */
#include "harness.h"

static void body(void)
{
	unsigned char name[64];
	size_t length = sizeof name;
	char line[200], byte;

	OK(fi_getname(&my.ep->fid, name, &length));
	EQUAL(length, 64);
	for (int round = 0; round < 20; round++) {
		int number = round, got = -1;
		struct fi_cq_tagged_entry entry;
		OK_WHEN_ROOM(fi_trecv(my.ep, &got, sizeof got, NULL, my.peers[1 - my.rank], 7, 0, &got));
		OK_WHEN_ROOM(fi_tsend(my.ep, &number, sizeof number, NULL, my.peers[1 - my.rank], 7, &number));
		for (int left = 2; left > 0;) {
			ssize_t read = fi_cq_sread(my.cq, &entry, 1, NULL, 100);
			if (read == 1)
				left--;
			else
				EQUAL(read, -FI_EAGAIN);
		}
		EQUAL(got, round);
	}
	int at = snprintf(line, sizeof line, "address %d ", (int)getpid());
	for (size_t i = 0; i < length; i++)
		at += snprintf(line + at, sizeof line - (size_t)at, "%02x", name[i]);
	line[at++] = '\n';
	EQUAL(write(1, line, (size_t)at), at);
	while (read(0, &byte, 1) > 0)
		;
	meet(2);
}

int main(void)
{
	struct wishes wishes = {.wait = FI_WAIT_FD};
	return run(2, &wishes, body, -1);
}
