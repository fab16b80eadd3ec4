/* The note reader on images made by hand: what it reads, and everything that may be wrong with a file. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plugin/internal.h"
#include "support/scratch.h"

/* Its size with the NUL is a multiple of 8. */
#define PROVIDES "kernels@cpu pool:p1 op:x op:acme_* pool:q* options     "

typedef struct whole_note {
    tn_note note;
    char provides[sizeof PROVIDES];
} whole_note;

enum { NOTE_AT = 512, DYNAMIC_AT = 400, IMAGE_BYTES = NOTE_AT + 36 + sizeof(whole_note) };

typedef struct image {
    Elf64_Ehdr header;
    Elf64_Phdr segments[3];
    unsigned char rest[IMAGE_BYTES - sizeof(Elf64_Ehdr) - 3 * sizeof(Elf64_Phdr)];
} image;

_Static_assert(sizeof(image) == IMAGE_BYTES, "the image has no padding");

static unsigned char *at(image *im, size_t offset)
{
    return (unsigned char *)im + offset;
}

static tn_note *note_in(image *im)
{
    return (tn_note *)(void *)at(im, NOTE_AT + 36);
}

static char *provides_in(image *im)
{
    return (char *)at(im, NOTE_AT + 36 + sizeof(tn_note));
}

static image image_make(void)
{
    static const whole_note note = {{6,
                                     sizeof(tn_note_body) + sizeof PROVIDES,
                                     TN_NOTE_TYPE,
                                     TN_NOTE_OWNER,
                                     {sizeof(tn_note_body), TN_MAGIC, TN_ABI_MAJOR, 0, 0, 0, "acme", "1.2.3",
                                      TN_ABI_TAG, "", "Acme", "Apache-2.0", "a test"}},
                                    PROVIDES};
    static const Elf64_Nhdr build_head = {4, 20, NT_GNU_BUILD_ID};
    const Elf64_Dyn dynamic[2] = {{DT_FLAGS, {DF_STATIC_TLS}}, {DT_NULL, {0}}};
    image im = {0};

    memcpy(im.header.e_ident, "\177ELF\2\1\1", 7);
    im.header.e_type = ET_DYN;
    im.header.e_phoff = sizeof im.header;
    im.header.e_phentsize = sizeof im.segments[0];
    im.header.e_phnum = 3;
    im.segments[0] = (Elf64_Phdr){.p_type = PT_LOAD, .p_filesz = UINT64_MAX};
    im.segments[1] =
        (Elf64_Phdr){.p_type = PT_NOTE, .p_offset = NOTE_AT, .p_filesz = 36 + sizeof note, .p_align = 4};
    im.segments[2] = (Elf64_Phdr){.p_type = PT_DYNAMIC, .p_offset = DYNAMIC_AT, .p_filesz = sizeof dynamic};
    memcpy(at(&im, DYNAMIC_AT), dynamic, sizeof dynamic);
    memcpy(at(&im, NOTE_AT), &build_head, 12);
    memcpy(at(&im, NOTE_AT + 12), "GNU", 4);
    for (unsigned char i = 0; i < 20; i++)
        *at(&im, NOTE_AT + 16u + i) = (unsigned char)(i * 11);
    memcpy(note_in(&im), &note, sizeof note);
    return im;
}

/* Reads a copy of exactly `count` bytes, so that the sanitizer sees a step beyond them. */
static uint32_t read_code(const void *bytes, size_t count, tni_note *out)
{
    void *copy = malloc(count ? count : 1);
    tn_status st;

    memcpy(copy, bytes, count);
    tni_error_clear();
    st = tni_note_read_memory(copy, count, "t", out);
    free(copy);
    assert_true((st == TN_OK) == (tni_refusal_code() == 0));
    return tni_refusal_code();
}

static void good(void **state)
{
    image im = image_make();
    FILE *f = tmpfile();
    tni_note note;

    (void)state;
    assert_int_equal(read_code(&im, sizeof im, &note), 0);
    assert_string_equal(note.body.name, "acme");
    assert_string_equal(note.body.version, "1.2.3");
    assert_string_equal(note.build_id, "000b16212c37424d58636e79848f9aa5b0bbc6d1");
    assert_int_equal(note.flags, TNI_NOTE_STATIC_TLS);
    assert_string_equal(note.provides, PROVIDES);
    tni_note_clear(&note);
    fwrite(&im, sizeof im, 1, f);
    fflush(f);
    assert_int_equal(tni_note_read(fileno(f), "t", &note), TN_OK);
    assert_string_equal(note.body.name, "acme");
    assert_string_equal(note.provides, PROVIDES);
    tni_note_clear(&note);
    fclose(f);
    assert_int_equal(tni_note_read(-1, "t", &note), TN_E_ARG);
}

