/*
 * The task of part.h.
 */
#include "part.h"

#include "base/base.h"

const char *const part_types[3] = {"threaded", "naive", "stepped"};

static tn_status part_run(void *payload, tni_run *run)
{
    part *p = *(part **)payload;

    if (p->log)
        p->log[(*p->logged)++] = p->number;
    for (uint32_t i = 0; i < p->release_count; i++)
        tni_engine_release_at(run, p->releases[i]);
    atomic_fetch_add(&p->entered, 1u);
    while (p->open && !atomic_load(p->open))
        tni_sleep_ns(20000);
    atomic_fetch_add(&p->ran, 1u);
    return p->fails ? tni_error(TN_E_SHAPE, "planted") : TN_OK;
}

static void part_done(void *payload, tni_engine *engine, tn_status status)
{
    part *p = *(part **)payload;

    (void)engine;
    p->status = status;
    atomic_fetch_add(&p->done, 1u);
}

tni_task part_task(part **p, tni_var *const *reads, uint32_t read_count, tni_var *const *writes,
                   uint32_t write_count)
{
    return (tni_task){.run = part_run,
                      .done = part_done,
                      .payload = p,
                      .payload_bytes = sizeof *p,
                      .reads = reads,
                      .read_count = read_count,
                      .writes = writes,
                      .write_count = write_count,
                      .name = "part"};
}

void part_until(atomic_uint *value, unsigned wanted)
{
    while (atomic_load(value) < wanted)
        tni_sleep_ns(20000);
}

void part_vars_fini(tni_var *vars, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        tni_var_fini(&vars[i]);
}
