/*
 * Lists of texts: arguments and environments.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "launch.h"

#define ROOM_FIRST 16

static void CLI_PRINTF(2, 0) put(launch_list *l, const char *format, va_list args)
{
    char **items = l->items, *text = NULL;

    if (l->count + 2 > l->room) {
        const size_t room = l->room ? 2 * l->room : ROOM_FIRST;

        if (!(items = realloc(l->items, room * sizeof *items))) {
            l->failed = true;
            return;
        }
        l->items = items;
        l->room = room;
    }
    if (vasprintf(&text, format, args) < 0) {
        l->failed = true;
        return;
    }
    items[l->count++] = text;
    items[l->count] = NULL;
}

void launch_list_add(launch_list *l, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    put(l, format, args);
    va_end(args);
}

/* The item of a name, or the count. */
static size_t find(const launch_list *l, const char *name)
{
    const size_t length = strlen(name);
    size_t i = 0;

    while (i < l->count && (strncmp(l->items[i], name, length) || l->items[i][length] != '='))
        i++;
    return i;
}

void launch_list_unset(launch_list *l, const char *name)
{
    for (size_t i; (i = find(l, name)) < l->count;) {
        free(l->items[i]);
        memmove(&l->items[i], &l->items[i + 1], (l->count - i) * sizeof *l->items);
        l->count--;
    }
}

void launch_list_set(launch_list *l, const char *name, const char *format, ...)
{
    char *value = NULL;
    va_list args;

    va_start(args, format);
    if (vasprintf(&value, format, args) < 0)
        value = NULL;
    va_end(args);
    l->failed = l->failed || !value;
    launch_list_unset(l, name);
    launch_list_add(l, "%s=%s", name, value ? value : "");
    free(value);
}

const char *launch_list_get(const launch_list *l, const char *name)
{
    const size_t i = find(l, name);

    return i < l->count ? l->items[i] + strlen(name) + 1 : NULL;
}

void launch_list_fini(launch_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        free(l->items[i]);
    free(l->items);
    *l = (launch_list){0};
}

static bool name_byte(char c, bool first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (!first && c >= '0' && c <= '9');
}

size_t launch_name(const char *text)
{
    size_t length = 0;

    while (name_byte(text[length], !length))
        length++;
    return length;
}

void launch_quote(FILE *out, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,@%+";

    if (*text && !text[strspn(text, plain)]) {
        (void)fputs(text, out);
        return;
    }
    (void)fputc('\'', out);
    for (; *text; text++)
        if (*text == '\'')
            (void)fputs("'\\''", out);
        else
            (void)fputc(*text, out);
    (void)fputc('\'', out);
}
