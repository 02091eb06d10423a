/* Events of remote accesses (FI_RMA_EVENT): counters that are bound to a memory region, and to an endpoint with
 * FI_REMOTE_WRITE and FI_REMOTE_READ. Each rule of fi_mr(3) and fi_endpoint(3), on both sides at once. All is bound after
 * the endpoint was enabled, as Sandia OpenSHMEM does. */
#include "harness.h"

enum { SIZE = 1 << 18, LONG = 100000 };
static unsigned char *memory[2], *local;
static struct fid_mr *regions[2];
static uint64_t keys[2]; /* of the peer's regions, the first of which has a counter */
static struct fid_cntr *of_region, *of_writes, *of_reads;
static int other;

static struct fid_cntr *counter(void)
{
	struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC};
	struct fid_cntr *opened;
	OK(fi_cntr_open(my.domain, &attr, &opened, NULL));
	return opened;
}

static void open_memory(uint64_t flags)
{
	other = 1 - my.rank;
	local = calloc(1, SIZE);
	for (int i = 0; i < 2; i++) {
		memory[i] = calloc(1, SIZE);
		OK(fi_mr_reg(my.domain, memory[i], SIZE, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, (uint64_t)(10 * my.rank + i), i ? 0 : flags,
			     &regions[i], NULL));
		keys[i] = (uint64_t)(10 * other + i);
	}
}

/* What goes by message needs progress at the target, so both sides come here. */
static void both_done(void)
{
	write_all(other, "", 1);
	hear_from(other);
}

/* So many more events of each kind have been counted since the last call, and no others come. */
static void counted(uint64_t at_region, uint64_t writes, uint64_t reads)
{
	static uint64_t before[3];
	struct fid_cntr *counters[3] = {of_region, of_writes, of_reads};
	uint64_t more[3] = {at_region, writes, reads};
	for (int i = 0; i < 3; i++) {
		if (!counters[i])
			continue;
		OK(fi_cntr_wait(counters[i], before[i] += more[i], -1));
	}
	both_done();
	for (int i = 0; i < 3; i++) {
		if (!counters[i])
			continue;
		EQUAL(fi_cntr_read(counters[i]), before[i]);
		EQUAL(fi_cntr_readerr(counters[i]), 0);
	}
	both_done();
}

static void write_somewhere(int region, size_t length, uint64_t place)
{
	OK_WHEN_ROOM(fi_write(my.ep, local, length, NULL, my.peers[other], place, keys[region], local));
	next();
}

/* Writes, in each way that there is. */
static void writes(void)
{
	fi_addr_t peer = my.peers[other];
	fill(local, SIZE, 3);
	write_somewhere(0, 8, 0);
	counted(1, 1, 0);
	write_somewhere(0, LONG, 8);
	counted(1, 1, 0);
	check_filled(memory[0] + 8, LONG, 3);
	write_somewhere(1, LONG, 0);
	counted(0, 1, 0);
	OK_WHEN_ROOM(fi_inject_write(my.ep, local, 8, peer, 16, keys[0]));
	counted(1, 1, 0);
	OK_WHEN_ROOM(fi_inject_writedata(my.ep, local, 8, 77, peer, 24, keys[0]));
	struct fi_cq_tagged_entry entry = next();
	EQUAL(entry.data, 77);
	CHECK(entry.flags & FI_REMOTE_WRITE);
	counted(1, 1, 0);
	struct iovec iov = {local, 3 * 40000};
	struct fi_rma_iov places[3] = {{0, 40000, keys[1]}, {50000, 40000, keys[0]}, {100000, 40000, keys[0]}};
	struct fi_msg_rma message = {.msg_iov = &iov, .iov_count = 1, .addr = peer, .rma_iov = places, .rma_iov_count = 3};
	OK_WHEN_ROOM(fi_writemsg(my.ep, &message, FI_COMPLETION));
	next();
	counted(1, 1, 0);
	CHECK(!memcmp(memory[0] + 50000, local + 40000, 40000) && !memcmp(memory[0] + 100000, local + 80000, 40000));
	/* A region that is bound and refuses counts nothing. */
	char text[256];
	OK_WHEN_ROOM(fi_write(my.ep, local, 8, NULL, peer, SIZE - 4, keys[0], local));
	EQUAL(next_error(text).err, FI_EACCES);
	counted(0, 0, 0);
	/* Its own operations are those of a peer like any other. */
	OK_WHEN_ROOM(fi_write(my.ep, local, 8, NULL, my.peers[my.rank], 0, fi_mr_key(regions[0]), local));
	next();
	counted(1, 1, 0);
}

