/* What the files of room device share. */
#ifndef TN_DEVICE_INTERNAL_H
#define TN_DEVICE_INTERNAL_H

#include "device/device.h"

#define TNI_EVENTS_CACHED_MAX 64 /* events of a device kept for reuse: more are rarely in flight at once */
#define TNI_OWNERS_MAX 32        /* owners told apart in an out-of-memory text; the rest counts as "other" */
#define TNI_TYPE_BYTES 32        /* longest device type with its NUL */
#define TNI_TYPES_MAX 64         /* device types of one set: far above any machine */

struct tni_device_set {
    tni_options *options;
    tni_registry *registry;
    const tni_log *log;
    tni_mutex lock; /* devices, types; below no other lock of this room */
    tni_cond changed;
    uint64_t opening; /* the one thread that loads plugins, opens a device, creates a pool; 0: none */
    uint32_t opening_rank;
    atomic_bool forked;
    atomic_size_t count;
    tni_device *devices[TN_DEVICES_MAX];
    char types[TNI_TYPES_MAX][TNI_TYPE_BYTES];
    uint16_t type_count;
    bool (*relief)(void *arg);
    void *relief_arg;
};

typedef struct device_impl {
    tni_device device; /* first: a tni_device is one of these */
    char kernels_type[TNI_TYPE_BYTES];
    uint32_t alignment;
    tni_mutex event_lock;
    tni_mutex recording_lock; /* see tni_device_recording_lock */
    tn_event *events[TNI_EVENTS_CACHED_MAX];
    uint32_t event_count;
} device_impl;

static inline device_impl *tni_device_impl(tni_device *d)
{
    return (device_impl *)d;
}

/* Takes the right to load, open and create; waits for its present holder. Pairs with tni_device_opening_end,
 * which gets `before`. Its own thread may do what has a higher rank meanwhile; else TN_E_STATE. */
#define OPENING_DEVICE 1u
#define OPENING_POOL 2u
#define OPENING_HOST 3u
tn_status tni_device_opening_begin(tni_device_set *s, uint32_t rank, const char *type, uint32_t *before);
void tni_device_opening_end(tni_device_set *s, uint32_t before);

/* host.c: plain host memory, and how much of it there is. */
tn_status tni_host_alloc(int32_t memory, uint64_t bytes, void **out);
void tni_host_free(int32_t memory, void *data, uint64_t bytes);
void tni_host_info(uint64_t *free_bytes, uint64_t *total_bytes);
/* Lowers both to what the cgroup of this folder allows. */
void tni_host_limit(const char *folder, uint64_t *free_bytes, uint64_t *total_bytes);

/* raw.c: the sizes of the raw blocks that a pool took from its device. */
typedef struct raw_block {
    uintptr_t key; /* 0: empty, 1: removed */
    uint64_t bytes;
} raw_block;
typedef struct raw_table {
    raw_block *blocks;
    size_t capacity, used, filled; /* filled: with the removed ones */
    uint64_t bytes;
} raw_table;
tn_status tni_raw_reserve(raw_table *t); /* room for one more */
void tni_raw_add(raw_table *t, void *data, uint64_t bytes);
bool tni_raw_remove(raw_table *t, void *data, uint64_t *bytes);
bool tni_raw_any(const raw_table *t, void **data, uint64_t *bytes);
void tni_raw_fini(raw_table *t);

typedef struct pool_owner {
    const char *name;
    uint64_t bytes;
} pool_owner;

struct tni_pool {
    tni_device *device;
    int32_t memory;
    const tn_pool_ops *ops;
    const char *name;
    tn_pool *impl;
    tn_pool_source source;
    uint64_t limit_bytes; /* of raw memory; 0: none */
    tni_mutex lock;       /* held in every call of the pool */
    pool_owner owners[TNI_OWNERS_MAX];
    uint32_t owner_count;
    tni_mutex raw_lock; /* below `lock` */
    raw_table raw;
};

tn_status tni_pool_open(tni_device *d, int32_t memory, tni_pool **out); /* creates at first use */
void tni_pool_close(tni_pool *p);
void tni_pool_stats(tni_pool *p, tn_pool_stats *out);
tn_status tni_pool_source_init(tni_pool *p); /* source.c */
extern const tn_pool_ops tni_pool_none;

#endif
