/*
 * The set of definitions of one context: the families of the core, what plugins bring, what the program
 * registers. A definition is checked when it is added, so that everybody behind the door may trust its
 * tables. Definitions are only ever added: a pointer once handed out stays good until the set is destroyed.
 */
#include <string.h>

#include "op/attr_type.h"
#include "op/body.h"
#include "op/derived.h"
#include "op/op.h"
#include "op/shape_rule.h"
#include "plugin/plugin.h"

#define NAME_MAX_BYTES 256 /* of an operator, attribute or argument: generous beside MXNet's longest, 48 */
#define ARGS_MAX 64        /* names in a table of arguments; bits of `mutates` */

#define TNI_FAMILY(name) extern const tn_op *const tni_family_##name[];
#include "op/families.list"
#undef TNI_FAMILY

static const tn_op *const *const families[] = {
#define TNI_FAMILY(name) tni_family_##name,
#include "op/families.list"
#undef TNI_FAMILY
    NULL,
};
static const char *const family_names[] = {
#define TNI_FAMILY(name) #name,
#include "op/families.list"
#undef TNI_FAMILY
};

typedef struct registered {
    tni_opdef def;
    tni_attrs *defaults;
    const tn_op *given;  /* as it was added */
    tni_ruled_op *ruled; /* made of it, where it has rules */
    tn_op derived;       /* made of it and of its meaning, where it has one */
} registered;

struct tni_opset {
    tni_mutex lock;
    tni_map *names TN_GUARDED_BY(lock); /* names and aliases -> registered */
    tni_vec list TN_GUARDED_BY(lock);   /* registered * */
    tni_registry *plugins;
    uint64_t generation TN_GUARDED_BY(lock); /* of the plugins' capabilities taken in */
    bool asked TN_GUARDED_BY(lock);          /* plugins with operators have been loaded */
};

/* ---- checks of a definition ------------------------------------------------------------------- */

static bool name_good(const char *name)
{
    size_t length = name ? strnlen(name, NAME_MAX_BYTES + 1) : 0;

    if (length == 0 || length > NAME_MAX_BYTES)
        return false;
    for (size_t i = 0; i < length; i++) {
        char c = name[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
              c == '.' || c == '-' || c == ':'))
            return false;
    }
    return true;
}

/* Files and kernels of an earlier version know neither the name nor the row. */
static tn_status since_check(const tn_op *op, const tn_attr_def *d)
{
    if (d->since > 1 && d->since > op->version)
        return tni_error(TN_E_ARG,
                         "operator %s: attribute %s came with version %u, but the operator is of version %u",
                         op->name, d->name, d->since, op->version);
    if (d->since > 1 && !d->default_text)
        return tni_error(TN_E_ARG,
                         "operator %s: attribute %s came with version %u and has no default, so no older "
                         "file can be read",
                         op->name, d->name, d->since);
    if (d > op->attrs && d[-1].since > 1 && d[-1].since > d->since)
        return tni_error(TN_E_ARG, "operator %s: attribute %s is older than %s and must stand before it",
                         op->name, d->name, d[-1].name);
    return TN_OK;
}

static tn_status attr_check(const tn_op *op, const tn_attr_def *d)
{
    if (!name_good(d->name))
        return tni_error(TN_E_ARG, "operator %s: an attribute has a bad name", op->name);
    if (d->type < TN_ATTR_T_INT || d->type > TN_ATTR_T_OPT_TUPLE)
        return tni_error(TN_E_ARG, "operator %s: attribute %s has the unknown type %u", op->name, d->name,
                         d->type);
    if (d->reserved)
        return tni_error(TN_E_ARG, "operator %s: attribute %s: `reserved` is %u, not 0", op->name, d->name,
                         d->reserved);
    if (d->type == TN_ATTR_T_CHOICE && (!d->choices || !d->choices[0]))
        return tni_error(TN_E_ARG, "operator %s: attribute %s has no choices", op->name, d->name);
    if ((d->flags & TN_ATTR_F_COUNT) && d->type != TN_ATTR_T_INT)
        return tni_error(TN_E_ARG, "operator %s: attribute %s counts inputs, but is no integer", op->name,
                         d->name);
    for (const tn_attr_def *e = op->attrs; e < d; e++)
        if (strcmp(e->name, d->name) == 0)
            return tni_error(TN_E_ARG, "operator %s: attribute %s is there twice", op->name, d->name);
    return since_check(op, d);
}

