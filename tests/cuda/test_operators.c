/* Each operator with a kernel for hosts has one of plugin cuda, or stands in the table of that plugin's
 * README with the reason why it has none: at most 20, and none that has one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "cuda.h"

#define ROWS_MAX 20u
#define HEAD "\n| operators | why |\n| --- | --- |\n"

static char table[65536]; /* the rows: "| `a` `b` | why |" */

static void table_read(void)
{
    char path[4096];
    const char *from, *end;
    FILE *f;

    (void)snprintf(path, sizeof path, "%s/plugins/cuda/README.md", getenv("TENON_TEST_SOURCE"));
    f = fopen(path, "r");
    assert_non_null(f);
    table[fread(table, 1, sizeof table - 1, f)] = '\0';
    (void)fclose(f);
    from = strstr(table, HEAD);
    assert_non_null(from);
    from += strlen(HEAD);
    end = strstr(from, "\n\n");
    assert_non_null(end);
    memmove(table, from, (size_t)(end - from));
    table[end - from] = '\0';
}

static bool in_table(const char *name)
{
    char quoted[128];

    (void)snprintf(quoted, sizeof quoted, "`%s`", name);
    return strstr(table, quoted) != NULL;
}

static void each_has_one(void **state)
{
    const said *s = cuda_say_without("", "\"$T\" plugins list --ops --json 2>/dev/null");
    json_t *o = json_loads(s->out, 0, NULL), *plugins;
    const char *name;
    unsigned lack = 0, have = 0;

    (void)state;
    assert_int_equal(s->code, 0);
    assert_true(json_object_size(json_object_get(o, "ops")) > 400);
    table_read();
    json_object_foreach(json_object_get(o, "ops"), name, plugins)
    {
        const bool kernel = json_object_get(plugins, "cuda") != NULL;

        if (kernel && in_table(name))
            fail_msg("%s has a kernel of cuda: it does not belong into the table", name);
        if (!kernel && !in_table(name))
            fail_msg("%s has no kernel of cuda, and the table gives no reason", name);
        lack += !kernel;
        have += kernel;
    }
    json_decref(o);
    (void)printf("%u operators have a kernel of cuda, %u have none\n", have, lack);
    assert_true(lack > 0 && lack <= ROWS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_has_one)};

    cuda_setup();
    return cmocka_run_group_tests_name("operators", tests, NULL, NULL);
}
