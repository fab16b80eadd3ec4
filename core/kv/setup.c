/* What the options kvstore.* say of a process, and which of them do not go together. */
#include "kv/kv.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kv/address.h"
#include "kv/group.h"
#include "kv/post.h"
#include "kv/process.h"

#ifdef TN_TEST_SWITCHES
uint64_t (*tni_kv_clock)(void) = tni_clock_ns;
#define CLOCK tni_kv_clock
#else
#define CLOCK tni_clock_ns
#endif

#define LATE_NS 5000000u /* of what nobody waits for; within it a round of little is mostly over */

/* ---- numbers ---- */

typedef struct number_row { /* a member of tni_kv_settings, and what one of the option is in its unit */
    const char *key;
    uint16_t at;
    uint32_t times;
} number_row;

static const number_row numbers[] = {
    {"kvstore.heartbeat", offsetof(tni_kv_settings, beat_ns), 1000000},
    {"kvstore.suspect", offsetof(tni_kv_settings, suspect_ns), 1000000},
    {"kvstore.dead", offsetof(tni_kv_settings, dead_ns), 1000000},
    {"kvstore.timeout", offsetof(tni_kv_settings, timeout_ns), 1000000},
    {"kvstore.control_timeout", offsetof(tni_kv_settings, control_timeout_ns), 1000000},
    {"kvstore.retry_ms", offsetof(tni_kv_settings, retry_ns), 1000000},
    {"kvstore.bigarray_bound", offsetof(tni_kv_settings, bound), 1},
    {"kvstore.part_bytes", offsetof(tni_kv_settings, part_bytes), 1},
    {"kvstore.credit_bytes", offsetof(tni_kv_settings, credit_bytes), 1},
    {"kvstore.landing_bytes", offsetof(tni_kv_settings, landing_bytes), 1},
    {"kvstore.server_bytes", offsetof(tni_kv_settings, server_bytes), 1},
    {"kvstore.replay_bytes", offsetof(tni_kv_settings, replay_bytes), 1},
};

static void numbers_read(const tni_options *o, tni_kv_settings *s)
{
    uint64_t flying = s->part_bytes;

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        tni_kv_member_set((char *)s + numbers[i].at,
                          (uint64_t)tni_option_int(o, numbers[i].key) * numbers[i].times, 8);
    flying = s->part_bytes * (uint64_t)tni_option_int(o, "kvstore.inflight_parts");
    s->credit_bytes = flying < s->credit_bytes ? flying : s->credit_bytes;
}

static uint32_t choice(const char *text, const char *const *names)
{
    uint32_t i = 0;

    while (names[i] && strcmp(names[i], text) != 0)
        i++;
    return i;
}

/* "fail", "wait:SECONDS", "shrink" or "shrink:LEAST". */
static tn_status loss_read(const tni_options *o, const char *key, bool shrinks, tni_kv_loss *out,
                           uint64_t *wait_ns, uint32_t *least)
{
    const char *text = tni_option_text(o, key);
    double seconds = 0;
    uint64_t count = 0;

    *out = TNI_KV_LOSS_FAIL;
    if (!strcmp(text, "fail"))
        return TN_OK;
    if (!strncmp(text, "wait:", 5) && tni_parse_f64(text + 5, &seconds) && seconds > 0 && seconds <= 1e6) {
        *out = TNI_KV_LOSS_WAIT;
        *wait_ns = (uint64_t)(seconds * 1e9);
        return TN_OK;
    }
    if (shrinks &&
        (!strcmp(text, "shrink") || (!strncmp(text, "shrink:", 7) && tni_parse_u64(text + 7, &count) &&
                                     count > 0 && count <= TNI_KV_RANKS_MAX))) {
        *out = TNI_KV_LOSS_SHRINK;
        *least = (uint32_t)count;
        return TN_OK;
    }
    return tni_error(TN_E_ATTR, "%s is \"%.60s\"; it may be fail%s wait:SECONDS", key, text,
                     shrinks ? ", shrink, shrink:LEAST_WORKERS or" : " or");
}

