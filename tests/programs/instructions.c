// One process with two endpoints: tagged messages from one to the other, each into a posted receive, one at a time.
//
// usage: instructions LENGTH COUNT
//
// Counted under callgrind. What COUNT messages more cost, divided by how many these are, is what one costs at both
// ends; what comes before the first drops out. Calls that find nothing are rare: a message is read as soon as it is
// there, and the sender, who gets credits back, looks once in four messages.

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

static struct fid_cq *queues[2];
static struct fid_ep *endpoints[2];
static fi_addr_t receiver;

static void check(ssize_t result, const char *what) {
    if (result != 0) {
        fprintf(stderr, "%s: %s\n", what, fi_strerror((int)-result));
        exit(1);
    }
}

// Whether there was a completion.
static int look(int who) {
    struct fi_cq_tagged_entry entry;
    ssize_t found = fi_cq_read(queues[who], &entry, 1);
    check(found == 1 || found == -FI_EAGAIN ? 0 : found, "fi_cq_read");
    return found == 1;
}

static void set_up(void) {
    struct fi_info *hints = fi_allocinfo(), *info;
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = FI_TAGGED;
    hints->mode = FI_CONTEXT;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->fabric_attr->prov_name = strdup("tidegate");
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
        check(fi_cq_open(domain, &queue_attributes, &queues[who], NULL), "fi_cq_open");
        check(fi_endpoint(domain, info, &endpoints[who], NULL), "fi_endpoint");
        check(fi_ep_bind(endpoints[who], &vector->fid, 0), "fi_ep_bind");
        check(fi_ep_bind(endpoints[who], &queues[who]->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
        check(fi_enable(endpoints[who]), "fi_enable");
        check(fi_getname(&endpoints[who]->fid, name, &length), "fi_getname");
        if (who == RECEIVER && fi_av_insert(vector, name, 1, &receiver, 0, NULL) != 1)
            check(-FI_EINVAL, "fi_av_insert");
    }
}

int main(int argc, char **argv) {
    if (argc != 3 || atoi(argv[1]) < 8 || atoi(argv[1]) > LONGEST) {
        fprintf(stderr, "usage: instructions LENGTH COUNT\n");
        return 2;
    }
    static char out[LONGEST], in[LONGEST];
    struct fi_context contexts[2];
    size_t length = (size_t)atoi(argv[1]);
    long count = atol(argv[2]);
    set_up();
    for (long i = 0; i < count; i++) {
        int sent = length <= INJECT_MOST;
        memcpy(out, &i, sizeof i);
        check(fi_trecv(endpoints[RECEIVER], in, length, NULL, FI_ADDR_UNSPEC, 1, 0, &contexts[0]), "fi_trecv");
        for (;;) {
            ssize_t result = sent ? fi_tinject(endpoints[SENDER], out, length, receiver, 1)
                                  : fi_tsend(endpoints[SENDER], out, length, NULL, receiver, 1, &contexts[1]);
            if (result == 0)
                break;
            check(result == -FI_EAGAIN ? 0 : result, "fi_tsend");
            look(SENDER), look(RECEIVER);
        }
        while (!look(RECEIVER))
            sent |= look(SENDER);
        while (!sent)
            sent = look(SENDER);
        if (i % 4 == 3)
            look(SENDER);
        if (memcmp(in, &i, sizeof i) != 0)
            check(-FI_EIO, "the wrong message");
    }
    printf("%ld messages\n", count);
    fflush(stdout);
    // Taking all down costs the same whatever the count, and is not what is counted.
    _exit(0);
}
