/*
 * A net of 600 parts on two devices in turn, each of which reads a constant of its own: more ports of
 * constants than segments name themselves. Most wait for the first one of their device, and a weight that is
 * written counts.
 */
#include "net.h"

#include <math.h>

enum { PARTS = 600, COUNT = 4 };

typedef struct parts {
    tni_context *c;
    tni_device *d[2];
    tni_graph *g;
    tni_compiled *e;
    tni_array *in[1 + PARTS];
    float weight[PARTS];
} parts;

static const int64_t shape[1] = {COUNT};

static uint32_t variable(parts *p, int at, tni_device *d)
{
    const tn_shape known = {.ndim = 1, .dim = {COUNT}};
    uint32_t node;

    assert_ok(tni_graph_add_variable(p->g, at ? "w" : "x", &node));
    assert_ok(tni_graph_preset(p->g, p->g->nodes[node].variable, &known, TN_F32, TN_STORAGE_DENSE));
    assert_ok(tni_array_create(p->c->space, d, TN_F32, 1, shape, "test", &p->in[at]));
    p->g->nodes[node].device = d;
    return p->g->nodes[node].first_entry;
}

static uint32_t op(parts *p, const char *name, uint32_t count, const uint32_t *in, tni_device *d)
{
    const tni_opdef *def;
    tni_attrs *attrs = NULL;
    uint32_t node;

    assert_ok(tni_opset_find(p->c->ops, name, &def));
    assert_ok(tni_attrs_parse(def, 0, NULL, NULL, &attrs));
    assert_ok(tni_graph_add_node(p->g, def, attrs, name, count, in, &node));
    tni_attrs_release(attrs);
    p->g->nodes[node].device = d;
    return p->g->nodes[node].first_entry;
}

static void weight_write(parts *p, int i, float value)
{
    const float values[COUNT] = {value, value, value, value};

    p->weight[i] = value;
    assert_ok(tni_array_write(p->in[1 + i], values, sizeof values));
}

/* y = x + tanh(w0) + tanh(w1) + … */
static void parts_open(parts *p)
{
    uint8_t constants[1 + PARTS] = {0};
    tni_compiled_spec spec = {.constants = constants};
    uint32_t y;

    *p = (parts){.c = test_context(NULL)};
    for (int i = 0; i < 2; i++)
        assert_ok(tni_device_get(p->c->devices, "cpu", i, &p->d[i]));
    assert_ok(tni_kernels_load(p->c->plugins, p->d[0]));
    assert_ok(tni_graph_create(p->c->ops, &p->g));
    y = variable(p, 0, p->d[0]);
    assert_ok(tni_array_fill(p->in[0], 1.0));
    for (int i = 0; i < PARTS; i++) {
        const uint32_t w = variable(p, 1 + i, p->d[i % 2]), in[2] = {y, op(p, "tanh", 1, &w, p->d[i % 2])};

        y = op(p, "elemwise_add", 2, in, p->d[i % 2]);
        weight_write(p, i, 0.01f * (float)(i % 7));
        constants[1 + i] = 1;
    }
    assert_ok(tni_graph_set_heads(p->g, 1, &y));
    assert_ok(tni_graph_infer(p->g, false));
    spec.ctx = p->c;
    spec.graph = p->g;
    spec.device = p->d[0];
    assert_ok(tni_compiled_create(&spec, &p->e));
}

static void parts_call(parts *p)
{
    const tni_program *program = p->e->program;
    const tni_port *out = &program->ports[program->input_count];
    tni_launch l = {.phase = TNI_FORWARD};
    tni_array *y = NULL, **arrays;
    float want = 1, values[COUNT];

    assert_ok(tni_array_create(p->c->space, out->device, TN_F32, 1, shape, "test", &y));
    assert_ok(tni_frame_take(p->e->pool, false, &l.frame));
    l.arrays = arrays = tni_frame_arrays(l.frame, l.phase);
    for (uint32_t i = 0; i < program->input_count; i++)
        arrays[i] = p->in[program->ports[i].index];
    arrays[program->input_count] = y;
    assert_ok(tni_launch_all(p->c, &(tni_launch_group){.launches = &l, .count = 1}));
    tni_frame_release(l.frame);
    for (int i = 0; i < PARTS; i++)
        want += tanhf(p->weight[i]);
    for (int i = 0; i < COUNT; i++)
        values[i] = want;
    test_values(y, values, COUNT, 1e-3f);
    tni_array_release(y);
}

static void test_most_wait_for_the_first(void **state)
{
    uint32_t named = 0, readers = 0;
    parts p;

    (void)state;
    parts_open(&p);
    for (uint32_t s = 0; s < p.e->program->segment_count; s++) {
        const tni_segment *segment = &p.e->program->segments[s];

        if (!(segment->flags & TNI_SEGMENT_CONSTANTS))
            continue;
        readers++;
        named += segment->read_count > PARTS / 4;
    }
    assert_true(readers >= PARTS - 10); /* else this shows nothing */
    assert_true(named > 0 && named < readers);
    parts_call(&p);
    parts_call(&p);
    for (int i = PARTS - 4; i < PARTS; i++) {
        weight_write(&p, i, 0.5f + (float)i / PARTS);
        parts_call(&p);
    }
    tni_compiled_release(p.e);
    for (int i = 0; i <= PARTS; i++)
        tni_array_release(p.in[i]);
    test_context_close(p.c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_most_wait_for_the_first)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
