/* Running a case in several ways, and comparing what came out. */
#ifndef TN_TESTS_RANDOM_RUN_H
#define TN_TESTS_RANDOM_RUN_H

#include "autograd/autograd.h"
#include "case.h"
#include "tenon/tenon.h"

/* ---- arrays.c: arrays in every form -------------------------------------------------------------------- */

typedef struct fuzz_array {
    tn_array *view;  /* what is handed on */
    tn_array *base;  /* all memory around it; NULL: the same */
    uint8_t *before; /* what the base held */
    uint64_t bytes;
} fuzz_array;

tn_status fuzz_array_make(tn_ctx *ctx, const fuzz_entry *like, uint32_t form, uint8_t values, uint64_t seed,
                          fuzz_array *out);
void fuzz_array_free(fuzz_array *a);
/* Whether the memory around the view is as it was. */
bool fuzz_array_around(const fuzz_array *a);
/* The values that the array was made with, row-major; `bytes` of them. False: not so many. */
bool fuzz_array_values(const fuzz_entry *like, uint8_t values, uint64_t seed, void *to, uint64_t bytes);

/* ---- result.c: what came out --------------------------------------------------------------------------- */

enum { FUZZ_FORWARD, FUZZ_BACKWARD, FUZZ_AGAIN, FUZZ_STAGES }; /* again: a second backward pass */
enum { FUZZ_OF_HEAD, FUZZ_OF_VARIABLE, FUZZ_OF_GRADIENT, FUZZ_OF_GRADIENT_AGAIN };

typedef struct fuzz_part { /* an array's values */
    uint32_t kind, index;
    int32_t dtype;
    tn_shape shape;
    uint64_t at, bytes; /* in the result's bytes */
} fuzz_part;

typedef struct fuzz_result {
    bool reached[FUZZ_STAGES];
    tn_status status[FUZZ_STAGES];
    char message[FUZZ_STAGES][160];
    fuzz_part parts[2 * FUZZ_HEADS_MAX + 3 * FUZZ_VARIABLES_MAX];
    uint32_t part_count;
    uint8_t *bytes;
    uint64_t used, room;
    char wrong[400]; /* a finding of this run alone; "": none */
} fuzz_result;

void fuzz_result_init(fuzz_result *r); /* keeps its memory */
void fuzz_result_fini(fuzz_result *r);
void fuzz_result_status(fuzz_result *r, uint32_t stage, tn_status st);
void fuzz_result_add(fuzz_result *r, uint32_t stage, uint32_t kind, uint32_t index, tn_array *a);
void fuzz_result_wrong(fuzz_result *r, const char *format, ...) TN_PRINTF(2, 3); /* the first one counts */
/* "": they agree as far as both go. `one`: of a single node. */
const char *fuzz_result_differs(const fuzz_result *a, const fuzz_result *b, bool one);

/* ---- run.c: the ways ----------------------------------------------------------------------------------- */

typedef struct fuzz_mode { /* how contexts are opened */
    const char *name;
    const char *settings[4];
} fuzz_mode;
extern const fuzz_mode fuzz_modes[];
extern const uint32_t fuzz_mode_count;

typedef struct fuzz_bench {  /* contexts of one mode */
    tn_ctx *ctx[2];          /* the engine of the mode, the naive one */
    const tn_device *cpu[2]; /* of each */
} fuzz_bench;

/* Aborts if a context cannot be opened. `naive` alone is faster. */
void fuzz_bench_open(fuzz_bench *b, uint32_t mode, bool naive_only);
void fuzz_bench_close(fuzz_bench *b);

/* Runs the case in all ways that apply. False: `finding` says what is wrong, its first word what kind. With
 * `ways` 0 all of them, else the first and one of the others. */
typedef struct fuzz_verdict {
    bool accepted; /* forward went well */
    char kind[48];
    char text[1200];
} fuzz_verdict;
bool fuzz_run(const fuzz_bench *b, const fuzz_case *c, bool all_ways, fuzz_verdict *v);

#endif
