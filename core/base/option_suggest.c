/*
 * "Did you mean": the keys nearest to one that no row fits. Rows without wildcards are compared as they are;
 * in the others each `*` takes the part of the wrong key that stands there, so that memory.cpu.pol gives
 * memory.cpu.pool. A wildcard fits nearly everything: such a row is named only if it is nearer than all of
 * those without.
 */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/options_internal.h"

#define NAME_MAX_BYTES (OPTION_KEY_MAX + 16)
#define FILLED_MAX 32    /* rows with wildcards that are near a wrong key */
#define FILL_DISTANCE 2u /* how near */
#define FAR 255u
#define SLIPS 4 /* kinds of a single slip; also the rank of what is further away */

typedef char suggestion[NAME_MAX_BYTES];

/* ---- wildcards --------------------------------------------------------------------------------------- */

typedef struct fill {
    const char *pattern, *text, *stops;
    size_t pattern_length, text_length;
    uint8_t cost[NAME_MAX_BYTES][NAME_MAX_BYTES]; /* [i][j]: i bytes of the pattern against j of the text */
} fill;

static uint8_t smaller(uint8_t a, uint32_t b)
{
    return b < a ? (uint8_t)b : a;
}

/* Costs of the last wildcard and of a letter, against j bytes of the text; i and j are at least 1. */
static uint8_t cost_wildcard(const fill *f, size_t i, size_t j)
{
    return option_stops(f->stops, f->text[j - 1]) ? FAR : smaller(f->cost[i - 1][j - 1], f->cost[i][j - 1]);
}

static uint8_t cost_letter(const fill *f, size_t i, size_t j)
{
    const char *p = f->pattern + i, *t = f->text + j;
    uint8_t best = smaller(FAR, f->cost[i - 1][j - 1] + (p[-1] != t[-1] ? 1u : 0u));

    best = smaller(best, f->cost[i - 1][j] + 1u);
    best = smaller(best, f->cost[i][j - 1] + 1u);
    if (i > 1 && j > 1 && p[-2] != '*' && p[-1] == t[-2] && p[-2] == t[-1])
        best = smaller(best, f->cost[i - 2][j - 2] + 1u);
    return best;
}

/* The distance; FILL_DISTANCE + 1 or more: too far to matter. */
static uint8_t fill_measure(fill *f)
{
    for (size_t j = 0; j <= f->text_length; j++)
        f->cost[0][j] = (uint8_t)j;
    for (size_t i = 1; i <= f->pattern_length; i++) {
        bool wild = f->pattern[i - 1] == '*';
        uint8_t least = f->cost[i][0] = wild ? FAR : smaller(FAR, f->cost[i - 1][0] + 1u);

        for (size_t j = 1; j <= f->text_length; j++) {
            f->cost[i][j] = wild ? cost_wildcard(f, i, j) : cost_letter(f, i, j);
            least = smaller(least, f->cost[i][j]);
        }
        if (least > FILL_DISTANCE)
            return FAR;
    }
    return f->cost[f->pattern_length][f->text_length];
}

/* Walks the costs back and writes the key from its end. */
static void fill_write(const fill *f, suggestion out)
{
    char *end = out + NAME_MAX_BYTES - 1, *at = end;
    size_t i = f->pattern_length, j = f->text_length;

    *at = '\0';
    while (i > 0 && at > out) {
        const char *p = f->pattern + i, *t = f->text + j;
        uint8_t now = f->cost[i][j];

        if (p[-1] == '*') {
            *--at = t[-1];
            i -= f->cost[i - 1][j - 1] == now;
            j--;
        } else if (j > 0 && now == f->cost[i - 1][j - 1] + (p[-1] != t[-1])) {
            *--at = p[-1];
            i--, j--;
        } else if (i > 1 && j > 1 && p[-2] != '*' && p[-1] == t[-2] && p[-2] == t[-1] &&
                   now == f->cost[i - 2][j - 2] + 1) {
            *--at = p[-1];
            if (at > out)
                *--at = p[-2];
            i -= 2, j -= 2;
        } else if (now == f->cost[i - 1][j] + 1) {
            *--at = p[-1];
            i--;
        } else {
            j--;
        }
    }
    memmove(out, at, (size_t)(end - at) + 1);
}

