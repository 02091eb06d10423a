/* Processes that begin as root, open their endpoints, and become another user before they first communicate: what they
 * send fails, and the error says so. Those that have communicated before go on. The argument: `real` or `effective`
 * ids change; `met`: after the first message. */
#include "harness.h"

enum { OTHER = 65534, LONG = 1 << 20 };
static const char *way;

static void become_another_user(void)
{
	if (!strcmp(way, "effective"))
		CHECK(setegid(OTHER) == 0 && seteuid(OTHER) == 0);
	else
		CHECK(setgid(OTHER) == 0 && setuid(OTHER) == 0);
}

static void exchange(unsigned char *out, unsigned char *in, size_t length)
{
	fi_addr_t other = my.peers[1 - my.rank];
	void *both[] = {in, out};
	fill(out, length, (unsigned)my.rank);
	OK(fi_trecv(my.ep, in, length, NULL, other, 1, 0, in));
	OK_WHEN_ROOM(fi_tsend(my.ep, out, length, NULL, other, 1, out));
	complete(2, both);
	check_filled(in, length, 1 - (unsigned)my.rank);
	meet(2);
}

/* fi_tidegate(7): "One that changes it afterwards, before it has communicated with a peer, cannot reach that peer: the
 * operation fails, and the error names both users." */
static void what_it_sends_fails(void)
{
	char text[256], expected[64];
	become_another_user();
	OK_WHEN_ROOM(fi_tsend(my.ep, "hello", 6, NULL, my.peers[1 - my.rank], 1, NULL));
	struct fi_cq_err_entry error = next_error(text);
	EQUAL(error.err, FI_ECONNABORTED);
	snprintf(expected, sizeof expected, "belongs to user 0, and this process acts as user %d", OTHER);
	if (!strstr((char *)error.err_data, expected))
		FAIL("the error is: %s", (char *)error.err_data);
	meet(2);
}

static void body(void)
{
	static unsigned char out[LONG], in[LONG];
	if (strcmp(way, "met")) {
		what_it_sends_fails();
		return;
	}
	exchange(out, in, 8);
	become_another_user();
	exchange(out, in, LONG);
}

int main(int count, char **arguments)
{
	CHECK(count == 2);
	way = arguments[1];
	if (geteuid() != 0) {
		printf("SKIPPED: only root can become another user\n");
		return 0;
	}
	return run(2, &(struct wishes){0}, body, -1);
}
