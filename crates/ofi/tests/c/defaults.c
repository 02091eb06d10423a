/* What libfabric leaves to a provider where an application says nothing: that the provider fills it in, says so, and does
 * what libfabric's own providers do. And what an application asks for: it is granted and returned, or refused. */
#include "harness.h"

#define VERSION FI_VERSION(FI_MAJOR_VERSION, FI_MINOR_VERSION)

/* The answer to hints that `change` has changed, or NULL. */
static struct fi_info *answer_to(void (*change)(struct fi_info *))
{
	struct fi_info *hints = fi_allocinfo(), *info = NULL;
	CHECK(hints);
	hints->fabric_attr->prov_name = strdup("tidegate");
	change(hints);
	if (fi_getinfo(VERSION, NULL, NULL, 0, hints, &info))
		info = NULL;
	fi_freeinfo(hints);
	return info;
}

static void nothing(struct fi_info *hints) { (void)hints; }

static void only_the_provider(struct fi_info *hints)
{
	free(hints->tx_attr);
	free(hints->rx_attr);
	free(hints->ep_attr);
	free(hints->domain_attr);
	hints->tx_attr = NULL;
	hints->rx_attr = NULL;
	hints->ep_attr = NULL;
	hints->domain_attr = NULL;
}

/* Every attribute has a value. */
static void attributes_are_filled_in(void)
{
	void (*changes[])(struct fi_info *) = {nothing, only_the_provider};
	for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
		struct fi_info *info = answer_to(changes[i]);
		CHECK(info && info->tx_attr && info->rx_attr && info->ep_attr && info->domain_attr && info->fabric_attr);
		const struct fi_domain_attr *domain = info->domain_attr;
		const struct fi_ep_attr *ep = info->ep_attr;
		const struct {
			const char *name;
			uint64_t value, least, most;
		} filled[] = {
			{"caps", info->caps, 1, UINT64_MAX},
			{"mode", info->mode, 0, 0},
			{"addr_format", info->addr_format, FI_FORMAT_UNSPEC, FI_FORMAT_UNSPEC},
			{"type", ep->type, FI_EP_RDM, FI_EP_RDM},
			{"protocol", ep->protocol, 1, UINT32_MAX},
			{"protocol_version", ep->protocol_version, 1, 1},
			{"max_msg_size", ep->max_msg_size, 1, SIZE_MAX},
			{"msg_prefix_size", ep->msg_prefix_size, 0, 0},
			{"mem_tag_format", ep->mem_tag_format, 0xaaaaaaaaaaaaaaaa, 0xaaaaaaaaaaaaaaaa},
			{"ep tx_ctx_cnt", ep->tx_ctx_cnt, 1, 1},
			{"ep rx_ctx_cnt", ep->rx_ctx_cnt, 1, 1},
			{"threading", domain->threading, FI_THREAD_SAFE, FI_THREAD_SAFE},
			{"control_progress", domain->control_progress, FI_PROGRESS_AUTO, FI_PROGRESS_MANUAL},
			{"data_progress", domain->data_progress, FI_PROGRESS_AUTO, FI_PROGRESS_MANUAL},
			{"resource_mgmt", domain->resource_mgmt, FI_RM_ENABLED, FI_RM_ENABLED},
			/* tcp, shm, verbs and efa leave the choice to the application as well. */
			{"av_type", domain->av_type, FI_AV_UNSPEC, FI_AV_UNSPEC},
			{"mr_mode", (uint64_t)domain->mr_mode, 0, 0},
			{"mr_key_size", domain->mr_key_size, 8, 8},
			{"cq_data_size", domain->cq_data_size, 8, 8},
			{"cq_cnt", domain->cq_cnt, 1, SIZE_MAX},
			{"ep_cnt", domain->ep_cnt, 1, SIZE_MAX},
			{"tx_ctx_cnt", domain->tx_ctx_cnt, 1, SIZE_MAX},
			{"rx_ctx_cnt", domain->rx_ctx_cnt, 1, SIZE_MAX},
			{"max_ep_tx_ctx", domain->max_ep_tx_ctx, 1, 1},
			{"max_ep_rx_ctx", domain->max_ep_rx_ctx, 1, 1},
			{"max_ep_stx_ctx", domain->max_ep_stx_ctx, 0, 0},
			{"max_ep_srx_ctx", domain->max_ep_srx_ctx, 0, 0},
			{"cntr_cnt", domain->cntr_cnt, 1, SIZE_MAX},
			{"mr_iov_limit", domain->mr_iov_limit, 1, SIZE_MAX},
			{"domain caps", domain->caps & FI_LOCAL_COMM, FI_LOCAL_COMM, FI_LOCAL_COMM},
			{"domain mode", domain->mode, 0, 0},
			{"auth_key_size", domain->auth_key_size, 0, 0},
			{"max_err_data", domain->max_err_data, 1, SIZE_MAX},
			{"mr_cnt", domain->mr_cnt, 1, SIZE_MAX},
			/* Those of the endpoint, as far as they concern the direction. */
			{"tx caps", info->tx_attr->caps & ~info->caps, 0, 0},
			{"tx caps", info->tx_attr->caps, 1, UINT64_MAX},
			{"tx op_flags", info->tx_attr->op_flags, 0, 0},
			{"tx msg_order", info->tx_attr->msg_order & FI_ORDER_SAS, FI_ORDER_SAS, FI_ORDER_SAS},
			{"tx comp_order", info->tx_attr->comp_order, 0, 0},
			{"inject_size", info->tx_attr->inject_size, 1, SIZE_MAX},
			{"tx size", info->tx_attr->size, 1, SIZE_MAX},
			{"tx iov_limit", info->tx_attr->iov_limit, 1, SIZE_MAX},
			{"rma_iov_limit", info->tx_attr->rma_iov_limit, 1, SIZE_MAX},
			{"rx caps", info->rx_attr->caps & ~info->caps, 0, 0},
			{"rx caps", info->rx_attr->caps, 1, UINT64_MAX},
			{"rx op_flags", info->rx_attr->op_flags, 0, 0},
			{"rx msg_order", info->rx_attr->msg_order & FI_ORDER_SAS, FI_ORDER_SAS, FI_ORDER_SAS},
			{"rx comp_order", info->rx_attr->comp_order, 0, 0},
			{"rx size", info->rx_attr->size, 1, SIZE_MAX},
			{"rx iov_limit", info->rx_attr->iov_limit, 1, SIZE_MAX},
		};
		for (size_t at = 0; at < sizeof filled / sizeof *filled; at++)
			if (filled[at].value < filled[at].least || filled[at].value > filled[at].most)
				FAIL("%s is %#llx", filled[at].name, (unsigned long long)filled[at].value);
		CHECK(info->domain_attr->name && info->fabric_attr->name && info->fabric_attr->prov_name);
		fi_freeinfo(info);
	}
}

