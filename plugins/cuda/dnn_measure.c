/*
 * Which of several execution plans is the fastest: each runs on the arrays of the form, one behind the other
 * in the memory of the trial. All plans that are tried give sums of the same precision; which one is taken is
 * a matter of time, and so may be the last bits.
 */
#include "dnn.h"
#include "measure.h"

_Static_assert(TNCUDA_DNN_WAYS <= TNCUDA_WAYS, "all of them are measured");

typedef struct dnn_trial {
    const tncuda_dnn_plan *plan;
    const tncuda_dnn_descriptor *plans;
    uint64_t at[6], bytes; /* the arrays; how much they are so far */
} dnn_trial;

/* Room for `count` elements behind what is there: its place in the memory to come. */
static uint64_t room(dnn_trial *t, int64_t count, uint64_t each)
{
    const uint64_t at = t->bytes;

    t->bytes += tncuda_aligned((uint64_t)count * each);
    return at;
}

static int64_t volume(const int64_t *extent)
{
    return extent[0] * extent[1] * extent[2];
}

static void arrays(const tncuda_dnn_form *f, uint64_t workspace_bytes, dnn_trial *t)
{
    const uint64_t each = tn_dtype_bytes(f->dtype);
    const int64_t count = f->batch * f->filters * volume(f->out);

    t->at[0] = room(t, f->batch * f->channels * volume(f->in), each);
    t->at[1] = room(t, f->filters * (f->channels / f->groups) * volume(f->kernel), each);
    t->at[2] = room(t, count, each);
    t->at[3] = room(t, f->after & TNCUDA_DNN_ADDEND ? count : 0, each);
    t->at[4] = room(t, f->after & TNCUDA_DNN_BIAS ? f->filters : 0, each);
    t->at[5] = room(t, (int64_t)workspace_bytes, 1);
}

static bool bind(void *state, tncuda_stream stream)
{
    const tncuda_dnn_plan *p = ((const dnn_trial *)state)->plan;

    return !p->dnn->stream(p->device->handle, stream);
}

static bool run(void *state, uint32_t way, char *memory, tncuda_stream stream)
{
    const dnn_trial *t = state;
    const tncuda_dnn_args args = {.x = memory + t->at[0],
                                  .w = memory + t->at[1],
                                  .y = memory + t->at[2],
                                  .addend = memory + t->at[3],
                                  .bias = memory + t->at[4],
                                  .workspace = memory + t->at[5]};
    const char *call;

    (void)stream; /* the handle has it */
    return !tncuda_dnn_execute(t->plan, t->plans[way], &args, &call);
}

uint32_t tncuda_dnn_fastest_locked(const tncuda_dnn_plan *p, uint32_t count,
                                   const tncuda_dnn_descriptor *plans, uint64_t workspace_bytes)
{
    dnn_trial state = {.plan = p, .plans = plans};
    tncuda_trial trial = {
        .driver = &p->plugin->driver, .count = count, .state = &state, .bind = bind, .run = run};

    arrays(&p->form, workspace_bytes, &state);
    trial.bytes = state.bytes;
    return tncuda_fastest(&trial);
}
