/*
 * Sparse operands. A problem's inputs are dense numbers, zeros where nothing is stored: which places those
 * are follows from the place alone. Here they become values and indices, each in a block of its own with
 * guards, and what a kernel stored becomes dense numbers again, once its indices were found to be such as
 * kernels may trust.
 */
#include <string.h>

#include "generate.h"
#include "space.h"

static uint32_t aux_count(int32_t storage)
{
    return storage == TN_STORAGE_CSR ? 2 : storage == TN_STORAGE_ROW_SPARSE ? 1 : 0;
}

/* Elements that are stored, or not, together: one; a row. */
static int64_t group_of(int32_t storage, const tn_shape *s)
{
    int64_t count = 1;

    for (int32_t d = 1; storage == TN_STORAGE_ROW_SPARSE && d < s->ndim; d++)
        count *= s->dim[d];
    return count;
}

static bool is_stored(int64_t group)
{
    return chk_mix((uint64_t)group * 2 + 1) % 3 != 0;
}

bool chk_sparse_fits(int32_t storage, const tn_shape *s)
{
    return storage == TN_STORAGE_DENSE ||
           (tn_shape_known(s) && (storage == TN_STORAGE_CSR ? s->ndim == 2 : s->ndim >= 1));
}

void chk_sparse_zero(int32_t storage, const tn_shape *s, int32_t dtype, void *dense)
{
    const int64_t count = tn_shape_count(s), group = group_of(storage, s);

    for (int64_t i = 0; storage != TN_STORAGE_DENSE && i < count; i++)
        if (!is_stored(i / group))
            chk_set(dense, dtype, i, 0);
}

/* ---- making ------------------------------------------------------------------------------------------ */

static int64_t stored_count(int32_t storage, const tn_shape *s)
{
    const int64_t group = group_of(storage, s), groups = group ? tn_shape_count(s) / group : 0;
    int64_t stored = 0;

    for (int64_t g = 0; g < groups; g++)
        stored += is_stored(g);
    return stored;
}

static void aux_make(chk_node *n, chk_operand *o, uint32_t index, int64_t count)
{
    const uint64_t bytes = (uint64_t)count * sizeof(int64_t);

    o->aux_shape[index] = count;
    o->aux_stride = 1;
    o->aux[index] = (tn_tensor){.ndim = 1,
                                .dtype = TN_I64,
                                .shape = &o->aux_shape[index],
                                .stride = &o->aux_stride,
                                .bytes = bytes,
                                .memory = TN_MEMORY_HOST,
                                .version = 1};
    o->t.aux[index] = &o->aux[index];
    if (n->form.metadata)
        return;
    chk_space_host.ops->make(n, bytes, 64, 0, (n->form.guard & ~CHK_READ_ONLY) | CHK_BLOCK_SHARED,
                             &o->aux_block[index]);
    o->aux[index].data = o->aux_block[index].data;
    if (o->aux_block[index].buffer)
        chk_buffer_owner(o->aux_block[index].buffer, "indices of an operand", "", n->p->text);
}

void chk_sparse_make(chk_node *n, chk_operand *o, const tn_shape *s, int64_t stored)
{
    const int32_t storage = o->t.storage;
    const uint32_t last = aux_count(storage) - 1;

    if (n->form.metadata)
        stored = 0;
    else if (stored < 0)
        stored = stored_count(storage, s);
    if (last)
        aux_make(n, o, 0, s->dim[0] + 1);
    aux_make(n, o, last, stored);
    o->t.bytes = (uint64_t)(stored * group_of(storage, s)) * tn_dtype_bytes(o->t.dtype);
    if (n->form.metadata)
        return;
    chk_space_host.ops->make(n, o->t.bytes, 64, 0, (n->form.guard & ~CHK_READ_ONLY) | CHK_BLOCK_SHARED,
                             &o->block); /* perhaps on one of several threads */
    o->t.data = o->block.data;
}

void chk_sparse_drop(chk_operand *o)
{
    for (uint32_t k = 0; k < 2; k++)
        chk_block_drop(&o->aux_block[k]);
    o->t.aux[0] = o->t.aux[1] = NULL;
}

