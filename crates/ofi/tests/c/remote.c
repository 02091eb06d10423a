/* Reading, writing and atomically changing a peer's memory; completion data; counters; refusals; and the old
 * registration mode with virtual addresses. */
#define _GNU_SOURCE
#include "harness.h"
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum { SIZE = 1 << 20 };
static unsigned char *memory, *local;
static struct fid_mr *region;
static uint64_t base, key; /* of the peer's memory */
static int other;

static void open_memory(void)
{
	other = 1 - my.rank;
	memory = malloc(SIZE);
	local = malloc(SIZE);
	fill(memory, SIZE, (unsigned)my.rank);
	OK(fi_mr_reg(my.domain, memory, SIZE, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 4711 + (uint64_t)my.rank, 0, &region, NULL));
	bool basic = my.info->domain_attr->mr_mode == FI_MR_BASIC;
	uint64_t mine[2] = {basic ? (uint64_t)memory : 0, fi_mr_key(region)};
	uint64_t theirs[2];
	if (!basic)
		EQUAL(mine[1], 4711 + my.rank);
	write_all(other, mine, sizeof mine);
	read_all(other, theirs, sizeof theirs);
	base = theirs[0];
	key = theirs[1];
}

/* Operations that go by message need progress at the target, so both sides come here. */
static void both_done(void)
{
	char byte;
	write_all(other, "", 1);
	struct pollfd quiet = {.fd = pipes[other][my.rank][0], .events = POLLIN};
	while (poll(&quiet, 1, 0) == 0)
		make_progress();
	read_all(other, &byte, 1);
}

static void reads_and_writes(void)
{
	fi_addr_t peer = my.peers[other];
	static const size_t sizes[] = {1, 8, 100, 2048, 5000, 100000, SIZE};
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		size_t length = sizes[i], offset = (SIZE - length) / 2;
		memset(local, 0, length);
		OK_WHEN_ROOM(fi_read(my.ep, local, length, NULL, peer, base + offset, key, local));
		struct fi_cq_tagged_entry entry = next();
		CHECK(entry.op_context == local);
		EQUAL(entry.flags & (FI_RMA | FI_READ | FI_WRITE), FI_RMA | FI_READ);
		for (size_t at = 0; at < length; at++)
			EQUAL(local[at], (unsigned char)((unsigned)other * 31 + (offset + at) * 7 + ((offset + at) >> 8)));
	}
	both_done();
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		size_t length = sizes[i], offset = (SIZE - length) / 2;
		fill(local, length, 100 + (unsigned)i);
		OK_WHEN_ROOM(fi_write(my.ep, local, length, NULL, peer, base + offset, key, local));
		struct fi_cq_tagged_entry entry = next();
		CHECK(entry.op_context == local);
		EQUAL(entry.flags & (FI_RMA | FI_READ | FI_WRITE), FI_RMA | FI_WRITE);
		both_done();
		check_filled(memory + offset, length, 100 + (unsigned)i);
		both_done();
	}
}

static atomic_int copies;

/* Stands before that of the C library, also for the provider. */
ssize_t process_vm_readv(pid_t pid, const struct iovec *into, unsigned long ours, const struct iovec *from,
			 unsigned long theirs, unsigned long flags)
{
	copies++;
	return syscall(SYS_process_vm_readv, pid, into, ours, from, theirs, flags);
}

/* The places of one read are copied at once, where the peer's memory is read directly: a system call takes longer than
 * to copy a few bytes. */
static void scattered_read(void)
{
	enum { PLACES = 8, EACH = 4, APART = 3000 };
	struct fi_rma_iov places[PLACES];
	struct iovec iov = {local, PLACES * EACH};
	for (int i = 0; i < PLACES; i++)
		places[i] = (struct fi_rma_iov){base + (uint64_t)i * APART, EACH, key};
	struct fi_msg_rma message = {.msg_iov = &iov, .iov_count = 1, .addr = my.peers[other], .rma_iov = places,
				     .rma_iov_count = PLACES, .context = local};
	/* The first access to a peer tries whether its memory can be reached. */
	OK_WHEN_ROOM(fi_read(my.ep, local, EACH, NULL, my.peers[other], base, key, local));
	next();
	memset(local, 0, PLACES * EACH);
	int before = copies;
	OK_WHEN_ROOM(fi_readmsg(my.ep, &message, FI_COMPLETION));
	CHECK(next().op_context == local);
	CHECK(copies - before <= 1);
	for (size_t i = 0; i < PLACES * EACH; i++) {
		size_t at = i / EACH * APART + i % EACH;
		EQUAL(local[i], (unsigned char)((unsigned)other * 31 + at * 7 + (at >> 8)));
	}
	both_done();
}

