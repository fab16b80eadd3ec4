/* RecordIO: what MXNet wrote, read and written again byte for byte; shares of a file; damage; labels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "support/scratch.h"
#include "tenon/record.h"

#define MAGIC "\x0a\x23\xd7\xce"
#define COUNT 12 /* of the recorded file; the last two have labels */

static const char *recorded(const char *name)
{
    static char path[2][4096];
    static int next;
    const char *root = getenv("TENON_TEST_SOURCE");
    char *out = path[next++ % 2];

    (void)snprintf(out, sizeof path[0], "%s/tests/oracle/recorded/record/%s", root ? root : ".", name);
    return out;
}

static void file_same(const char *a, const char *b)
{
    char *x = NULL, *y = NULL;
    uint64_t n = 0, m = 0;

    assert_int_equal(tni_file_read_all(a, 1 << 20, &x, &n), TN_OK);
    assert_int_equal(tni_file_read_all(b, 1 << 20, &y, &m), TN_OK);
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n);
    tni_free(x);
    tni_free(y);
}

/* Records of "some.rec" as tests/oracle/record.py makes them, without those with labels. */
static const struct {
    const char *bytes;
    size_t count;
} payloads[] = {{"", 0},
                {"a", 1},
                {"four", 4},
                {"eleven byte", 11},
                {MAGIC, 4},
                {MAGIC MAGIC, 8},
                {"abcd" MAGIC "xyz", 11},
                {"ab" MAGIC "cd", 8},
                {"abcd" MAGIC, 8}};

static void as_mxnet(void **state)
{
    const char *path = scratch_path("some.rec"), *index = scratch_path("some.idx");
    tn_record_reader *r = NULL;
    tn_record_writer *w = NULL;
    tn_record_place *places = NULL;
    const void *data;
    uint64_t bytes;
    size_t count = 0, n = 0;

    (void)state;
    assert_int_equal(tn_record_index_load(recorded("some.idx"), &count, &places), TN_OK);
    assert_int_equal(count, COUNT);
    assert_int_equal(tn_record_open(recorded("some.rec"), 0, 1, &r), TN_OK);
    assert_int_equal(tn_record_create(path, index, &w), TN_OK);
    while (!tn_record_next(r, &data, &bytes) && data) {
        if (n < sizeof payloads / sizeof *payloads) {
            assert_int_equal(bytes, payloads[n].count);
            assert_memory_equal(data, payloads[n].bytes, bytes);
        }
        assert_int_equal(places[n].key, 10 * n);
        assert_int_equal(tn_record_append(w, places[n++].key, data, bytes), TN_OK);
    }
    assert_int_equal(n, COUNT);
    assert_int_equal(tn_record_finish(w), TN_OK);
    file_same(path, recorded("some.rec"));
    file_same(index, recorded("some.idx"));
    tn_record_rewind(r);
    for (size_t i = 0; i <= count; i++) { /* what each begins with */
        unsigned char head[3];
        uint64_t offset;

        assert_int_equal(tn_record_peek(r, head, sizeof head, &bytes, &offset), TN_OK);
        assert_true(offset == (i < count ? places[i].offset : UINT64_MAX));
        if (i < sizeof payloads / sizeof *payloads && payloads[i].count >= sizeof head && bytes)
            assert_memory_equal(head, payloads[i].bytes, bytes);
    }
    for (size_t i = count; i-- > 0;) { /* from its end, by the index */
        assert_int_equal(tn_record_seek(r, places[i].offset), TN_OK);
        assert_int_equal(tn_record_next(r, &data, &bytes), TN_OK);
        assert_non_null(data);
        if (i < sizeof payloads / sizeof *payloads)
            assert_int_equal(bytes, payloads[i].count);
    }
    tn_record_rewind(r);
    assert_int_equal(tn_record_next(r, &data, &bytes), TN_OK);
    assert_int_equal(bytes, 0);
    assert_non_null(data);
    tn_record_close(r);
    tn_free(places);
}

/* Any number of shares has each record once, in order. */
static void shares(void **state)
{
    (void)state;
    for (uint32_t parts = 1; parts < 400; parts += parts < 40 ? 1 : 37) {
        size_t n = 0, whole = 0;

        for (uint32_t part = 0; part < parts; part++) {
            tn_record_reader *r = NULL;
            const void *data;
            uint64_t bytes;

            assert_int_equal(tn_record_open(recorded("some.rec"), part, parts, &r), TN_OK);
            while (!tn_record_next(r, &data, &bytes) && data) {
                if (n < sizeof payloads / sizeof *payloads)
                    assert_int_equal(bytes, payloads[n].count);
                whole += bytes;
                n++;
            }
            tn_record_close(r);
        }
        assert_int_equal(n, COUNT);
        assert_true(whole > 768);
    }
}