/* What has no meaning yet is refused, so that a later version may give it one. */
static tn_status unknown_check(const tn_op *op)
{
    if (op->flags & ~TN_OP_KNOWN)
        return tni_error(TN_E_UNSUPPORTED, "operator %s: the flags %#x are not known", op->name,
                         op->flags & ~TN_OP_KNOWN);
    if (op->effects & ~TN_EFFECT_KNOWN)
        return tni_error(TN_E_UNSUPPORTED, "operator %s: the effects %#x are not known", op->name,
                         op->effects & ~TN_EFFECT_KNOWN);
    if (op->reserved)
        return tni_error(TN_E_ARG, "operator %s: `reserved` is %u, not 0", op->name, op->reserved);
    if (op->exec == TN_EXEC_COLLECTIVE)
        return tni_error(TN_E_UNSUPPORTED,
                         "operator %s: nothing runs operators of kind TN_EXEC_COLLECTIVE yet", op->name);
    return TN_OK;
}

/* A view shows what is there: the operator does nothing else. */
static tn_status view_check(const tn_op *op)
{
    if (op->struct_size < TN_END(tn_op, view) || !op->view)
        return TN_OK;
    if (op->inputs && op->inputs[0] && op->exec == TN_EXEC_KERNEL && !op->effects && !op->mutates &&
        !(op->flags & (TN_OP_VIEW | TN_OP_CHECKS_VALUES)))
        return TN_OK;
    return tni_error(
        TN_E_ARG,
        "operator %s: `view` is for kernels that show elements of their first input: no effects, "
        "no mutated inputs, neither TN_OP_VIEW nor TN_OP_CHECKS_VALUES",
        op->name);
}

/* Names of a table of arguments: those before the ones that end in '*', these, and those behind. */
typedef struct arg_counts {
    uint32_t fixed, repeated, tail;
} arg_counts;

static tn_status args_check(const tn_op *op, const char *const *names, arg_counts *n)
{
    *n = (arg_counts){0, 0, 0};
    for (uint32_t i = 0; names && names[i]; i++) {
        char name[NAME_MAX_BYTES + 2];
        size_t length = strnlen(names[i], sizeof name);
        const bool star = length > 1 && length < sizeof name && names[i][length - 1] == '*';

        if ((star && n->tail) || i == ARGS_MAX || length >= sizeof name)
            return tni_error(TN_E_ARG, "operator %s: its arguments are too many or misnamed", op->name);
        memcpy(name, names[i], length + 1);
        name[length - star] = '\0';
        if (!name_good(name))
            return tni_error(TN_E_ARG, "operator %s: argument %u has a bad name", op->name, i);
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(names[k], names[i]) == 0)
                return tni_error(TN_E_ARG, "operator %s: argument %s is there twice", op->name, names[k]);
        ++*(star ? &n->repeated : n->repeated ? &n->tail : &n->fixed);
    }
    if (!op->args && (n->repeated > 1 || n->tail))
        return tni_error(TN_E_ARG, "operator %s: no function says how often its arguments repeat", op->name);
    return TN_OK;
}

static tn_status mutates_check(const tn_op *op, const arg_counts *in)
{
    const bool knows = op->struct_size >= TN_END(tn_op, mutates_tail);
    const uint32_t period = knows ? op->mutates_period : 0, tail = knows ? op->mutates_tail : 0;
    const uint32_t bits = period ? period : in->fixed;

    if (period > ARGS_MAX || (period && !in->repeated) || (tail && !period))
        return tni_error(TN_E_ARG,
                         "operator %s: mutates_period %u and mutates_tail %u, for inputs that repeat 1 to %d "
                         "are possible, and a tail with a period",
                         op->name, period, tail, ARGS_MAX);
    if (bits < ARGS_MAX && op->mutates >> bits && (period || !in->repeated))
        return tni_error(TN_E_ARG, "operator %s: mutates an input that it has not", op->name);
    return TN_OK;
}

