/*
 * Automatic names: the operator's name in lower case and a counter, "convolution0", as MXNet gives them. Each
 * thread counts for itself; a pushed prefix opens a scope with counters of its own.
 */
#include <string.h>

#include "graph/walk.h"

#define SCOPES_MAX 256u /* prefixes within each other */

typedef struct name_scope {
    struct name_scope *outer;
    char *prefix;
    tni_map *counters; /* hint -> count, as a pointer-sized integer */
    uint32_t depth;
} name_scope;

static _Thread_local name_scope *scopes; /* the innermost */

static void scope_destroy(name_scope *s)
{
    if (!s)
        return;
    tni_map_destroy(s->counters);
    tni_free(s->prefix);
    tni_free(s);
}

static void scopes_fini(void *unused)
{
    (void)unused;
    while (scopes) {
        name_scope *outer = scopes->outer;

        scope_destroy(scopes);
        scopes = outer;
    }
}

static tn_status scope_push(const char *prefix)
{
    name_scope *s = tni_zalloc(sizeof *s);
    tn_status st = s ? TN_OK : TN_E_NOMEM;

    if (st || (st = tni_map_create(TN_OPERATORS_MAX, &s->counters)))
        goto cleanup;
    if (!(s->prefix = tni_strdup(prefix)) || (!scopes && tni_thread_on_exit(scopes_fini, NULL))) {
        st = TN_E_NOMEM;
        goto cleanup;
    }
    s->outer = scopes;
    s->depth = scopes ? scopes->depth + 1 : 0;
    scopes = s;
    return TN_OK;

cleanup:
    scope_destroy(s);
    return st;
}

tn_status tni_symbol_prefix_push(const char *prefix)
{
    tn_status st;

    if (!prefix || strlen(prefix) > TN_NAME_MAX)
        return tni_error(TN_E_ARG, "a prefix is missing or longer than %d bytes", TN_NAME_MAX);
    if (!scopes && (st = scope_push("")))
        return st;
    if (scopes->depth >= SCOPES_MAX)
        return tni_error(TN_E_STATE, "more than %u name prefixes within each other", SCOPES_MAX);
    return scope_push(prefix);
}

void tni_symbol_prefix_pop(void)
{
    name_scope *s = scopes;

    if (!s || !s->outer)
        return;
    scopes = s->outer;
    scope_destroy(s);
}

tn_status tni_name_auto(const char *op, char **out)
{
    void *count = NULL;
    char *hint;
    tni_str name;
    tn_status st;

    if (!scopes && (st = scope_push("")))
        return st;
    hint = tni_strdup(op);
    if (!hint)
        return TN_E_NOMEM;
    for (char *p = hint; *p; p++)
        *p = (char)(*p >= 'A' && *p <= 'Z' ? *p - 'A' + 'a' : *p);
    tni_map_get(scopes->counters, hint, &count);
    tni_str_init(&name, 2 * TN_NAME_MAX);
    tni_str_addf(&name, "%s%s%llu", scopes->prefix, hint, (unsigned long long)(uintptr_t)count);
    if (!(st = name.status) && !(st = tni_str_take(&name, out)) &&
        (st = tni_map_set(scopes->counters, hint, (void *)((uintptr_t)count + 1)))) {
        tni_free(*out);
        *out = NULL;
    }
    tni_str_fini(&name);
    tni_free(hint);
    return st;
}
