/**
 * Reading of option texts in plugins, the same everywhere: no locale, no allocation.
 */
#ifndef TENON_PLUGIN_TEXT_H
#define TENON_PLUGIN_TEXT_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Reads decimal digits at `*at` and moves it behind them. TN_E_ARG: there are none, or 64 bits do not hold
 * them. */
static inline tn_status tn_text_digits(const char **at, uint64_t *out)
{
    uint64_t value = 0;
    const char *p = *at;

    if (*p < '0' || *p > '9')
        return TN_E_ARG;
    for (; *p >= '0' && *p <= '9'; p++) {
        uint64_t digit = (uint64_t)(*p - '0');

        if (value > (UINT64_MAX - digit) / 10)
            return TN_E_ARG;
        value = value * 10 + digit;
    }
    *at = p;
    *out = value;
    return TN_OK;
}

/**
 * [any] Reads a size as options of type `bytes` are written: "4096", "64k", "2MiB", "1.5 GB". K, M, G, T are
 * powers of 1024, in either case, with or without "B" or "iB". Digits behind the point count to the ninth.
 *
 * @return TN_OK, or TN_E_ARG: not such a text, or more than 64 bits hold; `*out` is as it was
 * @since 0.1
 */
static inline tn_status tn_text_bytes(const char *text, uint64_t *out)
{
    const char *at = text;
    uint64_t whole, nano = 0, part;
    uint32_t shift = 0;

    if (!text || tn_text_digits(&at, &whole))
        return TN_E_ARG;
    if (*at == '.') {
        uint64_t scale = 100000000u;

        for (at++; *at >= '0' && *at <= '9'; at++, scale /= 10)
            nano += (uint64_t)(*at - '0') * scale;
    }
    if (*at == ' ' && at[1])
        at++;
    for (uint32_t i = 0; i < 4; i++)
        if ((*at | 0x20) == "kmgt"[i])
            shift = 10 * (i + 1);
    if (shift && *++at == 'i' && (at[1] | 0x20) == 'b')
        at++;
    if ((*at | 0x20) == 'b')
        at++;
    part = (nano << (shift / 2)) / 1000000000u << (shift - shift / 2); /* 64 bits hold 2^30 * 2^20 */
    if (*at || whole > (UINT64_MAX - part) >> shift)
        return TN_E_ARG;
    *out = (whole << shift) + part;
    return TN_OK;
}

#ifdef __cplusplus
}
#endif

#endif
