/* Signal handlers that interrupt a call of the provider, and there end the process, fork, or call it again. The handlers
 * run where they would wait for ever if anything waited for what their thread holds: where the provider reads the clock
 * inside a domain, and as soon as it lets signals in after it has begun a thread. Argument: what to try. */
#include "harness.h"
#include <dlfcn.h>
#include <pthread.h>

enum { LONG = 100000, MESSAGES = 50 };

static pthread_t first;
/* What interrupts the first thread next: nothing, or the first call of one of these. */
static volatile enum event { NOTHING, CLOCK, BEGIN } awaited;
static volatile int interruptions;
/* Whether a handler is told that it has interrupted a call inside the domain. */
static bool is_told;
static volatile enum event interrupted_by;
static void (*in_handler)(void);
static struct fid_ep *other;
static struct fid_cq *others_cq;
static fi_addr_t to_other;

static void handle(int signal)
{
	struct fi_cq_tagged_entry entry;
	(void)signal;
	/* The provider has read the clock outside of the domain. */
	if (interrupted_by == CLOCK && is_told && fi_cq_read(my.cq, &entry, 1) != -FI_EBUSY) {
		awaited = CLOCK;
		return;
	}
	interruptions++;
	in_handler();
}

static void interrupt_if(enum event what)
{
	if (awaited == what && pthread_equal(pthread_self(), first)) {
		awaited = NOTHING;
		interrupted_by = what;
		pthread_kill(first, SIGUSR1);
	}
}

/* These two the provider calls instead of the C library's. */
int clock_gettime(clockid_t clock, struct timespec *time)
{
	static int (*get)(clockid_t, struct timespec *);
	if (!get)
		get = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	interrupt_if(CLOCK);
	return get(clock, time);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *argument)
{
	int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
		(int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(RTLD_NEXT, "pthread_create");
	int failed = create(thread, attr, start, argument);
	interrupt_if(BEGIN);
	return failed;
}

/* Two endpoints of one domain, each with a queue. */
static void open_two(enum fi_threading threading)
{
	struct wishes wishes = {.threading = threading, .wait = FI_WAIT_NONE};
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED};
	char name[64];
	size_t length = sizeof name;
	my.ranks = 1;
	is_told = threading == FI_THREAD_SAFE;
	open_endpoint(&wishes);
	OK(fi_cq_open(my.domain, &attr, &others_cq, NULL));
	OK(fi_endpoint(my.domain, my.info, &other, NULL));
	OK(fi_ep_bind(other, &my.av->fid, 0));
	OK(fi_ep_bind(other, &others_cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(other));
	OK(fi_getname(&other->fid, name, &length));
	EQUAL(fi_av_insert(my.av, name, 1, &to_other, 0, NULL), 1);
}

static void close_two(void)
{
	OK(fi_close(&other->fid));
	OK(fi_close(&others_cq->fid));
	close_endpoint();
}

static void interrupt_a_poll(void)
{
	struct fi_cq_tagged_entry entry;
	awaited = CLOCK;
	for (int i = 0; i < 10000000 && awaited != NOTHING; i++)
		EQUAL(fi_cq_read(my.cq, &entry, 1), -FI_EAGAIN);
	EQUAL(interruptions, 1);
}

/* The message is left to do, which begins the thread that goes on with it. */
static void interrupt_the_beginning_of_a_thread(void)
{
	static char bytes[LONG];
	awaited = BEGIN;
	OK(fi_tsend(my.ep, bytes, sizeof bytes, NULL, to_other, 1, bytes));
	for (int i = 0; i < 1000 && awaited != NOTHING; i++)
		make_progress();
	EQUAL(interruptions, 1);
}

static void exchange(void)
{
	for (int n = 0; n < MESSAGES; n++) {
		struct fi_cq_tagged_entry entry;
		int in = -1;
		ssize_t got;
		OK(fi_trecv(other, &in, sizeof in, NULL, FI_ADDR_UNSPEC, 5, 0, &in));
		OK_WHEN_ROOM(fi_tinject(my.ep, &n, sizeof n, to_other, 5));
		while ((got = fi_cq_read(others_cq, &entry, 1)) == -FI_EAGAIN)
			make_progress();
		EQUAL(got, 1);
		EQUAL(in, n);
	}
}

static void leave(void)
{
	exit(0);
}

/* fi_tidegate(7): "A handler may end the process by exit(3), whatever call it has interrupted: nothing waits for what its
 * thread holds." */
static void exits_in_a_poll(enum fi_threading threading)
{
	open_two(threading);
	in_handler = leave;
	interrupt_a_poll();
}

static void exits_while_a_thread_begins(enum fi_threading threading)
{
	in_handler = leave;
	/* With FI_TIDEGATE_PROGRESS=thread it begins with the endpoint. */
	awaited = BEGIN;
	open_two(threading);
	interrupt_the_beginning_of_a_thread();
}

/* fi_tidegate(7): "Unless the domain was opened for FI_THREAD_DOMAIN, a handler that has interrupted a call of its own
 * thread and calls an object of the same domain gets FI_EBUSY, and nothing changes." */
static void call_again(void)
{
	struct fi_cq_tagged_entry entry;
	int number = 99;
	EQUAL(fi_cq_read(my.cq, &entry, 1), -FI_EBUSY);
	EQUAL(fi_cq_read(others_cq, &entry, 1), -FI_EBUSY);
	EQUAL(fi_tinject(my.ep, &number, sizeof number, to_other, 5), -FI_EBUSY);
	EQUAL(fi_trecv(other, &number, sizeof number, NULL, FI_ADDR_UNSPEC, 5, 0, &number), -FI_EBUSY);
	EQUAL(fi_close(&my.ep->fid), -FI_EBUSY);
}

static void calls_in_a_poll(enum fi_threading threading)
{
	open_two(threading);
	in_handler = call_again;
	interrupt_a_poll();
	exchange();
	close_two();
	exit(0);
}

/* Closing at the end of the process, as destructors do. */
static bool closes_at_exit;

static void close_at_exit(void)
{
	if (closes_at_exit) {
		EQUAL(fi_close(&my.ep->fid), -FI_EBUSY);
		EQUAL(fi_close(&my.cq->fid), -FI_EBUSY);
	}
}

static void exits_in_a_poll_and_closes(enum fi_threading threading)
{
	open_two(threading);
	in_handler = leave;
	closes_at_exit = true;
	interrupt_a_poll();
}

/* fi_tidegate(7): "A handler may fork, too, if the child does not return from it." */
static void fork_one_that_closes(void)
{
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		struct fi_cq_tagged_entry entry;
		alarm(20);
		EQUAL(fi_cq_read(my.cq, &entry, 1), -FI_EOPBADSTATE);
		close_two();
		exit(0);
	}
	int status;
	EQUAL(waitpid(child, &status, 0), child);
	EQUAL(status, 0);
}

