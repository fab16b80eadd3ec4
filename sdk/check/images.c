/*
 * Group image: one case for each image table of the plugin. The host's file is memory; what the plugin
 * encoded there it decodes again, whole, in parts, cut and changed.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define WIDTH 61
#define HEIGHT 45
#define ROW (WIDTH * 4 + 12) /* bytes; those behind the pixels stay as they are */
#define ROOM_BYTES ((uint64_t)1 << 17)
#define FAR 24 /* of a lossy format, at most, in the mean: its distance from what was encoded */
#define UNTOUCHED 0xa5

typedef struct picture {
    chk_env *env;
    chk_plugin plugin;
    const tn_image_ops *ops;
    uint8_t *file; /* ROOM_BYTES */
    uint64_t bytes;
    uint64_t fail_at; /* the so-manieth call of the host's fails, counted down; 0: none */
    bool failed;
    uint8_t pixels[HEIGHT * ROW], whole[HEIGHT * ROW], out[HEIGHT * ROW];
} picture;

static tn_status file_write(void *self, const void *data, uint64_t bytes, tn_err *err)
{
    picture *p = self;

    if (p->fail_at && !--p->fail_at) {
        p->failed = true;
        return tn_fail(err, TN_E_IO, "the host's file fails");
    }
    if (bytes > ROOM_BYTES - p->bytes)
        return tn_fail(err, TN_E_IO, "the file is full");
    memcpy(p->file + p->bytes, data, bytes);
    p->bytes += bytes;
    return TN_OK;
}

static tn_status encode(picture *p, int32_t channels, tn_err *err)
{
    const tn_image_output to = {.struct_size = (uint32_t)TN_END(tn_image_output, write),
                                .width = WIDTH,
                                .height = HEIGHT,
                                .channels = channels,
                                .data = p->pixels,
                                .stride = ROW,
                                .self = p,
                                .write = file_write};

    p->bytes = 0;
    return p->ops->encode(p->plugin.self, &to, err);
}

static tn_image_part part_of(int32_t x, int32_t y, int32_t width, int32_t height, uint8_t *out)
{
    return (tn_image_part){.struct_size = (uint32_t)TN_END(tn_image_part, stride),
                           .channels = 3,
                           .x = x,
                           .y = y,
                           .width = width,
                           .height = height,
                           .out = out,
                           .stride = ROW};
}

static tn_status decode(picture *p, const tn_image_part *part, tn_err *err)
{
    return p->ops->decode(p->plugin.self, p->file, p->bytes, part, err);
}

/* A slope with some texture, so that a shift shows. */
static void pixels_fill(picture *p, int32_t channels)
{
    for (int32_t y = 0; y < HEIGHT; y++)
        for (int32_t x = 0; x < WIDTH; x++)
            for (int32_t c = 0; c < channels; c++)
                p->pixels[y * ROW + x * channels + c] =
                    (uint8_t)(c == 3 ? 255 - y : 2 * x + y + 40 * c + (x / 4 + y / 4) % 3 * 12);
}

static void begin(picture *p, chk_env *env)
{
    p->env = env;
    chk_fail_if(env, !(p->file = malloc(ROOM_BYTES)), "kit", "out of memory");
    p->ops = chk_capability(env, TN_KIND_IMAGE, env->subject, NULL);
    pixels_fill(p, 3);
    (void)chk_plugin_open(env, CHK_HOST_EXACT, &p->plugin);
}

static void end(picture *p)
{
    (void)chk_plugin_close(p->env, &p->plugin);
    free(p->file);
}

static void encode_well(picture *p, int32_t channels)
{
    tn_err err = {0};
    tn_status st;

    pixels_fill(p, channels);
    st = encode(p, channels, &err);
    chk_fail_if(p->env, st, NULL, "encode fails with %s: %s", tn_status_name(st), err.message);
}

/* Decodes into `out`, whose other bytes must stay. */
static void decode_well(picture *p, const tn_image_part *part)
{
    tn_err err = {0};
    tn_status st;

    memset(part->out, UNTOUCHED, HEIGHT * ROW);
    st = decode(p, part, &err);
    chk_fail_if(p->env, st, NULL, "decode of %d x %d pixels from (%d, %d) on at 1/2^%d fails with %s: %s",
                (int)part->width, (int)part->height, (int)part->x, (int)part->y, (int)part->shift,
                tn_status_name(st), err.message);
    for (int32_t i = 0; i < HEIGHT * ROW; i++)
        if ((i / ROW >= part->height || i % ROW >= part->width * part->channels) && part->out[i] != UNTOUCHED)
            chk_fail(p->env, NULL, "decode writes byte %d of row %d, which is none of its pixels", i % ROW,
                     i / ROW);
    chk_count(p->env);
}

