/*
 * Fills, copies, casts and sums on devices: by kernels where the device has them, counted, with the bits of
 * the host; through host memory where a kernel is missing or does not fit. What a kernel fails comes out at
 * the array. `far` has kernels of this file, `farther` has none, `fake` runs those of cpu.
 */
#include "far.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DIMS(...) ((const int64_t[]){__VA_ARGS__})

/* ---- the devices of the test ------------------------------------------------------------------------- */

static atomic_uint runs, prepares, through_host, within; /* kernels; copies of a far device */

static tn_status (*copy_bytes)(tn_stream *s, const tn_place *dst, const tn_place *src, uint64_t bytes,
                               tn_err *err);

static tn_status counted_copy(tn_stream *s, const tn_place *dst, const tn_place *src, uint64_t bytes,
                              tn_err *err)
{
    atomic_fetch_add(dst->device < 0 || src->device < 0 ? &through_host : &within, 1u);
    return copy_bytes(s, dst, src, bytes, err);
}

/* How the kernels behave. */
static struct {
    tn_status prepare, run;
    uint64_t workspace_bytes, saved_bytes;
    uint32_t at_plan;
} now;

static tn_status prepare(void *self, const tn_node *node, tn_plan *plan, tn_err *err)
{
    (void)self;
    (void)node;
    atomic_fetch_add(&prepares, 1u);
    if (now.prepare)
        return tn_fail(err, now.prepare, "planted in prepare");
    plan->workspace_bytes = now.workspace_bytes;
    plan->saved_bytes = now.saved_bytes;
    return TN_OK;
}

static tn_status run(const tn_exec *x, tn_tensor *from, tn_tensor *to, tn_err *err)
{
    atomic_fetch_add(&runs, 1u);
    if (now.run)
        return now.run == TN_PENDING ? TN_PENDING : tn_fail(err, now.run, "planted in run");
    to->data = far_near(x->out[0]);
    if (x->modes[0] == TN_MODE_ADD)
        tni_add_strided(from, to);
    else
        tni_copy_strided(from, to);
    return TN_OK;
}

static tn_status move_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    tn_tensor from = *x->in[0], to = *x->out[0];

    (void)plan;
    from.data = far_near(x->in[0]);
    return run(x, &from, &to, err);
}

static tn_status fill_run(const tn_plan *plan, const tn_exec *x, tn_err *err)
{
    static const int64_t still[TN_NDIM_MAX];
    double value = tn_value_float(x->attrs[0]);
    tn_tensor to = *x->out[0], from = to;

    (void)plan;
    from.data = &value;
    from.dtype = TN_F64;
    from.stride = still;
    return run(x, &from, &to, err);
}

static const char *const all[] = {NULL}, *const floats[] = {"*:f32", NULL};
#define KERNEL(op_, flags_, run_)                                                                            \
    {                                                                                                        \
        .struct_size = (uint32_t)TN_END(tn_kernel, release), .rank = 64, .op = (op_), .name = "test",        \
        .device = "far", .isa = "", .op_version_min = 1, .op_version_max = 1,                                \
        .flags = TN_KERNEL_DETERMINISTIC | TN_KERNEL_STRIDED | (flags_), .types = all, .prepare = prepare,   \
        .run = (run_)                                                                                        \
    }
static const tn_kernel as_made[2] = {KERNEL("_move", TN_KERNEL_ADD_TO, move_run),
                                     KERNEL("_fill", 0u, fill_run)};
static tn_kernel kernels[2];
static const tn_kernel *const kernel_list[] = {&kernels[0], &kernels[1], NULL};
static const tn_kernel_table kernel_table = {
    .head = TN_CAPABILITY(tn_kernel_table, stream_detach, TN_KIND_KERNELS, "far"), .kernels = kernel_list};
static tn_device_ops devices[2];
static const tn_capability *const capabilities[] = {&kernel_table.head, &devices[0].head, &devices[1].head,
                                                    NULL};
static const tn_plugin plugin = {.struct_size = (uint32_t)TN_END(tn_plugin, capabilities),
                                 .magic = TN_MAGIC,
                                 .abi_major = TN_ABI_MAJOR,
                                 .name = "movers",
                                 .version = "1",
                                 .license = "Apache-2.0",
                                 .capabilities = capabilities};

static tni_context *c;
static tni_device *cpu, *far, *farther, *fake;
static const char *engine;

