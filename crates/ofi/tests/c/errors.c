/* Every operation that was accepted is reported, however full its queue is and whether or not its success would be. The
 * queues have room for SIZE completions; far more operations than that end in errors before anything is read.
 *
 * fi_tidegate(7): "An operation that was accepted completes, whatever is full: the queue grows for it." */
#include "two_queues.h"

enum { SIZE = 4, MANY = 64, ROOM = 256 };
static char rooms[MANY][ROOM], out[2 * ROOM];

/* Reads so many errors, which must be there, and of which each must be of this kind, of a buffer or operation of its
 * own, and give a buffer back if `releases`. */
static void errors_are(struct fid_cq *queue, int count, int expected, bool releases)
{
	bool seen[MANY] = {false};
	for (int i = 0; i < count; i++) {
		struct fi_cq_tagged_entry entry;
		struct fi_cq_err_entry error = {0};
		ssize_t got;
		while ((got = fi_cq_read(queue, &entry, 1)) == -FI_EAGAIN)
			;
		EQUAL(got, -FI_EAVAIL);
		EQUAL(fi_cq_readerr(queue, &error, 0), 1);
		EQUAL(error.err, expected);
		EQUAL(!!(error.flags & FI_MULTI_RECV), releases);
		long which = ((char *)error.op_context - rooms[0]) / ROOM;
		CHECK(which >= 0 && which < MANY && !seen[which]);
		seen[which] = true;
	}
}

static void nothing_is_left(struct fid_cq *queue)
{
	struct fi_cq_tagged_entry entry;
	LOOK_OFTEN
		EQUAL(fi_cq_read(queue, &entry, 1), -FI_EAGAIN);
}

static void meet_at(struct fid_cq *queue)
{
	struct pollfd quiet = {.fd = pipes[1 - my.rank][my.rank][0], .events = POLLIN};
	char byte = 0;
	write_all(1 - my.rank, &byte, 1);
	while (poll(&quiet, 1, 0) == 0)
		fi_cq_read(queue, NULL, 0);
	read_all(1 - my.rank, &byte, 1);
}

static int post_buffers(uint64_t flags)
{
	int posted = 0;
	for (; posted < MANY; posted++) {
		struct iovec piece = {rooms[posted], ROOM};
		struct fi_msg message = {.msg_iov = &piece, .iov_count = 1, .addr = peer, .context = rooms[posted]};
		OK(fi_recvmsg(endpoint, &message, flags));
	}
	return posted;
}

/* Buffers for several receives, and plain ones, are cancelled: each comes back. */
static void cancelled(void)
{
	for (int multi = 0; multi < 2 && my.rank == 0; multi++) {
		int posted = post_buffers(multi ? FI_MULTI_RECV | FI_COMPLETION : FI_COMPLETION);
		for (int i = 0; i < posted; i++)
			EQUAL(fi_cancel(&endpoint->fid, rooms[i]), 0);
		errors_are(receive_queue, posted, FI_ECANCELED, multi);
		nothing_is_left(receive_queue);
	}
	meet_at(send_queue);
}

/* Messages are longer than the buffers for several that get them. While so many of these are unread as the queue has
 * room for, messages stay with their sender: rank 0 asks for no more of them by reading the other queue. */
static void truncated(void)
{
	if (my.rank == 0)
		post_buffers(FI_MULTI_RECV | FI_COMPLETION);
	meet_at(send_queue);
	if (my.rank == 1) {
		for (int i = 0; i < MANY; i++) {
			ssize_t result;
			while ((result = fi_send(endpoint, out, sizeof out, NULL, peer, NULL)) == -FI_EAGAIN) {
				struct fi_cq_tagged_entry entry;
				fi_cq_read(send_queue, &entry, 1);
			}
			OK(result);
		}
		meet_at(send_queue);
	} else {
		let_the_other_fill();
		errors_are(receive_queue, MANY, FI_ETRUNC, true);
		nothing_is_left(receive_queue);
		meet_at(send_queue);
	}
	struct fi_cq_tagged_entry entry;
	while (fi_cq_read(send_queue, &entry, 1) == 1)
		;
	meet_at(send_queue);
}

/* fi_tidegate(7): "Its error is reported even if its success would not be (fi_inject, and FI_SELECTIVE_COMPLETION without
 * FI_COMPLETION); such operations are refused only while the queue holds as many errors." */
static void silent(void)
{
	if (my.rank == 0) {
		uint64_t word = 1;
		long accepted = 0;
		ssize_t result;
		/* There is no such region. */
		while ((result = fi_inject_write(endpoint, &word, sizeof word, peer, 0, 12345)) == 0) {
			CHECK(++accepted < 1 << 16);
			fi_cq_read(send_queue, NULL, 0);
		}
		EQUAL(result, -FI_EAGAIN);
		CHECK(accepted >= SIZE);
		EQUAL(fi_inject_write(endpoint, &word, sizeof word, peer, 0, 12345), -FI_EAGAIN);
		/* fi_tidegate(7): "Only reading makes room: completions with fi_cq_read(3) and its kin, errors with
		 * fi_cq_readerr(3); progress without reading (fi_cq_read(3) of no entries) makes none." */
		LOOK_OFTEN
			EQUAL(fi_cq_read(send_queue, NULL, 0), -FI_EAVAIL);
		EQUAL(fi_inject_write(endpoint, &word, sizeof word, peer, 0, 12345), -FI_EAGAIN);
		for (long i = 0; i < accepted; i++) {
			struct fi_cq_tagged_entry entry;
			struct fi_cq_err_entry error = {0};
			ssize_t got;
			while ((got = fi_cq_read(send_queue, &entry, 1)) == -FI_EAGAIN)
				;
			EQUAL(got, -FI_EAVAIL);
			EQUAL(fi_cq_readerr(send_queue, &error, 0), 1);
			EQUAL(error.err, FI_EACCES);
			CHECK(error.flags == (FI_RMA | FI_WRITE));
		}
		nothing_is_left(send_queue);
		EQUAL(fi_inject_write(endpoint, &word, sizeof word, peer, 0, 12345), 0);
		struct fi_cq_err_entry error = {0};
		while (fi_cq_readerr(send_queue, &error, 0) != 1)
			fi_cq_read(send_queue, NULL, 0);
	}
	meet_at(send_queue);
}