static void info_read(picture *p, tn_image_info *out)
{
    tn_err err = {0};
    tn_status st;

    *out = (tn_image_info){.struct_size = (uint32_t)TN_END(tn_image_info, reserved)};
    st = p->ops->info(p->plugin.self, p->file, p->bytes, out, &err);
    chk_fail_if(p->env, st, NULL, "info fails with %s: %s", tn_status_name(st), err.message);
}

/* How far the image is from what was encoded, in the mean. */
static double distance(const picture *p, int32_t channels)
{
    double sum = 0;

    for (int32_t y = 0; y < HEIGHT; y++)
        for (int32_t i = 0; i < WIDTH * channels; i++)
            sum += abs(p->whole[y * ROW + i] - p->pixels[y * ROW + i]);
    return sum / (HEIGHT * WIDTH * channels);
}

void chk_image_round(chk_env *env)
{
    static picture p;
    tn_image_info info;

    begin(&p, env);
    for (int32_t channels = 1; channels <= 3; channels += 2) {
        tn_image_part all = part_of(0, 0, WIDTH, HEIGHT, p.whole);

        all.channels = channels;
        encode_well(&p, channels);
        chk_fail_if(env, p.ops->probe(p.plugin.self, p.file, p.bytes < 64 ? p.bytes : 64) != 1, NULL,
                    "probe does not know what encode wrote");
        chk_fail_if(env, p.ops->probe(p.plugin.self, p.file, 0) != 0, NULL, "probe knows a file of no bytes");
        info_read(&p, &info);
        if (info.width != WIDTH || info.height != HEIGHT || info.channels != channels || info.bits != 8)
            chk_fail(env, NULL, "an image of %d x %d x %d was encoded, info says %d x %d x %d of %d bits",
                     WIDTH, HEIGHT, (int)channels, (int)info.width, (int)info.height, (int)info.channels,
                     (int)info.bits);
        decode_well(&p, &all);
        if (distance(&p, channels) > FAR)
            chk_fail(env, NULL, "the decoded image is %g from what was encoded, in the mean",
                     distance(&p, channels));
    }
    end(&p);
}

/* Any part is that of the whole image, at every scale. */
static void parts_at(picture *p, int32_t shift, int32_t channels)
{
    const int32_t w = (WIDTH + (1 << shift) - 1) >> shift, h = (HEIGHT + (1 << shift) - 1) >> shift;
    tn_image_part all = part_of(0, 0, w, h, p->whole);

    all.shift = shift;
    all.channels = channels;
    decode_well(p, &all);
    for (int i = 0; i < 60; i++) {
        const int32_t x = (int32_t)(chk_random(p->env) % (uint64_t)w),
                      y = (int32_t)(chk_random(p->env) % (uint64_t)h);
        tn_image_part one = part_of(x, y, 1 + (int32_t)(chk_random(p->env) % (uint64_t)(w - x)),
                                    1 + (int32_t)(chk_random(p->env) % (uint64_t)(h - y)), p->out);

        one.shift = shift;
        one.channels = channels;
        decode_well(p, &one);
        for (int32_t row = 0; row < one.height; row++)
            if (memcmp(p->out + row * ROW, p->whole + (y + row) * ROW + x * channels,
                       (size_t)(one.width * channels)) != 0)
                chk_fail(p->env, NULL,
                         "row %d of %d x %d pixels from (%d, %d) on, at 1/2^%d, differs from the whole image",
                         (int)row, (int)one.width, (int)one.height, (int)x, (int)y, (int)shift);
    }
}

void chk_image_parts(chk_env *env)
{
    static const int32_t channels[] = {1, 3, 4};
    static picture p;
    tn_image_info info;

    begin(&p, env);
    for (int32_t stored = 1; stored <= 3; stored += 2) {
        encode_well(&p, stored);
        info_read(&p, &info);
        for (int32_t shift = 0; shift <= info.shift_max; shift++)
            for (int i = 0; i < 3; i++)
                parts_at(&p, shift, channels[i]);
    }
    end(&p);
}