static int open_context(void **state)
{
    const char *const settings[] = {engine, "plugin.fake.delay_us=20", "device.default=cpu", NULL};

    (void)state;
    memset(&now, 0, sizeof now);
    memcpy(kernels, as_made, sizeof kernels);
    devices[0] = far_ops;
    devices[1] = farther_ops;
    copy_bytes = far_ops.copy;
    devices[0].copy = devices[1].copy = counted_copy;
    c = test_context(settings);
    assert_ok(tni_registry_add_static(c->plugins, &plugin, NULL));
    assert_ok(tni_device_get(c->devices, "cpu", 0, &cpu));
    assert_ok(tni_device_get(c->devices, "far", 0, &far));
    assert_ok(tni_device_get(c->devices, "farther", 0, &farther));
    assert_ok(tni_device_get(c->devices, "fake", 0, &fake));
    return 0;
}

static int close_context(void **state)
{
    (void)state;
    test_context_close(c);
    return 0;
}

/* ---- arrays ------------------------------------------------------------------------------------------ */

static uint64_t random_state = 1;

static uint32_t random_below(uint32_t limit)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((random_state >> 33) % limit);
}

static tni_array *make(tni_device *d, int32_t dtype, int32_t ndim, const int64_t *shape)
{
    tni_array *a = NULL;

    assert_ok(tni_array_create(c->space, d, dtype, ndim, shape, "test", &a));
    return a;
}

static tni_array *view(tni_array *a, uint64_t offset, int32_t ndim, const int64_t *shape,
                       const int64_t *stride)
{
    tni_array *v = NULL;

    assert_ok(tni_array_view(a, offset, ndim, shape, stride, &v));
    return v;
}

/* A form of an array: strides with gaps and in any order, or dense. */
typedef struct form {
    int32_t ndim;
    int64_t shape[8], stride[8], span;
} form;

static void form_draw(form *f, int32_t ndim, bool empty)
{
    f->ndim = ndim;
    for (int32_t i = 0; i < ndim; i++)
        f->shape[i] = 1 + random_below(ndim > 4 ? 2 : 5);
    if (empty && ndim)
        f->shape[random_below((uint32_t)ndim)] = 0;
}

static void strides_draw(form *f, bool strided)
{
    int32_t order[8] = {0, 1, 2, 3, 4, 5, 6, 7};

    f->span = 1;
    for (int32_t i = f->ndim - 1; strided && i > 0; i--) {
        const int32_t j = (int32_t)random_below((uint32_t)i + 1), kept = order[i];

        order[i] = order[j];
        order[j] = kept;
    }
    for (int32_t i = f->ndim - 1; i >= 0; i--) {
        f->stride[order[i]] = f->span;
        f->span *= f->shape[order[i]] + (strided ? random_below(2) : 0);
    }
}

/* An array of this form whose memory holds `bytes`. */
static tni_array *formed(tni_device *d, int32_t dtype, const form *f, const void *bytes)
{
    tni_array *whole = make(d, dtype, 1, &f->span), *a = view(whole, 0, f->ndim, f->shape, f->stride);

    assert_ok(tni_array_write(whole, bytes, tni_array_bytes(whole)));
    assert_ok(tni_array_wait(whole));
    tni_array_release(whole);
    return a;
}

static void numbers_fill(int32_t dtype, void *to, int64_t count)
{
    static const double special[] = {0.1, -3.7, 255.5, 70000, -70000, 3e9, 1e30, -1e30, 65519.99, 1e-7};

    for (int64_t i = 0; i < count; i++) {
        const double value = random_below(4) ? (double)random_below(200) - 100
                                             : special[random_below(sizeof special / sizeof *special)];

        tni_cast(&value, TN_F64, 1, (char *)to + (uint64_t)i * tn_dtype_bytes(dtype), dtype, 1, 1);
    }
}

/* All memory that two arrays span holds the same. */
static void same_memory(tni_array *a, tni_array *b, int64_t span, const char *what)
{
    const uint64_t bytes = (uint64_t)span * tn_dtype_bytes(a->dtype);
    tni_array *whole[2] = {view(a, 0, 1, &span, NULL), view(b, 0, 1, &span, NULL)};
    char *got = calloc(2, bytes + 1);

    for (int i = 0; i < 2; i++) {
        assert_ok(tni_array_read(whole[i], got + (size_t)i * bytes, bytes));
        tni_array_release(whole[i]);
    }
    if (memcmp(got, got + bytes, bytes)) {
        print_error("%s of %s with %d dimensions\n", what, tni_dtype_name(a->dtype), a->ndim);
        fail();
    }
    free(got);
}

