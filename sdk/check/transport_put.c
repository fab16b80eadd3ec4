/*
 * Group transport: puts into the memory of a peer, where they are offered.
 */
#include <stdlib.h>
#include <string.h>

#include "transport.h"

#define ROOM 20000u

/* One landing, and what lies in it by now. */
typedef struct place {
    chk_net net;
    chk_end *a, *b;
    chk_buffer *buffer; /* the landing, and canaries around */
    uint8_t *data;
    tn_region *region, *from;
    uint64_t token, slot;
    uint32_t came;
} place;

static void region_make(chk_site *n, void *data, uint64_t bytes, tn_region **out)
{
    tn_err err = {0};

    *out = NULL;
    if (TN_OFFERS(n->net->ops, tn_transport_ops, region_add) &&
        n->net->ops->region_add(n->t, data, bytes, out, &err))
        chk_fail(n->net->env, "T-region", "region_add fails: %s", err.message);
}

static void place_open(place *p, chk_env *env)
{
    tn_err err = {0};

    chk_net_open(&p->net, env, CHK_HOST_EXACT);
    chk_net_pair(&p->net, &p->a, &p->b);
    if (!TN_OFFERS(p->net.ops, tn_transport_ops, put)) {
        chk_net_close(&p->net);
        chk_skip(env, "it offers no puts");
    }
    chk_fault_rules(env, "T-put", "T-put", "the transport");
    p->buffer = chk_buffer_create(env, ROOM, 0, CHK_GUARD_END);
    p->data = chk_buffer_data(p->buffer);
    p->slot = chk_random(env) >> 1;
    chk_buffer_guard(p->buffer, NULL, "memory behind a landing");
    memset(p->data, 0x55, ROOM);
    region_make(p->b->site, p->data, ROOM, &p->region);
    if (p->net.ops->landing(p->b->link, p->slot, p->data, ROOM, p->region, &p->token, &err))
        chk_fail(env, NULL, "landing fails: %s", err.message);
    region_make(p->a->site, p->net.plain, (uint64_t)1 << 20, &p->from);
}

static tn_status put(place *p, uint64_t offset, uint64_t bytes, uint64_t token)
{
    uint8_t header[TN_HEADER_BYTES] = {(uint8_t)bytes, (uint8_t)(bytes >> 8)};
    const tn_piece piece = {p->net.plain, bytes, p->from};
    const tn_send what = {.struct_size = (uint32_t)TN_END(tn_send, offset),
                          .flags = TN_SEND_COPY,
                          .header = header,
                          .pieces = &piece,
                          .piece_count = 1,
                          .token = token,
                          .offset = offset};
    tn_err err = {0};

    return p->net.ops->put(p->a->link, &what, &err);
}

static uint32_t event_of(chk_site *n, tn_transport_event *e)
{
    uint32_t count = 1;
    tn_err err = {0};

    *e = (tn_transport_event){.struct_size = (uint32_t)TN_END(tn_transport_event, text)};
    chk_fail_if(n->net->env, n->net->ops->poll(n->t, e, &count, 500000, &err) != TN_OK, "T-poll",
                "poll fails: %s", err.message);
    return count;
}

/* Waits for the put of so many bytes, which goes to `offset`; all around it stays. */
static void put_comes(place *p, uint64_t offset, uint64_t bytes)
{
    chk_env *env = p->net.env;
    chk_stillness still = {0};
    tn_transport_event e;
    int64_t at = 0;

    for (bool came = false; !came;) {
        (void)event_of(p->a->site, &e);
        if (!event_of(p->b->site, &e)) {
            if (chk_is_over(&still, CHK_QUIET * chk_patience()))
                chk_fail(env, NULL, "a put is not told by RECV");
            continue;
        }
        came = e.kind == TN_EVENT_RECV;
        chk_fail_if(env, !came, NULL, "an event of kind %u comes where a put was awaited", (unsigned)e.kind);
        chk_fail_if(env, e.slot != p->slot, NULL, "RECV behind a put names another slot than its landing's");
        chk_fail_if(env, e.header[0] != (uint8_t)bytes, NULL, "RECV behind a put has another header");
        p->net.ops->release(p->b->site->t, e.held);
    }
    for (uint64_t i = 0; i < ROOM; i++) {
        const bool inside = i >= offset && i - offset < bytes;

        if (p->data[i] != (inside ? p->net.plain[i - offset] : 0x55))
            chk_fail(env, NULL, "a put of %llu bytes at %llu: byte %llu of the landing is another one",
                     (unsigned long long)bytes, (unsigned long long)offset, (unsigned long long)i);
    }
    chk_fail_if(env, !chk_buffer_intact(p->buffer, (uint64_t *)&at), NULL,
                "a put writes %lld bytes from the start of the landing", (long long)at);
    memset(p->data, 0x55, ROOM);
    chk_count(env);
}

