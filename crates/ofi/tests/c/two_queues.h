/* An endpoint of each of two processes, with a queue for what it sends and one for what it receives, beside that of the
 * harness. */
#include "harness.h"

static struct fid_cq *send_queue, *receive_queue;
static struct fid_ep *endpoint;
static fi_addr_t peer;
static char own_name[64];

/* Makes progress for long enough that the other rank fills a queue, also on a busy machine; reads nothing. */
static inline void let_the_other_fill(void)
{
	double begun = seconds_of(CLOCK_MONOTONIC);
	while (seconds_of(CLOCK_MONOTONIC) - begun < 0.05)
		fi_cq_read(send_queue, NULL, 0);
}

static void open_queues(struct fi_cq_attr *attr)
{
	int other = 1 - my.rank;
	char theirs[sizeof own_name];
	size_t length = sizeof own_name;
	OK(fi_cq_open(my.domain, attr, &send_queue, NULL));
	OK(fi_cq_open(my.domain, attr, &receive_queue, NULL));
	OK(fi_endpoint(my.domain, my.info, &endpoint, NULL));
	OK(fi_ep_bind(endpoint, &my.av->fid, 0));
	OK(fi_ep_bind(endpoint, &send_queue->fid, FI_TRANSMIT));
	OK(fi_ep_bind(endpoint, &receive_queue->fid, FI_RECV));
	OK(fi_enable(endpoint));
	OK(fi_getname(&endpoint->fid, own_name, &length));
	write_all(other, own_name, sizeof own_name);
	read_all(other, theirs, sizeof theirs);
	EQUAL(fi_av_insert(my.av, theirs, 1, &peer, 0, NULL), 1);
}

static inline void close_queues(void)
{
	OK(fi_close(&endpoint->fid));
	OK(fi_close(&send_queue->fid));
	OK(fi_close(&receive_queue->fid));
}