static int64_t fake_counts(const char *name)
{
    char key[64];
    const char *at;

    (void)snprintf(key, sizeof key, "\"%s\":", name);
    at = strstr(fake->ops->statistics(fake->handle), key);
    assert_non_null(at);
    return strtoll(at + strlen(key), NULL, 10);
}

static uint64_t pushed(void)
{
    tni_engine_stats s;

    tni_engine_stats_get(c->engine, &s);
    return s.pushed;
}

/* ---- the same on a device and on the host, in one operation -------------------------------------------- */

enum { COPY, ADD, FILL, ZERO, WAYS };

static void way_do(int way, tni_array *src, tni_array *dst)
{
    tni_moves *m = NULL;

    if (way == COPY) {
        assert_ok(tni_array_copy(src, dst));
    } else if (way == FILL) {
        assert_ok(tni_array_fill(dst, -2.75));
    } else {
        assert_ok(tni_moves_add(&m, 1, way == ADD ? src : NULL, dst, way == ADD));
        assert_ok(tni_moves_push(m, dst->storage->device, "moves"));
    }
    assert_ok(tni_array_wait(dst));
}

static void counts_check(tni_device *d, int way, tni_array *src, tni_array *dst)
{
    const bool some = tni_array_count(dst) != 0;
    const int64_t calls = fake_counts("calls"), copies = fake_counts("copies");
    const uint64_t operations = pushed();
    const bool bytes =
        way == COPY && src->dtype == dst->dtype && src->flags & dst->flags & TNI_ARRAY_CONTIGUOUS;

    atomic_store(&runs, 0u);
    atomic_store(&through_host, 0u);
    atomic_store(&within, 0u);
    way_do(way, src, dst);
    assert_int_equal(pushed() - operations, some || way == ADD || way == ZERO);
    if (d == far) {
        assert_int_equal(atomic_load(&runs), some && !bytes);
        assert_int_equal(atomic_load(&within), some && bytes);
        assert_int_equal(atomic_load(&through_host), 0);
    } else {
        assert_int_equal(fake_counts("calls") - calls, some && !bytes);
        assert_int_equal(fake_counts("copies") - copies, some && bytes);
    }
}

static void compare(tni_device *d, int way, int32_t from, int32_t to, int32_t ndim)
{
    static uint64_t in[1 << 14], out[1 << 14];
    form f, g;
    tni_array *src[2], *dst[2];

    form_draw(&f, ndim, random_below(12) == 0);
    g = f;
    strides_draw(&f, random_below(3));
    strides_draw(&g, random_below(3));
    assert_true(f.span <= 1 << 14 && g.span <= 1 << 14);
    numbers_fill(from, in, f.span);
    numbers_fill(to, out, g.span);
    for (int i = 0; i < 2; i++) {
        src[i] = formed(i ? d : cpu, from, &f, in);
        dst[i] = formed(i ? d : cpu, to, &g, out);
    }
    way_do(way, src[0], dst[0]);
    counts_check(d, way, src[1], dst[1]);
    same_memory(dst[0], dst[1], g.span, way == COPY ? "copy" : way == ADD ? "sum" : "fill");
    same_memory(src[0], src[1], f.span, "source");
    for (int i = 0; i < 2; i++) {
        tni_array_release(src[i]);
        tni_array_release(dst[i]);
    }
}

static void by_kernels(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++)
        for (int32_t to = 0; to < TN_I4; to++)
            for (int32_t ndim = 0; ndim <= 8; ndim++) {
                for (int way = ADD; way < WAYS; way++)
                    compare(k ? fake : far, way, to, to, ndim);
                compare(k ? fake : far, COPY, to, to, ndim);
                compare(k ? fake : far, COPY, (int32_t)random_below(TN_I4), to, ndim);
            }
}