/* Base atomics are writes of the endpoint, fetching ones reads; the region hears of all that change it. */
static void atomics(void)
{
	fi_addr_t peer = my.peers[other];
	uint64_t one = 1, result, compare = 0;
	memset(memory[0], 0, 64);
	both_done();
	OK_WHEN_ROOM(fi_atomic(my.ep, &one, 1, NULL, peer, 0, keys[0], FI_UINT64, FI_SUM, local));
	next();
	counted(1, 1, 0);
	OK_WHEN_ROOM(fi_inject_atomic(my.ep, &one, 1, peer, 0, keys[1], FI_UINT64, FI_ATOMIC_WRITE));
	counted(0, 1, 0);
	OK_WHEN_ROOM(fi_fetch_atomic(my.ep, &one, 1, NULL, &result, NULL, peer, 0, keys[0], FI_UINT64, FI_SUM, local));
	next();
	counted(1, 0, 1);
	OK_WHEN_ROOM(fi_compare_atomic(my.ep, &one, 1, NULL, &compare, NULL, &result, NULL, peer, 8, keys[0], FI_UINT64, FI_CSWAP, local));
	next();
	counted(1, 0, 1);
	OK_WHEN_ROOM(fi_fetch_atomic(my.ep, NULL, 1, NULL, &result, NULL, peer, 0, keys[0], FI_UINT64, FI_ATOMIC_READ, local));
	next();
	counted(0, 0, 1);
	EQUAL(result, 2);
}

static void reads(void)
{
	fi_addr_t peer = my.peers[other];
	OK_WHEN_ROOM(fi_read(my.ep, local, 8, NULL, peer, 0, keys[0], local));
	next();
	counted(0, 0, 1);
	struct iovec iov = {local, LONG + 8};
	struct fi_rma_iov places[2] = {{0, LONG, keys[0]}, {0, 8, keys[1]}};
	struct fi_msg_rma message = {.msg_iov = &iov, .iov_count = 1, .addr = peer, .rma_iov = places, .rma_iov_count = 2};
	OK_WHEN_ROOM(fi_readmsg(my.ep, &message, FI_COMPLETION));
	next();
	counted(0, 0, 1);
}

/* What fi_mr_bind, fi_mr_enable and fi_close say. */
static void bindings(void)
{
	struct fid_cntr *second = counter();
	struct fid_mr *refused;
	of_region = counter();
	EQUAL(fi_mr_bind(regions[0], &of_region->fid, 0), -FI_EBADFLAGS);
	EQUAL(fi_mr_bind(regions[0], &of_region->fid, FI_REMOTE_WRITE | FI_SEND), -FI_EBADFLAGS);
	EQUAL(fi_mr_bind(regions[0], &my.cq->fid, FI_REMOTE_WRITE), -FI_ENOSYS);
	OK(fi_mr_bind(regions[0], &my.ep->fid, 0));
	OK(fi_mr_bind(regions[0], &of_region->fid, FI_REMOTE_WRITE));
	EQUAL(fi_mr_bind(regions[0], &second->fid, FI_REMOTE_WRITE), -FI_EINVAL);
	OK(fi_mr_enable(regions[0]));
	OK(fi_close(&second->fid));
	EQUAL(fi_close(&of_region->fid), -FI_EBUSY);
	EQUAL(fi_mr_reg(my.domain, local, 8, FI_REMOTE_READ, 0, 99, FI_RMA_EVENT | FI_MULTI_RECV, &refused, NULL), -FI_EBADFLAGS);
	/* Nobody asks for FI_MR_RMA_EVENT, and nothing of it is left. */
	EQUAL(my.info->domain_attr->mr_mode, 0);
	CHECK(my.info->caps & FI_RMA_EVENT && my.info->rx_attr->caps & FI_RMA_EVENT);
}

/* Closes everything: a counter only when nothing is bound to it any more. */
static void end(void)
{
	meet(2);
	for (int i = 0; i < 2; i++)
		OK(fi_close(&regions[i]->fid));
	meet(2);
	OK(fi_close(&my.ep->fid));
	for (int i = 0; i < 3; i++) {
		struct fid_cntr *bound = (struct fid_cntr *[]){of_region, of_writes, of_reads}[i];
		if (bound)
			OK(fi_close(&bound->fid));
	}
	OK(fi_close(&my.cq->fid));
	OK(fi_close(&my.av->fid));
	OK(fi_close(&my.domain->fid));
	OK(fi_close(&my.fabric->fid));
	_exit(0);
}

/* A region alone counts, for which nothing was said when it was registered: peers have written to it directly before. */
static void at_a_region(void)
{
	open_memory(0);
	both_done();
	write_somewhere(0, LONG, 0);
	both_done();
	bindings();
	both_done();
	writes();
	atomics();
	reads();
	end();
}

static void at_all(void)
{
	open_memory(FI_RMA_EVENT);
	bindings();
	of_writes = counter();
	of_reads = counter();
	OK(fi_ep_bind(my.ep, &of_writes->fid, FI_REMOTE_WRITE));
	OK(fi_ep_bind(my.ep, &of_reads->fid, FI_REMOTE_READ));
	EQUAL(fi_ep_bind(my.ep, &of_reads->fid, FI_REMOTE_READ), -FI_EINVAL);
	both_done();
	writes();
	atomics();
	reads();
	end();
}

