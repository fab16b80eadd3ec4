/*
 * tenon/image.h: the pixels that MXNet decodes (tests/oracle/image.py), parts, damaged files, limits,
 * threads, and what is said where the plugin image is not there.
 */
#include "api/fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/scratch.h"

#define FILES 16
#define BYTES_MAX 16384
#define WIDTH 61
#define HEIGHT 45

typedef struct file {
    char name[32];
    unsigned char data[BYTES_MAX];
    size_t bytes;
    uint64_t hash[2]; /* of one channel, of three */
} file;

static file files[FILES];
static bool built; /* the plugin */

static bool skipped(void)
{
    if (!built)
        print_message("skipped: the plugin image was not built\n");
    return !built;
}

static FILE *recorded(const char *name)
{
    char path[2048];
    FILE *from;

    (void)snprintf(path, sizeof path, "%s/tests/oracle/recorded/image/%s", getenv("TENON_TEST_SOURCE"), name);
    from = fopen(path, "rb");
    assert_non_null(from);
    return from;
}

static int open_all(void **state)
{
    FILE *list = recorded("pixels.txt"), *from;
    char name[32], path[2048];
    int flag, sizes[3];
    unsigned long long hash;

    for (int i = 0;
         fscanf(list, "%31s %d %d %d %d %llx", name, &flag, &sizes[0], &sizes[1], &sizes[2], &hash) == 6;
         i++) {
        file *x = &files[i / 2];

        assert_true(i < 2 * FILES && flag == i % 2 && sizes[0] == HEIGHT && sizes[1] == WIDTH &&
                    sizes[2] == (flag ? 3 : 1));
        x->hash[flag] = hash;
        if (flag)
            continue;
        memcpy(x->name, name, sizeof name);
        from = recorded(name);
        x->bytes = fread(x->data, 1, sizeof x->data, from);
        assert_true(x->bytes > 50 && x->bytes < sizeof x->data && !fclose(from));
    }
    (void)fclose(list);
    (void)snprintf(path, sizeof path, "%s/image.so", getenv("TENON_TEST_PLUGINS"));
    built = !access(path, R_OK);
    return fixture_open(state);
}

static file *file_of(const char *name)
{
    for (int i = 0; i < FILES; i++)
        if (!strcmp(files[i].name, name))
            return &files[i];
    fail_msg("%s is not recorded", name);
    return NULL;
}

static tn_image_options part_of(int32_t channels, int32_t x, int32_t y, int32_t width, int32_t height)
{
    return (tn_image_options){.struct_size = TN_SIZE(tn_image_options),
                              .channels = channels,
                              .x = x,
                              .y = y,
                              .width = width,
                              .height = height};
}

static uint64_t hash_of(const unsigned char *at, size_t bytes)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (size_t i = 0; i < bytes; i++)
        h = (h ^ at[i]) * 0x100000001b3u;
    return h;
}

/* ---- what is whole ---- */

static void of_the_wheel(void **state)
{
    unsigned char pixels[HEIGHT * WIDTH * 3];

    (void)state;
    if (skipped())
        return;
    for (int i = 0; i < FILES; i++)
        for (int flag = 0; flag < 2; flag++) {
            const tn_image_options o = part_of(flag ? 3 : 1, 0, 0, 0, 0);
            const int64_t *shape = NULL;
            tn_array *a = NULL;
            int32_t ndim;

            assert_ok(tn_image_decode(f.ctx, files[i].data, files[i].bytes, &o, &a));
            assert_ok(tn_array_shape(a, &ndim, &shape));
            assert_true(ndim == 3 && shape[0] == HEIGHT && shape[1] == WIDTH && shape[2] == o.channels);
            assert_ok(tn_array_read(a, pixels, tn_array_bytes(a)));
            if (hash_of(pixels, tn_array_bytes(a)) != files[i].hash[flag])
                fail_msg("%s with %d channels is another image than MXNet's", files[i].name, (int)o.channels);
            tn_array_release(a);
        }
}

