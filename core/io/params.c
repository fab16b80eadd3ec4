/*
 * Named lists of arrays: what a .params file holds. Order is that of the file; a map finds names.
 */
#include "io/internal.h"

tn_status tni_params_create(tni_params **out)
{
    tni_params *p = tni_zalloc(sizeof *p);
    tn_status st;

    if (!p)
        return TN_E_NOMEM;
    st = tni_map_create(TN_PARAMS_ENTRIES_MAX, &p->index);
    if (st) {
        tni_free(p);
        return st;
    }
    *out = p;
    return TN_OK;
}

void tni_params_destroy(tni_params *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->count; i++) {
        tni_free(p->names[i]);
        tni_array_release(p->arrays[i]);
    }
    tni_free(p->names);
    tni_free(p->arrays);
    tni_map_destroy(p->index);
    tni_free(p);
}

static tn_status grow(tni_params *p)
{
    size_t capacity = p->capacity ? p->capacity * 2 : 16;
    char **names;
    tni_array **arrays;

    if (p->count >= TN_PARAMS_ENTRIES_MAX)
        return tni_error(TN_E_ARG, "more than %u arrays in one list", TN_PARAMS_ENTRIES_MAX);
    names = tni_realloc(p->names, capacity * sizeof *names);
    if (!names)
        return TN_E_NOMEM;
    p->names = names;
    arrays = tni_realloc(p->arrays, capacity * sizeof(*arrays));
    if (!arrays)
        return TN_E_NOMEM;
    p->arrays = arrays;
    p->capacity = capacity;
    return TN_OK;
}

tn_status tni_params_add(tni_params *p, const char *name, tni_array *a)
{
    char *copy;
    tn_status st = TN_OK;

    if (name && strlen(name) > TN_NAME_MAX)
        return tni_error(TN_E_ARG, "a name of %zu bytes, at most %d are allowed", strlen(name), TN_NAME_MAX);
    if (name && name[0] && tni_map_get(p->index, name, NULL))
        return tni_error(TN_E_KEY, "the name %.200s is there already", name);
    if (p->count == p->capacity && (st = grow(p)))
        return st;
    copy = tni_strdup(name ? name : "");
    if (!copy)
        return TN_E_NOMEM;
    if (copy[0])
        st = tni_map_set(p->index, copy, (void *)(uintptr_t)(p->count + 1));
    if (st) {
        tni_free(copy);
        return st;
    }
    p->named |= copy[0] != '\0';
    if (a)
        tni_array_retain(a);
    p->names[p->count] = copy;
    p->arrays[p->count++] = a;
    return TN_OK;
}

const char *tni_params_plain_name(const char *name)
{
    return !strncmp(name, "arg:", 4) || !strncmp(name, "aux:", 4) ? name + 4 : name;
}

static bool find(const tni_params *p, const char *prefix, const char *name, size_t *out)
{
    char full[TN_NAME_MAX + 8];
    void *at;
    int length = snprintf(full, sizeof full, "%s%s", prefix, name);

    if (length < 0 || (size_t)length >= sizeof full || !tni_map_get(p->index, full, &at))
        return false;
    *out = (size_t)(uintptr_t)at - 1;
    return true;
}

tn_status tni_params_get(const tni_params *p, const char *name, tni_array **out)
{
    size_t at;

    if (!find(p, "", name, &at) && !find(p, "arg:", name, &at) && !find(p, "aux:", name, &at))
        return tni_error(TN_E_KEY, "there is no array %.200s", name);
    if (!p->arrays[at])
        return tni_error(TN_E_KEY, "the array %.200s has no value", name);
    *out = p->arrays[at];
    return TN_OK;
}
