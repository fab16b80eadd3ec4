/*
 * The backward of a program's function: an operation on a callback thread, which ends later.
 *
 * It holds the variables of all that it reads and writes. So the program gets other arrays over the same
 * memory, with variables of their own: work that it queues over them is not behind work that was queued after
 * this backward, and waits for it. A second operation ends it, once nothing reads these arrays any more and
 * the gradients are there: they are moved to where they belong.
 */
#include "autograd/function.h"

#include <string.h>

/* ---- making one ---------------------------------------------------------------------------------------- */

static void arrays_release(tni_array *const *arrays, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        tni_array_release(arrays[i]);
}

void tni_function_backward_destroy(tni_function_backward *b)
{
    if (!b)
        return;
    arrays_release(b->grads, b->out_count + b->saved_count + b->in_count);
    arrays_release(b->local, b->out_count + b->saved_count + b->in_count);
    tni_attrs_release(b->attrs);
    tni_function_release(b->function);
    tni_mutex_fini(&b->lock);
    tni_free(b);
}

/* One block: grads, saved, targets; local, made; variables; specs; modes. */
static tni_function_backward *backward_alloc(uint32_t in, uint32_t out, uint32_t saved)
{
    const uint64_t arrays = (uint64_t)in + out + saved;
    tni_function_backward *b =
        tni_zalloc(sizeof *b + 2 * arrays * sizeof(tni_array *) + (2 * arrays + 1) * sizeof(tni_var *) +
                   out * sizeof(tni_function_spec) + 2ull * in);

    if (!b || tni_mutex_init(&b->lock)) {
        tni_free(b);
        return NULL;
    }
    b->self = b;
    b->in_count = in;
    b->out_count = out;
    b->saved_count = saved;
    b->out = (tni_function_spec *)(b + 1);
    b->grads = (tni_array **)(b->out + out);
    b->saved = b->grads + out;
    b->targets = b->saved + saved;
    b->local = b->targets + in;
    b->made = b->local + out + saved;
    b->vars = (tni_var **)(b->made + in);
    b->modes = (uint8_t *)(b->vars + 2 * arrays + 1);
    b->wanted = b->modes + in;
    return b;
}

tn_status tni_function_backward_create(tni_context *c, const tni_tape_call *n, bool predict,
                                       tni_function_backward **out)
{
    const tni_function_record *k = n->function;
    tni_function_backward *b;

    if (!k->function->backward)
        return tni_error(TN_E_UNSUPPORTED, "function %.80s has no backward", k->function->name);
    if (!(b = backward_alloc(n->in_count, n->out_count, k->saved_count)))
        return TN_E_NOMEM;
    b->ctx = c;
    tni_function_retain(b->function = k->function);
    b->attrs = k->attrs ? tni_attrs_retain(k->attrs) : NULL;
    b->training = k->training && !predict;
    b->np_shape = k->np_shape;
    memcpy(b->out, k->out, k->out_count * sizeof *b->out);
    for (uint32_t i = 0; i < k->saved_count; i++)
        tni_array_retain(b->saved[i] = k->saved[i]);
    *out = b;
    return TN_OK;
}

/* ---- its end ------------------------------------------------------------------------------------------- */

/* The first failure counts. */
static void failure_keep(tni_function_backward *b, tn_status st, const tn_err *err)
{
    tni_mutex_lock(&b->lock);
    if (st && !b->status) {
        b->status = st;
        if (err)
            b->err = *err;
    }
    tni_mutex_unlock(&b->lock);
}

static void own_failure_keep(tni_function_backward *b, tn_status st)
{
    tn_err err;

    tni_error_get(&err);
    failure_keep(b, st, &err);
}

/* One of the operations that it waits for is done; the last one ends it. */
static void part_done(tni_function_backward *b, tn_status st)
{
    failure_keep(b, st, NULL);
    if (atomic_fetch_sub(&b->left, 1) == 1)
        tni_engine_complete(b->op, b->status, b->err.code == b->status ? &b->err : NULL);
}

/* It was handed back: the end of this backward holds its variable, and nothing can have spoiled it. */
static bool is_near(const tni_function_backward *b, const tni_array *a)
{
    for (uint32_t i = 0; i < b->out_count + b->saved_count; i++)
        if (b->local[i] && b->local[i]->storage == a->storage)
            return true;
    return false;
}

/* What the program's own work failed with. */
static tn_status made_wait(const tni_function_backward *b)
{
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < b->in_count && !st; i++)
        if (b->made[i] && !is_near(b, b->made[i]))
            st = tni_engine_wait_read(b->ctx->engine, tni_array_var(b->made[i]), 0);
    return st;
}

/* Those of the arrays that the program gave, behind those of the task. */
static tni_var **made_vars(const tni_function_backward *b)
{
    return b->vars + b->in_count + b->out_count + b->saved_count;
}

typedef struct moving { /* to one device with streams */
    tni_function_backward *b;
    tni_moves *moves;
} moving;

