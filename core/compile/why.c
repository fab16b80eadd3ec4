/*
 * Why a kernel is chosen: the candidates in the order of select.c, each with the reason if it does not fit,
 * and the rule that put the chosen one before the next that fits. Nothing is kept of what is prepared here.
 */
#include <string.h>

#include "compile/select.h"
#include "tenon/kernel.h"

void tni_choice_fini(tni_choice *c)
{
    tni_vec_fini(&c->lines);
    *c = (tni_choice){.chosen = TNI_NONE};
}

/* TN_OK with line->fits false: the kernel does not serve this.
 * `*stop`: it failed, and no later one is tried. */
static tn_status ask_it(tni_selector *s, const tni_request *r, const tni_candidate *c, tni_choice_line *line,
                        bool *stop)
{
    tni_prepared *p = NULL;
    tn_err err = {0};
    tn_status st = tni_candidate_prepare(s, r, c, false, &p, &err);

    line->asked = true;
    line->fits = !st;
    tni_prepared_release(p);
    if (st == TN_E_NOMEM)
        return err.message[0] ? tni_error_take(st, &err, c->kernel->name)
                              : tni_error(st, "out of memory while a kernel is prepared");
    if (!st)
        return TN_OK;
    err.message[sizeof err.message - 1] = '\0';
    *stop |= st != TN_E_UNSUPPORTED;
    snprintf(line->why, sizeof line->why, "%s%.200s", st == TN_E_UNSUPPORTED ? "" : "fails: ",
             err.message[0] ? err.message : "does not serve this case");
    return TN_OK;
}

static tn_status candidates_tell(tni_selector *s, const tni_request *r, bool ask, const tni_vec *list,
                                 tni_choice *out)
{
    const char *pin = tni_pin_of(s, r);
    bool stop = false;
    tn_status st = TN_OK;

    for (size_t i = 0; i < list->count && !st; i++) {
        const tni_ranked *item = tni_vec_at(list, i);
        tni_choice_line line = {.plugin = item->c.plugin,
                                .kernel = item->c.kernel,
                                .prefer = item->prefer,
                                .pinned = *pin && item->pin == 0};

        if (*pin && !line.pinned)
            snprintf(line.why, sizeof line.why, "not the pinned one");
        else if (tni_rules_match(r, &item->c, line.why, sizeof line.why) && ask)
            st = ask_it(s, r, &item->c, &line, &stop);
        else
            line.fits = !line.why[0];
        if (!st && line.fits && !stop && out->chosen == TNI_NONE)
            out->chosen = (uint32_t)i;
        if (!st)
            st = tni_vec_push(&out->lines, &line);
    }
    return st;
}

/* Plugins that say they have kernels for the device and may not run; `*unlisted` counts those that
 * plugins.load leaves out. */
static tn_status absent_tell(tni_selector *s, const tni_request *r, tni_choice *out, uint32_t *unlisted)
{
    tni_registry *plugins = tni_selector_plugins(s);
    tn_status st = TN_OK;
    tni_plugin *p;

    for (size_t i = 0; (p = tni_registry_at(plugins, i)) && !st; i++) {
        tni_choice_line line = {.plugin = p, .prefer = INT32_MAX};

        if (!tni_plugin_unusable(p) || (!tni_note_provides(&p->note, "kernels", r->device->kernels_type) &&
                                        !tni_note_provides(&p->note, "kernels", r->device->type)))
            continue;
        *unlisted += p->code == 0;
        if (p->code)
            snprintf(line.why, sizeof line.why, "L%02u: %.240s", p->code, p->reason);
        else
            snprintf(line.why, sizeof line.why, "%.250s", p->reason);
        st = tni_vec_push(&out->lines, &line);
    }
    return st;
}

/* The next candidate behind the chosen one that fits, too. */
static const tni_choice_line *runner_up(const tni_choice *c)
{
    for (size_t i = c->chosen + 1u; i < c->lines.count; i++) {
        const tni_choice_line *line = tni_vec_at(&c->lines, i);

        if (line->fits)
            return line;
    }
    return NULL;
}

/* The first `count` lines are of one plugin. */
static bool one_plugin(const tni_choice *c, size_t count)
{
    const tni_choice_line *first = tni_vec_at(&c->lines, 0);

    for (size_t i = 1; i < count; i++)
        if (((const tni_choice_line *)tni_vec_at(&c->lines, i))->plugin != first->plugin)
            return false;
    return true;
}

static int32_t rule_of(const tni_choice *c, size_t candidates, uint32_t unlisted)
{
    const tni_choice_line *first, *next;

    if (c->chosen == TNI_NONE)
        return TN_RULE_NONE;
    first = tni_vec_at(&c->lines, c->chosen);
    if (first->pinned)
        return TN_RULE_PIN;
    if (!(next = runner_up(c)))
        return unlisted && one_plugin(c, candidates) ? TN_RULE_LOAD : TN_RULE_ONLY;
    if (first->prefer != next->prefer)
        return TN_RULE_PREFER;
    return first->kernel->rank != next->kernel->rank ? TN_RULE_RANK : TN_RULE_NAME;
}

tn_status tni_select_why(tni_selector *s, const tni_request *r, bool ask, tni_choice *out)
{
    uint32_t unlisted = 0, bodies = 0, prompt;
    tni_choice c = {.chosen = TNI_NONE};
    tni_vec list;
    tn_status st;

    tni_vec_init(&list, sizeof(tni_ranked), TN_KERNELS_MAX);
    tni_vec_init(&c.lines, sizeof(tni_choice_line), TN_KERNELS_MAX + TN_PLUGINS_MAX);
    if ((st = tni_ranked_list(s, r, &list)) || (st = candidates_tell(s, r, ask, &list, &c)) ||
        (st = absent_tell(s, r, &c, &unlisted)) ||
        (st = tni_body_count(s, r->def, r->device, &bodies, &prompt)))
        goto cleanup;
    c.rule = rule_of(&c, list.count, unlisted);
    if (c.rule == TN_RULE_NONE && bodies)
        c.rule = TN_RULE_BODY;
    *out = c;
    c = (tni_choice){0};

cleanup:
    tni_vec_fini(&list);
    tni_vec_fini(&c.lines);
    return st;
}
