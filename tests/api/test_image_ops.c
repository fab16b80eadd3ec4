/*
 * The operators of the plugin image: what MXNet's give (tests/oracle/image.py), and what they refuse.
 */
#include "api/fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/scratch.h"

#define BYTES_MAX 16384

static bool built; /* the plugin */
static char folder[1024];

static int open_all(void **state)
{
    char path[2048];

    (void)snprintf(folder, sizeof folder, "%s/tests/oracle/recorded/image", getenv("TENON_TEST_SOURCE"));
    (void)snprintf(path, sizeof path, "%s/image.so", getenv("TENON_TEST_PLUGINS"));
    built = !access(path, R_OK);
    return fixture_open(state);
}

static bool skipped(void)
{
    if (!built)
        print_message("skipped: the plugin image was not built\n");
    return !built;
}

static tn_status call(tn_ctx *ctx, const char *op, const char *const *attrs, tn_array *in, tn_array **out)
{
    tn_op_call c = {
        .struct_size = TN_SIZE(tn_op_call), .op = op, .attrs = attrs, .in_count = in ? 1 : 0, .in = &in};
    tn_status st = tn_invoke_text(ctx, &c, 1, out, NULL);

    if (st || !(st = tn_array_wait(*out)))
        return st;
    tn_array_release(*out);
    *out = NULL;
    return st;
}

/* Of a context in which runs failed, as these tests want it. */
static void close_failed(tn_ctx *ctx)
{
    (void)tn_wait_all(ctx);
    assert_ok(tn_close(ctx));
}

static void fails(tn_ctx *ctx, const char *op, const char *const *attrs, tn_array *in, tn_status want,
                  const char *text)
{
    tn_array *out = NULL;
    const tn_status st = call(ctx, op, attrs, in, &out);

    if (st != want || out || !strstr(tn_error_text(), text))
        fail_msg("%s gives %s: %s", op, tn_status_name(st), tn_error_text());
}

static uint64_t hash_of(tn_array *a)
{
    const uint64_t bytes = tn_array_bytes(a);
    unsigned char *at = malloc(bytes);
    uint64_t h = 0xcbf29ce484222325u;

    assert_non_null(at);
    assert_ok(tn_array_read(a, at, bytes));
    for (size_t i = 0; i < bytes; i++)
        h = (h ^ at[i]) * 0x100000001b3u;
    free(at);
    return h;
}

static void shape_is(tn_array *a, const int64_t want[3])
{
    const int64_t *shape = NULL;
    int32_t ndim;

    assert_ok(tn_array_shape(a, &ndim, &shape));
    assert_int_equal(ndim, 3);
    for (int d = 0; d < 3; d++)
        assert_int_equal(shape[d], want[d]);
}

static tn_array *bytes_array(tn_ctx *ctx, const void *data, size_t bytes)
{
    tn_array *a = NULL;

    assert_ok(tn_array_from(ctx, TN_U8, 1, (const int64_t[]){(int64_t)bytes}, data, &a));
    return a;
}

static size_t file_read(const char *name, unsigned char *out)
{
    char path[2048];
    size_t bytes;
    FILE *from;

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    from = fopen(path, "rb");
    assert_non_null(from);
    bytes = fread(out, 1, BYTES_MAX, from);
    (void)fclose(from);
    return bytes;
}

/* ---- as MXNet ---- */

