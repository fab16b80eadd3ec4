/* Passes over payloads. They are built for speed, and each is one: what is read comes from memory once. */
#include <string.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "kv/wire.h"
#include "tensor/tensor.h"

#define TILE_BYTES 16384u /* stays in the first cache; a multiple of all elements */

void tni_kv_bytes_copy(void *to, const void *from, uint64_t bytes)
{
    if (to != from && bytes)
        memcpy(to, from, bytes);
}

#if defined(__x86_64__)
#define LINE 64u

void tni_kv_bytes_store(void *to, const void *from, uint64_t bytes)
{
    const uint64_t head = -(uintptr_t)to % LINE;
    const char *in = from;
    char *out = to;

    if (bytes < TILE_BYTES) {
        memcpy(to, from, bytes);
        return;
    }
    memcpy(out, in, head);
    for (out += head, in += head, bytes -= head; bytes >= LINE; out += LINE, in += LINE, bytes -= LINE) {
        __m128i line[4];

        _mm_prefetch(in + 8 * LINE, _MM_HINT_T0);
        memcpy(line, in, sizeof line);
        for (uint32_t i = 0; i < 4; i++)
            _mm_stream_si128((__m128i *)(void *)out + i, line[i]);
    }
    _mm_sfence();
    memcpy(out, in, bytes);
}
#else
void tni_kv_bytes_store(void *to, const void *from, uint64_t bytes)
{
    memcpy(to, from, bytes);
}
#endif

/* Four at once, wherever they lie: memory bounds it then. */
typedef float four __attribute__((vector_size(16), aligned(4), may_alias));

static void f32_add(const float *base, float *sum, const float *payload, uint64_t count)
{
    uint64_t i = 0;

    for (; i + 16 <= count; i += 16)
        for (uint64_t k = i; k < i + 16; k += 4)
            *(four *)(void *)(sum + k) =
                *(const four *)(const void *)(base + k) + *(const four *)(const void *)(payload + k);
    for (; i < count; i++)
        sum[i] = base[i] + payload[i];
}

static void tile_add(uint8_t dtype, char *sum, const char *payload, uint64_t bytes)
{
    const int64_t count = (int64_t)(bytes / tn_dtype_bytes(dtype)), one = 1;
    const tn_tensor src = {
        .data = (void *)(uintptr_t)payload, .dtype = dtype, .ndim = 1, .shape = &count, .stride = &one};
    tn_tensor dst = src;

    dst.data = sum;
    tni_add_strided(&src, &dst);
}

void tni_kv_bytes_add(uint8_t dtype, const void *base, void *sum, const void *payload, uint64_t bytes)
{
    const bool aligned = !((uintptr_t)payload % tn_dtype_bytes(dtype));
    _Alignas(16) char tile[TILE_BYTES];

    if (dtype == TN_F32 && aligned) {
        f32_add(base, sum, payload, bytes / sizeof(float));
        return;
    }
    for (uint64_t at = 0; at < bytes; at += TILE_BYTES) {
        const uint64_t size = bytes - at < TILE_BYTES ? bytes - at : TILE_BYTES;
        const char *from = (const char *)payload + at;

        if (!aligned)
            from = memcpy(tile, from, size);
        tni_kv_bytes_copy((char *)sum + at, (const char *)base + at, size);
        tile_add(dtype, (char *)sum + at, from, size);
    }
}
