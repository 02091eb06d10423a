// A provider of libfabric for tests of the network between hosts, on machines that have no such network: it plays
// another provider, whose addresses, modes, keys and sizes it offers and on whose rules it insists, and it misbehaves on
// purpose. Below it is libfabric's own `tcp` (`net` in libfabric 1.17), which carries everything.
//
// libfabric loads it as libfake-fi.so from a folder of FI_PROVIDER_PATH.
//
// FAKE_NAME       its name: by default `fake`; with `verbs;ofi_rxm` its offers are called so
// FAKE_LIKE       the provider that it plays, a row of the table in profiles.c; by default `plain`
// FAKE_FACTS      facts that differ from that row: `key=4,rx=16,...` (profiles.c)
// FAKE_DOMAINS    its domains, the first offered first, and their speed in Gbit/s, with a `d` for a device that is down:
//                 `mlx5_0:200d,mlx5_1:100`
// FAKE_INTERFACE  the interface that carries everything: by default the first that has an address of IPv4 and is no loopback
// FAKE_RANK       only the process of this rank misbehaves (PMI_RANK or OMPI_COMM_WORLD_RANK)
// FAKE_BAD        misdeeds, separated by commas. `name`: each time; `name:5`: each fifth time; `name:5+`: from the fifth
//                 time on; `name:5!`: the fifth time alone. The first time of each, a line on standard error says so.
//
// | misdeed | what happens |
// |---|---|
// | fabric_fails, domain_fails, av_fails, cq_fails, endpoint_fails, bind_fails, enable_fails | this call fails (FI_EIO) |
// | first_domain_fails | fi_domain fails for the domain that is offered first (FI_ENODEV) |
// | odd_offers | in front of the domains stand one whose address is a loopback's and one of tiny messages |
// | no_offers | fi_getinfo finds nothing (FI_ENODATA) |
// | name_fails, name_empty, name_long | fi_getname fails, has no byte, or succeeds and tells more bytes than there is room |
// | insert_fails, insert_none, insert_nowhere | fi_av_insert returns an error, 0, or 1 and no address (FI_ADDR_NOTAVAIL) |
// | mr_fails, mr_bind_fails | fi_mr_reg fails (FI_ENOMEM), or binding or enabling a registration |
// | key_most | the provider's keys are all 2^64 - 1, which cannot be told to peers |
// | send_again, send_refused, send_blocks | fi_send returns FI_EAGAIN, FI_EIO, or takes 1 s, as where it connects |
// | send_error, send_lost | a send ends with an error though it has arrived, or has not |
// | lost, twice | a send ends well and does not arrive, or arrives twice |
// | swallowed, read_swallowed | a send, or a read, that was taken does nothing and never ends |
// | dead_errors, dead_silent | once a peer has ended, each send to it ends with an error (FI_ECONNABORTED), or none ever |
// |                          | ends; without this, it is refused for ever (FI_EAGAIN), as with tcp and ofi_rxm |
// | recv_again, recv_refused | fi_recv returns FI_EAGAIN, FI_EIO |
// | recv_error, recv_cut | a message that has come ends its receive with an error (FI_EIO, FI_ETRUNC) |
// | recv_long | a receive tells more bytes than its buffer has |
// | read_again, read_refused, read_missing | fi_read returns FI_EAGAIN, FI_EIO, FI_EOPNOTSUPP |
// | read_error | a read ends with an error |
// | close_busy | fi_close of an endpoint fails (FI_EBUSY) and leaves it open |
// | late, shuffle | completions are told 5 ms late, or each by up to 5 ms, so in another order |
// | cq_error, readerr_again | fi_cq_read fails (FI_EIO), or tells an error that fi_cq_readerr has not (FI_EAGAIN) |
// | stray | completions and an error are told that belong to no operation |
// | no_fd, no_getwait, trywait_again | no queue with a descriptor, none to be had of it, fi_trywait always says FI_EAGAIN |
// | null_NAME | the function is missing: bind, control, av_open, cq_open, endpoint, domain, trywait, reg, getname, recv, send, |
// |           | read, insert, remove, cq_read, cq_readerr, mr_bind |
//
// A caller that breaks one of these rules is ended by an abort, with a line that begins with `fake-fi: VIOLATION`:
//
// - an operation without the descriptor of a live registration that has its bytes and its kind (FI_MR_LOCAL);
// - a registration that ends while an operation uses it, or that is used before it was bound and enabled (FI_MR_ENDPOINT);
// - bytes that change while they are sent; a context that changes while the provider has it (FI_CONTEXT, FI_CONTEXT2);
// - two threads in one domain at a time (FI_THREAD_DOMAIN);
// - an object that is closed before those that were made of it;
// - a send or a read to an address that was removed, or whose removal ends the process (psm3);
// - an address of a peer that is not byte for byte what fi_getname gave there.
//
// Keys, sizes of messages and numbers of operations beyond those offered are refused, as a provider does.

#ifndef FAKE_H
#define FAKE_H

#define _GNU_SOURCE

#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/providers/fi_prov.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ADDRESS_MOST = 1024, REAL_ADDRESS = 32, DOMAINS_MOST = 16, NAME_MOST = 64 };

// libfabric, which has loaded this provider.
struct library {
    int (*getinfo)(uint32_t, const char *, const char *, uint64_t, const struct fi_info *, struct fi_info **);
    struct fi_info *(*dupinfo)(const struct fi_info *);
    void (*freeinfo)(struct fi_info *);
    int (*fabric)(struct fi_fabric_attr *, struct fid_fabric **, void *);
    uint32_t (*version)(void);
};
extern struct library library;
extern char provider_name[NAME_MOST]; // with `;` if it has two parts

