/*
 * The calls of oneDNN whose form depends on its major version; all other files use these. Version 3 has the
 * same operations behind primitive descriptors without operation descriptors: it would get a second block
 * here. Every function returns the library's status, and a primitive descriptor that the caller owns.
 */
#ifndef TNDNN_SHIM_H
#define TNDNN_SHIM_H

#include <dnnl.h>
#include <string.h>

#if DNNL_VERSION_MAJOR != 2
#error "this plugin is written for oneDNN 2"
#endif

typedef dnnl_memory_desc_t tndnn_md;

/* ---- memory descriptors -------------------------------------------------------------------------------- */

static inline void tndnn_md_any(tndnn_md *md, int ndims, const dnnl_dims_t dims)
{
    memset(md, 0, sizeof *md);
    (void)dnnl_memory_desc_init_by_tag(md, ndims, dims, dnnl_f32, dnnl_format_tag_any);
}

static inline void tndnn_md_strided(tndnn_md *md, int ndims, const dnnl_dims_t dims,
                                    const dnnl_dims_t strides)
{
    memset(md, 0, sizeof *md);
    (void)dnnl_memory_desc_init_by_strides(md, ndims, dims, dnnl_f32, strides);
}

/* Channels in blocks of 16, the order of memory of code for AVX-512; 0: not for as many dimensions, or not on
 * this processor. */
static inline int tndnn_md_blocks(tndnn_md *md, int ndims, const dnnl_dims_t dims)
{
    const dnnl_format_tag_t tags[] = {dnnl_nCw16c, dnnl_nChw16c, dnnl_nCdhw16c};
    const unsigned isa = (unsigned)dnnl_get_effective_cpu_isa(), wide = dnnl_cpu_isa_avx512_core;

    memset(md, 0, sizeof *md);
    return ndims >= 3 && ndims <= 5 && (isa & wide) == wide &&
           !dnnl_memory_desc_init_by_tag(md, ndims, dims, dnnl_f32, tags[ndims - 3]);
}

/* Channels in blocks of 8, the order of memory of code for AVX2, for dimensions (N, C, H, W); 0: not on this
 * processor, or not there as it has wider code. */
static inline int tndnn_md_blocks_8(tndnn_md *md, const dnnl_dims_t dims)
{
    const unsigned isa = (unsigned)dnnl_get_effective_cpu_isa(), wide = dnnl_cpu_isa_avx512_core,
                   narrow = dnnl_cpu_isa_avx2;

    memset(md, 0, sizeof *md);
    return (isa & narrow) == narrow && (isa & wide) != wide &&
           !dnnl_memory_desc_init_by_tag(md, 4, dims, dnnl_f32, dnnl_nChw8c);
}

/* Only what tells descriptors apart: equal memory orders have equal bytes. */
static inline void tndnn_md_canonical(tndnn_md *to, const tndnn_md *from)
{
    memset(to, 0, sizeof *to);
    to->ndims = from->ndims;
    to->data_type = from->data_type;
    to->offset0 = from->offset0;
    to->format_kind = from->format_kind;
    for (int i = 0; i < from->ndims; i++) {
        to->dims[i] = from->dims[i];
        to->padded_dims[i] = from->padded_dims[i];
        to->padded_offsets[i] = from->padded_offsets[i];
    }
    if (from->format_kind == dnnl_format_kind_wino) {
        to->format_desc.wino_desc = from->format_desc.wino_desc;
        return;
    }
    for (int i = 0; i < from->ndims; i++)
        to->format_desc.blocking.strides[i] = from->format_desc.blocking.strides[i];
    to->format_desc.blocking.inner_nblks = from->format_desc.blocking.inner_nblks;
    for (int i = 0; i < from->format_desc.blocking.inner_nblks; i++) {
        to->format_desc.blocking.inner_blks[i] = from->format_desc.blocking.inner_blks[i];
        to->format_desc.blocking.inner_idxs[i] = from->format_desc.blocking.inner_idxs[i];
    }
}

/* The same order of memory: dimensions of extent 1 may have any stride. */
static inline int tndnn_md_equal(const tndnn_md *a, const tndnn_md *b)
{
    tndnn_md x, y;

    tndnn_md_canonical(&x, a);
    tndnn_md_canonical(&y, b);
    for (int i = 0; i < x.ndims && x.format_kind == dnnl_blocked; i++)
        if (x.dims[i] == 1 && x.padded_dims[i] == 1)
            x.format_desc.blocking.strides[i] = y.format_desc.blocking.strides[i];
    return memcmp(&x, &y, sizeof x) == 0;
}

