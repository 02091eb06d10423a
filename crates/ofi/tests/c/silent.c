/* What a process has left to do when it stops calling: it goes on, unless FI_TIDEGATE_PROGRESS=calls, with which this is
 * run with `calls`; also where membarrier is `forbidden`, or is `forbidden_later`. Run with few buffers or slots. A second
 * argument is the length of the long messages in MiB, 16 without it: it has to be long enough that most of the message
 * is still to come when one side falls silent. */
#include "harness.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { MESSAGES = 60 };
static bool goes_on;
/* Length of a long message, in bytes. */
static size_t length_of_long = 16 << 20;

/* How many messages come within so many seconds. */
static int come_within(double most, uint64_t *in)
{
	double begun = seconds_of(CLOCK_MONOTONIC);
	int count = 0, looks = 0;
	while (count < MESSAGES && seconds_of(CLOCK_MONOTONIC) - begun < most) {
		struct fi_cq_tagged_entry entry;
		ssize_t got = fi_cq_read(my.cq, &entry, 1);
		if (got == 1) {
			EQUAL(*(uint64_t *)entry.op_context, count);
			CHECK(entry.op_context == &in[count]);
			count++;
			looks = 0;
		} else {
			EQUAL(got, -FI_EAGAIN);
			wait_a_little(&looks);
		}
	}
	return count;
}

/* Rank 1 sends more than there is room for, and waits for an answer that comes in another way. */
static void messages_leave_though_their_sender_is_silent(bool injected)
{
	static uint64_t numbers[MESSAGES], in[MESSAGES];
	char byte = 0;
	meet(2);
	if (my.rank == 1) {
		for (uint64_t i = 0; i < MESSAGES; i++) {
			numbers[i] = i;
			if (injected)
				OK_WHEN_ROOM(fi_tinject(my.ep, &numbers[i], 8, my.peers[0], 1));
			else
				OK_WHEN_ROOM(fi_tsend(my.ep, &numbers[i], 8, NULL, my.peers[0], 1, NULL));
		}
		write_all(0, &byte, 1);
		read_all(0, &byte, 1);
		for (int i = 0; !injected && i < MESSAGES; i++)
			next();
		meet(2);
		return;
	}
	read_all(1, &byte, 1);
	for (int i = 0; i < MESSAGES; i++)
		OK_WHEN_ROOM(fi_trecv(my.ep, &in[i], 8, NULL, my.peers[1], 1, 0, &in[i]));
	int come = come_within(goes_on ? 20 : 0.3, in);
	if ((come == MESSAGES) != goes_on)
		FAIL("%d of %d messages have come from a silent sender", come, MESSAGES);
	write_all(1, &byte, 1);
	for (int i = come; i < MESSAGES; i++)
		next();
	meet(2);
}

/* Rank 1 goes on calling, but only for another endpoint of the same domain: nobody makes progress of the first one. */
static void messages_leave_though_their_sender_calls_for_another_endpoint(int rest)
{
	static uint64_t numbers[MESSAGES], in[MESSAGES];
	char byte = 0;
	meet(2);
	if (my.rank == 1) {
		struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED};
		struct fi_cq_tagged_entry entry;
		struct fid_cq *queue;
		struct fid_ep *other;
		OK(fi_cq_open(my.domain, &attr, &queue, NULL));
		OK(fi_endpoint(my.domain, my.info, &other, NULL));
		OK(fi_ep_bind(other, &my.av->fid, 0));
		OK(fi_ep_bind(other, &queue->fid, FI_TRANSMIT | FI_RECV));
		OK(fi_enable(other));
		for (uint64_t i = 0; i < MESSAGES; i++) {
			numbers[i] = i;
			OK_WHEN_ROOM(fi_tinject(my.ep, &numbers[i], 8, my.peers[0], 1));
		}
		write_all(0, &byte, 1);
		struct pollfd quiet = {.fd = pipes[0][1][0], .events = POLLIN};
		while (poll(&quiet, 1, rest) == 0)
			EQUAL(fi_cq_read(queue, &entry, 1), -FI_EAGAIN);
		read_all(0, &byte, 1);
		meet(2);
		OK(fi_close(&other->fid));
		OK(fi_close(&queue->fid));
		return;
	}
	read_all(1, &byte, 1);
	for (int i = 0; i < MESSAGES; i++)
		OK_WHEN_ROOM(fi_trecv(my.ep, &in[i], 8, NULL, my.peers[1], 1, 0, &in[i]));
	EQUAL(come_within(20, in), MESSAGES);
	write_all(1, &byte, 1);
	meet(2);
}

