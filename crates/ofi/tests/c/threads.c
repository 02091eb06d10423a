/* Four threads of each of two processes send and receive through one endpoint at once, as FI_THREAD_SAFE allows. */
#include "harness.h"
#include <pthread.h>

enum { THREADS = 4, COUNT = 500 };
static int done[THREADS]; /* messages that each thread has received, counted by whoever reads the completion */

static void *talk(void *number)
{
	uint64_t thread = (uintptr_t)number;
	fi_addr_t peer = my.peers[1 - my.rank];
	static uint64_t in[THREADS][COUNT];
	for (uint64_t i = 0; i < COUNT; i++) {
		uint64_t value = thread << 32 | i;
		ssize_t sent;
		while ((sent = fi_trecv(my.ep, &in[thread][i], 8, NULL, peer, thread, 0, (void *)(thread + 1))) == -FI_EAGAIN)
			;
		OK(sent);
		while ((sent = fi_tinject(my.ep, &value, 8, peer, thread)) == -FI_EAGAIN)
			;
		OK(sent);
	}
	while (__atomic_load_n(&done[thread], __ATOMIC_ACQUIRE) < COUNT) {
		struct fi_cq_tagged_entry entry;
		ssize_t got = fi_cq_read(my.cq, &entry, 1);
		if (got == 1)
			__atomic_fetch_add(&done[(uintptr_t)entry.op_context - 1], 1, __ATOMIC_RELEASE);
		else
			EQUAL(got, -FI_EAGAIN);
	}
	for (uint64_t i = 0; i < COUNT; i++)
		EQUAL(in[thread][i], thread << 32 | i);
	return NULL;
}

static void body(void)
{
	pthread_t threads[THREADS];
	for (uintptr_t i = 0; i < THREADS; i++)
		EQUAL(pthread_create(&threads[i], NULL, talk, (void *)i), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	meet(2);
}

int main(void)
{
	return run(2, &(struct wishes){.threading = FI_THREAD_SAFE}, body, -1);
}