static void heads(void **state)
{
    static const struct {
        const char *name, *format;
        int32_t channels, bits, orientation;
    } rows[] = {
        {"s420.jpg", "jpeg", 3, 8, 0},   {"turned.jpg", "jpeg", 3, 8, 6}, {"grey.jpg", "jpeg", 1, 8, 0},
        {"cmyk.jpg", "jpeg", 4, 8, 0},   {"rgb.png", "png", 3, 8, 0},     {"one.png", "png", 1, 1, 0},
        {"alpha.png", "png", 4, 8, 0},   {"clear.png", "png", 4, 4, 0},   {"grey_alpha.png", "png", 2, 8, 0},
        {"palette.png", "png", 3, 8, 0}, {"sixteen.png", "png", 1, 16, 0}};

    (void)state;
    if (skipped())
        return;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const file *x = file_of(rows[i].name);
        tn_image_about a = {.struct_size = TN_SIZE(tn_image_about)};

        assert_ok(tn_image_look(f.ctx, x->data, x->bytes, &a));
        if (a.width != WIDTH || a.height != HEIGHT || a.channels != rows[i].channels ||
            a.bits != rows[i].bits || a.orientation != rows[i].orientation ||
            strcmp(a.format, rows[i].format) != 0 || a.shift_max != (a.format[0] == 'j' ? 3 : 0))
            fail_msg("%s: %d x %d x %d, %d bits, orientation %d, %s", x->name, a.width, a.height, a.channels,
                     a.bits, a.orientation, a.format);
    }
}

/* Every part has the pixels of the whole image, at every scale. */
static void parts(void **state)
{
    static unsigned char whole[HEIGHT * WIDTH * 4], part[HEIGHT * WIDTH * 4];
    uint32_t random = 1;

    (void)state;
    if (skipped())
        return;
    for (int i = 0; i < FILES * 4; i++) {
        const file *x = &files[i / 4];
        const int shift = i % 4;
        const int32_t w = (WIDTH + (1 << shift) - 1) >> shift, h = (HEIGHT + (1 << shift) - 1) >> shift;
        tn_image_options all = part_of(4, 0, 0, 0, 0);

        all.shift = shift;
        if (shift && strstr(x->name, ".png")) {
            assert_fails(tn_image_read(f.ctx, x->data, x->bytes, &all, whole, sizeof whole, w * 4), TN_E_ARG);
            continue;
        }
        assert_ok(tn_image_read(f.ctx, x->data, x->bytes, &all, whole, sizeof whole, w * 4));
        for (int k = 0; k < 20; k++) {
            tn_image_options o = all;

            random = random * 1664525 + 1013904223;
            o.x = (int32_t)(random >> 8) % w;
            o.y = (int32_t)(random >> 16) % h;
            o.width = 1 + (int32_t)(random >> 4) % (w - o.x);
            o.height = 1 + (int32_t)(random >> 12) % (h - o.y);
            assert_ok(tn_image_read(f.ctx, x->data, x->bytes, &o, part, sizeof part, o.width * 4));
            for (int32_t row = 0; row < o.height; row++)
                if (memcmp(part + row * o.width * 4, whole + ((o.y + row) * w + o.x) * 4,
                           (size_t)o.width * 4) != 0)
                    fail_msg("%s at 1/%d: row %d of %d x %d from (%d, %d)", x->name, 1 << shift, row, o.width,
                             o.height, o.x, o.y);
        }
    }
}

static tn_array *picture(int64_t channels)
{
    static unsigned char bytes[40 * 30 * 4];
    tn_array *a = NULL;

    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(i / (size_t)channels % 40 * 3 + i / 160 * 2 + i % (size_t)channels * 30);
    assert_ok(tn_array_from(f.ctx, TN_U8, 3, (const int64_t[]){30, 40, channels}, bytes, &a));
    return a;
}