/* Inputs of which only the shape is read: they are there, and nobody changes them. */
static tn_status shapes_only_check(const tn_op *op, const arg_counts *in)
{
    const uint64_t bits = op->struct_size >= TN_END(tn_op, shapes_only) ? op->shapes_only : 0;
    const uint32_t names = tni_names_count(op->inputs);

    if ((names >= ARGS_MAX || !(bits >> names)) &&
        !(bits && (in->repeated ? op->mutates != 0 : op->mutates & bits)))
        return TN_OK;
    return tni_error(
        TN_E_ARG, "operator %s: shapes_only speaks of inputs that it has not, or that it mutates", op->name);
}

/* Bits that have no meaning yet would be read by a later version of the library. */
static tn_status attr_flags_check(const tn_op *op, const tn_attr_def *d)
{
    if (d->flags & ~TN_ATTR_F_KNOWN ||
        (d->flags & (TN_ATTR_F_RUNTIME | TN_ATTR_F_SHAPE)) == TN_ATTR_F_SHAPE ||
        (d->flags & TN_ATTR_F_PAIRS && d->type != TN_ATTR_T_TUPLE))
        return tni_error(TN_E_ARG, "operator %s: attribute %s has the flags %#x, which say nothing", op->name,
                         d->name, d->flags);
    return TN_OK;
}

/* Of exec TN_EXEC_SUBGRAPH, and of no other, a function says what runs. */
static tn_status bodies_check(const tn_op *op)
{
    const bool says = op->struct_size >= TN_END(tn_op, run_bodies) && op->run_bodies;

    if (op->flags & TN_OP_BY_VALUES && op->exec != TN_EXEC_SUBGRAPH)
        return tni_error(TN_E_ARG, "operator %s runs graphs as values say, but its kind of execution is %u",
                         op->name, op->exec);
    if (says == (op->exec == TN_EXEC_SUBGRAPH))
        return TN_OK;
    return tni_error(TN_E_UNSUPPORTED,
                     says ? "operator %s has run_bodies, but its kind of execution is %u"
                          : "operator %s runs graphs of its own, but has no run_bodies (kind %u)",
                     op->name, op->exec);
}

static tn_status attrs_check(const tn_op *op)
{
    size_t count = 0;
    tn_status st = TN_OK;

    for (const tn_attr_def *d = op->attrs; !st && d && d->name; d++)
        if (count++ == TNI_ATTRS_MAX)
            st = tni_error(TN_E_ARG, "operator %s: more than %d attributes", op->name, TNI_ATTRS_MAX);
        else if (!(st = attr_check(op, d)))
            st = attr_flags_check(op, d);
    return st;
}

static tn_status def_fill(tni_opdef *def, const tn_op *op, tni_plugin *plugin)
{
    arg_counts in, out;
    tn_status st;

    if (op->struct_size < TN_END(tn_op, gradient))
        return tni_error(TN_E_ARG, "an operator's definition has %u bytes, at least %zu are needed",
                         op->struct_size, TN_END(tn_op, gradient));
    if (!name_good(op->name))
        return tni_error(TN_E_ARG,
                         "an operator has the bad name \"%.100s\": 1 to %d letters, digits and _.-: are "
                         "allowed",
                         op->name ? op->name : "", NAME_MAX_BYTES);
    def->op = op;
    def->plugin = plugin;
    def->count_attr = -1;
    if ((st = bodies_check(op)) || (st = args_check(op, op->inputs, &in)) ||
        (st = args_check(op, op->outputs, &out)) || (st = mutates_check(op, &in)) ||
        (st = shapes_only_check(op, &in)))
        return st;
    def->input_count = in.fixed;
    def->variadic = in.repeated > 0;
    if (op->exec > TN_EXEC_COLLECTIVE || (!op->shape && op->exec == TN_EXEC_KERNEL))
        return tni_error(TN_E_ARG, "operator %s: no shape function, or an unknown kind of execution",
                         op->name);
    if ((st = unknown_check(op)) || (st = view_check(op)))
        return st;
    if (!op->args && (out.fixed == 0 || out.repeated || op->visible > out.fixed))
        return tni_error(
            TN_E_ARG, "operator %s: no function says how many outputs it has, or more are visible", op->name);
    if ((st = attrs_check(op)))
        return st;
    for (const tn_attr_def *d = op->attrs; d && d->name; d++, def->attr_count++) {
        if (d->flags & TN_ATTR_F_RUNTIME)
            def->runtime_mask[def->attr_count / 64] |= (uint64_t)1 << (def->attr_count % 64);
        if (d->flags & TN_ATTR_F_RUNTIME && op->args && tni_attr_is_tuple(d->type))
            def->by_run |= TNI_BY_RUN_ARGS;
        if (d->flags & TN_ATTR_F_SHAPE)
            def->by_run |= TNI_BY_RUN_SHAPES;
        if (d->flags & TN_ATTR_F_COUNT)
            def->count_attr = (int32_t)def->attr_count;
    }
    return TN_OK;
}

