#include "support/nulls.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PARTS_MAX 16
#define TEXT_MAX ((size_t)4 << 20)

typedef struct part {
    const char *at;
    size_t length;
} part;

char *nulls_source(const char *path)
{
    const char *root = getenv("TENON_TEST_SOURCE");
    char full[4096], *text = malloc(TEXT_MAX);
    FILE *file;
    size_t got;

    (void)snprintf(full, sizeof full, "%s/%s", root ? root : ".", path);
    file = fopen(full, "rb");
    assert_true(file && text);
    got = fread(text, 1, TEXT_MAX - 1, file);
    text[got] = '\0';
    (void)fclose(file);
    return text;
}

/* What stands between the commas of a list, from behind its opening bracket on. Strings with brackets or
 * commas in them would mislead; they only make a call look as if it had more arguments. */
static size_t parts_of(const char *at, part parts[PARTS_MAX])
{
    size_t count = 0;
    int depth = 1;

    parts[0] = (part){at, 0};
    for (; *at && depth; at++) {
        depth += strchr("([{", *at) != NULL;
        depth -= strchr(")]}", *at) != NULL;
        if (depth && (*at != ',' || depth > 1))
            continue;
        parts[count].length = (size_t)(at - parts[count].at);
        if (++count == PARTS_MAX)
            break;
        parts[count] = (part){at + 1, 0};
    }
    for (size_t i = 0; i < count; i++) {
        for (; parts[i].length && isspace((unsigned char)*parts[i].at); parts[i].length--)
            parts[i].at++;
        while (parts[i].length && isspace((unsigned char)parts[i].at[parts[i].length - 1]))
            parts[i].length--;
    }
    return count;
}

/* Bit i: some call of `function` gives NULL for parameter i; bit 31: it is called. */
static uint32_t nulls_given(const char *function, const char *text)
{
    uint32_t found = 0;
    part parts[PARTS_MAX];

    for (const char *at = text; (at = strstr(at, function)) != NULL; at += strlen(function)) {
        size_t count;

        if (at > text && (isalnum((unsigned char)at[-1]) || at[-1] == '_'))
            continue;
        found |= 1u << 31;
        count = parts_of(at + strlen(function), parts);
        for (size_t i = 0; i < count; i++)
            if (parts[i].length == 4 && !memcmp(parts[i].at, "NULL", 4))
                found |= 1u << i;
    }
    return found;
}

static bool is_pointer(const part *p)
{
    return memchr(p->at, '*', p->length) || memchr(p->at, '[', p->length);
}

static size_t function_check(const char *name, const char *open, char *const *tests)
{
    const char *begin = open;
    part parts[PARTS_MAX];
    uint32_t found = 0;
    size_t missing = 0, count = parts_of(open + 1, parts);
    char call[128];

    while (isalnum((unsigned char)begin[-1]) || begin[-1] == '_')
        begin--;
    (void)snprintf(call, sizeof call, "%.*s(", (int)(open - begin), begin);
    for (; *tests; tests++)
        found |= nulls_given(call, *tests);
    if (!found)
        print_error("%s: %s) is not called with wrong arguments\n", name, call);
    missing += !found;
    for (size_t i = 0; found && i < count; i++)
        if (is_pointer(&parts[i]) && !(found >> i & 1u)) {
            print_error("%s: %s) is not called with NULL for %.*s\n", name, call, (int)parts[i].length,
                        parts[i].at);
            missing++;
        }
    return missing;
}

size_t nulls_missing(const char *name, const char *header, char *const *tests, size_t *functions)
{
    size_t missing = 0;

    for (const char *at = header; (at = strstr(at, "\nTN_API ")) != NULL; ++*functions) {
        at = strchr(at, '(');
        assert_non_null(at);
        missing += function_check(name, at, tests);
    }
    return missing;
}