/* Of bytes and of the file; in the other order of colours the first and the last one are changed over. */
static void decoded(void **state)
{
    static unsigned char data[BYTES_MAX], rgb[3 * 61 * 45], bgr[sizeof rgb];
    char line[256], name[32], path[2048], flag[8];
    FILE *list;
    int lines = 0;

    (void)state;
    if (skipped())
        return;
    (void)snprintf(path, sizeof path, "%s/pixels.txt", folder);
    assert_non_null(list = fopen(path, "r"));
    for (long long shape[3]; fgets(line, sizeof line, list); lines++) {
        unsigned long long hash;
        tn_array *in, *out[3] = {NULL, NULL, NULL};

        assert_int_equal(
            sscanf(line, "%31s %7s %lld %lld %lld %llx", name, flag, &shape[0], &shape[1], &shape[2], &hash),
            6);
        in = bytes_array(f.ctx, data, file_read(name, data));
        (void)snprintf(path, sizeof path, "%s/%s", folder, name);
        assert_ok(call(f.ctx, "_cvimdecode", LIST("flag", flag), in, &out[0]));
        assert_ok(call(f.ctx, "_npi_cvimread", LIST("filename", path, "flag", flag), NULL, &out[1]));
        assert_ok(call(f.ctx, "_npi_cvimdecode", LIST("flag", flag, "to_rgb", "False"), in, &out[2]));
        for (int k = 0; k < 3; k++)
            shape_is(out[k], (const int64_t[]){shape[0], shape[1], shape[2]});
        for (int k = 0; k < (*flag == '0' ? 3 : 2); k++)
            if (hash_of(out[k]) != hash)
                fail_msg("%s, flag %s, way %d: not MXNet's pixels", name, flag, k);
        if (*flag == '1') {
            assert_ok(tn_array_read(out[0], rgb, sizeof rgb));
            assert_ok(tn_array_read(out[2], bgr, sizeof bgr));
            for (size_t i = 0; i < sizeof rgb; i++)
                assert_int_equal(bgr[i], rgb[i / 3 * 3 + 2 - i % 3]);
        }
        tn_array_release(in);
        for (int k = 0; k < 3; k++)
            tn_array_release(out[k]);
    }
    assert_int_equal(lines, 32);
    (void)fclose(list);
}

/* One line of operators.txt: operator, shape, arguments, ":", shape and hash or "refused". */
static void call_compare(char *line, int number)
{
    char *save = NULL, *op = strtok_r(line, " ", &save), *word = strtok_r(NULL, " ", &save);
    const char *attrs[32] = {NULL};
    int64_t shape[3], want[3];
    uint64_t hash;
    unsigned char *bytes;
    tn_array *in = NULL, *out = NULL;
    int count = 0;

    for (int d = 0; d < 3; d++, word += *word == 'x')
        shape[d] = strtoll(word, &word, 10);
    for (char *at; (at = strtok_r(NULL, " ", &save)) && *at != ':';) {
        attrs[count++] = at;
        at += strcspn(at, "=");
        *at = '\0';
        attrs[count++] = at + 1;
    }
    assert_non_null(bytes = malloc((size_t)(shape[0] * shape[1] * shape[2])));
    for (int64_t i = 0; i < shape[0] * shape[1] * shape[2]; i++)
        bytes[i] = (unsigned char)(7 * i + i / 5);
    assert_ok(tn_array_from(f.ctx, TN_U8, 3, shape, bytes, &in));
    free(bytes);
    word = strtok_r(NULL, " \n", &save);
    if (!strcmp(word, "refused")) {
        assert_true(call(f.ctx, op, attrs, in, &out) != TN_OK);
    } else {
        for (int d = 0; d < 3; d++, word += *word == 'x')
            want[d] = strtoll(word, &word, 10);
        hash = strtoull(strtok_r(NULL, " \n", &save), NULL, 16);
        assert_ok(call(f.ctx, op, attrs, in, &out));
        shape_is(out, want);
        if (hash_of(out) != hash)
            fail_msg("line %d: %s of %lld x %lld x %lld, %s=%s %s=%s …: not MXNet's pixels", number, op,
                     (long long)shape[0], (long long)shape[1], (long long)shape[2], attrs[0], attrs[1],
                     attrs[2], attrs[3]);
    }
    tn_array_release(out);
    tn_array_release(in);
}

static void resized_and_bordered(void **state)
{
    char line[512], path[2048];
    FILE *list;
    int lines = 0;

    (void)state;
    if (skipped())
        return;
    (void)snprintf(path, sizeof path, "%s/operators.txt", folder);
    assert_non_null(list = fopen(path, "r"));
    for (; fgets(line, sizeof line, list); lines++)
        call_compare(line, lines + 1);
    (void)fclose(list);
    assert_int_equal(lines, 359);
}

/* ---- what is refused ---- */