/* ---- adding ----------------------------------------------------------------------------------- */

static void registered_destroy(registered *e)
{
    if (!e)
        return;
    tni_attrs_release(e->defaults);
    tni_ruled_op_destroy(e->ruled);
    tni_body_destroy(e->def.body);
    tni_free(e);
}

/* [takes ruled] A rule of the core is parsed at first use,
 * others' at once: what cannot be read is refused. */
static tn_status registered_create(const tn_op *op, const tni_opdef *about, tni_ruled_op *ruled,
                                   registered **out)
{
    registered *e = tni_zalloc(sizeof *e);
    const tn_op *made;
    tn_status st = TN_OK;

    if (!e) {
        tni_ruled_op_destroy(ruled);
        return TN_E_NOMEM;
    }
    e->given = op;
    e->ruled = ruled;
    if (op->exec == TN_EXEC_COPY && !about->family && op->struct_size >= TN_END(tn_op, gradient))
        st = tni_error(TN_E_UNSUPPORTED,
                       "operator %.80s: copies between devices (TN_EXEC_COPY) are the library's own",
                       op->name ? op->name : "");
    if (!st && about->meaning && !(st = tni_op_derive(op, about->meaning, &e->derived, &e->def.borrowed)) &&
        tni_op_is_ruled(&e->derived)) /* types and steps of its own */
        st = tni_ruled_op_derived(&e->derived, about->family == NULL, &e->ruled);
    made = e->ruled ? tni_ruled_op_definition(e->ruled) : about->meaning ? &e->derived : op;
    if (st || (st = def_fill(&e->def, made, about->plugin)) ||
        (st = tni_attrs_defaults(&e->def, &e->defaults))) {
        registered_destroy(e);
        return st;
    }
    e->def.defaults = e->defaults->values;
    *out = e;
    return TN_OK;
}

static tn_status name_add(tni_opset *s, const char *name, registered *e) TN_REQUIRES(&s->lock)
{
    if (!name_good(name))
        return tni_error(TN_E_ARG, "operator %s: an alias has a bad name", e->def.op->name);
    if (tni_map_get(s->names, name, NULL) || strcmp(name, "null") == 0) /* in files a variable is a "null" */
        return tni_error(TN_E_KEY, "operator %s: the name %s is taken", e->def.op->name, name);
    return tni_map_set(s->names, name, e);
}

static tn_status registered_add(tni_opset *s, registered *e) TN_REQUIRES(&s->lock)
{
    const char *const *alias = e->def.op->aliases;
    size_t done = 0;
    tn_status st = name_add(s, e->def.op->name, e);

    if (st)
        return st;
    for (; !st && alias && alias[done]; done += st == TN_OK)
        st = name_add(s, alias[done], e);
    e->def.id = (uint32_t)s->list.count;
    if (!st)
        st = tni_vec_push(&s->list, &e);
    if (!st)
        return TN_OK;
    while (done-- > 0)
        tni_map_remove(s->names, alias[done]);
    tni_map_remove(s->names, e->def.op->name);
    return st;
}

/* Takes the last one away again. */
static void entry_drop(tni_opset *s) TN_REQUIRES(&s->lock)
{
    registered *e = *(registered **)tni_vec_at(&s->list, s->list.count - 1);
    const char *const *alias = e->def.op->aliases;

    for (; alias && *alias; alias++)
        tni_map_remove(s->names, *alias);
    tni_map_remove(s->names, e->def.op->name);
    s->list.count--;
    registered_destroy(e);
}

