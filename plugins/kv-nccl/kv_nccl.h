/*
 * What the files of the plugin kv-nccl share.
 *
 * A communicator has two streams. `copies` moves parts to and from the plugin's buffers, `sums` carries
 * NCCL's work, in those buffers alone: a collective that hangs holds no memory of the host, and no copy is
 * behind it. Beside NCCL the ranks are linked by sockets, a star with rank 0 in its middle (meet.c, note.c):
 * there they meet, compare which calls they make, and find out who is late.
 */
#ifndef TNNCCL_KV_NCCL_H
#define TNNCCL_KV_NCCL_H

#include <cuda.h>
#include <nccl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "tenon/plugin/collective.h"
#include "tenon/plugin/util.h"

#define TNNCCL_RANKS_MAX 65536u
#define TNNCCL_NAME_BYTES 120u /* of a call, with its end */
#define TNNCCL_TEXT_BYTES 472u /* of a note, with its end */
#define TNNCCL_VERSION 21800   /* of NCCL, the least: its number as ncclGetVersion gives it */

typedef struct tnnccl_libraries {
    int version; /* of NCCL */
#define NCCL(member, name) __typeof__(&name) member;
    struct {
#include "nccl.list"
    } nccl;
#undef NCCL
#define CUDA(member, name) __typeof__(&name) member;
    struct {
#include "driver.list"
    } cuda;
#undef CUDA
} tnnccl_libraries;

typedef struct tnnccl_buffer { /* kept for later calls until the communicator closes */
    struct tnnccl_buffer *next;
    void *data; /* on the device, or pinned */
    uint64_t bytes;
    bool pinned, taken;
} tnnccl_buffer;

/* A call is there, its NCCL has begun the first half or the second, its sum is there, it is in the parts. */
typedef enum tnnccl_step {
    TNNCCL_LOADED,
    TNNCCL_FIRST,
    TNNCCL_SECOND,
    TNNCCL_SUMMED,
    TNNCCL_STORED,
    TNNCCL_ENDED
} tnnccl_step;

typedef struct tnnccl_call {
    struct tnnccl_call *next;
    uint64_t number, cookie, deadline_ns, timeout_ns, bytes, share_bytes; /* share: of ordered sums */
    uint32_t kind, root, part_count;
    int32_t dtype;
    bool ordered, hosts; /* hosts: a part lies on the host */
    tnnccl_step step;
    CUevent event; /* of the last step that a stream was given */
    tnnccl_buffer *data, *shares, *pinned;
    char name[TNNCCL_NAME_BYTES];
    tn_collective_part parts[];
} tnnccl_call;

typedef enum tnnccl_kind {
    TNNCCL_HELLO = 1, /* number: the job's; hash: the host's; issued: version of NCCL and ranks */
    TNNCCL_PLACE,     /* number: place on its host; text: NCCL's unique id */
    TNNCCL_DEVICE,    /* text: UUID */
    TNNCCL_GO,        /* all have come, and no two have one device */
    TNNCCL_CALL,      /* a call was started; text: it */
    TNNCCL_AGREED,    /* number: calls that all have started, and alike */
    TNNCCL_ASK,       /* a call is late; text: it */
    TNNCCL_PING,
    TNNCCL_PONG,
    TNNCCL_ABORT, /* status, text; rank TNNCCL_NOBODY: a fact */
    TNNCCL_BYE,   /* it starts nothing more */
    TNNCCL_ALL_LEFT,
    TNNCCL_KINDS
} tnnccl_kind;

#define TNNCCL_MAGIC 0x4c434e54u
#define TNNCCL_NOBODY UINT32_MAX

/* What a link carries, each 512 bytes. */
typedef struct tnnccl_note {
    uint32_t magic, kind, rank, status;
    uint64_t number, hash, issued; /* issued: calls that NCCL was given */
    char text[TNNCCL_TEXT_BYTES];
} tnnccl_note;

typedef struct tnnccl_link {
    int fd; /* -1: none */
    uint32_t in_bytes;
    uint64_t out_bytes, out_room;
    uint8_t *out;
    tnnccl_note in;
} tnnccl_link;

typedef struct tnnccl_peer { /* of rank 0: what it knows of a rank, itself too */
    tnnccl_link link;
    bool here, answered, left;
    uint64_t started, issued, host;
    unsigned char device[16];
} tnnccl_peer;

typedef struct tnnccl_arrival { /* of rank 0: a call that not all have started */
    struct tnnccl_arrival *next;
    uint64_t number, hash;
    uint32_t rank; /* who was first */
    char text[TNNCCL_TEXT_BYTES];
} tnnccl_arrival;

typedef struct tnnccl_doubt {  /* a call that is late */
    uint64_t number, since_ns; /* number 0: none */
    char text[TNNCCL_TEXT_BYTES];
} tnnccl_doubt;

struct tn_communicator {
    const tn_host *host;
    const tnnccl_libraries *lib;
    tn_collective_config config;
    uint32_t rank, ranks;

    CUdevice device;
    CUcontext context;
    CUstream copies, sums;
    CUmodule module;
    CUfunction add;
    ncclComm_t comm;
    tnnccl_buffer *buffers;

