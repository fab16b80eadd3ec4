/*
 * What kernels that measure get from the host in `prepare`: scratch, a time, and the blob that they left the
 * last time. tuning.c makes the key of a request; tuning_store.c keeps blobs in a file.
 */
#ifndef TN_TUNING_H
#define TN_TUNING_H

#include "compile/select.h"

/* ---- tuning_store.c: blobs by key, of one file --------------------------------------------------------- */

#define TNI_TUNING_FILE_MAX ((uint64_t)4 << 20) /* some 4000 requests; beyond that the oldest go */
#define TNI_TUNING_KEY_MAX 16384u               /* a text; longer ones are not kept */
#define TNI_TUNING_BLOB_MAX 65536u

typedef struct tni_tuning_store tni_tuning_store;
/* The file is read when something is looked up for the first time. "": nothing is read or written. */
tn_status tni_tuning_store_create(const char *path, const tni_log *log, tni_tuning_store **out);
/* Adds the new blobs to the file as it is by then. A failure is a line of the log. */
void tni_tuning_store_destroy(tni_tuning_store *s);
/* A copy (tni_free); NULL: there is none. */
void *tni_tuning_store_find(tni_tuning_store *s, const tni_str *key, uint64_t *bytes);
void tni_tuning_store_set(tni_tuning_store *s, const tni_str *key, const void *blob, uint64_t bytes);

/* ---- tuning.c ------------------------------------------------------------------------------------------ */

typedef struct tni_tuning tni_tuning; /* of a selector */
tni_tuning *tni_selector_tuning(const tni_selector *s);
tn_status tni_tuning_create(const tni_options *options, const tni_log *log, tni_tuning **out);
void tni_tuning_destroy(tni_tuning *t);

typedef struct tni_tuning_block tni_tuning_block;
typedef struct tni_tuned { /* one prepare */
    tn_prepare_ops ops;
    tni_tuning *tuning;
    tni_device *device;
    tni_str key; /* empty: nothing is looked up or kept */
    void *stored;
    tni_tuning_block *blocks; /* scratch */
    uint32_t block_count;
} tni_tuned;
/* `measure` false: without a time, for a plan that is made to be looked at. `out` stays where it is. */
void tni_tuned_init(tni_tuned *out, tni_tuning *t, const tni_request *r, const tni_candidate *c,
                    bool measure);
/* Keeps what the kernel left, and releases it. */
void tni_tuned_take(tni_tuned *d, tn_plan *plan);
void tni_tuned_fini(tni_tuned *d);

#endif