static void scattered_write(void)
{
	struct iovec iov[2] = {{local, 10}, {local + 100, 20}};
	struct fi_rma_iov places[2] = {{base + 1000, 25, key}, {base + 2000, 5, key}};
	struct fi_msg_rma message = {.msg_iov = iov, .iov_count = 2, .addr = my.peers[other], .rma_iov = places,
				     .rma_iov_count = 2, .context = local, .data = 99};
	memset(memory, 0, SIZE);
	fill(local, 200, 1);
	both_done();
	OK_WHEN_ROOM(fi_writemsg(my.ep, &message, FI_REMOTE_CQ_DATA | FI_DELIVERY_COMPLETE | FI_COMPLETION));
	for (int i = 0; i < 2; i++) {
		struct fi_cq_tagged_entry entry = next();
		if (entry.flags & FI_REMOTE_WRITE) {
			EQUAL(entry.data, 99);
			EQUAL(entry.len, 30);
			CHECK(entry.flags & FI_REMOTE_CQ_DATA);
		} else {
			CHECK(entry.op_context == local);
		}
	}
	both_done();
	CHECK(!memcmp(memory + 1000, local, 10) && !memcmp(memory + 1010, local + 100, 15) && memory[1025] == 0);
	CHECK(!memcmp(memory + 2000, local + 115, 5) && memory[2005] == 0);
	message.rma_iov_count = 1;
	EQUAL(fi_writemsg(my.ep, &message, 0), -FI_EINVAL);
}

static void injected_write(void)
{
	memset(memory, 0, SIZE);
	both_done();
	for (int i = 0; i < 100; i++) {
		uint32_t number = (uint32_t)i + 1;
		OK_WHEN_ROOM(fi_inject_write(my.ep, &number, sizeof number, my.peers[other], base + (uint64_t)i * 4, key));
	}
	while (((volatile uint32_t *)memory)[99] == 0)
		make_progress();
	both_done();
	for (uint32_t i = 0; i < 100; i++)
		EQUAL(((uint32_t *)memory)[i], i + 1);
}

static void refusals(void)
{
	char text[256];
	OK_WHEN_ROOM(fi_read(my.ep, local, 8, NULL, my.peers[other], base + SIZE - 4, key, local));
	struct fi_cq_err_entry error = next_error(text);
	EQUAL(error.err, FI_EACCES);
	CHECK(error.op_context == local);
	OK_WHEN_ROOM(fi_write(my.ep, local, 8, NULL, my.peers[other], base, key + 7, local));
	EQUAL(next_error(text).err, FI_EACCES);
	both_done();
}

/* Longer than fi_atomicvalid says, and so long that lengths leave 32 bits, or 64. Nothing is touched. */
static void atomics_that_are_too_long(void)
{
	static const size_t counts[] = {1ul << 29, (1ul << 29) + 1, 1ul << 32, 1ul << 61, (1ul << 61) + 1, SIZE_MAX / 8, SIZE_MAX};
	fi_addr_t peer = my.peers[other];
	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		struct fi_rma_ioc halves[2] = {{base, counts[i] / 2, key}, {base, counts[i] - counts[i] / 2, key}};
		struct fi_ioc mine = {local, counts[i]}, result = {local, counts[i]};
		struct fi_msg_atomic message = {.msg_iov = &mine, .iov_count = 1, .addr = peer, .rma_iov = halves,
						.rma_iov_count = 2, .datatype = FI_INT64, .op = FI_SUM, .context = local};
		EQUAL(fi_atomic(my.ep, local, counts[i], NULL, peer, base, key, FI_INT64, FI_SUM, local), -FI_EINVAL);
		EQUAL(fi_fetch_atomic(my.ep, NULL, counts[i], NULL, local, NULL, peer, base, key, FI_INT64, FI_ATOMIC_READ, local),
		      -FI_EINVAL);
		EQUAL(fi_compare_atomic(my.ep, local, counts[i], NULL, local, NULL, local, NULL, peer, base, key, FI_INT64, FI_CSWAP,
					local),
		      -FI_EINVAL);
		EQUAL(fi_fetch_atomicmsg(my.ep, &message, &result, NULL, 1, 0), -FI_EINVAL);
	}
	EQUAL(fi_fetch_atomic(my.ep, NULL, 1ul << 32, NULL, local, NULL, peer, base, key, FI_UINT8, FI_ATOMIC_READ, local), -FI_EINVAL);
	both_done();
}

