/* A thread sleeps on the receive queue of an endpoint while another thread of its process calls into the same domain:
 * what that one completes, takes out of the mailbox, or starts and leaves, wakes the sleeper all the same. A thread
 * that is not woken sleeps until an alarm of the provider. Those are put off here, so far that a thread that waits for
 * a processor of a busy machine is not taken for one that sleeps. */
#define _GNU_SOURCE
#include "two_queues.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

enum { ROUNDS = 20, LONG_BYTES = 4 << 20, FEW = 2 * ROUNDS };
/* By what every alarm is put off, and how long a wake may take. */
enum { PUT_OFF_SECONDS = 20, LATE_MICROSECONDS = 10 * 1000 * 1000 };

static fi_addr_t own;
static const char *of_sleep;
static bool on_descriptor;

static atomic_int_least32_t received;
static atomic_long last_wake; /* in microseconds */
static atomic_long put_off;   /* how many times */

static long microseconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* These two stand before those of the C library, also for the provider: whoever it lets sleep for a while sleeps longer
 * by PUT_OFF_SECONDS, unless something comes. */
int poll(struct pollfd *descriptors, nfds_t count, int milliseconds)
{
	struct timespec most = {.tv_sec = milliseconds / 1000 + PUT_OFF_SECONDS};
	if (milliseconds == 0)
		most.tv_sec = 0;
	else
		put_off++;
	return (int)syscall(SYS_ppoll, descriptors, count, milliseconds < 0 ? NULL : &most, NULL, 0);
}

int timerfd_settime(int fd, int flags, const struct itimerspec *set, struct itimerspec *old)
{
	struct itimerspec later = *set;
	if (later.it_value.tv_sec != 0 || later.it_value.tv_nsec > 1) {
		later.it_value.tv_sec += PUT_OFF_SECONDS;
		put_off++;
	}
	return (int)syscall(SYS_timerfd_settime, fd, flags, &later, old);
}

static void nap(long microseconds)
{
	nanosleep(&(struct timespec){.tv_nsec = microseconds * 1000}, NULL);
}

/* Sleeps until there is a completion, and notes when it woke. */
static void sleep_once(void)
{
	struct fi_cq_tagged_entry entry;
	struct fid *fids[] = {&receive_queue->fid};
	struct pollfd sleep = {.events = POLLIN};
	ssize_t got;
	OK(fi_control(&receive_queue->fid, FI_GETWAIT, &sleep.fd));
	if (on_descriptor)
		while ((got = fi_cq_read(receive_queue, &entry, 1)) == -FI_EAGAIN) {
			if (fi_trywait(my.fabric, fids, 1) == 0)
				CHECK(poll(&sleep, 1, -1) >= 0);
		}
	else
		got = fi_cq_sread(receive_queue, &entry, 1, NULL, -1);
	if (got == -FI_EAVAIL) {
		struct fi_cq_err_entry error = {0};
		EQUAL(fi_cq_readerr(receive_queue, &error, 0), 1);
		EQUAL(error.err, FI_ECANCELED);
	} else {
		EQUAL(got, 1);
	}
	last_wake = microseconds();
	received++;
}

static void *sleeper(void *count)
{
	for (intptr_t i = (intptr_t)count; i > 0; i--)
		sleep_once();
	return NULL;
}

static pthread_t start_sleeper(intptr_t count)
{
	pthread_t thread;
	received = 0;
	EQUAL(pthread_create(&thread, NULL, sleeper, (void *)count), 0);
	EQUAL(pthread_setname_np(thread, "sleeper"), 0);
	return thread;
}

/* Fails if a wake that `what` caused at `begun` came so late that only an alarm can have been its cause. */
static void woken_in_time(const char *what, long begun, long woke)
{
	if (woke - begun > LATE_MICROSECONDS)
		FAIL("%s does not wake a thread asleep %s", what, of_sleep);
}

/* Waits until the sleeper has had its `count`-th completion, which `what` caused at `begun`. */
static void wakes(const char *what, int count, long begun)
{
	while (received < count)
		nap(100);
	woken_in_time(what, begun, last_wake);
}

