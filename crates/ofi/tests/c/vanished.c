/* Somebody removes the file of a living rank, as epilogues of jobs and systemd's RemoveIPC do. Ranks that are connected
 * go on, and no place in a table of peers is given to another rank, so every message comes under its sender's name. A
 * rank that connects only afterwards gets an error. */
#include "harness.h"
#include <glob.h>

enum { FIRST = 1, LATER = 2, NEWCOMER = 3, ROUNDS = 1000 };

/* Removes the segments of a process. */
static void remove_segments(pid_t owner)
{
	char pattern[64];
	glob_t found;

	snprintf(pattern, sizeof pattern, "/dev/shm/tidegate-*-*-*-%d-*", (int)owner);
	EQUAL(glob(pattern, 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++)
		OK(unlink(found.gl_pathv[i]));
	globfree(&found);
}

static int receive_from(int rank, uint64_t tag)
{
	int value = -1;
	fi_addr_t source;

	OK(fi_trecv(my.ep, &value, sizeof value, NULL, my.peers[rank], tag, 0, NULL));
	next_from(&source);
	EQUAL(source, my.peers[rank]);
	return value;
}

static void send_to(int rank, int value, uint64_t tag)
{
	OK_WHEN_ROOM(fi_tinject(my.ep, &value, sizeof value, my.peers[rank], tag));
}

static void body(void)
{
	char text[256], byte = 0;
	pid_t owner = getpid();

	/* Ranks 0 and 1 exchange messages; rank 2 has not connected to anybody. */
	if (my.rank < 2) {
		send_to(1 - my.rank, my.rank, FIRST);
		EQUAL(receive_from(1 - my.rank, FIRST), 1 - my.rank);
	}
	if (my.rank == 1)
		write_all(0, &owner, sizeof owner);
	if (my.rank == 0) {
		read_all(1, &owner, sizeof owner);
		remove_segments(owner);
		/* Within a second every rank has checked several times whether its peers live. */
		time_t start = time(NULL);
		while (time(NULL) - start < 2)
			make_progress();
	}
	if (my.rank < 2)
		meet(2);
	if (my.rank == 0)
		write_all(2, &byte, 1);
	if (my.rank == 2) {
		read_all(0, &byte, 1);
		send_to(0, 2, NEWCOMER);
		/* A rank that connects now cannot reach rank 1. */
		int value = 2;
		OK_WHEN_ROOM(fi_tsend(my.ep, &value, sizeof value, NULL, my.peers[1], LATER, NULL));
		EQUAL(next_error(text).err, FI_ECONNABORTED);
		if (!strstr(text, "RemoveIPC"))
			FAIL("the text names no cause: %s", text);
	}
	if (my.rank == 0)
		EQUAL(receive_from(2, NEWCOMER), 2);
	for (int round = 0; round < ROUNDS && my.rank < 2; round++) {
		send_to(1 - my.rank, 10 * round + my.rank, LATER);
		EQUAL(receive_from(1 - my.rank, LATER), 10 * round + 1 - my.rank);
	}
	meet(3);
}

int main(void)
{
	return run(3, &(struct wishes){0}, body, -1);
}