static void atomics(void)
{
	fi_addr_t peer = my.peers[other];
	int64_t operand[3] = {5, -7, 1000}, result[3], compare;
	double half = 0.5, old;
	((int64_t *)memory)[0] = 10;
	((int64_t *)memory)[1] = 20;
	((int64_t *)memory)[2] = 30;
	((double *)memory)[8] = 1.25;
	both_done();
	OK_WHEN_ROOM(fi_atomic(my.ep, operand, 3, NULL, peer, base, key, FI_INT64, FI_SUM, local));
	struct fi_cq_tagged_entry entry = next();
	CHECK(entry.op_context == local && entry.flags & FI_ATOMIC);
	OK_WHEN_ROOM(fi_fetch_atomic(my.ep, operand, 3, NULL, result, NULL, peer, base, key, FI_INT64, FI_MAX, local));
	next();
	CHECK(result[0] == 15 && result[1] == 13 && result[2] == 1030);
	OK_WHEN_ROOM(fi_fetch_atomic(my.ep, NULL, 3, NULL, result, NULL, peer, base, key, FI_INT64, FI_ATOMIC_READ, local));
	next();
	CHECK(result[0] == 15 && result[1] == 13 && result[2] == 1030);
	compare = 15;
	OK_WHEN_ROOM(fi_compare_atomic(my.ep, operand, 1, NULL, &compare, NULL, result, NULL, peer, base, key, FI_INT64, FI_CSWAP,
				       local));
	next();
	EQUAL(result[0], 15);
	OK_WHEN_ROOM(fi_fetch_atomic(my.ep, &half, 1, NULL, &old, NULL, peer, base + 64, key, FI_DOUBLE, FI_PROD, local));
	next();
	CHECK(old == 1.25);
	both_done();
	EQUAL(((int64_t *)memory)[0], 5);
	CHECK(((double *)memory)[8] == 0.625);
	EQUAL(fi_atomic(my.ep, operand, 1, NULL, peer, base, key, FI_DOUBLE, FI_BOR, local), -FI_EOPNOTSUPP);
	struct fi_atomic_attr attr;
	OK(fi_query_atomic(my.domain, FI_INT32, FI_SUM, &attr, FI_FETCH_ATOMIC));
	CHECK(attr.size == 4 && attr.count >= 1);
	EQUAL(fi_query_atomic(my.domain, FI_INT32, FI_CSWAP, &attr, 0), -FI_EOPNOTSUPP);
	both_done();
}

/* Both add to the same counter in rank 0's memory: nothing is lost. */
static void contended(void)
{
	enum { COUNT = 2000 };
	uint64_t one = 1;
	((uint64_t *)memory)[0] = 0;
	both_done();
	for (int i = 0; i < COUNT; i++) {
		if (my.rank == 0) {
			OK_WHEN_ROOM(fi_inject_atomic(my.ep, &one, 1, my.peers[0], my.info->domain_attr->mr_mode ? (uint64_t)memory : 0,
						      fi_mr_key(region), FI_UINT64, FI_SUM));
		} else {
			OK_WHEN_ROOM(fi_inject_atomic(my.ep, &one, 1, my.peers[0], base, key, FI_UINT64, FI_SUM));
		}
	}
	if (my.rank == 0)
		while (((volatile uint64_t *)memory)[0] < 2 * COUNT)
			make_progress();
	both_done();
	if (my.rank == 0)
		EQUAL(((uint64_t *)memory)[0], 2 * COUNT);
	both_done();
}

/* A region can be registered again under its key once it is closed, and is gone for peers. */
static void closing(void)
{
	char text[256];
	struct fid_mr *again;
	if (!my.info->domain_attr->mr_mode)
		EQUAL(fi_mr_reg(my.domain, memory, 8, FI_REMOTE_READ, 0, fi_mr_key(region), 0, &again, NULL), -FI_ENOKEY);
	both_done();
	OK(fi_close(&region->fid));
	both_done();
	OK_WHEN_ROOM(fi_read(my.ep, local, 8, NULL, my.peers[other], base, key, local));
	EQUAL(next_error(text).err, FI_EACCES);
	both_done();
}