static void remote_domain(struct fi_info *hints) { hints->domain_attr->caps = FI_REMOTE_COMM; }
static void a_map(struct fi_info *hints) { hints->domain_attr->av_type = FI_AV_MAP; }
static void a_table(struct fi_info *hints) { hints->domain_attr->av_type = FI_AV_TABLE; }
static void send_less(struct fi_info *hints) { hints->tx_attr->caps = FI_TAGGED | FI_SEND; }
static void receive_less(struct fi_info *hints) { hints->rx_attr->caps = FI_MSG; }
static void send_more(struct fi_info *hints) { hints->caps = FI_MSG, hints->tx_attr->caps = FI_TAGGED; }
static void receive_more(struct fi_info *hints) { hints->caps = FI_MSG, hints->rx_attr->caps = FI_ATOMIC; }
static void data_in_order(struct fi_info *hints) { hints->rx_attr->comp_order = FI_ORDER_DATA; }
static void sends_complete_in_order(struct fi_info *hints) { hints->tx_attr->comp_order = FI_ORDER_STRICT; }
static void disabled(struct fi_info *hints) { hints->domain_attr->resource_mgmt = FI_RM_DISABLED; }

/* What is asked for is returned, or refused. */
static void wishes_are_granted_or_refused(void)
{
	struct fi_info *info = answer_to(remote_domain);
	CHECK(info && info->domain_attr->caps & FI_REMOTE_COMM && info->caps & FI_REMOTE_COMM);
	fi_freeinfo(info);
	info = answer_to(a_map);
	CHECK(info && info->domain_attr->av_type == FI_AV_MAP);
	fi_freeinfo(info);
	info = answer_to(a_table);
	CHECK(info && info->domain_attr->av_type == FI_AV_TABLE);
	fi_freeinfo(info);
	info = answer_to(send_less);
	CHECK(info && info->caps & FI_RMA);
	EQUAL(info->tx_attr->caps & (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND | FI_WRITE), FI_TAGGED | FI_SEND);
	fi_freeinfo(info);
	info = answer_to(receive_less);
	CHECK(info);
	EQUAL(info->rx_attr->caps & (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_RECV | FI_REMOTE_READ), FI_MSG | FI_RECV);
	fi_freeinfo(info);
	info = answer_to(disabled);
	CHECK(info && info->domain_attr->resource_mgmt == FI_RM_ENABLED);
	fi_freeinfo(info);
	void (*refused[])(struct fi_info *) = {send_more, receive_more, data_in_order, sends_complete_in_order};
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
		CHECK(!answer_to(refused[i]));
}

