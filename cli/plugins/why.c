/*
 * tenon plugins why: the candidates for an operator in their order, and the rule that decided. All of it is
 * the library's own choice, asked instead of made.
 */
#include <stdlib.h>
#include <string.h>

#include "model.h"

#define SHAPES_MAX 64
#define ATTRS_MAX 64

static const struct {
    const char *name, *text;
} rules[] = {
    [TN_RULE_NONE] = {"none", "no kernel serves this"},
    [TN_RULE_BODY] = {"body", "no kernel of its own is needed: a kernel of _fused_pointwise runs its body"},
    [TN_RULE_CORE] = {"core", "no kernel is needed: the result is a view of the input"},
    [TN_RULE_PIN] = {"pin", "pinned"},
    [TN_RULE_PREFER] = {"prefer", "preferred"},
    [TN_RULE_RANK] = {"rank", "the highest rank of those that serve"},
    [TN_RULE_NAME] = {"name", "the ranks are equal: the first name"},
    [TN_RULE_ONLY] = {"only", "the only candidate that serves"},
    [TN_RULE_LOAD] = {"plugins.load", "no other plugin with kernels for this device may be loaded"},
};

typedef struct question {
    tn_choice_query query;
    tn_known shapes[SHAPES_MAX];
    int64_t dims[SHAPES_MAX][32];
    char names[SHAPES_MAX][128];
    const char *attrs[2 * ATTRS_MAX + 1];
    char *attr_texts[ATTRS_MAX];
    size_t attr_count;
} question;

static void question_free(question *q)
{
    for (size_t i = 0; q && i < q->attr_count; i++)
        free(q->attr_texts[i]);
    free(q);
}

/* ---- the command line ---- */

static bool shapes_read(const cli_args *args, question *q)
{
    const char *text;
    size_t cursor = 0;

    while ((text = cli_args_each(args, OPT_SHAPE, &cursor))) {
        const uint32_t at = q->query.input_count;
        const char *sign = strchr(text, '=');
        int count;

        if (at == SHAPES_MAX) {
            cli_error("at most %d shapes", SHAPES_MAX);
            return false;
        }
        if (sign && (size_t)(sign - text) >= sizeof q->names[at]) {
            cli_error("--shape %.40s…: the name is too long", text);
            return false;
        }
        (void)snprintf(q->names[at], sizeof q->names[at], "%.*s", sign ? (int)(sign - text) : 0, text);
        count = cli_shape_parse(sign ? sign + 1 : text, q->dims[at], 32);
        if (count < 0) {
            cli_error("--shape %.80s: write sizes as 64,784, or data=64,784", text);
            return false;
        }
        q->shapes[at] = (tn_known){sign ? q->names[at] : NULL, q->dims[at], count, -1};
        q->query.input_count++;
    }
    q->query.inputs = q->shapes;
    return true;
}

static bool attrs_read(const cli_args *args, question *q)
{
    const char *text;
    size_t cursor = 0;

    while ((text = cli_args_each(args, OPT_INPUT_ATTR, &cursor))) {
        char *copy, *sign;

        if (q->attr_count == ATTRS_MAX || !strchr(text, '=') || text[0] == '=') {
            cli_error("--attr %.80s: write NAME=VALUE, at most %d of them", text, ATTRS_MAX);
            return false;
        }
        if (!(copy = cli_format("%s", text)))
            return false;
        sign = strchr(copy, '=');
        *sign = '\0';
        q->attr_texts[q->attr_count] = copy;
        q->attrs[2 * q->attr_count] = copy;
        q->attrs[2 * q->attr_count + 1] = sign + 1;
        q->attr_count++;
    }
    q->query.attrs = q->attr_count ? q->attrs : NULL;
    return true;
}

/* ---- the answer ---- */

static json_t *knowns_json(const tn_known *k, uint32_t count)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < count; i++)
        (void)json_array_append_new(list,
                                    json_pack("{s:o,s:o,s:s?}", "name", cli_json_text(k[i].name), "shape",
                                              cli_known_json(&k[i]), "dtype", tn_dtype_name(k[i].dtype)));
    return list;
}

/* Where the option that decided was set. */
static const char *origin_of(tn_ctx *ctx, const char *key, tn_option_info *o)
{
    size_t count = 0;

    (void)tn_ctx_option_count(ctx, &count);
    for (size_t i = 0; *key && i < count; i++) {
        *o = (tn_option_info){.struct_size = TN_SIZE(tn_option_info)};
        if (!tn_ctx_option_at(ctx, i, o) && !strcmp(o->key, key))
            return o->where && *o->where ? o->where : o->origin == TN_ORIGIN_SET ? "the command line" : "";
    }
    return "";
}

static json_t *candidate_json(const tn_candidate_info *c, bool chosen)
{
    return json_pack("{s:s,s:o,s:i,s:b,s:b,s:b,s:o,s:o}", "plugin", c->plugin, "kernel",
                     *c->kernel ? json_string(c->kernel) : json_null(), "rank", (int)c->rank, "serves",
                     c->serves, "chosen", chosen, "pinned", c->pinned, "prefer",
                     c->prefer < 0 ? json_null() : json_integer(c->prefer), "reason",
                     cli_json_text(c->reason));
}

