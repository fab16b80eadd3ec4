/* JSON behind limits; checksums and random numbers against published values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/base.h"
#include "support/scratch.h"

static tn_status parse(const char *text, json_t **out)
{
    return tni_json_parse("t", text, strlen(text), out);
}

static void good(void **state)
{
    json_t *root;

    (void)state;
    assert_int_equal(parse("{\"a\": [1, 2.5, \"x\\u00e9\", null, true], \"b\": {}}", &root), TN_OK);
    assert_int_equal(json_array_size(json_object_get(root, "a")), 5);
    json_decref(root);
    assert_int_equal(tni_json_read(scratch_write("j.json", "[1]", 3), &root), TN_OK);
    json_decref(root);
}

static void bad(void **state)
{
    static const char *const cases[] = {"",
                                        " ",
                                        "{",
                                        "[1,]",
                                        "{\"a\":1,\"a\":2}",
                                        "1",
                                        "[1] x",
                                        "[\"\x01\"]",
                                        "[\"\\ud800\"]",
                                        "[\"\xff\"]",
                                        "[1e999]",
                                        "[99999999999999999999]",
                                        "[\"abc",
                                        "[\"a\\",
                                        "{\"a\\u0000b\":1}"};
    json_t *root = NULL;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(parse(cases[i], &root), TN_E_FORMAT);
        assert_non_null(strstr(tni_error_message(), "t:"));
    }
    assert_null(root);
    assert_int_equal(tni_json_read(scratch_path("absent.json"), &root), TN_E_IO);
}

static void depth(void **state)
{
    char text[2100];
    json_t *root;

    (void)state;
    for (size_t n = 255; n <= 258; n++) {
        memset(text, '[', n);
        memset(text + n, ']', n);
        text[2 * n] = '\0';
        assert_int_equal(parse(text, &root), n <= 256 ? TN_OK : TN_E_FORMAT);
        if (n <= 256)
            json_decref(root);
    }
    assert_non_null(strstr(tni_error_message(), "nests 258 deep"));
    memset(text, '[', 2000); /* a bracket inside a string is none */
    memcpy(text, "[\"\\\"", 4);
    memcpy(text + 2000, "\"]", 3);
    assert_int_equal(parse(text, &root), TN_OK);
    json_decref(root);
}

/* Size and shape of what would take more heap than 50 times the file and 64 MiB are refused before jansson
 * sees them. */
static void heap(void **state)
{
    size_t pairs = 1u << 20;
    char *text = calloc(1, 3 * pairs + 2);
    json_t *root = NULL;

    (void)state;
    assert_int_equal(tni_json_parse("big", text, TN_JSON_BYTES_MAX + 1, &root), TN_E_FORMAT);
    text[0] = '[';
    for (size_t i = 0; i < pairs; i++)
        memcpy(text + 1 + 3 * i, "{},", 3);
    text[3 * pairs] = ']';
    assert_int_equal(tni_json_parse("t", text, 3 * pairs + 1, &root), TN_E_FORMAT);
    assert_non_null(strstr(tni_error_message(), "objects and arrays"));
    assert_int_equal(tni_json_parse("t", text, 1, &root), TN_E_FORMAT);
    free(text);
}

#ifndef TN_TEST_SWITCHES
static bool tni_xxh3_plain; /* switches nothing: this build has the processor's own way alone */
#endif

/* The polynomial of IEEE 802.3, bit by bit. */
static uint32_t crc_by_bits(uint32_t crc, const uint8_t *at, size_t count)
{
    for (crc = ~crc; count; count--, at++) {
        crc ^= *at;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    }
    return ~crc;
}

/* Whatever a processor's own way takes of the bytes, and zlib of the rest. */
static void checksums_of_all_lengths(void **state)
{
    uint8_t bytes[340];
    uint32_t seed = 1;

    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)((seed = seed * 1664525u + 1013904223u) >> 24);
    for (size_t at = 0; at < 17; at++)
        for (size_t count = 0; count <= sizeof bytes - at; count++)
            assert_int_equal(tni_crc32(seed, bytes + at, count), crc_by_bits(seed, bytes + at, count));
}