static void damaged(void **state)
{
    static unsigned char data[BYTES_MAX];
    const size_t bytes = (skipped(), file_read("s444.jpg", data));
    tn_array *a = NULL, *empty = NULL;
    tn_ctx *ctx;

    (void)state;
    if (!built)
        return;
    ctx = test_open(NULL);
    a = bytes_array(ctx, data, bytes / 2);
    fails(ctx, "_cvimdecode", NULL, a, TN_E_FORMAT, "ends early");
    tn_array_release(a);
    a = bytes_array(ctx, "hello", 5);
    fails(ctx, "_cvimdecode", NULL, a, TN_E_FORMAT, "5 bytes that are no image");
    tn_array_release(a);
    assert_ok(tn_array_zeros(ctx, TN_U8, 1, (const int64_t[]){0}, NULL, &empty));
    fails(ctx, "_cvimdecode", NULL, empty, TN_E_FORMAT, "0 bytes that are no image");
    tn_array_release(empty);
    assert_ok(tn_array_zeros(ctx, TN_F32, 1, (const int64_t[]){9}, NULL, &empty));
    fails(ctx, "_cvimdecode", NULL, empty, TN_E_DTYPE, "uint8");
    tn_array_release(empty);
    for (size_t i = 0; i + 9 < bytes; i++) /* a head that promises 65,000 x 65,000 pixels */
        if (data[i] == 0xff && data[i + 1] == 0xc0)
            memset(data + i + 5, 0xfd, 4);
    a = bytes_array(ctx, data, bytes);
    fails(ctx, "_cvimdecode", NULL, a, TN_E_NOMEM, "pixels_max permits");
    fails(ctx, "_cvimdecode", LIST("flag", "-1"), a, TN_E_ATTR, "flag");
    fails(ctx, "_cvimdecode", LIST("flag", "2"), a, TN_E_ATTR, "flag");
    tn_array_release(a);
    close_failed(ctx);
    ctx = test_open((const char *const[]){"plugin.image.pixels_max=2744", NULL});
    a = bytes_array(ctx, data, file_read("rgb.png", data));
    fails(ctx, "_cvimdecode", NULL, a, TN_E_NOMEM, "61 x 45 pixels, [plugin.image] pixels_max permits 2744");
    tn_array_release(a);
    close_failed(ctx);
}

static void files(void **state)
{
    char path[2048];
    tn_ctx *ctx;

    (void)state;
    if (skipped())
        return;
    ctx = test_open(NULL);
    fails(ctx, "_cvimread", LIST("filename", "nowhere/nope.png"), NULL, TN_E_IO,
          "nowhere/nope.png cannot be opened: No such file");
    fails(ctx, "_cvimread", LIST("filename", ""), NULL, TN_E_IO, "cannot be opened");
    fails(ctx, "_cvimread", LIST("filename", folder), NULL, TN_E_IO, "is not an ordinary file");
    fails(ctx, "_cvimread", NULL, NULL, TN_E_ATTR, "filename");
    (void)snprintf(path, sizeof path, "%s/pixels.txt", folder);
    fails(ctx, "_cvimread", LIST("filename", path), NULL, TN_E_FORMAT, "bytes that are no image");
    (void)snprintf(path, sizeof path, "%s/pipe-%ld", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
                   (long)getpid());
    assert_false(mkfifo(path, 0600)); /* nobody writes: it is not waited for */
    fails(ctx, "_cvimread", LIST("filename", path), NULL, TN_E_IO, "is not an ordinary file");
    assert_false(unlink(path));
    close_failed(ctx);
    ctx = test_open((const char *const[]){"plugin.image.memory_max=65536", NULL});
    (void)snprintf(path, sizeof path, "%s/../ops/table.jsonl", folder);
    fails(ctx, "_cvimread", LIST("filename", path), NULL, TN_E_NOMEM, "memory_max permits 65536");
    close_failed(ctx);
}

static tn_array *zeros(tn_ctx *ctx, int32_t dtype, int32_t ndim, const int64_t *shape)
{
    tn_array *a = NULL;

    assert_ok(tn_array_zeros(ctx, dtype, ndim, shape, NULL, &a));
    return a;
}

