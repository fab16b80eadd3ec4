/*
 * A kernel's rules for data types, read as the host reads them: by the names of the definition's tables.
 */
#include <string.h>

#include "lab.h"

/* Index that `name` has behind the variadic `have` ("arg*"): "arg3" is 3, "arg*" is any, -2; -1: not its. */
static int64_t variadic_index(const char *have, const char *name, size_t length)
{
    const size_t stem = strlen(have) - 1;
    int64_t index = 0;

    if (length <= stem || memcmp(have, name, stem) != 0)
        return -1;
    if (length == stem + 1 && name[stem] == '*')
        return -2;
    for (size_t i = stem; i < length; i++) {
        if (name[i] < '0' || name[i] > '9' || index > CHK_ARGS_MAX)
            return -1;
        index = index * 10 + (name[i] - '0');
    }
    return index;
}

/* Name in the tables for argument `index`, and which of the repetitions of a variadic one it is. */
static const char *table_name(const tn_op *op, const chk_args *args, uint32_t index, uint32_t *behind)
{
    const bool output = index >= args->in_count;
    const char *const *names = output ? op->outputs : op->inputs;
    const int32_t at = output ? tn_op_argument(names, args->out_count, index - args->in_count, behind)
                              : tn_op_argument(names, args->in_count, index, behind);

    return at < 0 ? NULL : names[at];
}

static bool argument_is(const tn_op *op, const chk_args *args, uint32_t index, const char *name,
                        size_t length)
{
    uint32_t behind = 0;
    const char *have = table_name(op, args, index, &behind);
    const size_t bytes = have ? strlen(have) : 0;

    if (!bytes)
        return false;
    if (have[bytes - 1] == '*') {
        const int64_t rest = variadic_index(have, name, length);

        return rest == -2 || rest == (int64_t)behind;
    }
    return bytes == length && !memcmp(have, name, length);
}

const char *chk_argument_name(const tn_op *op, const chk_args *args, uint32_t index)
{
    uint32_t behind = 0;
    const char *name = table_name(op, args, index, &behind);

    return name ? name : index < args->in_count ? "input" : "output";
}

const char *chk_rule_of(const tn_op *op, const tn_kernel *k, const chk_args *args, uint32_t index)
{
    const char *any = NULL;

    for (const char *const *t = k->types; t && *t; t++) {
        const size_t length = strcspn(*t, ":");

        if (length == 1 && **t == '*')
            any = *t + 2;
        else if (argument_is(op, args, index, *t, length))
            return *t + length + 1;
    }
    return any;
}

static int32_t argument_dtype(const tn_op *op, const chk_facts *f, const char *name, size_t length)
{
    for (uint32_t i = 0; i < f->args.in_count + f->args.out_count; i++)
        if (argument_is(op, &f->args, i, name, length))
            return i < f->args.in_count ? f->in_dtype[i] : f->out_dtype[i - f->args.in_count];
    return TN_DTYPE_UNKNOWN;
}

/* The next of a comma list: its data type, or -1; moves `at` on. */
static int32_t next_dtype(const char **at, size_t *length)
{
    char text[16];
    int32_t dtype = -1;

    *length = strcspn(*at, ",");
    if (*length < sizeof text && **at != '=') {
        memcpy(text, *at, *length);
        text[*length] = '\0';
        if (tn_dtype_parse(text, &dtype))
            dtype = -1;
    }
    return dtype;
}

uint32_t chk_rule_mask(const char *rule)
{
    uint32_t mask = 0;
    size_t length;

    for (const char *at = rule; at && *at; at += length + (at[length] == ',')) {
        int32_t dtype = next_dtype(&at, &length);

        mask |= dtype >= 0 ? 1u << dtype : 0u;
    }
    return mask;
}

/* Its storage type; -1: it is none. */
static int32_t storage_of(const char *text, size_t length)
{
    static const char *const names[] = {"dense", "row_sparse", "csr"};

    for (int32_t s = TN_STORAGE_DENSE; s <= TN_STORAGE_CSR; s++)
        if (strlen(names[s]) == length && !memcmp(text, names[s], length))
            return s;
    return TN_STORAGE_UNKNOWN;
}

uint32_t chk_rule_storages(const char *rule)
{
    uint32_t mask = 0;
    size_t length;

    for (const char *at = rule; at && *at; at += length + (at[length] == ',')) {
        int32_t storage;

        length = strcspn(at, ",");
        storage = storage_of(at, length);
        mask |= storage >= 0 ? 1u << storage : 0u;
    }
    return mask ? mask : 1u << TN_STORAGE_DENSE;
}

bool chk_rule_allows(const tn_op *op, const chk_facts *f, const char *rule, int32_t dtype)
{
    bool named = !*rule;
    size_t length;

    for (const char *at = rule; *at; at += length + (at[length] == ',')) {
        int32_t allowed = next_dtype(&at, &length);

        named |= storage_of(at, length) < 0;

        if (*at == '=')
            allowed = argument_dtype(op, f, at + 1, length - 1);
        if (allowed == dtype && dtype >= 0)
            return true;
    }
    return !named; /* storage types alone */
}

bool chk_types_match(const tn_op *op, const tn_kernel *k, const chk_facts *f)
{
    for (uint32_t i = 0; i < f->args.in_count + f->args.out_count; i++) {
        const char *rule = chk_rule_of(op, k, &f->args, i);
        const int32_t storage =
            i < f->args.in_count ? f->in_storage[i] : f->out_storage[i - f->args.in_count];

        if (!(chk_rule_storages(rule) >> storage & 1u))
            return false;
        if (rule &&
            !chk_rule_allows(op, f, rule,
                             i < f->args.in_count ? f->in_dtype[i] : f->out_dtype[i - f->args.in_count]))
            return false;
    }
    return true;
}
