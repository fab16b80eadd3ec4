/*
 * A case: a small graph of operators with arrays for its variables, made from a seed and a number. It is
 * plain data without pointers, so it can be copied, changed and run again by a child process.
 *
 * An *entry* is a variable or an output of a node; edges and heads are indices of entries. Entries stand in
 * the order in which they were made, so a node reads earlier entries only.
 */
#ifndef TN_TESTS_RANDOM_CASE_H
#define TN_TESTS_RANDOM_CASE_H

#include "op/op.h"

enum {
    FUZZ_VARIABLES_MAX = 256,
    FUZZ_NODES_MAX = 48,
    FUZZ_EDGES_MAX = 1024, /* inputs of all nodes */
    FUZZ_ENTRIES_MAX = 1024,
    FUZZ_ATTRS_MAX = 1024, /* of all nodes */
    FUZZ_HEADS_MAX = 8,
    FUZZ_TEXT_MAX = 1 << 18,
    FUZZ_ELEMENTS_MAX = 4096 /* of an array that a valid case makes */
};

/* ---- random numbers: splitmix64 ------------------------------------------------------------------------ */

typedef struct fuzz_rng {
    uint64_t state;
} fuzz_rng;

static inline uint64_t fuzz_next(fuzz_rng *r)
{
    uint64_t z = r->state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline uint32_t fuzz_below(fuzz_rng *r, uint64_t limit)
{
    return (uint32_t)(fuzz_next(r) % limit);
}

static inline bool fuzz_chance(fuzz_rng *r, uint32_t percent)
{
    return fuzz_below(r, 100) < percent;
}

#define FUZZ_PICK(r, list) ((list)[fuzz_below((r), sizeof(list) / sizeof *(list))])

/* ---- what a case is made of ---------------------------------------------------------------------------- */

/* How an array lies in memory. */
enum { FUZZ_DENSE, FUZZ_GAPS, FUZZ_ROWS, FUZZ_TURNED, FUZZ_OFFSET, FUZZ_STRETCHED, FUZZ_FORMS };
#define FUZZ_AS_DENSE 0x80u /* with a form: the same values, row-major */
/* What is in it. */
enum { FUZZ_SMALL, FUZZ_UNIT, FUZZ_INDEX, FUZZ_ZEROS, FUZZ_WILD, FUZZ_VALUES };

#define FUZZ_NO_GRAD 3u /* beside TN_MODE_…: no gradient is attached */
#define FUZZ_NONE UINT32_MAX

typedef struct fuzz_variable {
    uint32_t entry;
    uint8_t form, values;
    uint8_t grad;      /* TN_MODE_… or FUZZ_NO_GRAD */
    uint8_t grad_form; /* of an array given for it; FUZZ_FORMS: none is given */
    bool state;        /* its node changes it */
    uint64_t seed;
} fuzz_variable;

typedef struct fuzz_entry {
    uint32_t node;  /* FUZZ_NONE: a variable */
    uint32_t index; /* output of the node, or number of the variable */
    int32_t dtype;
    tn_shape shape; /* of a variable; of an output, as inferred: ndim -1 if it is not known */
} fuzz_entry;

typedef struct fuzz_attr {
    uint32_t name, text; /* in the case's text */
} fuzz_attr;

typedef struct fuzz_node {
    uint32_t op; /* its name, or an alias, in the case's text */
    uint32_t first_attr, attr_count;
    uint32_t first_edge, in_count;
    uint32_t first_entry, out_count; /* visible outputs */
    uint32_t inplace; /* eager calls write output 0 over this input; FUZZ_NONE: into a new array */
    bool counted;     /* it has as many inputs as its attributes say */
    bool view;        /* output 0 may show the memory of input 0 */
} fuzz_node;

typedef struct fuzz_head {
    uint32_t entry;
    uint8_t form;  /* of an array given for it; FUZZ_FORMS: none is given */
    bool backward; /* gradients start here */
    uint8_t grad;  /* values of its head gradient; FUZZ_VALUES: none is given */
    uint32_t over; /* the array given is that of this variable; FUZZ_NONE */
    uint64_t seed;
} fuzz_head;

#define FUZZ_TRAIN 1u
#define FUZZ_NP_SHAPE 2u
#define FUZZ_RECORD 4u
#define FUZZ_RETAIN 8u
#define FUZZ_NEW_GRADS 16u  /* tn_gradients in place of tn_backward */
#define FUZZ_HEADS_NULL 32u /* no list of head gradients at all */
#define FUZZ_STATIC 64u     /* the cached operator keeps its memory */
#define FUZZ_SECOND 128u    /* gradients of gradients, in place of a second pass */
#define FUZZ_FLAGS                                                                                           \
    "train", "np_shape", "record", "retain", "new gradients", "no head gradients", "static", "second"

typedef struct fuzz_case {
    uint64_t seed, number;
    uint32_t flags, mode; /* mode: row of fuzz_modes */
    uint32_t variable_count, node_count, entry_count, edge_count, attr_count, head_count, text_used;
    fuzz_variable variables[FUZZ_VARIABLES_MAX];
    fuzz_node nodes[FUZZ_NODES_MAX];
    fuzz_entry entries[FUZZ_ENTRIES_MAX];
    fuzz_attr attrs[FUZZ_ATTRS_MAX];
    uint32_t edges[FUZZ_EDGES_MAX];
    fuzz_head heads[FUZZ_HEADS_MAX];
    char text[FUZZ_TEXT_MAX];
} fuzz_case;

/* ---- case.c -------------------------------------------------------------------------------------------- */

typedef struct fuzz_mark { /* how much a case held */
    uint32_t variables, nodes, entries, edges, attrs, text;
} fuzz_mark;

void fuzz_case_init(fuzz_case *c, uint64_t seed, uint64_t number, fuzz_rng *r);
fuzz_mark fuzz_case_mark(const fuzz_case *c);
void fuzz_case_cut(fuzz_case *c, const fuzz_mark *m); /* forgets what came since */
/* A text in the case: what fits. */
uint32_t fuzz_text(fuzz_case *c, const char *format, ...) TN_PRINTF(2, 3);
void fuzz_text_more(fuzz_case *c, const char *format, ...) TN_PRINTF(2, 3); /* goes on with the last one */
static inline const char *fuzz_text_at(const fuzz_case *c, uint32_t at)
{
    return c->text + at;
}
uint32_t fuzz_entry_add(fuzz_case *c, uint32_t node, uint32_t index, int32_t dtype, const tn_shape *shape);
/* A new variable with a random form and random values; its entry. */
uint32_t fuzz_variable_add(fuzz_case *c, fuzz_rng *r, int32_t dtype, const tn_shape *shape);
/* The entry whose memory this one may show: views have their input's. */
uint32_t fuzz_case_root(const fuzz_case *c, uint32_t entry);
/* Whether a node behind `node`, or a head, may read the memory of `entry`. */
bool fuzz_case_needed(const fuzz_case *c, uint32_t entry, uint32_t node);
/* Which nodes lead to a head. */
void fuzz_case_live(const fuzz_case *c, bool live[FUZZ_NODES_MAX]);
/* Elements; 0 if the shape is not known. Saturates. */
uint64_t fuzz_elements(const tn_shape *s);
/* The case as a person reads it. */
void fuzz_case_write(const fuzz_case *c, tni_str *out);

#endif