static void sizes(void **state)
{
    const char *const huge[] = {"w", "2000000", "h", "2000000", NULL};
    const char *const borders[] = {"top", "2147483647", "bot", "2147483647", "left", "0", "right", "0", NULL};
    const char *const one[] = {"top", "1", "bot", "1", "left", "1", "right", "1", NULL};
    const char *const two[] = {"w", "2", "h", "2", NULL}, *const none[] = {"w", "0", "h", "2", NULL};
    tn_array *x, *flat, *empty, *numbers, *five;
    tn_ctx *ctx;

    (void)state;
    if (skipped())
        return;
    ctx = test_open(NULL);
    x = zeros(ctx, TN_U8, 3, (const int64_t[]){4, 4, 3});
    flat = zeros(ctx, TN_U8, 2, (const int64_t[]){4, 4});
    empty = zeros(ctx, TN_U8, 3, (const int64_t[]){4, 0, 3});
    numbers = zeros(ctx, TN_F32, 3, (const int64_t[]){4, 4, 3});
    five = zeros(ctx, TN_U8, 3, (const int64_t[]){4, 4, 5});
    fails(ctx, "_cvimresize", huge, x, TN_E_NOMEM, "2000000 x 2000000 pixels");
    fails(ctx, "_cvcopyMakeBorder", borders, x, TN_E_NOMEM, "4294967298 pixels");
    fails(ctx, "_cvimresize", LIST("w", "134217728", "h", "1"), x, TN_E_NOMEM, "memory_max");
    fails(ctx, "_cvimresize", LIST("w", "4294967296", "h", "1"), x, TN_E_ATTR, "w");
    fails(ctx, "_cvimresize", none, x, TN_E_ATTR, "w");
    fails(ctx, "_cvimresize", LIST("w", "2"), x, TN_E_ATTR, "h");
    fails(ctx, "_cvimresize", two, flat, TN_E_SHAPE, "src has 2 dimensions");
    fails(ctx, "_cvimresize", two, empty, TN_E_SHAPE, "src is 0 long along axis 1");
    fails(ctx, "_cvimresize", two, numbers, TN_E_DTYPE, "uint8");
    fails(ctx, "_cvimresize", two, NULL, TN_E_ARG, "takes 1 inputs");
    fails(ctx, "_cvcopyMakeBorder", one, flat, TN_E_SHAPE, "src has 2 dimensions");
    fails(ctx, "_cvcopyMakeBorder", one, empty, TN_E_SHAPE, "src is 0 long along axis 1");
    fails(ctx, "_cvcopyMakeBorder", one, numbers, TN_E_DTYPE, "uint8");
    fails(ctx, "_cvcopyMakeBorder", one, five, TN_E_SHAPE, "at most 4");
    tn_array_release(five);
    tn_array_release(numbers);
    tn_array_release(empty);
    tn_array_release(flat);
    tn_array_release(x);
    close_failed(ctx);
}

static tn_ctx *memory_ctx;

static tn_status once(void *arg)
{
    tn_ctx *ctx = memory_ctx;
    tn_array *pixels = NULL, *small = NULL, *out = NULL;
    tn_status st = call(ctx, "_cvimdecode", NULL, arg, &pixels);

    if (!st)
        st = call(ctx, "_cvimresize", LIST("w", "20", "h", "10", "interp", "2"), pixels, &small);
    if (!st)
        st = call(ctx, "_cvcopyMakeBorder", LIST("top", "1", "bot", "1", "left", "1", "right", "1"), small,
                  &out);
    tn_array_release(pixels);
    tn_array_release(small);
    tn_array_release(out);
    (void)tn_wait_all(ctx);
    return st;
}

static void out_of_memory(void **state)
{
    static unsigned char data[BYTES_MAX];
    tn_array *a;

    (void)state;
    if (skipped())
        return;
    memory_ctx = test_open(NULL);
    a = bytes_array(memory_ctx, data, file_read("rgb.png", data));
    assert_ok(once(a));
    assert_true(scratch_each_allocation_fails(once, a) > 1);
    tn_array_release(a);
    close_failed(memory_ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decoded), cmocka_unit_test(resized_and_bordered),
        cmocka_unit_test(damaged), cmocka_unit_test(files),
        cmocka_unit_test(sizes),   cmocka_unit_test(out_of_memory),
    };

    return cmocka_run_group_tests_name("image_ops", tests, open_all, fixture_close);
}
