/* The view: who is a member, in which incarnation, and which rounds count. One text on the wire and in
 * journals. */
#include <string.h>

#include "kv/protocol.h"

typedef struct field {
    uint8_t member, bytes;
} field;

static const field view_fields[] = {
    {offsetof(tni_kv_view, number), 4},       {offsetof(tni_kv_view, scheduler), 4},
    {offsetof(tni_kv_view, epoch_view), 4},   {offsetof(tni_kv_view, flags), 4},
    {offsetof(tni_kv_view, end_round), 4},    {offsetof(tni_kv_view, released), 4},
    {offsetof(tni_kv_view, incarnations), 4}, {offsetof(tni_kv_view, silent_ms), 4},
    {offsetof(tni_kv_view, failed), 2},       {offsetof(tni_kv_view, cut), 8},
};
#define FIELD_COUNT (sizeof view_fields / sizeof *view_fields)

tn_status tni_kv_view_init(tni_kv_view *v, uint32_t workers, uint32_t servers)
{
    *v = (tni_kv_view){.workers = workers, .servers = servers, .end_round = UINT32_MAX};
    if (!workers || !servers || workers > TNI_KV_RANKS_MAX || servers > TNI_KV_RANKS_MAX)
        return tni_error(TN_E_ARG, "%u workers and %u servers; there may be 1 to %u of each", workers,
                         servers, TNI_KV_RANKS_MAX);
    v->members = tni_calloc((uint64_t)workers + servers, sizeof *v->members);
    if (!v->members)
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < workers; i++)
        v->members[i].last_round = UINT32_MAX;
    return TN_OK;
}

void tni_kv_view_fini(tni_kv_view *v)
{
    if (!v->members)
        return;
    for (uint32_t i = 0; i < v->workers + v->servers; i++)
        tni_free(v->members[i].address);
    tni_free(v->members);
    v->members = NULL;
}

tni_kv_member *tni_kv_view_member(const tni_kv_view *v, uint16_t node)
{
    const uint32_t role = TNI_KV_ROLE(node), rank = TNI_KV_RANK(node);

    if (role == TNI_KV_WORKER && rank < v->workers)
        return &v->members[rank];
    return role == TNI_KV_SERVER && rank < v->servers ? &v->members[v->workers + rank] : NULL;
}

uint16_t tni_kv_view_node(const tni_kv_view *v, uint32_t index)
{
    return index < v->workers ? TNI_KV_NODE(TNI_KV_WORKER, index)
                              : TNI_KV_NODE(TNI_KV_SERVER, index - v->workers);
}

void tni_kv_view_write(const tni_kv_view *v, tni_str *out)
{
    for (size_t i = 0; i < FIELD_COUNT; i++) {
        const char *at = (const char *)v + view_fields[i].member;

        tni_kv_write(out, tni_kv_member_get(at, view_fields[i].bytes), view_fields[i].bytes);
    }
    tni_kv_write(out, v->workers, 4);
    tni_kv_write(out, v->servers, 4);
    for (uint32_t i = 0; i < v->workers + v->servers; i++) {
        const tni_kv_member *m = &v->members[i];

        tni_kv_write(out, m->birth, 8);
        tni_kv_write(out, m->incarnation, 4);
        tni_kv_write(out, m->last_round, 4);
        tni_kv_write(out, m->state, 1);
        tni_kv_write(out, m->address_bytes, 2);
        (void)tni_str_add_bytes(out, m->address, m->address_bytes);
    }
}

static tn_status member_read(tni_kv_reader *r, tni_kv_member *m)
{
    const uint8_t *address;

    m->birth = tni_kv_read(r, 8);
    m->incarnation = (uint32_t)tni_kv_read(r, 4);
    m->last_round = (uint32_t)tni_kv_read(r, 4);
    m->state = (uint8_t)tni_kv_read(r, 1);
    m->address_bytes = (uint16_t)tni_kv_read(r, 2);
    if (m->state > TNI_KV_LEFT || m->address_bytes > TNI_KV_ADDRESS_MAX) {
        m->address_bytes = 0;
        return tni_error(TN_E_FORMAT, "view with a member of state %u", m->state);
    }
    address = tni_kv_read_bytes(r, m->address_bytes);
    if (r->bad)
        return tni_error(TN_E_FORMAT, "view ends within a member");
    if (m->address_bytes == 0)
        return TN_OK;
    m->address = tni_alloc(m->address_bytes);
    if (!m->address)
        return TN_E_NOMEM;
    memcpy(m->address, address, m->address_bytes);
    return TN_OK;
}

tn_status tni_kv_view_read(tni_kv_view *v, const uint8_t *text, uint64_t bytes)
{
    tni_kv_reader r = {text, bytes, false};
    tni_kv_view got;
    tn_status st = tni_kv_view_init(&got, v->workers, v->servers);

    if (st)
        return st;
    for (size_t i = 0; i < FIELD_COUNT; i++)
        tni_kv_member_set((char *)&got + view_fields[i].member, tni_kv_read(&r, view_fields[i].bytes),
                          view_fields[i].bytes);
    if (tni_kv_read(&r, 4) != v->workers || tni_kv_read(&r, 4) != v->servers || r.bad)
        st = tni_error(TN_E_FORMAT, "view of another number of workers or servers");
    for (uint32_t i = 0; !st && i < v->workers + v->servers; i++)
        st = member_read(&r, &got.members[i]);
    if (!st && r.left)
        st = tni_error(TN_E_FORMAT, "view with %llu bytes behind its end", (unsigned long long)r.left);
    if (st) {
        tni_kv_view_fini(&got);
        return st;
    }
    tni_kv_view_fini(v);
    *v = got;
    return TN_OK;
}

const char *tni_kv_view_mode_wrong(const tni_kv_view *v, const tni_kv_hello *who)
{
    if (who->role != TNI_KV_WORKER || !(v->flags & TNI_KV_MODE_KNOWN) ||
        who->async == ((v->flags & TNI_KV_ASYNC) != 0))
        return NULL;
    return who->async ? "its store is asynchronous, those of the others are dist_sync"
                      : "its store is dist_sync, those of the others are asynchronous";
}

bool tni_kv_view_servers_live(const tni_kv_view *v)
{
    for (uint32_t i = v->workers; i < v->workers + v->servers; i++)
        if (v->members[i].state != TNI_KV_ALIVE)
            return false;
    return true;
}