/* An entry of a queue has so many bytes; without a format as many as in libfabric's own providers. */
static void entries_are_as_long_as_their_format(void)
{
	struct fi_cq_attr unspecified = {0}, context = {.format = FI_CQ_FORMAT_CONTEXT}, msg = {.format = FI_CQ_FORMAT_MSG};
	struct fi_cq_attr data = {.format = FI_CQ_FORMAT_DATA}, tagged = {.format = FI_CQ_FORMAT_TAGGED};
	struct {
		struct fi_cq_attr *attr;
		size_t bytes;
	} formats[] = {{NULL, sizeof(struct fi_cq_entry)},	  {&unspecified, sizeof(struct fi_cq_entry)},
		       {&context, sizeof(struct fi_cq_entry)},	  {&msg, sizeof(struct fi_cq_msg_entry)},
		       {&data, sizeof(struct fi_cq_data_entry)}, {&tagged, sizeof(struct fi_cq_tagged_entry)}};
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
		for (int at_once = 0; at_once < 2; at_once++) {
			struct fid_cq *queue;
			struct fid_ep *ep;
			unsigned char entries[3 * sizeof(struct fi_cq_tagged_entry)];
			char name[64], in[2][8], out[2][8] = {"a", "b"};
			size_t length = sizeof name, bytes = formats[i].bytes;
			fi_addr_t self;
			OK(fi_cq_open(my.domain, formats[i].attr, &queue, NULL));
			OK(fi_endpoint(my.domain, my.info, &ep, NULL));
			OK(fi_ep_bind(ep, &queue->fid, FI_TRANSMIT | FI_RECV));
			OK(fi_ep_bind(ep, &my.av->fid, 0));
			OK(fi_enable(ep));
			OK(fi_getname(&ep->fid, name, &length));
			EQUAL(fi_av_insert(my.av, name, 1, &self, 0, NULL), 1);
			memset(entries, 0xa5, sizeof entries);
			OK(fi_recv(ep, in[0], 8, NULL, self, in[0]));
			OK(fi_recv(ep, in[1], 8, NULL, self, in[1]));
			for (int message = 0; message < 2; message++)
				OK(fi_inject(ep, out[message], 8, self));
			/* Entries that were there before, and those that come while the read makes progress. */
			if (at_once == 0)
				while (fi_cq_read(queue, NULL, 0) == -FI_EAGAIN)
					;
			for (ssize_t got = 0, more; got < 2; got += more)
				if ((more = fi_cq_read(queue, entries + (size_t)got * bytes, 2 - (size_t)got)) < 0) {
					EQUAL(more, -FI_EAGAIN);
					more = 0;
				}
			for (size_t message = 0; message < 2; message++) {
				void *named;
				memcpy(&named, entries + message * bytes, sizeof named);
				CHECK(named == in[message]);
			}
			for (size_t at = 2 * bytes; at < sizeof entries; at++)
				EQUAL(entries[at], 0xa5);
			OK(fi_close(&ep->fid));
			OK(fi_close(&queue->fid));
		}
	}
}

