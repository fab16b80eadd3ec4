/*
 * A process that is no member asks a job how it is: the scheduler first, whose report has the view, then each
 * member through the scheduler. Questions are repeated; answers are compared with the number of this asker.
 *
 * What it holds is bounded by the view, and by TNI_KV_REPORT_MAX of each member.
 */
#include "kv/ask.h"

#include <inttypes.h>
#include <string.h>

#define AGAIN_NS 250000000u
#define TIMEOUT_NS 5000000000u

typedef struct said { /* a member's report, as it came */
    uint8_t *text;
    uint64_t bytes;
    uint32_t heard_ms; /* by the scheduler */
} said;

typedef struct asker {
    tni_kv_host host;
    tni_kv_view alone, view;                     /* alone: of nobody; view: the job's */
    uint64_t token, again_ns, end_ns, job, open; /* job: 0: any; open: members that have not answered */
    tni_kv_report report;                        /* the scheduler's */
    said *members;
    bool tried, known; /* known: the scheduler has answered */
    tn_status status;
    tn_err error;
} asker;

static bool answers(const tni_kv_member *m)
{
    return m->state == TNI_KV_ALIVE || m->state == TNI_KV_ENDED || m->state == TNI_KV_DEAD;
}

static void ask(asker *a, uint16_t node)
{
    tni_kv_header h = {.type = TNI_KV_ASK,
                       .flags = a->tried ? TNI_KV_RETRY : 0,
                       .priority = 255,
                       .from = TNI_KV_UNKNOWN,
                       .to = TNI_KV_SCHEDULER_NODE,
                       .job = a->job,
                       .sequence = a->token,
                       .key = node};
    uint8_t text[TNI_KV_HEADER_BYTES];

    tni_kv_encode(&h, NULL, text);
    a->host.send(a->host.arg, TNI_KV_SCHEDULER_NODE, text, NULL, 0, 255);
}

static tn_status scheduler_read(asker *a, tni_kv_reader *r)
{
    uint32_t workers, servers;
    tn_status st = tni_kv_report_read(r, &a->report);

    a->job = tni_kv_read(r, 8);
    workers = (uint32_t)tni_kv_read(r, 4);
    servers = (uint32_t)tni_kv_read(r, 4);
    if (st || (st = tni_kv_view_init(&a->view, workers, servers)))
        return st;
    a->members = tni_calloc((uint64_t)workers + servers, sizeof *a->members);
    if (!a->members)
        return TN_E_NOMEM;
    for (uint32_t i = 0; i < workers + servers; i++)
        a->members[i].heard_ms = (uint32_t)tni_kv_read(r, 4);
    if (r->bad)
        return tni_error(TN_E_FORMAT, "the scheduler's report ends too early");
    if ((st = tni_kv_view_read(&a->view, r->at, r->left)))
        return st;
    for (uint32_t i = 0; i < workers + servers; i++)
        a->open += answers(&a->view.members[i]);
    a->known = true;
    a->tried = false;
    a->again_ns = 0;
    return TN_OK;
}

static void member_take(asker *a, uint64_t node, const void *payload, uint64_t bytes)
{
    const tni_kv_member *m = node < TNI_KV_UNKNOWN ? tni_kv_view_member(&a->view, (uint16_t)node) : NULL;
    said *s = m ? &a->members[m - a->view.members] : NULL;

    if (!s || s->text || !answers(m) || bytes > TNI_KV_REPORT_MAX || !(s->text = tni_alloc(bytes)))
        return;
    memcpy(s->text, payload, bytes);
    s->bytes = bytes;
    a->open--;
}

static uint64_t ask_receive(void *arg, const uint8_t *header, const void *payload, uint64_t bytes,
                            uint64_t now)
{
    tni_kv_reader r = {payload, bytes, false};
    asker *a = arg;
    tni_kv_header h;

    (void)now;
    if (tni_kv_decode(header, payload, bytes, &h) || h.type != TNI_KV_REPORT || h.sequence != a->token ||
        h.from != TNI_KV_SCHEDULER_NODE || a->status)
        return TNI_KV_NEVER;
    if (a->known) {
        member_take(a, h.key, payload, bytes);
    } else if (h.key == TNI_KV_SCHEDULER_NODE && (a->status = scheduler_read(a, &r))) {
        tni_error_get(&a->error);
    }
    return TNI_KV_NEVER;
}

static uint64_t ask_step(void *arg, uint64_t now)
{
    asker *a = arg;

    a->end_ns = now >= a->end_ns ? 0 : a->end_ns;
    if (a->end_ns && now >= a->again_ns) {
        if (!a->known)
            ask(a, TNI_KV_SCHEDULER_NODE);
        for (uint32_t i = 0; a->known && i < a->view.workers + a->view.servers; i++)
            if (answers(&a->view.members[i]) && !a->members[i].text)
                ask(a, tni_kv_view_node(&a->view, i));
        a->tried = true;
        a->again_ns = now + AGAIN_NS;
    }
    return a->again_ns < a->end_ns ? a->again_ns : a->end_ns;
}

static const tni_kv_view *ask_view(void *arg)
{
    return &((asker *)arg)->alone;
}

static bool ask_over(void *arg)
{
    const asker *a = arg;

    return a->status || !a->end_ns || (a->known && !a->open);
}

/* ---- JSON ---- */