/* Cut anywhere, the file is refused: its last bytes are the note's. */
static void cut(void **state)
{
    image im = image_make();
    tni_note note = {.flags = 77};

    (void)state;
    for (size_t n = 0; n < sizeof im; n++)
        assert_int_equal(read_code(&im, n, &note), 3);
    assert_int_equal(note.flags, 77); /* nothing is written on failure */
}

static void headers(void **state)
{
    static const struct {
        size_t offset, size;
        uint64_t value;
        uint32_t code;
    } cases[] = {
        {0, 1, 0x7e, 3}, /* magic */
        {EI_CLASS, 1, ELFCLASS32, 4},
        {EI_DATA, 1, ELFDATA2MSB, 4},
        {EI_VERSION, 1, 9, 3},
        {offsetof(Elf64_Ehdr, e_type), 2, ET_EXEC, 3},
        {offsetof(Elf64_Ehdr, e_phentsize), 2, 32, 3},
        {offsetof(Elf64_Ehdr, e_phentsize), 2, 0, 3},
        {offsetof(Elf64_Ehdr, e_phnum), 2, 0, 3},
        {offsetof(Elf64_Ehdr, e_phnum), 2, 0xffff, 3},
        {offsetof(Elf64_Ehdr, e_phoff), 8, UINT64_MAX, 3},
        {offsetof(Elf64_Ehdr, e_phoff), 8, UINT64_MAX - 100, 3},
        {offsetof(Elf64_Ehdr, e_phoff), 8, sizeof(image) - 10, 3},
        {offsetof(image, segments[1].p_offset), 8, UINT64_MAX, 3},
        {offsetof(image, segments[1].p_offset), 8, UINT64_MAX - 800, 3},
        {offsetof(image, segments[1].p_offset), 8, NOTE_AT + 4, 3},
        {offsetof(image, segments[1].p_filesz), 8, UINT64_MAX, 3},
        {offsetof(image, segments[1].p_filesz), 8, 0, 3},
        {offsetof(image, segments[1].p_filesz), 8, 17 << 10, 3},
        {offsetof(image, segments[1].p_type), 4, PT_LOAD, 3},
        {offsetof(image, segments[2].p_offset), 8, UINT64_MAX - 8, 3},
        {offsetof(image, segments[2].p_offset), 8, sizeof(image) - 8, 3},
        {offsetof(image, segments[2].p_filesz), 8, 15, 0},
        {NOTE_AT + 36, 4, 0xffffffff, 3}, /* owner's size */
        {NOTE_AT + 36, 4, 5, 3},
        {NOTE_AT + 40, 4, 0xffffffff, 3}, /* body's size */
        {NOTE_AT + 40, 4, sizeof(tn_note_body) - 1, 3},
        {NOTE_AT + 40, 4, sizeof(tn_note_body), 3},     /* no list behind the body */
        {NOTE_AT + 40, 4, sizeof(tn_note_body) + 2, 3}, /* a list without an end */
        {NOTE_AT + 56, 4, 0, 3},                        /* struct_size */
        {NOTE_AT + 56, 4, sizeof(tn_note_body) - 4, 3},
        {NOTE_AT + 56, 4, sizeof(tn_note_body) + sizeof PROVIDES, 3},
        {NOTE_AT + 56, 4, 0xffffffff, 3},
        {NOTE_AT + 44, 4, 2, 3},     /* type */
        {NOTE_AT + 48, 1, 't', 3},   /* owner */
        {NOTE_AT, 4, 0xffffffff, 3}, /* the linker's note before ours */
        {NOTE_AT + 4, 4, 0xfffffff0, 3},
    };
    tni_note note;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        image im = image_make();
        uint32_t code;

        memcpy(at(&im, cases[i].offset), &cases[i].value, cases[i].size);
        code = read_code(&im, sizeof im, &note);
        if (!code)
            tni_note_clear(&note);
        if (code != cases[i].code)
            fail_msg("case %zu: L%02u instead of L%02u (%s)", i, code, cases[i].code, tni_error_message());
    }
}

