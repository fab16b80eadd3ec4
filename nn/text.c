/*
 * Texts for people: shapes, and names that were meant.
 */
#include "internal.h"

#include <jansson.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *tnn_shape_text(int32_t ndim, const int64_t *shape, char out[TNN_SHAPE_TEXT])
{
    size_t at = 0;

    out[0] = '\0';
    if (ndim <= 0)
        return strcpy(out, ndim < 0 ? "?" : "()");
    for (int32_t i = 0; i < ndim && at < TNN_SHAPE_TEXT - 32; i++) {
        int n = shape[i] < 0 ? snprintf(out + at, 32, "%s?", i ? "×" : "")
                             : snprintf(out + at, 32, "%s%lld", i ? "×" : "", (long long)shape[i]);

        at += n > 0 ? (size_t)n : 0;
    }
    return out;
}

bool tnn_one_of(const char *text, const char *const *names)
{
    for (; text && *names; names++)
        if (!strcmp(text, *names))
            return true;
    return false;
}

bool tnn_is_listed(char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (!strcmp(names[i], name))
            return true;
    return false;
}

const char *tnn_plain_name(const char *name)
{
    return !strncmp(name, "arg:", 4) || !strncmp(name, "aux:", 4) ? name + 4 : name;
}

bool tnn_ends_with(const char *text, const char *suffix)
{
    size_t n = strlen(text), m = strlen(suffix);

    return n >= m && !strcmp(text + n - m, suffix);
}

const char *tnn_path_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

char *tnn_path_folder(tn_app *app, const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? tnn_format(app, "%.*s", slash == path ? 1 : (int)(slash - path), path)
                 : tnn_strdup(app, ".");
}

char *tnn_beside(tn_app *app, const char *path, const char *ending)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');

    return tnn_format(app, "%.*s%s", (int)(dot ? (size_t)(dot - path) : strlen(path)), path, ending);
}

bool tnn_is_utf8(const char *text)
{
    json_t *o = json_string(text);
    const bool ok = o != NULL;

    json_decref(o);
    return ok;
}

bool tnn_is_printable(const char *text)
{
    char shown[1024];

    (void)tn_text_escape(shown, sizeof shown, text);
    return !strcmp(shown, text);
}

/* Edit distance of short texts; beyond 31 bytes they are cut. */
static int distance(const char *a, const char *b)
{
    int row[33];
    const int n = (int)strnlen(a, 31), m = (int)strnlen(b, 31);

    for (int j = 0; j <= m; j++)
        row[j] = j;
    for (int i = 1; i <= n; i++) {
        int diagonal = row[0];

        row[0] = i;
        for (int j = 1; j <= m; j++) {
            int best = diagonal + (a[i - 1] != b[j - 1]);

            diagonal = row[j];
            best = row[j] + 1 < best ? row[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            row[j] = best;
        }
    }
    return row[m];
}

tn_status tnn_unknown(tn_app *app, const char *what, const char *text, const char *const *names)
{
    const char *nearest = NULL;
    char list[768] = "";
    int best = 3;

    for (const char *const *name = names; *name; name++) {
        int d = distance(text, *name);

        if (d < best) {
            best = d;
            nearest = *name;
        }
        if (strlen(list) + strlen(*name) + 3 < sizeof list)
            strcat(strcat(list, *list ? ", " : ""), *name);
    }
    if (nearest)
        return tnn_fail(app, TN_E_ARG, "unknown %s \"%.80s\"; did you mean \"%s\"? There are: %s", what, text,
                        nearest, list);
    return tnn_fail(app, TN_E_ARG, "unknown %s \"%.80s\"; there are: %s", what, text, list);
}

double tnn_number_read(const char *text, char **end)
{
    const locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    const double value = strtod_l(text, end, c);

    freelocale(c);
    return value;
}

size_t tnn_hash(const char *text)
{
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */

    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 0x100000001b3u;
    return (size_t)(h ^ h >> 32);
}
