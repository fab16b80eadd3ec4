/*
 * The two tables of the manual are what the library says of itself: docs/options.md lists every row of
 * options.list, docs/operators.md every operator of the core's families. TENON_UPDATE=1 writes them
 * (scripts/tools/manual does that); otherwise a difference fails and names the first line of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "docs/page.h"

/* Text for a cell of a table. */
static void cell(tni_str *s, const char *text)
{
    for (; *text; text++) {
        if (*text == '|')
            must(tni_str_add(s, "\\"));
        must(tni_str_add_bytes(s, text, 1));
    }
}

/* ---- options ----------------------------------------------------------------------------------------- */

static void option_row(tni_str *s, const tni_option_def *d)
{
    must(tni_str_addf(s, "| `%s` | %s", d->key, d->type));
    if (*d->choices)
        must(tni_str_add(s, strcmp(d->type, "choice") ? ", " : ": "));
    cell(s, d->choices);
    if (d->min <= d->max)
        must(tni_str_addf(s, ", %.12g to %.12g", d->min, d->max));
    must(tni_str_add(s, " | "));
    if (*d->default_text) {
        must(tni_str_add(s, "`"));
        cell(s, d->default_text);
        must(tni_str_add(s, "`"));
    }
    must(tni_str_addf(s, " | %s%s | ",
                      d->flags & TN_OPTION_LIVE ? "live" : "at start",
                      d->flags & TN_OPTION_TRUSTED ? ", trusted" : ""));
    cell(s, d->env);
    must(tni_str_add(s, " | "));
    cell(s, d->help);
    must(tni_str_add(s, " |\n"));
}

static void options_page(void **state)
{
    const tni_option_def *defs;
    const tni_variable *variables;
    size_t count, length = 0;
    tni_str s;

    (void)state;
    defs = tni_option_defs(&count);
    tni_str_init(&s, PAGE_BYTES_MAX);
    must(tni_str_add(
        &s, "# Options\n\n"
            "Written by `scripts/tools/manual` from `core/base/options.list`; a test compares it. `*` is one "
            "part of a name:\na device type, a plugin, an operator. A later origin wins: built in, "
            "`/etc/tenon/tenon.ini`, `$XDG_CONFIG_HOME/tenon/tenon.ini`,\n`./tenon.ini` (the tool only) or "
            "`--config`, MXNet's variables, `TENON_` variables, `--set`. The variable of `engine.type` is\n"
            "`TENON_ENGINE__TYPE`. *Trusted* options are read neither from `./tenon.ini` nor from the "
            "environment. `tenon config show\n--origin` prints what is in force and where it came from; so "
            "does `run.json` of a training. `tenon config check` finds what is wrong.\nIn a translation of "
            "values `*` is any value or the value, `x4` four times it, nothing after `:` no change.\n"));
    for (size_t i = 0; i < count; i++) {
        size_t section = strcspn(defs[i].key, ".");

        if (!length || section != length || strncmp(defs[i].key, defs[i - 1].key, section))
            must(
                tni_str_addf(&s,
                             "\n## [%.*s]\n\n| option | type | default | read | variables of MXNet | what |\n"
                             "| --- | --- | --- | --- | --- | --- |\n",
                             (int)section, defs[i].key));
        length = section;
        option_row(&s, &defs[i]);
    }
    must(tni_str_add(
        &s, "\n## Variables of MXNet that mean nothing here\n\n| variable | why |\n| --- | --- |\n"));
    variables = tni_variables(&count);
    for (size_t i = 0; i < count; i++)
        if (!variables[i].key[0])
            must(tni_str_addf(&s, "| %s | %s |\n", variables[i].name, variables[i].reason));
    page_compare("docs/options.md", &s);
    tni_str_fini(&s);
}

/* ---- operators --------------------------------------------------------------------------------------- */

#define TNI_FAMILY(name) #name,
static const char *const families[] = {
#include "op/families.list"
};
#undef TNI_FAMILY

#define FAMILY_OPS_MAX 128

/* The operators of one family, ended by NULL. Returns their count. */
static size_t family_of(const tni_opset *set, const char *name, const tn_op **ops)
{
    size_t count = 0;

    for (size_t i = 0; i < tni_opset_count(set); i++) {
        const tni_opdef *def = tni_opset_at(set, i);

        assert_true(count + 1 < FAMILY_OPS_MAX);
        if (strcmp(def->family, name) == 0)
            ops[count++] = def->op;
    }
    ops[count] = NULL;
    return count;
}

static const char *const type_names[] = {
    "",
    "int",
    "float",
    "bool",
    "choice",
    "text",
    "tuple",
    "data type",
    "int or None",
    "float or None",
    "bool or None",
    "floats",
    "tuple, items may be None",
};

static void names(tni_str *s, const char *const *list)
{
    for (size_t i = 0; list && list[i]; i++)
        must(tni_str_addf(s, "%s%s", i ? ", " : "", list[i]));
}

