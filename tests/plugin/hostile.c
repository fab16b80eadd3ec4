/*
 * The makers of hostile files. A file is the template's plugin with some bytes changed, or another kind of
 * file, or a plugin compiled to be wrong.
 */
#include "plugin/hostile.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

static char *base;
static uint64_t base_bytes;

void hostile_begin(void)
{
    const char *build = getenv("TENON_TEST_BUILD");
    char path[SCRATCH_PATH_BYTES];

    snprintf(path, sizeof path, "%s/templates/acme-operator.so", build ? build : ".");
    if (access(path, R_OK) != 0)
        snprintf(path, sizeof path, "%s", plain);
    assert_int_equal(tni_file_read_all(path, 1u << 26, &base, &base_bytes), TN_OK);
}

void hostile_end(void)
{
    tni_free(base);
    base = NULL;
}

const char *hostile_base(uint64_t *count)
{
    *count = base_bytes;
    return base;
}

char *hostile_copy(uint64_t *count)
{
    char *bytes = tni_alloc(base_bytes);

    assert_non_null(bytes);
    memcpy(bytes, base, base_bytes);
    *count = base_bytes;
    return bytes;
}

void hostile_write(const char *path, char *bytes, uint64_t count)
{
    put_file(path, bytes, count);
    tni_free(bytes);
}

/* ---- places in the file -------------------------------------------------------------------------- */

static size_t note_at(const char *bytes, uint64_t count)
{
    const char *note = memmem(bytes, count, "\1\0\0\0Tenon\0\0\0", 12);

    assert_non_null(note);
    return (size_t)(note - bytes) - 8; /* of its header */
}

static size_t segment_at(const char *bytes, uint32_t type)
{
    Elf64_Ehdr h;

    memcpy(&h, bytes, sizeof h);
    for (size_t i = 0; i < h.e_phnum; i++) {
        Elf64_Phdr p;

        memcpy(&p, bytes + h.e_phoff + i * sizeof p, sizeof p);
        if (p.p_type == type)
            return h.e_phoff + i * sizeof p;
    }
    fail_msg("no segment of type %u", type);
    return 0;
}

/* The value of an entry of the dynamic section: where it stands. */
static size_t dynamic_at(const char *bytes, int64_t tag)
{
    Elf64_Phdr p;

    memcpy(&p, bytes + segment_at(bytes, PT_DYNAMIC), sizeof p);
    for (size_t at = p.p_offset; at < p.p_offset + p.p_filesz; at += sizeof(Elf64_Dyn)) {
        Elf64_Dyn d;

        memcpy(&d, bytes + at, sizeof d);
        if (d.d_tag == tag)
            return at + offsetof(Elf64_Dyn, d_un);
    }
    fail_msg("no dynamic entry %lld", (long long)tag);
    return 0;
}

/* ---- makers by bytes: `value` of eight, four, two or one bytes goes somewhere -------------------- */

static void put(const char *path, size_t at, uint64_t value, size_t size)
{
    uint64_t count;
    char *bytes = hostile_copy(&count);

    memcpy(bytes + at, &value, size);
    hostile_write(path, bytes, count);
}

static void ident(const char *path, const hostile *h)
{
    put(path, h->at, h->value, 1);
}

static void header16(const char *path, const hostile *h)
{
    put(path, h->at, h->value, 2);
}

static void header64(const char *path, const hostile *h)
{
    put(path, h->at, h->value, 8);
}

static void load64(const char *path, const hostile *h)
{
    put(path, segment_at(base, PT_LOAD) + h->at, h->value, 8);
}

static void dynamic_segment(const char *path, const hostile *h)
{
    put(path, segment_at(base, PT_DYNAMIC) + h->at, h->value, h->at ? 8 : 4);
}

static void note_segment(const char *path, const hostile *h)
{
    put(path, segment_at(base, PT_NOTE) + h->at, h->value, h->at ? 8 : 4);
}

static void dynamic_value(const char *path, const hostile *h)
{
    put(path, dynamic_at(base, (int64_t)h->at), h->value, 8);
}

/* The table lies where its address says: the first segment begins at 0 in file and memory. */
static void hash_head(const char *path, const hostile *h)
{
    uint64_t table;

    memcpy(&table, base + dynamic_at(base, DT_GNU_HASH), sizeof table);
    put(path, table + h->at, h->value, 4);
}

static void note_head(const char *path, const hostile *h)
{
    put(path, note_at(base, base_bytes) + h->at, h->value, 4);
}