/* ---- moving ------------------------------------------------------------------------------------------ */

static int64_t *indices_of(const chk_operand *o, uint32_t index)
{
    return o->aux_block[index].memory;
}

static void from_dense(const chk_operand *o, const tn_shape *s, const char *dense)
{
    const uint64_t size = tn_dtype_bytes(o->t.dtype);
    const int64_t group = group_of(o->t.storage, s), groups = group ? tn_shape_count(s) / group : 0;
    const bool csr = o->t.storage == TN_STORAGE_CSR;
    int64_t at = 0;

    for (int64_t r = 0; csr && r <= s->dim[0]; r++)
        indices_of(o, 0)[r] = 0;
    for (int64_t g = 0; g < groups; g++) {
        if (!is_stored(g))
            continue;
        memcpy((char *)o->block.memory + (uint64_t)(at * group) * size, dense + (uint64_t)(g * group) * size,
               (size_t)((uint64_t)group * size));
        indices_of(o, csr)[at++] = csr ? g % s->dim[1] : g;
        if (csr)
            indices_of(o, 0)[g / s->dim[1] + 1] = at;
    }
    for (int64_t r = 1; csr && r <= s->dim[0]; r++) /* rows without elements */
        if (indices_of(o, 0)[r] < indices_of(o, 0)[r - 1])
            indices_of(o, 0)[r] = indices_of(o, 0)[r - 1];
}

static void to_dense(const chk_operand *o, const tn_shape *s, char *dense)
{
    const uint64_t size = tn_dtype_bytes(o->t.dtype);
    const bool csr = o->t.storage == TN_STORAGE_CSR;
    const int64_t group = group_of(o->t.storage, s), rows = csr ? s->dim[0] : 1;

    memset(dense, 0, (size_t)((uint64_t)tn_shape_count(s) * size));
    for (int64_t r = 0; r < rows; r++) {
        const int64_t first = csr ? indices_of(o, 0)[r] : 0;
        const int64_t end = csr ? indices_of(o, 0)[r + 1] : o->aux_shape[0];

        for (int64_t k = first; k < end; k++) {
            const int64_t g = indices_of(o, csr)[k] + (csr ? r * s->dim[1] : 0);

            memcpy(dense + (uint64_t)(g * group) * size,
                   (const char *)o->block.memory + (uint64_t)(k * group) * size,
                   (size_t)((uint64_t)group * size));
        }
    }
}

void chk_sparse_move(const chk_operand *o, void *dense, bool into)
{
    tn_shape s = {.ndim = o->t.ndim};

    memcpy(s.dim, o->shape, sizeof s.dim);
    if (into)
        from_dense(o, &s, dense);
    else
        to_dense(o, &s, dense);
}

/* ---- what a kernel stored ------------------------------------------------------------------------------ */

static bool rows_good(const chk_operand *o)
{
    int64_t before = -1;

    for (int64_t k = 0; k < o->aux_shape[0]; before = indices_of(o, 0)[k++])
        if (indices_of(o, 0)[k] <= before || indices_of(o, 0)[k] >= o->shape[0])
            return false;
    return true;
}

static bool csr_good(const chk_operand *o)
{
    const int64_t *starts = indices_of(o, 0);

    for (int64_t r = 0; r < o->shape[0]; r++)
        if (starts[0] || starts[r + 1] < starts[r] || starts[r + 1] > o->aux_shape[1])
            return false;
    for (int64_t k = 0; k < o->aux_shape[1]; k++)
        if (indices_of(o, 1)[k] < 0 || indices_of(o, 1)[k] >= o->shape[1])
            return false;
    return starts[o->shape[0]] == o->aux_shape[1];
}

void chk_sparse_check(chk_node *n, const chk_operand *o, const char *name)
{
    if (!o->t.aux[0])
        chk_fail(n->lab->env, "K-resize", "run never says how many elements output %s stores (%s)", name,
                 n->p->text);
    if (!(o->t.storage == TN_STORAGE_CSR ? csr_good(o) : rows_good(o)))
        chk_fail(n->lab->env, "K-sparse",
                 "the indices of output %s are out of order or range, or not as many as it said (%s)", name,
                 n->p->text);
}