static void operator_row(tni_str *s, const tn_op *op)
{
    must(tni_str_addf(s, "| `%s`", op->name));
    for (size_t i = 0; op->aliases && op->aliases[i]; i++)
        must(tni_str_addf(s, "%s`%s`", i ? ", " : " or ", op->aliases[i]));
    must(tni_str_add(s, " | "));
    names(s, op->inputs);
    must(tni_str_add(s, " | "));
    names(s, op->outputs);
    must(tni_str_add(s, " | "));
    must(tni_str_add(s, op->gradient ? "yes" : op->flags & TN_OP_ZERO_GRADIENT ? "zero" : "no"));
    must(tni_str_add(s, " | "));
    cell(s, op->doc ? op->doc : "");
    if (op->mutates)
        must(tni_str_add(s, " Changes:"));
    for (uint32_t i = 0; op->mutates >> i; i++)
        if (op->mutates >> i & 1u)
            must(tni_str_addf(s, " %s", op->inputs[i]));
    must(tni_str_add(s, op->mutates ? ". |\n" : " |\n"));
}

static void attr_rows(tni_str *s, const tn_attr_def *attrs)
{
    must(tni_str_add(s, "| attribute | type | default | what |\n| --- | --- | --- | --- |\n"));
    for (const tn_attr_def *a = attrs; a->name; a++) {
        assert_true(a->type < sizeof type_names / sizeof *type_names);
        must(tni_str_addf(s, "| `%s` | %s", a->name, type_names[a->type]));
        if (a->choices) {
            must(tni_str_add(s, ": "));
            cell(s, a->choices);
        }
        if (a->min <= a->max)
            must(tni_str_addf(s, ", %.12g to %.12g", a->min, a->max));
        must(tni_str_addf(s, "%s | ", a->flags & TN_ATTR_F_RUNTIME ? ", run-time" : ""));
        must(a->default_text ? tni_str_addf(s, "`%s`", a->default_text) : tni_str_add(s, "required"));
        must(tni_str_add(s, " | "));
        cell(s, a->doc ? a->doc : "");
        must(tni_str_add(s, " |\n"));
    }
}

static bool shown(const tn_op *op)
{
    return !(op->flags & (TN_OP_BACKWARD | TN_OP_INTERNAL)) && strncmp(op->name, "_backward", 9) != 0;
}

static const char *hidden_for(const tn_op *op)
{
    return op->flags & TN_OP_INTERNAL ? "\nOf compiled programs and copies only: " : "\nOf gradients only: ";
}

/* Operators that share a table of attributes share its description. */
static void family_attrs(tni_str *s, const tn_op *const *ops)
{
    for (size_t i = 0; ops[i]; i++) {
        bool before = !shown(ops[i]) || !ops[i]->attrs || !ops[i]->attrs->name;

        for (size_t k = 0; k < i; k++)
            before |= shown(ops[k]) && ops[k]->attrs == ops[i]->attrs;
        if (before)
            continue;
        must(tni_str_add(s, "\nAttributes of"));
        for (size_t k = i, n = 0; ops[k]; k++)
            if (shown(ops[k]) && ops[k]->attrs == ops[i]->attrs)
                must(tni_str_addf(s, "%s `%s`", n++ ? "," : "", ops[k]->name));
        must(tni_str_add(s, ":\n\n"));
        attr_rows(s, ops[i]->attrs);
    }
}

static const char operators_head[] = "\n| operator | inputs | outputs | gradient | what |\n"
                                     "| --- | --- | --- | --- | --- |\n";

static void operators_page(void **state)
{
    size_t listed = 0;
    tni_opset *set = NULL;
    tni_str s;

    (void)state;
    must(tni_opset_create(NULL, &set));
    tni_str_init(&s, PAGE_BYTES_MAX);
    must(tni_str_add(
        &s, "# Operators\n\n"
            "Written by `scripts/tools/manual` from the definitions in `core/op`; a test compares it. Names, "
            "defaults and meanings are\nMXNet's. *Gradient*: yes, zero (it flows back as zeros), or no. "
            "*Run-time* attributes may change from call to call without a\nnew plan. An input such as `arg*` "
            "stands for any number of them. Plugins may bring further operators.\n"));
    for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
        const tn_op *ops[FAMILY_OPS_MAX];
        size_t hidden = 0;

        listed += family_of(set, families[f], ops);
        must(tni_str_addf(&s, "\n## %s\n", families[f]));
        for (size_t i = 0, rows = 0; ops[i]; i++)
            if (shown(ops[i])) {
                must(tni_str_add(&s, rows++ ? "" : operators_head));
                operator_row(&s, ops[i]);
            }
        family_attrs(&s, ops);
        for (size_t i = 0; ops[i]; i++)
            if (!shown(ops[i]))
                must(tni_str_addf(&s, "%s`%s`", hidden++ ? ", " : hidden_for(ops[i]), ops[i]->name));
        must(tni_str_add(&s, hidden ? ".\n" : ""));
    }
    assert_int_equal(listed, tni_opset_count(set)); /* no family is left out */
    page_compare("docs/operators.md", &s);
    tni_str_fini(&s);
    tni_opset_destroy(set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(options_page), cmocka_unit_test(operators_page)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