static void note_number(const char *path, const hostile *h)
{
    put(path, note_at(base, base_bytes) + 20 + h->at, h->value, 4);
}

static void note_text(const char *path, const hostile *h)
{
    uint64_t count;
    char *bytes = hostile_copy(&count);

    memcpy(bytes + note_at(bytes, count) + 20 + h->at, h->text, strlen(h->text) + 1);
    hostile_write(path, bytes, count);
}

/* A text that fills its place to the last byte. */
static void note_endless(const char *path, const hostile *h)
{
    uint64_t count;
    char *bytes = hostile_copy(&count);

    memset(bytes + note_at(bytes, count) + 20 + h->at, 'a', h->value);
    hostile_write(path, bytes, count);
}

/* A list without its NUL, up to the end of the note. */
static void provides_endless(const char *path, const hostile *h)
{
    uint64_t count;
    char *bytes = hostile_copy(&count);
    const size_t note = note_at(bytes, count);
    uint32_t size;

    (void)h;
    memcpy(&size, bytes + note + 4, sizeof size);
    memset(bytes + note + sizeof(tn_note), 'a', size - sizeof(tn_note_body));
    hostile_write(path, bytes, count);
}

static void note_owner(const char *path, const hostile *h)
{
    uint64_t count;
    char *bytes = hostile_copy(&count);

    memcpy(bytes + note_at(bytes, count) + 12, h->text, 5);
    hostile_write(path, bytes, count);
}

/* ---- cut ----------------------------------------------------------------------------------------- */

static void cut_at(const char *path, const hostile *h)
{
    hostile_write(path, hostile_copy(&(uint64_t){0}), h->value);
}

/* Up to the header of segment `at`, and `value` bytes of it. */
static void cut_segment(const char *path, const hostile *h)
{
    hostile_write(path, hostile_copy(&(uint64_t){0}),
                  sizeof(Elf64_Ehdr) + h->at * sizeof(Elf64_Phdr) + h->value);
}

static void cut_note(const char *path, const hostile *h)
{
    hostile_write(path, hostile_copy(&(uint64_t){0}), note_at(base, base_bytes) + h->value);
}

/* One byte before what is mapped ends. */
static void cut_load(const char *path, const hostile *h)
{
    uint64_t end = 0;
    Elf64_Ehdr e;

    (void)h;
    memcpy(&e, base, sizeof e);
    for (size_t i = 0; i < e.e_phnum; i++) {
        Elf64_Phdr p;

        memcpy(&p, base + e.e_phoff + i * sizeof p, sizeof p);
        if (p.p_type == PT_LOAD && p.p_offset + p.p_filesz > end)
            end = p.p_offset + p.p_filesz;
    }
    hostile_write(path, hostile_copy(&(uint64_t){0}), end - 1);
}

/* ---- other kinds of files ------------------------------------------------------------------------ */

static void text_file(const char *path, const hostile *h)
{
    put_file(path, h->text, strlen(h->text));
}

static void folder(const char *path, const hostile *h)
{
    (void)h;
    assert_int_equal(mkdir(path, 0755), 0);
}

static void fifo(const char *path, const hostile *h)
{
    (void)h;
    assert_int_equal(mkfifo(path, 0644), 0);
}

static void link_to(const char *path, const hostile *h)
{
    assert_int_equal(symlink(h->text, path), 0);
}

static void link_to_good(const char *path, const hostile *h)
{
    const char *target = scratch_path("trusted-target.so");
    uint64_t count;

    if (access(target, F_OK) != 0)
        hostile_write(target, hostile_copy(&count), base_bytes);
    assert_int_equal(chmod(target, h->value ? 0666 : 0644), 0);
    assert_int_equal(symlink(target, path), 0);
}

static void unix_socket(const char *path, const hostile *h)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    const char *slash = strrchr(path, '/');
    char folder_path[SCRATCH_PATH_BYTES], before[SCRATCH_PATH_BYTES];

    (void)h;
    assert_true(fd >= 0 && getcwd(before, sizeof before));
    snprintf(folder_path, sizeof folder_path, "%.*s", (int)(slash - path), path);
    snprintf(a.sun_path, sizeof a.sun_path, "%s", slash + 1); /* the whole path may be too long */
    assert_int_equal(chdir(folder_path), 0);
    assert_int_equal(bind(fd, (struct sockaddr *)(void *)&a, sizeof a), 0);
    assert_int_equal(chdir(before), 0);
    close(fd);
}

