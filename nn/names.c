/*
 * Names of classes: a text file with a name per line, the first one for class 0.
 */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES_MAX (4 << 20)
#define NAME_BYTES_MAX 255

struct tnn_names {
    size_t count;
    char *text; /* the file, a NUL behind each name */
    char **at;
};

void tnn_names_destroy(struct tnn_names *names)
{
    if (!names)
        return;
    free(names->text);
    free(names->at);
    free(names);
}

const char *tnn_names_at(const struct tnn_names *names, int64_t index)
{
    return names && index >= 0 && (uint64_t)index < names->count ? names->at[index] : NULL;
}

/* The file as text; not NULL: `*bytes` of it and a NUL. */
static char *text_read(tn_app *app, const char *path, size_t *bytes)
{
    FILE *file = fopen(path, "re");
    char *text = NULL;
    struct stat s;

    if (!file || fstat(fileno(file), &s)) {
        (void)tnn_fail_open(app, path);
    } else if (!S_ISREG(s.st_mode) || s.st_size > FILE_BYTES_MAX) {
        (void)tnn_fail(app, TN_E_FORMAT, "%s: names of classes are a regular file of at most %d bytes", path,
                       FILE_BYTES_MAX);
    } else if ((text = tnn_alloc(app, (size_t)s.st_size + 2, 1))) {
        *bytes = fread(text, 1, (size_t)s.st_size, file);
        if (*bytes && text[*bytes - 1] != '\n')
            text[(*bytes)++] = '\n';
    }
    if (file)
        (void)fclose(file);
    return text;
}

static tn_status lines_take(tn_app *app, struct tnn_names *names, size_t bytes, const char *path)
{
    char *line = names->text, *end;

    for (size_t i = 0; i < bytes; i++)
        names->count += names->text[i] == '\n';
    if (!(names->at = tnn_alloc(app, names->count, sizeof *names->at)))
        return TN_E_NOMEM;
    for (size_t i = 0; i < names->count; i++, line = end + 1) {
        end = memchr(line, '\n', (size_t)(names->text + bytes - line));
        *end = '\0';
        if (end > line && end[-1] == '\r')
            end[-1] = '\0';
        if (!*line || strlen(line) > NAME_BYTES_MAX || strlen(line) + 1 < (size_t)(end - line))
            return tnn_fail(app, TN_E_FORMAT, "%s:%zu: a class's name has 1 to %d bytes", path, i + 1,
                            NAME_BYTES_MAX);
        if (!tnn_is_printable(line))
            return tnn_fail(app, TN_E_FORMAT, "%s:%zu: \"%s\": %s", path, i + 1, line,
                            tnn_is_utf8(line) ? "a control character in a class's name"
                                              : "a class's name is text in UTF-8");
        names->at[i] = line;
    }
    return TN_OK;
}

tn_status tnn_names_read(tn_app *app, const char *path, struct tnn_names **out)
{
    struct tnn_names *names = tnn_alloc(app, 1, sizeof *names);
    size_t bytes = 0;

    if (names && (names->text = text_read(app, path, &bytes)) && !lines_take(app, names, bytes, path)) {
        *out = names;
        return TN_OK;
    }
    tnn_names_destroy(names);
    return app->status;
}

tn_status tnn_names_make(tn_app *app, const char *const *list, size_t count, struct tnn_names **out)
{
    struct tnn_names *names = tnn_alloc(app, 1, sizeof *names);
    size_t bytes = 0;

    for (size_t i = 0; i < count; i++)
        bytes += strlen(list[i]) + 1;
    if (names && (names->text = tnn_alloc(app, bytes + 1, 1))) {
        bytes = 0;
        for (size_t i = 0; i < count; i++) {
            memcpy(names->text + bytes, list[i], strlen(list[i]));
            bytes += strlen(list[i]);
            names->text[bytes++] = '\n';
        }
        if (!lines_take(app, names, bytes, "folders of classes")) {
            *out = names;
            return TN_OK;
        }
    }
    tnn_names_destroy(names);
    return app->status;
}

tn_status tnn_names_beside(tn_app *app, const char *folder, struct tnn_names **out)
{
    char *path = tnn_format(app, "%s/classes.txt", folder);

    if (path && !access(path, F_OK))
        (void)tnn_names_read(app, path, out);
    free(path);
    return app->status;
}