/* Wrong calls are statuses, and nothing is written for them. */
void chk_image_refused(chk_env *env)
{
    static picture p;
    tn_image_info info;

    begin(&p, env);
    encode_well(&p, 3);
    info_read(&p, &info);
    for (int i = 0; i < 10; i++) {
        tn_image_part part = part_of(0, 0, WIDTH, HEIGHT, p.out);
        tn_err err = {0};
        tn_status st;

        part.x = i == 0 ? -1 : i == 1 ? 1 : i == 2 ? INT32_MAX : 0;
        part.y = i == 3 ? 1 : i == 4 ? INT32_MIN : 0;
        part.width = i == 5 ? 0 : i == 6 ? INT32_MAX : WIDTH;
        part.channels = i == 7 ? 2 : 3;
        part.shift = i == 8 ? info.shift_max + 1 : 0;
        part.stride = i == 9 ? 3 * WIDTH - 1 : ROW;
        memset(p.out, UNTOUCHED, sizeof p.out);
        st = decode(&p, &part, &err);
        if (st != TN_E_ARG || !err.message[0])
            chk_fail(env, NULL, "wrong part %d is answered with %s, not TN_E_ARG and a text", i,
                     tn_status_name(st));
        for (size_t k = 0; k < sizeof p.out; k++)
            if (p.out[k] != UNTOUCHED)
                chk_fail(env, NULL, "decode refuses wrong part %d, but writes", i);
        chk_count(env);
    }
    end(&p);
}

void chk_image_damaged(chk_env *env)
{
    static picture p;
    tn_image_part all;
    uint64_t before;

    begin(&p, env);
    all = part_of(0, 0, WIDTH, HEIGHT, p.out);
    encode_well(&p, 3);
    before = chk_host_memory(p.plugin.host, NULL);
    for (uint64_t i = 0; i < p.bytes; i++) {
        const uint64_t whole = p.bytes;
        const uint8_t kept = p.file[i];
        tn_image_info info = {.struct_size = (uint32_t)TN_END(tn_image_info, reserved)};
        tn_err err = {0};

        p.bytes = i;
        if (!decode(&p, &all, &err))
            chk_fail(env, NULL, "a file of %llu bytes is decoded of which %llu are left",
                     (unsigned long long)whole, (unsigned long long)i);
        chk_fail_if(env, !err.message[0], NULL, "a file that ends early is refused without a text");
        (void)p.ops->info(p.plugin.self, p.file, p.bytes, &info, &err);
        p.bytes = whole;
        p.file[i] = (uint8_t)(kept ^ (1u << i % 8));
        (void)decode(&p, &all, &err);
        (void)p.ops->info(p.plugin.self, p.file, p.bytes, &info, &err);
        p.file[i] = kept;
        chk_host_left(p.plugin.host, before, "decoding a file that is damaged at byte %llu",
                      (unsigned long long)i);
        chk_count(env);
    }
    end(&p);
}

/* Each call of the host's fails once: encode gives its status. */
void chk_image_passed(chk_env *env)
{
    static picture p;
    bool over = false;

    begin(&p, env);
    for (uint64_t nth = 1; !over && nth < 1000; nth++) {
        tn_err err = {0};
        tn_status st;

        p.failed = false;
        p.fail_at = nth;
        st = encode(&p, 3, &err);
        p.fail_at = 0;
        over = !p.failed;
        if (p.failed && st != TN_E_IO)
            chk_fail(env, NULL, "call %llu of the host's file fails with TN_E_IO, encode gives %s",
                     (unsigned long long)nth, tn_status_name(st));
        chk_count(env);
    }
    end(&p);
}

void chk_image_memory(chk_env *env)
{
    static picture p;
    bool over = false;

    begin(&p, env);
    for (uint64_t nth = 1; !over && nth < 1000; nth++) {
        const uint64_t before = chk_host_memory(p.plugin.host, NULL);
        const tn_image_part part = part_of(1, 1, WIDTH - 2, HEIGHT - 1, p.out);
        tn_err err = {0};
        tn_status st;

        chk_host_fail_at(p.plugin.host, nth);
        st = encode(&p, 3, &err);
        if (!st)
            st = decode(&p, &part, &err);
        over = !chk_host_failed(p.plugin.host);
        chk_host_fail_at(p.plugin.host, 0);
        if (over ? st != TN_OK : st != TN_E_NOMEM)
            chk_fail(env, NULL, "allocation %llu of the host fails: %s", (unsigned long long)nth,
                     tn_status_name(st));
        chk_host_left(p.plugin.host, before, "where allocation %llu fails", (unsigned long long)nth);
        chk_count(env);
    }
    end(&p);
}
