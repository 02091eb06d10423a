/* Forked children call everything that they have inherited, and close it in some order. All calls fail, all closing
 * succeeds, and their parent loses and gets nothing by it. Then a child opens a domain of its own, and exchanges messages
 * with the peer while its parent does. Arguments: "used", and "clone" if the child is made by the bare system call; or
 * "opens", and "fabric" if on the fabric that it has inherited. With one more, at all levels of threading, else at two. */
#include "harness.h"
#include <sys/syscall.h>

enum { MESSAGES = 300, TAG = 1, TO_CANCEL = 2, OF_CHILD = 3, OF_PARENT = 4, ANSWER = 16 };

static const char *mode, *how;
static struct fid_eq *eq;
static struct fid_mr *mr;
static char region[64], posted[64];
static char names[RANKS_MOST][64];

#define REFUSED(call) EQUAL((call), -FI_EOPBADSTATE)

/* fi_tidegate(7): "In the child, each call on an object that it has inherited fails with FI_EOPBADSTATE and changes
 * nothing; the first such call is told on standard error." */
static void read_all_queues(void)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error = {0};
	struct fid *cq = &my.cq->fid, *events = &eq->fid;
	fi_addr_t source;
	uint32_t event = 7;
	int fd;
	REFUSED(fi_cq_read(my.cq, &entry, 1));
	REFUSED(fi_cq_read(my.cq, NULL, 0));
	REFUSED(fi_cq_readfrom(my.cq, &entry, 1, &source));
	REFUSED(fi_cq_readerr(my.cq, &error, 0));
	REFUSED(fi_cq_sread(my.cq, &entry, 1, NULL, -1));
	REFUSED(fi_cq_sreadfrom(my.cq, &entry, 1, &source, NULL, -1));
	REFUSED(fi_cq_signal(my.cq));
	REFUSED(fi_trywait(my.fabric, &cq, 1));
	REFUSED(fi_trywait(my.fabric, &events, 1));
	REFUSED(fi_control(&my.cq->fid, FI_GETWAIT, &fd));
	REFUSED(fi_control(&eq->fid, FI_GETWAIT, &fd));
	REFUSED(fi_eq_read(eq, &event, &entry, sizeof entry, 0));
	REFUSED(fi_eq_sread(eq, &event, &entry, sizeof entry, -1, 0));
	REFUSED(fi_eq_write(eq, event, &entry, sizeof entry, 0));
}

/* fi_tidegate(7): "A counter that it reads stands still." */
static void use_the_counter(uint64_t counted)
{
	EQUAL(fi_cntr_read(my.counter), counted);
	EQUAL(fi_cntr_readerr(my.counter), 1);
	REFUSED(fi_cntr_wait(my.counter, counted + 1, -1));
	REFUSED(fi_cntr_add(my.counter, 1));
	REFUSED(fi_cntr_set(my.counter, 0));
	REFUSED(fi_cntr_adderr(my.counter, 1));
	REFUSED(fi_cntr_seterr(my.counter, 0));
	EQUAL(fi_cntr_read(my.counter), counted);
}

static void exchange_messages(fi_addr_t to)
{
	static char bytes[64] = "of a child";
	struct iovec piece = {bytes, sizeof bytes};
	struct fi_msg message = {.msg_iov = &piece, .iov_count = 1, .addr = to};
	struct fi_msg_tagged tagged = {.msg_iov = &piece, .iov_count = 1, .addr = to, .tag = TAG};
	REFUSED(fi_send(my.ep, bytes, 8, NULL, to, NULL));
	REFUSED(fi_sendv(my.ep, &piece, NULL, 1, to, NULL));
	REFUSED(fi_sendmsg(my.ep, &message, 0));
	REFUSED(fi_senddata(my.ep, bytes, 8, NULL, 1, to, NULL));
	REFUSED(fi_inject(my.ep, bytes, 8, to));
	REFUSED(fi_injectdata(my.ep, bytes, 8, 1, to));
	REFUSED(fi_recv(my.ep, bytes, sizeof bytes, NULL, FI_ADDR_UNSPEC, NULL));
	REFUSED(fi_recvv(my.ep, &piece, NULL, 1, FI_ADDR_UNSPEC, NULL));
	REFUSED(fi_recvmsg(my.ep, &message, FI_MULTI_RECV));
	REFUSED(fi_tsend(my.ep, bytes, 8, NULL, to, TAG, NULL));
	REFUSED(fi_tsendv(my.ep, &piece, NULL, 1, to, TAG, NULL));
	REFUSED(fi_tsendmsg(my.ep, &tagged, FI_DELIVERY_COMPLETE));
	REFUSED(fi_tsenddata(my.ep, bytes, 8, NULL, 1, to, TAG, NULL));
	REFUSED(fi_tinject(my.ep, bytes, 8, to, TAG));
	REFUSED(fi_tinjectdata(my.ep, bytes, 8, 1, to, TAG));
	REFUSED(fi_trecv(my.ep, bytes, sizeof bytes, NULL, to, TAG, 0, NULL));
	REFUSED(fi_trecvv(my.ep, &piece, NULL, 1, to, TAG, 0, NULL));
	REFUSED(fi_trecvmsg(my.ep, &tagged, FI_PEEK | FI_CLAIM));
	REFUSED(fi_trecvmsg(my.ep, &tagged, FI_PEEK | FI_DISCARD));
	REFUSED(fi_cancel(&my.ep->fid, posted));
}

