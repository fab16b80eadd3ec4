/*
 * Operands: where their elements lie, and how these come there and back.
 */
#include <string.h>

#include "lab.h"

/* Elements from the first to the last, both included. */
int64_t chk_operand_extent(const chk_operand *o)
{
    int64_t last = 0;

    for (int32_t d = 0; d < o->t.ndim; d++) {
        if (o->shape[d] == 0)
            return 0;
        last += (o->shape[d] - 1) * o->stride[d];
    }
    return last + 1;
}

void chk_operand_strides(chk_operand *o, uint32_t layout)
{
    int64_t step = layout == CHK_LAYOUT_GAPS ? 2 : 1;

    for (int32_t d = 0; d < o->t.ndim; d++) {
        const int32_t k = layout == CHK_LAYOUT_REVERSED ? d : o->t.ndim - 1 - d;

        o->stride[k] = step;
        step *= o->shape[k] > 0 ? o->shape[k] : 1;
    }
}

/* Where element `index` (row-major) lies. */
int64_t chk_operand_offset(const chk_operand *o, int64_t index)
{
    int64_t offset = 0;

    for (int32_t d = o->t.ndim; d-- > 0;) {
        offset += index % o->shape[d] * o->stride[d];
        index /= o->shape[d];
    }
    return offset;
}

int64_t chk_operand_elements(const chk_operand *o)
{
    int64_t count = 1;

    for (int32_t d = 0; d < o->t.ndim; d++)
        count *= o->shape[d] > 0 ? o->shape[d] : 0;
    return count;
}

static bool is_dense(const chk_operand *o)
{
    int64_t step = 1;

    for (int32_t d = o->t.ndim; d-- > 0;) {
        if (o->shape[d] != 1 && o->stride[d] != step)
            return false;
        step *= o->shape[d];
    }
    return true;
}

void chk_operand_move(const chk_operand *o, void *dense, bool into)
{
    const uint64_t size = tn_dtype_bytes(o->t.dtype);
    const int64_t count = chk_operand_elements(o);

    if (o->t.storage != TN_STORAGE_DENSE) {
        chk_sparse_move(o, dense, into);
        return;
    }
    if (is_dense(o)) {
        memcpy(into ? o->block.memory : dense, into ? dense : o->block.memory,
               (size_t)tn_dtype_size(o->t.dtype, (uint64_t)count));
        if (tn_dtype_bits(o->t.dtype) < 8 && count & 1) /* the half that is left over says nothing */
            tn_packed_set(into ? o->block.memory : dense, count, into ? 9 : 0);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        char *at = (char *)o->block.memory + (uint64_t)chk_operand_offset(o, i) * size;
        char *plain = (char *)dense + (uint64_t)i * size;

        memcpy(into ? at : plain, into ? plain : at, (size_t)size);
    }
}