typedef struct similar_names {
    const char *wrong, *stops;
    fill *work;
    suggestion names[FILLED_MAX];
    size_t rank[FILLED_MAX]; /* smaller is likelier */
    size_t count;
} similar_names;

static void name_add(similar_names *n, const char *name, size_t rank)
{
    for (size_t i = 0; i < n->count; i++)
        if (!strcmp(n->names[i], name))
            return;
    if (n->count == FILLED_MAX)
        return;
    (void)snprintf(n->names[n->count], sizeof n->names[0], "%s", name);
    n->rank[n->count++] = rank;
}

/* The wrong key with one slip at byte `at` undone, as far as the pattern fits then: 0 neighbours exchanged, 1
 * a letter too much, 2 `c` left out, 3 `c` mistyped. In this order they are believed. */
static void slip_undo(similar_names *n, const char *pattern, size_t rank, size_t at, char c)
{
    const char *wrong = n->wrong, *rest = wrong + at;
    const size_t taken[SLIPS] = {2, 1, 0, 1};
    const char letters[SLIPS][2] = {{rest[0] ? rest[1] : '\0', rest[0]}, {0}, {c}, {c}};
    const size_t given = rank == 0 ? 2 : rank > 1;
    size_t left = strlen(rest);
    suggestion name;

    if (left < taken[rank] || at + given + left - taken[rank] >= sizeof name)
        return;
    memcpy(name, wrong, at);
    memcpy(name + at, letters[rank], given);
    memcpy(name + at + given, rest + taken[rank], left - taken[rank] + 1);
    if (option_glob(pattern, name, n->stops))
        name_add(n, name, rank);
}

static void pattern_try(similar_names *n, const char *pattern)
{
    fill *f = n->work;
    size_t before = n->count;
    suggestion name;

    f->pattern = pattern;
    f->text = n->wrong;
    f->stops = n->stops;
    f->pattern_length = strlen(pattern);
    f->text_length = strlen(n->wrong);
    if (f->pattern_length >= NAME_MAX_BYTES || f->text_length >= NAME_MAX_BYTES ||
        fill_measure(f) > FILL_DISTANCE)
        return;
    for (size_t at = 0; at <= f->text_length; at++) {
        slip_undo(n, pattern, 0, at, 0);
        slip_undo(n, pattern, 1, at, 0);
        for (const char *c = pattern; *c; c++) {
            if (*c == '*' || memchr(pattern, *c, (size_t)(c - pattern)))
                continue;
            slip_undo(n, pattern, 2, at, *c);
            slip_undo(n, pattern, 3, at, *c);
        }
    }
    if (n->count > before)
        return;
    fill_write(f, name);
    name_add(n, name, SLIPS);
}

/* An operator's name and a device type can only be told apart by knowing the types. */
static void row_try(similar_names *n, const char *key, bool environment)
{
    const char *at = strchr(key, '@');
    char name[NAME_MAX_BYTES], typed[OPTION_KEY_MAX];

    for (const char *const *d = tni_option_devices(); at && *d; d++) {
        (void)snprintf(typed, sizeof typed, "%.*s@%s", (int)(at - key), key, *d);
        option_env_name(typed, name);
        pattern_try(n, environment ? name : typed);
    }
    option_env_name(key, name);
    if (!at)
        pattern_try(n, environment ? name : key);
}

/* ---- the rows ---------------------------------------------------------------------------------------- */

/* At most three of the filled names, likeliest first. */
static size_t filled_best(const similar_names *n, const char *best[3])
{
    size_t found = 0;

    for (size_t rank = 0; rank <= SLIPS; rank++)
        for (size_t i = 0; i < n->count && found < 3; i++)
            if (n->rank[i] == rank)
                best[found++] = n->names[i];
    return found;
}

