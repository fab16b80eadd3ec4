/*
 * The rules of a kernel for data types and storage types, such as "data:f32,f64", "weight:=data" or
 * "*:f32,row_sparse": by the names of the definition's arguments, or for all that no other row names.
 */
#include <string.h>

#include "compile/select.h"

/* Index that `name` has behind the variadic input `have` ("arg*"): "arg3" is 3, "arg*" is any, -2; -1: not
 * its. */
static int64_t variadic_index(const char *have, const char *name, size_t length)
{
    const size_t stem = strlen(have) - 1;
    int64_t index = 0;

    if (length <= stem || memcmp(have, name, stem) != 0)
        return -1;
    if (length == stem + 1 && name[stem] == '*')
        return -2;
    for (size_t i = stem; i < length; i++) {
        if (name[i] < '0' || name[i] > '9' || index > TN_NODE_INPUTS_MAX)
            return -1;
        index = index * 10 + (name[i] - '0');
    }
    return index;
}

/* True if argument `index` (inputs from 0, outputs from in_count) is called `name`. */
static bool argument_is(const tni_request *r, uint32_t index, const char *name, size_t length)
{
    const bool output = index >= r->in_count;
    const char *const *inputs = r->in_names ? r->in_names : r->def->op->inputs;
    const char *const *names = output ? r->def->op->outputs : inputs;
    uint32_t number;
    const int32_t at = output ? tn_op_argument(names, r->out_count, index - r->in_count, &number)
                              : tn_op_argument(names, r->in_count, index, &number);
    int64_t rest;

    if (at < 0)
        return false;
    if (number == UINT32_MAX)
        return strlen(names[at]) == length && !memcmp(names[at], name, length);
    rest = variadic_index(names[at], name, length);
    return rest == -2 || rest == (int64_t)number;
}

/* Index of the first argument called `name`; -1 none. */
static int64_t argument_find(const tni_request *r, const char *name, size_t length)
{
    for (uint32_t i = 0; i < r->in_count + r->out_count; i++)
        if (argument_is(r, i, name, length))
            return i;
    return -1;
}

static int32_t argument_dtype(const tni_request *r, int64_t index)
{
    if (index >= 0 && index < (int64_t)r->in_count)
        return r->in[index]->dtype;
    index -= r->in_count;
    return index >= 0 && index < (int64_t)r->out_count ? r->out[index]->dtype : TN_DTYPE_UNKNOWN;
}

static int32_t storage_of(const char *text, size_t length)
{
    for (int32_t t = TN_STORAGE_DENSE; t <= TN_STORAGE_CSR; t++)
        if (strlen(tni_storage_type_name(t)) == length && !memcmp(text, tni_storage_type_name(t), length))
            return t;
    return TN_STORAGE_UNKNOWN;
}

static int32_t dtype_of(const char *text, size_t length)
{
    int32_t dtype = TN_DTYPE_UNKNOWN;
    char name[16];

    if (length >= sizeof name)
        return TN_DTYPE_UNKNOWN;
    memcpy(name, text, length);
    name[length] = '\0';
    return tni_dtype_parse(name, &dtype) ? dtype : TN_DTYPE_UNKNOWN;
}

/* True if `dtype` is in the comma list `types`, of which "=name" means the dtype of another argument; or if
 * storage types alone are. */
bool tni_rule_allows(const tni_request *r, const char *types, int32_t dtype)
{
    bool named = !*types;

    while (*types) {
        const size_t length = strcspn(types, ",");
        const int32_t allowed = *types == '=' ? argument_dtype(r, argument_find(r, types + 1, length - 1))
                                              : dtype_of(types, length);

        if (allowed == dtype)
            return true;
        named |= storage_of(types, length) < 0;
        types += length + (types[length] == ',');
    }
    return !named;
}

/* The rule for argument `index`: its own or "*"; NULL: anything goes. */
const char *tni_kernel_rule(const tni_request *r, const tn_kernel *k, uint32_t index)
{
    const char *any = NULL;

    for (const char *const *t = k->types; t && *t; t++) {
        size_t length = strcspn(*t, ":");

        if (length == 1 && **t == '*')
            any = *t + 2;
        else if (argument_is(r, index, *t, length))
            return *t + length + 1;
    }
    return any;
}

static bool types_match(const tni_request *r, const tn_kernel *k, char *why, size_t size)
{
    uint32_t outputs = r->out_count;

    for (uint32_t i = 0; r->def->op->mutates && i < r->in_count && outputs; i++)
        outputs -= (uint32_t)tn_op_mutates(r->def->op, r->in_count, i);
    for (uint32_t i = 0; i < r->in_count + outputs; i++) {
        const char *rule = tni_kernel_rule(r, k, i);
        int32_t dtype = argument_dtype(r, i);

        if (!rule && tni_dtype_packed(dtype)) {
            snprintf(why, size, "%s %u is %s, which it does not name", i < r->in_count ? "input" : "output",
                     i < r->in_count ? i : i - r->in_count, tni_dtype_name(dtype));
            return false;
        }
        if (rule && !tni_rule_allows(r, rule, dtype)) {
            snprintf(why, size, "%s %u is %s, takes %s", i < r->in_count ? "input" : "output",
                     i < r->in_count ? i : i - r->in_count,
                     tni_dtype_name(dtype) ? tni_dtype_name(dtype) : "?", rule);
            return false;
        }
    }
    return true;
}

/* Storage types in the comma list `types` (bits); a list without one is for dense tensors. */
uint32_t tni_rule_storages(const char *types)
{
    uint32_t mask = 0;

    while (types && *types) {
        const size_t length = strcspn(types, ",");
        const int32_t storage = storage_of(types, length);

        mask |= storage >= 0 ? 1u << storage : 0u;
        types += length + (types[length] == ',');
    }
    return mask ? mask : 1u << TN_STORAGE_DENSE;
}

uint32_t tni_rule_dtypes(const char *types)
{
    uint32_t mask = 0;

    while (types && *types) {
        const size_t length = strcspn(types, ",");
        const int32_t dtype = dtype_of(types, length);

        mask |= dtype >= 0 ? 1u << dtype : 0u;
        types += length + (types[length] == ',');
    }
    return mask;
}

static bool storages_match(const tni_request *r, const tn_kernel *k, char *why, size_t size)
{
    for (uint32_t i = 0; i < r->in_count + r->out_count; i++) {
        const tn_tensor *t = i < r->in_count ? r->in[i] : r->out[i - r->in_count];

        if (tni_rule_storages(tni_kernel_rule(r, k, i)) >> t->storage & 1u)
            continue;
        snprintf(why, size, "does not serve %s tensors as %s %u", tni_storage_type_name(t->storage),
                 i < r->in_count ? "input" : "output", i < r->in_count ? i : i - r->in_count);
        return false;
    }
    return true;
}

bool tni_kernel_types_match(const tni_request *r, const tn_kernel *k, char *why, size_t size)
{
    return storages_match(r, k, why, size) && types_match(r, k, why, size);
}
