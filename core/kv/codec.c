/*
 * Gradients in 2 bits or 1, in MXNet's layout, with what is rounded away kept for the next round.
 *
 * 2bit: 11 is +threshold, 10 is -threshold, 00 is 0. 1bit: 1 is +1, 0 is -1, by whether the number is above
 * the threshold. Codes come first, one byte each, in loops of a fixed length that compilers turn into vector
 * code; then they are packed by a multiplication, which moves each of them to its place in the highest byte.
 */
#include "kv/kv.h"

#include <math.h>
#include <string.h>

#define CHUNK 256 /* elements whose codes stand on the stack: whole words of both codecs */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "codes are packed in words of this order");

tn_status tni_kv_codec_parse(const char *const *params, tni_kv_codec *out)
{
    tni_kv_codec c = {.threshold = 0.5f};
    double threshold = 0;

    for (; params && *params; params += 2) {
        if (!strcmp(params[0], "type") && params[1] && !strcmp(params[1], "2bit"))
            c.bits = 2;
        else if (!strcmp(params[0], "type") && params[1] && !strcmp(params[1], "1bit"))
            c.bits = 1;
        else if (!strcmp(params[0], "threshold") && params[1] && tni_parse_f64(params[1], &threshold) &&
                 fabs(threshold) < 1e30)
            c.threshold = (float)threshold;
        else
            return tni_error(TN_E_ATTR,
                             "compression: %.80s = %.80s; there are type = 1bit or 2bit, and threshold, "
                             "a number",
                             params[0], params[1] ? params[1] : "(nothing)");
    }
    if (!c.bits)
        return tni_error(TN_E_ATTR, "compression: the type is missing: 1bit or 2bit");
    if (c.bits == 2 && !(c.threshold > 0))
        return tni_error(TN_E_ATTR, "compression: threshold is %g; 2bit needs one above 0",
                         (double)c.threshold);
    *out = c;
    return TN_OK;
}

uint64_t tni_kv_codec_bytes(const tni_kv_codec *c, uint64_t count)
{
    const uint64_t each = 32 / c->bits; /* in a word */

    return (count / each + (count % each != 0)) * 4;
}

/* ---- a chunk ------------------------------------------------------------------------------------------- */

/* Numbers to codes, a byte each. What is sent is t, -t or 0, so the product is exact. */
static void codes_2bit(const float *restrict x, float *restrict residual, uint8_t *restrict code, float t)
{
    for (int i = 0; i < CHUNK; i++) {
        const float r = residual[i] + x[i];
        const int32_t up = r >= t, down = r <= -t;

        residual[i] = r - (float)(up - down) * t;
        code[i] = (uint8_t)(3 * up + 2 * down);
    }
}

static void codes_1bit(const float *restrict x, float *restrict residual, uint8_t *restrict code, float t)
{
    for (int i = 0; i < CHUNK; i++) {
        const float r = residual[i] + x[i];
        const int32_t up = r > t;

        residual[i] = r - (float)(2 * up - 1);
        code[i] = (uint8_t)up;
    }
}

/* Codes to sums. 01 of two bits is never sent; it counts as 0. */
static void sums_2bit(const uint8_t *restrict code, float *restrict out, float t)
{
    for (int i = 0; i < CHUNK; i++) {
        const int32_t c = code[i];

        out[i] += (float)((c >> 1) * (2 * (c & 1) - 1)) * t;
    }
}

static void sums_1bit(const uint8_t *restrict code, float *restrict out)
{
    for (int i = 0; i < CHUNK; i++)
        out[i] += (float)(2 * code[i] - 1);
}

/* Four codes of 2 bits: c0 << 6 | c1 << 4 | c2 << 2 | c3. Eight of 1 bit: c0 << 7 | … | c7. */
static void pack(uint32_t bits, const uint8_t *code, uint8_t *out)
{
    for (uint32_t i = 0; i < CHUNK * bits / 8; i++) {
        uint64_t all = 0;
        uint32_t four;

        if (bits == 2) {
            memcpy(&four, code + (size_t)i * 4, sizeof four);
            out[i] = (uint8_t)(four * 0x40100401u >> 24);
        } else {
            memcpy(&all, code + (size_t)i * 8, sizeof all);
            out[i] = (uint8_t)(all * 0x8040201008040201u >> 56);
        }
    }
}

static void unpack(uint32_t bits, const uint8_t *in, uint8_t *code)
{
    for (uint32_t i = 0; i < CHUNK * bits / 8; i++) {
        const uint32_t byte = in[i];
        const uint32_t four = (byte >> 6 | byte << 4 | byte << 14 | byte << 24) & 0x03030303u;
        uint64_t all = byte * 0x0101010101010101u & 0x0102040810204080u;

        all = (all + 0x7f7f7f7f7f7f7f7fu) >> 7 & 0x0101010101010101u;
        if (bits == 2)
            memcpy(code + (size_t)i * 4, &four, sizeof four);
        else
            memcpy(code + (size_t)i * 8, &all, sizeof all);
    }
}

static void encode(const tni_kv_codec *c, const float *x, float *residual, uint8_t *out)
{
    uint8_t code[CHUNK];

    if (c->bits == 2)
        codes_2bit(x, residual, code, c->threshold);
    else
        codes_1bit(x, residual, code, c->threshold);
    pack(c->bits, code, out);
}

static void decode(const tni_kv_codec *c, const uint8_t *in, float *out)
{
    uint8_t code[CHUNK];

    unpack(c->bits, in, code);
    if (c->bits == 2)
        sums_2bit(code, out, c->threshold);
    else
        sums_1bit(code, out);
}

/* ---- any length ---------------------------------------------------------------------------------------- */

void tni_kv_codec_encode(const tni_kv_codec *c, const float *x, float *residual, uint64_t count, uint8_t *out)
{
    const uint32_t bytes = CHUNK * c->bits / 8;
    float more[2][CHUNK] = {{0}};
    uint8_t coded[CHUNK / 4];
    uint64_t words;

    for (; count >= CHUNK; count -= CHUNK) {
        encode(c, x, residual, out);
        x += CHUNK;
        residual += CHUNK;
        out += bytes;
    }
    if (!count)
        return;
    memcpy(more[0], x, count * sizeof *x);
    memcpy(more[1], residual, count * sizeof *x);
    encode(c, more[0], more[1], coded);
    memcpy(residual, more[1], count * sizeof *x);
    words = tni_kv_codec_bytes(c, count);
    memset(out, 0, words);
    memcpy(out, coded, (count * c->bits + 7) / 8);
    if (count * c->bits % 8) /* 1bit has a code for what is not there */
        out[count * c->bits / 8] &= (uint8_t)(0xff00u >> count * c->bits % 8);
}

void tni_kv_codec_decode(const tni_kv_codec *c, const uint8_t *in, uint64_t count, float *out, bool add)
{
    const uint32_t bytes = CHUNK * c->bits / 8;
    float more[CHUNK];
    uint8_t coded[CHUNK / 4] = {0};

    if (!add)
        memset(out, 0, count * sizeof *out);
    for (; count >= CHUNK; count -= CHUNK) {
        decode(c, in, out);
        in += bytes;
        out += CHUNK;
    }
    if (!count)
        return;
    memcpy(coded, in, tni_kv_codec_bytes(c, count));
    memcpy(more, out, count * sizeof *out);
    memset(more + count, 0, (CHUNK - count) * sizeof *more);
    decode(c, coded, more);
    memcpy(out, more, count * sizeof *out);
}
