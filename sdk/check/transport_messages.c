/*
 * Group transport: messages, their order, and what a slow peer may cost.
 */
#include <stdlib.h>
#include <string.h>

#include "transport.h"

#define MIB ((uint64_t)1 << 20)

/* Sends until `count` messages have gone or there is no room. */
static void send_some(chk_end *e, uint32_t *left, chk_letter (*next)(chk_end *e))
{
    while (*left && !e->waits) {
        const chk_letter l = next(e);

        if (chk_end_send(e, &l) == TN_OK)
            --*left;
        else
            chk_fail_if(e->site->net->env, !e->waits, "T-send", "send says that a link is gone which is up");
    }
}

/* `count` messages each way at once; all come. */
static void exchange(chk_net *net, chk_end *a, chk_end *b, uint32_t count, chk_letter (*next)(chk_end *e))
{
    uint32_t left[2] = {count, count};
    chk_stillness still = {0};

    while (left[0] || left[1]) {
        send_some(a, &left[0], next);
        send_some(b, &left[1], next);
        if (chk_net_turn(net))
            still = (chk_stillness){0};
        else if (chk_is_over(&still, CHK_QUIET * chk_patience()))
            chk_fail(net->env, "T-credit", "send has said TN_PENDING, and CREDIT does not come");
        chk_site_release(a->site, 0);
        chk_site_release(b->site, 0);
    }
    chk_net_until(net, chk_net_settled, net, "T-arrive", "messages or cookies that were sent are missing");
}

/* ---- whole, in order, once ---------------------------------------------------------------------------- */

static chk_letter any_letter(chk_end *e)
{
    return chk_letter_random(e, 100000);
}

/* The sender is served alone, until there is no room: what SENT has told of is written over meanwhile. */
static void exchange_late(chk_net *net, chk_end *a)
{
    const chk_letter l = {.bytes = 256 * 1024};

    for (uint32_t i = 0; i < 256 && !a->waits; i++) {
        (void)chk_end_send(a, &l);
        (void)chk_site_poll(a->site, 0);
    }
    for (uint32_t i = 0; i < 20; i++)
        (void)chk_site_poll(a->site, 0);
    chk_net_until(net, chk_net_settled, net, "T-arrive", "messages or cookies that were sent are missing");
}

static chk_letter large_letter(chk_end *e)
{
    chk_letter l = chk_letter_random(e, 1);

    l.bytes = e->site->config.message_max - chk_random(e->site->net->env) % 2;
    return l;
}

void chk_transport_messages(chk_env *env)
{
    const uint32_t count = env->sizes ? 5000 : 400;
    chk_end *a, *b;
    chk_net net;

    chk_net_open(&net, env, CHK_HOST_EXACT);
    chk_net_pair(&net, &a, &b);
    exchange(&net, a, b, count, any_letter);
    exchange(&net, a, b, 3, large_letter);
    exchange_late(&net, a);
    chk_net_close(&net);
}

static chk_letter ranked_letter(chk_end *e)
{
    chk_letter l = chk_letter_random(e, 20000);
    const uint64_t r = chk_random(e->site->net->env);

    l.order = (uint32_t)(r % 3);
    if (r >> 8 & 1) {
        l.flags |= TN_SEND_URGENT;
        l.bytes %= 200;
    }
    return l;
}

void chk_transport_order(chk_env *env)
{
    chk_end *a, *b;
    chk_net net;

    chk_net_open(&net, env, CHK_HOST_EXACT);
    chk_net_pair(&net, &a, &b);
    exchange(&net, a, b, env->sizes ? 5000 : 500, ranked_letter);
    chk_net_close(&net);
}

/* Messages that are sent before the link is up, and others into the links of several peers. */
void chk_transport_early(chk_env *env)
{
    const chk_letter l = {.bytes = 100};
    chk_site *a, *b;
    chk_net net;

    chk_net_two(&net, env, NULL, NULL, &a, &b);
    for (uint32_t i = 0; i < 4; i++) {
        chk_end *e = chk_site_connect(a, b);

        for (uint32_t k = 0; k < 3; k++)
            chk_end_post(e, &l);
    }
    chk_net_until(&net, chk_net_settled, &net, "T-arrive", "messages that were sent before UP are missing");
    chk_net_close(&net);
}

/* ---- what is too long --------------------------------------------------------------------------------- */

static tn_status send_raw(chk_end *e, uint64_t bytes, uint32_t pieces, uint32_t flags)
{
    uint8_t header[TN_HEADER_BYTES] = {0};
    tn_piece *list = calloc(pieces + 1, sizeof *list);
    const tn_send what = {.struct_size = (uint32_t)TN_END(tn_send, offset),
                          .flags = flags,
                          .header = header,
                          .pieces = list,
                          .piece_count = pieces};
    tn_err err = {0};
    tn_status st;

    chk_fail_if(e->site->net->env, !list, "kit", "out of memory");
    if (pieces)
        list[0] = (tn_piece){.data = e->site->net->plain, .bytes = bytes};
    st = e->site->net->ops->send(e->link, &what, &err);
    free(list);
    return st;
}