static void encoded(void **state)
{
    static unsigned char want[4800], got[4800];

    (void)state;
    if (skipped())
        return;
    for (int64_t channels = 1; channels <= 4; channels++) {
        const tn_image_options o = part_of((int32_t)channels, 0, 0, 0, 0);
        tn_array *a = picture(channels), *b = NULL;
        void *data = NULL;
        uint64_t bytes = 0;

        if (channels == 2) {
            assert_fails(tn_image_encode(f.ctx, a, "png", 0, &data, &bytes), TN_E_ARG);
            tn_array_release(a);
            continue;
        }
        assert_ok(tn_array_read(a, want, tn_array_bytes(a)));
        assert_ok(tn_image_encode(f.ctx, a, "png", 9, &data, &bytes));
        assert_ok(tn_image_decode(f.ctx, data, bytes, &o, &b));
        assert_ok(tn_array_read(b, got, tn_array_bytes(b)));
        assert_memory_equal(want, got, (size_t)tn_array_bytes(a));
        tn_array_release(b);
        tn_free(data);
        if (channels == 4)
            assert_fails(tn_image_encode(f.ctx, a, "jpg", 90, &data, &bytes), TN_E_ARG);
        else {
            assert_ok(tn_image_encode(f.ctx, a, "jpg", 100, &data, &bytes));
            assert_ok(tn_image_decode(f.ctx, data, bytes, &o, &b));
            assert_ok(tn_array_read(b, got, tn_array_bytes(b)));
            for (size_t i = 0; i < tn_array_bytes(a); i++)
                assert_in_range(got[i] + 40 - want[i], 0, 80);
            tn_array_release(b);
            tn_free(data);
        }
        tn_array_release(a);
    }
}

/* ---- what is not ---- */

/* Cut behind each byte: an error with the place; another bit in each byte: an error, or an image. */
static void every_byte(void **state)
{
    static unsigned char out[HEIGHT * WIDTH * 3];

    (void)state;
    if (skipped())
        return;
    for (int i = 0; i < FILES; i++) {
        unsigned char *copy = malloc(files[i].bytes);

        assert_non_null(copy);
        for (size_t at = 0; at < files[i].bytes; at += 1 + files[i].bytes / 1500) {
            const tn_image_options all = part_of(3, 0, 0, WIDTH, HEIGHT);
            unsigned char *cut = malloc(at + 1);
            tn_status st;

            assert_non_null(cut);
            memcpy(cut, files[i].data, at);
            st = tn_image_read(f.ctx, cut, at, &all, out, sizeof out, WIDTH * 3);
            if (st != TN_E_FORMAT)
                fail_msg("%s, %zu of %zu bytes: %s", files[i].name, at, files[i].bytes, tn_status_name(st));
            if (at > 100)
                assert_non_null(strstr(tn_error_text(), " at byte "));
            free(cut);
            memcpy(copy, files[i].data, files[i].bytes);
            copy[at] ^= (unsigned char)(1u << at % 8);
            (void)tn_image_read(f.ctx, copy, files[i].bytes, &all, out, sizeof out, WIDTH * 3);
        }
        free(copy);
    }
}

/* A part that lies above the damage is decoded; `strict = false` gives what there is, as MXNet does. */
static void as_far_as_it_goes(void **state)
{
    const char *const settings[] = {"plugin.image.strict=false", NULL};
    const tn_image_options above = part_of(3, 0, 0, WIDTH, 8), all = part_of(3, 0, 0, WIDTH, HEIGHT);
    static unsigned char out[HEIGHT * WIDTH * 3];
    const file *x = file_of("s444.jpg");
    tn_ctx *ctx;

    (void)state;
    if (skipped())
        return;
    assert_ok(tn_image_read(f.ctx, x->data, x->bytes / 2 + 300, &above, out, sizeof out, WIDTH * 3));
    assert_fails(tn_image_read(f.ctx, x->data, x->bytes / 2 + 300, &all, out, sizeof out, WIDTH * 3),
                 TN_E_FORMAT);
    ctx = test_open(settings);
    assert_ok(tn_image_read(ctx, x->data, x->bytes / 2 + 300, &all, out, sizeof out, WIDTH * 3));
    test_close(ctx);
}