/* Other attributes of objects: what is not looked at, what has a default, and what is refused. */
static void objects_open_with_defaults(void)
{
	struct fid_cq *queue;
	struct fid_cntr *counter;
	struct fid_eq *events;
	struct fid_av *vector;
	struct fi_cq_attr attr = {.wait_cond = 99};
	enum fi_wait_obj wait;
	OK(fi_cq_open(my.domain, &attr, &queue, NULL)); /* "ignored if wait_obj is set to FI_WAIT_NONE" (fi_cq(3)) */
	OK(fi_control(&queue->fid, FI_GETWAITOBJ, &wait));
	EQUAL(wait, FI_WAIT_NONE);
	EQUAL(fi_cq_sread(queue, NULL, 0, NULL, 0), -FI_EINVAL);
	OK(fi_close(&queue->fid));
	attr.wait_obj = FI_WAIT_UNSPEC;
	EQUAL(fi_cq_open(my.domain, &attr, &queue, NULL), -FI_EINVAL);
	attr = (struct fi_cq_attr){.flags = FI_AFFINITY, .signaling_vector = 1};
	OK(fi_cq_open(my.domain, &attr, &queue, NULL));
	OK(fi_close(&queue->fid));
	/* With this flag the context would be another provider's. */
	attr.flags = 1ULL << 43;
	EQUAL(fi_cq_open(my.domain, &attr, &queue, NULL), -FI_EINVAL);
	OK(fi_cntr_open(my.domain, NULL, &counter, NULL));
	OK(fi_close(&counter->fid));
	struct fi_cntr_attr counting = {0};
	OK(fi_cntr_open(my.domain, &counting, &counter, NULL));
	EQUAL(fi_cntr_read(counter), 0);
	OK(fi_cntr_add(counter, 3));
	OK(fi_cntr_set(counter, 5));
	OK(fi_cntr_adderr(counter, 2));
	EQUAL(fi_cntr_readerr(counter), 2);
	OK(fi_cntr_seterr(counter, 7));
	EQUAL(fi_cntr_read(counter), 5);
	EQUAL(fi_cntr_readerr(counter), 7);
	OK(fi_cntr_wait(counter, 5, 0));
	EQUAL(fi_cntr_wait(counter, 6, 20), -FI_ETIMEDOUT);
	OK(fi_close(&counter->fid));
	counting.flags = 1ULL << 43;
	EQUAL(fi_cntr_open(my.domain, &counting, &counter, NULL), -FI_EINVAL);
	OK(fi_eq_open(my.fabric, &(struct fi_eq_attr){0}, &events, NULL));
	uint32_t event;
	EQUAL(fi_eq_sread(events, &event, NULL, 0, 0, 0), -FI_EINVAL);
	OK(fi_close(&events->fid));
	struct fi_av_attr addresses = {0};
	OK(fi_av_open(my.domain, &addresses, &vector, NULL));
	EQUAL(addresses.type, FI_AV_TABLE); /* the choice is told (fi_av(3)) */
	OK(fi_close(&vector->fid));
	uint64_t flags = FI_TRANSMIT | FI_COMMIT_COMPLETE;
	EQUAL(fi_control(&my.ep->fid, FI_SETOPSFLAG, &flags), -FI_EBADFLAGS);
	flags = FI_TRANSMIT | FI_TRANSMIT_COMPLETE;
	OK(fi_control(&my.ep->fid, FI_SETOPSFLAG, &flags));
	flags = FI_TRANSMIT;
	OK(fi_control(&my.ep->fid, FI_GETOPSFLAG, &flags));
	EQUAL(flags, FI_TRANSMIT_COMPLETE);
	flags = FI_TRANSMIT;
	OK(fi_control(&my.ep->fid, FI_SETOPSFLAG, &flags));
}