/* Every cast, also of what is not a number and of bits that no number has. */
static void all_casts(void **state)
{
    uint64_t bits[16];
    const int64_t count = 16;

    (void)state;
    for (int32_t from = 0; from < TN_I4; from++)
        for (int32_t to = 0; to < TN_I4; to++) {
            tni_array *src[2], *dst[2];

            memset(bits, 0xa7, sizeof bits);
            numbers_fill(from, bits, count);
            if (tni_dtype_is_float(from)) {
                const double wild[] = {(double)NAN, (double)INFINITY, -(double)INFINITY, -0.0};

                tni_cast(wild, TN_F64, 1, bits, from, 1, tni_dtype_is_float(to) || to == TN_BOOL ? 4 : 3);
            }
            for (int i = 0; i < 2; i++) {
                const form f = {.ndim = 1, .shape = {8}, .stride = {2}, .span = count};

                src[i] = formed(i ? fake : cpu, from, &f, bits);
                dst[i] = make(i ? fake : cpu, to, 1, DIMS(8));
                way_do(COPY, src[i], dst[i]);
            }
            same_memory(dst[0], dst[1], 8, "cast");
            for (int i = 0; i < 2; i++) {
                tni_array_release(src[i]);
                tni_array_release(dst[i]);
            }
        }
}

/* ---- between a device and others ----------------------------------------------------------------------- */

static float at(int i, int j)
{
    return (float)(i * 10 + j);
}

/* (4, 3) of a matrix of 4 x 6, every second column. */
static tni_array *columns(tni_device *d)
{
    float values[24];
    tni_array *m = make(d, TN_F32, 2, DIMS(4, 6)), *v = view(m, 1, 2, DIMS(4, 3), DIMS(6, 2));

    for (int i = 0; i < 24; i++)
        values[i] = i % 2 ? at(i / 6, i % 6 / 2) : -1;
    assert_ok(tni_array_write(m, values, sizeof values));
    tni_array_release(m);
    return v;
}

static void columns_check(tni_array *a, int32_t dtype, bool turned)
{
    double got[12];
    char raw[12 * 8];

    assert_ok(tni_array_read(a, raw, 12 * tn_dtype_bytes(dtype)));
    tni_cast(raw, dtype, 1, got, TN_F64, 1, 12);
    for (int i = 0; i < 12; i++)
        assert_true(got[i] == (double)(turned ? at(i % 4, i / 4) : at(i / 3, i % 3)));
}

/* One copy crosses to the other side, of the elements alone. */
static void crossing(void **state)
{
    tni_device *const others[] = {cpu, farther};

    (void)state;
    for (int k = 0; k < 2; k++)
        for (int32_t dtype = 0; dtype < 2; dtype++) {
            tni_array *src = columns(far), *there = make(others[k], dtype, 2, DIMS(4, 6)),
                      *dst = view(there, 0, 2, DIMS(4, 3), DIMS(6, 1)),
                      *back = make(far, TN_F32, 2, DIMS(4, 6)),
                      *spread = view(back, 1, 2, DIMS(4, 3), DIMS(6, 2));

            assert_ok(tni_engine_wait_all(c->engine));
            atomic_store(&runs, 0u);
            atomic_store(&through_host, 0u);
            assert_ok(tni_array_copy(src, dst));
            tni_array_release(src);
            columns_check(dst, dtype, false);
            assert_int_equal(atomic_load(&runs), 1);
            assert_ok(tni_array_copy(dst, spread));
            columns_check(spread, TN_F32, false);
            assert_int_equal(atomic_load(&runs), 3); /* and the read */
            if (k == 0)
                assert_int_equal(atomic_load(&through_host), 3);
            tni_array_release(there);
            tni_array_release(dst);
            tni_array_release(back);
            tni_array_release(spread);
        }
}

static void overlapping_on(tni_device *d)
{
    float in[100], out[100];
    tni_array *a = make(d, TN_F32, 1, DIMS(100)), *v = NULL, *w = NULL;

    for (int i = 0; i < 100; i++)
        in[i] = (float)i;
    assert_ok(tni_array_write(a, in, sizeof in));
    assert_ok(tni_array_wait(a));
    atomic_store(&through_host, 0u);
    assert_ok(tni_array_slice(a, 0, 90, &v));
    assert_ok(tni_array_slice(a, 10, 100, &w));
    assert_ok(tni_array_copy(v, w));
    tni_array_release(v);
    tni_array_release(w);
    v = view(a, 0, 2, DIMS(10, 10), DIMS(10, 1));
    w = view(a, 0, 2, DIMS(10, 10), DIMS(1, 10));
    assert_ok(tni_array_copy(v, w)); /* transposed in place */
    assert_ok(tni_array_copy(a, a));
    assert_ok(tni_array_copy(w, w));
    assert_ok(tni_array_wait(a));
    assert_int_equal(atomic_load(&through_host), d == farther ? 6 : 0);
    assert_ok(tni_array_read(a, out, sizeof out));
    for (int i = 0; i < 100; i++)
        assert_true(out[i] == (float)(i % 10 ? (i % 10 - 1) * 10 + i / 10 : i / 10));
    tni_array_release(v);
    tni_array_release(w);
    tni_array_release(a);
}