static void body(void)
{
	open_memory();
	scattered_read();
	reads_and_writes();
	scattered_write();
	injected_write();
	refusals();
	atomics_that_are_too_long();
	atomics();
	contended();
	closing();
	meet(2);
}

/* With counters, successes of calls without FI_COMPLETION are counted and not queued. */
static void counted(void)
{
	open_memory();
	struct fi_rma_iov place = {base, 8, key};
	struct iovec iov = {local, 8};
	struct fi_msg_rma message = {.msg_iov = &iov, .iov_count = 1, .addr = my.peers[other], .rma_iov = &place, .rma_iov_count = 1};
	for (int i = 0; i < 100; i++)
		OK_WHEN_ROOM(fi_writemsg(my.ep, &message, FI_DELIVERY_COMPLETE));
	OK(fi_cntr_wait(my.counter, 100, -1));
	OK_WHEN_ROOM(fi_inject_write(my.ep, local, 8, my.peers[other], base, key));
	OK(fi_cntr_wait(my.counter, 101, -1));
	EQUAL(fi_cntr_wait(my.counter, 102, 50), -FI_ETIMEDOUT);
	EQUAL(fi_cntr_read(my.counter), 101);
	nothing_completes();
	place.key += 7;
	OK_WHEN_ROOM(fi_writemsg(my.ep, &message, 0));
	while (fi_cntr_readerr(my.counter) == 0)
		;
	char text[256];
	EQUAL(next_error(text).err, FI_EACCES);
	both_done();
	OK(fi_close(&region->fid));
	meet(2);
}

/* A target that counts writes counts each of its peer's, with data or without, long or short, once; reads do not
 * count. */
static void counted_by_target(void)
{
	enum { WRITES = 4 };
	struct fi_rma_iov places[2] = {{0, 50000, 0}, {0, 50000, 0}};
	struct iovec iov = {0};
	struct fi_msg_rma message = {.msg_iov = &iov, .iov_count = 1, .rma_iov = places, .rma_iov_count = 2};
	uint64_t one = 1;
	open_memory();
	for (int i = 0; i < 2; i++) {
		places[i].addr = base + (uint64_t)i * 100000;
		places[i].key = key;
	}
	iov = (struct iovec){local, 100000};
	message.addr = my.peers[other];
	fill(local, 100000, 9);
	OK_WHEN_ROOM(fi_writemsg(my.ep, &message, FI_COMPLETION));
	OK_WHEN_ROOM(fi_inject_write(my.ep, local, 8, my.peers[other], base + 300000, key));
	OK_WHEN_ROOM(fi_inject_writedata(my.ep, local, 8, 7, my.peers[other], base + 300008, key));
	OK_WHEN_ROOM(fi_inject_atomic(my.ep, &one, 1, my.peers[other], base + 300016, key, FI_UINT64, FI_ATOMIC_WRITE));
	OK(fi_cntr_wait(my.counter, WRITES, -1));
	check_filled(memory, 50000, 9);
	CHECK(!memcmp(memory + 100000, local + 50000, 50000) && !memcmp(memory + 300000, local, 8));
	EQUAL(((uint64_t *)memory)[300016 / 8], 1);
	OK_WHEN_ROOM(fi_read(my.ep, local, 8, NULL, my.peers[other], base, key, local));
	/* Two successes of its own, and one write that brought data. */
	for (int i = 0; i < 3; i++)
		next();
	meet(2);
	nothing_completes();
	EQUAL(fi_cntr_read(my.counter), WRITES);
	OK(fi_close(&region->fid));
	meet(2);
}

int main(void)
{
	int failed = run(2, &(struct wishes){0}, body, -1);
	if (!failed)
		failed = run(2, &(struct wishes){.mr_mode = FI_MR_BASIC}, body, -1);
	if (!failed)
		failed = run(2, &(struct wishes){.counter_flags = FI_READ | FI_WRITE, .cq_flags = FI_SELECTIVE_COMPLETION}, counted, -1);
	if (!failed)
		failed = run(2, &(struct wishes){.counter_flags = FI_REMOTE_WRITE}, counted_by_target, -1);
	return failed;
}