/* A put that has no place: it is refused, or the link goes down; nothing is written. */
static void put_refused(chk_env *env, uint64_t offset, uint64_t bytes, uint64_t other)
{
    place p;
    tn_transport_event e;
    chk_stillness still = {0};
    int64_t at = 0;

    place_open(&p, env);
    if (!put(&p, offset, bytes, p.token ^ other))
        while (!chk_is_over(&still, 200)) {
            (void)event_of(p.a->site, &e);
            if (!event_of(p.b->site, &e))
                continue;
            chk_fail_if(env, e.kind == TN_EVENT_RECV, NULL,
                        "a put of %llu bytes at %llu of %u is told to the host", (unsigned long long)bytes,
                        (unsigned long long)offset, ROOM);
            if (e.kind == TN_EVENT_DOWN)
                break;
        }
    for (uint64_t i = 0; i < ROOM; i++)
        chk_fail_if(env, p.data[i] != 0x55, NULL, "a put that has no place in the landing writes to it");
    chk_fail_if(env, !chk_buffer_intact(p.buffer, (uint64_t *)&at), NULL,
                "a put writes outside of the landing");
    chk_count(env);
    chk_net_close(&p.net);
    chk_buffer_destroy(p.buffer);
}

void chk_transport_put(chk_env *env)
{
    static const uint32_t sizes[] = {0, 1, 63, 64, 4096, ROOM};
    place p;

    place_open(&p, env);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (uint64_t offset = 0; offset + sizes[i] <= ROOM; offset += 1 + (ROOM - sizes[i]) / 3) {
            const tn_status st = put(&p, offset, sizes[i], p.token);

            chk_fail_if(env, st, NULL, "put of %u bytes fails with %s", (unsigned)sizes[i],
                        tn_status_name(st));
            put_comes(&p, offset, sizes[i]);
        }
    p.net.ops->landing_remove(p.b->link, p.token);
    chk_net_close(&p.net);
    chk_buffer_destroy(p.buffer);
    put_refused(env, ROOM, 1, 0);
    put_refused(env, 1, ROOM, 0);
    put_refused(env, UINT64_MAX - 5, 100, 0);
    put_refused(env, 0, 100, 0x5a5a5a5a5a5a5a5au);
}

/* Regions are given back once nothing uses them. */
void chk_transport_regions(chk_env *env)
{
    uint8_t *memory = malloc(ROOM);
    tn_region *region = NULL;
    chk_site *n;
    tn_err err = {0};
    chk_net net;

    chk_fail_if(env, !memory, "kit", "out of memory");
    chk_net_open(&net, env, CHK_HOST_EXACT);
    n = chk_site_open(&net, NULL);
    if (!TN_OFFERS(net.ops, tn_transport_ops, region_add)) {
        chk_net_close(&net);
        free(memory);
        chk_skip(env, "it offers no regions");
    }
    for (int i = 0; i < 200; i++) {
        const uint64_t before = chk_host_memory(net.plugin.host, NULL);

        chk_fail_if(env, net.ops->region_add(n->t, memory, ROOM, &region, &err) || !region, NULL,
                    "region_add fails: %s", err.message);
        chk_fail_if(env, net.ops->region_remove(n->t, region, &err) != TN_OK, NULL, "region_remove fails: %s",
                    err.message);
        chk_host_left(net.plugin.host, before, "region_add and region_remove");
        chk_count(env);
    }
    chk_net_close(&net);
    free(memory);
}