/* A completion without any packet: a message to oneself. */
static void a_message_to_oneself(void)
{
	static char in[8];
	pthread_t thread = start_sleeper(ROUNDS);
	for (int i = 0; i < ROUNDS; i++) {
		OK_WHEN_ROOM(fi_trecv(endpoint, in, sizeof in, NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
		nap(20000 + 1000 * i);
		long begun = microseconds();
		OK_WHEN_ROOM(fi_tinject(endpoint, "", 1, own, 1));
		wakes("a message to oneself", i + 1, begun);
	}
	pthread_join(thread, NULL);
}

static void a_cancel(void)
{
	static char in[8];
	pthread_t thread = start_sleeper(ROUNDS);
	for (int i = 0; i < ROUNDS; i++) {
		OK_WHEN_ROOM(fi_trecv(endpoint, in, sizeof in, NULL, FI_ADDR_UNSPEC, 2, 0, in));
		nap(20000 + 1000 * i);
		long begun = microseconds();
		OK(fi_cancel(&endpoint->fid, in));
		wakes("a cancel", i + 1, begun);
	}
	pthread_join(thread, NULL);
}

/* Rank 1 sends at moments that it tells by the message. On rank 0 a thread sleeps for it; the main thread reads the
 * other queue up to that moment and beyond, or stops before. */
static void messages(bool reads_on)
{
	struct fi_cq_tagged_entry entry;
	char byte;
	if (my.rank == 1) {
		for (int i = 0; i < ROUNDS; i++) {
			read_all(0, &byte, 1);
			for (long end = microseconds() + 30000 + 1000 * i; microseconds() < end; nap(1000))
				fi_cq_read(send_queue, NULL, 0);
			long begun = microseconds();
			OK_WHEN_ROOM(fi_tinject(endpoint, &begun, sizeof begun, peer, 3));
		}
		return;
	}
	static long begun[ROUNDS];
	for (int i = 0; i < ROUNDS; i++)
		OK_WHEN_ROOM(fi_trecv(endpoint, &begun[i], sizeof *begun, NULL, peer, 3, 0, NULL));
	pthread_t thread = start_sleeper(ROUNDS);
	for (int i = 0; i < ROUNDS; i++) {
		nap(5000);
		EQUAL(fi_cq_read(send_queue, &entry, 1), -FI_EAGAIN);
		write_all(1, &byte, 1);
		while (received == i) {
			if (reads_on)
				EQUAL(fi_cq_read(send_queue, &entry, 1), -FI_EAGAIN);
			nap(50);
		}
		wakes(reads_on ? "a message that another thread takes" : "a message after another thread has looked", i + 1,
		      begun[i]);
	}
	pthread_join(thread, NULL);
}

/* The main thread starts what takes many calls of progress, and makes none of them. */
static void a_transfer_that_another_thread_starts(void)
{
	unsigned char *bytes = mmap(NULL, LONG_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct fi_cq_tagged_entry entry;
	char byte = 0;
	CHECK(bytes != MAP_FAILED);
	pthread_t thread = 0;
	if (my.rank == 0)
		thread = start_sleeper(ROUNDS);
	for (int i = 0; i < ROUNDS; i++) {
		if (my.rank == 1) {
			memset(bytes, i + 1, LONG_BYTES);
			OK_WHEN_ROOM(fi_tsend(endpoint, bytes, LONG_BYTES, NULL, peer, 4, NULL));
			write_all(0, &byte, 1);
			EQUAL(fi_cq_sread(send_queue, &entry, 1, NULL, -1), 1);
			continue;
		}
		read_all(1, &byte, 1);
		nap(20000 + 1000 * i);
		long begun = microseconds();
		OK_WHEN_ROOM(fi_trecv(endpoint, bytes, LONG_BYTES, NULL, peer, 4, 0, NULL));
		wakes("a transfer that another thread has started", i + 1, begun);
		CHECK(bytes[LONG_BYTES - 1] == i + 1);
	}
	if (my.rank == 0)
		pthread_join(thread, NULL);
	munmap(bytes, LONG_BYTES);
}

/* A wake does not last: a thread that has nothing to read sleeps, although others read the other queue. */
static void who_has_nothing_to_do_sleeps(void)
{
	static char in[8];
	OK_WHEN_ROOM(fi_trecv(endpoint, in, sizeof in, NULL, FI_ADDR_UNSPEC, 5, 0, NULL));
	pthread_t thread = start_sleeper(1);
	nap(20000);
	long before = naps_of("sleeper");
	for (int i = 0; i < 400; i++) {
		EQUAL(fi_cq_read(send_queue, NULL, 0), -FI_EAGAIN);
		nap(1000);
	}
	long woke = naps_of("sleeper") - before;
	OK_WHEN_ROOM(fi_tinject(endpoint, "", 1, own, 5));
	pthread_join(thread, NULL);
	if (woke > 100)
		FAIL("a thread asleep %s woke %ld times in 400 ms in which nothing happened", of_sleep, woke);
}

/* The main thread sleeps on both queues at once, and nothing that comes is missed at either. */
static void both_queues_at_once(void)
{
	struct fid *fids[] = {&receive_queue->fid, &send_queue->fid};
	struct pollfd sleep[] = {{.events = POLLIN}, {.events = POLLIN}};
	struct fi_cq_tagged_entry entry;
	static long begun[ROUNDS];
	OK(fi_control(&receive_queue->fid, FI_GETWAIT, &sleep[0].fd));
	OK(fi_control(&send_queue->fid, FI_GETWAIT, &sleep[1].fd));
	for (int i = 0; i < ROUNDS; i++) {
		if (my.rank == 1) {
			nap(20000 + 100 * i);
			begun[i] = microseconds();
			OK_WHEN_ROOM(fi_tsend(endpoint, &begun[i], sizeof *begun, NULL, peer, 6, NULL));
			EQUAL(fi_cq_sread(send_queue, &entry, 1, NULL, -1), 1);
			continue;
		}
		OK_WHEN_ROOM(fi_trecv(endpoint, &begun[i], sizeof *begun, NULL, peer, 6, 0, NULL));
		while (fi_cq_read(receive_queue, &entry, 1) == -FI_EAGAIN)
			if (fi_trywait(my.fabric, fids, 2) == 0)
				CHECK(poll(sleep, 2, -1) >= 0);
		woken_in_time("a message", begun[i], microseconds());
	}
}

static void *send_sleeper(void *unused)
{
	struct fi_cq_tagged_entry entry;
	EQUAL(fi_cq_sread(send_queue, &entry, 1, NULL, -1), 1);
	last_wake = microseconds();
	received++;
	return unused;
}

/* The receive queue is full of messages that came into a multi-receive buffer, so nothing is taken out of the mailbox,
 * in which a receipt lies for a thread that sleeps on the other queue. Then the main thread reads one message, and no
 * more. */
static void a_reader_that_makes_room(void)
{
	struct fi_cq_tagged_entry entry;
	static char buffer[1 << 16];
	char byte = 0;
	for (int i = 0; i < ROUNDS; i++) {
		if (my.rank == 1) {
			OK_WHEN_ROOM(fi_trecv(endpoint, &byte, 1, NULL, peer, 7, 0, NULL));
			for (int j = 0; i == 0 ? j < FEW : j < 1; j++)
				OK_WHEN_ROOM(fi_inject(endpoint, "", 1, peer));
			write_all(0, &byte, 1);
			EQUAL(fi_cq_sread(receive_queue, &entry, 1, NULL, -1), 1);
			/* The receipt has left. */
			fi_cq_read(receive_queue, NULL, 0);
			write_all(0, &byte, 1);
			continue;
		}
		struct iovec piece = {.iov_base = buffer, .iov_len = sizeof buffer};
		struct fi_msg into = {.msg_iov = &piece, .iov_count = 1, .addr = FI_ADDR_UNSPEC};
		struct iovec from = {.iov_base = &byte, .iov_len = 1};
		struct fi_msg_tagged message = {.msg_iov = &from, .iov_count = 1, .addr = peer, .tag = 7};
		pthread_t thread;
		if (i == 0)
			OK(fi_recvmsg(endpoint, &into, FI_MULTI_RECV));
		read_all(1, &byte, 1);
		for (long end = microseconds() + 5000; microseconds() < end;)
			fi_cq_read(send_queue, NULL, 0);
		received = 0;
		OK_WHEN_ROOM(fi_tsendmsg(endpoint, &message, FI_DELIVERY_COMPLETE | FI_COMPLETION));
		EQUAL(pthread_create(&thread, NULL, send_sleeper, NULL), 0);
		read_all(1, &byte, 1);
		nap(20000 + 5000 * i);
		EQUAL(received, 0);
		long begun = microseconds();
		EQUAL(fi_cq_read(receive_queue, &entry, 1), 1);
		wakes("room in the other queue", 1, begun);
		pthread_join(thread, NULL);
	}
}

static void body(void)
{
	open_queues(&(struct fi_cq_attr){.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_FD, .size = FEW});
	EQUAL(fi_av_insert(my.av, own_name, 1, &own, 0, NULL), 1);
	for (int way = 0; way < 2; way++) {
		on_descriptor = way == 1;
		of_sleep = on_descriptor ? "on the descriptor" : "in fi_cq_sread";
		if (my.rank == 0) {
			a_message_to_oneself();
			a_cancel();
			who_has_nothing_to_do_sleeps();
		}
		meet(2);
		messages(true);
		meet(2);
		messages(false);
		meet(2);
		a_transfer_that_another_thread_starts();
		meet(2);
		both_queues_at_once();
		meet(2);
	}
	a_reader_that_makes_room();
	meet(2);
	if (put_off == 0)
		FAIL("the provider has slept and set alarms in ways that this program does not see");
	close_queues();
}

int main(void)
{
	return run(2, &(struct wishes){.threading = FI_THREAD_SAFE}, body, -1);
}