static void texts(void **state)
{
    image im;
    tni_note note;

    (void)state;
    im = image_make();
    memset(note_in(&im)->body.name, 'a', sizeof note_in(&im)->body.name); /* no end */
    assert_int_equal(read_code(&im, sizeof im, &note), 3);
    im = image_make();
    memset(provides_in(&im), 'a', sizeof PROVIDES);
    assert_int_equal(read_code(&im, sizeof im, &note), 3);
    im = image_make();
    provides_in(&im)[3] = '\n';
    assert_int_equal(read_code(&im, sizeof im, &note), 3);
    im = image_make();
    note_in(&im)->body.name[0] = '\0';
    assert_int_equal(read_code(&im, sizeof im, &note), 3);
    im = image_make();
    memcpy(note_in(&im)->body.name, "../a", 4);
    assert_int_equal(read_code(&im, sizeof im, &note), 3);
    im = image_make();
    note_in(&im)->body.summary[2] = '\033'; /* an escape for the terminal of who lists it */
    assert_int_equal(read_code(&im, sizeof im, &note), 3);
    im = image_make();
    memcpy(note_in(&im)->body.summary, "\xc3\xa9", 2);
    assert_int_equal(read_code(&im, sizeof im, &note), 0);
    tni_note_clear(&note);
}

/* A list of the greatest length, and one that is a byte longer. */
static void long_lists(void **state)
{
    enum { MOST = TN_NOTE_PROVIDES_MAX };
    static unsigned char bytes[sizeof(image) + MOST + 1];
    image *im = (image *)(void *)bytes;
    tni_note note;

    (void)state;
    for (uint32_t length = MOST; length <= MOST + 1u; length++) {
        const image made = image_make();
        uint32_t size = (uint32_t)sizeof(tn_note_body) + length;
        char *list = provides_in(im);

        memcpy(bytes, &made, sizeof made);
        memset(list, 'o', length - 1);
        list[length - 1] = '\0';
        memcpy(list + length - 6, " op:z", 5);
        note_in(im)->body_bytes = size;
        im->segments[1].p_filesz = 36 + 20 + size;
        assert_int_equal(read_code(bytes, sizeof bytes, &note), length > MOST ? 3 : 0);
        if (length > MOST)
            continue;
        assert_int_equal(strlen(note.provides), MOST - 1);
        assert_true(tni_note_provides(&note, "op", "z"));
        tni_note_clear(&note);
    }
}

/* The body of a later minor is longer: its list lies behind it. */
static void later_body(void **state)
{
    image im = image_make();
    tni_note note;

    (void)state;
    note_in(&im)->body.struct_size += 12;
    assert_int_equal(read_code(&im, sizeof im, &note), 0);
    assert_string_equal(note.provides, &PROVIDES[12]);
    tni_note_clear(&note);
}

/* What another draft lists is read where ours would lie, and never believed. */
static void other_draft(void **state)
{
    image im = image_make();
    tni_note note;

    (void)state;
    note_in(&im)->body.magic = TN_MAGIC - 1;
    note_in(&im)->body.struct_size = 696;
    assert_int_equal(read_code(&im, sizeof im, &note), 0);
    assert_true(tni_note_provides(&note, "op", "x"));
    assert_int_equal(tni_refuse_note(&note, tni_abi_of_core()), TN_E_UNSUPPORTED);
    assert_int_equal(tni_refusal_code(), 5);
    tni_note_clear(&note);
    provides_in(&im)[3] = '\n';
    assert_int_equal(read_code(&im, sizeof im, &note), 0);
    assert_false(tni_note_provides(&note, "op", NULL));
    tni_note_clear(&note);
    note_in(&im)->body_bytes = sizeof(tn_note_body);
    assert_int_equal(read_code(&im, sizeof im, &note), 0);
    assert_null(note.provides);
    assert_false(tni_note_provides(&note, "op", NULL));
}

static void two_notes(void **state)
{
    image im = image_make();
    tni_note note;

    (void)state;
    im.segments[0] = im.segments[1];
    assert_int_equal(read_code(&im, sizeof im, &note), 3);
    assert_non_null(strstr(tni_error_message(), "two Tenon notes"));
}

