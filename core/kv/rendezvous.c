/*
 * Who started this process says its rank, and how many there are: one table of variables, from the most to
 * the least reliable. What two of them say alike is fine; a contradiction is an error that names both.
 */
#include "kv/group.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    tn_status st;

    if (!number || (l->ranks && !count) || (l->alone && rank->value >= 0))
        return TN_OK;
    if ((st = number_take(l->rank, number, rank)) || (l->ranks && (st = number_take(l->ranks, count, ranks))))
        return st;
    if (host && port && *host && *port && !*root)
        (void)snprintf(root, size, "%.255s:%.20s", host, port);
    return TN_OK;
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
    if (*host)
        (void)snprintf(root, size, "%.255s:%lld", host,
                       (long long)tni_option_int(o, "kvstore.scheduler_port"));
    return TN_OK;
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
