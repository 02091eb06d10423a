/* Far more peers than an endpoint was planned for. A server, which is a rank of a small job and has what it has by
 * default, hears of each of some thousand endpoints of a few other processes, as if they had been spawned, and answers.
 * Then others come in their places, after they have closed. At last the server says what it takes.
 *
 * usage: newcomers [endpoints [those that come after them]] */
#include "harness.h"

#include <sys/mman.h>
#include <sys/resource.h>

enum { PROCESSES = 4, ENDPOINTS_MOST = 8192, NAME_BYTES = 64, FROM = 1, TO = 2 };
/* What a message has in its first and last word, the number of its sender, in others nothing. */
enum { WORDS = 30 };

/* Shared by all processes. */
static struct {
	_Atomic int answered;
	char server[NAME_BYTES], names[ENDPOINTS_MOST][NAME_BYTES];
} *common;

/* One process with so many endpoints, the first of which has this number. They all share a queue. */
static void be_newcomers(int first, int count)
{
	static uint32_t out[ENDPOINTS_MOST][WORDS], in[ENDPOINTS_MOST][WORDS];
	static struct fid_ep *endpoints[ENDPOINTS_MOST];
	fi_addr_t server;
	setenv("FI_TIDEGATE_PEERS", "1", 1);
	setenv("FI_TIDEGATE_POOL_SLOTS", "8", 1);
	setenv("FI_TIDEGATE_BOUNCE_BUFFERS", "0", 1);
	setenv("FI_TIDEGATE_SEND_BUFFERS", "0", 1);
	open_endpoint(&(struct wishes){0});
	OK(fi_close(&my.ep->fid));
	OK(fi_av_insert(my.av, common->server, 1, &server, 0, NULL));
	for (int at = 0; at < count; at++) {
		size_t length = NAME_BYTES;
		OK(fi_endpoint(my.domain, my.info, &endpoints[at], NULL));
		OK(fi_ep_bind(endpoints[at], &my.av->fid, 0));
		OK(fi_ep_bind(endpoints[at], &my.cq->fid, FI_TRANSMIT | FI_RECV));
		OK(fi_enable(endpoints[at]));
		OK(fi_getname(&endpoints[at]->fid, common->names[first + at], &length));
		out[at][0] = out[at][WORDS - 1] = (uint32_t)(first + at);
		OK_WHEN_ROOM(fi_trecv(endpoints[at], in[at], sizeof in[at], NULL, server, TO, 0, in[at]));
		OK_WHEN_ROOM(fi_tsend(endpoints[at], out[at], sizeof out[at], NULL, server, FROM, NULL));
	}
	/* A completion each of a send and of a receive. */
	for (int left = 2 * count; left > 0;) {
		struct fi_cq_tagged_entry entry;
		ssize_t got = fi_cq_read(my.cq, &entry, 1);
		left -= got == 1;
		if (got == -FI_EAGAIN)
			nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
		else if (got != 1)
			next();
	}
	for (int at = 0; at < count; at++) {
		EQUAL(in[at][0], first + at);
		EQUAL(in[at][WORDS - 1], first + at);
	}
	/* Nobody makes place for others before all have one. */
	while (common->answered < ENDPOINTS_MOST)
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	for (int at = 0; at < count; at++)
		OK(fi_close(&endpoints[at]->fid));
	_exit(0);
}

/* Hears of all of them, and answers. */
static void serve(int count)
{
	static uint32_t in[WORDS], out[ENDPOINTS_MOST][WORDS];
	static bool seen[ENDPOINTS_MOST];
	memset(seen, 0, sizeof seen);
	OK(fi_trecv(my.ep, in, sizeof in, NULL, FI_ADDR_UNSPEC, FROM, 0, in));
	for (int heard = 0, left = 2 * count; left > 0;) {
		struct fi_cq_tagged_entry entry;
		ssize_t got = fi_cq_read(my.cq, &entry, 1);
		if (got == -FI_EAGAIN)
			continue;
		if (got != 1)
			next();
		left--;
		if (entry.op_context != in)
			continue;
		fi_addr_t to;
		uint32_t number = in[0];
		CHECK(number < (uint32_t)count && !seen[number] && in[WORDS - 1] == number);
		seen[number] = true;
		OK(fi_av_insert(my.av, common->names[number], 1, &to, 0, NULL));
		memcpy(out[number], in, sizeof in);
		OK_WHEN_ROOM(fi_tsend(my.ep, out[number], sizeof in, NULL, to, TO, NULL));
		if (++heard < count)
			OK(fi_trecv(my.ep, in, sizeof in, NULL, FI_ADDR_UNSPEC, FROM, 0, in));
	}
}

/* So many come, are answered, and leave. */
static int have_newcomers(int count)
{
	pid_t processes[PROCESSES];
	int failed = 0;
	common->answered = 0;
	for (int process = 0; process < PROCESSES; process++) {
		int first = count * process / PROCESSES, next_first = count * (process + 1) / PROCESSES;
		fflush(stdout);
		processes[process] = fork();
		CHECK(processes[process] >= 0);
		if (processes[process] == 0) {
			alarm(200);
			be_newcomers(first, next_first - first);
		}
		printf("pid %d\n", (int)processes[process]);
	}
	serve(count);
	common->answered = ENDPOINTS_MOST;
	for (int process = 0; process < PROCESSES; process++) {
		int status;
		while (waitpid(processes[process], &status, WNOHANG) == 0)
			make_progress();
		failed |= !WIFEXITED(status) || WEXITSTATUS(status);
	}
	return failed;
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 1900, later = argc > 2 ? atoi(argv[2]) : 0;
	struct rlimit files;
	size_t length = NAME_BYTES;
	CHECK(count > 0 && count <= ENDPOINTS_MOST && later >= 0 && later <= ENDPOINTS_MOST);
	CHECK(getrlimit(RLIMIT_NOFILE, &files) == 0);
	files.rlim_cur = files.rlim_max;
	CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0);
	common = mmap(NULL, sizeof *common, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(common != MAP_FAILED);
	alarm(250);
	my.ranks = 1;
	open_endpoint(&(struct wishes){0});
	OK(fi_getname(&my.ep->fid, common->server, &length));
	long before = shared_memory();
	int failed = have_newcomers(count);
	printf("%d newcomers: the server's segment had %ld bytes before, and has %ld\n", count, before, shared_memory());
	if (later)
		failed |= have_newcomers(later);
	close_endpoint();
	return failed;
}