/* Where nobody may make one, a link stands for it. */
static void device_node(const char *path, const hostile *h)
{
    (void)h;
    if (mknod(path, S_IFCHR | 0644, makedev(1, 5)) != 0)
        assert_int_equal(symlink("/dev/zero", path), 0);
}

static void huge_hole(const char *path, const hostile *h)
{
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)h->value), 0);
    close(fd);
}

/* ---- owners and modes ---------------------------------------------------------------------------- */

static void with_mode(const char *path, const hostile *h)
{
    uint64_t count;
    char *bytes = hostile_copy(&count);

    hostile_write(path, bytes, count);
    assert_int_equal(chmod(path, (mode_t)h->value), 0);
}

/* The inode has another name whose mode or owner is the problem. */
static void hard_link(const char *path, const hostile *h)
{
    char other[SCRATCH_PATH_BYTES];
    uint64_t count;
    char *bytes = hostile_copy(&count);

    snprintf(other, sizeof other, "%s.other", path);
    hostile_write(other, bytes, count);
    assert_int_equal(link(other, path), 0);
    assert_int_equal(h->at ? chown(other, (uid_t)h->at, (gid_t)-1) : chmod(other, (mode_t)h->value), 0);
}

static void owned(const char *path, const hostile *h)
{
    with_mode(path, &(hostile){.value = 0644});
    assert_int_equal(chown(path, (uid_t)h->at, (gid_t)-1), 0);
}

/* The folder of the file, or the one above it (`at`), has this mode, or this owner (`text`: root alone). */
static void parent(const char *path, const hostile *h)
{
    char above[SCRATCH_PATH_BYTES];

    with_mode(path, &(hostile){.value = 0644});
    snprintf(above, sizeof above, "%s", path);
    for (size_t i = 0; i <= h->at; i++)
        *strrchr(above, '/') = '\0';
    assert_int_equal(h->text ? chown(above, 12345, (gid_t)-1) : chmod(above, (mode_t)h->value), 0);
}

/* ---- compiled to be wrong ------------------------------------------------------------------------ */

static void built(const char *path, const char *source, const char *flags)
{
    const char *file = scratch_write("hostile.c", source, strlen(source));
    const char *slash = strrchr(path, '/');
    char aside[SCRATCH_PATH_BYTES];

    /* beside, so that the compiler's own way of making files does not count */
    snprintf(aside, sizeof aside, "%.*s/.made", (int)(slash - path), path);
    assert_true(compile(file, aside, flags ? flags : ""));
    assert_int_equal(rename(aside, path), 0);
}

#define HEAD "#include \"tenon/plugin/plugin.h\"\n"
#define POOL                                                                                                 \
    "static const tn_capability pool = TN_CAPABILITY(tn_capability, id, TN_KIND_POOL, \"hp\");\n"            \
    "static const tn_capability *const tables[] = {&pool, 0};\n"
#define NOTE(qualifier) "TN_NOTE_DEFINE(n, NAME, \"1.0\", \"\", \"\", \"\", \"\", \"pool:hp\");\n" qualifier
/* With these numbers: major, minor, least minor; and a list of `bytes`. */
#define NOTE_OF(numbers, bytes)                                                                              \
    "static const struct { tn_note note; char provides[" bytes "]; } n "                                     \
    "__attribute__((section(\".note.tenon\"), used, aligned(4))) = {{6, sizeof(tn_note_body) + " bytes ", "  \
    "1, \"Tenon\", {sizeof(tn_note_body), TN_MAGIC, " numbers ", 0, NAME, \"1.0\", TN_ABI_TAG, \"\", "       \
    "\"\", \"\", \"\"}}, \"pool:hp\"};\n"

static void source(const char *path, const hostile *h)
{
    char text[8192], name[64];
    const char *slash = strrchr(path, '/');

    snprintf(name, sizeof name, "%.*s", (int)(strlen(slash + 1) - 3), slash + 1);
    snprintf(text, sizeof text, "#define NAME \"%s\"\n#define MARKER \"%s\"\n%s", name,
             scratch_path(HOSTILE_MARKER), h->text);
    built(path, text, h->at ? (const char *)h->at : NULL);
}

#define DEFINE(init)                                                                                         \
    "TN_PLUGIN_DEFINE(NAME, \"1.0\", \"v\", \"l\", \"s\", \"\", \"pool:hp\", " init ", 0, 0, tables);\n"
#define DESCRIPTOR(name, version, license, tables)                                                           \
    "const tn_plugin tn_plugin_v1 TN_PLUGIN_EXPORT = {TN_END(tn_plugin, capabilities), TN_MAGIC, 1, 0, 0, "  \
    "0, " name ", " version ", \"\", " license ", \"\", 0, 0, 0, " tables "};\n"

