/*
 * Sums of floats on the servers, and the shadow of what was applied to them: it is in no message and in no
 * snapshot but the one that it was written with, so it says what a value has to be.
 */
#include <string.h>

#include "kv/sim/internal.h"

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t hash(const sim *s, uint32_t worker, uint32_t key, uint32_t round, uint32_t i)
{
    return mix(s->o.seed ^ ((uint64_t)worker << 48 | (uint64_t)key << 40 | (uint64_t)round << 20 | i));
}

bool sim_row_named(const sim *s, uint32_t worker, uint32_t key, uint32_t round, uint32_t i)
{
    return hash(s, worker, key, round, i) % 3 == 0;
}

/* sync: numbers whose sum depends on the order; async: whole ones, whose sum does not. */
float sim_gradient(const sim *s, uint32_t worker, uint32_t key, uint32_t round, uint32_t i)
{
    const uint64_t z = hash(s, worker, key, round, i);

    if (s->rows[key] && z % 3)
        return 0;
    return s->mode == SIM_ASYNC ? (float)(int)(z % 17) - 8.0f : (float)(z % 1000003u) / 997.0f - 500.0f;
}

float sim_first_value(uint32_t key, uint32_t i)
{
    return (float)(key * 100 + i % 7);
}

uint32_t sim_parts(const sim *s, uint32_t key)
{
    const tni_kv_plan_options o = {s->settings.servers, s->settings.bound, s->settings.part_bytes};
    tni_kv_plan p;

    return tni_kv_plan_make(&o, key, s->elements[key], sizeof(float), &p) ? 0 : p.parts;
}

sim_shadow *sim_shadow_of(sim *s, uint32_t key, uint32_t part, uint32_t worker)
{
    return &s->shadows[((size_t)key * SIM_PARTS_MAX + part) * s->settings.workers +
                       (s->mode == SIM_ASYNC ? worker : 0)];
}

/* Scale of a step: exact in binary. */
static void step(float *value, const float *sum, uint64_t count, bool async)
{
    for (uint64_t i = 0; i < count; i++)
        value[i] += async ? sum[i] : 0.25f * sum[i];
}

void sim_reference(sim *s, uint32_t key, uint32_t round)
{
    const uint32_t n = s->elements[key];
    float sum[SIM_ELEMENTS_MOST];

    for (uint32_t i = 0; i < n; i++)
        s->reference[key][i] = sim_first_value(key, i);
    for (uint32_t r = 1; r <= round; r++) {
        bool first = true;

        if (s->broke && r == s->break_step && s->voided[key])
            continue;
        for (uint32_t w = 0; w < s->settings.workers; w++) {
            if (s->last_round[w] < r)
                continue;
            for (uint32_t i = 0; i < n; i++) {
                const float g = sim_gradient(s, w, key, r, i);

                sum[i] = first ? g : sum[i] + g;
            }
            first = false;
        }
        if (!first)
            step(s->reference[key], sum, n, false);
    }
}

static uint64_t update_bytes(void *arg, uint8_t dtype, uint8_t what, uint64_t bytes)
{
    (void)arg;
    return dtype == 0 && (what == 0 || what == TNI_KV_ROWS) ? bytes : 0;
}

static tn_status rows_add(const tni_kv_header *h, bool first, const void *base, void *sum,
                          const void *payload, uint64_t bytes)
{
    tni_kv_row_set r;
    tn_status st = tni_kv_rows_read(payload, h->bytes, true, bytes, sizeof(float), &r);

    if (st)
        return st;
    if (first)
        memset(sum, 0, bytes);
    else
        memmove(sum, base, bytes);
    for (uint64_t i = 0; i < r.count; i++) {
        float from[SIM_ELEMENTS_MAX], *to = (float *)sum + tni_kv_rows_at(&r, i) / sizeof(float);

        if (r.row_bytes > sizeof from)
            return tni_error(TN_E_FORMAT, "a row of %llu bytes", (unsigned long long)r.row_bytes);
        memcpy(from, r.values + i * r.row_bytes, r.row_bytes);
        for (uint64_t k = 0; k < r.row_bytes / sizeof(float); k++)
            to[k] += from[k];
    }
    return TN_OK;
}

static tn_status update_add(void *arg, const tni_kv_header *h, bool first, const void *base, void *sum,
                            const void *payload, uint64_t bytes)
{
    float *to = sum;
    float from, before;

    (void)arg;
    if (h->what == TNI_KV_ROWS)
        return rows_add(h, first, base, sum, payload, bytes);
    for (uint64_t i = 0; i < bytes / sizeof(float); i++) {
        memcpy(&from, (const char *)payload + i * sizeof from, sizeof from);
        memcpy(&before, (const char *)base + i * sizeof before, sizeof before);
        from = first ? from : before + from;
        memcpy(to + i, &from, sizeof from);
    }
    return TN_OK;
}