/* "none" or "snapshot:STEPS". */
static tn_status durability_read(const tni_options *o, tni_kv_settings *out)
{
    const char *text = tni_option_text(o, "kvstore.durability");

    if (!strcmp(text, "none"))
        return TN_OK;
    if (strncmp(text, "snapshot:", 9) != 0 || !tni_parse_u64(text + 9, &out->snapshot_steps) ||
        !out->snapshot_steps)
        return tni_error(TN_E_ATTR, "kvstore.durability is \"%.60s\"; it may be none or snapshot:STEPS",
                         text);
    if (!*tni_option_text(o, "kvstore.state_folder"))
        return tni_error(TN_E_ATTR, "kvstore.durability is %.60s, which needs kvstore.state_folder", text);
    return TN_OK;
}

/* ---- contradictions ---- */

typedef struct clash {
    bool is;
    const char *text;
} clash;

static bool journal_of_nobody(const tni_options *o)
{
    return *tni_option_text(o, "kvstore.state_folder") && !*tni_option_text(o, "kvstore.job");
}

/* `worker`: it knows whether it is async. */
static tn_status clashes_check(const tni_options *o, const tni_kv_settings *s, bool worker)
{
    const bool dead_set = tni_option_is_set(o, "kvstore.dead");
    const clash all[] = {
        {!s->beat_ns && dead_set && s->dead_ns,
         "kvstore.heartbeat is 0, so nobody would be heard, but kvstore.dead is set"},
        {s->beat_ns && s->beat_ns > s->suspect_ns, "kvstore.heartbeat is longer than kvstore.suspect"},
        {s->dead_ns && s->suspect_ns > s->dead_ns, "kvstore.suspect is longer than kvstore.dead"},
        {s->workers_min > s->workers,
         "kvstore.on_worker_loss keeps more workers than kvstore.workers says there are"},
        {worker && !s->async && s->staleness != UINT32_MAX,
         "kvstore.staleness is for dist_async; in dist_sync nobody is behind"},
        {s->async && s->uneven == TNI_KV_DROP,
         "kvstore.uneven is drop, but the steps of dist_async do not end together"},
        {worker && tni_option_int(o, "kvstore.drift_check") && (s->async || s->uneven == TNI_KV_JOIN),
         "kvstore.drift_check compares workers that go in step to the end: not those of dist_async, or with "
         "kvstore.uneven = join"},
        {s->async && s->snapshot_steps && s->server_loss == TNI_KV_LOSS_FAIL,
         "kvstore.durability keeps snapshots, but kvstore.on_server_loss is fail: nobody would read them"},
        {journal_of_nobody(o),
         "kvstore.state_folder keeps the state of a job, which needs a name of its own: kvstore.job"},
    };

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].is)
            return tni_error(TN_E_ATTR, "%s", all[i].text);
    return TN_OK;
}

static tn_status counts_read(const tni_options *o, uint32_t ranks, tni_kv_settings *s)
{
    const int64_t workers = ranks ? ranks : tni_option_int(o, "kvstore.workers"),
                  servers = tni_option_int(o, "kvstore.servers"),
                  staleness = tni_option_int(o, "kvstore.staleness");

    if (workers > TNI_KV_RANKS_MAX || servers > TNI_KV_RANKS_MAX || servers < 1)
        return tni_error(TN_E_ATTR,
                         "kvstore.workers is %lld and kvstore.servers %lld; there may be 1 to %u of each",
                         (long long)workers, (long long)servers, TNI_KV_RANKS_MAX);
    s->workers = (uint32_t)workers;
    s->servers = (uint32_t)servers;
    s->staleness = staleness < 0 ? UINT32_MAX : (uint32_t)staleness;
    return TN_OK;
}

