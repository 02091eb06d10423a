/* Waiting calls where progress of data is automatic (FI_PROGRESS_AUTO), and where other threads call too.
 *
 * `counter`, `count`, `queue`: two processes with two endpoints each, of one domain. One starts fetching atomics and the
 * other is their target, and the calls of both processes wait for the first endpoint alone: what each waits for comes
 * only when the other's target is tended as well. `lets_in`: a thread waits for a counter, and another one calls. Each
 * is done on one processor, where a thread that waits inside the domain keeps all others out. `refused`: the user has
 * forbidden threads (FI_TIDEGATE_PROGRESS=calls). */
#include "harness.h"

#include <pthread.h>
#include <sys/resource.h>

enum { FETCHES = 1000, CALLS = 2000 };
/* With the starvation that this is about, the fetches take twice as long and more; without, a hundredth. */
static const double seconds_most = 8;
/* Where other processes want the processor, a process that has given it away waits long until it has it again. The
 * fetches do so about once each, and may so many times each. */
static const double yields_most = 10;

static const char *way;
static struct fid_ep *target;
static struct fid_cntr *fetched;

static void stay_on_one_processor(void)
{
	cpu_set_t all, one;
	int processor = 0;
	EQUAL(sched_getaffinity(0, sizeof all, &all), 0);
	while (!CPU_ISSET(processor, &all))
		processor++;
	CPU_ZERO(&one);
	CPU_SET(processor, &one);
	EQUAL(sched_setaffinity(0, sizeof one, &one), 0);
}

/* The target of the other process. */
static fi_addr_t exchange_targets(void)
{
	char own[64] = {0}, other[64];
	size_t length = sizeof own;
	fi_addr_t found;
	OK(fi_getname(&target->fid, own, &length));
	write_all(1 - my.rank, own, sizeof own);
	read_all(1 - my.rank, other, sizeof other);
	EQUAL(fi_av_insert(my.av, other, 1, &found, 0, NULL), 1);
	return found;
}

/* How long it takes to get the processor back, which was given away. */
static double seconds_of_yield(void)
{
	enum { YIELDS = 50 };
	double begun = seconds_of(CLOCK_MONOTONIC);
	for (int yield = 0; yield < YIELDS; yield++)
		sched_yield();
	return (seconds_of(CLOCK_MONOTONIC) - begun) / YIELDS;
}

static void wait_for(uint64_t number)
{
	struct fi_cq_tagged_entry entry;
	if (!strcmp(way, "counter"))
		OK(fi_cntr_wait(fetched, number, 60000));
	else if (!strcmp(way, "count"))
		while (fi_cntr_read(fetched) < number)
			;
	else
		EQUAL(fi_cq_sread(my.cq, &entry, 1, NULL, 60000), 1);
}

