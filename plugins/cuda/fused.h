/*
 * Chains of pointwise operators: operator _fused_pointwise.
 *
 * fused.c: planning, and both of its kernels · fused_source.c: the kernel of a chain as text · nvrtc.c: the
 * compiler of such texts, and what it has made so far.
 */
#ifndef TNCUDA_FUSED_H
#define TNCUDA_FUSED_H

#include "launch.h"

#define TNCUDA_FUSED_SOURCE_BYTES 65536

/* How an input, or an output, lies. */
enum {
    TNCUDA_LIES_DENSE, /* in the order of the elements, one after the other */
    TNCUDA_LIES_ONE,   /* the same element for all */
    TNCUDA_LIES_FAR    /* by strides */
};

typedef struct tncuda_fused_plan {
    tncuda_fused_args args; /* all but where arrays lie, and the numbers of a run */
    uint32_t in_count, numbers;
    uint8_t in_of[TNCUDA_FUSED_PLACES], out_of[TNCUDA_FUSED_PLACES]; /* which of the node a place is */
    struct {
        uint32_t run, kind; /* the run-time attribute, or TN_POINT_NUMBER: */
        double value;
    } number[TNCUDA_FUSED_NUMBERS];
    const char *loop[TNCUDA_FUSED_STEPS];     /* names of the steps' loops */
    uint8_t loop_numbers[TNCUDA_FUSED_STEPS]; /* numbers that these read beside the operands */
    struct tncuda_compiled *compiled;         /* NULL: the chain is interpreted */
    uint8_t lies[2 * TNCUDA_FUSED_PLACES];    /* TNCUDA_LIES_…, of inputs, then outputs */
    uint8_t far[2 * TNCUDA_FUSED_PLACES];     /* those of them that lie by strides, in order */
    uint32_t far_count;
    int32_t width; /* elements that a thread takes at a time: 1 to 8 */
} tncuda_fused_plan;

/* ---- fused_source.c ------------------------------------------------------------------------------------ */

/* How arrays lie, and what follows from that: the last members of a plan. */
void tncuda_fused_look(tncuda_fused_plan *p);
/* The kernel FUSED_NAME of a chain, which is given what tncuda_fused_words writes. TN_E_UNSUPPORTED: it is
 * longer than `bytes`. */
tn_status tncuda_fused_source(const tncuda_fused_plan *p, char *out, size_t bytes, tn_err *err);
/* The arguments of a run; how many words of 8 bytes. `words` has room for TNCUDA_FUSED_WORDS. */
#define TNCUDA_FUSED_WORDS 320
uint32_t tncuda_fused_words(const tncuda_fused_plan *p, const tn_exec *x, uint64_t *words);
/* Where a place (inputs, then outputs) lies in a run; a number of it. */
void *tncuda_fused_data(const tncuda_fused_plan *p, const tn_exec *x, uint32_t place);
double tncuda_fused_number(const tncuda_fused_plan *p, const tn_exec *x, uint32_t index);

/* ---- nvrtc.c ------------------------------------------------------------------------------------------- */

/* Machine code of one text for one architecture; it stays until the plugin ends. */
typedef struct tncuda_compiled {
    struct tncuda_compiled *next;
    uint64_t key;
    char name[TNCUDA_NAME_BYTES]; /* of the kernel */
    atomic_uint broken;           /* a device would not load it */
    atomic_ullong loaded;         /* bits of devices that have loaded it */
    uint64_t bytes;
    char *image;
} tncuda_compiled;

/* The machine code of a text for architecture `arch` (90: 9.0). TN_E_UNSUPPORTED: there is no NVRTC, or it
 * refuses the text; the first of each is logged. [any] */
tn_status tncuda_nvrtc_compile(tncuda_plugin *plugin, int32_t arch, const char *body, tncuda_compiled **out,
                               tn_err *err);
void tncuda_nvrtc_close(tncuda_plugin *plugin);

/* Made by CMake: the files that texts include. */
typedef struct tncuda_text {
    const char *name, *text;
} tncuda_text;
extern const tncuda_text tncuda_texts[]; /* ends with a NULL name */

#endif
