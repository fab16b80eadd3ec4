/*
 * The header tenon/plugin/indices.h is what the definitions say: where kernels find each attribute of each
 * operator. TENON_UPDATE=1 writes it (scripts/tools/manual does that); otherwise a difference fails and names
 * its first line.
 *
 * A name is made by rule, TN_OPERATOR_ATTRIBUTE and TN_OPERATOR_ATTRIBUTE_CHOICE; two that come out the same
 * with different numbers fail the test.
 */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "docs/page.h"
#include "tenon/plugin/indices.h"

#define NAME_BYTES 256
#define NAMES_MAX 100000

typedef struct writer {
    tni_str page;
    tni_map *numbers; /* name -> number + 1 */
} writer;

/* `text` as a part of a name: capitals and digits, _ for all else, none in front. */
static void name_add(char *name, const char *text, size_t length)
{
    size_t at = strlen(name);

    while (length && *text == '_') {
        text++;
        length--;
    }
    assert_true(at + length + 2 < NAME_BYTES);
    name[at++] = '_';
    for (size_t i = 0; i < length; i++)
        name[at++] = (char)(isalnum((unsigned char)text[i]) ? toupper((unsigned char)text[i]) : '_');
    name[at] = '\0';
}

static void define(writer *w, const char *name, uint64_t number)
{
    void *have = NULL;

    if (tni_map_get(w->numbers, name, &have)) {
        if ((uintptr_t)have != number + 1) {
            print_error("%s stands for %llu and for %llu\n", name, (unsigned long long)(uintptr_t)have - 1,
                        (unsigned long long)number);
            fail();
        }
        return;
    }
    must(tni_map_set(w->numbers, name, (void *)(uintptr_t)(number + 1)));
    must(tni_str_addf(&w->page, "#define %s %llu\n", name, (unsigned long long)number));
}

static void choices_define(writer *w, const char *name, const tn_attr_def *a)
{
    uint64_t index = 0;

    for (const char *at = a->choices; a->type == TN_ATTR_T_CHOICE && *at; index++) {
        const size_t length = strcspn(at, "|");
        char choice[NAME_BYTES];

        memcpy(choice, name, strlen(name) + 1);
        name_add(choice, at, length);
        define(w, choice, index);
        at += length + (at[length] == '|');
    }
}

static bool is_backward(const tn_op *op)
{
    return strncmp(op->name, "_backward", 9) == 0;
}

/* True if an operator for users has the very table: its names serve both. */
static bool shares_table(const tni_opset *set, const tn_op *op)
{
    for (size_t i = 0; is_backward(op) && i < tni_opset_count(set); i++) {
        const tn_op *other = tni_opset_at(set, i)->op;

        if (!is_backward(other) && other->attrs == op->attrs)
            return true;
    }
    return false;
}

static void operator_define(writer *w, const tni_opset *set, const tn_op *op)
{
    must(tni_str_addf(&w->page, "\n/* %s", op->name));
    for (size_t i = 0; !is_backward(op) && i < tni_opset_count(set); i++) {
        const tn_op *other = tni_opset_at(set, i)->op;

        if (is_backward(other) && other->attrs == op->attrs &&
            !strcmp(other->name + strlen("_backward_"), op->name))
            must(tni_str_addf(&w->page, ", %s", other->name));
    }
    must(tni_str_add(&w->page, " */\n"));
    for (uint64_t i = 0; op->attrs[i].name; i++) {
        char name[NAME_BYTES] = "TN";

        name_add(name, op->name, strlen(op->name));
        name_add(name, op->attrs[i].name, strlen(op->attrs[i].name));
        define(w, name, i);
        choices_define(w, name, &op->attrs[i]);
    }
}

static void indices(void **state)
{
    tni_opset *set = NULL;
    writer w;

    (void)state;
    must(tni_opset_create(NULL, &set));
    must(tni_map_create(NAMES_MAX, &w.numbers));
    tni_str_init(&w.page, PAGE_BYTES_MAX);
    must(tni_str_add(
        &w.page,
        "/**\n"
        " * Where kernels find the attributes of each operator: TN_CONVOLUTION_PAD is the index of "
        "Convolution's pad\n"
        " * in the arrays of values of nodes and calls, TN_CONVOLUTION_LAYOUT_NHWC the number of a choice.\n"
        " *\n"
        " * Written by scripts/tools/manual from the definitions; a test compares it. Indices never change: "
        "an\n"
        " * attribute of a later version of an operator comes behind the others.\n"
        " */\n"
        "#ifndef TENON_PLUGIN_INDICES_H\n"
        "#define TENON_PLUGIN_INDICES_H\n"));
    for (size_t i = 0; i < tni_opset_count(set); i++) {
        const tn_op *op = tni_opset_at(set, i)->op;

        if (op->attrs && op->attrs->name && !shares_table(set, op) && !tni_opset_at(set, i)->meaning)
            operator_define(&w, set, op);
    }
    must(tni_str_add(&w.page, "\n#endif\n"));
    page_compare("sdk/include/tenon/plugin/indices.h", &w.page);
    tni_str_fini(&w.page);
    tni_map_destroy(w.numbers);
    tni_opset_destroy(set);
}

/* Names of the rule and what the definitions of today give them. */
static void spot_checks(void **state)
{
    (void)state;
    assert_int_equal(TN_CONVOLUTION_PAD, 3);
    assert_int_equal(TN_CONVOLUTION_LAYOUT_NCHW, 2);
    assert_int_equal(TN_POOLING_POOL_TYPE_MAX, 2);
    assert_int_equal(TN_SGD_MOM_UPDATE_MOMENTUM, 1);
    assert_int_equal(TN_ADAM_UPDATE_LAZY_UPDATE, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(indices), cmocka_unit_test(spot_checks)};

    return cmocka_run_group_tests_name("docs.indices", tests, NULL, NULL);
}