static void limits(void **state)
{
    const char *const settings[] = {"plugin.image.pixels_max=2744", NULL};
    unsigned char huge[1024], room[64];
    const file *x = file_of("rgb.png");
    tn_ctx *ctx;
    tn_array *a = NULL;

    (void)state;
    if (skipped())
        return;
    ctx = test_open(settings);
    assert_fails(tn_image_decode(ctx, x->data, x->bytes, NULL, &a), TN_E_NOMEM);
    assert_non_null(strstr(tn_error_text(), "61 x 45 pixels, [plugin.image] pixels_max permits 2744"));
    test_close(ctx);
    x = file_of("s420.jpg"); /* a head that promises 65,000 x 65,000 pixels takes no memory */
    memcpy(huge, x->data, sizeof huge);
    for (size_t i = 0; i + 9 < sizeof huge; i++)
        if (huge[i] == 0xff && huge[i + 1] == 0xc0)
            memset(huge + i + 5, 0xfd, 4);
    assert_fails(tn_image_decode(f.ctx, huge, sizeof huge, NULL, &a), TN_E_NOMEM);
    assert_fails(tn_image_read(f.ctx, huge, sizeof huge, NULL, room, sizeof room, 64), TN_E_NOMEM);
    assert_null(a);
}

static void refused(void **state)
{
    unsigned char out[64 * 64 * 4];
    const file *x = file_of("rgb.png");
    tn_image_about about = {.struct_size = TN_SIZE(tn_image_about)};
    tn_image_options o = part_of(3, 0, 0, 8, 8);
    tn_array *a = NULL, *p = picture(3);
    void *data = NULL;
    uint64_t bytes;

    (void)state;
    assert_fails(tn_image_look(NULL, x->data, x->bytes, &about), TN_E_ARG);
    assert_fails(tn_image_look(f.ctx, NULL, 9, &about), TN_E_ARG);
    assert_fails(tn_image_look(f.ctx, x->data, x->bytes, NULL), TN_E_ARG);
    assert_fails(tn_image_read(NULL, x->data, x->bytes, &o, out, sizeof out, 24), TN_E_ARG);
    assert_fails(tn_image_read(f.ctx, NULL, 9, &o, out, sizeof out, 24), TN_E_ARG);
    assert_fails(tn_image_read(f.ctx, x->data, x->bytes, &o, NULL, 192, 24), TN_E_ARG);
    assert_fails(tn_image_decode(NULL, x->data, x->bytes, NULL, &a), TN_E_ARG);
    assert_fails(tn_image_decode(f.ctx, NULL, 9, NULL, &a), TN_E_ARG);
    assert_fails(tn_image_decode(f.ctx, x->data, x->bytes, NULL, NULL), TN_E_ARG);
    assert_fails(tn_image_encode(NULL, p, "png", 0, &data, &bytes), TN_E_ARG);
    assert_fails(tn_image_encode(f.ctx, NULL, "png", 0, &data, &bytes), TN_E_ARG);
    assert_fails(tn_image_encode(f.ctx, p, NULL, 0, &data, &bytes), TN_E_ARG);
    assert_fails(tn_image_encode(f.ctx, p, "png", 0, NULL, &bytes), TN_E_ARG);
    assert_fails(tn_image_encode(f.ctx, p, "png", 0, &data, NULL), TN_E_ARG);
    if (built) {
        assert_fails(tn_image_look(f.ctx, "GIF89a", 6, &about), TN_E_FORMAT);
        assert_fails(tn_image_look(f.ctx, "", 0, &about), TN_E_FORMAT);
        assert_fails(tn_image_read(f.ctx, x->data, x->bytes, &o, out, 191, 24), TN_E_ARG);
        assert_fails(tn_image_read(f.ctx, x->data, x->bytes, &o, out, sizeof out, 23), TN_E_ARG);
        assert_fails(tn_image_read(f.ctx, x->data, x->bytes, &o, out, sizeof out, INT64_MAX), TN_E_ARG);
        assert_fails(tn_image_read(f.ctx, x->data, x->bytes, &o, out, sizeof out, -24), TN_E_ARG);
        o.channels = 2;
        assert_fails(tn_image_decode(f.ctx, x->data, x->bytes, &o, &a), TN_E_ARG);
        o = part_of(3, WIDTH, 0, 0, 0);
        assert_fails(tn_image_decode(f.ctx, x->data, x->bytes, &o, &a), TN_E_ARG);
        o = part_of(3, INT32_MAX, 0, INT32_MAX, 1);
        assert_fails(tn_image_decode(f.ctx, x->data, x->bytes, &o, &a), TN_E_ARG);
        o = part_of(3, 0, -1, 1, 1);
        assert_fails(tn_image_decode(f.ctx, x->data, x->bytes, &o, &a), TN_E_ARG);
        o = part_of(3, 0, 0, 0, 0);
        o.shift = INT32_MAX;
        assert_fails(tn_image_decode(f.ctx, x->data, x->bytes, &o, &a), TN_E_ARG);
        assert_fails(tn_image_encode(f.ctx, p, "webp", 0, &data, &bytes), TN_E_ARG);
        assert_fails(tn_image_encode(f.ctx, p, "jpeg", 101, &data, &bytes), TN_E_ARG);
        assert_fails(tn_image_encode(f.ctx, p, "png", -1, &data, &bytes), TN_E_ARG);
        assert_fails(tn_image_encode(f.ctx, f.a, "png", 0, &data, &bytes), TN_E_DTYPE);
        tn_array_release(p);
        assert_ok(tn_array_zeros(f.ctx, TN_U8, 1, (const int64_t[]){3}, NULL, &p));
        assert_fails(tn_image_encode(f.ctx, p, "png", 0, &data, &bytes), TN_E_SHAPE);
    }
    tn_array_release(p);
    assert_true(!a && !data);
}