static const tni_opdef *named(const void *names, const char *name)
{
    void *found = NULL;

    return tni_map_get(names, name, &found) ? &((registered *)found)->def : NULL;
}

/* One definition, already complete. [takes ruled] */
static tn_status one_add(tni_opset *s, const tn_op *op, const tni_opdef *about, tni_ruled_op *ruled)
    TN_REQUIRES(&s->lock)
{
    registered *e = NULL;
    tn_status st = registered_create(op, about, ruled, &e);

    if (st)
        return st;
    e->def.family = about->family;
    e->def.function = about->function;
    e->def.meaning = about->meaning;
    if (e->def.op->struct_size >= TN_END(tn_op, body) && e->def.op->body)
        st = tni_body_create(&e->def, named, s->names, &e->def.body);
    if (st || (st = registered_add(s, e)))
        registered_destroy(e);
    return st;
}

/* One definition whose kernels are another one's. */
static tn_status derived_add(tni_opset *s, const tn_op *op, const tni_opdef *about) TN_REQUIRES(&s->lock)
{
    tni_opdef derived = *about;
    void *found;

    if (!name_good(op->computes) || !tni_map_get(s->names, op->computes, &found))
        return tni_error(TN_E_KEY, "operator %.80s computes %.80s, which is not known (yet)", op->name,
                         op->computes);
    derived.meaning = tni_op_meaning(&((registered *)found)->def);
    return one_add(s, op, &derived, NULL);
}

/* A definition and, where it has a gradient rule, its backward operator. `about`: who brings it. */
static tn_status op_add(tni_opset *s, const tn_op *op, const tni_opdef *about) TN_REQUIRES(&s->lock)
{
    const bool own = about->family != NULL;
    tni_ruled_op *forward = NULL, *backward = NULL;
    tn_status st;

    if (op->struct_size < TN_END(tn_op, gradient) || !name_good(op->name))
        return one_add(s, op, about, NULL); /* says what is wrong */
    if (!own && (st = attrs_check(op)))     /* rules are read against them */
        return st;
    if (tni_op_is_derived(op))
        return derived_add(s, op, about);
    if (!tni_op_is_ruled(op))
        return one_add(s, op, about, NULL);
    if ((st = tni_ruled_op_create(op, !own, &forward)))
        return st;
    if ((st = tni_ruled_op_backward(forward, &backward))) {
        tni_ruled_op_destroy(forward);
        return st;
    }
    if ((st = one_add(s, op, about, forward)) || !backward) {
        tni_ruled_op_destroy(backward);
        return st;
    }
    if ((st = one_add(s, tni_ruled_op_definition(backward), about, backward)))
        entry_drop(s);
    return st;
}

static tn_status add_locking(tni_opset *s, const tn_op *op, const tni_opdef *about)
{
    tn_status st;

    tni_mutex_lock(&s->lock);
    st = op_add(s, op, about);
    tni_mutex_unlock(&s->lock);
    return st;
}

tn_status tni_opset_add(tni_opset *s, const tn_op *op, tni_plugin *plugin)
{
    return op ? add_locking(s, op, &(tni_opdef){.plugin = plugin}) : tni_error(TN_E_ARG, "no operator given");
}

tn_status tni_opset_add_function(tni_opset *s, const tn_op *op, void *function)
{
    return add_locking(s, op, &(tni_opdef){.function = function});
}

static bool known(tni_opset *s, const tn_op *op) TN_REQUIRES(&s->lock)
{
    void *found;

    return name_good(op->name) && tni_map_get(s->names, op->name, &found) &&
           ((registered *)found)->given == op;
}

/* Takes in the definitions of loaded plugins. One bad plugin must not take the others' operators away: the
 * first error is handed out, with the texts of all, and the rest goes on. */