    uint32_t peer_count; /* of rank 0: ranks, else 1: the link to rank 0 */
    tnnccl_peer *peers;
    tnnccl_arrival *arrivals; /* by number */
    tnnccl_doubt doubt;
    uint64_t agreed;
    bool root_left, all_left; /* of other ranks than 0 */
    bool dead;                /* a link has ended that should not */
    uint32_t dead_rank;
    uint64_t dead_ns;

    tnnccl_call *calls, **last; /* under way, and ended ones that were not handed out, in order */
    uint64_t started;
    tn_status failed; /* TN_OK: it works */
    char why[TNNCCL_TEXT_BYTES];
    int bell; /* eventfd */
    struct tnnccl_aborter *aborter;
    bool quiet; /* after a failure: no copy is under way */
};

/* ---- library.c ---- */
/* TN_E_UNSUPPORTED: no NCCL, or an old one · TN_E_DEVICE: no driver. They stay open. */
tn_status tnnccl_libraries_get(const tnnccl_libraries **out, tn_err *err);
tn_status tnnccl_driver_fail(const tnnccl_libraries *lib, CUresult result, const char *what, tn_err *err);

/* ---- device.c ---- */
/* `wanted` below 0: by `place`, the number of this rank among those of its host. */
tn_status tnnccl_device_open(tn_communicator *c, int64_t wanted, uint64_t place, unsigned char uuid[16],
                             tn_err *err);
void tnnccl_device_close(tn_communicator *c, bool whole); /* not whole: what may still be in use stays */
bool tnnccl_enter(tn_communicator *c);                    /* its context, until leave */
void tnnccl_leave(tn_communicator *c);
tnnccl_buffer *tnnccl_buffer_take(tn_communicator *c, uint64_t bytes, bool pinned); /* NULL: no memory */
bool tnnccl_on_device(const tn_communicator *c, const void *data);
tn_status tnnccl_sum_add(tn_communicator *c, const tnnccl_call *call, tn_err *err);
tn_status tnnccl_comm_open(tn_communicator *c, const char *id, uint64_t end_ns, tn_err *err);
bool tnnccl_comm_close(tn_communicator *c, uint64_t end_ns); /* in step with the others; false: not in time */
/* Ends NCCL's work, by a thread: ncclCommAbort may stick. */
void tnnccl_comm_abort(tn_communicator *c);
bool tnnccl_comm_gone(tn_communicator *c, uint64_t end_ns); /* whether it has ended by then */
void tnnccl_copies_end(tn_communicator *c);                 /* nothing of them is under way then */

/* ---- link.c ---- */
/* TN_E_TIMEOUT, TN_E_ARG, TN_E_IO. The socket is without blocking and in *fd. */
tn_status tnnccl_listen(const tn_collective_config *config, int *fd, tn_err *err);
tn_status tnnccl_connect(const tn_collective_config *config, uint64_t end_ns, int *fd, tn_err *err);
bool tnnccl_link_send(tnnccl_link *l, const tnnccl_note *note); /* false: no memory */
bool tnnccl_link_flush(tnnccl_link *l);                         /* false: it has ended */
/* 1: a note is in `in`, 0: none so far, -1: the end, or what is no note. */
int tnnccl_link_read(tnnccl_link *l);
void tnnccl_link_close(tnnccl_link *l);

/* ---- meet.c ---- */
/* All ranks have come, and each has a device and NCCL's id. */
tn_status tnnccl_meet(tn_communicator *c, int64_t device, char id[NCCL_UNIQUE_ID_BYTES], tn_err *err);

/* ---- note.c ---- */
void tnnccl_listen_all(tn_communicator *c); /* what has come, and out with what goes */
void tnnccl_started(tn_communicator *c, uint64_t hash, const char *text);
void tnnccl_late(tn_communicator *c, const tnnccl_call *call);
void tnnccl_judge(tn_communicator *c);
void tnnccl_bye(tn_communicator *c);
bool tnnccl_left(const tn_communicator *c); /* all have said bye */
/* It has failed. `mine`: the others hear it from here. */
void tnnccl_break(tn_communicator *c, tn_status st, bool mine, const char *format, ...)
    __attribute__((__format__(__printf__, 4, 5)));

/* ---- call.c ---- */
tn_status tnnccl_start(tn_communicator *c, const tn_collective_call *call, tn_err *err);
void tnnccl_move(tn_communicator *c);        /* all calls, as far as they go */
bool tnnccl_works(const tn_communicator *c); /* a stream has a call's work */
bool tnnccl_may_end(const tn_communicator *c, const tnnccl_call *call);
void tnnccl_call_free(tn_communicator *c, tnnccl_call *call);
uint64_t tnnccl_issued(const tn_communicator *c);
const char *tnnccl_kind_name(uint32_t kind);

/* ---- plugin.c ---- */
uint64_t tnnccl_now(void);
/* Sleeps at most so long, or until something comes over a link or the bell. */
void tnnccl_wait(tn_communicator *c, uint64_t most_ns);

#endif