static void reach_memory(fi_addr_t to)
{
	static uint64_t bytes[8] = {1, 2, 3}, result[8];
	struct iovec piece = {bytes, 8};
	struct fi_rma_iov remote = {.len = 8};
	struct fi_msg_rma message = {.msg_iov = &piece, .iov_count = 1, .addr = to, .rma_iov = &remote, .rma_iov_count = 1};
	struct fi_ioc element = {bytes, 1};
	struct fi_rma_ioc place = {.count = 1};
	struct fi_msg_atomic atomic = {.msg_iov = &element, .iov_count = 1, .addr = to, .rma_iov = &place,
				       .rma_iov_count = 1, .datatype = FI_UINT64, .op = FI_SUM};
	REFUSED(fi_read(my.ep, bytes, 8, NULL, to, 0, 0, NULL));
	REFUSED(fi_readv(my.ep, &piece, NULL, 1, to, 0, 0, NULL));
	REFUSED(fi_readmsg(my.ep, &message, 0));
	REFUSED(fi_write(my.ep, bytes, 8, NULL, to, 0, 0, NULL));
	REFUSED(fi_writev(my.ep, &piece, NULL, 1, to, 0, 0, NULL));
	REFUSED(fi_writemsg(my.ep, &message, 0));
	REFUSED(fi_writedata(my.ep, bytes, 8, NULL, 1, to, 0, 0, NULL));
	REFUSED(fi_inject_write(my.ep, bytes, 8, to, 0, 0));
	REFUSED(fi_inject_writedata(my.ep, bytes, 8, 1, to, 0, 0));
	REFUSED(fi_atomic(my.ep, bytes, 1, NULL, to, 0, 0, FI_UINT64, FI_SUM, NULL));
	REFUSED(fi_atomicmsg(my.ep, &atomic, 0));
	REFUSED(fi_inject_atomic(my.ep, bytes, 1, to, 0, 0, FI_UINT64, FI_SUM));
	REFUSED(fi_fetch_atomic(my.ep, bytes, 1, NULL, result, NULL, to, 0, 0, FI_UINT64, FI_SUM, NULL));
	REFUSED(fi_compare_atomic(my.ep, bytes, 1, NULL, bytes + 1, NULL, result, NULL, to, 0, 0, FI_UINT64, FI_CSWAP,
				  NULL));
}

static void change_objects(void)
{
	struct fi_av_attr av_attr = {0};
	struct fi_cq_attr cq_attr = {0};
	struct fi_cntr_attr cntr_attr = {0};
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_cntr *counter;
	struct fid_ep *ep;
	struct fid_mr *other;
	char name[64];
	size_t length = sizeof name, value = 64, room = sizeof value;
	fi_addr_t index = my.peers[1];
	uint64_t flags = FI_TRANSMIT;
	REFUSED(fi_av_open(my.domain, &av_attr, &av, NULL));
	REFUSED(fi_cq_open(my.domain, &cq_attr, &cq, NULL));
	REFUSED(fi_cntr_open(my.domain, &cntr_attr, &counter, NULL));
	REFUSED(fi_endpoint(my.domain, my.info, &ep, NULL));
	REFUSED(fi_mr_reg(my.domain, region, sizeof region, FI_REMOTE_READ, 0, 77, 0, &other, NULL));
	REFUSED(fi_av_insert(my.av, names[1], 1, &index, 0, NULL));
	REFUSED(fi_av_insertsvc(my.av, NULL, "4711", &index, 0, NULL));
	REFUSED(fi_av_remove(my.av, &my.peers[1], 1, 0));
	REFUSED(fi_av_lookup(my.av, my.peers[1], name, &length));
	REFUSED(fi_ep_bind(my.ep, &my.cq->fid, FI_TRANSMIT));
	REFUSED(fi_enable(my.ep));
	REFUSED(fi_getname(&my.ep->fid, name, &length));
	REFUSED(fi_getopt(&my.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, &room));
	REFUSED(fi_setopt(&my.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, room));
	REFUSED(fi_control(&my.ep->fid, FI_GETOPSFLAG, &flags));
}

