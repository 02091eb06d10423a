/* Sends and receives report to different queues, of which one is full because nobody reads it: the other goes on.
 *
 * fi_tidegate(7): "A full queue stops no operation that reports to another: receiving goes on while a transmit queue is
 * full, and sending while a receive queue is." */
#include "two_queues.h"

enum { SIZE = 64, MANY = 1000, NUMBERS = 1 << 22 };

static void read_some(struct fid_cq *queue, int count)
{
	struct fi_cq_tagged_entry entry;
	for (ssize_t got; count > 0; count -= got == 1)
		if ((got = fi_cq_read(queue, &entry, 1)) != 1)
			EQUAL(got, -FI_EAGAIN);
}

/* Injects a message. A full queue does not refuse it; messages before it that have not left may, for a while. */
static void inject(const void *bytes, size_t length, uint64_t tag)
{
	ssize_t result;
	while ((result = fi_tinject(endpoint, bytes, length, peer, tag)) == -FI_EAGAIN)
		fi_cq_read(receive_queue, NULL, 0);
	OK(result);
}

/* Makes progress, which the other side may be waiting for, by a read of no entries, so that nothing is taken from this
 * queue. */
static void meet_at(struct fid_cq *queue)
{
	int other = 1 - my.rank;
	char byte = 0;
	struct pollfd quiet = {.fd = pipes[other][my.rank][0], .events = POLLIN};
	write_all(other, &byte, 1);
	while (poll(&quiet, 1, 0) == 0)
		fi_cq_read(queue, NULL, 0);
	read_all(other, &byte, 1);
}

/* Rank 0 sends until its queue of sends is full. Then it can still receive, and can send again as soon as it has read
 * one completion of a send. */
static void full_of_sends(void)
{
	struct fi_cq_tagged_entry entry;
	static int numbers[NUMBERS];
	int number = -1, sent = 0;
	if (my.rank == 1) {
		/* Receives until the sender says how many messages there were. */
		OK(fi_trecv(endpoint, &sent, sizeof sent, NULL, peer, 2, 0, &sent));
		OK(fi_trecv(endpoint, &number, sizeof number, NULL, peer, 1, 0, NULL));
		for (int received = 0; sent == 0 || received < sent;) {
			if (fi_cq_read(receive_queue, &entry, 1) != 1 || entry.op_context == &sent)
				continue;
			EQUAL(number, received++);
			OK(fi_trecv(endpoint, &number, sizeof number, NULL, peer, 1, 0, NULL));
		}
		inject(&sent, sizeof sent, 3);
		/* And the one that the sender may send after it has read a completion. */
		read_some(receive_queue, 1);
		meet_at(send_queue);
		return;
	}
	/* A send that has not left is outstanding and not in the queue, so more than SIZE may be accepted. */
	for (ssize_t result = 0; result == 0; sent += result == 0) {
		numbers[sent] = sent;
		EQUAL(fi_cq_read(receive_queue, &entry, 1), -FI_EAGAIN);
		result = fi_tsend(endpoint, &numbers[sent], sizeof sent, NULL, peer, 1, NULL);
		CHECK(result == 0 || (result == -FI_EAGAIN && sent >= SIZE));
		CHECK(sent + 1 < NUMBERS);
	}
	OK(fi_trecv(endpoint, &number, sizeof number, NULL, peer, 3, 0, NULL));
	/* An operation that reports nothing is not refused when the queue is full. */
	inject(&sent, sizeof sent, 2);
	read_some(receive_queue, 1);
	EQUAL(number, sent);
	EQUAL(fi_tsend(endpoint, &sent, sizeof sent, NULL, peer, 1, NULL), -FI_EAGAIN);
	LOOK_OFTEN
		fi_cq_read(send_queue, NULL, 0);
	EQUAL(fi_tsend(endpoint, &sent, sizeof sent, NULL, peer, 1, NULL), -FI_EAGAIN);
	/* All sends have completed. SIZE - 1 completions are left unread, so there is room for one more. */
	read_some(send_queue, sent - SIZE + 1);
	OK(fi_tsend(endpoint, &sent, sizeof sent, NULL, peer, 1, NULL));
	EQUAL(fi_tsend(endpoint, &sent, sizeof sent, NULL, peer, 1, NULL), -FI_EAGAIN);
	read_some(send_queue, SIZE);
	meet_at(receive_queue);
}

