/*
 * The definitions against MXNet's own table (tests/golden/operators.tsv): every operator that exists here has
 * MXNet's aliases, attributes in MXNet's order, defaults and inputs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "op/op.h"

#include <cmocka.h>

/* Attributes that MXNet reads but does not list. */
static bool unlisted(const char *op, const char *attr)
{
    return (strcmp(attr, "lower") == 0 && strstr(op, "_linalg_potr") == op) ||
           (strcmp(attr, "lower") == 0 && strcmp(op, "_npi_cholesky") == 0) || strcmp(op, "_npi_norm") == 0 ||
           (strcmp(attr, "num_args") == 0 && (strcmp(op, "add_n") == 0 || strcmp(op, "khatri_rao") == 0)) ||
           (strcmp(attr, "ctx") == 0 && strcmp(op, "_copyto") == 0); /* MXNet's takes it from its output */
}

static void number_shorten(const char *text, char *out, size_t size)
{
    double value;

    if (!tni_parse_f64(text, &value)) {
        snprintf(out, size, "%s", text);
        return;
    }
    for (int digits = 1; digits < 18; digits++) {
        snprintf(out, size, "%.*g", digits, (double)(float)value);
        if ((float)strtod(out, NULL) == (float)value)
            return;
    }
}

/* (1.0, 0.5) as (1, 0.5). */
static void whole_shorten(const char *text, char *out, size_t size)
{
    size_t n = 0;

    for (; *text && n + 1 < size; text++)
        if (strncmp(text, ".0", 2) == 0 && !(text[2] >= '0' && text[2] <= '9'))
            text++;
        else
            out[n++] = *text;
    out[n] = '\0';
}

static bool default_equal(const tni_opdef *def, uint32_t index, const char *expected)
{
    const tn_attr_def *d = &def->op->attrs[index];
    char shorter[128] = "";
    tni_str text;
    bool same;

    if (!d->default_text || !expected)
        return !d->default_text && !expected;
    tni_str_init(&text, 4096);
    assert_int_equal(tni_attr_format(d, def->defaults[index], &text), TN_OK);
    same = strcmp(text.text, expected) == 0;
    if (!same && (d->type == TN_ATTR_T_FLOAT || d->type == TN_ATTR_T_OPT_FLOAT)) {
        number_shorten(text.text, shorter, sizeof shorter);
        same = strcmp(shorter, expected) == 0;
    }
    if (!same && d->type == TN_ATTR_T_FLOATS) {
        whole_shorten(text.text, shorter, sizeof shorter);
        same = strcmp(shorter, expected) == 0;
    }
    if (!same && d->type == TN_ATTR_T_TEXT && !expected[0])
        same = strcmp(text.text, "None") == 0;
    if (!same)
        print_error("%s: default of %s is %s, MXNet's is %s\n", def->op->name, d->name, text.text, expected);
    tni_str_fini(&text);
    return same;
}

/* "name=default;name": both lists in the same order. */
static int attrs_compare(const tni_opdef *def, char *expected)
{
    char *save = NULL, *item = strtok_r(expected, ";", &save);
    int wrong = 0;

    for (uint32_t i = 0; i < def->attr_count; i++) {
        char *value;

        if (unlisted(def->op->name, def->op->attrs[i].name))
            continue;
        value = item ? strchr(item, '=') : NULL;
        if (value)
            *value++ = '\0';
        if (!item || strcmp(item, def->op->attrs[i].name) != 0) {
            print_error("%s: attribute %u is %s, MXNet's is %s\n", def->op->name, i, def->op->attrs[i].name,
                        item ? item : "not there");
            return wrong + 1;
        }
        if (strcmp(def->op->name, "smooth_l1") != 0) /* its default stands in MXNet's code only */
            wrong += !default_equal(def, i, value);
        item = strtok_r(NULL, ";", &save);
    }
    if (item) {
        print_error("%s: attribute %s is missing\n", def->op->name, item);
        wrong++;
    }
    return wrong;
}