static void forks_in_a_poll(enum fi_threading threading)
{
	open_two(threading);
	in_handler = fork_one_that_closes;
	interrupt_a_poll();
	exchange();
	close_two();
	exit(0);
}

static void forks_while_a_thread_begins(enum fi_threading threading)
{
	open_two(threading);
	in_handler = fork_one_that_closes;
	interrupt_the_beginning_of_a_thread();
	exchange();
	exit(0);
}

static const struct {
	const char *name;
	void (*run)(enum fi_threading);
	bool only_safe;
} trials[] = {
	{"exits_in_a_poll", exits_in_a_poll, false},
	{"exits_while_a_thread_begins", exits_while_a_thread_begins, false},
	{"exits_in_a_poll_and_closes", exits_in_a_poll_and_closes, true},
	{"calls_in_a_poll", calls_in_a_poll, true},
	{"forks_in_a_poll", forks_in_a_poll, false},
	{"forks_while_a_thread_begins", forks_while_a_thread_begins, false},
};

static int attempt(int which, enum fi_threading threading)
{
	int status;
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		alarm(30);
		first = pthread_self();
		signal(SIGUSR1, handle);
		trials[which].run(threading);
		_exit(3);
	}
	printf("pid %d\n", (int)child);
	EQUAL(waitpid(child, &status, 0), child);
	if (status)
		fprintf(stderr, "%s, threading %d, ended with status %#x\n", trials[which].name, threading, status);
	return status != 0;
}

/* fi_tidegate(7): "Such an end leaves a segment behind, as that by a signal does; the next endpoint that is opened on the
 * host removes it." */
static void open_and_close(void)
{
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		open_two(FI_THREAD_SAFE);
		close_two();
		_exit(0);
	}
	int status;
	EQUAL(waitpid(child, &status, 0), child);
	EQUAL(status, 0);
}

int main(int argc, char **argv)
{
	int failed = 0;
	setvbuf(stdout, NULL, _IONBF, 0);
	atexit(close_at_exit);
	for (int which = 0; which < (int)(sizeof trials / sizeof *trials); which++) {
		if (argc > 1 && !strstr(trials[which].name, argv[1]))
			continue;
		failed |= attempt(which, FI_THREAD_SAFE);
		if (!trials[which].only_safe)
			failed |= attempt(which, FI_THREAD_DOMAIN);
	}
	open_and_close();
	return failed;
}