/* Rank 0 reads no completion of what it receives, and can send all the same. */
static void full_of_receives(void)
{
	int number = 0;
	if (my.rank == 0)
		for (int i = 0; i < MANY; i++)
			OK(fi_trecv(endpoint, &number, sizeof number, NULL, peer, 4, 0, NULL));
	meet_at(send_queue);
	for (int i = 0; i < MANY; i++) {
		ssize_t result;
		while ((result = fi_tsend(endpoint, &i, sizeof i, NULL, peer, 5 - my.rank, NULL)) == -FI_EAGAIN)
			read_some(send_queue, 1);
		OK(result);
		read_some(send_queue, 1);
	}
	meet_at(send_queue);
	if (my.rank == 0) {
		int posted = 0;
		while (*(volatile int *)&number != MANY - 1)
			fi_cq_read(send_queue, NULL, 0);
		while (fi_trecv(endpoint, &number, sizeof number, NULL, peer, 6, 0, NULL) == 0)
			posted++;
		CHECK(posted <= SIZE);
		read_some(receive_queue, MANY);
		OK(fi_trecv(endpoint, &number, sizeof number, NULL, peer, 6, 0, NULL));
	}
	for (int i = 0; i < MANY && my.rank == 1; i++) {
		OK(fi_trecv(endpoint, &number, sizeof number, NULL, peer, 5, 0, NULL));
		read_some(receive_queue, 1);
		EQUAL(number, i);
	}
	meet_at(send_queue);
}

/* Any number of messages can go into one multi-receive buffer. While their completions are not read, messages stay with
 * their sender, except those that one call of progress retrieves.
 *
 * fi_tidegate(7): "There is one exception, since messages into multi-receive buffers and peers' writes with data could
 * come without end: while a queue holds as many of these as it has room for, nothing is retrieved, so that also sends
 * that need an answer or credits wait until it is read." */
static void full_of_what_nobody_asked_for(void)
{
	static unsigned char buffer[2 * MANY];
	struct fi_cq_tagged_entry entries[MANY];
	struct iovec iov = {buffer, sizeof buffer};
	struct fi_msg message = {.msg_iov = &iov, .iov_count = 1, .addr = peer};
	if (my.rank == 0)
		OK(fi_recvmsg(endpoint, &message, FI_MULTI_RECV | FI_COMPLETION));
	meet_at(send_queue);
	for (int i = 0; i < MANY && my.rank == 1; i++) {
		unsigned char byte = (unsigned char)i;
		ssize_t result;
		while ((result = fi_inject(endpoint, &byte, 1, peer)) == -FI_EAGAIN)
			fi_cq_read(send_queue, NULL, 0);
		OK(result);
	}
	if (my.rank == 0) {
		ssize_t got;
		let_the_other_fill();
		while ((got = fi_cq_read(receive_queue, entries, MANY)) == -FI_EAGAIN)
			;
		CHECK(got > 0 && got < 3 * SIZE);
		read_some(receive_queue, MANY - (int)got);
		for (int i = 0; i < MANY; i++)
			EQUAL(buffer[i], (unsigned char)i);
	}
	meet_at(send_queue);
}

static void body(void)
{
	open_queues(&(struct fi_cq_attr){.format = FI_CQ_FORMAT_TAGGED, .size = SIZE});
	full_of_sends();
	full_of_receives();
	full_of_what_nobody_asked_for();
	close_queues();
}

int main(void)
{
	return run(2, &(struct wishes){0}, body, -1);
}