static void overlapping(void **state)
{
    (void)state;
    overlapping_on(far);
    overlapping_on(farther);
    overlapping_on(fake);
}

/* ---- in the order of the stream ---------------------------------------------------------------------- */

/* Nobody waits and every array is released at once: fill, copy across, a sum, a cast, and so on round. */
static void chained_on(tni_device *d)
{
    tni_array *last = columns(d), *ends[20];
    double total = 0;

    for (int i = 0; i < 20; i++) {
        tni_array *added = make(d, TN_F32, 2, DIMS(4, 3)), *wide = make(d, TN_F64, 2, DIMS(3, 4)),
                  *turned = view(wide, 0, 2, DIMS(4, 3), DIMS(1, 4)), *next = make(d, TN_F32, 2, DIMS(4, 3));
        tni_moves *m = NULL;

        assert_ok(tni_array_fill(added, i));
        assert_ok(tni_moves_add(&m, 1, last, added, true));
        assert_ok(tni_moves_push(m, d, "sum"));
        assert_ok(tni_array_copy(added, turned));
        assert_ok(tni_array_copy(turned, next));
        assert_ok(tni_array_copy(next, ends[i] = make(cpu, TN_F32, 2, DIMS(4, 3))));
        tni_array_release(last);
        tni_array_release(added);
        tni_array_release(wide);
        tni_array_release(turned);
        last = next;
    }
    tni_array_release(last);
    for (int i = 0; i < 20; i++) {
        float want[12];

        total += i;
        for (int k = 0; k < 12; k++)
            want[k] = at(k / 3, k % 3) + (float)total;
        test_values(ends[i], want, 12, 0);
        tni_array_release(ends[i]);
    }
}

static void chained(void **state)
{
    (void)state;
    chained_on(far);
    chained_on(farther);
    chained_on(fake);
}

/* ---- kernels that are not there, or do not fit --------------------------------------------------------- */

static void sum_check(tni_device *d)
{
    tni_array *a = columns(d), *b = make(d, TN_F32, 2, DIMS(4, 3)),
              *turned = view(b, 0, 2, DIMS(3, 4), DIMS(1, 3)), *short_ = make(d, TN_F16, 2, DIMS(4, 3)),
              *cast = make(d, TN_F64, 2, DIMS(4, 3));
    tni_moves *m = NULL;

    assert_ok(tni_array_fill(b, 7));
    assert_ok(tni_array_fill(a, 5));
    assert_ok(tni_moves_add(&m, 2, NULL, b, false));
    assert_ok(tni_moves_add(&m, 2, a, b, true));
    assert_ok(tni_moves_push(m, d, "sum"));
    test_values(b, (float[]){5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5}, 12, 0);
    tni_array_release(a);
    a = columns(d);
    assert_ok(tni_array_copy(a, short_));
    assert_ok(tni_array_copy(a, b));
    columns_check(turned, TN_F32, true);
    columns_check(short_, TN_F16, false);
    assert_ok(tni_array_copy(b, cast));
    columns_check(cast, TN_F64, false);
    tni_array_release(a);
    tni_array_release(b);
    tni_array_release(turned);
    tni_array_release(short_);
    tni_array_release(cast);
}

static void without_kernels(void **state)
{
    (void)state;
    atomic_store(&runs, 0u);
    sum_check(farther);
    assert_int_equal(atomic_load(&runs), 0);
}

/* Runs of sum_check where all fit: 2 fills, zeros, the sum, 3 copies, a read of a strided array. With one
 * type what is cast is made dense there, and cast on the host. */