/* Where one function stands: two are there now, or as many as `value` says. */
static void init_array(const char *path, const hostile *h)
{
    const hostile sound = {"sound", 0, false, source, .text = HEAD POOL DEFINE("0")};
    uint64_t count, two = 16;
    char *bytes;

    source(path, &sound); /* not the template: built for a sanitizer or coverage, it may have constructors */
    assert_int_equal(tni_file_read_all(path, 1u << 26, &bytes, &count), TN_OK);
    memcpy(bytes + dynamic_at(bytes, DT_INIT_ARRAYSZ), &two, sizeof two);
    memcpy(bytes + dynamic_at(bytes, (int64_t)h->at), &h->value, sizeof h->value);
    hostile_write(path, bytes, count);
}

/* Needs a library that goes away after linking. */
static void without_library(const char *path, const hostile *h)
{
    static const char library[] = "int lost(void); __attribute__((visibility(\"default\"))) int lost(void) { "
                                  "return 1; }\n";
    char flags[2 * SCRATCH_PATH_BYTES];
    const char *file = scratch_write("lost.c", library, sizeof library - 1);

    assert_true(compile(file, scratch_path("liblost.so"), "-Wl,-soname,liblost.so.7"));
    snprintf(flags, sizeof flags, "-Wl,--no-as-needed '%s'", scratch_path("liblost.so"));
    source(path, &(hostile){.text = h->text, .at = (size_t)(uintptr_t)flags});
    assert_int_equal(unlink(scratch_path("liblost.so")), 0);
}

/* Such a build brings a constructor, and is exempt. */
static void for_coverage(const char *path, const hostile *h)
{
    source(path, &(hostile){.text = h->text, .at = (size_t)(uintptr_t) "--coverage"});
}

/* The entry stands in a library that the file needs, and that is a good plugin. */
static void entry_elsewhere(const char *path, const hostile *h)
{
    char flags[3 * SCRATCH_PATH_BYTES];

    copy(plain, scratch_path("libentry.so"));
    snprintf(flags, sizeof flags, "-Wl,--no-as-needed '%s' -Wl,-rpath,'%s'", scratch_path("libentry.so"),
             scratch_folder());
    source(path, &(hostile){.text = h->text, .at = (size_t)(uintptr_t)flags});
}

static void twice(const char *path, const hostile *h)
{
    char other[SCRATCH_PATH_BYTES];

    source(path, h);
    snprintf(other, sizeof other, "%.*s-0.so", (int)(strlen(path) - 3), path); /* first by name */
    copy(path, other);
}

#define TABLE(kind, id)                                                                                      \
    "static const tn_capability table = TN_CAPABILITY(tn_capability, id, " kind ", " id ");\n"               \
    "static const tn_capability *const tables[] = {&table, 0};\n"
#define MARKING                                                                                              \
    "#include <stdio.h>\n__attribute__((constructor)) static void early(void) { FILE *f = fopen(MARKER, "    \
    "\"w\"); if (f) fclose(f); }\n"

#define ASKS                                                                                                 \
    "int asks(void);\n__attribute__((visibility(\"hidden\"))) int asks(void) { "                             \
    "return __builtin_cpu_supports(\"sse4.2\"); }\nint (*volatile used_asks)(void) "                         \
    "__attribute__((visibility(\"hidden\"))) = asks;\n"
#define MANY                                                                                                 \
    "typedef void (*function)(void);\nstatic function all[70] "                                              \
    "__attribute__((section(\".init_array\"), used)) = {[0 ... 69] = early};\n"

#define BODY(member) offsetof(tn_note_body, member)
#define EHDR(member) offsetof(Elf64_Ehdr, member)
#define PHDR(member) offsetof(Elf64_Phdr, member)
#define ROOT 12345 /* an owner that only root can make */