/* Far more sends are lost when an endpoint closes than its queue has room for. */
static void abandoned(void)
{
	static char large[1 << 16];
	if (my.rank == 0)
		for (int i = 0; i < MANY; i++)
			OK(fi_send(endpoint, large, sizeof large, NULL, peer, rooms[i]));
	meet_at(send_queue);
	if (my.rank == 1) {
		/* Its receiver is there until the sender has closed. */
		struct pollfd quiet = {.fd = pipes[0][1][0], .events = POLLIN};
		char byte;
		while (poll(&quiet, 1, 0) == 0)
			fi_cq_read(send_queue, NULL, 0);
		read_all(0, &byte, 1);
	}
	OK(fi_close(&endpoint->fid));
	if (my.rank == 0) {
		errors_are(send_queue, MANY, FI_ECANCELED, false);
		nothing_is_left(send_queue);
		write_all(1, "", 1);
	}
}

static void body(void)
{
	open_queues(&(struct fi_cq_attr){.format = FI_CQ_FORMAT_TAGGED, .size = SIZE});
	cancelled();
	truncated();
	silent();
	abandoned();
	OK(fi_close(&send_queue->fid));
	OK(fi_close(&receive_queue->fid));
}

/* The same where only operations with FI_COMPLETION report success, of an endpoint with one queue. */
static void selective(void)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED, .size = SIZE};
	size_t length = sizeof own_name;
	ssize_t result;
	int posted = 0;
	OK(fi_cq_open(my.domain, &attr, &receive_queue, NULL));
	OK(fi_endpoint(my.domain, my.info, &endpoint, NULL));
	OK(fi_ep_bind(endpoint, &my.av->fid, 0));
	OK(fi_ep_bind(endpoint, &receive_queue->fid, FI_RECV | FI_TRANSMIT | FI_SELECTIVE_COMPLETION));
	OK(fi_enable(endpoint));
	OK(fi_getname(&endpoint->fid, own_name, &length));
	EQUAL(fi_av_insert(my.av, own_name, 1, &peer, 0, NULL), 1);
	/* Of a receive whose success nobody wants to hear of, the failure is reported. Past SIZE of them no more are
	 * accepted, until one is read. */
	for (; posted < MANY; posted++) {
		result = fi_recv(endpoint, rooms[posted], 8, NULL, peer, rooms[posted]);
		if (result)
			break;
		OK(fi_inject(endpoint, out, 16, peer));
		EQUAL(fi_cq_read(receive_queue, NULL, 0), -FI_EAVAIL);
	}
	EQUAL(result, -FI_EAGAIN);
	EQUAL(posted, SIZE);
	errors_are(receive_queue, 1, FI_ETRUNC, false);
	OK(fi_recv(endpoint, rooms[0], 8, NULL, peer, rooms[0]));
	OK(fi_cancel(&endpoint->fid, rooms[0]));
	errors_are(receive_queue, SIZE - 1, FI_ETRUNC, false);
	errors_are(receive_queue, 1, FI_ECANCELED, false);
	/* A buffer for several comes back, with its last message or without one.
	 * fi_tidegate(7): "Such a buffer is one piece of memory, and its return is reported also where its messages are
	 * not." */
	struct fi_cq_tagged_entry entry;
	struct iovec piece = {rooms[1], 120};
	struct fi_msg message = {.msg_iov = &piece, .iov_count = 1, .addr = peer, .context = rooms[1]};
	for (int wanted = 0; wanted < 2; wanted++) {
		OK(fi_recvmsg(endpoint, &message, wanted ? FI_MULTI_RECV | FI_COMPLETION : FI_MULTI_RECV));
		OK(fi_inject(endpoint, out, 40, peer));
		OK(fi_inject(endpoint, out, 40, peer));
		for (int i = wanted ? 0 : 1; i < 2; i++) {
			while (fi_cq_read(receive_queue, &entry, 1) != 1)
				;
			CHECK(entry.op_context == rooms[1]);
			EQUAL(entry.flags & FI_MULTI_RECV, i == 1 ? FI_MULTI_RECV : 0);
			/* Without another flag it says nothing of a message (fi_cq(3)). */
			EQUAL(entry.flags & ~FI_MULTI_RECV, wanted ? FI_RECV | FI_MSG : 0);
			CHECK(!wanted || entry.buf == rooms[1] + 40 * i);
		}
		nothing_is_left(receive_queue);
	}
	OK(fi_close(&endpoint->fid));
	OK(fi_close(&receive_queue->fid));
}

int main(void)
{
	return run(2, &(struct wishes){0}, body, -1) || run(1, &(struct wishes){0}, selective, -1);
}