static inline int tndnn_md_plain(const tndnn_md *md)
{
    return md->format_kind == dnnl_blocked && md->format_desc.blocking.inner_nblks == 0;
}

/* ---- operations ---------------------------------------------------------------------------------------- */

typedef struct tndnn_window {
    dnnl_dims_t stride, dilate, pad_left, pad_right, kernel; /* dilate: 0 is dense; kernel: pooling only */
} tndnn_window;

static inline dnnl_status_t tndnn_pd_convolution(dnnl_primitive_desc_t *pd, dnnl_engine_t e, int training,
                                                 dnnl_alg_kind_t alg, const tndnn_md *src,
                                                 const tndnn_md *weights, const tndnn_md *bias,
                                                 const tndnn_md *dst, const tndnn_window *w,
                                                 const_dnnl_primitive_attr_t attr)
{
    dnnl_convolution_desc_t d;
    const dnnl_status_t st = dnnl_dilated_convolution_forward_desc_init(
        &d, training ? dnnl_forward_training : dnnl_forward_inference, alg, src, weights, bias, dst,
        w->stride, w->dilate, w->pad_left, w->pad_right);

    return st ? st : dnnl_primitive_desc_create(pd, &d, attr, e, NULL);
}

static inline dnnl_status_t tndnn_pd_convolution_data(dnnl_primitive_desc_t *pd, dnnl_engine_t e,
                                                      dnnl_alg_kind_t alg, const tndnn_md *dx,
                                                      const tndnn_md *weights, const tndnn_md *dy,
                                                      const tndnn_window *w, const_dnnl_primitive_attr_t attr,
                                                      const_dnnl_primitive_desc_t forward)
{
    dnnl_convolution_desc_t d;
    const dnnl_status_t st = dnnl_dilated_convolution_backward_data_desc_init(
        &d, alg, dx, weights, dy, w->stride, w->dilate, w->pad_left, w->pad_right);

    return st ? st : dnnl_primitive_desc_create(pd, &d, attr, e, forward);
}

static inline dnnl_status_t tndnn_pd_convolution_weights(dnnl_primitive_desc_t *pd, dnnl_engine_t e,
                                                         dnnl_alg_kind_t alg, const tndnn_md *x,
                                                         const tndnn_md *dw, const tndnn_md *db,
                                                         const tndnn_md *dy, const tndnn_window *w,
                                                         const_dnnl_primitive_attr_t attr,
                                                         const_dnnl_primitive_desc_t forward)
{
    dnnl_convolution_desc_t d;
    const dnnl_status_t st = dnnl_dilated_convolution_backward_weights_desc_init(
        &d, alg, x, dw, db, dy, w->stride, w->dilate, w->pad_left, w->pad_right);

    return st ? st : dnnl_primitive_desc_create(pd, &d, attr, e, forward);
}

static inline dnnl_status_t tndnn_pd_dense(dnnl_primitive_desc_t *pd, dnnl_engine_t e, int training,
                                           const tndnn_md *src, const tndnn_md *weights, const tndnn_md *bias,
                                           const tndnn_md *dst, const_dnnl_primitive_attr_t attr)
{
    dnnl_inner_product_desc_t d;
    const dnnl_status_t st = dnnl_inner_product_forward_desc_init(
        &d, training ? dnnl_forward_training : dnnl_forward_inference, src, weights, bias, dst);

    return st ? st : dnnl_primitive_desc_create(pd, &d, attr, e, NULL);
}

static inline dnnl_status_t tndnn_pd_dense_data(dnnl_primitive_desc_t *pd, dnnl_engine_t e,
                                                const tndnn_md *dx, const tndnn_md *weights,
                                                const tndnn_md *dy, const_dnnl_primitive_attr_t attr,
                                                const_dnnl_primitive_desc_t forward)
{
    dnnl_inner_product_desc_t d;
    const dnnl_status_t st = dnnl_inner_product_backward_data_desc_init(&d, dx, weights, dy);

    return st ? st : dnnl_primitive_desc_create(pd, &d, attr, e, forward);
}