/* The vectors of xxHash's own sanity check, and of other lengths what libxxhash 0.8.1 says: the shortest one,
 * the wire's shortest, those around stripes and blocks, and a long one. */
static void fast_checksums(void **state)
{
    static const struct {
        uint64_t count, hash;
    } vectors[] = {{403, 0xcdeb804d65c6dea4},  {512, 0x617e49599013cb6b},  {2048, 0xdd59e2c3a5f038e0},
                   {2099, 0xc6b9d9b3fc9ac765}, {2240, 0x6e73a90539cf2948}, {2367, 0xcb37aeb9e5d361ed},
                   {241, 0xc5a639ecd2030e5e},  {1024, 0xdd85c9b5c1109c5c},
                   {1025, 0xd870c0fa13211c6a}, {1088, 0xcc1450ea6b52a8f4}, {1089, 0xef727b2effc4cc8c},
                   {2049, 0xd3afa4329779b921}, {100003, 0xd4aad81df88ff644}, {1048577, 0xe950650fea43ee85}};
    static uint8_t bytes[1048577 + 1];
    uint64_t generator = 2654435761u;

    (void)state;
    for (size_t i = 0; i + 1 < sizeof bytes; i++, generator *= 11400714785074694797u)
        bytes[i] = (uint8_t)(generator >> 56);
    for (int plain = 0; plain < 2; plain++) {
        tni_xxh3_plain = plain;
        for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
            assert_true(tni_xxh3(bytes, vectors[i].count) == vectors[i].hash);
    }
    for (size_t count = 241; count < 4200; count += 13) { /* at any place, alike by both ways */
        const uint8_t *at = bytes + count % 9;

        tni_xxh3_plain = true;
        generator = tni_xxh3(at, count);
        tni_xxh3_plain = false;
        assert_true(tni_xxh3(at, count) == generator);
        bytes[count - 1] ^= (uint8_t)(1u << count % 8);
        assert_true(tni_xxh3(at, count) != generator);
        bytes[count - 1] ^= (uint8_t)(1u << count % 8);
    }
}

static void checksums(void **state)
{
    static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    tni_sha256_state s;
    char hex[65];

    (void)state;
    assert_int_equal(tni_crc32(0, "123456789", 9), 0xCBF43926u); /* the CRC's check value */
    assert_int_equal(tni_crc32(tni_crc32(0, "1234", 4), "56789", 5), 0xCBF43926u);
    tni_sha256("", 0, hex); /* FIPS 180-4 examples */
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    tni_sha256("abc", 3, hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    tni_sha256_begin(&s);
    for (size_t i = 0; i < 56; i++)
        tni_sha256_add(&s, two_blocks + i, 1);
    tni_sha256_end(&s, hex);
    assert_string_equal(hex, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

/* The known answers of the Random123 distribution for philox4x32, 10 rounds. */
static void philox(void **state)
{
    static const struct {
        uint64_t key, high, low;
        uint32_t out[4];
    } known[] = {
        {0, 0, 0, {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}},
        {UINT64_MAX, UINT64_MAX, UINT64_MAX, {0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}},
        {0x299f31d0a4093822u,
         0x0370734413198a2eu,
         0x85a308d3243f6a88u,
         {0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}},
    };
    uint32_t out[4];

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        tn_philox(known[i].key, known[i].high, known[i].low, out);
        assert_memory_equal(out, known[i].out, sizeof out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good), cmocka_unit_test(bad),       cmocka_unit_test(depth),
        cmocka_unit_test(heap), cmocka_unit_test(checksums),
        cmocka_unit_test(checksums_of_all_lengths), cmocka_unit_test(fast_checksums),
        cmocka_unit_test(philox),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
