/*
 * Which of several algorithms multiplies fastest, and what equal products were given before: in one process
 * they have one algorithm, and so the same bits. The arrays of a trial lie as the layouts say, one behind the
 * other; nothing is added to what is there, as nobody knows yet whether runs will.
 */
#include "lt_plan.h"
#include "measure.h"

#include <string.h>

typedef struct lt_trial {
    tncuda_lt *lt;
    tncuda_lt_handle handle;
    const tncuda_lt_taken *ways;
    uint64_t at[5], bytes; /* a, b, d, the bias, the workspace; how much they are so far */
} lt_trial;

double tncuda_lt_work(const tncuda_lt *lt)
{
    const tncuda_lt_side *a = &lt->form.side[0], *d = &lt->form.side[2];

    return (double)d->rows * (double)d->cols * (double)lt->form.batch *
           (double)(a->transposed ? a->rows : a->cols);
}

bool tncuda_lt_find_locked(const tncuda_lt *lt, tncuda_lt_taken *out)
{
    const struct tncuda_lt_library *l = lt->library;
    const uint64_t count = l->kept_count < TNCUDA_LT_KEPT ? l->kept_count : TNCUDA_LT_KEPT;

    for (uint64_t i = 0; i < count; i++)
        if (!memcmp(&l->kept[i].form, &lt->form, sizeof lt->form)) {
            *out = l->kept[i].taken;
            out->measured = TNCUDA_LT_BEFORE;
            return true;
        }
    return false;
}

void tncuda_lt_keep_locked(const tncuda_lt *lt, const tncuda_lt_taken *taken)
{
    struct tncuda_lt_library *l = lt->library;

    if (l->kept || (l->kept = tncuda_new(lt->plugin, TNCUDA_LT_KEPT * sizeof *l->kept)))
        l->kept[l->kept_count++ % TNCUDA_LT_KEPT] = (tncuda_lt_kept){lt->form, *taken};
}

/* ---- trials -------------------------------------------------------------------------------------------- */

/* Room for `count` elements behind what is there; false: that is more than `most`. */
static bool room(lt_trial *t, int i, uint64_t count, uint64_t each, uint64_t most)
{
    t->at[i] = t->bytes;
    if (count > (most - t->bytes) / each)
        return false;
    t->bytes += tncuda_aligned(count * each);
    return t->bytes <= most;
}

/* From the first element of all batches to behind the last one; 0: batches go backwards, or too many. */
static uint64_t elements(const tncuda_lt_side *s, int64_t batch)
{
    uint64_t columns, batches, all;

    if (s->batch < 0 || __builtin_mul_overflow((uint64_t)s->cols - 1, (uint64_t)s->ld, &columns) ||
        __builtin_mul_overflow((uint64_t)batch - 1, (uint64_t)s->batch, &batches) ||
        __builtin_add_overflow(columns, batches, &all) ||
        __builtin_add_overflow(all, (uint64_t)s->rows, &all))
        return 0;
    return all;
}

static bool arrays(lt_trial *t, uint64_t workspace_bytes)
{
    const tncuda_lt_form *f = &t->lt->form;
    const uint64_t each = tn_dtype_bytes(f->dtype), most = t->lt->library->limits[f->device].trial;
    const int64_t outputs = t->lt->sums ? f->side[2].cols : f->side[2].rows;

    for (int i = 0; i < 3; i++) {
        const uint64_t count = elements(&f->side[i], f->batch);

        if (!count || !room(t, i, count, each, most))
            return false;
    }
    return room(t, 3, t->lt->biased ? (uint64_t)outputs : 0, each, most) &&
           room(t, 4, workspace_bytes, 1, most);
}

static bool run(void *state, uint32_t way, char *memory, tncuda_stream stream)
{
    const lt_trial *t = state;
    const int swapped = t->lt->swapped;
    const tncuda_lt_args args = {.a = memory + t->at[swapped],
                                 .b = memory + t->at[!swapped],
                                 .bias = memory + t->at[3],
                                 .d = memory + t->at[2],
                                 .room = t->ways[way].bytes ? memory + t->at[4] : NULL};

    return !tncuda_lt_multiply(t->lt, t->handle, &t->ways[way], &args, stream);
}

bool tncuda_lt_fastest_locked(tncuda_lt *lt, tncuda_lt_handle handle, uint32_t count,
                              const tncuda_lt_taken *ways, uint32_t *out)
{
    lt_trial state = {.lt = lt, .handle = handle, .ways = ways};
    tncuda_trial trial = {.driver = &lt->plugin->driver, .count = count, .state = &state, .run = run};
    uint64_t workspace_bytes = 0;

    for (uint32_t i = 0; i < count; i++)
        workspace_bytes = workspace_bytes < ways[i].bytes ? ways[i].bytes : workspace_bytes;
    if (!arrays(&state, workspace_bytes))
        return false;
    trial.bytes = state.bytes;
    *out = tncuda_fastest(&trial);
    return true;
}