// How addresses are laid out: see addresses.c.
enum layout { SOCKET, PSM2, PSM3, EFA, IB, UD, CXI, OPX_OLD, OPX_NEW, OPX_LONG, UCX, RAILS };

// An address that is inserted twice: gets the same name, which is gone after as many removals (COUNTED) or after the first
// (UNCOUNTED), or a name of its own each time (FRESH), and there may be no removal at all (FOR_EVER).
enum insertion { COUNTED, UNCOUNTED, FRESH, FOR_EVER };

// An offer of the provider that is played.
struct profile {
    const char *name, *domains, *fabric;
    const char *then; // the profile of another offer for each domain
    enum layout layout;
    enum insertion insertion;
    uint32_t address_format;
    int mr_mode;
    bool mr_local_if_hinted;
    size_t key_bytes;
    bool reads; // FI_RMA
    bool no_descriptor; // to sleep on
    uint64_t mode, mode_always; // the second without having been asked
    size_t inject, longest, longest_message; // the last is the limit of messages, where that is less than is said
    size_t sends, receives;
};
enum { OFFERS_MOST = 2 };
extern struct profile offered[OFFERS_MOST];
extern int offered_count;
extern struct profile profile; // of these, the one with which a domain was opened

struct named_domain {
    char name[NAME_MOST];
    unsigned gigabits;
    bool is_down;
};
extern struct named_domain domains[DOMAINS_MOST];
extern int domain_count;
void read_settings(void);

// Misdeeds: whether it is one's turn.
bool happens(const char *misdeed);
bool is_missing(const char *function); // by `null_NAME`
#define UNLESS_MISSING(name, function) (is_missing(name) ? NULL : (function))
_Noreturn void violation(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Addresses: between those of sockets and those that the profile has.
size_t address_bytes(void);
size_t disguise(const void *real, size_t length, unsigned char *fake);
// Returns the length of the real one; an address that was never given out is a violation.
size_t undisguise(const unsigned char *fake, void *real);

// Offers.
int fake_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints, struct fi_info **info);
struct fi_info *real_offer(void); // a copy of tcp's, for the caller

struct fabric {
    struct fid_fabric fid;
    struct fid_fabric *real;
    int users;
    bool is_busy; // an endpoint could not be closed
};
int fake_fabric(struct fi_fabric_attr *attributes, struct fid_fabric **fabric, void *context);

struct domain {
    struct fid_domain fid;
    struct fabric *fabric;
    struct fid_domain *real;
    struct fi_info *offer; // tcp's
    int users, inside;
    struct region *regions;
    struct operation *idle; // memory of operations that have ended
};

// Around each call that uses a domain.
void enter(struct domain *domain);
void leave(struct domain *domain);

struct peer {
    unsigned char fake[ADDRESS_MOST];
    fi_addr_t real;
    int uses;
    bool is_removed, was_reached, is_dead;
};

// The name of a peer is its place.
struct vector {
    struct fid_av fid;
    struct domain *domain;
    struct fid_av *real;
    struct peer **peers;
    size_t count;
};
int open_vector(struct fid_domain *fid, struct fi_av_attr *attributes, struct fid_av **place, void *context);
// The peer that an operation names.
struct peer *peer_of(struct vector *vector, fi_addr_t name, const char *call);

struct region {
    struct fid_mr fid;
    struct domain *domain;
    struct fid_mr *real; // only memory that peers reach is registered with tcp
    struct fid_ep *bound;
    const char *bytes;
    size_t length;
    uint64_t access, key;
    int users;
    bool is_enabled;
    struct region *next;
};
struct fi_ops_mr *memory_ops(void);
// The registration that an operation on these bytes has to have; a null pointer where none is wanted.
struct region *use_region(struct domain *domain, const void *bytes, size_t length, void *descriptor, uint64_t access, const char *call);

enum kind { SEND, RECEIVE, READ };
enum ending { AS_IT_ENDS, SWALLOWED, FAILED };

struct operation {
    struct fi_context2 below; // first: the context that tcp is given
    enum kind kind;
    enum ending ending;
    struct endpoint *endpoint;
    unsigned char *context;
    const unsigned char *bytes;
    size_t length;
    uint64_t sum;
    struct region *region;
    struct peer *peer;
    void *copy;
    struct operation *next;
};
// It has ended: the caller has its bytes and its context again.
void end_operation(struct operation *operation);

struct completion {
    double due;
    bool is_error;
    void *context;
    uint64_t flags;
    size_t length;
    int error;
    struct completion *next;
};

struct queue {
    struct fid_cq fid;
    struct domain *domain;
    struct fid_cq *real;
    struct completion *first;
};
int open_queue(struct fid_domain *fid, struct fi_cq_attr *attributes, struct fid_cq **queue, void *context);
bool has_completions(struct queue *queue);
void tell(struct queue *queue, struct completion completion);

struct endpoint {
    struct fid_ep fid;
    struct domain *domain;
    struct fid_ep *real;
    struct queue *queue;
    struct vector *vector;
    bool is_enabled, is_closed;
    size_t outstanding[3]; // operations under way, by kind
};
int open_endpoint(struct fid_domain *fid, struct fi_info *info, struct fid_ep **endpoint, void *context);

double seconds_now(void);
// Functions that nothing here has.
int no_bind(struct fid *fid, struct fid *other, uint64_t flags);
int no_control(struct fid *fid, int command, void *argument);
int no_ops(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context);

#endif