static bool both_down(const void *arg)
{
    const chk_end *const *e = arg;

    return e[0]->down && e[1]->down;
}

void chk_transport_long(chk_env *env)
{
    const tn_transport_config small = {.message_max = 1000}, large = {.message_max = 2000};
    const chk_letter longest = {.bytes = 1000}, longer = {.bytes = 1001, .flags = TN_SEND_COPY};
    chk_site *a, *b;
    chk_end *ends[2];
    chk_net net;

    chk_net_two(&net, env, &large, &small, &a, &b);
    ends[0] = chk_site_connect(a, b);
    chk_end_post(ends[0], &longest);
    chk_net_until(&net, chk_net_settled, &net, "T-arrive", "a message of message_max bytes is missing");
    ends[1] = chk_site_came(b, 0);
    if (send_raw(ends[0], 2001, 1, TN_SEND_COPY) != TN_E_ARG)
        chk_fail(env, NULL, "send takes a message of 2001 bytes, message_max is 2000");
    if (a->info.pieces_max < 4096 && send_raw(ends[0], 0, a->info.pieces_max + 1, TN_SEND_COPY) != TN_E_ARG)
        chk_fail(env, NULL, "send takes %u pieces, pieces_max is %u", (unsigned)a->info.pieces_max + 1,
                 (unsigned)a->info.pieces_max);
    if (send_raw(ends[0], 0, 0, ~TN_SEND_KNOWN) != TN_E_ARG)
        chk_fail(env, "L-unknown", "send takes flags that have no meaning");
    chk_end_post(ends[0], &longest);
    chk_net_until(&net, chk_net_settled, &net, "T-arrive", "what is refused hinders what comes behind");
    chk_end_post(ends[0], &longer); /* more than the peer takes */
    chk_net_until(&net, both_down, ends, NULL, "a peer sent more than message_max, and its link is not down");
    chk_fail_if(env, ends[1]->why != TN_E_PEER || ends[1]->received_all != 2, NULL,
                "a link whose peer sent more than message_max ends with %s, and %u messages of 2 came",
                tn_status_name(ends[1]->why), (unsigned)ends[1]->received_all);
    chk_net_close(&net);
}

/* ---- a peer that does not release --------------------------------------------------------------------- */

#define BOUND_BYTES (256 * 1024u)
#define BOUND_MESSAGES 4096u /* 128 MiB in all: more than the buffers of any system hold */

static bool credit_came(const void *arg)
{
    return !((const chk_end *)arg)->waits;
}

/* Sends without looking after the other side but for its events; how many messages there was room for. */
static uint32_t fill(chk_net *net, chk_end *a, const chk_letter *l, bool receives)
{
    uint32_t count = 0, quiet = 0;

    while (count < BOUND_MESSAGES && quiet < 20) {
        if (!a->waits && chk_end_send(a, l) == TN_OK) {
            count++;
            quiet = 0;
        }
        if (a->waits || count % 8 == 0) {
            (void)chk_site_poll(a->site, 0);
            for (uint32_t i = 0; receives && i < net->site_count; i++)
                if (&net->sites[i] != a->site)
                    (void)chk_site_poll(&net->sites[i], 0);
        }
        if (a->waits) {
            chk_quiet_us(1000);
            quiet++;
        }
    }
    return count;
}

void chk_transport_bound(chk_env *env)
{
    const tn_transport_config limits = {.receive_bytes = BOUND_BYTES, .message_max = 64 * 1024};
    const chk_letter l = {.bytes = 32 * 1024, .plain = true};
    chk_site *a, *b;
    uint64_t before, after;
    chk_end *e;
    chk_net net;

    chk_net_two(&net, env, NULL, &limits, &a, &b);
    b->keeps = true;
    e = chk_site_connect(a, b);
    chk_end_post(e, &l);
    chk_net_until(&net, chk_net_settled, &net, "T-arrive", "the first message is missing");
    (void)chk_host_memory(net.plugin.host, &before);
    chk_fail_if(env, fill(&net, e, &l, true) == BOUND_MESSAGES, NULL,
                "a peer does not release, and send takes 128 MiB for it");
    (void)chk_host_memory(net.plugin.host, &after);
    if (after > before + BOUND_BYTES + 2 * MIB)
        chk_fail(env, NULL,
                 "a peer does not release what it gets: memory grows by %llu bytes, receive_bytes is %u",
                 (unsigned long long)(after - before), BOUND_BYTES);
    chk_fail_if(env, b->held_bytes + 64 * 1024 < BOUND_BYTES, NULL,
                "%llu bytes are handed out, and no more come, though receive_bytes is %u",
                (unsigned long long)b->held_bytes, BOUND_BYTES);
    b->keeps = false;
    chk_site_release(b, 0);
    chk_net_until(&net, credit_came, e, "T-credit", "send has said TN_PENDING, and CREDIT does not come");
    chk_net_until(&net, chk_net_settled, &net, "T-arrive",
                  "messages that waited for a slow peer are missing");
    chk_net_close(&net);
}