/* fi_tidegate(7): "Only fi_close(3) succeeds, in whatever order: it tells peers nothing, and frees and removes nothing of
 * the parent's." */
static void close_all(bool backwards)
{
	struct fid *objects[] = {&my.ep->fid, &my.counter->fid, &my.cq->fid, &mr->fid,
				 &my.av->fid, &eq->fid, &my.domain->fid, &my.fabric->fid};
	int count = sizeof objects / sizeof *objects;
	for (int i = 0; i < count; i++)
		EQUAL(fi_close(objects[backwards ? count - 1 - i : i]), 0);
}

static pid_t fork_somehow(void)
{
	/* Without the C library, whose handlers of forks do not run then. */
	pid_t child = how && !strcmp(how, "clone") ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
	CHECK(child >= 0);
	if (child == 0)
		alarm(30);
	return child;
}

static void wait_for(pid_t child)
{
	int status;
	EQUAL(waitpid(child, &status, 0), child);
	EQUAL(status, 0);
}

/* fi_tidegate(7): "However a child was made, what it does with these copies does not affect the parent." */
static void fork_those_that_use_all(uint64_t counted)
{
	for (int backwards = 0; backwards < 2; backwards++) {
		pid_t child = fork_somehow();
		if (child == 0) {
			read_all_queues();
			use_the_counter(counted);
			exchange_messages(my.peers[1]);
			exchange_messages(my.peers[0]);
			reach_memory(my.peers[1]);
			change_objects();
			close_all(backwards);
			_exit(0);
		}
		wait_for(child);
	}
}

static int receive_number(uint64_t tag, fi_addr_t from)
{
	int number = -1;
	OK(fi_trecv(my.ep, &number, sizeof number, NULL, from, tag, 0, &number));
	CHECK(next().op_context == &number);
	return number;
}

/* Of all that a mailbox, a queue and lists can hold there is something when the children are forked. */
static void use(void)
{
	fi_addr_t other = my.peers[1 - my.rank];
	struct fi_eq_attr attr = {.wait_obj = FI_WAIT_UNSPEC};
	char text[256];
	int before = 17;
	OK(fi_eq_open(my.fabric, &attr, &eq, NULL));
	OK(fi_mr_reg(my.domain, region, sizeof region, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 0, 0, &mr, NULL));
	/* Both know each other. */
	OK_WHEN_ROOM(fi_tinject(my.ep, &before, sizeof before, other, TAG));
	EQUAL(receive_number(TAG, other), before);
	if (my.rank == 0) {
		uint32_t event;
		EQUAL(fi_eq_write(eq, 7, text, 3, 0), 3);
		OK(fi_trecv(my.ep, posted, sizeof posted, NULL, other, TO_CANCEL, 0, posted));
		OK(fi_trecv(my.ep, text, sizeof text, NULL, other, TO_CANCEL, 0, text));
		OK(fi_cancel(&my.ep->fid, text));
		/* Reads what makes the error known, and leaves it where it is. */
		while (fi_cq_read(my.cq, text, 1) != -FI_EAVAIL)
			;
		uint64_t counted = fi_cntr_read(my.counter);
		char byte = 0;
		write_all(1, &byte, 1);
		read_all(1, &byte, 1);
		fork_those_that_use_all(counted);
		EQUAL(fi_eq_read(eq, &event, text, sizeof text, 0), 3);
		EQUAL(next_error(text).err, FI_ECANCELED);
		for (int n = 0; n < MESSAGES; n++)
			EQUAL(receive_number(TAG, other), n);
		EQUAL(fi_cntr_read(my.counter), counted + MESSAGES);
		OK(fi_cancel(&my.ep->fid, posted));
		EQUAL(next_error(text).err, FI_ECANCELED);
	} else {
		hear_from(0);
		for (int n = 0; n < MESSAGES; n++)
			OK_WHEN_ROOM(fi_tinject(my.ep, &n, sizeof n, other, TAG));
		char byte = 0;
		write_all(0, &byte, 1);
	}
	meet(2);
	/* Nothing came twice, and nothing from a child. */
	char extra[64];
	OK(fi_recv(my.ep, extra, sizeof extra, NULL, FI_ADDR_UNSPEC, extra));
	OK(fi_trecv(my.ep, text, sizeof text, NULL, FI_ADDR_UNSPEC, 0, ~0ull, text));
	nothing_completes();
	for (size_t i = 0; i < sizeof region; i++)
		EQUAL(region[i], 0);
	meet(2);
	OK(fi_close(&mr->fid));
	OK(fi_close(&eq->fid));
}