static void answer_json(tn_app *app, const tn_choice *choice, const tn_choice_info *i)
{
    json_t *list = json_array(), *chosen = json_null();
    tn_option_info o;

    for (uint32_t k = 0; k < i->count; k++) {
        tn_candidate_info c = {.struct_size = TN_SIZE(tn_candidate_info)};

        if (tn_app_check(app, tn_choice_candidate(choice, k, &c)))
            continue;
        (void)json_array_append_new(list, candidate_json(&c, k == i->chosen));
        if (k == i->chosen)
            chosen = json_pack("{s:s,s:s}", "plugin", c.plugin, "kernel", c.kernel);
    }
    cli_json_line(json_pack("{s:s,s:s,s:o,s:o,s:b,s:o,s:o,s:s,s:s,s:s,s:o,s:o}", "op", i->op, "device",
                            i->device, "inputs", knowns_json(i->inputs, i->input_count), "outputs",
                            knowns_json(i->outputs, i->output_count), "asked", i->asked, "candidates", list,
                            "chosen", chosen, "rule", rules[i->rule].name, "text", rules[i->rule].text,
                            "option", i->option, "value", cli_json_text(i->value), "origin",
                            cli_json_text(origin_of(tn_app_ctx(app), i->option, &o))));
}

static void candidate_print(const tn_candidate_info *c, uint32_t index, bool chosen)
{
    char who[160], rank[24] = "-";

    (void)snprintf(who, sizeof who, "%.60s%s%.90s", c->plugin, *c->kernel ? "/" : "", c->kernel);
    if (*c->kernel)
        (void)snprintf(rank, sizeof rank, "rank %d", (int)c->rank);
    (void)printf("  %2u  %-36s %-9s %s\n", (unsigned)index + 1, who, rank,
                 chosen      ? "chosen"
                 : c->serves ? "serves, too"
                             : c->reason);
}

static void answer_print(tn_app *app, const tn_choice *choice, const tn_choice_info *i)
{
    char shape[CLI_SHAPE_TEXT];
    tn_option_info o;
    const char *where;

    (void)printf("%s on %s", i->op, i->device);
    for (uint32_t k = 0; k < i->input_count && k < 8; k++)
        (void)printf("%s %s %s%s%s", k ? "," : ":", i->inputs[k].name,
                     tn_dtype_name(i->inputs[k].dtype) ? tn_dtype_name(i->inputs[k].dtype) : "?",
                     i->asked ? " " : "", i->asked ? cli_shape_text(&i->inputs[k], "x", shape) : "");
    (void)puts("");
    for (uint32_t k = 0; k < i->count; k++) {
        tn_candidate_info c = {.struct_size = TN_SIZE(tn_candidate_info)};

        if (!tn_app_check(app, tn_choice_candidate(choice, k, &c)))
            candidate_print(&c, k, k == i->chosen);
    }
    where = origin_of(tn_app_ctx(app), i->option, &o);
    (void)printf("decided by %s: %s", rules[i->rule].name, rules[i->rule].text);
    if (*i->option)
        (void)printf(" (%s = %s%s%s)", i->option, i->value, *where ? ", " : "", where);
    (void)printf("\n%s", i->asked || i->rule == TN_RULE_CORE
                             ? ""
                             : "no shapes were given: a kernel may still decline some of them (--shape)\n");
}

static int answer(tn_app *app, const cli_args *args, question *q)
{
    tn_choice_info i = {.struct_size = TN_SIZE(tn_choice_info)};
    tn_choice *choice = NULL;
    bool served = false;

    if (!tn_app_check(app, tn_choice_create(tn_app_ctx(app), &q->query, &choice)) &&
        !tn_app_check(app, tn_choice_get(choice, &i))) {
        served = i.rule != TN_RULE_NONE;
        if (args->value[OPT_JSON])
            answer_json(app, choice, &i);
        else
            answer_print(app, choice, &i);
    }
    tn_choice_destroy(choice);
    return served ? 0 : CLI_EXIT_FAILED;
}

int cmd_plugins_why(const cli_args *args)
{
    const char *dtype = args->value[OPT_INPUT_DTYPE];
    question *q = calloc(1, sizeof *q);
    int code = CLI_EXIT_USAGE, closed;
    tn_app *app;

    if (!q) {
        cli_error("out of memory");
        return CLI_EXIT_MEMORY;
    }
    q->query = (tn_choice_query){.struct_size = TN_SIZE(tn_choice_query),
                                 .flags = args->value[OPT_TRAIN] ? TN_CHOICE_TRAIN : 0,
                                 .op = args->words[0],
                                 .dtype = TN_F32};
    if (dtype && tn_dtype_parse(dtype, &q->query.dtype))
        cli_error("--dtype %.40s: %s", dtype, tn_error_text());
    else if (shapes_read(args, q) && attrs_read(args, q)) {
        app = cli_app_open(args, NULL);
        if (tn_app_ok(app))
            code = answer(app, args, q);
        closed = tn_app_close(app);
        code = closed ? closed : code;
    }
    question_free(q);
    return code;
}
