/*
 * What the tests of nn share that replay recordings of Gluon: what a call says, arrays, comparisons. Every
 * call of a recording is replayed once.
 */
#include "mxnet/nn_calls.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

recording all;
size_t replayed;

tn_app *app_open(void)
{
    static char plugins[4096];
    const char *settings[] = {plugins, NULL}, *path = getenv("TENON_TEST_PLUGINS");

    assert_non_null(path);
    (void)snprintf(plugins, sizeof plugins, "plugins.path=%s", path);
    return tn_app_open(.name = "test", .settings = settings, .no_environment = 1);
}

void app_close(tn_app *app, const call *c)
{
    if (!tn_app_ok(app))
        fail_msg("%s: %s", c->text, tn_app_error(app));
    assert_int_equal(tn_app_close(app), 0);
}

const char *text_of(const call *c, const char *name)
{
    for (size_t i = 0; c->attrs[i]; i += 2)
        if (!strcmp(c->attrs[i], name))
            return c->attrs[i + 1];
    return NULL;
}

double number_of(const call *c, const char *name)
{
    const char *text = text_of(c, name);

    return text ? strtod(text, NULL) : 0;
}

/* "loss.huber" to "huber"; NULL: of another kind. */
const char *name_of(const call *c, const char *kind)
{
    const size_t length = strlen(kind);

    return !strncmp(c->op, kind, length) && c->op[length] == '.' ? c->op + length + 1 : NULL;
}

tn_array *array_of(tn_app *app, const recorded *r)
{
    float values[NUMBERS_MAX];

    assert_true(r->count <= NUMBERS_MAX);
    for (size_t i = 0; i < r->count; i++)
        values[i] = (float)r->values[i];
    return tn_app_array(app, r->ndim, r->shape, values);
}

void near(const call *c, const char *what, const recorded *want, const double *have, size_t count,
          double relative)
{
    double largest = 0;

    if (count != want->count)
        fail_msg("%s: %zu numbers of %s, MXNet has %zu", c->text, count, what, want->count);
    for (size_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(want->values[i]));
    for (size_t i = 0; i < count; i++)
        if (!(fabs(have[i] - want->values[i]) <= relative * fabs(want->values[i]) + relative / 10 * largest))
            fail_msg("%s: %s %zu is %.9g, MXNet has %.9g", c->text, what, i, have[i], want->values[i]);
}

void near_array(tn_app *app, const call *c, const char *what, const recorded *want, tn_array *have,
                double times)
{
    float values[NUMBERS_MAX];
    double wide[NUMBERS_MAX];
    const size_t count = have ? tn_array_count(have) : 0;

    if (!tn_app_ok(app))
        fail_msg("%s: %s", c->text, tn_app_error(app));
    assert_true(count <= NUMBERS_MAX && tn_app_read(app, have, count, values));
    for (size_t i = 0; i < count; i++)
        wide[i] = (double)values[i] * times;
    near(c, what, want, wide, count, 1e-5);
}

/* Runs `replay` for each call of a kind. */
void each(const char *kind, void (*replay)(const call *c, const char *name))
{
    size_t count = 0;

    for (size_t i = 0; i < all.count; i++) {
        const char *name = name_of(&all.calls[i], kind);

        if (name) {
            replay(&all.calls[i], name);
            count++;
        }
    }
    assert_true(count);
    replayed += count;
}

const char *path_of(const char *name)
{
    static char path[4096];

    (void)snprintf(path, sizeof path, "%s/tests/oracle/recorded/nn/%s", getenv("TENON_TEST_SOURCE"), name);
    return path;
}

void nn_all_replayed(void **state)
{
    (void)state;
    assert_int_equal(replayed, all.count);
}
