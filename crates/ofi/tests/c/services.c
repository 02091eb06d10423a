/* Client and server that know nothing of each other but a service: fi_getinfo(node, service, flags), in whatever order
 * they start; what that call answers and refuses; and who may have a service. */
#include "harness.h"
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <sys/socket.h>

static char service[32]; /* of this run alone */

static int ask_with(const char *node, const char *name, uint64_t flags, struct fi_info *hints, struct fi_info **info)
{
	*info = NULL;
	return fi_getinfo(FI_VERSION(1, 17), node, name, flags, hints, info);
}

static int ask(const char *node, const char *name, uint64_t flags, struct fi_info **info)
{
	struct fi_info *hints = hints_for(&(struct wishes){0});
	int result = ask_with(node, name, flags, hints, info);
	fi_freeinfo(hints);
	return result;
}

static void answered(const char *node, const char *name, uint64_t flags, bool destination)
{
	struct fi_info *info;
	int result = ask(node, name, flags, &info);
	if (result)
		FAIL("%s %s %#llx: %s", node ? node : "-", name ? name : "-", (unsigned long long)flags, fi_strerror(-result));
	CHECK(info->src_addr && info->src_addrlen >= 40);
	CHECK(!info->dest_addr == !destination && (info->dest_addrlen > 0) == destination);
	fi_freeinfo(info);
}

static void refused(const char *node, const char *name, uint64_t flags)
{
	struct fi_info *info;
	if (ask(node, name, flags, &info) != -FI_ENODATA)
		FAIL("%s %s %#llx is not refused", node ? node : "-", name ? name : "-", (unsigned long long)flags);
}

static void hosts(void)
{
	char text[NI_MAXHOST];
	struct ifaddrs *interfaces;
	struct fi_info *nothing;
	answered(NULL, NULL, 0, false);
	answered(NULL, service, 0, true);
	answered(NULL, service, FI_SOURCE, false);
	answered("localhost", NULL, FI_SOURCE, false);
	static const char *own[] = {"localhost", "127.0.0.1", "127.1.2.3", "::1"};
	for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
		answered(own[i], service, 0, true);
		answered(own[i], NULL, 0, true);
		answered(own[i], service, FI_SOURCE, false);
	}
	EQUAL(gethostname(text, sizeof text), 0);
	answered(text, service, 0, true);
	EQUAL(getifaddrs(&interfaces), 0);
	for (struct ifaddrs *at = interfaces; at; at = at->ifa_next) {
		int family = at->ifa_addr ? at->ifa_addr->sa_family : AF_UNSPEC;
		size_t length = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
		if (family != AF_INET && family != AF_INET6)
			continue;
		EQUAL(getnameinfo(at->ifa_addr, (socklen_t)length, text, sizeof text, NULL, 0, NI_NUMERICHOST), 0);
		answered(text, service, FI_NUMERICHOST, true);
	}
	freeifaddrs(interfaces);
	refused("no-such-host.invalid", service, 0);
	refused("no-such-host.invalid", service, FI_SOURCE);
	refused("192.0.2.1", service, 0);
	refused("192.0.2.1", NULL, FI_NUMERICHOST);
	refused("localhost", service, FI_NUMERICHOST);
	refused("localhost", "a service that has more than thirty-two characters", 0);
	/* Libfabric may refuse this by itself, with another number. */
	CHECK(ask(NULL, NULL, FI_SOURCE, &nothing) != 0);
}

/* An info that fi_getinfo has returned can be given as hints again, and means the same. */
static void addresses_in_hints(void)
{
	struct fi_info *first, *second;
	char garbage[64] = "garbage";
	OK(ask("localhost", service, 0, &first));
	OK(ask_with(NULL, NULL, 0, first, &second));
	EQUAL(second->src_addrlen, first->src_addrlen);
	EQUAL(second->dest_addrlen, first->dest_addrlen);
	CHECK(!memcmp(second->src_addr, first->src_addr, first->src_addrlen));
	CHECK(!memcmp(second->dest_addr, first->dest_addr, first->dest_addrlen));
	fi_freeinfo(second);
	/* The arguments node and service take precedence over hints. */
	OK(ask_with("localhost", "another", 0, first, &second));
	CHECK(memcmp(second->dest_addr, first->dest_addr, first->dest_addrlen));
	fi_freeinfo(second);
	memcpy(first->dest_addr, garbage, first->dest_addrlen);
	EQUAL(ask_with(NULL, NULL, 0, first, &second), -FI_ENODATA);
	OK(ask_with("localhost", service, 0, first, &second));
	fi_freeinfo(second);
	memcpy(first->src_addr, garbage, first->src_addrlen);
	EQUAL(ask_with("localhost", service, 0, first, &second), -FI_ENODATA);
	OK(ask_with(NULL, service, FI_SOURCE, (free(first->dest_addr), first->dest_addr = NULL, first), &second));
	fi_freeinfo(second);
	fi_freeinfo(first);
}

