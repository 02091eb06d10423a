/* Processes that end, or fork, while the thread that stands by has something left: their own threads are theirs, and none
 * of ours runs while they are taken down. */
#include "harness.h"
#include <pthread.h>

enum { MESSAGES = 60, SOME = 20, STACK = 2 << 20 };
static uint64_t numbers[MESSAGES];
static pthread_t of_child;
static volatile bool is_over;
static bool is_child, is_last;

static int threads(void)
{
	int count = 0;
	DIR *tasks = opendir("/proc/self/task");
	CHECK(tasks);
	while (readdir(tasks))
		count++;
	closedir(tasks);
	return count - 2; /* "." and ".." */
}

static void leave(int count)
{
	for (int i = 0; i < count; i++)
		OK_WHEN_ROOM(fi_tinject(my.ep, &numbers[i], 8, my.peers[0], 1));
}

static void *work(void *unused)
{
	while (!is_over)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	return unused;
}

/* Registered before the provider's own handler, and so called after it. */
static void finish(void)
{
	char byte = 0;
	if (is_child) {
		is_over = true;
		EQUAL(pthread_join(of_child, NULL), 0);
	}
	if (is_last) {
		EQUAL(threads(), 1);
		leave(SOME);
		nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
		EQUAL(threads(), 1);
		write_all(0, &byte, 1);
		close_endpoint();
	}
}

static void exit_in_a_child_with_a_thread_of_its_own(void)
{
	pid_t child = fork();
	if (child == 0) {
		pthread_attr_t attr;
		is_child = true;
		EQUAL(pthread_attr_init(&attr), 0);
		/* It gets the stack, and so the name, of the parent's thread. */
		EQUAL(pthread_attr_setstacksize(&attr, STACK), 0);
		EQUAL(pthread_create(&of_child, &attr, work, NULL), 0);
		exit(0);
	}
	int status;
	CHECK(waitpid(child, &status, 0) == child);
	EQUAL(status, 0);
}

static void body(void)
{
	static uint64_t in[MESSAGES];
	char byte = 0;
	meet(2);
	if (my.rank == 1) {
		leave(MESSAGES);
		nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
		EQUAL(threads(), 2);
		exit_in_a_child_with_a_thread_of_its_own();
		write_all(0, &byte, 1);
		meet(2);
		leave(SOME);
		is_last = true;
		exit(0);
	}
	read_all(1, &byte, 1);
	for (int i = 0; i < MESSAGES; i++)
		OK_WHEN_ROOM(fi_trecv(my.ep, &in[i], 8, NULL, my.peers[1], 1, 0, &in[i]));
	for (int i = 0; i < MESSAGES; i++)
		next();
	meet(2);
	/* Silent, so that something is left there. */
	read_all(1, &byte, 1);
}

int main(void)
{
	atexit(finish);
	return run(2, &(struct wishes){.threading = FI_THREAD_DOMAIN}, body, -1);
}
