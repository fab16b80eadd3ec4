/*
 * JSON is read by jansson, behind limits that hold before it sees a byte: size, depth, and an estimate of the
 * heap that its objects and arrays will take (an empty object of two bytes costs jansson some 250).
 */
#include <jansson.h>
#include <string.h>

#include "base/base.h"

#define OBJECT_BYTES 288u /* jansson's hash table with its first buckets, and its slot in the parent */
#define ARRAY_BYTES 192u
#define OTHER_BYTES 24u /* per byte of text of numbers, strings and keys */
#define HEAP_FACTOR 50u
#define HEAP_EXTRA ((uint64_t)64 << 20)

typedef struct json_scan {
    uint64_t objects, arrays;
    uint32_t depth, depth_max;
} json_scan;

/* Skips a string from behind its opening quote; returns the place behind the closing one, or `bytes`. */
static uint64_t string_skip(const char *text, uint64_t bytes, uint64_t at)
{
    while (at < bytes && text[at] != '"')
        at += text[at] == '\\' ? 2 : 1;
    return at < bytes ? at + 1 : bytes;
}

static void scan_text(const char *text, uint64_t bytes, json_scan *scan)
{
    for (uint64_t i = 0; i < bytes; i++) {
        switch (text[i]) {
        case '"':
            i = string_skip(text, bytes, i + 1) - 1;
            break;
        case '{':
        case '[':
            scan->objects += text[i] == '{';
            scan->arrays += text[i] == '[';
            if (++scan->depth > scan->depth_max)
                scan->depth_max = scan->depth;
            break;
        case '}':
        case ']':
            scan->depth -= scan->depth > 0;
            break;
        default:
            break;
        }
    }
}

tn_status tni_json_parse(const char *name, const char *text, uint64_t bytes, struct json_t **out)
{
    json_scan scan = {0};
    json_error_t error;
    json_t *root;

    if (bytes > TN_JSON_BYTES_MAX)
        return tni_error(TN_E_FORMAT, "%s has %llu bytes of JSON, at most %llu are allowed", name,
                         (unsigned long long)bytes, (unsigned long long)TN_JSON_BYTES_MAX);
    scan_text(text, bytes, &scan);
    if (scan.depth_max > TN_JSON_DEPTH_MAX)
        return tni_error(TN_E_FORMAT, "%s: JSON nests %u deep, at most %d are allowed", name, scan.depth_max,
                         TN_JSON_DEPTH_MAX);
    if (scan.objects * OBJECT_BYTES + scan.arrays * ARRAY_BYTES + bytes * OTHER_BYTES >
        bytes * HEAP_FACTOR + HEAP_EXTRA)
        return tni_error(TN_E_FORMAT,
                         "%s: %llu JSON objects and arrays in %llu bytes are more than a model has", name,
                         (unsigned long long)(scan.objects + scan.arrays), (unsigned long long)bytes);
    root = json_loadb(text, (size_t)bytes, JSON_REJECT_DUPLICATES, &error);
    if (!root && json_error_code(&error) == json_error_out_of_memory)
        return tni_error(TN_E_NOMEM, "%s: out of memory while reading JSON", name);
    if (!root)
        return tni_error(TN_E_FORMAT, "%s:%d:%d: %s", name, error.line, error.column, error.text);
    *out = root;
    return TN_OK;
}

tn_status tni_json_read(const char *path, struct json_t **out)
{
    char *text = NULL;
    uint64_t bytes = 0;
    tn_status st = tni_file_read_all(path, TN_JSON_BYTES_MAX, &text, &bytes);

    if (!st)
        st = tni_json_parse(path, text, bytes, out);
    tni_free(text);
    return st;
}