/* Sends numbers to rank 1, which answers each. The first message has the sender's address. */
static void talk(uint64_t tag)
{
	char name[64];
	size_t length = sizeof name;
	OK(fi_getname(&my.ep->fid, name, &length));
	OK_WHEN_ROOM(fi_tinject(my.ep, name, sizeof name, my.peers[1], tag));
	for (int n = 0; n < MESSAGES; n++) {
		OK_WHEN_ROOM(fi_tinject(my.ep, &n, sizeof n, my.peers[1], tag));
		EQUAL(receive_number(tag + ANSWER, my.peers[1]), n);
	}
}

/* fi_tidegate(7): "The child opens a domain of its own, on the fabric that it has inherited or on another one, and
 * exchanges messages with any process while its parent goes on." */
static void open_and_talk(void)
{
	struct wishes wishes = {0};
	struct fid_fabric *inherited = my.fabric;
	if (!strcmp(how, "fabric"))
		open_endpoint_on(inherited, &wishes);
	else
		open_endpoint(&wishes);
	EQUAL(fi_av_insert(my.av, names[1], 1, &my.peers[1], 0, NULL), 1);
	talk(OF_CHILD);
	my.counter = NULL;
	close_endpoint();
}

static void answer_both(void)
{
	fi_addr_t sources[2];
	int number[2];
	for (int i = 0; i < 2; i++) {
		char name[64];
		OK(fi_trecv(my.ep, name, sizeof name, NULL, FI_ADDR_UNSPEC, OF_CHILD + (unsigned)i, 0, name));
		CHECK(next().op_context == name);
		EQUAL(fi_av_insert(my.av, name, 1, &sources[i], 0, NULL), 1);
	}
	for (int i = 0; i < 2; i++)
		OK(fi_trecv(my.ep, &number[i], sizeof number[i], NULL, sources[i], OF_CHILD + (unsigned)i, 0, &number[i]));
	for (int counts[2] = {0}; counts[0] + counts[1] < 2 * MESSAGES;) {
		int who = next().op_context == &number[1];
		uint64_t tag = OF_CHILD + (unsigned)who;
		EQUAL(number[who], counts[who]);
		OK_WHEN_ROOM(fi_tinject(my.ep, &number[who], sizeof number[who], sources[who], tag + ANSWER));
		if (++counts[who] < MESSAGES)
			OK(fi_trecv(my.ep, &number[who], sizeof number[who], NULL, sources[who], tag, 0, &number[who]));
	}
}

static void open_anew(void)
{
	if (my.rank == 0) {
		pid_t child = fork_somehow();
		if (child == 0) {
			printf("pid %d\n", (int)getpid());
			fflush(stdout);
			open_and_talk();
			_exit(0);
		}
		talk(OF_PARENT);
		wait_for(child);
	} else {
		answer_both();
	}
	meet(2);
	nothing_completes();
	meet(2);
}

static void body(void)
{
	size_t length = sizeof names[1];
	OK(fi_av_lookup(my.av, my.peers[1], names[1], &length));
	if (!strcmp(mode, "used"))
		use();
	else
		open_anew();
}

int main(int argc, char **argv)
{
	struct wishes wishes = {.caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV | FI_SOURCE | FI_MULTI_RECV,
				.wait = FI_WAIT_UNSPEC, .counter_flags = FI_RECV};
	mode = argc > 1 ? argv[1] : "used";
	how = argc > 2 ? argv[2] : "fork";
	static const enum fi_threading levels[] = {FI_THREAD_SAFE, FI_THREAD_DOMAIN, FI_THREAD_UNSPEC,
						   FI_THREAD_FID, FI_THREAD_COMPLETION, FI_THREAD_ENDPOINT};
	int failed = 0;
	for (int i = 0; i < (argc > 3 ? 6 : 2); i++) {
		wishes.threading = levels[i];
		failed |= run(2, &wishes, body, -1);
	}
	return failed;
}
