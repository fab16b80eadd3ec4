/* The codecs: MXNet's layout byte by byte, residuals, lengths, and that nothing else is touched. And sums of
 * payloads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "kv/kv.h"
#include "kv/wire.h"

#define ROOM 1600

static const tni_kv_codec two = {.bits = 2, .threshold = 0.5f}, one = {.bits = 1, .threshold = 0};

static void layout(void **state)
{
    /* +t 11, -t 10, between 00; the first number in the highest bits */
    const float x2[] = {0.5f, -0.5f, 0.25f, 7, 0.49f, -0.49f, 0, -3, 0.5f};
    const uint8_t want2[] = {0xe3, 0x02, 0xc0, 0};
    const float x1[] = {1, -1, 0.25f, 0, 0, 0, 0, 2, -4, 3};
    const uint8_t want1[] = {0xa1, 0x40, 0, 0};
    const float left[] = {0, 0, 0.25f, 6.5f, 0.49f, -0.49f, 0, -2.5f, 0};
    float residual[16] = {0}, out[9];
    uint8_t coded[8];

    (void)state;
    memset(coded, 0xee, sizeof coded);
    tni_kv_codec_encode(&two, x2, residual, 9, coded);
    assert_memory_equal(coded, want2, 4);
    assert_int_equal(coded[4], 0xee);
    assert_memory_equal(residual, left, sizeof left);
    tni_kv_codec_decode(&two, coded, 9, out, false);
    tni_kv_codec_decode(&two, coded, 9, out, true);
    for (int i = 0; i < 9; i++)
        assert_true(out[i] == 2 * (x2[i] >= 0.5f ? 0.5f : x2[i] <= -0.5f ? -0.5f : 0));
    memset(residual, 0, sizeof residual);
    memset(coded, 0xee, sizeof coded);
    tni_kv_codec_encode(&one, x1, residual, 10, coded);
    assert_memory_equal(coded, want1, 4);
    assert_int_equal(coded[4], 0xee);
    assert_true(residual[0] == 0 && residual[1] == 0 && residual[2] == -0.75f && residual[3] == 1 &&
                residual[9] == 2);
}

static void lengths(void **state)
{
    (void)state;
    assert_int_equal(tni_kv_codec_bytes(&two, 0), 0);
    assert_int_equal(tni_kv_codec_bytes(&two, 1), 4);
    assert_int_equal(tni_kv_codec_bytes(&two, 16), 4);
    assert_int_equal(tni_kv_codec_bytes(&two, 17), 8);
    assert_int_equal(tni_kv_codec_bytes(&one, 32), 4);
    assert_int_equal(tni_kv_codec_bytes(&one, 33), 8);
    assert_int_equal(tni_kv_codec_bytes(&two, UINT64_MAX), (UINT64_MAX / 16 + 1) * 4);
}

/* Any length, against one number at a time; bytes behind the codes stay. */
static void any_length(void **state)
{
    float *x = malloc(ROOM * sizeof *x), *residual = calloc(ROOM, sizeof *residual),
          *sum = calloc(ROOM, sizeof *sum), *kept = calloc(ROOM, sizeof *kept);
    uint8_t coded[ROOM];

    (void)state;
    assert_true(x && residual && sum && kept);
    for (uint32_t count = 0; count < ROOM; count += 1 + count / 7)
        for (int which = 0; which < 2; which++) {
            const tni_kv_codec *c = which ? &two : &one;
            const uint64_t bytes = tni_kv_codec_bytes(c, count);

            memset(coded, 0xab, sizeof coded);
            memcpy(kept, residual, ROOM * sizeof *kept);
            for (uint32_t i = 0; i < count; i++)
                x[i] = (float)((i * 37 + count) % 64) / 16 - 2;
            tni_kv_codec_encode(c, x, residual, count, coded);
            tni_kv_codec_decode(c, coded, count, sum, false);
            for (uint32_t i = 0; i < count; i++) { /* nothing is lost */
                const float r = kept[i] + x[i], s = sum[i];

                assert_true(which ? s == (r >= 0.5f    ? 0.5f
                                          : r <= -0.5f ? -0.5f
                                                       : 0.0f)
                                  : s == (r > 0 ? 1.0f : -1.0f));
                assert_true(residual[i] == r - s);
            }
            assert_true(memcmp(residual + count, kept + count, (ROOM - count) * sizeof *kept) == 0);
            assert_int_equal(coded[bytes], 0xab);
        }
    free(x);
    free(residual);
    free(sum);
    free(kept);
}

/* base + payload, element by element: each length, onto the base itself or apart from it, and payloads that
 * lie anywhere. */
static void sums(void **state)
{
    float base[80], payload[81], sum[80];
    double wide[2][2100], wides[2100];

    (void)state;
    for (int i = 0; i < 80; i++) {
        base[i] = (float)i / 7.0f;
        payload[i] = 1e7f / (float)(i + 1);
    }
    for (uint64_t count = 0; count <= 70; count++)
        for (uint64_t apart = 0; apart < 6; apart++) {
            float *to = apart & 1 ? sum : base, before[80];
            char *from = (char *)payload + apart / 2;

            memcpy(before, base, sizeof before);
            memset(sum, 0x55, sizeof sum);
            memmove(from, payload, sizeof *payload * 80);
            tni_kv_bytes_add(TN_F32, base, to, from, count * sizeof *base);
            memmove(payload, from, sizeof *payload * 80);
            for (uint64_t i = 0; i < count; i++)
                assert_true(to[i] == before[i] + payload[i]);
            assert_memory_equal(base + count, before + count, (80 - count) * sizeof *base);
            assert_true(to == base || count == 80 || ((const uint8_t *)(sum + count))[0] == 0x55);
            memcpy(base, before, sizeof before);
        }
    for (int i = 0; i < 2100; i++) {
        wide[0][i] = i / 3.0;
        wide[1][i] = 1.0 / (i + 1);
    }
    tni_kv_bytes_add(TN_F64, wide[0], wides, wide[1], sizeof wides);
    for (int i = 0; i < 2100; i++)
        assert_true(wides[i] == wide[0][i] + wide[1][i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout),
        cmocka_unit_test(lengths),
        cmocka_unit_test(any_length),
        cmocka_unit_test(sums),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
