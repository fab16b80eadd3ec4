/*
 * Who started this process says its rank, and how many there are: one table of variables, from the most to
 * the least reliable. What two of them say alike is fine; a contradiction is an error that names both.
 *
 * Of dist types these variables also say where the scheduler is to be: at MASTER_ADDR and MASTER_PORT, else
 * on the first host, at a port that follows from the job's number.
 */
#include "kv/group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kv/address.h"

typedef struct launcher {
    const char *name, *rank, *ranks, *host, *port; /* NULL: it has no such variable */
    bool alone; /* counts only if no other one says anything: in a batch script that calls mpirun these are
                   the script's own, and those of each node's daemon */
} launcher;

static const launcher launchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", false},
    {"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL, NULL, false},
    {"pmix", "PMIX_RANK", NULL, NULL, NULL, false},
    {"pmi", "PMI_RANK", "PMI_SIZE", NULL, NULL, false},
    {"slurm", "SLURM_PROCID", "SLURM_NTASKS", NULL, NULL, true},
};
enum { LAUNCHERS = sizeof launchers / sizeof *launchers };

typedef struct said { /* one of the two numbers */
    int64_t value;    /* -1: nobody */
    const char *by;
} said;

static tn_status number_take(const char *variable, const char *text, said *out)
{
    uint64_t value = 0;

    if (!text || !*text)
        return TN_OK;
    if (!tni_parse_u64(text, &value) || value > INT32_MAX)
        return tni_error(TN_E_ATTR, "%s is \"%.40s\", a number is needed", variable, text);
    if (out->value >= 0 && out->value != (int64_t)value)
        return tni_error(TN_E_ATTR, "%s says %lld, but %s says %llu: kvstore.rendezvous names one of them",
                         out->by, (long long)out->value, variable, (unsigned long long)value);
    if (out->value < 0)
        *out = (said){(int64_t)value, variable};
    return TN_OK;
}

/* A lone RANK or so is anybody's: both numbers belong to a launcher that has both. */
static tn_status launcher_read(const launcher *l, said *rank, said *ranks, char *root, size_t size)
{
    const char *number = getenv(l->rank), *count = l->ranks ? getenv(l->ranks) : NULL;
    const char *host = l->host ? getenv(l->host) : NULL, *port = l->port ? getenv(l->port) : NULL;
    uint64_t value = 0; /* a port that is no number is one where nobody listens */
    tn_status st;

    if (!number || (l->ranks && !count) || (l->alone && rank->value >= 0))
        return TN_OK;
    if ((st = number_take(l->rank, number, rank)) || (l->ranks && (st = number_take(l->ranks, count, ranks))))
        return st;
    if (!host || !port || !*host || !*port || *root)
        return TN_OK;
    (void)tni_parse_u64(port, &value);
    return tni_kv_place_text(host, value, root, size);
}

/* The options, which DMLC_… variables set, too. */
static tn_status own_read(const tni_options *o, said *rank, said *ranks, char *root, size_t size)
{
    const char *host = tni_option_text(o, "kvstore.scheduler");
    const int64_t number = tni_option_int(o, "kvstore.rank");

    if (number >= 0)
        *rank = (said){number, "kvstore.rank"};
    if (tni_option_is_set(o, "kvstore.workers"))
        *ranks = (said){tni_option_int(o, "kvstore.workers"), "kvstore.workers"};
    return *host ? tni_kv_place_text(host, (uint64_t)tni_option_int(o, "kvstore.scheduler_port"), root, size)
                 : TN_OK;
}

tn_status tni_kv_rendezvous(const tni_options *o, tni_kv_place *out)
{
    const char *only = tni_option_text(o, "kvstore.rendezvous");
    const bool all = !strcmp(only, "auto");
    tni_kv_place place = {-1, -1, ""};
    said rank = {-1, ""}, ranks = {-1, ""};
    tn_status st = TN_OK;

    if (all || !strcmp(only, "own"))
        st = own_read(o, &rank, &ranks, place.root, sizeof place.root);
    for (size_t i = 0; i < LAUNCHERS && !st; i++)
        if (all || !strcmp(only, launchers[i].name))
            st = launcher_read(&launchers[i], &rank, &ranks, place.root, sizeof place.root);
    if (!st && ranks.value >= 0 && rank.value >= ranks.value)
        st = tni_error(TN_E_ATTR, "%s says rank %lld, but %s says that there are %lld", rank.by,
                       (long long)rank.value, ranks.by, (long long)ranks.value);
    if (st)
        return st;
    place.rank = rank.value;
    place.ranks = ranks.value;
    *out = place;
    return TN_OK;
}