/* A peer that does not even poll. */
void chk_transport_credit(chk_env *env)
{
    static const uint32_t flags[] = {0, TN_SEND_COPY};

    for (size_t i = 0; i < 2; i++) {
        const chk_letter l = {.bytes = 32 * 1024, .flags = flags[i], .plain = true};
        uint64_t before, after;
        chk_end *a, *b;
        chk_net net;

        chk_net_open(&net, env, CHK_HOST_EXACT);
        chk_net_pair(&net, &a, &b);
        (void)chk_host_memory(net.plugin.host, &before);
        chk_fail_if(env, fill(&net, a, &l, false) == BOUND_MESSAGES, NULL,
                    "a peer does not poll, and send takes 128 MiB for it");
        (void)chk_host_memory(net.plugin.host, &after);
        if (after > before + 32 * MIB)
            chk_fail(env, NULL, "a peer does not poll: memory grows by %llu bytes",
                     (unsigned long long)(after - before));
        chk_net_until(&net, credit_came, a, NULL, "send has said TN_PENDING, and CREDIT does not come");
        chk_net_until(&net, chk_net_settled, &net, "T-arrive", "messages that waited are missing");
        chk_fail_if(env, a->credits == 0, NULL, "CREDIT has not come");
        chk_net_close(&net);
    }
}

/* ---- hosts -------------------------------------------------------------------------------------------- */

void chk_transport_hosts(chk_env *env)
{
    static const chk_host_kind kinds[] = {CHK_HOST_OLD, CHK_HOST_FUTURE, CHK_HOST_BARE};

    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        chk_end *a, *b;
        chk_net net;

        chk_net_open(&net, env, kinds[k]);
        chk_net_pair(&net, &a, &b);
        exchange(&net, a, b, 60, any_letter);
        chk_net_close(&net);
    }
}

/* ---- threads ------------------------------------------------------------------------------------------ */

typedef struct worker {
    chk_net net;
    chk_end *a, *b;
    pthread_t id;
} worker;

/* Without the numbers of the case, which are its own thread's. */
static void *work(void *arg)
{
    worker *w = arg;

    for (uint32_t i = 0; i < 200; i++) {
        uint8_t header[TN_HEADER_BYTES] = {(uint8_t)i};
        const tn_send what = {
            .struct_size = (uint32_t)TN_END(tn_send, offset), .flags = TN_SEND_COPY, .header = header};
        bool came = false;
        tn_err err = {0};

        if (w->net.ops->send(w->a->link, &what, &err))
            chk_fail(w->net.env, NULL, "send fails beside another thread: %s", err.message);
        for (uint32_t turn = 0; !came; turn++) {
            tn_transport_event e = {.struct_size = (uint32_t)TN_END(tn_transport_event, text)};
            const bool second = turn % 2;
            uint32_t count = 1;

            (void)w->net.ops->poll(second ? w->b->site->t : w->a->site->t, &e, &count, 1000000, &err);
            if (!count)
                continue;
            if (!second || e.kind != TN_EVENT_RECV || e.header[0] != (uint8_t)i)
                chk_fail(w->net.env, NULL, "an event of kind %u comes beside another thread",
                         (unsigned)e.kind);
            w->net.ops->release(w->b->site->t, e.held);
            came = true;
        }
    }
    return NULL;
}

/* Transports are one caller's each, at one time with others. */
void chk_transport_threads(chk_env *env)
{
    worker *w = calloc(2, sizeof *w);

    chk_fail_if(env, !w, "kit", "out of memory");
    for (int i = 0; i < 2; i++) {
        chk_net_open(&w[i].net, env, CHK_HOST_EXACT);
        chk_net_pair(&w[i].net, &w[i].a, &w[i].b);
    }
    for (int i = 0; i < 2; i++)
        chk_fail_if(env, pthread_create(&w[i].id, NULL, work, &w[i]), "kit", "no thread");
    for (int i = 0; i < 2; i++)
        (void)pthread_join(w[i].id, NULL);
    chk_count(env);
    for (int i = 0; i < 2; i++)
        chk_net_close(&w[i].net);
    free(w);
}