static void labels(void **state)
{
    const float three[] = {1, -2, 0.25f};
    tn_record_header h = {.struct_size = TN_SIZE(tn_record_header), .label = 3.5f, .id = 7};
    tn_record_reader *r = NULL;
    const void *data, *payload;
    uint64_t bytes, left, n;
    void *packed = NULL;

    (void)state;
    assert_int_equal(tn_record_open(recorded("some.rec"), 0, 1, &r), TN_OK);
    for (int i = 0; i < COUNT - 1; i++)
        assert_int_equal(tn_record_next(r, &data, &bytes), TN_OK);
    assert_int_equal(tn_record_pack(&h, "one label", 9, &packed, &n), TN_OK);
    assert_int_equal(n, bytes);
    assert_memory_equal(packed, data, n);
    tn_free(packed);
    assert_int_equal(tn_record_unpack(data, bytes, &h, &payload, &left), TN_OK);
    assert_true(h.label_count == 0 && h.label == 3.5f && h.id == 7 && h.id2 == 0 && !h.labels);
    assert_int_equal(left, 9);
    assert_memory_equal(payload, "one label", 9);
    assert_int_equal(tn_record_next(r, &data, &bytes), TN_OK);
    assert_int_equal(tn_record_unpack(data, bytes, &h, &payload, &left), TN_OK);
    assert_true(h.label_count == 3 && h.label == 0 && h.id == 8);
    assert_memory_equal(h.labels, three, sizeof three);
    assert_memory_equal(payload, "three", 5);
    h.labels = three;
    assert_int_equal(tn_record_pack(&h, "three", 5, &packed, &n), TN_OK);
    assert_int_equal(n, bytes);
    assert_memory_equal(packed, data, n);
    assert_int_equal(tn_record_unpack(packed, 23, &h, &payload, &left), TN_E_FORMAT);
    assert_int_equal(tn_record_unpack(packed, 24 + 11, &h, &payload, &left), TN_E_FORMAT);
    h.reserved = 1;
    tn_free(packed);
    packed = NULL;
    assert_int_equal(tn_record_pack(&h, "three", 5, &packed, &n), TN_E_ARG);
    h = (tn_record_header){
        .struct_size = TN_SIZE(tn_record_header), .label_count = 1u << 28, .labels = three};
    assert_int_equal(tn_record_pack(&h, "", 0, &packed, &n), TN_E_ARG);
    h.label_count = 1;
    assert_int_equal(tn_record_pack(&h, "", UINT64_MAX, &packed, &n), TN_E_ARG);
    h.labels = NULL;
    assert_int_equal(tn_record_pack(&h, "", 0, &packed, &n), TN_E_ARG);
    assert_null(packed);
    tn_record_close(r);
}

/* Reads to the end or the first failure: how many records. */
static size_t count_records(const char *bytes, size_t count, tn_status *st)
{
    tn_record_reader *r = NULL;
    const void *data = "";
    uint64_t length;
    size_t n = 0;

    assert_int_equal(tn_record_open(scratch_write("x.rec", bytes, count), 0, 1, &r), TN_OK);
    while (!(*st = tn_record_next(r, &data, &length)) && data)
        n++;
    if (*st) { /* it stays where it was */
        assert_null(data);
        assert_int_equal(tn_record_next(r, &data, &length), *st);
    }
    tn_record_close(r);
    return n;
}

