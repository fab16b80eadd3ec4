/* The programs around it all: cases by number in child processes, findings made small and printed. */
#ifndef TN_TESTS_RANDOM_DRIVER_H
#define TN_TESTS_RANDOM_DRIVER_H

#include "make.h"
#include "run.h"

typedef struct fuzz_exception { /* an operator that no case needs to reach */
    const char *op, *why;
} fuzz_exception;

typedef struct fuzz_program {
    const char *name, *unit; /* "fuzz-ops", "calls" */
    fuzz_make_fn make;
    uint64_t runs;                    /* where TENON_RUNS says nothing */
    uint64_t block;                   /* cases that share a context */
    bool all_ways;                    /* each case in every way, with both engines */
    bool reaches_all;                 /* every operator must be accepted in `runs` cases */
    const fuzz_exception *exceptions; /* ended by NULL */
} fuzz_program;

/*
 * Environment: TENON_RUNS, TENON_SEED (1). Arguments: --verbose, a line for each operator; --only N, one
 * case, printed; --first N --count N, cases in one process; --findings N, how many before it stops (1).
 */
int fuzz_main(const fuzz_program *p, int argc, char **argv);

/* ---- child.c: work in a child process ------------------------------------------------------------------ */

#define FUZZ_JOBS_MAX 16
#define FUZZ_FINDINGS_MAX 64

typedef struct fuzz_finding {
    uint64_t number;
    fuzz_verdict verdict;
} fuzz_finding;

typedef struct fuzz_shared {          /* seen by all processes */
    uint64_t current[FUZZ_JOBS_MAX];  /* the case that a job runs */
    fuzz_verdict last[FUZZ_JOBS_MAX]; /* what it found */
    _Atomic uint64_t done, accepted;
    _Atomic uint32_t finding_count;
    fuzz_finding findings[FUZZ_FINDINGS_MAX];
    _Atomic uint32_t tried_of[TN_OPERATORS_MAX], accepted_of[TN_OPERATORS_MAX]; /* by operator */
} fuzz_shared;

typedef struct fuzz_work { /* cases first … last-1, or one that is given */
    const fuzz_program *program;
    fuzz_shared *shared;
    uint64_t seed, first, last;
    const fuzz_case *only;
    uint32_t job, mode;
    bool quiet;
} fuzz_work;

/* Runs it in a child. True: all went well. Else `shared->last[job]` says what, of case `current[job]`, which
 * is `last` for what is found at the very end. */
bool fuzz_child(const fuzz_work *w);
/* Makes a case by number. */
bool fuzz_op_drawn(const tn_op *op); /* it may be called by itself */
void fuzz_case_make(const fuzz_work *w, const tn_ctx *ctx, uint64_t number, fuzz_case *c);

/* ---- shrink.c ------------------------------------------------------------------------------------------ */

void fuzz_shrink(fuzz_case *c, bool (*fails)(const fuzz_case *c, void *arg), void *arg);

#endif