static void without(void **state)
{
    const char *const settings[] = {"plugins.load=cpu", NULL};
    const file *x = file_of("rgb.png");
    tn_ctx *ctx = test_open(settings);
    tn_array *a = NULL;

    (void)state;
    assert_fails(tn_image_decode(ctx, x->data, x->bytes, NULL, &a), TN_E_UNSUPPORTED);
    assert_non_null(strstr(tn_error_text(), "images need the plugin image"));
    assert_int_equal(tn_error_number(), 1304);
    test_close(ctx);
}

/* ---- threads, memory ---- */

static void *decode_many(void *arg)
{
    unsigned char *out = malloc((size_t)HEIGHT * WIDTH * 3);
    uintptr_t wrong = !out;

    (void)arg;
    for (int i = 0; out && i < FILES * 4; i++) {
        const file *x = &files[i % FILES];
        const tn_image_options all = part_of(3, 0, 0, WIDTH, HEIGHT);

        wrong +=
            tn_image_read(f.ctx, x->data, x->bytes, &all, out, (uint64_t)HEIGHT * WIDTH * 3, WIDTH * 3) ||
            hash_of(out, (size_t)HEIGHT * WIDTH * 3) != x->hash[1];
        wrong +=
            !tn_image_read(f.ctx, x->data, x->bytes / 2, &all, out, (uint64_t)HEIGHT * WIDTH * 3, WIDTH * 3);
    }
    free(out);
    return (void *)wrong;
}

static void threads(void **state)
{
    pthread_t ids[4];

    (void)state;
    if (skipped())
        return;
    for (int i = 0; i < 4; i++)
        assert_false(pthread_create(&ids[i], NULL, decode_many, NULL));
    for (int i = 0; i < 4; i++) {
        void *wrong = NULL;

        assert_false(pthread_join(ids[i], &wrong));
        assert_null(wrong);
    }
}

static tn_status once(void *arg)
{
    const file *x = arg;
    tn_array *a = NULL;
    void *data = NULL;
    uint64_t bytes;
    tn_status st = tn_image_decode(f.ctx, x->data, x->bytes, NULL, &a);

    if (!st)
        st = tn_image_encode(f.ctx, a, "png", 1, &data, &bytes);
    tn_free(data);
    tn_array_release(a);
    (void)tn_wait_all(f.ctx);
    return st;
}

static void out_of_memory(void **state)
{
    (void)state;
    if (skipped())
        return;
    assert_ok(once(file_of("rgb.png")));
    assert_true(scratch_each_allocation_fails(once, file_of("rgb.png")) > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_the_wheel), cmocka_unit_test(heads),         cmocka_unit_test(parts),
        cmocka_unit_test(encoded),      cmocka_unit_test(every_byte),    cmocka_unit_test(as_far_as_it_goes),
        cmocka_unit_test(limits),       cmocka_unit_test(refused),       cmocka_unit_test(without),
        cmocka_unit_test(threads),      cmocka_unit_test(out_of_memory),
    };

    return cmocka_run_group_tests_name("image", tests, open_all, fixture_close);
}
