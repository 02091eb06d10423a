// The address vector, with the ways in which providers count an address that is inserted twice.

#include "fake.h"

static int close_vector(struct fid *fid) {
    struct vector *vector = (struct vector *)fid;
    if (vector->domain->fabric->is_busy)
        return -FI_EBUSY;
    int code = fi_close(&vector->real->fid);
    vector->domain->users--;
    // Operations that never ended still name them.
    return code;
}

static struct peer *known(const struct vector *vector, const unsigned char *fake, size_t *name) {
    for (*name = 0; *name < vector->count; ++*name)
        if (!vector->peers[*name]->is_removed && !memcmp(vector->peers[*name]->fake, fake, address_bytes()))
            return vector->peers[*name];
    return NULL;
}

static struct peer *add(struct vector *vector, const unsigned char *fake, size_t *name) {
    struct peer *peer = calloc(1, sizeof *peer);
    memcpy(peer->fake, fake, address_bytes());
    vector->peers = realloc(vector->peers, (vector->count + 1) * sizeof(struct peer *));
    *name = vector->count++;
    return vector->peers[*name] = peer;
}

static bool insert_one(struct vector *vector, const unsigned char *fake, fi_addr_t *name) {
    unsigned char real[REAL_ADDRESS];
    size_t place;
    undisguise(fake, real);
    bool shares = profile.insertion == COUNTED || profile.insertion == UNCOUNTED;
    struct peer *peer = shares ? known(vector, fake, &place) : NULL;
    if (!peer) {
        peer = add(vector, fake, &place);
        if (fi_av_insert(vector->real, real, 1, &peer->real, 0, NULL) != 1) {
            peer->is_removed = true;
            return false;
        }
    }
    peer->uses = profile.insertion == COUNTED ? peer->uses + 1 : 1;
    *name = place;
    return true;
}

static int insert(struct fid_av *fid, const void *addresses, size_t count, fi_addr_t *names, uint64_t flags, void *context) {
    struct vector *vector = (struct vector *)fid;
    (void)flags, (void)context;
    if (happens("insert_fails"))
        return -FI_EINVAL;
    if (happens("insert_none"))
        return 0;
    size_t inserted = 0;
    enter(vector->domain);
    for (size_t i = 0; i < count; i++) {
        fi_addr_t name = FI_ADDR_NOTAVAIL;
        inserted += insert_one(vector, (const unsigned char *)addresses + i * address_bytes(), &name);
        if (names)
            names[i] = happens("insert_nowhere") ? FI_ADDR_NOTAVAIL : name;
    }
    leave(vector->domain);
    return (int)inserted;
}

struct peer *peer_of(struct vector *vector, fi_addr_t name, const char *call) {
    if (name >= vector->count)
        violation("%s: %#llx is the name of no peer", call, (unsigned long long)name);
    struct peer *peer = vector->peers[name];
    if (peer->is_removed)
        violation("%s: the address of this peer was removed", call);
    return peer;
}

static int remove_addresses(struct fid_av *fid, fi_addr_t *names, size_t count, uint64_t flags) {
    struct vector *vector = (struct vector *)fid;
    enter(vector->domain);
    for (size_t i = 0; i < count; i++) {
        struct peer *peer = peer_of(vector, names[i], "fi_av_remove");
        if (profile.insertion == FOR_EVER)
            violation("fi_av_remove: this provider ends processes that remove an address");
        if (--peer->uses > 0)
            continue;
        peer->is_removed = true;
        if (profile.insertion != FRESH)
            fi_av_remove(vector->real, &peer->real, 1, flags);
    }
    leave(vector->domain);
    return 0;
}

int open_vector(struct fid_domain *fid, struct fi_av_attr *attributes, struct fid_av **place, void *context) {
    static struct fi_ops object = {.size = sizeof object, .close = close_vector, .bind = no_bind, .control = no_control, .ops_open = no_ops};
    static struct fi_ops_av ops = {.size = sizeof ops};
    if (happens("av_fails"))
        return -FI_EIO;
    ops.insert = UNLESS_MISSING("insert", insert), ops.remove = UNLESS_MISSING("remove", remove_addresses);
    struct vector *vector = calloc(1, sizeof *vector);
    vector->domain = (struct domain *)fid;
    int code = fi_av_open(vector->domain->real, attributes, &vector->real, context);
    if (code) {
        free(vector);
        return code;
    }
    vector->fid.fid = (struct fid){.fclass = FI_CLASS_AV, .context = context, .ops = &object};
    vector->fid.ops = &ops;
    vector->domain->users++;
    *place = &vector->fid;
    return 0;
}
