#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "docs/page.h"

void must(tn_status st)
{
    if (st) {
        print_error("%s: %s\n", tni_status_name(st), tni_error_message());
        fail();
    }
}

void page_compare(const char *name, tni_str *page)
{
    const char *root = getenv("TENON_TEST_SOURCE"), *update = getenv("TENON_UPDATE");
    char *path = NULL, *text = NULL;
    uint64_t bytes = 0, line = 1;

    if (!root)
        root = ".";
    must(page->status);
    must(tni_path_join(root, name, &path));
    if (update && !strcmp(update, "1"))
        must(tni_file_write_all(path, page->text, page->length));
    must(tni_file_read_all(path, PAGE_BYTES_MAX, &text, &bytes));
    for (uint64_t i = 0; strcmp(text, page->text) && i <= bytes; i++) {
        if (text[i] != page->text[i]) {
            print_error("%s:%llu is not what the library says; scripts/tools/manual writes the page anew\n",
                        name, (unsigned long long)line);
            fail();
        }
        line += text[i] == '\n';
    }
    tni_free(path);
    tni_free(text);
}