/* One counter for both (with FI_MR_ENDPOINT OpenSHMEM binds it twice): an event counts once. */
static void at_both(void)
{
	open_memory(0);
	bindings();
	OK(fi_ep_bind(my.ep, &of_region->fid, FI_REMOTE_WRITE));
	both_done();
	write_somewhere(0, LONG, 0);
	counted(1, 0, 0);
	write_somewhere(1, 8, 0);
	counted(1, 0, 0);
	OK_WHEN_ROOM(fi_inject_writedata(my.ep, local, 8, 77, my.peers[other], 0, keys[0]));
	next();
	counted(1, 0, 0);
	end();
}

/* shmem_wait_until: the counter is read, memory is looked at, and the next event is waited for. One side writes and then
 * makes no call; that the other has waited in vain would show as a hang. */
static void waited_for(void)
{
	enum { ROUNDS = 300 };
	volatile uint64_t *flag;
	char byte;
	open_memory(0);
	bindings();
	both_done();
	flag = (volatile uint64_t *)memory[0];
	for (uint64_t round = 1; round <= ROUNDS; round++) {
		if ((int)(round & 1) == my.rank) {
			OK_WHEN_ROOM(fi_inject_write(my.ep, &round, sizeof round, my.peers[other], 0, keys[0]));
			if (round > ROUNDS - 4)
				read_all(other, &byte, 1); /* no call of libfabric */
			continue;
		}
		while (*flag < round) {
			uint64_t seen = fi_cntr_read(of_region);
			if (*flag < round)
				OK(fi_cntr_wait(of_region, seen + 1, -1));
		}
		EQUAL(*flag, round);
		if (round > ROUNDS - 4)
			write_all(other, "", 1);
	}
	both_done();
	EQUAL(fi_cntr_read(of_region), ROUNDS / 2);
	end();
}

/* An endpoint whose queue is full of completions that its application has not read closes: writes to its regions that come
 * meanwhile are no completions any more, and are counted like all others. */
static void closing_with_a_full_queue(void)
{
	/* UNSENT is more than a receiver that receives none of it has room for. */
	enum { ROOM = 8, WRITES = 40, UNSENT = 200000 };
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED, .size = ROOM};
	OK(fi_close(&my.ep->fid));
	OK(fi_close(&my.cq->fid));
	OK(fi_cq_open(my.domain, &attr, &my.cq, NULL));
	OK(fi_endpoint(my.domain, my.info, &my.ep, NULL));
	OK(fi_ep_bind(my.ep, &my.av->fid, 0));
	OK(fi_ep_bind(my.ep, &my.cq->fid, FI_TRANSMIT | FI_RECV));
	open_memory(0);
	bindings();
	of_writes = counter();
	OK(fi_ep_bind(my.ep, &of_writes->fid, FI_REMOTE_WRITE));
	OK(fi_enable(my.ep));
	exchange_names();
	if (my.rank == 0) {
		for (int i = 0; i < UNSENT; i++)
			OK_WHEN_ROOM(fi_tinject(my.ep, &i, sizeof i, my.peers[1], 1));
		write_all(1, "", 1);
		OK(fi_cntr_wait(of_region, ROOM, -1));
		OK(fi_close(&my.ep->fid));
		EQUAL(fi_cntr_read(of_region), WRITES);
		EQUAL(fi_cntr_read(of_writes), WRITES);
		_exit(0);
	}
	hear_from(0);
	for (int i = 1; i < WRITES; i++)
		OK_WHEN_ROOM(fi_inject_writedata(my.ep, local, 8, 77, my.peers[0], 0, keys[0]));
	OK_WHEN_ROOM(fi_writedata(my.ep, local, 8, NULL, 77, my.peers[0], 0, keys[0], local));
	next();
	/* The other one waits for us no longer. */
	OK(fi_close(&my.ep->fid));
	_exit(0);
}

int main(void)
{
	uint64_t caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_RMA_EVENT;
	struct wishes manual = {.caps = caps, .mr_mode = FI_MR_RMA_EVENT | FI_MR_ENDPOINT};
	struct wishes automatic = {.caps = caps, .data_progress = FI_PROGRESS_AUTO, .threading = FI_THREAD_DOMAIN};
	int failed = run(2, &manual, at_a_region, -1);
	if (!failed)
		failed = run(2, &manual, at_all, -1);
	if (!failed)
		failed = run(2, &automatic, at_all, -1);
	if (!failed)
		failed = run(2, &manual, at_both, -1);
	if (!failed)
		failed = run(2, &automatic, waited_for, -1);
	if (!failed)
		failed = run(2, &manual, closing_with_a_full_queue, -1);
	return failed;
}
