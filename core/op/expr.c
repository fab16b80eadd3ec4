/* Signs by rank, and one reader for all languages that have them. */
#include "op/expr.h"

#include <stdio.h>
#include <string.h>

#define RANKS 4u

#define TIMES                                                                                                \
    {                                                                                                        \
        "*", 2, "mul", "elemwise_mul", "_npi_multiply", "_mul_scalar", "_mul_scalar"                         \
    }

const tni_sign tni_sign_times = TIMES;

/* Bits of TNI_SIGNS_… are places here; longer ones come first. */
static const tni_sign signs[] = {
    {"<=", 0, "lesser_equal", NULL, "_npi_less_equal", "_lesser_equal_scalar", "_greater_equal_scalar"},
    {">=", 0, "greater_equal", NULL, NULL, "_greater_equal_scalar", "_lesser_equal_scalar"},
    {"==", 0, "equal", NULL, NULL, "_equal_scalar", "_equal_scalar"},
    {"!=", 0, "not_equal", NULL, NULL, "_not_equal_scalar", "_not_equal_scalar"},
    {"<", 0, "lesser", NULL, "_npi_less", "_lesser_scalar", "_greater_scalar"},
    {">", 0, "greater", NULL, NULL, "_greater_scalar", "_lesser_scalar"},
    {"+", 1, "add", "elemwise_add", "_npi_add", "_plus_scalar", "_plus_scalar"},
    {"-", 1, "sub", "elemwise_sub", "_npi_subtract", "_minus_scalar", "_rminus_scalar"},
    TIMES,
    {"/", 2, "div", "elemwise_div", "_npi_true_divide", "_div_scalar", "_rdiv_scalar"},
    {"^", 3, "power", NULL, NULL, "_power_scalar", "_rpower_scalar"},
};

typedef struct reading {
    const tni_expr *e;
    void *self;
    const char **at;
    const tn_status *st;
} reading;

static const tni_sign *sign_take(const reading *r, uint32_t rank)
{
    if (*r->st)
        return NULL;
    *r->at += strspn(*r->at, r->e->blanks);
    for (uint32_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        const size_t length = strlen(signs[i].text);

        if (signs[i].rank != rank || !(r->e->signs >> i & 1u) || strncmp(*r->at, signs[i].text, length) != 0)
            continue;
        *r->at += length;
        return &signs[i];
    }
    return NULL;
}

static void chain_read(const reading *r, uint32_t rank, void *out)
{
    _Alignas(16) char right[TNI_EXPR_VALUE_MAX];
    const tni_sign *sign;

    if (rank == RANKS) {
        r->e->fact(r->self, out);
        return;
    }
    chain_read(r, rank + 1, out);
    while ((sign = sign_take(r, rank)) != NULL) {
        chain_read(r, rank + 1, right);
        r->e->apply(r->self, sign, out, right);
        if (rank == TNI_RANK_COMPARISON && r->e->one_comparison)
            return;
    }
}

void tni_expr_read(const tni_expr *e, void *self, const char **at, const tn_status *st, void *out)
{
    const reading r = {e, self, at, st};

    chain_read(&r, 0, out);
}

void tni_sign_operator(const tni_sign *sign, const char *prefix, const char *whole, char *out)
{
    snprintf(out, TN_NAME_MAX, "%s%s", whole ? "" : prefix, whole ? whole : sign->name);
}