/* ---- dist types ---- */

#define PORT_FIRST 10240u /* systems give away higher ones by themselves */
#define PORTS 20480u

static bool says(const char *variable, int64_t value)
{
    const char *text = getenv(variable);
    uint64_t number;

    return text && tni_parse_u64(text, &number) && number == (uint64_t)value;
}

/* Of what tells this job from others on the same hosts. 0: nothing does. */
static uint64_t job_hash(void)
{
    static const char *const names[] = {"PMIX_NAMESPACE", "SLURM_JOB_ID", "SLURM_STEP_ID", "PMI_JOBID"};
    uint64_t hash = 0;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = getenv(names[i]);

        if (text && *text)
            hash = tni_hash_bytes(hash + i + 1, text, strlen(text));
    }
    return hash;
}

/* The first one of Slurm's list: of "n[01-04,7]-ib,m2" it is n01-ib. */
static bool host_first(const char *list, char *out, size_t size)
{
    const size_t name = strcspn(list, "[,");
    const char *number = list + name + (list[name] == '['), *end = strchr(number, ']');
    const size_t digits = strspn(number, "0123456789");
    int length;

    if (list[name] != '[')
        length = snprintf(out, size, "%.*s", (int)name, list);
    else if (!end || !digits || !strchr("-,]", number[digits]) || end[1 + strcspn(end + 1, ",[")] == '[')
        return false;
    else
        length = snprintf(out, size, "%.*s%.*s%.*s", (int)name, list, (int)digits, number,
                          (int)strcspn(end + 1, ","), end + 1);
    return length > 0 && (size_t)length < size;
}

/* torchrun itself listens at MASTER_PORT where it says that its agent does: ours is the next one. */
static tn_status master_read(tni_kv_meeting *m, bool *found)
{
    const char *host = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT"),
               *agent = getenv("TORCHELASTIC_USE_AGENT_STORE");

    *found = host && *host && port && *port;
    if (!*found)
        return TN_OK;
    if (strlen(host) >= sizeof m->host || !tni_parse_u64(port, &m->port) || !m->port || m->port > 65534)
        return tni_error(TN_E_ATTR,
                         "MASTER_ADDR is \"%.60s\" and MASTER_PORT \"%.40s\": a host and a port from "
                         "1 to 65534 are needed",
                         host, port);
    m->port += agent && !strcmp(agent, "True");
    (void)snprintf(m->host, sizeof m->host, "%s", host);
    return TN_OK;
}

static tn_status place_find(tni_kv_meeting *m)
{
    static const char *const here[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "LOCAL_WORLD_SIZE", "MPI_LOCALNRANKS"};
    const bool slurm = says("SLURM_PROCID", m->rank) && says("SLURM_NTASKS", m->ranks);
    const char *list = slurm ? getenv("SLURM_STEP_NODELIST") : NULL;
    const uint64_t hash = job_hash();
    bool found, one = m->ranks == 1 || (slurm && says("SLURM_STEP_NUM_NODES", 1));
    const tn_status st = master_read(m, &found);

    if (st || found)
        return st;
    for (size_t i = 0; i < sizeof here / sizeof *here; i++)
        one = one || says(here[i], m->ranks);
    m->port = PORT_FIRST + (m->ranks == 1 ? hash + (uint64_t)getpid() : hash) % PORTS;
    if (one && (hash || m->ranks == 1))
        (void)snprintf(m->host, sizeof m->host, "127.0.0.1");
    else if (!hash || !list || !host_first(list, m->host, sizeof m->host))
        return tni_error(
            TN_E_ATTR,
            "rank %u of %u: nothing says where rank 0 is; MASTER_ADDR and MASTER_PORT of all ranks "
            "can, or start the job with `tenon launch`",
            m->rank, m->ranks);
    return TN_OK;
}

tn_status tni_kv_meet(const tni_options *o, tni_kv_meeting *out)
{
    tni_kv_meeting m = {0};
    tni_kv_place place;
    tn_status st;

    *out = m;
    if (tni_option_is_set(o, "kvstore.scheduler") || tni_option_is_set(o, "kvstore.scheduler_port") ||
        tni_option_int(o, "kvstore.rank") >= 0 || strcmp(tni_option_text(o, "kvstore.role"), "worker") != 0)
        return TN_OK;
    if ((st = tni_kv_rendezvous(o, &place)) || place.rank < 0 || place.ranks < 0)
        return st;
    m.rank = (uint32_t)place.rank;
    m.ranks = (uint32_t)place.ranks;
    if (!(st = place_find(&m)))
        *out = m;
    return st;
}
