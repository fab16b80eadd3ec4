/* Disks of a simulated job: the scheduler's journal, and the newest two snapshots of each rank of servers. */
#include <stdlib.h>
#include <string.h>

#include "kv/sim/internal.h"

static bool disk_full(sim *s)
{
    return s->now < s->faults_end_ns && s->o.seed % 7 == 3 && sim_chance(s, 100);
}

/* A full disk has half of a record. */
static tn_status journal_append(void *arg, const void *record, uint64_t bytes)
{
    sim_proc *p = arg;
    const bool full = disk_full(p->world);

    if (p->dying)
        return TN_OK;
    (void)tni_str_add_bytes(&p->world->disks[0].journal, record, full ? bytes / 2 : bytes);
    TNI_KV_POINT(view_written);
    return full ? tni_error(TN_E_IO, "the disk is full") : p->world->disks[0].journal.status;
}

static tn_status journal_replace(void *arg, const void *record, uint64_t bytes)
{
    sim_proc *p = arg;

    if (p->dying)
        return TN_OK;
    if (disk_full(p->world))
        return tni_error(TN_E_IO, "the disk is full");
    p->world->disks[0].journal.length = 0;
    p->world->result->compacted++;
    return tni_str_add_bytes(&p->world->disks[0].journal, record, bytes);
}

/* The third blob is the one being written: a kill loses it. */
static tn_status snapshot_write(void *arg, uint64_t step, tni_str *text)
{
    const uint64_t bytes = text->length;
    sim_proc *p = arg;
    sim *s = p->world;
    sim_blob *b = &s->disks[1 + p->rank].blobs[2];
    sim_event *e;

    if (p->dying)
        return TN_PENDING;
    if (p != sim_server(s, p->rank))
        return tni_error(TN_E_IO, "this disk is another process's");
    free(b->text);
    *b = (sim_blob){step, bytes, malloc(bytes)};
    s->disks[1 + p->rank].writer = p->index;
    e = sim_event_add(s, SIM_SAVED,
                      s->now + SIM_MS * (1 + sim_below(s, s->o.storm && sim_below(s, 4) == 0 ? 5000 : 30)),
                      0);
    if (!b->text || !e)
        return TN_E_NOMEM;
    tni_kv_snapshot_seal(text->text, bytes);
    memcpy(b->text, text->text, bytes);
    e->proc = p->index;
    e->arg = step;
    TNI_KV_POINT(temp_written);
    return TN_PENDING;
}

static tn_status snapshot_read(void *arg, uint64_t step, const void **text, uint64_t *bytes)
{
    sim_proc *p = arg;
    sim_disk *d = &p->world->disks[1 + p->rank];

    if (d->blobs[2].text && d->writer == p->index)
        return TN_PENDING; /* it is asked again when that one is written */
    for (int i = 0; i < 2 && d->blobs[0].step > step && p == sim_server(p->world, p->rank); i++) {
        free(d->blobs[0].text);
        d->blobs[0] = d->blobs[1];
        d->blobs[1] = (sim_blob){0};
    }
    for (int i = 0; i < 2 && step; i++)
        if (d->blobs[i].step == step && d->blobs[i].text) {
            *text = d->blobs[i].text;
            *bytes = d->blobs[i].bytes;
            return TN_OK;
        }
    return step ? tni_error(TN_E_IO, "no snapshot of step %llu", (unsigned long long)step) : TN_OK;
}

tni_kv_journal sim_journal(sim_proc *p)
{
    return (tni_kv_journal){p, journal_append, journal_replace};
}

tni_kv_snapshots sim_snapshots(sim_proc *p)
{
    return (tni_kv_snapshots){.arg = p, .write = snapshot_write, .read = snapshot_read};
}