static int aliases_compare(tni_opset *ops, const tni_opdef *def, char *expected)
{
    const tni_opdef *same;
    size_t count = 0, have = 0;
    char *save = NULL;
    int wrong = 0;

    for (char *a = strtok_r(expected, ",", &save); a; a = strtok_r(NULL, ",", &save), count++)
        if (tni_opset_find(ops, a, &same) || same != def) {
            print_error("%s: alias %s is missing\n", def->op->name, a);
            wrong++;
        }
    while (def->op->aliases && def->op->aliases[have])
        have++;
    if (have != count) {
        print_error("%s: %zu aliases, MXNet has %zu\n", def->op->name, have, count);
        wrong++;
    }
    return wrong;
}

/* Inputs that MXNet has but does not list as such: states, and those of type Symbol. */
static const char *listed_inputs(const char *op, const char *expected)
{
    return strcmp(op, "IdentityAttachKLSparseReg") == 0 ? "data,moving_avg"
           : strcmp(op, "_contrib_PSROIPooling") == 0   ? "data,rois"
           : strcmp(op, "_CrossDeviceCopy") == 0        ? "data"
                                                        : expected;
}

static int inputs_compare(const tni_opdef *def, const char *expected)
{
    char text[512] = "";

    for (uint32_t i = 0; i < def->input_count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? "," : "", def->op->inputs[i]);
    /* MXNet's table says nothing of inputs that a function counts. */
    if (def->variadic ? expected[0] == '*' || !expected[0] : strcmp(text, expected) == 0)
        return 0;
    print_error("%s: inputs %s, MXNet has %s\n", def->op->name, text, expected);
    return 1;
}

static void test_against_mxnet(void **state)
{
    const char *source = getenv("TENON_TEST_SOURCE");
    char path[4096], line[16384];
    tni_opset *ops;
    int wrong = 0, compared = 0;
    FILE *file;

    (void)state;
    snprintf(path, sizeof path, "%s/tests/golden/operators.tsv", source ? source : ".");
    file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(tni_opset_create(NULL, &ops), TN_OK);
    while (fgets(line, sizeof line, file)) {
        char *field[4] = {line, NULL, NULL, NULL};
        const tni_opdef *def;

        line[strcspn(line, "\n")] = '\0';
        for (int k = 1; k < 4 && field[k - 1]; k++)
            if ((field[k] = strchr(field[k - 1], '\t')))
                *field[k]++ = '\0';
        if (!field[3] || tni_opset_find(ops, field[0], &def))
            continue;
        if (!strcmp(field[0], "_linspace")) /* MXNet's table lists arange's attributes */
            continue;
        if (strcmp(def->op->name, field[0]) != 0) {
            print_error("%s is an alias of %s here\n", field[0], def->op->name);
            wrong++;
            continue;
        }
        compared++;
        wrong += aliases_compare(ops, def, field[1]) + attrs_compare(def, field[2]) +
                 inputs_compare(def, listed_inputs(field[0], field[3]));
    }
    fclose(file);
    tni_opset_destroy(ops);
    print_message("%d operators compared\n", compared);
    assert_true(compared > 150);
    assert_int_equal(wrong, 0);
}

/* Every operator that others emit in gradients exists; every definition of the core has a text for people. */
static void test_complete(void **state)
{
    tni_opset *ops;

    (void)state;
    assert_int_equal(tni_opset_create(NULL, &ops), TN_OK);
    for (size_t i = 0; i < tni_opset_count(ops); i++) {
        const tn_op *op = tni_opset_at(ops, i)->op;

        if (!op->doc || !op->doc[0])
            fail_msg("%s has no text", op->name);
        for (const tn_attr_def *d = op->attrs; d && d->name; d++)
            if (!d->doc || !d->doc[0])
                fail_msg("%s: attribute %s has no text", op->name, d->name);
        if (!op->gradient && !(op->flags & (TN_OP_ZERO_GRADIENT | TN_OP_BACKWARD | TN_OP_INTERNAL)) &&
            op->exec == TN_EXEC_KERNEL && !op->mutates)
            print_message("%s has no gradient\n", op->name);
    }
    tni_opset_destroy(ops);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_mxnet), cmocka_unit_test(test_complete)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
