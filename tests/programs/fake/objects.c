// Fabric and domain: each has one of tcp below it.

#include "fake.h"

int no_bind(struct fid *fid, struct fid *other, uint64_t flags) {
    (void)fid, (void)other, (void)flags;
    return -FI_ENOSYS;
}

int no_control(struct fid *fid, int command, void *argument) {
    (void)fid, (void)command, (void)argument;
    return -FI_ENOSYS;
}

int no_ops(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context) {
    (void)fid, (void)name, (void)flags, (void)ops, (void)context;
    return -FI_ENOSYS;
}

void enter(struct domain *domain) {
    if (__atomic_exchange_n(&domain->inside, 1, __ATOMIC_ACQUIRE))
        violation("two threads are in one domain at a time");
}

void leave(struct domain *domain) {
    __atomic_store_n(&domain->inside, 0, __ATOMIC_RELEASE);
}

// Domain.

static int close_domain(struct fid *fid) {
    struct domain *domain = (struct domain *)fid;
    if (domain->users && domain->fabric->is_busy)
        return -FI_EBUSY;
    if (domain->users)
        violation("a domain is closed while %d objects are open that were made of it", domain->users);
    int code = fi_close(&domain->real->fid);
    library.freeinfo(domain->offer);
    for (struct operation *it = domain->idle, *next; it; it = next)
        next = it->next, free(it);
    domain->fabric->users--;
    free(domain);
    return code;
}

static struct fi_ops domain_object = {.size = sizeof domain_object, .close = close_domain, .bind = no_bind, .control = no_control, .ops_open = no_ops};
static struct fi_ops_domain domain_ops = {.size = sizeof domain_ops};

// The offer that was chosen.
static void choose(const struct fi_info *info) {
    for (int i = 0; i < offered_count; i++)
        if (info->domain_attr->mr_key_size == offered[i].key_bytes &&
            (!offered[i].fabric || !strcmp(info->fabric_attr->name, offered[i].fabric)) && info->ep_attr->max_msg_size == offered[i].longest) {
            profile = offered[i];
            profile.mr_mode = info->domain_attr->mr_mode;
            return;
        }
    violation("a domain is opened by what was not offered");
}

static int open_domain(struct fid_fabric *fid, struct fi_info *info, struct fid_domain **place, void *context) {
    if (happens("domain_fails"))
        return -FI_EIO;
    if (!strcmp(info->domain_attr->name, domains[0].name) && happens("first_domain_fails"))
        return -FI_ENODEV;
    domain_ops.av_open = UNLESS_MISSING("av_open", open_vector), domain_ops.cq_open = UNLESS_MISSING("cq_open", open_queue);
    domain_ops.endpoint = UNLESS_MISSING("endpoint", open_endpoint);
    choose(info);
    struct domain *domain = calloc(1, sizeof *domain);
    domain->fabric = (struct fabric *)fid;
    domain->offer = real_offer();
    if (!domain->offer) {
        free(domain);
        return -FI_ENODEV;
    }
    // The keys are chosen here; whether peers name memory by its address, tcp has to know.
    domain->offer->domain_attr->mr_mode = profile.mr_mode & FI_MR_VIRT_ADDR ? FI_MR_VIRT_ADDR : 0;
    int code = fi_domain(domain->fabric->real, domain->offer, &domain->real, context);
    if (code) {
        library.freeinfo(domain->offer), free(domain);
        return code;
    }
    domain->fid.fid = (struct fid){.fclass = FI_CLASS_DOMAIN, .context = context, .ops = &domain_object};
    domain->fid.ops = &domain_ops, domain->fid.mr = memory_ops();
    domain->fabric->users++;
    *place = &domain->fid;
    return 0;
}

// Fabric.

static int close_fabric(struct fid *fid) {
    struct fabric *fabric = (struct fabric *)fid;
    if (fabric->users && fabric->is_busy)
        return -FI_EBUSY;
    if (fabric->users)
        violation("a fabric is closed while %d domains are open", fabric->users);
    int code = fi_close(&fabric->real->fid);
    free(fabric);
    return code;
}

static int may_wait(struct fid_fabric *fid, struct fid **fids, int count) {
    struct fid *real[8];
    if (happens("trywait_again"))
        return -FI_EAGAIN;
    for (int i = 0; i < count && i < 8; i++) {
        struct queue *queue = (struct queue *)fids[i];
        if (has_completions(queue))
            return -FI_EAGAIN;
        real[i] = &queue->real->fid;
    }
    return fi_trywait(((struct fabric *)fid)->real, real, count < 8 ? count : 8);
}

int fake_fabric(struct fi_fabric_attr *attributes, struct fid_fabric **place, void *context) {
    static struct fi_ops object = {.size = sizeof object, .close = close_fabric, .bind = no_bind, .control = no_control, .ops_open = no_ops};
    static struct fi_ops_fabric ops = {.size = sizeof ops, .domain = open_domain};
    (void)attributes;
    if (happens("fabric_fails"))
        return -FI_EIO;
    ops.trywait = UNLESS_MISSING("trywait", may_wait), ops.domain = UNLESS_MISSING("domain", open_domain);
    struct fi_info *offer = real_offer();
    if (!offer)
        return -FI_ENODEV;
    struct fabric *fabric = calloc(1, sizeof *fabric);
    int code = library.fabric(offer->fabric_attr, &fabric->real, context);
    library.freeinfo(offer);
    if (code) {
        free(fabric);
        return code;
    }
    fabric->fid.fid = (struct fid){.fclass = FI_CLASS_FABRIC, .context = context, .ops = &object};
    fabric->fid.ops = &ops, fabric->fid.api_version = fabric->real->api_version;
    *place = &fabric->fid;
    return 0;
}