/* A read of no entries makes progress, takes nothing and says what is there; the text of an error. */
static void reads_of_nothing_and_errors(void)
{
	char room[64], in[8], text[256];
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry error = {0};
	fi_addr_t source = 77;
	EQUAL(fi_cq_read(my.cq, NULL, 0), -FI_EAGAIN);
	EQUAL(fi_cq_readfrom(my.cq, NULL, 0, NULL), -FI_EAGAIN);
	EQUAL(fi_cq_readerr(my.cq, &error, 0), -FI_EAGAIN);
	EQUAL(fi_cq_sread(my.cq, NULL, 0, NULL, 0), -FI_EAGAIN);
	double begun = seconds_of(CLOCK_MONOTONIC);
	EQUAL(fi_cq_sread(my.cq, &entry, 1, NULL, 50), -FI_EAGAIN);
	CHECK(seconds_of(CLOCK_MONOTONIC) - begun >= 0.05);
	OK(fi_recv(my.ep, in, sizeof in, NULL, FI_ADDR_UNSPEC, in));
	OK(fi_inject(my.ep, "a", 2, my.peers[0]));
	OK(fi_recv(my.ep, in, 1, NULL, FI_ADDR_UNSPEC, &error));
	OK(fi_inject(my.ep, "too long", 9, my.peers[0]));
	while (fi_cq_read(my.cq, NULL, 0) == -FI_EAGAIN)
		;
	for (int again = 0; again < 3; again++) {
		EQUAL(fi_cq_read(my.cq, NULL, 0), 0);
		EQUAL(fi_cq_sread(my.cq, NULL, 0, NULL, -1), 0);
		EQUAL(fi_cq_readerr(my.cq, &error, 0), -FI_EAGAIN); /* a success comes first */
	}
	EQUAL(fi_cq_sreadfrom(my.cq, &entry, 1, &source, NULL, -1), 1);
	CHECK(entry.op_context == in && source == my.peers[0]);
	for (int again = 0; again < 3; again++) {
		EQUAL(fi_cq_read(my.cq, NULL, 0), -FI_EAVAIL);
		EQUAL(fi_cq_sread(my.cq, &entry, 1, NULL, -1), -FI_EAVAIL);
	}
	memset(room, '?', sizeof room);
	error = (struct fi_cq_err_entry){.err_data = room, .err_data_size = sizeof room};
	EQUAL(fi_cq_readerr(my.cq, &error, 0), 1);
	CHECK(error.op_context == &error && error.err == FI_ETRUNC && error.olen == 8 && error.len == 1);
	/* It has no text of its own: then the room that it was read into says nothing. */
	EQUAL(error.err_data_size, 0);
	const char *said = fi_cq_strerror(my.cq, error.prov_errno, error.err_data, text, sizeof text);
	CHECK(!strcmp(said, fi_strerror(FI_ETRUNC)) && !strcmp(text, said));
	said = fi_cq_strerror(my.cq, error.prov_errno, NULL, text, 6);
	CHECK(strlen(text) == 5 && !strncmp(text, said, 5));
	nothing_completes();
	OK(fi_cq_signal(my.cq));
	EQUAL(fi_cq_sread(my.cq, &entry, 1, NULL, -1), -FI_EAGAIN);
}

