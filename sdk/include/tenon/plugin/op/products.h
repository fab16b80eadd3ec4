/** Attributes of the operators of the family products, and what the subscripts of einsum say. */
#ifndef TENON_PLUGIN_OP_PRODUCTS_H
#define TENON_PLUGIN_OP_PRODUCTS_H

#include "../attr.h"

#define TN_npi_tensordot_ATTRS(X)                                                                            \
    X(npi_tensordot, TUPLE, a_axes_summed, TN_REQUIRED, TN_ANY, "axes of a that are summed over")            \
    X(npi_tensordot, TUPLE, b_axes_summed, TN_REQUIRED, TN_ANY, "the axes of b that go with them")
TN_ATTRS(npi_tensordot);

#define TN_npi_tensordot_int_axes_ATTRS(X)                                                                   \
    X(npi_tensordot_int_axes, INT, axes, TN_REQUIRED, TN_IN(0, 32),                                          \
      "the last axes of a and the first of b that are summed over")
TN_ATTRS(npi_tensordot_int_axes);

#define TN_npi_einsum_ATTRS(X)                                                                               \
    X(npi_einsum, COUNT, num_args, TN_REQUIRED, TN_IN(0, 4096), "number of inputs")                          \
    X(npi_einsum, TEXT, subscripts, "", TN_ANY,                                                             \
      "a letter for each axis: ij,jk->ik; ... stands for any number") \
    X(npi_einsum, INT, optimize, "0", TN_ANY, "advice, not read")
TN_ATTRS(npi_einsum);

#define TN_khatri_rao_ATTRS(X)                                                                               \
    X(khatri_rao, COUNT, num_args, TN_REQUIRED, TN_IN(0, 4096), "number of inputs")
TN_ATTRS(khatri_rao);

#define TN_EINSUM_INPUTS_MAX 16
#define TN_EINSUM_LABELS_MAX (52 + TN_NDIM_MAX)

/** What each axis of the inputs and the output is called: 0 to 51 are letters, those above stand for axes of
 * an ellipsis, the last of which is TN_EINSUM_LABELS_MAX - 1. */
typedef struct tn_einsum {
    int32_t count;                                              /* inputs */
    int32_t ndim[TN_EINSUM_INPUTS_MAX + 1];                     /* the output's stands at `count` */
    uint8_t label[TN_EINSUM_INPUTS_MAX + 1][TN_NDIM_MAX];
} tn_einsum;

static inline int32_t tn_einsum_letter(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' : c >= 'a' && c <= 'z' ? c - 'a' + 26 : -1;
}

/* One group of subscripts at `*text`, for `ndim` axes; -1: as many as it needs, an ellipsis having `dots`. */
static inline const char *tn_einsum_group(const char **text, int32_t ndim, int32_t dots, uint8_t *label,
                                          int32_t *out)
{
    int32_t letters = 0, n = 0, wide = 0;
    const char *p;

    for (p = *text; *p && *p != ',' && !(p[0] == '-' && p[1] == '>'); p++) {
        letters += tn_einsum_letter(*p) >= 0;
        if (*p == '.' && (p[1] != '.' || p[2] != '.' || wide++))
            return "there is a point that is no part of one ellipsis";
        p += *p == '.' ? 2 : 0;
    }
    dots = ndim < 0 ? (wide ? dots : 0) : ndim - letters;
    if (dots < 0 || (dots > 0 && !wide) || letters + dots > TN_NDIM_MAX)
        return "the number of subscripts is not that of the axes";
    for (p = *text; *p && *p != ',' && !(p[0] == '-' && p[1] == '>'); p++) {
        if (tn_einsum_letter(*p) >= 0) {
            label[n++] = (uint8_t)tn_einsum_letter(*p);
        } else if (*p == '.') {
            for (int32_t k = 0; k < dots; k++)
                label[n++] = (uint8_t)(TN_EINSUM_LABELS_MAX - dots + k);
            p += 2;
        } else if (*p != ' ') {
            return "a subscript is no letter";
        }
    }
    *text = p;
    *out = n;
    return NULL;
}

/** Reads the subscripts for inputs of so many axes. NULL: `*out` is filled in; else what is wrong. */
static inline const char *tn_einsum_read(const char *text, int32_t count, const int32_t *ndim, tn_einsum *out)
{
    int32_t seen[TN_EINSUM_LABELS_MAX] = {0}, dots = 0, n = 0;
    const char *wrong = NULL;

    if (count < 1 || count > TN_EINSUM_INPUTS_MAX)
        return "there are 1 to 16 inputs";
    out->count = count;
    for (int32_t k = 0; k < count && !wrong; k++) {
        wrong = tn_einsum_group(&text, ndim[k], 0, out->label[k], &out->ndim[k]);
        for (int32_t d = 0; !wrong && d < out->ndim[k]; d++)
            seen[out->label[k][d]]++;
        if (!wrong && (k + 1 < count) != (*text == ','))
            wrong = "there is not one group of subscripts for each input";
        text += !wrong && *text == ',';
    }
    for (int32_t l = 52; l < TN_EINSUM_LABELS_MAX; l++)
        dots += seen[l] > 0;
    if (wrong)
        return wrong;
    if (*text) {
        text += 2;
        if ((wrong = tn_einsum_group(&text, -1, dots, out->label[count], &out->ndim[count])))
            return wrong;
        if (*text)
            return "something stands behind the output's subscripts";
        for (int32_t d = 0; d < out->ndim[count]; d++)
            for (int32_t e = 0; e < d || !seen[out->label[count][d]]; e++)
                if (!seen[out->label[count][d]] || out->label[count][d] == out->label[count][e])
                    return "a subscript of the output is there twice, or not among the inputs'";
        return NULL;
    }
    for (int32_t l = 52; l < TN_EINSUM_LABELS_MAX; l++)
        if (seen[l] && n < TN_NDIM_MAX)
            out->label[count][n++] = (uint8_t)l;
    for (int32_t l = 0; l < 52; l++)
        if (seen[l] == 1 && n < TN_NDIM_MAX)
            out->label[count][n++] = (uint8_t)l;
    out->ndim[count] = n;
    return NULL;
}

#endif