static void fetch_from_each_other(void)
{
	static uint64_t word;
	uint64_t one = 1, old;
	char byte = 0;
	struct fid_mr *region;
	struct fid_cq *quiet;
	struct fi_cq_attr queue = {.format = FI_CQ_FORMAT_TAGGED};
	struct fi_cntr_attr counter = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC};

	EQUAL(my.info->domain_attr->data_progress, FI_PROGRESS_AUTO);
	OK(fi_cntr_open(my.domain, &counter, &fetched, NULL));
	/* The first endpoint is closed and opened once more, since a counter is bound before it is enabled. */
	OK(fi_close(&my.ep->fid));
	OK(fi_endpoint(my.domain, my.info, &my.ep, NULL));
	OK(fi_ep_bind(my.ep, &my.av->fid, 0));
	OK(fi_ep_bind(my.ep, &my.cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_ep_bind(my.ep, &fetched->fid, FI_READ));
	OK(fi_enable(my.ep));
	OK(fi_cq_open(my.domain, &queue, &quiet, NULL));
	OK(fi_endpoint(my.domain, my.info, &target, NULL));
	OK(fi_ep_bind(target, &my.av->fid, 0));
	OK(fi_ep_bind(target, &quiet->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(target));
	OK(fi_mr_reg(my.domain, &word, sizeof word, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 17, 0, &region, NULL));
	fi_addr_t other = exchange_targets();

	/* A machine may be busy for some of the time only: the slowest look counts. */
	double begun = seconds_of(CLOCK_MONOTONIC), yield = 0;
	for (uint64_t number = 1; number <= FETCHES; number++) {
		double now = number % 100 ? 0 : seconds_of_yield();
		yield = now > yield ? now : yield;
		OK_WHEN_ROOM(fi_fetch_atomic(my.ep, &one, 1, NULL, &old, NULL, other, 0, 17, FI_UINT64, FI_SUM, NULL));
		wait_for(number);
		EQUAL(old, number - 1);
	}
	double took = seconds_of(CLOCK_MONOTONIC) - begun;
	if (took > seconds_most + FETCHES * yields_most * yield)
		FAIL("%d fetches took %.1f s, and giving the processor away %.1f ms", FETCHES, took, yield * 1e3);
	/* The thread answers the last fetches of a process that is behind. */
	write_all(1 - my.rank, &byte, 1);
	read_all(1 - my.rank, &byte, 1);
	EQUAL(word, FETCHES);
	OK(fi_close(&region->fid));
	OK(fi_close(&target->fid));
	OK(fi_close(&quiet->fid));
	OK(fi_close(&my.ep->fid));
	OK(fi_close(&fetched->fid));
	OK(fi_endpoint(my.domain, my.info, &my.ep, NULL));
}

static void *wait_for_one(void *counter)
{
	OK(fi_cntr_wait(counter, 1, -1));
	return NULL;
}

/* How often the calling thread has gone to sleep. */
static long sleeps(void)
{
	struct rusage usage;
	EQUAL(getrusage(RUSAGE_THREAD, &usage), 0);
	return usage.ru_nvcsw;
}

/* A call that does not get in gives the processor away hundreds of times, and then naps between two tries. How long
 * the calls take says nothing: where other processes want the processor, each call lets them run first. */
static void calls_get_in_while_another_thread_waits(void)
{
	pthread_t waiting;
	struct fi_cq_tagged_entry entry;
	EQUAL(pthread_create(&waiting, NULL, wait_for_one, my.counter), 0);
	/* It waits. */
	nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	long before = sleeps();
	for (int call = 0; call < CALLS; call++)
		EQUAL(fi_cq_read(my.cq, &entry, 1), -FI_EAGAIN);
	long naps = sleeps() - before;
	if (naps > CALLS / 200)
		FAIL("%d calls napped %ld times before they got in", CALLS, naps);
	OK(fi_cntr_add(my.counter, 1));
	EQUAL(pthread_join(waiting, NULL), 0);
}

/* Neither fi_getinfo nor fi_domain promises what would not be true. */
static int automatic_progress_is_refused(void)
{
	struct wishes wishes = {.data_progress = FI_PROGRESS_AUTO};
	struct fi_info *hints = hints_for(&wishes), *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	EQUAL(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), -FI_ENODATA);
	hints->domain_attr->data_progress = FI_PROGRESS_UNSPEC;
	OK(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
	EQUAL(info->domain_attr->data_progress, FI_PROGRESS_MANUAL);
	OK(fi_fabric(info->fabric_attr, &fabric, NULL));
	info->domain_attr->data_progress = FI_PROGRESS_AUTO;
	EQUAL(fi_domain(fabric, info, &domain, NULL), -FI_EINVAL);
	OK(fi_close(&fabric->fid));
	fi_freeinfo(info);
	fi_freeinfo(hints);
	printf("pid %d\n", (int)getpid());
	return 0;
}

int main(int count, char **arguments)
{
	CHECK(count == 2);
	way = arguments[1];
	if (!strcmp(way, "refused"))
		return automatic_progress_is_refused();
	stay_on_one_processor();
	if (!strcmp(way, "lets_in")) {
		struct wishes wishes = {.threading = FI_THREAD_SAFE, .counter_flags = FI_SEND};
		return run(1, &wishes, calls_get_in_while_another_thread_waits, -1);
	}
	struct wishes wishes = {.data_progress = FI_PROGRESS_AUTO, .wait = FI_WAIT_UNSPEC};
	return run(2, &wishes, fetch_from_each_other, -1);
}