static void text_add(tni_str *out, const void *text, uint64_t bytes)
{
    const char *c = text;
    uint64_t i = 0;

    while (i < bytes && c[i] > ' ' && c[i] < 127)
        i++;
    (void)tni_str_add_json(out, i < bytes || !bytes ? "" : c, i < bytes ? 0 : bytes);
}

static void member_json(const asker *a, uint32_t index, tni_str *out)
{
    static const char *const states[] = {"missing", "alive", "dead", "ended", "gone", "left"};
    const tni_kv_member *m = &a->view.members[index];
    const said *s = &a->members[index];
    tni_kv_reader r = {s->text, s->bytes, false};
    tni_kv_report report;
    char name[24];

    (void)tni_str_addf(out,
                       ",{\"node\":\"%s\",\"state\":\"%s\",\"incarnation\":%u,\"heard_ms\":%u,\"address\":",
                       tni_kv_node_name(tni_kv_view_node(&a->view, index), name), states[m->state],
                       m->incarnation, s->heard_ms);
    text_add(out, m->address, m->address_bytes);
    if (s->text && !tni_kv_report_read(&r, &report)) {
        (void)tni_str_add(out, ",\"answered\":true,");
        tni_kv_report_json(&report, index < a->view.workers ? "keys" : "late", out);
    } else {
        (void)tni_str_add(out, ",\"answered\":false");
    }
    (void)tni_str_add(out, "}");
}

static void job_json(const asker *a, tni_str *out)
{
    static const struct {
        uint32_t flag;
        const char *name;
    } flags[] = {{TNI_KV_STARTED, "started"},       {TNI_KV_JOB_FAILED, "failed"},
                 {TNI_KV_ALL_ENDED, "all_ended"},   {TNI_KV_JOB_DONE, "done"},
                 {TNI_KV_RECOVERING, "recovering"}, {TNI_KV_ASYNC, "async"}};
    const tni_kv_view *v = &a->view;
    char name[24];

    (void)tni_str_addf(
        out, "{\"job\":\"%016" PRIx64 "\",\"view\":%u,\"workers\":%u,\"servers\":%u,\"barriers\":%u", a->job,
        v->number, v->workers, v->servers, v->released);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        (void)tni_str_addf(out, ",\"%s\":%s", flags[i].name, v->flags & flags[i].flag ? "true" : "false");
    (void)tni_str_addf(out, ",\"failed_by\":\"%s\",\"step\":%" PRIu64 ",\"nodes\":[",
                       v->flags & TNI_KV_JOB_FAILED ? tni_kv_node_name(v->failed, name) : "", v->cut);
    (void)tni_str_addf(out,
                       "{\"node\":\"scheduler\",\"state\":\"alive\",\"incarnation\":%u,\"heard_ms\":0,"
                       "\"address\":",
                       v->scheduler);
    (void)tni_str_add(out, "\"\",\"answered\":true,");
    tni_kv_report_json(&a->report, NULL, out);
    (void)tni_str_add(out, "}");
    for (uint32_t i = 0; i < v->workers + v->servers; i++)
        member_json(a, i, out);
    (void)tni_str_add(out, "],\"about\":");
    tni_kv_report_about(out);
    (void)tni_str_add(out, "}");
}

/* ---- the question ---- */

tn_status tni_kv_ask_with(tni_kv_setup *setup, uint64_t timeout_ns, tni_str *out)
{
    asker a = {.token = tni_kv_birth(), .job = setup->settings.job};
    const tni_kv_role role = {
        .arg = &a, .receive = ask_receive, .step = ask_step, .view = ask_view, .over = ask_over};
    tni_kv_post *post = NULL;
    tn_status st = tni_kv_post_open(setup, TNI_KV_WORKER, &post);

    if (st)
        return st;
    tni_kv_post_host(post, &a.host);
    a.end_ns = setup->clock() + timeout_ns;
    st = tni_kv_post_run(post, &role);
    if (!st && (st = a.status))
        tni_error_set(&a.error);
    if (!st && !a.known)
        st = tni_error(TN_E_TIMEOUT, "scheduler %.100s: no answer for %.1f s%s%.100s", setup->scheduler,
                       (double)timeout_ns / 1e9, *tni_kv_post_why(post) ? "; " : "", tni_kv_post_why(post));
    if (!st)
        job_json(&a, out);
    tni_kv_post_close(post, 0);
    for (uint32_t i = 0; a.members && i < a.view.workers + a.view.servers; i++)
        tni_free(a.members[i].text);
    tni_free(a.members);
    tni_kv_view_fini(&a.view);
    return st ? st : out->status;
}

tn_status tni_kv_ask(tni_context *c, uint32_t timeout_ms, tni_str *out)
{
    uint64_t timeout_ns;
    tni_kv_setup setup;
    tn_status st = tni_kv_setup_read(c, TNI_KV_WORKER, false, &setup);

    if (st)
        return st;
    setup.settings.job = 0;
    timeout_ns = timeout_ms                                       ? timeout_ms * 1000000ull
                 : setup.settings.control_timeout_ns < TIMEOUT_NS ? setup.settings.control_timeout_ns
                                                                  : TIMEOUT_NS;
    st = tni_kv_ask_with(&setup, timeout_ns, out);
    memset(setup.secret, 0, sizeof setup.secret);
    return st;
}