/* Whether a message has come that no receive has taken. */
static bool has_come(uint64_t tag)
{
	struct fi_msg_tagged look = {.addr = my.peers[!my.rank], .tag = tag};
	struct fi_cq_err_entry error = {0};
	struct fi_cq_tagged_entry entry;
	ssize_t got;
	OK_WHEN_ROOM(fi_trecvmsg(my.ep, &look, FI_PEEK));
	while ((got = fi_cq_read(my.cq, &entry, 1)) == -FI_EAGAIN)
		;
	if (got == 1)
		return true;
	EQUAL(fi_cq_readerr(my.cq, &error, 0), 1);
	EQUAL(error.err, FI_ENOMSG);
	return false;
}

/* Either side of a long message falls silent once it has begun, until the other one is through. */
static void a_long_message_ends_though_one_side_is_silent(int silent)
{
	enum { TAG = 2, FILLED = 7 };
	static char bytes[16 << 20];
	size_t length = length_of_long;
	struct fi_cq_tagged_entry entry;
	bool is_done = false;
	char byte = 0;
	memset(bytes, my.rank ? 0 : FILLED, length);
	meet(2);
	if (my.rank == 1) {
		while (!has_come(TAG))
			;
		OK_WHEN_ROOM(fi_trecv(my.ep, bytes, length, NULL, my.peers[0], TAG, 0, NULL));
		write_all(0, &byte, 1);
	} else {
		OK_WHEN_ROOM(fi_tsend(my.ep, bytes, length, NULL, my.peers[1], TAG, NULL));
		hear_from(1);
	}
	if (my.rank == silent) {
		read_all(!my.rank, &byte, 1);
	} else {
		double begun = seconds_of(CLOCK_MONOTONIC);
		for (int looks = 0; !is_done && seconds_of(CLOCK_MONOTONIC) - begun < 60; wait_a_little(&looks))
			is_done = fi_cq_read(my.cq, &entry, 1) == 1;
		if (!is_done)
			FAIL("a message of %zu bytes does not end while its %s is silent", length, silent ? "receiver" : "sender");
		write_all(silent, &byte, 1);
	}
	if (!is_done)
		next();
	EQUAL(bytes[0] + bytes[length - 1], 2 * FILLED);
	meet(2);
}

/* Nothing is left, so there is nothing that wakes. Rank 1 has a thread: it has left something before. */
static void who_has_nothing_left_sleeps(void)
{
	struct timespec half_a_second = {.tv_nsec = 500000000};
	meet(2);
	if (my.rank == 1) {
		bool sleeps = false;
		for (int try = 0; try < 20 && !sleeps; try++) {
			long before = naps_of("tidegate");
			nanosleep(&half_a_second, NULL);
			sleeps = naps_of("tidegate") == before;
		}
		CHECK(sleeps);
	}
	meet(2);
}

/* As containers may do it: from now on this process, all of its threads, and its children have no membarrier. */
static void forbid_membarrier(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
	EQUAL(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	EQUAL(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program), 0);
	EQUAL(syscall(SYS_membarrier, 0, 0, 0), -1);
}

/* The thread does without it: what is left goes on as before. */
static void body_that_forbids_it_later(void)
{
	goes_on = true;
	messages_leave_though_their_sender_is_silent(true);
	forbid_membarrier();
	messages_leave_though_their_sender_is_silent(true);
}

static void body(void)
{
	for (int injected = 0; injected < 2; injected++)
		messages_leave_though_their_sender_is_silent(injected);
	if (!goes_on)
		return;
	for (int silent = 0; silent < 2; silent++)
		a_long_message_ends_though_one_side_is_silent(silent);
	messages_leave_though_their_sender_calls_for_another_endpoint(0);
	messages_leave_though_their_sender_calls_for_another_endpoint(5);
	who_has_nothing_left_sleeps();
}

int main(int count, char **arguments)
{
	CHECK(count == 2 || count == 3);
	if (count == 3)
		length_of_long = (size_t)atoi(arguments[2]) << 20;
	CHECK(length_of_long > 0 && length_of_long <= 16 << 20);
	if (!strcmp(arguments[1], "forbidden"))
		forbid_membarrier();
	if (!strcmp(arguments[1], "forbidden_later"))
		return run(2, &(struct wishes){.threading = FI_THREAD_DOMAIN}, body_that_forbids_it_later, -1);
	goes_on = strcmp(arguments[1], "calls");
	int failed = run(2, &(struct wishes){.threading = FI_THREAD_DOMAIN}, body, -1);
	failed |= run(2, &(struct wishes){.threading = FI_THREAD_SAFE}, body, -1);
	return failed;
}
