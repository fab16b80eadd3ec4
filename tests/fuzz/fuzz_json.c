/* The JSON reader's limits: whatever is read stays below 50 times the text and 64 MiB of heap, jansson's own
 * included. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/base.h"

#define HEAP_MAX(bytes) (50u * (uint64_t)(bytes) + (64u << 20))

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t live, peak;

static void *count_malloc(size_t size)
{
    void *p = malloc(size);

    live += p ? malloc_usable_size(p) : 0;
    peak = live > peak ? live : peak;
    return p;
}

static void count_free(void *p)
{
    live -= p ? malloc_usable_size(p) : 0;
    free(p);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    json_set_alloc_funcs(count_malloc, count_free);
    return 0;
}

/* Depth of what was accepted; at most 256, so recursion is safe. */
static size_t depth_of(const json_t *value)
{
    const char *key;
    json_t *item;
    size_t deepest = 0, i;

    json_array_foreach(value, i, item)
    {
        size_t depth = depth_of(item);

        deepest = depth > deepest ? depth : deepest;
    }
    json_object_foreach((json_t *)value, key, item)
    {
        size_t depth = depth_of(item);

        deepest = depth > deepest ? depth : deepest;
    }
    return deepest + (json_is_array(value) || json_is_object(value));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *root = NULL;
    tn_status st;

    live = peak = 0;
    st = tni_json_parse("f", (const char *)data, size, &root);
    if ((st == TN_OK) != (root != NULL) || (st && !tni_error_message()[0]))
        abort();
    if (peak > HEAP_MAX(size))
        abort();
    if (root && size < 4096 && depth_of(root) > TN_JSON_DEPTH_MAX)
        abort();
    json_decref(root);
    if (live != 0)
        abort();
    return 0;
}
