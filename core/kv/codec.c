/*
 * Gradients in 2 bits or 1, in MXNet's layout, with what is rounded away kept for the next round.
 *
 * 2bit: 11 is +threshold, 10 is -threshold, 00 is 0. 1bit: 1 is +1, 0 is -1, by whether the number is above
 * the threshold. Codes come first, one byte each, in loops that compilers turn into vector code; then bytes
 * are packed by a multiplication, which moves each of them to its place in the highest byte.
 */
#include "kv/kv.h"

#include <math.h>
#include <string.h>

#define BLOCK 512 /* elements whose codes stand on the stack */

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

/* ---- codes ------------------------------------------------------------------------------------------- */

static void codes_2bit(const float *restrict x, float *restrict residual, uint8_t *restrict code,
                       uint32_t count, float t)
{
    for (uint32_t i = 0; i < count; i++) {
        const float r = residual[i] + x[i];
        const int32_t up = r >= t, down = r <= -t;

        residual[i] = r - (up ? t : 0.0f) + (down ? t : 0.0f);
        code[i] = (uint8_t)(3 * up + 2 * down);
    }
}

static void codes_1bit(const float *restrict x, float *restrict residual, uint8_t *restrict code,
                       uint32_t count, float t)
{
    for (uint32_t i = 0; i < count; i++) {
        const float r = residual[i] + x[i];
        const int32_t up = r > t;

        residual[i] = r + (up ? -1.0f : 1.0f);
        code[i] = (uint8_t)up;
    }
}

/* Four codes of 2 bits: c0 << 6 | c1 << 4 | c2 << 2 | c3. */
static uint8_t packed_4(const uint8_t *code)
{
    const uint32_t all =
        (uint32_t)code[0] | (uint32_t)code[1] << 8 | (uint32_t)code[2] << 16 | (uint32_t)code[3] << 24;

    return (uint8_t)(all * 0x40100401u >> 24);
}

/* Eight codes of 1 bit: c0 << 7 | … | c7. */
static uint8_t packed_8(const uint8_t *code)
{
    uint64_t all = 0;

    for (uint32_t i = 0; i < 8; i++)
        all |= (uint64_t)code[i] << 8 * i;
    return (uint8_t)(all * 0x8040201008040201u >> 56);
}

void tni_kv_encode(const tni_kv_codec *c, const float *x, float *residual, uint64_t count, uint8_t *out)
{
    const uint32_t each = 8 / c->bits;
    uint8_t code[BLOCK];

    while (count) {
        const uint32_t n = count < BLOCK ? (uint32_t)count : BLOCK;
        const uint32_t bytes = (uint32_t)tni_kv_codec_bytes(c, n);

        if (n < BLOCK)
            memset(code, 0, sizeof code);
        if (c->bits == 2) {
            codes_2bit(x, residual, code, n, c->threshold);
            for (uint32_t i = 0; i < bytes; i++)
                out[i] = packed_4(code + (size_t)i * each);
        } else {
            codes_1bit(x, residual, code, n, c->threshold);
            for (uint32_t i = 0; i < bytes; i++)
                out[i] = packed_8(code + (size_t)i * each);
        }
        x += n;
        residual += n;
        out += bytes;
        count -= n;
    }
}

/* ---- and back ---------------------------------------------------------------------------------------- */

void tni_kv_decode(const tni_kv_codec *c, const uint8_t *in, uint64_t count, float *out, bool add)
{
    const float of[2][4] = {{-1, 1}, {0, 0, -c->threshold, c->threshold}}; /* code 01 is never sent */
    const float *values = of[c->bits - 1];
    const uint32_t each = 8 / c->bits, mask = (1u << c->bits) - 1;

    for (uint64_t i = 0; i < count; i += each) {
        const uint32_t byte = in[i / each], n = count - i < each ? (uint32_t)(count - i) : each;

        for (uint32_t k = 0; k < n; k++) {
            const float v = values[byte >> (8 - (k + 1) * c->bits) & mask];

            out[i + k] = add ? out[i + k] + v : v;
        }
    }
}
