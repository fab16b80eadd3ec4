/*
 * Reads a plugin's ELF note without running anything of it: ELF header, program headers, the PT_NOTE
 * segments, the dynamic section's flags. Every byte comes through tni_elf_read, which knows the size of the
 * file; counts that the file states have limits of their own; nothing is allocated.
 *
 * Layouts: System V ABI, chapters "ELF Header", "Program Header", "Note Section"; gABI for DF_STATIC_TLS.
 */
#include <string.h>
#include <sys/stat.h>

#include "plugin/elf.h"

#define NOTE_SEGMENT_MAX                                                                                     \
    (16u << 10)           /* bytes of notes in one segment: ours takes 760, the linker's a hundred */
#define NOTES_MAX 64u     /* notes in one segment */
#define DYNAMIC_MAX 4096u /* entries of the dynamic section */

typedef struct segment {
    uint64_t offset, size, align;
} segment;

/* True if `text` of `size` bytes ends in NUL and holds nothing but printable ASCII. */
static bool text_valid(const char *text, size_t size)
{
    size_t length = strnlen(text, size);

    for (size_t i = 0; i < length; i++)
        if (text[i] < 0x20 || text[i] > 0x7e)
            return false;
    return length < size;
}

static bool utf8_text_valid(const char *text, size_t size)
{
    size_t length = strnlen(text, size);

    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return false;
    return length < size;
}

static bool name_valid(const char *name)
{
    if (!((name[0] >= 'a' && name[0] <= 'z') || (name[0] >= '0' && name[0] <= '9')))
        return false;
    for (; *name; name++)
        if (!((*name >= 'a' && *name <= 'z') || (*name >= '0' && *name <= '9') || *name == '-' ||
              *name == '_'))
            return false;
    return true;
}

tn_status tni_note_check_texts(const tn_note_body *b)
{
    if (!text_valid(b->name, sizeof b->name) || !name_valid(b->name))
        return tni_refuse(3, TN_E_FORMAT, "the note's name is not made of a-z, 0-9, - and _");
    if (!text_valid(b->version, sizeof b->version) || !text_valid(b->tag, sizeof b->tag) ||
        !text_valid(b->isa, sizeof b->isa) || !text_valid(b->provides, sizeof b->provides) ||
        !text_valid(b->license, sizeof b->license) || !utf8_text_valid(b->vendor, sizeof b->vendor) ||
        !utf8_text_valid(b->summary, sizeof b->summary))
        return tni_refuse(3, TN_E_FORMAT, "a text of the note does not end or holds control characters");
    return TN_OK;
}

static tn_status body_take(const unsigned char *body, uint64_t size, tni_note *out, bool *found)
{
    if (*found)
        return tni_refuse(3, TN_E_FORMAT, "the file holds two Tenon notes");
    if (size < sizeof out->body)
        return tni_refuse(3, TN_E_FORMAT, "the Tenon note has %llu bytes, at least %zu are needed",
                          (unsigned long long)size, sizeof out->body);
    memcpy(&out->body, body, sizeof out->body);
    *found = true;
    return tni_note_check_texts(&out->body);
}

static void build_id_take(const unsigned char *body, uint64_t size, tni_note *out)
{
    static const char digits[] = "0123456789abcdef";

    if (2 * size >= sizeof out->build_id)
        return;
    for (uint64_t i = 0; i < size; i++) {
        out->build_id[2 * i] = digits[body[i] >> 4];
        out->build_id[2 * i + 1] = digits[body[i] & 15];
    }
    out->build_id[2 * size] = '\0';
}

/* Walks the notes of one segment, all of which is in `bytes`. Notes of a damaged segment behind the damage
 * are not seen; the linker's own notes are not ours to judge. */
static tn_status notes_walk(const unsigned char *bytes, const segment *s, tni_note *out, bool *found)
{
    uint64_t align = s->align == 8 ? 8 : 4;
    uint64_t at = 0;

    for (uint32_t i = 0; i < NOTES_MAX && s->size - at >= sizeof(Elf64_Nhdr); i++) {
        Elf64_Nhdr head;
        uint64_t name = at + sizeof head;
        uint64_t body, next;
        tn_status st = TN_OK;

        memcpy(&head, bytes + at, sizeof head);
        body = (name + head.n_namesz + align - 1) & ~(align - 1); /* 32-bit sizes: no overflow in 64 bits */
        next = (body + head.n_descsz + align - 1) & ~(align - 1);
        if (body > s->size || head.n_descsz > s->size - body)
            break;
        if (head.n_type == TN_NOTE_TYPE && head.n_namesz == sizeof TN_NOTE_OWNER &&
            memcmp(bytes + name, TN_NOTE_OWNER, sizeof TN_NOTE_OWNER) == 0)
            st = body_take(bytes + body, head.n_descsz, out, found);
        else if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 && memcmp(bytes + name, "GNU", 4) == 0)
            build_id_take(bytes + body, head.n_descsz, out);
        if (st)
            return st;
        if (next >= s->size)
            break;
        at = next;
    }
    return TN_OK;
}