/* The variables of the targets are this backward's, so they are not named. */
static tn_status moving_run(void *payload, tni_run *run)
{
    const moving *m = payload;
    const tn_status st = tni_moves_reserve(m->moves, run);

    return st ? st : tni_moves_run(m->moves, run);
}

static void moving_done(void *payload, tni_engine *engine, tn_status status)
{
    const moving *m = payload;

    (void)engine;
    tni_moves_destroy(m->moves);
    part_done(m->b, status);
}

/* [takes] `m`. In the order of the device's stream. */
static tn_status moving_push(tni_function_backward *b, tni_device *d, tni_moves *m)
{
    const moving payload = {b, m};
    const tni_task task = {.run = moving_run,
                           .done = moving_done,
                           .payload = &payload,
                           .payload_bytes = sizeof payload,
                           .reads = made_vars(b),
                           .read_count = b->made_count,
                           .device = d,
                           .name = "gradients of a function"};
    tn_status st;

    atomic_fetch_add(&b->left, 1);
    if ((st = tni_engine_push(b->ctx->engine, &task))) {
        tni_moves_destroy(m);
        atomic_fetch_sub(&b->left, 1);
    }
    return st;
}

/* All gradients of one device, from input `first` on, in order. */
static tn_status device_give(tni_function_backward *b, uint32_t first, tni_run *run)
{
    tni_device *d = b->targets[first]->storage->device;
    tni_moves *m = NULL;
    tn_status st = TN_OK;

    for (uint32_t i = first; i < b->in_count && !st; i++)
        if (b->targets[i] && b->targets[i]->storage->device == d)
            st = tni_moves_add(&m, b->in_count, b->made[i], b->targets[i], b->modes[i] == TN_MODE_ADD);
    if (!st && !d->host)
        return moving_push(b, d, m);
    if (!st && !(st = tni_moves_reserve(m, run)))
        st = tni_moves_run(m, run);
    tni_moves_destroy(m);
    return st;
}

static bool device_first(const tni_function_backward *b, uint32_t input)
{
    if (!b->targets[input])
        return false;
    for (uint32_t i = 0; i < input; i++)
        if (b->targets[i] && b->targets[i]->storage->device == b->targets[input]->storage->device)
            return false;
    return true;
}

static tn_status end_run(void *payload, tni_run *run)
{
    tni_function_backward *b = *(tni_function_backward **)payload;
    tn_status st;

    if (b->status) /* of the program's part: no gradient was made */
        return TN_OK;
    st = made_wait(b);
    for (uint32_t i = 0; i < b->in_count && !st; i++)
        if (device_first(b, i))
            st = device_give(b, i, run);
    own_failure_keep(b, st);
    return TN_OK;
}

static void end_done(void *payload, tni_engine *engine, tn_status status)
{
    (void)engine;
    part_done(*(tni_function_backward **)payload, status);
}

static tn_status end_push(tni_function_backward *b)
{
    tni_var **made = made_vars(b), **local;
    tni_task task = {.run = end_run,
                     .done = end_done,
                     .payload = &b->self,
                     .payload_bytes = sizeof b->self,
                     .flags = TNI_TASK_HOST_CALL | TNI_TASK_ALWAYS,
                     .reads = made,
                     .name = b->function->name};

    for (uint32_t i = 0; i < b->in_count; i++)
        if (b->made[i])
            made[b->made_count++] = tni_array_var(b->made[i]);
    task.read_count = b->made_count;
    task.writes = local = made + task.read_count;
    for (uint32_t i = 0; i < b->out_count + b->saved_count; i++)
        if (b->local[i])
            local[task.write_count++] = tni_array_var(b->local[i]);
    return tni_engine_push(b->ctx->engine, &task);
}

/* ---- the program's part -------------------------------------------------------------------------------- */

static void storage_give_back(void *arg)
{
    tni_storage_release(arg);
}

/* The same memory with a variable of its own. */
static tn_status local_make(tni_array *a, tni_array **out)
{
    tni_storage *s = a->storage;
    const uint64_t offset = a->offset * tn_dtype_bytes(a->dtype);
    tn_status st;

    if ((st = tni_storage_touch(s, NULL)) ||
        (st = tni_array_wrap(s->space, s->device, tni_array_data(a), s->bytes - offset, a->dtype, a->ndim,
                             a->shape, a->stride, storage_give_back, s, out)))
        return st;
    tni_storage_retain(s);
    (*out)->storage->flags |= TNI_STORAGE_READ_ONLY;
    return TN_OK;
}

static tn_status zeros_make(const tni_function_backward *b, uint32_t output, tni_array **out)
{
    const tni_function_spec *k = &b->out[output];
    const tn_status st =
        tni_array_create(b->ctx->space, k->device, k->dtype, k->shape.ndim, k->shape.dim, "gradient", out);

    return st ? st : tni_array_fill(*out, 0.0);
}

static tn_status all_near(const tni_function_backward *b)
{
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < b->out_count && !st; i++)
        st = b->grads[i] ? local_make(b->grads[i], &b->local[i]) : zeros_make(b, i, &b->local[i]);
    for (uint32_t i = 0; i < b->saved_count && !st; i++)
        st = local_make(b->saved[i], &b->local[b->out_count + i]);
    return st;
}