static void damaged(void **state)
{
    static const struct {
        const char *bytes;
        size_t count, good;
        const char *text;
    } rows[] = {
        {"", 0, 0, NULL},
        {MAGIC "\1\0\0\0x\0\0\0", 12, 1, NULL},
        {MAGIC "\1\0\0\0x", 9, 1, NULL}, /* without the zeros behind it */
        {MAGIC "\1\0\0", 7, 0, "byte 0: the file ends where a record should begin"},
        {MAGIC "\2\0\0\0x", 9, 0, "byte 0: the file ends within this record"},
        {"abcdefgh", 8, 0, "byte 0: no record begins here"},
        {MAGIC "\1\0\0\0x\0\0\0abcdefgh", 20, 1, "byte 12: no record begins here"},
        {MAGIC "\0\0\0\x40", 8, 0, "begins in its middle"},
        {MAGIC "\0\0\0\x60", 8, 0, "begins in its middle"},
        {MAGIC "\0\0\0\xe0", 8, 0, "begins in its middle"},
        {MAGIC "\0\0\0\x20", 8, 0, "byte 8: the file ends where a record should begin"},
        {MAGIC "\0\0\0\x20" MAGIC "\0\0\0\0", 16, 0, "byte 0: this record has no end"},
        {MAGIC "\0\0\0\x20" MAGIC "\0\0\0\x40" MAGIC "\0\0\0\x20", 24, 0, "byte 0: this record breaks off"},
        {MAGIC "\xff\xff\xff\x1f", 8, 0, "the file ends within this record"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        tn_status st;

        assert_int_equal(count_records(rows[i].bytes, rows[i].count, &st), rows[i].good);
        assert_int_equal(st, rows[i].text ? TN_E_FORMAT : TN_OK);
        if (rows[i].text && !strstr(tn_error_text(), rows[i].text))
            fail_msg("row %zu: %s", i, tn_error_text());
    }
}

static void bad_indices(void **state)
{
    static const char *const texts[] = {"1 2\n",
                                        "1\t\n",
                                        "\t2\n",
                                        "1\t2\t3\n",
                                        "a\t2\n",
                                        "-1\t2\n",
                                        "1\t-2\n",
                                        "18446744073709551616\t2\n",
                                        "1\t18446744073709551616\n"};
    tn_record_place *places = NULL;
    size_t count = 7;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *path = scratch_write("x.idx", texts[i], strlen(texts[i]));

        assert_int_equal(tn_record_index_load(path, &count, &places), TN_E_FORMAT);
        assert_non_null(strstr(tn_error_text(), "x.idx:1"));
    }
    assert_true(count == 7 && !places);
    assert_int_equal(tn_record_index_load(scratch_write("x.idx", "\n \n", 3), &count, &places), TN_OK);
    assert_int_equal(count, 0);
    tn_free(places);
    assert_int_equal(tn_record_index_load(scratch_path("absent"), &count, &places), TN_E_IO);
}

static void not_finished(void **state)
{
    const char *path = scratch_path("gone.rec"), *index = scratch_path("gone.idx");
    tn_record_writer *w = NULL;
    tn_record_reader *r = NULL;

    (void)state;
    assert_int_equal(tn_record_create(path, index, &w), TN_OK);
    assert_int_equal(tn_record_append(w, 1, "x", 1), TN_OK);
    assert_int_equal(tn_record_append(w, 1, "x", UINT64_C(1) << 29), TN_E_ARG);
    tn_record_abandon(w);
    tn_record_abandon(NULL);
    assert_false(tni_file_exists(path) || tni_file_exists(index));
    assert_int_equal(tn_record_open(path, 0, 1, &r), TN_E_IO);
    w = NULL;
    assert_int_equal(tn_record_create(scratch_path("no/such/folder"), NULL, &w), TN_E_IO);
    assert_int_equal(tn_record_create(path, scratch_path("no/such/folder"), &w), TN_E_IO);
    assert_null(w);
    assert_false(tni_file_exists(path));
}

static tn_status all_of_it(void *arg)
{
    tn_record_reader *r = NULL;
    tn_record_writer *w = NULL;
    tn_record_place *places = NULL;
    const void *data = "";
    uint64_t bytes;
    size_t count;
    tn_status st;

    (void)arg;
    if (!(st = tn_record_index_load(recorded("some.idx"), &count, &places)) &&
        !(st = tn_record_open(recorded("some.rec"), 1, 2, &r)) &&
        !(st = tn_record_create(scratch_path("y.rec"), scratch_path("y.idx"), &w)))
        while (!st && !(st = tn_record_next(r, &data, &bytes)) && data)
            st = tn_record_append(w, 1, data, bytes);
    tn_record_abandon(w);
    tn_record_close(r);
    tn_free(places);
    return st;
}

static void no_memory(void **state)
{
    (void)state;
    assert_true(scratch_each_allocation_fails(all_of_it, NULL) > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_mxnet),  cmocka_unit_test(shares),      cmocka_unit_test(labels),
        cmocka_unit_test(damaged),   cmocka_unit_test(bad_indices), cmocka_unit_test(not_finished),
        cmocka_unit_test(no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