#define REFUSED(assignment)                                                   \
	do {                                                                  \
		struct fi_info *hints = hints_for(&(struct wishes){0}), *info; \
		hints->assignment;                                            \
		if (ask_with(NULL, NULL, 0, hints, &info) != -FI_ENODATA)     \
			FAIL("%s is not refused", #assignment);               \
		fi_freeinfo(hints);                                           \
	} while (0)

/* What is not offered is refused by fi_getinfo, and not by a later call. */
static void hints_beyond_the_offer(void)
{
	enum { MUCH = 1 << 30 };
	REFUSED(addr_format = FI_SOCKADDR_IN);
	REFUSED(addr_format = FI_ADDR_STR);
	REFUSED(caps |= FI_HMEM);
	REFUSED(caps |= FI_COLLECTIVE);
	REFUSED(tx_attr->caps = FI_TRIGGER);
	REFUSED(tx_attr->op_flags = FI_COMMIT_COMPLETE);
	REFUSED(tx_attr->msg_order = FI_ORDER_RAW);
	REFUSED(tx_attr->comp_order = FI_ORDER_SAS);
	REFUSED(tx_attr->inject_size = MUCH);
	REFUSED(tx_attr->size = MUCH);
	REFUSED(tx_attr->iov_limit = MUCH);
	REFUSED(tx_attr->rma_iov_limit = MUCH);
	REFUSED(rx_attr->caps = FI_TRIGGER);
	REFUSED(rx_attr->op_flags = FI_INJECT);
	REFUSED(rx_attr->msg_order = FI_ORDER_RAW);
	REFUSED(rx_attr->comp_order = FI_ORDER_SAS);
	REFUSED(rx_attr->size = MUCH);
	REFUSED(rx_attr->iov_limit = MUCH);
	REFUSED(ep_attr->type = FI_EP_MSG);
	REFUSED(ep_attr->protocol = FI_PROTO_RXM);
	REFUSED(ep_attr->protocol_version = 2);
	REFUSED(ep_attr->max_msg_size = SIZE_MAX);
	REFUSED(ep_attr->msg_prefix_size = 1);
	REFUSED(ep_attr->max_order_raw_size = SIZE_MAX);
	REFUSED(ep_attr->max_order_war_size = SIZE_MAX);
	REFUSED(ep_attr->max_order_waw_size = SIZE_MAX);
	REFUSED(ep_attr->tx_ctx_cnt = 2);
	REFUSED(ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT);
	REFUSED(ep_attr->auth_key_size = 1);
	REFUSED(domain_attr->name = strdup("another"));
	REFUSED(domain_attr->threading = 99);
	REFUSED(domain_attr->control_progress = 99);
	REFUSED(domain_attr->data_progress = 99);
	REFUSED(domain_attr->resource_mgmt = 99);
	REFUSED(domain_attr->av_type = 99);
	REFUSED(domain_attr->mr_key_size = 9);
	REFUSED(domain_attr->cq_data_size = 9);
	REFUSED(domain_attr->cq_cnt = MUCH);
	REFUSED(domain_attr->ep_cnt = MUCH);
	REFUSED(domain_attr->tx_ctx_cnt = MUCH);
	REFUSED(domain_attr->rx_ctx_cnt = MUCH);
	REFUSED(domain_attr->max_ep_tx_ctx = 2);
	REFUSED(domain_attr->max_ep_rx_ctx = 2);
	REFUSED(domain_attr->max_ep_stx_ctx = 1);
	REFUSED(domain_attr->max_ep_srx_ctx = 1);
	REFUSED(domain_attr->cntr_cnt = MUCH);
	REFUSED(domain_attr->mr_iov_limit = MUCH);
	REFUSED(domain_attr->caps = FI_HMEM);
	REFUSED(domain_attr->auth_key_size = 1);
	REFUSED(domain_attr->max_err_data = MUCH);
	REFUSED(domain_attr->mr_cnt = MUCH);
	REFUSED(fabric_attr->name = strdup("another"));
	REFUSED(handle = &my.ep->fid);
}

static void questions(void)
{
	hosts();
	addresses_in_hints();
	hints_beyond_the_offer();
}

/* One side, with all it needs. */
struct side {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;
};

static int open_side(struct side *side, const char *node, const char *name, uint64_t flags)
{
	struct fi_av_attr av_attr = {.type = FI_AV_UNSPEC, .count = 4};
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED};
	OK(ask(node, name, flags, &side->info));
	OK(fi_fabric(side->info->fabric_attr, &side->fabric, NULL));
	OK(fi_domain(side->fabric, side->info, &side->domain, NULL));
	OK(fi_av_open(side->domain, &av_attr, &side->av, NULL));
	OK(fi_cq_open(side->domain, &cq_attr, &side->cq, NULL));
	OK(fi_endpoint(side->domain, side->info, &side->ep, NULL));
	OK(fi_ep_bind(side->ep, &side->av->fid, 0));
	OK(fi_ep_bind(side->ep, &side->cq->fid, FI_TRANSMIT | FI_RECV));
	return fi_enable(side->ep);
}

