// Two endpoints of one process and one domain, with a queue each: tagged messages from one to the other, each into a posted
// receive, one at a time. Calls that find nothing are rare: a message is read as soon as it is there, and the sender, who
// gets credits back, looks once in four messages.

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SENDER, RECEIVER, INJECT_MOST = 64, LONGEST = 65536 };

struct side {
    struct fid_cq *queues[2];
    struct fid_ep *endpoints[2];
    fi_addr_t receiver;
};

static void check(ssize_t result, const char *what) {
    if (result != 0) {
        fprintf(stderr, "%s: %s\n", what, fi_strerror((int)-result));
        exit(1);
    }
}

// Whether there was a completion.
static int look(const struct side *side, int who) {
    struct fi_cq_tagged_entry entry;
    ssize_t found = fi_cq_read(side->queues[who], &entry, 1);
    check(found == 1 || found == -FI_EAGAIN ? 0 : found, "fi_cq_read");
    return found == 1;
}

static void set_up_with(struct side *side, const char *provider) {
    struct fi_info *hints = fi_allocinfo(), *info;
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = FI_TAGGED;
    hints->mode = FI_CONTEXT;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->fabric_attr->prov_name = strdup(provider);
    check(fi_getinfo(FI_VERSION(1, 15), NULL, NULL, 0, hints, &info), "fi_getinfo");
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *vector;
    struct fi_av_attr vector_attributes = {.type = FI_AV_TABLE};
    struct fi_cq_attr queue_attributes = {.format = FI_CQ_FORMAT_TAGGED};
    check(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
    check(fi_domain(fabric, info, &domain, NULL), "fi_domain");
    check(fi_av_open(domain, &vector_attributes, &vector, NULL), "fi_av_open");
    for (int who = 0; who < 2; who++) {
        char name[256];
        size_t length = sizeof name;
        check(fi_cq_open(domain, &queue_attributes, &side->queues[who], NULL), "fi_cq_open");
        check(fi_endpoint(domain, info, &side->endpoints[who], NULL), "fi_endpoint");
        check(fi_ep_bind(side->endpoints[who], &vector->fid, 0), "fi_ep_bind");
        check(fi_ep_bind(side->endpoints[who], &side->queues[who]->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
        check(fi_enable(side->endpoints[who]), "fi_enable");
        check(fi_getname(&side->endpoints[who]->fid, name, &length), "fi_getname");
        if (who == RECEIVER && fi_av_insert(vector, name, 1, &side->receiver, 0, NULL) != 1)
            check(-FI_EINVAL, "fi_av_insert");
    }
}

static void __attribute__((unused)) set_up(struct side *side) { set_up_with(side, "tidegate"); }

// Message number `i`, and its receive.
static void exchange(const struct side *side, const char *out, char *in, size_t length, long i) {
    static struct fi_context contexts[2];
    int sent = length <= INJECT_MOST;
    check(fi_trecv(side->endpoints[RECEIVER], in, length, NULL, FI_ADDR_UNSPEC, 1, 0, &contexts[0]), "fi_trecv");
    for (;;) {
        ssize_t result = sent ? fi_tinject(side->endpoints[SENDER], out, length, side->receiver, 1)
                              : fi_tsend(side->endpoints[SENDER], out, length, NULL, side->receiver, 1, &contexts[1]);
        if (result == 0)
            break;
        check(result == -FI_EAGAIN ? 0 : result, "fi_tsend");
        look(side, SENDER), look(side, RECEIVER);
    }
    while (!look(side, RECEIVER))
        sent |= look(side, SENDER);
    while (!sent)
        sent = look(side, SENDER);
    if (i % 4 == 3)
        look(side, SENDER);
}
