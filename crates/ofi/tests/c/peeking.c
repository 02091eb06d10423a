/* Who waits by peeks that find nothing gives the processor away as often as who reads an empty queue. The number of
 * empty polls before that is set to POLLS. */
#define _GNU_SOURCE
#include "harness.h"
#include <stdatomic.h>
#include <sys/syscall.h>

enum { POLLS = 8, ROUNDS = 100 };

static atomic_int yields;

/* Stands before that of the C library, also for the provider. */
int sched_yield(void)
{
	yields++;
	return (int)syscall(SYS_sched_yield);
}

/* Looks for a message, and reads the answer, which is no. */
static void peek_in_vain(void)
{
	struct fi_msg_tagged message = {.addr = FI_ADDR_UNSPEC, .tag = 5};
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error = {0};
	ssize_t got;
	EQUAL(fi_trecvmsg(my.ep, &message, FI_PEEK), 0);
	while ((got = fi_cq_read(my.cq, &entry, 1)) == -FI_EAGAIN)
		;
	EQUAL(got, -FI_EAVAIL);
	EQUAL(fi_cq_readerr(my.cq, &error, 0), 1);
	EQUAL(error.err, FI_ENOMSG);
}

static void body(void)
{
	/* Peeks alone, and peeks and reads in turns, as by MPI_Iprobe and MPI_Test. */
	for (int reads = 0; reads < 2; reads++) {
		yields = 0;
		for (int i = 0; i < ROUNDS; i++) {
			peek_in_vain();
			for (int j = 0; j < reads; j++)
				EQUAL(fi_cq_read(my.cq, NULL, 0), -FI_EAGAIN);
		}
		if (yields < ROUNDS - POLLS)
			FAIL("%d peeks in vain, each with %d reads, gave the processor away %d times", ROUNDS, reads, yields);
	}
}

int main(void)
{
	return run(1, &(struct wishes){0}, body, -1);
}