static tn_status program_run(const tni_function_backward *b)
{
    tn_function_run run = {.struct_size = TN_SIZE(tn_function_run),
                           .in_count = b->in_count,
                           .out_count = b->out_count,
                           .saved_count = b->saved_count,
                           .ctx = b->ctx,
                           .arg = b->function->arg,
                           .attrs = b->attrs ? b->attrs->values : NULL,
                           .saved = b->local + b->out_count,
                           .wanted = b->wanted};
    tni_scope *scope = tni_scope_get();
    const tni_scope before = *scope;
    tn_status st;

    *scope = (tni_scope){.training = b->training, .np_shape = b->np_shape};
    tni_error_clear();
    st = b->function->backward(&run, b->local, b->made);
    *scope = before;
    return tni_function_status(b->function, "backward", st);
}

static tn_status made_check(const tni_function_backward *b, uint32_t i)
{
    const tni_array *want = b->targets[i];
    const char *const name = b->function->name;
    tni_array *a = b->made[i];
    tn_status st;

    if (!a)
        return tni_error(TN_E_ARG, "function %.80s: backward gave no gradient for input %u", name, i);
    if (a->storage->space != b->ctx->space)
        return tni_error(TN_E_ARG, "function %.80s: the gradient of input %u belongs to another context",
                         name, i);
    if (a->storage_type != TN_STORAGE_DENSE)
        return tni_error(TN_E_UNSUPPORTED, "function %.80s: the gradient of input %u is sparse", name, i);
    if ((st = tni_array_shape_wait(a)))
        return st;
    if (!tni_array_has_shape(a, want->ndim, want->shape))
        return tni_error(TN_E_SHAPE,
                         "function %.80s: the gradient of input %u has another shape than the "
                         "input",
                         name, i);
    if (a->dtype != want->dtype)
        return tni_error(TN_E_DTYPE, "function %.80s: the gradient of input %u is %s, the input %s", name, i,
                         tni_dtype_name(a->dtype), tni_dtype_name(want->dtype));
    if (a->storage->device != want->storage->device)
        return tni_error(TN_E_DEVICE, "function %.80s: the gradient of input %u is on another device", name,
                         i);
    return TN_OK;
}

/* What nobody asked for goes, and what does not fit, too. */
static tn_status all_check(const tni_function_backward *b)
{
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < b->in_count; i++) {
        if (b->targets[i] && !st)
            st = made_check(b, i);
        if (!st && b->targets[i])
            continue;
        tni_array_release(b->made[i]);
        b->made[i] = NULL;
    }
    return st;
}

/* It ends when nothing reads the memory any more, also after a failure. */
static tn_status function_run(void *payload, tni_run *run)
{
    tni_function_backward *b = *(tni_function_backward **)payload;
    tn_status st;

    b->op = run->op;
    atomic_store(&b->left, 1);
    if (!(st = all_near(b)) && !(st = program_run(b)))
        st = all_check(b);
    else
        for (uint32_t i = 0; i < b->in_count; i++) {
            tni_array_release(b->made[i]);
            b->made[i] = NULL;
        }
    own_failure_keep(b, st);
    if (!(st = end_push(b)))
        return TN_PENDING;
    for (uint32_t i = 0; i < b->out_count + b->saved_count; i++)
        if (b->local[i])
            (void)tni_engine_wait_write(b->ctx->engine, tni_array_var(b->local[i]), 0);
    return tni_error(st, "function %.80s: its backward could not end", b->function->name);
}

static void function_done(void *payload, tni_engine *engine, tn_status status)
{
    (void)engine;
    (void)status;
    tni_function_backward_destroy(*(tni_function_backward **)payload);
}

/* All that is written is written whole, so an old failure of it does not matter. */
static bool whole(const tni_function_backward *b)
{
    for (uint32_t i = 0; i < b->in_count; i++)
        if (b->targets[i] &&
            (b->modes[i] != TN_MODE_WRITE || tni_array_bytes(b->targets[i]) != b->targets[i]->storage->bytes))
            return false;
    return true;
}

void tni_function_backward_task(tni_function_backward *b)
{
    tni_task *t = &b->task;
    tni_var **at = b->vars;

    *t = (tni_task){.run = function_run,
                    .done = function_done,
                    .payload = &b->self,
                    .payload_bytes = sizeof b->self,
                    .flags = TNI_TASK_HOST_CALL | TNI_TASK_ASYNC | (whole(b) ? TNI_TASK_CLEARS : 0u),
                    .reads = at,
                    .name = b->function->name};
    for (uint32_t i = 0; i < b->out_count + b->saved_count; i++)
        if (b->grads[i]) /* `saved` is behind */
            *at++ = tni_array_var(b->grads[i]);
    t->read_count = (uint32_t)(at - b->vars);
    t->writes = at;
    for (uint32_t i = 0; i < b->in_count; i++)
        if (b->targets[i]) {
            b->wanted[i] = 1;
            *at++ = tni_array_var(b->targets[i]);
        }
    t->write_count = (uint32_t)(at - t->writes);
}