static inline dnnl_status_t tndnn_pd_dense_weights(dnnl_primitive_desc_t *pd, dnnl_engine_t e,
                                                   const tndnn_md *x, const tndnn_md *dw, const tndnn_md *db,
                                                   const tndnn_md *dy, const_dnnl_primitive_attr_t attr,
                                                   const_dnnl_primitive_desc_t forward)
{
    dnnl_inner_product_desc_t d;
    const dnnl_status_t st = dnnl_inner_product_backward_weights_desc_init(&d, x, dw, db, dy);

    return st ? st : dnnl_primitive_desc_create(pd, &d, attr, e, forward);
}

static inline dnnl_status_t tndnn_pd_pooling(dnnl_primitive_desc_t *pd, dnnl_engine_t e, int training,
                                             dnnl_alg_kind_t alg, const tndnn_md *src, const tndnn_md *dst,
                                             const tndnn_window *w, const_dnnl_primitive_attr_t attr)
{
    dnnl_pooling_v2_desc_t d;
    const dnnl_status_t st = dnnl_pooling_v2_forward_desc_init(
        &d, training ? dnnl_forward_training : dnnl_forward_inference, alg, src, dst, w->stride, w->kernel,
        w->dilate, w->pad_left, w->pad_right);

    return st ? st : dnnl_primitive_desc_create(pd, &d, attr, e, NULL);
}

static inline dnnl_status_t tndnn_pd_pooling_back(dnnl_primitive_desc_t *pd, dnnl_engine_t e,
                                                  dnnl_alg_kind_t alg, const tndnn_md *dx, const tndnn_md *dy,
                                                  const tndnn_window *w, const_dnnl_primitive_attr_t attr,
                                                  const_dnnl_primitive_desc_t forward)
{
    dnnl_pooling_v2_desc_t d;
    const dnnl_status_t st = dnnl_pooling_v2_backward_desc_init(&d, alg, dx, dy, w->stride, w->kernel,
                                                                w->dilate, w->pad_left, w->pad_right);

    return st ? st : dnnl_primitive_desc_create(pd, &d, attr, e, forward);
}

/* flags: dnnl_normalization_flags_t */
/* With statistics that are given. */
static inline dnnl_status_t tndnn_pd_batch_norm(dnnl_primitive_desc_t *pd, dnnl_engine_t e,
                                                const tndnn_md *data, double eps, bool scaled,
                                                const_dnnl_primitive_attr_t attr)
{
    const unsigned flags =
        (unsigned)dnnl_use_global_stats | (unsigned)dnnl_use_shift | (scaled ? (unsigned)dnnl_use_scale : 0u);
    dnnl_batch_normalization_desc_t d;
    const dnnl_status_t st =
        dnnl_batch_normalization_forward_desc_init(&d, dnnl_forward_inference, data, (float)eps, flags);

    return st ? st : dnnl_primitive_desc_create(pd, &d, attr, e, NULL);
}

static inline dnnl_status_t tndnn_pd_reorder(dnnl_primitive_desc_t *pd, dnnl_engine_t e, const tndnn_md *from,
                                             const tndnn_md *to, const_dnnl_primitive_attr_t attr)
{
    return dnnl_reorder_primitive_desc_create(pd, from, e, to, e, attr);
}

/* dst NULL: the library's choice */
static inline dnnl_status_t tndnn_pd_concat(dnnl_primitive_desc_t *pd, dnnl_engine_t e, const tndnn_md *dst,
                                            int count, int axis, const tndnn_md *src,
                                            const_dnnl_primitive_attr_t attr)
{
    return dnnl_concat_primitive_desc_create(pd, dst, count, axis, src, attr, e);
}

/* The sum of two tensors; it may lie where the first is. */
static inline dnnl_status_t tndnn_pd_add(dnnl_primitive_desc_t *pd, dnnl_engine_t e, const tndnn_md *md,
                                         const_dnnl_primitive_attr_t attr)
{
    const tndnn_md src[] = {*md, *md};

    return dnnl_sum_primitive_desc_create(pd, md, 2, (const float[]){1, 1}, src, attr, e);
}

static inline dnnl_status_t tndnn_post_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t alg, double alpha,
                                               double beta)
{
    return dnnl_post_ops_append_eltwise(ops, 1.0f, alg, (float)alpha, (float)beta);
}

#endif