static void bytes_changed(void **state)
{
    tni_note note;
    uint32_t words[4];

    (void)state;
    for (uint64_t n = 0; n < 100000; n++) {
        image im = image_make();

        tn_philox(3, 0, n, words);
        for (int i = 0; i < 3; i++)
            *at(&im, (words[i] >> 8) % (i ? NOTE_AT + 60 : sizeof im)) = (unsigned char)words[i];
        if (!read_code(&im, words[3] % 4 ? sizeof im : words[3] % sizeof im, &note))
            tni_note_clear(&note);
    }
}

static void provides(void **state)
{
    static const struct {
        const char *kind, *id;
        bool found;
    } cases[] = {
        {"kernels", "cpu", true}, {"kernels", "cp", false}, {"kernels", "cpux", false},
        {"kernel", "cpu", false}, {"pool", "p1", true},     {"op", NULL, true},
        {"op", "x", true},        {"op", "y", false},       {"op", "acme_fft", true},
        {"op", "acme_", true},    {"op", "acme", false},    {"op", "acme_*", true},
        {"pool", "q1", false}, /* a star is for operators alone */
        {"pool", "q*", true},     {"options", NULL, true},  {"device", NULL, false},
        {"kernels", NULL, true},  {"", NULL, false},        {"kernels", "cpu pool", false},
    };
    image im = image_make();
    tni_note note;

    (void)state;
    assert_int_equal(read_code(&im, sizeof im, &note), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (tni_note_provides(&note, cases[i].kind, cases[i].id) != cases[i].found)
            fail_msg("%s %s", cases[i].kind, cases[i].id ? cases[i].id : "-");
    tni_note_clear(&note);
    assert_false(tni_note_provides(&note, "op", NULL));
}

static void refusals_by_note(void **state)
{
    static const tni_abi_range newer = {.magic = TN_MAGIC, .major = 1, .minor = 9, .floor = 3};
    image im = image_make();
    tni_note note;
    tn_note_body *b = &note.body;

    (void)state;
    assert_int_equal(read_code(&im, sizeof im, &note), 0);
    assert_int_equal(tni_refuse_note(&note, tni_abi_of_core()), TN_OK);
#define REFUSED(change, range, code)                                                                         \
    do {                                                                                                     \
        tn_note_body before = *b;                                                                            \
        change;                                                                                              \
        assert_int_not_equal(tni_refuse_note(&note, range), TN_OK);                                          \
        assert_int_equal(tni_refusal_code(), code);                                                          \
        *b = before;                                                                                         \
    } while (0)
    REFUSED(strcpy(b->tag, "linux-aarch64-lp64-le"), tni_abi_of_core(), 4);
    assert_non_null(strstr(tni_error_message(), "aarch64"));
    assert_non_null(strstr(tni_error_message(), TN_ABI_TAG));
    REFUSED(b->abi_major = 2, tni_abi_of_core(), 5);
    REFUSED(b->magic++, tni_abi_of_core(), 5);
    REFUSED((b->abi_minor_min = 4, b->abi_minor = 5), tni_abi_of_core(), 6);
    REFUSED(b->abi_minor = 2, &newer, 7);
    REFUSED(strcpy(b->isa, "x86-64-v9"), tni_abi_of_core(), 8);
    REFUSED(b->flags = 1, tni_abi_of_core(), 3);
    REFUSED(b->abi_minor_min = 1, tni_abi_of_core(), 3); /* needs more than it knows */
    b->abi_minor = 7;                                    /* of later headers */
    assert_int_equal(tni_refuse_note(&note, tni_abi_of_core()), TN_OK);
    tni_note_clear(&note);
    assert_true(tni_isa_present(NULL) && tni_isa_present(""));
    assert_false(tni_isa_present("avx"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good),        cmocka_unit_test(cut),
        cmocka_unit_test(headers),     cmocka_unit_test(texts),
        cmocka_unit_test(two_notes),   cmocka_unit_test(bytes_changed),
        cmocka_unit_test(provides),    cmocka_unit_test(refusals_by_note),
        cmocka_unit_test(long_lists),  cmocka_unit_test(later_body),
        cmocka_unit_test(other_draft),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