/* Buffers for several receives as an endpoint's default: each call that posts one says where messages lie. */
static void buffers_for_several_by_default(void)
{
	static char room[3][200];
	struct iovec pieces[2] = {{room[0], 100}, {room[1], 100}};
	uint64_t flags = FI_RECV | FI_MULTI_RECV;
	struct fi_cq_tagged_entry entry;
	OK(fi_control(&my.ep->fid, FI_SETOPSFLAG, &flags));
	for (int tagged = 0; tagged < 2; tagged++) {
		for (int vector = 0; vector < 2; vector++) {
			char *at = room[2];
			struct iovec one = {at, 200};
			if (tagged && vector)
				OK(fi_trecvv(my.ep, &one, NULL, 1, FI_ADDR_UNSPEC, 1, 0, at));
			else if (tagged)
				OK(fi_trecv(my.ep, at, 200, NULL, FI_ADDR_UNSPEC, 1, 0, at));
			else if (vector)
				OK(fi_recvv(my.ep, &one, NULL, 1, FI_ADDR_UNSPEC, at));
			else
				OK(fi_recv(my.ep, at, 200, NULL, FI_ADDR_UNSPEC, at));
			for (int i = 0; i < 4; i++) {
				OK(tagged ? fi_tinject(my.ep, room[0], 40, my.peers[0], 1) : fi_inject(my.ep, room[0], 40, my.peers[0]));
				entry = next();
				CHECK(entry.op_context == at && entry.buf == at + 40 * i);
				EQUAL(!!(entry.flags & FI_MULTI_RECV), i == 3);
			}
		}
	}
	/* A message in two pieces could not be described. */
	EQUAL(fi_trecvv(my.ep, pieces, NULL, 2, FI_ADDR_UNSPEC, 1, 0, NULL), -FI_EINVAL);
	EQUAL(fi_recvv(my.ep, pieces, NULL, 2, FI_ADDR_UNSPEC, NULL), -FI_EINVAL);
	flags = FI_RECV;
	OK(fi_control(&my.ep->fid, FI_SETOPSFLAG, &flags));
	OK(fi_trecvv(my.ep, pieces, NULL, 2, FI_ADDR_UNSPEC, 1, 0, room));
	OK(fi_cancel(&my.ep->fid, room));
	next_error(room[2]);
}

/* fi_tidegate(7): "An operation is refused with -FI_EAGAIN while the queue that it reports to holds as many unread
 * completions as the application asked room for (65,536 unless it says)." */
static void a_queue_of_no_size_has_room_for_65536(void)
{
	struct fi_msg_tagged look = {.addr = FI_ADDR_UNSPEC, .tag = 9, .context = &look};
	struct fi_cq_err_entry error = {0};
	struct fi_cq_tagged_entry entry;
	/* Peeks that find nothing. */
	for (int i = 0; i < 65536; i++) {
		OK(fi_trecvmsg(my.ep, &look, FI_PEEK));
		if (i % 1000 == 0)
			EQUAL(fi_cq_read(my.cq, NULL, 0), -FI_EAVAIL);
	}
	EQUAL(fi_cq_read(my.cq, NULL, 0), -FI_EAVAIL);
	EQUAL(fi_trecvmsg(my.ep, &look, FI_PEEK), -FI_EAGAIN);
	for (int i = 0; i < 65536; i++) {
		EQUAL(fi_cq_read(my.cq, &entry, 1), -FI_EAVAIL);
		EQUAL(fi_cq_readerr(my.cq, &error, 0), 1);
		EQUAL(error.err, FI_ENOMSG);
	}
	nothing_completes();
}

static void body(void)
{
	attributes_are_filled_in();
	wishes_are_granted_or_refused();
	entries_are_as_long_as_their_format();
	objects_open_with_defaults();
	reads_of_nothing_and_errors();
	buffers_for_several_by_default();
	a_queue_of_no_size_has_room_for_65536();
}

int main(void)
{
	return run(1, &(struct wishes){.wait = FI_WAIT_UNSPEC}, body, -1);
}