static tn_status plugins_take(tni_opset *s) TN_REQUIRES(&s->lock)
{
    const tn_capability *table;
    tni_plugin *plugin;
    tn_status first = TN_OK;
    char text[480] = "";
    size_t used = 0;

    /* Before they are looked at: what is loaded meanwhile makes this old. */
    s->generation = tni_registry_generation(s->plugins);
    for (size_t i = 0; tni_registry_capability(s->plugins, TN_KIND_OPS, i, &table, &plugin); i++) {
        const tn_op_table *ops = (const tn_op_table *)(const void *)table;

        if (ops->head.struct_size < TN_END(tn_op_table, ops))
            continue;
        for (size_t k = 0; ops->ops && ops->ops[k]; k++) {
            tn_status st =
                known(s, ops->ops[k]) ? TN_OK : op_add(s, ops->ops[k], &(tni_opdef){.plugin = plugin});

            if (st && used < sizeof text)
                used += (size_t)snprintf(text + used, sizeof text - used, "%splugin %s: %s", used ? "; " : "",
                                         plugin->note.body.name, tni_error_message());
            first = first ? first : st;
        }
    }
    return first ? tni_error(first, "%s", text) : TN_OK;
}

/* ---- asking ----------------------------------------------------------------------------------- */

static const tni_opdef *lookup(tni_opset *s, const char *name)
{
    void *found = NULL;

    tni_mutex_lock(&s->lock);
    if (!tni_map_get(s->names, name, &found))
        found = NULL;
    tni_mutex_unlock(&s->lock);
    return found ? &((registered *)found)->def : NULL;
}

/* After a miss: plugins that bring operators are loaded once, and looked through whenever any was loaded
 * since. The lock is not held while plugins load. */
static tn_status plugins_ask(tni_opset *s)
{
    bool asked;
    tn_status st = TN_OK;

    if (!s->plugins)
        return TN_OK;
    tni_mutex_lock(&s->lock);
    asked = s->asked;
    tni_mutex_unlock(&s->lock);
    if (!asked && (st = tni_registry_load_providers(s->plugins, "op", NULL))) /* beside other threads, too */
        return st;
    tni_mutex_lock(&s->lock);
    s->asked = true;
    if (!asked || s->generation != tni_registry_generation(s->plugins))
        st = plugins_take(s);
    tni_mutex_unlock(&s->lock);
    if (st) /* it is found by its absence, perhaps much later */
        tni_registry_warn(s->plugins, tni_error_message());
    return st;
}

/* A plugin that may not run and whose note promises `name`; else one whose note was not even read;
 * or NULL. */
static const tni_plugin *refused_provider(const tni_opset *s, const char *name)
{
    const tni_plugin *unread = NULL;

    for (size_t i = 0; s->plugins && i < tni_registry_count(s->plugins); i++) {
        const tni_plugin *p = tni_registry_at(s->plugins, i);

        if (!p || !tni_plugin_unusable(p))
            continue;
        if (tni_note_provides(&p->note, "op", name))
            return p;
        if (!unread && !p->note.body.name[0])
            unread = p;
    }
    return unread;
}

static tn_status miss_error(tni_opset *s, const char *name)
{
    const tni_plugin *refused = refused_provider(s, name);
    const char **names, *key, *similar[3];
    size_t cursor = 0, count = 0, found;
    void *value;

    if (refused && refused->note.body.name[0])
        return tni_error_number(1301, TN_E_KEY, "there is no operator %.80s: plugin %s was refused: %s", name,
                                refused->note.body.name, refused->reason);
    tni_mutex_lock(&s->lock);
    names = tni_calloc(tni_map_count(s->names) + 1, sizeof *names);
    if (!names) {
        tni_mutex_unlock(&s->lock);
        return TN_E_NOMEM;
    }
    while (tni_map_next(s->names, &cursor, &key, &value))
        if (!(((registered *)value)->def.op->flags & (TN_OP_BACKWARD | TN_OP_INTERNAL)))
            names[count++] = key;
    tni_mutex_unlock(&s->lock); /* names are never removed once added, so the texts stay */
    found = tni_suggest(name, names, similar);
    tni_free(names);
    if (found == 0 && refused)
        return tni_error_number(1301, TN_E_KEY, "there is no operator %.80s, but %.160s was refused: %s",
                                name, refused->path, refused->reason);
    if (found == 0)
        return tni_error_number(1301, TN_E_KEY, "there is no operator %.80s", name);
    return tni_error_number(1301, TN_E_KEY, "there is no operator %.80s, did you mean %s%s%s?", name,
                            similar[0], found > 1 ? " or " : "", found > 1 ? similar[1] : "");
}

