/* The main thread of a process ends while another goes on communicating: the system then finds no memory under the
 * process's id, but the process lives. Long messages and remote memory have to go another way. */
#include "harness.h"
#include <pthread.h>

enum { BYTES = 16 << 20, ROUNDS = 3, KEY = 7 };
static unsigned char buffer[BYTES], window[BYTES];
static pthread_t main_thread;
static struct fid_mr *region;

static void exchange(void)
{
	for (unsigned round = 0; round < ROUNDS; round++) {
		if (my.rank == 0) {
			memset(buffer, 0, BYTES);
			OK_WHEN_ROOM(fi_trecv(my.ep, buffer, BYTES, NULL, my.peers[1], round, 0, NULL));
			EQUAL(next().len, BYTES);
			check_filled(buffer, BYTES, round);
		} else {
			fill(buffer, BYTES, round);
			OK_WHEN_ROOM(fi_tsend(my.ep, buffer, BYTES, NULL, my.peers[0], round, NULL));
			next();
		}
	}
	/* Rank 1's memory is written to and read. Progress is made by it in `meet`. */
	if (my.rank == 0) {
		fill(buffer, BYTES, 99);
		OK_WHEN_ROOM(fi_write(my.ep, buffer, BYTES, NULL, my.peers[1], 0, KEY, NULL));
		next();
		memset(buffer, 0, BYTES);
		OK_WHEN_ROOM(fi_read(my.ep, buffer, BYTES, NULL, my.peers[1], 0, KEY, NULL));
		next();
		check_filled(buffer, BYTES, 99);
	}
	meet(2);
	if (my.rank == 1)
		check_filled(window, BYTES, 99);
}

static void *go_on(void *unused)
{
	(void)unused;
	OK(pthread_join(main_thread, NULL));
	exchange();
	OK(fi_close(&region->fid));
	close_endpoint();
	_exit(0);
}

static void body(void)
{
	int value = 1;

	/* They know each other's memory before the thread ends. */
	OK(fi_mr_reg(my.domain, window, BYTES, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &region, NULL));
	if (my.rank == 1) {
		OK_WHEN_ROOM(fi_tinject(my.ep, &value, sizeof value, my.peers[0], 1000));
	} else {
		OK_WHEN_ROOM(fi_trecv(my.ep, &value, sizeof value, NULL, my.peers[1], 1000, 0, NULL));
		next();
		OK_WHEN_ROOM(fi_write(my.ep, window, BYTES, NULL, my.peers[1], 0, KEY, NULL));
		next();
	}
	meet(2);
	if (my.rank == 1) {
		pthread_t other;
		main_thread = pthread_self();
		EQUAL(pthread_create(&other, NULL, go_on, NULL), 0);
		pthread_exit(NULL);
	}
	exchange();
	OK(fi_close(&region->fid));
}

int main(void)
{
	return run(2, &(struct wishes){0}, body, -1);
}