/* Keys that are called the same in another section. */
static size_t elsewhere(const char *wrong, const char *const *fixed, bool environment, const char *best[3])
{
    const char *between = environment ? "__" : ".", *tail = strstr(wrong, between);
    size_t found = 0;

    for (; tail && *fixed && found < 3; fixed++)
        if (!strcasecmp(strstr(*fixed, between), tail))
            best[found++] = *fixed;
    return found;
}

/* Rows with wildcards, if none of those without is a single slip away. */
static size_t nearest(const char *wrong, const char *const *fixed, bool environment, const char *best[3],
                      similar_names *similar)
{
    size_t found = tni_suggest(wrong, fixed, best);
    size_t distance = found ? tni_edit_distance(wrong, best[0], FILL_DISTANCE) : FILL_DISTANCE + 1;
    const char *wild[3];
    size_t wild_found;

    if (distance <= 1)
        return found;
    similar->wrong = wrong;
    similar->stops = environment ? "" : ".@";
    for (size_t i = 0; i < option_def_count; i++)
        if (option_is_pattern(&option_defs[i]))
            row_try(similar, option_defs[i].key, environment);
    wild_found = filled_best(similar, wild);
    if (!wild_found && !found)
        return elsewhere(wrong, fixed, environment, best);
    if (!wild_found || tni_edit_distance(wrong, wild[0], FILL_DISTANCE) >= distance)
        return found;
    memcpy(best, wild, sizeof wild);
    return wild_found;
}

static void said(const char *const *best, size_t found, char *out, size_t size)
{
    static const char *const before[4][3] = {{"", "", ""},
                                             {"; did you mean ", "", ""},
                                             {"; did you mean ", " or ", ""},
                                             {"; did you mean ", ", ", " or "}};
    size_t at = 0;

    out[0] = '\0';
    for (size_t i = 0; i < found && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%.80s%s", before[found][i], best[i],
                               i + 1 == found ? "?" : "");
}

void tni_suggest_text(const char *wrong, const char *const *names, char *out, size_t size)
{
    const char *best[3];

    said(best, tni_suggest(wrong, names, best), out, size);
}

/* The key itself, but for capitals; false: it is something else. */
static bool shouted(const char *wrong, char *out, size_t size)
{
    suggestion small;
    const char *best = small;
    size_t i = 0;

    for (; wrong[i] && i + 1 < sizeof small; i++)
        small[i] = (char)tolower((unsigned char)wrong[i]);
    small[i] = '\0';
    if (wrong[i] || !option_def_find(small))
        return false;
    said(&best, 1, out, size);
    return true;
}

void option_suggest_row(const char *wrong, bool environment, char *out, size_t size)
{
    const char **fixed = tni_calloc(option_def_count + 1, sizeof *fixed);
    suggestion *names = environment ? tni_calloc(option_def_count, sizeof *names) : NULL;
    similar_names *similar = tni_zalloc(sizeof *similar);
    const char *best[3];
    size_t count = 0, found;

    out[0] = '\0';
    if (similar)
        similar->work = tni_alloc(sizeof *similar->work);
    if (!fixed || !similar || !similar->work || (environment && !names) ||
        (!environment && shouted(wrong, out, size)))
        goto cleanup;
    for (size_t i = 0; i < option_def_count; i++) {
        if (option_is_pattern(&option_defs[i]))
            continue;
        if (environment)
            option_env_name(option_defs[i].key, names[count]);
        fixed[count] = environment ? names[count] : option_defs[i].key;
        count++;
    }
    found = nearest(wrong, fixed, environment, best, similar);
    said(best, found, out, size);

cleanup:
    if (similar)
        tni_free(similar->work);
    tni_free(similar);
    tni_free(names);
    tni_free(fixed);
}

tn_status option_unknown(const char *key, const char *where)
{
    char text[300];

    option_suggest_row(key, false, text, sizeof text);
    return tni_error_number(1204, TN_E_KEY, "%s%sno option %.100s%s", where, where[0] ? ": " : "", key, text);
}
