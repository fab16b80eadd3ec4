/* Recordings of operators: a line for each call, then one for each array of it. */
#include "mxnet/recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define FILE_BYTES_MAX (32u << 20)

static const char *const part_names[PART_COUNT] = {"in",   "out",  "stat", "now",
                                                   "head", "grad", "over", "second"};

static char *file_read(const char *path)
{
    gzFile file = gzopen(path, "rb");
    char *text = malloc(FILE_BYTES_MAX);
    const int bytes = file && text ? gzread(file, text, FILE_BYTES_MAX - 1) : -1;

    if (file)
        (void)gzclose(file);
    if (bytes < 0 || bytes == (int)FILE_BYTES_MAX - 1) {
        free(text);
        return NULL;
    }
    text[bytes] = '\0';
    return text;
}

static bool word_next(char **at, char **word)
{
    char *p = *at + strspn(*at, " ");

    *word = p;
    p += strcspn(p, " ");
    if (*p)
        *p++ = '\0';
    *at = p;
    return **word != '\0';
}

/* OPERATOR DTYPE [train] [np] NAME=VALUE... */
static bool call_read(char *line, call *c)
{
    size_t attrs = 0;
    char *word;

    (void)snprintf(c->text, sizeof c->text, "%s", line);
    if (!word_next(&line, &c->op) || !word_next(&line, &c->dtype))
        return false;
    while (word_next(&line, &word)) {
        char *equal = strchr(word, '=');

        if (!equal && (!strcmp(word, "train") || !strcmp(word, "np"))) {
            c->train = c->train || *word == 't';
            c->np = c->np || *word == 'n';
            continue;
        }
        if (!equal || attrs == ATTRS_MAX)
            return false;
        *equal = '\0';
        c->attrs[2 * attrs] = word;
        c->attrs[2 * attrs++ + 1] = equal + 1;
    }
    return true;
}

static bool numbers_read(part p, const char *text, recorded *a)
{
    char *end;

    a->count = 1;
    for (int32_t d = 0; d < a->ndim; d++)
        a->count *= (size_t)a->shape[d];
    if (p == STAT)
        a->count = STATISTICS;
    if (a->count > ELEMENTS_MAX || !(a->values = malloc(a->count * sizeof *a->values + 1)))
        return false;
    for (size_t i = 0; i < a->count; i++, text = end) {
        a->values[i] = strtod(text, &end);
        if (end == text)
            return false;
    }
    return text[strspn(text, " ")] == '\0';
}

/* [INPUT] DTYPE[DIMENSION,...] VALUE... */
static bool array_read(part p, char *line, recorded *a)
{
    char *word, *bracket;

    if (p == NOW || p == GRAD || p == SECOND) {
        if (!word_next(&line, &word))
            return false;
        a->input = (uint32_t)strtoul(word, NULL, 10);
    }
    if (!word_next(&line, &word) || !(bracket = strchr(word, '[')) || a->input >= ARRAYS_MAX)
        return false;
    *bracket++ = '\0';
    if (tn_dtype_parse(word, &a->dtype))
        return false;
    for (char *end; *bracket && *bracket != ']'; bracket = end + (*end == ',')) {
        a->shape[a->ndim++] = strtoll(bracket, &end, 10);
        if (end == bracket || a->ndim == DIMS_MAX)
            return false;
    }
    return numbers_read(p, line, a);
}

static bool line_read(char *line, recording *r)
{
    char *word;

    if (!word_next(&line, &word))
        return false;
    if (!strcmp(word, "call"))
        return call_read(line, &r->calls[r->count++]);
    for (part p = IN; r->count && p < PART_COUNT; p++)
        if (!strcmp(word, part_names[p])) {
            call *c = &r->calls[r->count - 1];

            return c->counts[p] < ARRAYS_MAX && array_read(p, line, &c->parts[p][c->counts[p]++]);
        }
    return false;
}

bool recording_open(const char *path, recording *out)
{
    size_t lines = 1;
    bool good = true;

    *out = (recording){.text = file_read(path)};
    for (const char *p = out->text; p && (p = strchr(p, '\n')); p++)
        lines += !strncmp(p, "\ncall ", 6);
    out->calls = calloc(lines, sizeof *out->calls);
    if (!out->text || !out->calls) {
        (void)fprintf(stderr, "%s cannot be read\n", path);
        return false;
    }
    for (char *line = out->text, *end; good && *line; line = end + 1) {
        if (!(end = strchr(line, '\n')))
            return false;
        *end = '\0';
        good = line_read(line, out);
        if (!good)
            (void)fprintf(stderr, "%s: not a line of a recording: %s\n", path, line);
    }
    return good;
}

void recording_close(recording *r)
{
    for (size_t i = 0; i < r->count; i++)
        for (part p = IN; p < PART_COUNT; p++)
            for (uint32_t k = 0; k < r->calls[i].counts[p]; k++)
                free(r->calls[i].parts[p][k].values);
    free(r->calls);
    free(r->text);
    memset(r, 0, sizeof *r);
}
