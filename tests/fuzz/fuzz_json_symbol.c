/* MXNet's -symbol.json. What is read must flatten into a graph that verifies, and be written and read again
 * the same. */
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static tni_opset *ops;

static void check(bool ok)
{
    if (!ok)
        abort();
}

static tn_status use_count(void *arg, const tni_operator_use *use)
{
    check(use->op && use->node && (!use->attr_count || (use->names[0] && use->texts[0])));
    ++*(size_t *)arg;
    return TN_OK;
}

/* Written, read and written again: the same text. */
static void round_trip(tni_symbol *s)
{
    tni_symbol *again = NULL;
    tni_str first, second;

    tni_str_init(&first, TN_TEXT_MAX);
    tni_str_init(&second, TN_TEXT_MAX);
    check(tni_symbol_to_json(s, &first) == TN_OK);
    check(tni_symbol_from_json(ops, "again", first.text, first.length, &again) == TN_OK);
    check(tni_symbol_to_json(again, &second) == TN_OK);
    check(strcmp(first.text, second.text) == 0);
    tni_symbol_release(again);
    tni_str_fini(&first);
    tni_str_fini(&second);
}

static void flatten(tni_symbol *s)
{
    tni_graph *g = NULL;
    uint32_t wanted = 0, grad, *head_vars;
    tni_gradient_spec spec = {.wanted = &wanted, .wanted_count = 1};

    check(tni_graph_of(s, &g) == TN_OK);
    check(tni_graph_verify(g) == TN_OK);
    tni_graph_infer(g, true);
    if (g->variable_count > 0) {
        head_vars = calloc(g->head_count, sizeof *head_vars);
        wanted = g->variables[0];
        tni_graph_gradient(g, &spec, head_vars, &grad);
        check(tni_graph_verify(g) == TN_OK);
        free(head_vars);
    }
    tni_graph_destroy(g);
}

static uint64_t live_now(void)
{
    tni_mem_stats now;

    tni_mem_stats_get(&now);
    return now.live_count;
}

static void read_once(const char *text, size_t size)
{
    tni_symbol *s = NULL;
    size_t uses = 0;

    (void)tni_json_operators("fuzz", text, size, use_count, &uses);
    if (tni_symbol_from_json(ops, "fuzz", text, size, &s) == TN_OK) {
        check(tni_json_operators("fuzz", text, size, use_count, &uses) == TN_OK);
        flatten(s);
        round_trip(s);
    } else {
        check(*tn_error_text() != '\0');
    }
    tni_symbol_release(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t before;

    if (!ops)
        check(tni_opset_create(NULL, &ops) == TN_OK);
    before = live_now();
    read_once((const char *)data, size);
    if (live_now() != before) { /* operators met for the first time keep their rules */
        before = live_now();
        read_once((const char *)data, size);
        check(live_now() == before);
    }
    return 0;
}