static void close_side(struct side *side)
{
	OK(fi_close(&side->ep->fid));
	OK(fi_close(&side->cq->fid));
	OK(fi_close(&side->av->fid));
	OK(fi_close(&side->domain->fid));
	OK(fi_close(&side->fabric->fid));
	fi_freeinfo(side->info);
}

static fi_addr_t read_one(struct side *side)
{
	struct fi_cq_tagged_entry entry;
	fi_addr_t source = FI_ADDR_NOTAVAIL;
	ssize_t got;
	while ((got = fi_cq_readfrom(side->cq, &entry, 1, &source)) == -FI_EAGAIN)
		;
	EQUAL(got, 1);
	return source;
}

/* A stranger is known by no address until the server has inserted one, and by that from then on. */
static void serve(struct side *server, bool is_stranger)
{
	char name[64];
	fi_addr_t client;
	OK(fi_trecv(server->ep, name, sizeof name, NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
	EQUAL(read_one(server) == FI_ADDR_NOTAVAIL, is_stranger);
	EQUAL(fi_av_insert(server->av, name, 1, &client, 0, NULL), 1);
	OK(fi_tsend(server->ep, name, sizeof name, NULL, client, 2, NULL));
	read_one(server);
	OK(fi_trecv(server->ep, name, sizeof name, NULL, FI_ADDR_UNSPEC, 3, 0, NULL));
	EQUAL(read_one(server), client);
}

/* Sends as soon as the server has opened its service; the answer must come from the address that the service leads
 * to. */
static void greet(struct side *client, fi_addr_t server)
{
	char name[64] = {0}, answer[64];
	size_t length = sizeof name;
	ssize_t result;
	OK(fi_getname(&client->ep->fid, name, &length));
	while ((result = fi_tsend(client->ep, name, sizeof name, NULL, server, 1, NULL)) == -FI_EAGAIN)
		;
	OK(result);
	read_one(client);
	OK(fi_trecv(client->ep, answer, sizeof answer, NULL, server, 2, 0, NULL));
	EQUAL(read_one(client), server);
	CHECK(!memcmp(answer, name, sizeof name));
	OK(fi_tsend(client->ep, name, sizeof name, NULL, server, 3, NULL));
	read_one(client);
}

static fi_addr_t insert_destination(struct side *client)
{
	char text[64];
	size_t length = sizeof text;
	fi_addr_t server;
	EQUAL(fi_av_insert(client->av, client->info->dest_addr, 1, &server, 0, NULL), 1);
	CHECK(strstr(fi_av_straddr(client->av, client->info->dest_addr, text, &length), service));
	return server;
}

static void client_and_server(void)
{
	struct side side;
	if (my.rank == 0) {
		OK(open_side(&side, NULL, service, FI_SOURCE));
		meet(2);
		serve(&side, true);
		serve(&side, false);
		meet(2);
		close_side(&side);
		meet(2);
		meet(2);
		/* The client has tried before we come. */
		OK(open_side(&side, "localhost", service, FI_SOURCE));
		serve(&side, true);
		meet(2);
	} else {
		fi_addr_t server;
		meet(2);
		OK(open_side(&side, "localhost", service, 0));
		greet(&side, insert_destination(&side));
		EQUAL(fi_av_insertsvc(side.av, "no-such-host.invalid", service, &server, 0, NULL), -FI_ENODATA);
		EQUAL(fi_av_insertsvc(side.av, NULL, service, &server, 0, NULL), 1);
		greet(&side, server);
		close_side(&side);
		meet(2);
		meet(2);
		OK(open_side(&side, NULL, service, 0));
		server = insert_destination(&side);
		EQUAL(fi_tinject(side.ep, "", 1, server, 1), -FI_EAGAIN);
		meet(2);
		greet(&side, server);
		meet(2);
	}
	close_side(&side);
	meet(2);
}

/* A node without a service names a host only, so no endpoint can be reached there. */
static void no_service(void)
{
	struct side side;
	fi_addr_t nobody;
	OK(open_side(&side, "localhost", NULL, 0));
	EQUAL(fi_av_insert(side.av, side.info->dest_addr, 1, &nobody, 0, NULL), 0);
	EQUAL(nobody, FI_ADDR_NOTAVAIL);
	close_side(&side);
	meet(2);
}

/* Waits until the process has released everything: until it is a zombie, or gone. */
static void wait_for_end(pid_t pid)
{
	char path[32], state = 'R';
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	while (state != 'Z') {
		FILE *file = fopen(path, "r");
		if (!file)
			return;
		if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
			state = 'Z';
		fclose(file);
	}
}

/* A service has one owner at a time; it becomes free when its owner closes or dies. */
static void owners(void)
{
	struct side first, second;
	if (my.rank == 1) {
		meet(2);
		EQUAL(open_side(&second, NULL, service, FI_SOURCE), -FI_EADDRINUSE);
		close_side(&second);
		meet(2);
		for (int result = -1; result != 0; close_side(&second)) {
			result = open_side(&second, NULL, service, FI_SOURCE);
			CHECK(result == 0 || result == -FI_EADDRINUSE);
		}
		/* The killed process may still have been ending when this endpoint looked for what dead processes have
		 * left. The next one removes everything. */
		wait_for_end(pids[0]);
		OK(open_side(&second, NULL, service, FI_SOURCE));
		close_side(&second);
		return;
	}
	OK(open_side(&first, NULL, service, FI_SOURCE));
	EQUAL(open_side(&second, NULL, service, FI_SOURCE), -FI_EADDRINUSE);
	close_side(&second);
	close_side(&first);
	OK(open_side(&first, NULL, service, FI_SOURCE));
	meet(2);
	meet(2);
	kill(getpid(), SIGKILL);
}

static double seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Tries to send until that is refused. Meanwhile other addresses come and go. Returns how long it took. */
static double refused_after(struct side *client, fi_addr_t nobody)
{
	double begun = seconds();
	ssize_t result;
	while ((result = fi_tinject(client->ep, "", 1, nobody, 1)) == -FI_EAGAIN) {
		fi_addr_t other;
		EQUAL(fi_av_insertsvc(client->av, NULL, "another", &other, 0, NULL), 1);
		usleep(10000);
		OK(fi_av_remove(client->av, &other, 1, 0));
		if (seconds() - begun > 20)
			FAIL("a service that nobody has is waited for without end");
	}
	EQUAL(result, -FI_ECONNREFUSED);
	return seconds() - begun;
}

/* The wait for a server that does not come ends, whatever else is inserted into the address vector meanwhile. A service
 * that is removed and inserted again is waited for from the beginning. */
static void absent_server(void)
{
	struct side side;
	fi_addr_t nobody, again;
	char absent[40];
	snprintf(absent, sizeof absent, "%s-x", service);
	OK(open_side(&side, NULL, absent, 0));
	EQUAL(fi_av_insert(side.av, side.info->dest_addr, 1, &nobody, 0, NULL), 1);
	CHECK(refused_after(&side, nobody) > 9);
	CHECK(refused_after(&side, nobody) < 1);
	OK(fi_av_remove(side.av, &nobody, 1, 0));
	EQUAL(fi_av_insert(side.av, side.info->dest_addr, 1, &again, 0, NULL), 1);
	EQUAL(again, nobody);
	EQUAL(fi_tinject(side.ep, "", 1, again, 1), -FI_EAGAIN);
	close_side(&side);
}

/* Another user has made the file of our service first: for us the service is in use, and no other service is
 * affected. */
static void a_strangers_file(void)
{
	struct side side;
	char path[96];
	int file;
	if (geteuid() != 0) {
		fprintf(stderr, "SKIPPED: only root can give files away\n");
		return;
	}
	snprintf(path, sizeof path, "/dev/shm/tidegate-0-service-stranger%d", (int)getpid());
	CHECK((file = open(path, O_CREAT | O_RDWR, 0600)) >= 0);
	EQUAL(fchown(file, 65534, 65534), 0);
	EQUAL(open_side(&side, NULL, strrchr(path, '-') + 1, FI_SOURCE), -FI_EADDRINUSE);
	close_side(&side);
	OK(open_side(&side, NULL, service, FI_SOURCE));
	close_side(&side);
	OK(open_side(&side, NULL, strrchr(path, '-') + 1, 0));
	close_side(&side);
	EQUAL(unlink(path), 0);
	close(file);
}

static void body(void)
{
	questions();
	client_and_server();
	no_service();
}

static void alone(void)
{
	a_strangers_file();
	absent_server();
}

int main(void)
{
	snprintf(service, sizeof service, "test-%d", (int)getpid());
	int failed = run(2, &(struct wishes){0}, body, -1);
	if (!failed)
		failed = run(2, &(struct wishes){0}, owners, 0);
	return failed ? failed : run(1, &(struct wishes){0}, alone, -1);
}