static tn_status update_apply(void *arg, const tni_kv_header *h, void *value, const void *sum, uint64_t bytes,
                              uint32_t count, uint32_t members)
{
    sim_proc *p = arg;
    sim *s = p->world;
    const uint32_t key = (uint32_t)(h->key >> 16), part = (uint32_t)(h->key & 0xffff);
    const uint64_t elements = bytes / sizeof(float), half = elements / 2;
    sim_shadow *shadow;

    step(value, sum, half, s->mode == SIM_ASYNC);
    TNI_KV_POINT(update_half);
    step((float *)value + half, (const float *)sum + half, elements - half, s->mode == SIM_ASYNC);
    if (p->dying)
        return TN_OK;
    if (count > members)
        sim_violation(s, "I1: key %u part %u round %u has %u gradients of %u workers", key, part, h->round,
                      count, members);
    if (s->o.elements && part >= SIM_PARTS_MAX)
        return TN_OK;
    if (key >= s->o.keys || part >= SIM_PARTS_MAX || h->round > SIM_ROUNDS_MAX) {
        sim_violation(s, "I7: key %u part %u round %u is none of this job", key, part, h->round);
        return TN_OK;
    }
    if (p != sim_server(s, p->rank))
        return TN_OK; /* a process that was replaced: nobody looks at its memory */
    if (s->tells && !s->disks[1 + p->rank].told && !tni_kv_server_view(p->server)->epoch_view)
        sim_violation(s, "I3: server %u takes a gradient of key %u without the command before it", p->rank,
                      key);
    shadow = sim_shadow_of(s, key, part, TNI_KV_RANK(h->from));
    if (shadow->applied[h->round]++)
        sim_violation(s, "I1: key %u part %u round %u of worker %u was applied twice", key, part, h->round,
                      TNI_KV_RANK(h->from));
    return TN_OK;
}

static bool on_server(const sim *s, uint32_t key, uint32_t part, uint32_t rank)
{
    const tni_kv_plan_options o = {s->settings.servers, s->settings.bound, s->settings.part_bytes};
    tni_kv_plan p;

    return !tni_kv_plan_make(&o, key, s->elements[key], sizeof(float), &p) && part < p.parts &&
           tni_kv_plan_part(&p, part).server == rank;
}

/* Every shadow of the server's parts, in order. */
static tn_status update_save(void *arg, tni_str *out)
{
    sim_proc *p = arg;
    sim *s = p->world;

    for (uint32_t k = 0; k < s->o.keys; k++)
        for (uint32_t part = 0; part < SIM_PARTS_MAX; part++)
            for (uint32_t w = 0; w < (s->mode == SIM_ASYNC ? s->settings.workers : 1); w++)
                if (on_server(s, k, part, p->rank))
                    (void)tni_str_add_bytes(out, sim_shadow_of(s, k, part, w), sizeof(sim_shadow));
    tni_kv_write(out, s->disks[1 + p->rank].told, 1);
    return out->status;
}

static tn_status update_load(void *arg, const void *text, uint64_t bytes)
{
    sim_proc *p = arg;
    sim *s = p->world;
    tni_kv_reader r = {text, bytes, false};

    if (p != sim_server(s, p->rank))
        return TN_OK;
    for (uint32_t k = 0; k < s->o.keys; k++)
        for (uint32_t part = 0; part < SIM_PARTS_MAX; part++)
            for (uint32_t w = 0; w < (s->mode == SIM_ASYNC ? s->settings.workers : 1); w++) {
                sim_shadow *shadow = sim_shadow_of(s, k, part, w);
                const uint8_t *from;

                if (!on_server(s, k, part, p->rank))
                    continue;
                from = bytes ? tni_kv_read_bytes(&r, sizeof *shadow) : NULL;
                if (from)
                    memcpy(shadow, from, sizeof *shadow);
                else
                    memset(shadow, 0, sizeof *shadow);
            }
    s->disks[1 + p->rank].told = bytes && tni_kv_read(&r, 1);
    return r.bad || r.left ? tni_error(TN_E_FORMAT, "shadow of another job") : TN_OK;
}

static tn_status update_command(void *arg, const char *text, uint64_t bytes)
{
    sim_proc *p = arg;

    (void)text, (void)bytes;
    if (p == sim_server(p->world, p->rank))
        p->world->disks[1 + p->rank].told = true;
    return TN_OK;
}

const tni_kv_update sim_update = {.payload_bytes = update_bytes,
                                  .add = update_add,
                                  .apply = update_apply,
                                  .command = update_command,
                                  .save = update_save,
                                  .load = update_load};