static void kernels_that_do_not_fit(void **state)
{
    static const struct {
        const char *what;
        uint32_t flags; /* of _move in place of what it has */
        uint32_t host_in;
        const char *const *types;
        uint64_t workspace_bytes, saved_bytes;
        tn_status prepare;
        uint32_t runs;
    } rows[] = {
        {"all fit", TN_KERNEL_STRIDED | TN_KERNEL_ADD_TO, 0, all, 0, 0, TN_OK, 8},
        {"no sums", TN_KERNEL_STRIDED, 0, all, 0, 0, TN_OK, 7},
        {"dense only", TN_KERNEL_ADD_TO, 0, all, 0, 0, TN_OK, 4},
        {"one type", TN_KERNEL_STRIDED | TN_KERNEL_ADD_TO, 0, floats, 0, 0, TN_OK, 7},
        {"later", TN_KERNEL_STRIDED | TN_KERNEL_ADD_TO | TN_KERNEL_ASYNC, 0, all, 0, 0, TN_OK, 3},
        {"from the host", TN_KERNEL_STRIDED | TN_KERNEL_ADD_TO, 1, all, 0, 0, TN_OK, 3},
        {"workspace", TN_KERNEL_STRIDED | TN_KERNEL_ADD_TO, 0, all, 64, 0, TN_OK, 0},
        {"saved", TN_KERNEL_STRIDED | TN_KERNEL_ADD_TO, 0, all, 0, 64, TN_OK, 0},
        {"declined", TN_KERNEL_STRIDED | TN_KERNEL_ADD_TO, 0, all, 0, 0, TN_E_UNSUPPORTED, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kernels[0].flags = TN_KERNEL_DETERMINISTIC | rows[i].flags;
        kernels[0].host_in = rows[i].host_in;
        kernels[0].types = rows[i].types;
        now.workspace_bytes = rows[i].workspace_bytes;
        now.saved_bytes = rows[i].saved_bytes;
        now.prepare = rows[i].prepare;
        atomic_store(&runs, 0u);
        (void)tni_error(TN_E_KEY, "of before");
        sum_check(far);
        assert_string_equal(tni_error_message(), "of before"); /* a way that is not taken says nothing */
        if (atomic_load(&runs) != rows[i].runs) {
            print_error("%s: %u runs\n", rows[i].what, atomic_load(&runs));
            fail();
        }
        close_context(NULL);
        open_context(NULL);
    }
}

/* One for all views of a shape. */
static void prepared_once(void **state)
{
    tni_array *a = make(far, TN_F32, 1, DIMS(1000));

    (void)state;
    atomic_store(&prepares, 0u);
    for (int i = 0; i < 50; i++) {
        tni_array *v = view(a, (uint64_t)i, 1, DIMS(20), DIMS(3)),
                  *w = view(a, 300u + (uint64_t)i, 1, DIMS(20), DIMS(2));

        assert_ok(tni_array_fill(v, i));
        assert_ok(tni_array_copy(v, w));
        tni_array_release(v);
        tni_array_release(w);
    }
    assert_int_equal(atomic_load(&prepares), 2);
    tni_array_release(a);
}

/* ---- failures ------------------------------------------------------------------------------------------ */

static void failing(void **state)
{
    static const tn_status planted[] = {TN_E_DEVICE, TN_PENDING};
    float value = 1;

    (void)state;
    for (int i = 0; i < 2; i++)
        for (int way = 0; way < WAYS; way++) {
            tni_array *src = columns(far), *dst = make(far, way == ADD ? TN_F32 : TN_F64, 2, DIMS(4, 3)),
                      *one;
            tni_moves *m = NULL;

            assert_ok(tni_array_fill(dst, 0));
            assert_ok(tni_engine_wait_all(c->engine));
            now.run = planted[i];
            if (way == COPY) {
                assert_ok(tni_array_copy(src, dst));
            } else if (way == FILL) {
                assert_ok(tni_array_fill(dst, 1));
            } else {
                assert_ok(tni_moves_add(&m, 1, way == ADD ? src : NULL, dst, way == ADD));
                assert_ok(tni_moves_push(m, far, "moves"));
            }
            assert_int_equal(tni_array_wait(dst), i ? TN_E_INTERNAL : TN_E_DEVICE);
            assert_non_null(strstr(tni_error_message(), i ? "completes later" : "planted in run"));
            now.run = TN_OK;
            columns_check(src, TN_F32, false);
            one = view(dst, 0, 1, DIMS(1), NULL);
            assert_int_equal(tni_array_copy(src, dst), TN_OK); /* overwritten whole: it is well again */
            columns_check(dst, dst->dtype, false);
            assert_int_equal(tni_array_read(one, &value, tni_array_bytes(one) == 4 ? 4 : 0),
                             way == ADD ? TN_OK : TN_E_ARG);
            tni_array_release(one);
            tni_array_release(src);
            tni_array_release(dst);
        }
    (void)tni_engine_wait_all(c->engine);
}

/* What prepare fails other than by declining is the call's failure, and nothing is queued. */
static void failing_in_prepare(void **state)
{
    tni_array *src = columns(far), *dst = make(far, TN_F64, 2, DIMS(4, 3));
    tni_moves *m = NULL;
    uint64_t before;

    (void)state;
    assert_ok(tni_engine_wait_all(c->engine));
    before = pushed();
    now.prepare = TN_E_DEVICE;
    assert_int_equal(tni_array_copy(src, dst), TN_E_DEVICE);
    assert_non_null(strstr(tni_error_message(), "planted in prepare"));
    assert_int_equal(tni_array_fill(dst, 1), TN_E_DEVICE);
    assert_int_equal(tni_moves_add(&m, 1, NULL, dst, false), TN_E_DEVICE);
    tni_moves_destroy(m);
    assert_int_equal(pushed(), before);
    now.prepare = TN_OK;
    assert_ok(tni_array_copy(src, dst));
    columns_check(dst, TN_F64, false);
    tni_array_release(src);
    tni_array_release(dst);
}

/* Refused before any kernel is asked. */
static void hostile(void **state)
{
    tni_array *src = columns(far), *dst = make(far, TN_F64, 2, DIMS(4, 3)),
              *other = make(far, TN_F32, 2, DIMS(3, 4)), *flat = make(far, TN_F32, 1, DIMS(12));
    tni_moves *m = NULL;

    (void)state;
    assert_ok(tni_engine_wait_all(c->engine));
    atomic_store(&prepares, 0u);
    assert_int_equal(tni_array_copy(src, other), TN_E_SHAPE);
    assert_int_equal(tni_array_copy(src, flat), TN_E_SHAPE);
    dst->storage->flags |= TNI_STORAGE_READ_ONLY;
    assert_int_equal(tni_array_copy(src, dst), TN_E_STATE);
    assert_int_equal(tni_array_fill(dst, 0), TN_E_STATE);
    assert_int_equal(tni_moves_add(&m, 1, NULL, dst, false), TN_E_STATE);
    assert_int_equal(atomic_load(&prepares), 0);
    tni_moves_destroy(m);
    tni_array_release(src);
    tni_array_release(dst);
    tni_array_release(other);
    tni_array_release(flat);
}

/* Whichever allocation fails: the copy is made, or the array is as it was, or poisoned. */
static void memory_runs_out(void **state)
{
    tni_array *src = columns(far), *other = columns(cpu);
    uint64_t failures = 0, quiet = 0;

    (void)state;
    for (uint64_t nth = 1; quiet < 2; nth++) {
        tni_array *whole = make(far, TN_F64, 2, DIMS(4, 6)), *dst = view(whole, 2, 2, DIMS(4, 3), DIMS(6, 1));
        tn_status st, ended;

        assert_ok(tni_array_fill(whole, 3));
        assert_ok(tni_engine_wait_all(c->engine));
        tni_mem_fail_at(nth, false, false);
        st = tni_array_copy(nth & 1 ? src : other, dst);
        (void)tni_array_wait_write(dst);
        quiet = tni_mem_failed() ? 0 : quiet + 1;
        tni_mem_fail_at(0, false, false);
        ended = tni_array_wait(dst);
        failures += st || ended;
        assert_true((!st || st == TN_E_NOMEM) && (!ended || ended == TN_E_NOMEM));
        if (!st && !ended)
            columns_check(dst, TN_F64, false);
        tni_array_release(dst);
        tni_array_release(whole);
        (void)tni_engine_wait_all(c->engine);
    }
    assert_true(failures > 3);
    tni_array_release(src);
    tni_array_release(other);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_context, close_context)
    static const char *const engines[] = {"engine.type=threaded", "engine.type=naive"};
    const struct CMUnitTest tests[] = {
        TEST(by_kernels),         TEST(all_casts),       TEST(crossing),
        TEST(overlapping),        TEST(without_kernels), TEST(kernels_that_do_not_fit),
        TEST(prepared_once),      TEST(chained),         TEST(failing),
        TEST(failing_in_prepare), TEST(hostile),         TEST(memory_runs_out),
    };
    int failed = 0;

    for (int i = 0; i < 2; i++) {
        engine = engines[i];
        failed += cmocka_run_group_tests_name(engine, tests, NULL, NULL);
    }
    return failed;
}
