/* Addresses that are removed, in good order or with mistakes among them. */
#include "harness.h"
#include <pthread.h>

static void send_one(fi_addr_t to, int expected)
{
	ssize_t result;
	while ((result = fi_tinject(my.ep, "x", 1, to, 1)) == -FI_EAGAIN)
		make_progress();
	EQUAL(result, expected);
}

static void receive_one(void)
{
	char byte;
	OK_WHEN_ROOM(fi_trecv(my.ep, &byte, 1, NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
	next();
}

/* A call that removes indices of which some do not exist fails, but removes the others, and operations to them fail
 * from then on. */
static void removing_with_mistakes(void)
{
	int other = 1 - my.rank;
	char name[64];
	size_t length = sizeof name;
	fi_addr_t removed[4];
	OK(fi_av_lookup(my.av, my.peers[other], name, &length));
	EQUAL(fi_av_insert(my.av, name, 1, &removed[0], 0, NULL), 1);
	EQUAL(fi_av_insert(my.av, name, 1, &removed[3], 0, NULL), 1);
	removed[1] = 4711;
	removed[2] = FI_ADDR_UNSPEC;
	/* The endpoint keeps where these indices lead, and has to drop that when they are removed. */
	send_one(removed[0], 0);
	send_one(removed[3], 0);
	EQUAL(fi_av_remove(my.av, removed, 4, 0), -FI_EINVAL);
	for (int i = 0; i < 4; i++) {
		length = sizeof name;
		EQUAL(fi_av_lookup(my.av, removed[i], name, &length), -FI_EINVAL);
		send_one(removed[i], -FI_EINVAL);
	}
	send_one(my.peers[other], 0);
	for (int i = 0; i < 3; i++)
		receive_one();
	nothing_completes();
	meet(2);
}

static double seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* An endpoint's address from a domain with other settings. */
static void name_with_other_settings(char *name)
{
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
	struct fi_av_attr av_attr = {.count = 1};
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED};
	size_t length = 64;
	setenv("FI_TIDEGATE_CREDIT_SLOTS", "3", 1);
	OK(fi_domain(my.fabric, my.info, &domain, NULL));
	unsetenv("FI_TIDEGATE_CREDIT_SLOTS");
	OK(fi_av_open(domain, &av_attr, &av, NULL));
	OK(fi_cq_open(domain, &cq_attr, &cq, NULL));
	OK(fi_endpoint(domain, my.info, &ep, NULL));
	OK(fi_ep_bind(ep, &av->fid, 0));
	OK(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
	OK(fi_enable(ep));
	OK(fi_getname(&ep->fid, name, &length));
	OK(fi_close(&ep->fid));
	OK(fi_close(&cq->fid));
	OK(fi_close(&av->fid));
	OK(fi_close(&domain->fid));
}

static volatile bool refused;

static void *insert_refused(void *name)
{
	fi_addr_t index;
	EQUAL(fi_av_insert(my.av, name, 1, &index, 0, NULL), 0);
	EQUAL(index, FI_ADDR_NOTAVAIL);
	refused = true;
	return NULL;
}

/* A process that refuses an address waits a second before the call returns, so that its launcher passes on what it has
 * printed. Its other threads go on meanwhile. */
static void a_refusal_stops_no_other_thread(void)
{
	char name[64] = {0};
	pthread_t thread;
	double longest = 0;
	name_with_other_settings(name);
	EQUAL(pthread_create(&thread, NULL, insert_refused, name), 0);
	while (!refused) {
		double begun = seconds();
		make_progress();
		if (seconds() - begun > longest)
			longest = seconds() - begun;
		usleep(1000);
	}
	pthread_join(thread, NULL);
	if (longest > 0.5)
		FAIL("a call took %.1f s while another thread inserted an address", longest);
}

int main(void)
{
	int failed = run(1, &(struct wishes){.threading = FI_THREAD_SAFE}, a_refusal_stops_no_other_thread, -1);
	return failed ? failed : run(2, &(struct wishes){0}, removing_with_mistakes, -1);
}
