// Registrations of memory. Only memory that peers reach is registered with tcp; of all others this file alone knows.

#include "fake.h"

#define REMOTE (FI_REMOTE_READ | FI_REMOTE_WRITE)

static uint64_t key_mask(void) {
    return profile.key_bytes >= 8 ? UINT64_MAX : (1ULL << (8 * profile.key_bytes)) - 1;
}

static bool is_taken(const struct domain *domain, uint64_t key) {
    for (const struct region *it = domain->regions; it; it = it->next)
        if (it->key == key)
            return true;
    return false;
}

static uint64_t next_key(const struct domain *domain) {
    static uint64_t state = 88172645463325252ULL;
    if (happens("key_most"))
        return UINT64_MAX;
    do {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    } while (is_taken(domain, state & key_mask()));
    return state & key_mask();
}

static int enable(struct region *region) {
    if (region->access & REMOTE && region->key != UINT64_MAX) {
        int code = fi_mr_reg(region->domain->real, region->bytes, region->length, region->access, 0, region->key, 0, &region->real, NULL);
        if (code)
            return code;
    }
    region->is_enabled = true;
    return 0;
}

static int close_region(struct fid *fid) {
    struct region *region = (struct region *)fid, **place = &region->domain->regions;
    struct domain *domain = region->domain;
    if (domain->fabric->is_busy)
        return -FI_EBUSY;
    enter(domain);
    if (region->users)
        violation("a registration of %zu bytes ends while %d operations use it", region->length, region->users);
    while (*place != region)
        place = &(*place)->next;
    *place = region->next;
    if (region->real)
        fi_close(&region->real->fid);
    domain->users--;
    memset(region, 0xdd, sizeof *region), free(region);
    leave(domain);
    return 0;
}

static int bind_region(struct fid *fid, struct fid *endpoint, uint64_t flags) {
    struct region *region = (struct region *)fid;
    (void)flags;
    if (happens("mr_bind_fails"))
        return -FI_EIO;
    if (!(profile.mr_mode & FI_MR_ENDPOINT))
        return -FI_EINVAL;
    region->bound = (struct fid_ep *)endpoint;
    return 0;
}

static int control_region(struct fid *fid, int command, void *argument) {
    struct region *region = (struct region *)fid;
    (void)argument;
    if (command != FI_ENABLE || !region->bound)
        return -FI_EINVAL;
    enter(region->domain);
    int code = enable(region);
    leave(region->domain);
    return code;
}

static struct fi_ops region_ops = {.size = sizeof region_ops, .close = close_region, .control = control_region, .ops_open = no_ops};

static int add(struct domain *domain, const void *bytes, size_t length, uint64_t access, uint64_t wanted, struct fid_mr **place, void *context) {
    bool own = profile.mr_mode & FI_MR_PROV_KEY;
    if (!own && wanted & ~key_mask())
        return -FI_EKEYREJECTED;
    if (!own && is_taken(domain, wanted))
        return -FI_ENOKEY;
    struct region *region = calloc(1, sizeof *region);
    *region = (struct region){.domain = domain, .bytes = bytes, .length = length, .access = access, .key = own ? next_key(domain) : wanted};
    region->fid.fid = (struct fid){.fclass = FI_CLASS_MR, .context = context, .ops = &region_ops};
    region->fid.mem_desc = profile.mr_mode & FI_MR_LOCAL ? region : NULL, region->fid.key = region->key;
    int code = profile.mr_mode & FI_MR_ENDPOINT ? 0 : enable(region);
    if (code) {
        free(region);
        return code;
    }
    region->next = domain->regions, domain->regions = region;
    domain->users++;
    *place = &region->fid;
    return 0;
}

static int reg(struct fid *fid, const void *bytes, size_t length, uint64_t access, uint64_t offset, uint64_t key, uint64_t flags,
               struct fid_mr **place, void *context) {
    struct domain *domain = (struct domain *)fid;
    (void)offset, (void)flags;
    if (happens("mr_fails"))
        return -FI_ENOMEM;
    region_ops.bind = UNLESS_MISSING("mr_bind", bind_region);
    enter(domain);
    int code = add(domain, bytes, length, access, key, place, context);
    leave(domain);
    return code;
}

static int regv(struct fid *fid, const struct iovec *pieces, size_t count, uint64_t access, uint64_t offset, uint64_t key, uint64_t flags,
                struct fid_mr **place, void *context) {
    return count == 1 ? reg(fid, pieces->iov_base, pieces->iov_len, access, offset, key, flags, place, context) : -FI_EINVAL;
}

static int regattr(struct fid *fid, const struct fi_mr_attr *attributes, uint64_t flags, struct fid_mr **place) {
    return regv(fid, attributes->mr_iov, attributes->iov_count, attributes->access, attributes->offset, attributes->requested_key, flags, place,
                attributes->context);
}

struct fi_ops_mr *memory_ops(void) {
    static struct fi_ops_mr ops = {.size = sizeof ops, .regv = regv, .regattr = regattr};
    ops.reg = UNLESS_MISSING("reg", reg);
    return &ops;
}

struct region *use_region(struct domain *domain, const void *bytes, size_t length, void *descriptor, uint64_t access, const char *call) {
    if (!(profile.mr_mode & FI_MR_LOCAL) || length == 0)
        return NULL;
    for (struct region *it = domain->regions; it; it = it->next) {
        if (it != descriptor)
            continue;
        const char *first = bytes;
        if (first < it->bytes || first + length > it->bytes + it->length)
            violation("%s: %zu bytes lie outside their registration", call, length);
        if (!(it->access & access))
            violation("%s: the registration is not for this", call);
        if (!it->is_enabled)
            violation("%s: the registration is not bound and enabled", call);
        it->users++;
        return it;
    }
    violation("%s: no registration has this descriptor", call);
}