const hostile hostiles[] = {
    /* no ELF file, or not all of one */
    {"empty", 3, false, text_file, .text = ""},
    {"one-byte", 3, false, text_file, .text = "\177"},
    {"magic-only", 3, false, text_file, .text = "\177ELF"},
    {"text", 3, false, text_file,
     .text = "#!/bin/sh\nexit 0\n# long enough to hold a header of sixty-four bytes\n"},
    {"cut-header", 3, false, cut_at, .value = sizeof(Elf64_Ehdr) - 1},
    {"cut-behind-header", 3, false, cut_at, .value = sizeof(Elf64_Ehdr)},
    {"cut-segment-0", 3, false, cut_segment, .at = 0, .value = 55},
    {"cut-segment-1", 3, false, cut_segment, .at = 1, .value = 0},
    {"cut-segment-2", 3, false, cut_segment, .at = 2, .value = 1},
    {"cut-segment-4", 3, false, cut_segment, .at = 4, .value = 0},
    {"cut-segment-6", 3, false, cut_segment, .at = 6, .value = 55},
    {"cut-note-head", 3, false, cut_note, .at = 0, .value = 11},
    {"cut-note-owner", 3, false, cut_note, .at = 0, .value = 19},
    {"cut-note-body", 3, false, cut_note, .at = 0, .value = 20 + sizeof(tn_note_body) - 1},
    {"cut-behind-note", 3, false, cut_note, .at = 0, .value = 20 + sizeof(tn_note_body)},
    {"cut-mapped", 3, false, cut_load, .at = 0},
    {"huge-hole", 3, false, huge_hole, .at = 0, .value = 1ull << 40},
    /* headers */
    {"class-32", 4, false, ident, .at = EI_CLASS, .value = ELFCLASS32},
    {"class-none", 4, false, ident, .at = EI_CLASS, .value = 7},
    {"big-endian", 4, false, ident, .at = EI_DATA, .value = ELFDATA2MSB},
    {"elf-version", 3, false, ident, .at = EI_VERSION, .value = 9},
    {"executable", 3, false, header16, .at = EHDR(e_type), .value = ET_EXEC},
    {"core-dump", 3, false, header16, .at = EHDR(e_type), .value = ET_CORE},
    {"foreign-machine", 4, false, header16, .at = EHDR(e_machine), .value = EM_RISCV},
    {"no-machine", 4, false, header16, .at = EHDR(e_machine), .value = EM_NONE},
    {"no-segments", 3, false, header16, .at = EHDR(e_phnum), .value = 0},
    {"many-segments", 3, false, header16, .at = EHDR(e_phnum), .value = 0xffff},
    {"small-segments", 3, false, header16, .at = EHDR(e_phentsize), .value = 1},
    {"segments-behind", 3, false, header64, .at = EHDR(e_phoff), .value = 1ull << 40},
    {"segments-wrap", 3, false, header64, .at = EHDR(e_phoff), .value = UINT64_MAX - 55},
    {"mapped-size", 3, false, load64, .at = PHDR(p_filesz), .value = UINT64_MAX},
    {"mapped-offset", 3, false, load64, .at = PHDR(p_offset), .value = 1ull << 50},
    {"mapped-less", 3, false, load64, .at = PHDR(p_memsz), .value = 1},
    {"mapped-wraps", 3, false, load64, .at = PHDR(p_vaddr), .value = UINT64_MAX - 8},
    /* the dynamic section */
    {"no-dynamic", 3, false, dynamic_segment, .at = 0, .value = PT_NULL},
    {"dynamic-behind", 3, false, dynamic_segment, .at = PHDR(p_vaddr), .value = 1ull << 40},
    {"dynamic-endless", 3, false, dynamic_segment, .at = PHDR(p_filesz), .value = 16},
    {"dynamic-elsewhere", 3, false, dynamic_segment, .at = PHDR(p_offset), .value = 0},
    {"strings-behind", 3, false, dynamic_value, .at = DT_STRTAB, .value = 1ull << 40},
    {"strings-huge", 3, false, dynamic_value, .at = DT_STRSZ, .value = UINT64_MAX},
    {"no-strings", 12, false, dynamic_value, .at = DT_STRSZ, .value = 0},
    {"symbols-behind", 3, false, dynamic_value, .at = DT_SYMTAB, .value = 1ull << 40},
    {"hash-behind", 3, false, dynamic_value, .at = DT_GNU_HASH, .value = UINT64_MAX - 15},
    {"hash-none", 12, false, hash_head, .at = 0, .value = 0},
    {"hash-bloom", 3, false, hash_head, .at = 8, .value = UINT32_MAX},
    /* the note */
    {"no-note", 3, false, note_segment, .at = 0, .value = PT_NULL},
    {"note-behind", 3, false, note_segment, .at = PHDR(p_offset), .value = 1ull << 40},
    {"note-segment-huge", 3, false, note_segment, .at = PHDR(p_filesz), .value = 1 << 20},
    {"note-owner", 3, false, note_owner, .text = "Tanon"},
    {"note-owner-size", 3, false, note_head, .at = 0, .value = UINT32_MAX},
    {"note-size", 3, false, note_head, .at = 4, .value = UINT32_MAX},
    {"note-small", 3, false, note_head, .at = 4, .value = sizeof(tn_note_body) - 4},
    {"note-flags", 3, false, note_number, .at = BODY(flags), .value = 4},
    {"note-type", 3, false, note_head, .at = 8, .value = 2},
    {"note-struct-size", 3, false, note_number, .at = BODY(struct_size), .value = 8},
    {"note-struct-size-huge", 3, false, note_number, .at = BODY(struct_size), .value = UINT32_MAX},
    {"note-needs-more-than-it-knows", 3, false, note_number, .at = BODY(abi_minor_min), .value = 1},
    {"name-slash", 3, false, note_text, .at = BODY(name), .text = "a/b"},
    {"name-up", 3, false, note_text, .at = BODY(name), .text = "../up"},
    {"name-empty", 3, false, note_text, .at = BODY(name), .text = ""},
    {"name-control", 3, false, note_text, .at = BODY(name), .text = "a\nb"},
    {"name-endless", 3, false, note_endless, .at = BODY(name), .value = TN_NOTE_NAME_BYTES},
    {"provides-endless", 3, false, provides_endless, .at = 0},
    {"provides-none", 3, false, note_head, .at = 4, .value = sizeof(tn_note_body)},
    {"provides-escape", 3, false, note_text, .at = sizeof(tn_note_body), .text = "pool:\033[2J"},
    {"provides-huge", 3, false, source,
     .text = HEAD POOL NOTE_OF("1, 0, 0", "65537") DESCRIPTOR("NAME", "\"1.0\"", "\"\"", "tables")},
    {"provides-longest", 0, false, source,
     .text = HEAD POOL NOTE_OF("1, 0, 0", "65536") DESCRIPTOR("NAME", "\"1.0\"", "\"\"", "tables")},
    {"summary-escape", 3, false, note_text, .at = BODY(summary), .text = "\033[2J"},
    {"foreign-tag", 4, false, note_text, .at = BODY(tag), .text = "linux-riscv64-lp64-le"},
    {"no-tag", 4, false, note_text, .at = BODY(tag), .text = ""},
    {"wrong-major", 5, false, note_number, .at = BODY(abi_major), .value = 2},
    {"other-draft", 5, false, note_number, .at = BODY(magic), .value = TN_MAGIC + 1},
    {"isa-missing", 8, false, note_text, .at = BODY(isa), .text = "x86-64-v9"},
    {"two-notes", 3, false, source,
     .text = HEAD POOL DEFINE("0") "static const tn_note m __attribute__((section(\".note.tenon\"), used, "
                                   "aligned(4))) = {6, sizeof(tn_note_body), 1, \"Tenon\", {0}};\n"},
    {"many-notes", 3, false, source,
     .text = "#define N4 {4, 0, 9, \"GNU\"}, {4, 0, 9, \"GNU\"}, {4, 0, 9, \"GNU\"}, {4, 0, 9, \"GNU\"}\n"
             "#define N16 N4, N4, N4, N4\n"
             "static const struct { unsigned a, b, c; char d[4]; } many[] "
             "__attribute__((section(\".note.tenon\"), "
             "used, aligned(4))) = {N16, N16, N16, N16, N16};\n" HEAD POOL DEFINE("0")},
    {"needs-newer", 6, false, source,
     .text = HEAD POOL NOTE_OF("1, 9, 9", "8") DESCRIPTOR("NAME", "\"1.0\"", "\"\"", "tables") MARKING},
    /* the entry */
    {"no-entry", 12, false, source, .text = HEAD NOTE("")},
    {"entry-of-a-library", 12, false, entry_elsewhere, .text = HEAD NOTE("")},
    {"entry-undefined", 12, false, source,
     .text = HEAD NOTE(
         "") "extern const tn_plugin tn_plugin_v1; const void *use(void);\n"
             "__attribute__((visibility(\"default\"))) const void *use(void) { return &tn_plugin_v1; }\n"},
    {"entry-hidden", 12, false, source,
     .text = "#define tn_plugin_v1 hidden_name\n" HEAD "#undef tn_plugin_v1\n" NOTE(
         "") "__attribute__((visibility(\"hidden\"))) extern const tn_plugin tn_plugin_v1;\n"
             "const tn_plugin tn_plugin_v1 = {0};\nconst void *use(void);\n"
             "__attribute__((visibility(\"default\"))) const void *use(void) { return &tn_plugin_v1; }\n"},
    {"entry-function", 12, false, source,
     .text = "#define tn_plugin_v1 hidden_name\n" HEAD
             "#undef tn_plugin_v1\n" NOTE("") "__attribute__((visibility(\"default\"))) void "
                                              "tn_plugin_v1(void);\nvoid tn_plugin_v1(void) {}\n"},
    {"entry-thread-local", 12, false, source,
     .text = "#define tn_plugin_v1 hidden_name\n" HEAD "#undef tn_plugin_v1\n" NOTE(
         "") "__attribute__((visibility(\"default\"))) _Thread_local int tn_plugin_v1 = 1;\n"},
    /* other kinds of files */
    {"folder", 1, false, folder, .at = 0},
    {"fifo", 1, false, fifo, .at = 0},
    {"socket", 1, false, unix_socket, .at = 0},
    {"dev-zero", 1, false, link_to, .text = "/dev/zero"},
    {"dev-node", 1, false, device_node, .at = 0},
    {"link-to-trusted", 1, false, link_to_good, .at = 0, .value = 0},
    {"link-to-untrusted", 1, false, link_to_good, .at = 0, .value = 1},
    {"link-loop", 1, false, link_to, .text = "link-loop.so"},
    {"link-to-nothing", 1, false, link_to, .text = "/nowhere/at/all.so"},
    /* owners and modes */
    {"everybody-writes", 2, false, with_mode, .at = 0, .value = 0666},
    {"group-writes", 2, false, with_mode, .at = 0, .value = 0664},
    {"hard-link-mode", 2, false, hard_link, .at = 0, .value = 0646},
    {"hard-link-owner", 2, false, hard_link, .at = ROOT},
    {"foreign-owner", 2, false, owned, .at = ROOT},
    {"parent-mode", 2, false, parent, .at = 0, .value = 0777},
    {"parent-sticky", 2, false, parent, .at = 0, .value = 01777},
    {"parent-owner", 2, false, parent, .at = 0, .value = 0, .text = "root"},
    {"grandparent-mode", 2, false, parent, .at = 1, .value = 0757},
    {"grandparent-owner", 2, false, parent, .at = 1, .value = 0, .text = "root"},
    {"grandparent-sticky", 0, false, parent, .at = 1, .value = 01777},
    /* code that must not run */
    {"constructor-other-major", 5, false, source,
     .text = HEAD MARKING POOL NOTE_OF("2, 0, 0", "8") DESCRIPTOR("NAME", "\"1.0\"", "\"\"", "tables")},
    {"constructor-no-entry", 12, false, source, .text = HEAD MARKING NOTE("")},
    {"constructor-no-note", 3, false, source,
     .text = HEAD MARKING POOL DESCRIPTOR("NAME", "\"1.0\"", "\"\"", "tables")},
    {"constructor", 19, false, source, .text = HEAD MARKING POOL DEFINE("0")},
    {"constructor-crashes", 19, false, source,
     .text = HEAD POOL DEFINE(
         "0") "__attribute__((constructor)) static void early(void) { __builtin_trap(); }\n"},
    {"constructor-behind-cpuid", 19, false, source, .text = HEAD MARKING POOL DEFINE("0") ASKS},
    {"constructors-many", 19, false, source, .text = HEAD MARKING POOL DEFINE("0") MANY},
    {"coverage", 0, false, for_coverage, .text = HEAD POOL DEFINE("0")},
    {"processor-asked", 0, false, source, .text = HEAD POOL DEFINE("0") ASKS},
    {"init-array-behind", 3, false, init_array, .at = DT_INIT_ARRAY, .value = 1ull << 40},
    {"init-array-huge", 19, false, init_array, .at = DT_INIT_ARRAYSZ, .value = 1ull << 40},
    {"relocations-behind", 3, false, dynamic_value, .at = DT_RELA, .value = 1ull << 40},
    /* refused once it is open */
    {"library-missing", 11, true, without_library, .text = HEAD POOL DEFINE("0")},
    {"symbol-missing", 11, true, source,
     .text = HEAD POOL "int nowhere(void);\nstatic tn_status init(const tn_host *h, void **p, tn_err *e) "
                       "{ (void)h; (void)p; (void)e; return nowhere(); }\n" DEFINE("init")},
    {"other-name", 13, true, source,
     .text = HEAD POOL NOTE("") DESCRIPTOR("\"other\"", "\"1.0\"", "\"\"", "tables")},
    {"other-version", 13, true, source,
     .text = HEAD POOL NOTE("") DESCRIPTOR("NAME", "\"2.0\"", "\"\"", "tables")},
    {"other-license", 13, true, source,
     .text = HEAD POOL NOTE("") DESCRIPTOR("NAME", "\"1.0\"", "\"GPL\"", "tables")},
    {"no-name", 13, true, source, .text = HEAD POOL NOTE("") DESCRIPTOR("0", "\"1.0\"", "\"\"", "tables")},
    {"no-tables", 13, true, source, .text = HEAD NOTE("") DESCRIPTOR("NAME", "\"1.0\"", "\"\"", "0")},
    {"descriptor-zeros", 13, true, source,
     .text = HEAD NOTE("") "const tn_plugin tn_plugin_v1 TN_PLUGIN_EXPORT = {0};\n"},
    {"table-small", 13, true, source,
     .text = HEAD NOTE("") "static const tn_capability pool = {4, TN_KIND_POOL, \"hp\"};\nstatic const "
                           "tn_capability *const tables[] = {&pool, 0};\n" DESCRIPTOR("NAME", "\"1.0\"",
                                                                                      "\"\"", "tables")},
    {"table-unannounced", 13, true, source,
     .text =
         HEAD NOTE("") "static const tn_capability pool = TN_CAPABILITY(tn_capability, id, TN_KIND_POOL, "
                       "\"other\");\nstatic const tn_capability *const tables[] = {&pool, 0};\n" DESCRIPTOR(
                           "NAME", "\"1.0\"", "\"\"", "tables")},
    {"descriptor-flags", 13, true, source,
     .text = HEAD POOL NOTE(
         "") "const tn_plugin tn_plugin_v1 TN_PLUGIN_EXPORT = {TN_END(tn_plugin, capabilities), "
             "TN_MAGIC, 1, 0, 0, 2, NAME, \"1.0\", \"\", \"\", \"\", 0, 0, 0, tables};\n"},
    {"kind-none", 13, true, source, .text = HEAD TABLE("0", "\"hp\"") DEFINE("0")},
    {"kind-transport", 13, true, source, .text = HEAD TABLE("TN_KIND_TRANSPORT", "\"hp\"") DEFINE("0")},
    {"kind-collective", 13, true, source, .text = HEAD TABLE("TN_KIND_COLLECTIVE", "\"hp\"") DEFINE("0")},
    {"kind-iter", 13, true, source, .text = HEAD TABLE("TN_KIND_ITER", "\"hp\"") DEFINE("0")},
    {"kind-format", 13, true, source, .text = HEAD TABLE("TN_KIND_FORMAT", "\"hp\"") DEFINE("0")},
    {"kind-archive", 13, true, source, .text = HEAD TABLE("TN_KIND_ARCHIVE", "\"hp\"") DEFINE("0")},
    {"kind-image", 13, true, source, .text = HEAD TABLE("TN_KIND_IMAGE", "\"hp\"") DEFINE("0")},
    {"kind-pass", 13, true, source, .text = HEAD TABLE("TN_KIND_PASS", "\"hp\"") DEFINE("0")},
    {"option-flags", 13, true, source,
     .text = HEAD "static const tn_option_row row = {.struct_size = TN_END(tn_option_row, max), .flags = 4, "
                  ".key = \"k\", .type = \"int\"};\nstatic const tn_option_row *const rows[] = {&row, 0};\n"
                  "static const tn_option_table options = {.head = TN_CAPABILITY(tn_option_table, rows, "
                  "TN_KIND_OPTIONS, NAME), .rows = rows};\n"
                  "static const tn_capability *const tables[] = {&options.head, 0};\n" DEFINE("0")},
    {"init-fails", 14, true, source,
     .text =
         HEAD POOL "static tn_status init(const tn_host *h, void **p, tn_err *e) { (void)h; (void)p; return "
                   "tn_fail(e, TN_E_DEVICE, \"no\"); }\n" DEFINE("init")},
    {"init-garbage", 14, true, source,
     .text =
         HEAD POOL "static tn_status init(const tn_host *h, void **p, tn_err *e) { (void)h; *p = (void *)8; "
                   "for (unsigned i = 0; i < sizeof e->message; i++) e->message[i] = 'x';\n"
                   "return 123456789; }\n" DEFINE("init")},
    {"init-pending", 14, true, source,
     .text = HEAD POOL
     "static tn_status init(const tn_host *h, void **p, tn_err *e) { (void)h; (void)p; (void)e; "
     "return TN_PENDING; }\n" DEFINE("init")},
    {"twice", 15, false, twice, .text = HEAD POOL DEFINE("0")},
    {.name = NULL},
};