static tn_status notes_read(const tni_elf *src, const segment *s, tni_note *out, bool *found)
{
    unsigned char bytes[NOTE_SEGMENT_MAX];
    tn_status st;

    if (s->size > NOTE_SEGMENT_MAX)
        return tni_refuse(3, TN_E_FORMAT, "a segment of notes has %llu bytes, at most %u are allowed",
                          (unsigned long long)s->size, NOTE_SEGMENT_MAX);
    if (s->offset > src->size || s->size > src->size - s->offset)
        return tni_refuse(3, TN_E_FORMAT, "the file ends inside its notes");
    st = tni_elf_read(src, s->offset, bytes, s->size);
    return st ? st : notes_walk(bytes, s, out, found);
}

static tn_status dynamic_read(const tni_elf *src, const segment *s, tni_note *out)
{
    uint64_t count = s->size / sizeof(Elf64_Dyn);

    for (uint64_t i = 0; i < count && i < DYNAMIC_MAX; i++) {
        Elf64_Dyn entry;
        tn_status st = tni_elf_read(src, s->offset + i * sizeof entry, &entry, sizeof entry);

        if (st)
            return st;
        if (entry.d_tag == DT_NULL)
            break;
        if (entry.d_tag == DT_FLAGS && (entry.d_un.d_val & DF_STATIC_TLS))
            out->flags |= TNI_NOTE_STATIC_TLS;
    }
    return TN_OK;
}

static tn_status source_note(const tni_elf *src, tni_note *out)
{
    Elf64_Ehdr header;
    tni_note note = {0};
    bool found = false;
    tn_status st = tni_elf_header(src, &header);

    for (uint32_t i = 0; !st && i < header.e_phnum; i++) {
        Elf64_Phdr p;
        segment s;
        uint64_t at;

        if (__builtin_add_overflow(header.e_phoff, i * sizeof p, &at))
            return tni_refuse(3, TN_E_FORMAT, "the file ends inside its own tables");
        st = tni_elf_read(src, at, &p, sizeof p);
        s = (segment){.offset = p.p_offset, .size = p.p_filesz, .align = p.p_align};
        if (!st && p.p_type == PT_NOTE)
            st = notes_read(src, &s, &note, &found);
        else if (!st && p.p_type == PT_DYNAMIC)
            st = dynamic_read(src, &s, &note);
    }
    if (!st && !found)
        st = tni_refuse(3, TN_E_FORMAT, "the file holds no Tenon note");
    if (!st)
        *out = note;
    return st;
}

tn_status tni_note_read_memory(const void *bytes, uint64_t count, const char *name, tni_note *out)
{
    const tni_elf src = {.name = name, .bytes = bytes, .fd = -1, .size = count};

    return source_note(&src, out);
}

tn_status tni_note_read(int fd, const char *name, tni_note *out)
{
    tni_elf_window window = {0};
    tni_elf src = {.name = name, .fd = fd, .window = &window};
    struct stat info;

    if (fstat(fd, &info) || !S_ISREG(info.st_mode))
        return tni_refuse(1, TN_E_ARG, "%s is no regular file", name);
    src.size = (uint64_t)info.st_size;
    return source_note(&src, out);
}

bool tni_note_provides(const tn_note_body *body, const char *kind, const char *id)
{
    const char *at = body->provides;
    size_t kind_length = strlen(kind);

    while (*at) {
        size_t length = strcspn(at, " ");
        bool divided = length > kind_length && (at[kind_length] == '@' || at[kind_length] == ':');

        if (length >= kind_length && strncmp(at, kind, kind_length) == 0 &&
            (divided || length == kind_length)) {
            size_t rest = divided ? length - kind_length - 1 : 0;

            if (!id || (strlen(id) == rest && strncmp(at + kind_length + 1, id, rest) == 0))
                return true;
        }
        at += length + strspn(at + length, " ");
    }
    return false;
}
