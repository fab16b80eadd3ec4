/* A product's plan, shared by lt.c, which makes and runs it, and lt_measure.c. */
#ifndef TNCUDA_LT_PLAN_H
#define TNCUDA_LT_PLAN_H

#include "lt.h"

#define TNCUDA_LT_KEPT 512u /* choices that a process remembers: the oldest makes room for the next one */

typedef struct tncuda_lt_side { /* a matrix as the library takes it: (rows, cols), columns `ld` apart */
    int64_t transposed, rows, cols, ld, batch;
} tncuda_lt_side;

/* Which product it is for the library: without padding, compared as bytes. */
typedef struct tncuda_lt_form {
    int32_t device, dtype;
    int64_t epilogue, batch;
    tncuda_lt_side side[3]; /* the library's a and b, and d, which is c */
} tncuda_lt_form;

typedef struct tncuda_lt_taken { /* an algorithm */
    tncuda_lt_algo algo;
    size_t bytes;           /* of workspace that it needs */
    uint32_t number, count; /* which one of what the heuristic listed, from 1; count 0: there is none */
    uint32_t measured;      /* how it was taken: TNCUDA_LT_FIRST … */
    uint32_t scheme;        /* of sums in parts */
} tncuda_lt_taken;

enum { TNCUDA_LT_FIRST, TNCUDA_LT_MEASURED, TNCUDA_LT_BEFORE }; /* measured for an equal product before */

typedef struct tncuda_lt_kept {
    tncuda_lt_form form;
    tncuda_lt_taken taken;
} tncuda_lt_kept;

typedef struct tncuda_lt_limits { /* of a device */
    uint64_t room;                /* bytes of workspace at most */
    uint64_t trial;               /* bytes of a product that is measured, at most */
    double work;                  /* its multiplications, at least */
} tncuda_lt_limits;

struct tncuda_lt_library {
    pthread_mutex_t lock; /* of what follows */
    bool tried;
    tn_err absent; /* code TN_OK: it is there */
    tncuda_lt_functions f;
    _Atomic(tncuda_lt_handle) handles[TNCUDA_DEVICES_MAX];
    tncuda_lt_limits limits[TNCUDA_DEVICES_MAX];
    atomic_uint refusals;      /* at runs: of products */
    pthread_mutex_t measuring; /* of what follows; held while a product is measured */
    tncuda_lt_kept *kept;      /* TNCUDA_LT_KEPT of them; NULL: none so far */
    uint64_t kept_count;       /* so far, those that made room counted in */
};

typedef union tncuda_lt_scale { /* of the scale's type */
    float single;
    double wide;
} tncuda_lt_scale;

typedef struct tncuda_lt_way { /* graphs know a call by its address: another algorithm is another call */
    tncuda_lt *lt;
    int low;
} tncuda_lt_way;

struct tncuda_lt {
    tncuda_owned owned;    /* first */
    tncuda_lt_way ways[2]; /* by aligned addresses, and by others */
    tncuda_plugin *plugin;
    struct tncuda_lt_library *library;
    tncuda_lt_form form;
    bool swapped, biased, relu, sums; /* sums: the bias is written */
    bool measured;                    /* the fastest algorithm is taken, not the first */
    uint64_t at;                      /* of its room in the workspace */
    tncuda_lt_desc desc;
    tncuda_lt_layout layouts[3]; /* of the library's a, b, and c and d */
    tncuda_lt_taken taken[2];    /* for aligned addresses, and for others */
    tncuda_lt_scale alpha, beta, zero, one;
    pthread_mutex_t lock; /* of the descriptor while it has a bias: the address is in there */
    atomic_bool refused;  /* at a run */
    char what[160];
};

typedef struct tncuda_lt_args { /* without padding: graphs compare them */
    const void *a, *b, *bias, *c;
    void *d, *room;
    int64_t add;
} tncuda_lt_args;

/* In the context: the product in a stream. */
tncuda_lt_status tncuda_lt_multiply(tncuda_lt *lt, tncuda_lt_handle handle, const tncuda_lt_taken *by,
                                    const tncuda_lt_args *args, tncuda_stream stream);

/* ---- lt_measure.c -------------------------------------------------------------------------------------- */

double tncuda_lt_work(const tncuda_lt *lt); /* multiplications */
/* Those that follow are called in the context, under library->measuring. This one gives what an equal product
 * was given before; false: nothing, or it was forgotten. */
bool tncuda_lt_find_locked(const tncuda_lt *lt, tncuda_lt_taken *out);
void tncuda_lt_keep_locked(const tncuda_lt *lt, const tncuda_lt_taken *taken);
/* The number of the fastest of `count` algorithms (from 2 to TNCUDA_WAYS); false: the product is too large to
 * be measured. */
bool tncuda_lt_fastest_locked(tncuda_lt *lt, tncuda_lt_handle handle, uint32_t count,
                              const tncuda_lt_taken *ways, uint32_t *out);

#endif