tn_status tni_opset_find(tni_opset *s, const char *name, const tni_opdef **out)
{
    const tni_opdef *def;
    tn_status st;

    if (!name)
        return tni_error(TN_E_ARG, "no operator named");
    if (!*name)
        return tni_error(TN_E_KEY, "the name of an operator is empty");
    if (!(def = lookup(s, name))) {
        st = plugins_ask(s);
        def = lookup(s, name);
        if (!def && st)
            return st;
    }
    if (!def)
        return miss_error(s, name);
    *out = def;
    return TN_OK;
}

tn_status tni_opset_find_kept(tni_opset *s, const char *name, const tni_opdef **out)
{
    const tni_opdef *def = NULL;
    tn_status st = tni_opset_find(s, name, &def);

    if (st)
        return st;
    if (def->op->flags & TN_OP_INTERNAL)
        return tni_error_number(
            1303, TN_E_UNSUPPORTED,
            "operator %.80s is a part of compiled programs or of copies, and cannot be called "
            "by name",
            name);
    *out = def;
    return TN_OK;
}

tn_status tni_opset_find_offered(tni_opset *s, const char *name, const tni_opdef **out)
{
    const tni_opdef *def = NULL;
    tn_status st = tni_opset_find_kept(s, name, &def);

    if (st)
        return st;
    if (def->op->flags & TN_OP_BACKWARD)
        return tni_error_number(1303, TN_E_UNSUPPORTED,
                                "operator %.80s is a part of gradients and cannot be called by name", name);
    *out = def;
    return TN_OK;
}

void tni_opset_refresh(tni_opset *s)
{
    tn_status st = TN_OK;

    if (!s->plugins)
        return;
    tni_mutex_lock(&s->lock);
    if (s->generation != tni_registry_generation(s->plugins))
        st = plugins_take(s);
    tni_mutex_unlock(&s->lock);
    if (st)
        tni_registry_warn(s->plugins, tni_error_message());
}

size_t tni_opset_count(const tni_opset *s)
{
    tni_opset *shared = (tni_opset *)(uintptr_t)s; /* only its lock is touched */
    size_t count;

    tni_mutex_lock(&shared->lock);
    count = shared->list.count;
    tni_mutex_unlock(&shared->lock);
    return count;
}

const tni_opdef *tni_opset_at(const tni_opset *s, size_t index)
{
    tni_opset *shared = (tni_opset *)(uintptr_t)s;
    const tni_opdef *def = NULL;

    tni_mutex_lock(&shared->lock);
    if (index < shared->list.count)
        def = &(*(registered **)tni_vec_at(&shared->list, index))->def;
    tni_mutex_unlock(&shared->lock);
    return def;
}

/* ---- the set ---------------------------------------------------------------------------------- */

tn_status tni_opset_create(tni_registry *plugins, tni_opset **out)
{
    tni_opset *s = tni_zalloc(sizeof *s);
    tn_status st;

    if (!s)
        return TN_E_NOMEM;
    if ((st = tni_mutex_init(&s->lock))) {
        tni_free(s);
        return st;
    }
    s->plugins = plugins;
    tni_mutex_lock(&s->lock);
    tni_vec_init(&s->list, sizeof(registered *), TN_OPERATORS_MAX);
    st = tni_map_create(TN_OPERATORS_MAX, &s->names);
    for (size_t f = 0; !st && families[f]; f++)
        for (size_t i = 0; !st && families[f][i]; i++)
            st = op_add(s, families[f][i], &(tni_opdef){.family = family_names[f]});
    tni_mutex_unlock(&s->lock);
    if (st) {
        tni_opset_destroy(s);
        return st;
    }
    *out = s;
    return TN_OK;
}

void tni_opset_destroy(tni_opset *s)
{
    if (!s)
        return;
    tni_mutex_lock(&s->lock);
    for (size_t i = 0; i < s->list.count; i++)
        registered_destroy(*(registered **)tni_vec_at(&s->list, i));
    tni_vec_fini(&s->list);
    tni_map_destroy(s->names);
    tni_mutex_unlock(&s->lock);
    tni_mutex_fini(&s->lock);
    tni_free(s);
}