static tn_status settings_read(const tni_context *c, uint32_t ranks, bool worker, bool async,
                               tni_kv_settings *out)
{
    static const char *const uneven[] = {"pad", "drop", NULL};
    const tni_options *o = c->options;
    tni_kv_settings s = {.async = async,
                         .checked = !strcmp(tni_option_text(o, "kvstore.crc"), "on"),
                         .any_order = !tni_option_bool(o, "kvstore.deterministic")};
    uint32_t none = 0;
    tn_status st;

    numbers_read(o, &s);
    s.uneven = (tni_kv_uneven)choice(tni_option_text(o, "kvstore.uneven"), uneven);
    if ((st = counts_read(o, ranks, &s)) ||
        (st = loss_read(o, "kvstore.on_worker_loss", true, &s.worker_loss, &s.worker_wait_ns,
                        &s.workers_min)) ||
        (st = loss_read(o, "kvstore.on_server_loss", false, &s.server_loss, &s.server_wait_ns, &none)) ||
        (st = durability_read(o, &s)) || (st = clashes_check(o, &s, worker)))
        return st;
    s.late_ns = LATE_NS;
    if (!s.snapshot_steps || s.server_loss == TNI_KV_LOSS_FAIL)
        s.replay_bytes = 0; /* nobody comes back with anything */
    if (!s.beat_ns)
        s.dead_ns = 0;
    if (!s.dead_ns)
        tni_logf(&c->log, TN_LOG_WARNING,
                 "kvstore.heartbeat or kvstore.dead is 0: a process that dies is not noticed");
    *out = s;
    return TN_OK;
}

tn_status tni_kv_settings_read(const tni_context *c, bool async, tni_kv_settings *out)
{
    return settings_read(c, 0, true, async, out);
}

/* ---- the secret ---- */

#define SECRET_TEXT_MAX 128u

static int32_t hex_of(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c ? strchr(digits, c >= 'A' && c <= 'F' ? c + 32 : c) : NULL;

    return at ? (int32_t)(at - digits) : -1;
}

