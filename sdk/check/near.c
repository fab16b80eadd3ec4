/*
 * Names near one that does not exist: by single letters changed, a part of a name counting as near.
 */
#include <string.h>

#include "internal.h"

#define LETTERS_MAX 255u

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t letters_changed(const char *a, const char *b)
{
    const size_t a_length = least(strlen(a), LETTERS_MAX), b_length = least(strlen(b), LETTERS_MAX);
    size_t row[LETTERS_MAX + 1];

    for (size_t i = 0; i <= b_length; i++)
        row[i] = i;
    for (size_t k = 1; k <= a_length; k++) {
        size_t before = row[0];

        row[0] = k;
        for (size_t i = 1; i <= b_length; i++) {
            const size_t here = before + (a[k - 1] != b[i - 1]);

            before = row[i];
            row[i] = least(here, 1 + least(row[i], row[i - 1]));
        }
    }
    return row[b_length];
}

void chk_near_add(chk_near *near, const char *wanted, const char *name)
{
    const size_t far = strstr(name, wanted) ? 0 : letters_changed(wanted, name);
    size_t at = 0;

    while (at < CHK_NEAR && *near->name[at] && near->far[at] <= far) {
        if (!strcmp(near->name[at], name))
            return;
        at++;
    }
    if (at == CHK_NEAR)
        return;
    for (size_t i = CHK_NEAR - 1; i > at; i--) {
        memcpy(near->name[i], near->name[i - 1], sizeof near->name[i]);
        near->far[i] = near->far[i - 1];
    }
    (void)snprintf(near->name[at], sizeof near->name[at], "%s", name);
    near->far[at] = far;
}
