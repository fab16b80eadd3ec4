/*
 * What a node-by-node pass made becomes the gradients: one operation for all leaves, so that lack of memory
 * changes all or none of them. Like a program, it fails as a whole if one of its inputs did.
 */
#include "autograd/walk.h"

typedef struct put {
    uint32_t count;
    tni_array **made, **grads; /* retained; made NULL: zeros */
    uint8_t *modes;
} put;

static void put_destroy(put *k)
{
    for (uint32_t i = 0; i < k->count; i++) {
        tni_array_release(k->made[i]);
        tni_array_release(k->grads[i]);
    }
    tni_free(k);
}

static void put_one(const put *k, uint32_t i)
{
    static const uint64_t zero[2];
    static const int64_t still[TN_NDIM_MAX];
    tn_tensor from, to;

    tni_array_tensor(k->grads[i], &to);
    if (k->made[i]) {
        tni_array_tensor(k->made[i], &from);
    } else { /* one zero, read again and again */
        from = to;
        from.data = (void *)(uintptr_t)zero;
        from.stride = still;
    }
    if (k->modes[i] == TN_MODE_ADD)
        tni_add_strided(&from, &to);
    else
        tni_copy_strided(&from, &to);
}

/* [worker] Memory first: then nothing can fail. */
static tn_status put_run(void *payload, tni_run *run)
{
    const put *k = *(put **)payload;
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < k->count && !st; i++)
        if (!(st = tni_storage_touch(k->grads[i]->storage, run->stream)) && k->made[i])
            st = tni_storage_touch(k->made[i]->storage, run->stream);
    for (uint32_t i = 0; i < k->count && !st; i++)
        put_one(k, i);
    return st;
}

static void put_done(void *payload, tni_engine *engine, tn_status status)
{
    (void)engine;
    (void)status;
    put_destroy(*(put **)payload);
}

static tn_status put_check(tni_array *made, const tni_array *grad)
{
    tn_status st;

    if (!tni_array_writable(grad))
        return tni_error(TN_E_STATE, "the gradient is memory that may only be read");
    if (!made)
        return TN_OK;
    if ((st = tni_array_shape_wait(made)))
        return st;
    if (made->dtype != grad->dtype || !tni_array_has_shape(grad, made->ndim, made->shape))
        return tni_error(TN_E_INTERNAL, "a gradient came out in another shape or dtype than its array");
    return TN_OK;
}

static tn_status put_create(uint32_t count, tni_array *const *made, tni_array *const *grads,
                            const uint8_t *modes, put **out)
{
    put *k = tni_zalloc(sizeof *k + count * (2 * sizeof(tni_array *) + sizeof *modes));
    tn_status st = TN_OK;

    if (!k)
        return TN_E_NOMEM;
    k->made = (tni_array **)(k + 1);
    k->grads = k->made + count;
    k->modes = (uint8_t *)(k->grads + count);
    for (uint32_t i = 0; i < count && !st; i++) {
        if (modes[i] == TN_MODE_NONE || (!made[i] && modes[i] == TN_MODE_ADD))
            continue;
        if ((st = put_check(made[i], grads[i])))
            break;
        if ((k->made[k->count] = made[i]) != NULL)
            tni_array_retain(made[i]);
        tni_array_retain(k->grads[k->count] = grads[i]);
        k->modes[k->count++] = modes[i];
    }
    if (st)
        put_destroy(k);
    else
        *out = k;
    return st;
}

tn_status tni_gradients_put(tni_context *c, uint32_t count, tni_array *const *made, tni_array *const *grads,
                            const uint8_t *modes)
{
    tni_task task = {
        .run = put_run, .done = put_done, .payload_bytes = sizeof(put *), .name = "gradients of a pass"};
    bool clears = true;
    tni_var **vars;
    put *k;
    tn_status st = put_create(count, made, grads, modes, &k);

    if (st)
        return st;
    if (!(vars = tni_calloc(2ull * k->count + 1, sizeof(*vars)))) {
        put_destroy(k);
        return TN_E_NOMEM;
    }
    task.payload = &k;
    task.reads = vars;
    task.writes = vars + k->count;
    task.write_count = k->count;
    for (uint32_t i = 0; i < k->count; i++) {
        vars[k->count + i] = tni_array_var(k->grads[i]);
        if (k->made[i])
            vars[task.read_count++] = tni_array_var(k->made[i]);
        clears &= k->modes[i] == TN_MODE_WRITE && tni_array_bytes(k->grads[i]) == k->grads[i]->storage->bytes;
    }
    task.device = k->count ? k->grads[0]->storage->device : NULL;
    task.flags = clears ? TNI_TASK_CLEARS : 0;
    st = k->count ? tni_engine_push(c->engine, &task) : TN_OK;
    if (st || !task.write_count)
        put_destroy(k);
    tni_free(vars);
    return st;
}