static bool hex_read(const char *text, uint8_t out[TN_TRANSPORT_SECRET_BYTES])
{
    for (uint32_t i = 0; i < TN_TRANSPORT_SECRET_BYTES; i++) {
        const int32_t high = hex_of(text[2 * i]), low = high < 0 ? -1 : hex_of(text[2 * i + 1]);

        if (low < 0)
            return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

/* ZeroMQ's RFC 32: five digits of base 85 are four bytes. */
static bool z85_read(const char *text, uint8_t out[TN_TRANSPORT_SECRET_BYTES])
{
    static const char digits[] =
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

    for (uint32_t i = 0; i < TN_TRANSPORT_SECRET_BYTES / 4; i++) {
        uint64_t value = 0;

        for (uint32_t k = 0; k < 5; k++) {
            const char *at = strchr(digits, text[5 * i + k]);

            if (!at || !*at)
                return false;
            value = value * 85 + (uint64_t)(at - digits);
        }
        if (value > UINT32_MAX)
            return false;
        for (uint32_t k = 0; k < 4; k++)
            out[4 * i + k] = (uint8_t)(value >> (24 - 8 * k));
    }
    return true;
}

static tn_status secret_open(const char *path, int *out)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat s;
    tn_status st = TN_OK;

    if (fd < 0 || fstat(fd, &s))
        st = tni_error(TN_E_IO, "kvstore.secret_file: %s: %s", path, strerror(errno));
    else if (!S_ISREG(s.st_mode))
        st = tni_error(TN_E_IO, "kvstore.secret_file: %s is no file", path);
    else if (s.st_mode & 077)
        st = tni_error(TN_E_STATE, "kvstore.secret_file: others may read %s (mode %03o); chmod 600 ends that",
                       path, (unsigned)s.st_mode & 0777u);
    else if (s.st_uid != geteuid())
        st = tni_error(TN_E_STATE, "kvstore.secret_file: %s belongs to another user", path);
    if (st && fd >= 0)
        (void)close(fd);
    else
        *out = fd;
    return st;
}

static tn_status secret_read(const char *path, uint8_t out[TN_TRANSPORT_SECRET_BYTES])
{
    char text[SECRET_TEXT_MAX + 1] = "";
    size_t length;
    int fd = -1;
    ssize_t got;
    tn_status st = secret_open(path, &fd);

    if (st)
        return st;
    got = read(fd, text, SECRET_TEXT_MAX);
    (void)close(fd);
    length = got > 0 ? strcspn(text, "\r\n") : 0;
    text[length] = '\0';
    if (got < 0 || !((length == 64 && hex_read(text, out)) || (length == 40 && z85_read(text, out))))
        st =
            tni_error(TN_E_FORMAT,
                      "kvstore.secret_file: %s has not 32 bytes as 64 hexadecimal digits or 40 of Z85", path);
    memset(text, 0, sizeof text);
    return st;
}

/* All processes of a job decide alike: by the scheduler's host. */
static tn_status security_read(const tni_options *o, const char *host, tni_kv_setup *s)
{
    const char *file = tni_option_text(o, "kvstore.secret_file"),
               *how = tni_option_text(o, "kvstore.security");

    if (!strcmp(how, "none")) {
        if (*file)
            return tni_error(TN_E_ATTR, "kvstore.security is none, but kvstore.secret_file is set");
        s->insecure = true;
        tni_logf(s->log, TN_LOG_WARNING,
                 "kvstore.security is none: whoever reaches this process can read and change the model");
        return TN_OK;
    }
    if (!strcmp(how, "auto") && tni_kv_host_loopback(host))
        return TN_OK;
    if (!*file)
        return !strcmp(how, "curve")
                   ? tni_error(TN_E_ATTR, "kvstore.security is curve, which needs kvstore.secret_file")
                   : tni_error(TN_E_ATTR,
                               "kvstore.scheduler is %.100s, which others can reach: kvstore.secret_file is "
                               "needed, or kvstore.security = none",
                               host);
    s->secured = true;
    return secret_read(file, s->secret);
}

/* ---- places, transport ---- */

/* The scheduler's port is known to all; servers take free ones. */
static tn_status places_read(const tni_options *o, uint32_t role, const char *scheduler, uint64_t port,
                             tni_kv_setup *s)
{
    const char *own = tni_option_text(o, "kvstore.address"),
               *interface = tni_option_text(o, "kvstore.interface");
    char host[TN_TRANSPORT_ADDRESS_MAX];
    tn_status st;

    if (!*scheduler)
        scheduler = "127.0.0.1";
    if ((st = tni_kv_place_text(scheduler, port, s->scheduler, sizeof s->scheduler)) || role == TNI_KV_WORKER)
        return st;
    if (*own)
        (void)snprintf(host, sizeof host, "%s", own);
    else if (*interface)
        st = tni_kv_host_of_interface(interface, host, sizeof host);
    else if (role == TNI_KV_SCHEDULER)
        (void)snprintf(host, sizeof host, "%s", scheduler);
    else if (tni_kv_host_loopback(scheduler))
        (void)snprintf(host, sizeof host, "127.0.0.1");
    else
        st = tni_kv_host_of_route(scheduler, host, sizeof host);
    return st ? st
              : tni_kv_place_text(host, role == TNI_KV_SCHEDULER ? port : 0, s->listen, sizeof s->listen);
}

/* A transport beside the far one, if a plugin has it and it can be waited for together with others. */
static tn_status carrier_find(tni_context *c, tni_kv_carriers *all, uint32_t carrier)
{
    const char *id = tni_kv_carrier_id[carrier];
    const tn_capability *table;
    tni_plugin *plugin;
    const tn_status st = tni_registry_load_providers(c->plugins, "transport", id);

    for (size_t i = 0; !st && tni_registry_capability(c->plugins, TN_KIND_TRANSPORT, i, &table, &plugin); i++)
        if (!strcmp(table->id, id) &&
            TN_OFFERS((const tn_transport_ops *)(const void *)table, tn_transport_ops, descriptor)) {
            all->ops[carrier] = (const tn_transport_ops *)(const void *)table;
            all->plugin[carrier] = plugin->self;
        }
    return st;
}

/* auto: better transports beside the far one, those that are there. The scheduler is known by an address of
 * the far one alone; curve asks for what encrypts, and so does a secret: RDMA does not. */
static tn_status transport_find(tni_context *c, uint32_t role, tni_kv_setup *s)
{
    const char *name = tni_option_text(c->options, "kvstore.transport");
    const bool chosen = strcmp(name, "auto") != 0;
    tni_kv_carriers *all = &s->carriers;
    tni_plugin *plugin;
    tn_status st = tni_registry_transport(c->plugins, chosen ? name : "zmq", &s->ops, &plugin);

    if (st)
        return st;
    s->plugin = plugin->self;
    if (chosen || role == TNI_KV_SCHEDULER || !TN_OFFERS(s->ops, tn_transport_ops, descriptor) ||
        !strcmp(tni_option_text(c->options, "kvstore.security"), "curve"))
        return TN_OK;
    *all = (tni_kv_carriers){.ops = {s->ops}, .plugin = {s->plugin}, .log = s->log};
    for (uint32_t i = TNI_KV_NEAR; !st && i < (s->secured ? TNI_KV_RDMA : TNI_KV_CARRIERS); i++)
        st = carrier_find(c, all, i);
    if (!st && (all->ops[TNI_KV_NEAR] || all->ops[TNI_KV_RDMA]))
        s->ops = &tni_kv_near_ops;
    return st;
}

/* "drop=5%" */
static tn_status fault_read(const tni_options *o, uint32_t *out)
{
    const char *text = tni_option_text(o, "kvstore.fault");
    char number[32];
    double percent;

    if (!*text)
        return TN_OK;
    (void)snprintf(number, sizeof number, "%.*s", (int)strcspn(text + strcspn(text, "="), "%"),
                   text + strcspn(text, "="));
    if (strncmp(text, "drop=", 5) != 0 || strcmp(text + strcspn(text, "%"), "%") != 0 ||
        !tni_parse_f64(number + 1, &percent) || !(percent >= 0 && percent <= 100))
        return tni_error(TN_E_ATTR, "kvstore.fault is \"%.60s\"; it may be drop=NUMBER%%", text);
    *out = (uint32_t)(percent * 10000);
    return TN_OK;
}

void tni_kv_setup_job(tni_kv_setup *s, const char *name)
{
    const uint32_t counts[2] = {s->settings.workers, s->settings.servers};

    s->settings.job =
        *name ? tni_hash_bytes(3, name, strlen(name))
              : tni_hash_bytes(tni_hash_bytes(5, counts, sizeof counts), s->scheduler, strlen(s->scheduler));
    s->settings.job |= 1u;
}

tn_status tni_kv_setup_read(tni_context *c, uint32_t role, bool async, tni_kv_setup *out)
{
    const tni_options *o = c->options;
    const char *host = tni_option_text(o, "kvstore.scheduler");
    uint64_t port = (uint64_t)tni_option_int(o, "kvstore.scheduler_port");
    tni_kv_meeting meeting;
    tni_kv_setup s = {.priority = tni_option_bool(o, "kvstore.priority"),
                      .lanes = (uint32_t)tni_option_int(o, "kvstore.lanes"),
                      .verbose = (uint32_t)tni_option_int(o, "kvstore.verbose"),
                      .rank = (int32_t)tni_option_int(o, "kvstore.rank"),
                      .folder = tni_option_text(o, "kvstore.state_folder"),
                      .log = &c->log,
                      .clock = CLOCK};
    tn_status st = tni_kv_meet(o, &meeting);

    if (meeting.ranks) {
        host = meeting.host;
        port = meeting.port;
        s.launched = true;
        s.rank = role == TNI_KV_WORKER ? (int32_t)meeting.rank : -1;
    }
    if (st || (st = settings_read(c, meeting.ranks, role == TNI_KV_WORKER, async, &s.settings)) ||
        (st = fault_read(o, &s.drop)) || (st = security_read(o, host, &s)) ||
        (st = places_read(o, role, host, port, &s)) || (st = transport_find(c, role, &s)))
        return st;
    s.settings.verbose = s.verbose;
    tni_kv_setup_job(&s, tni_option_text(o, "kvstore.job"));
    *out = s;
    if (out->ops == &tni_kv_near_ops)
        out->plugin = &out->carriers;
    return TN_OK;
}
