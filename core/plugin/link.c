/*
 * What the dynamic linker would do with a file, read from the file alone: which segments it maps, which
 * libraries it needs, and whether it defines the entry symbol itself. A file that is cut short, made for
 * another machine or without an entry is refused here, before anything of it is mapped.
 *
 * Layouts: System V ABI, chapters "Program Header", "Dynamic Section", "Symbol Table", "Hash Table";
 * DT_GNU_HASH as glibc's elf/dl-lookup.c reads it. The texts, the symbols and the hash table are found by
 * address; an address is inside one PT_LOAD segment or nowhere.
 */
#include <stddef.h>
#include <string.h>

#include "plugin/elf.h"

#define DYNAMIC_MAX 4096u /* entries of the dynamic section */
#define DYNAMIC_CHUNK 32u /* that are read at once */
#define CHAIN_MAX 65536u  /* symbols of one hash chain */

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#else
#define MACHINE EM_AARCH64
#endif

static tn_status damaged(const char *what)
{
    return tni_refuse(3, TN_E_FORMAT, "%s", what);
}

static tn_status segments_read(const tni_elf *e, const Elf64_Ehdr *h, tni_segments *out)
{
    tn_status st;

    out->count = h->e_phnum;
    if ((st = tni_elf_read(e, h->e_phoff, out->item, (uint64_t)h->e_phnum * sizeof *out->item)))
        return st;
    for (uint32_t i = 0; i < out->count; i++) {
        const Elf64_Phdr *p = &out->item[i];

        if (p->p_type != PT_LOAD)
            continue;
        if (p->p_offset > e->size || p->p_filesz > e->size - p->p_offset)
            return damaged("the file is cut short: it ends inside a segment that would be mapped");
        if (p->p_filesz > p->p_memsz || p->p_vaddr > UINT64_MAX - p->p_memsz)
            return damaged("a segment has impossible sizes");
    }
    return TN_OK;
}

tn_status tni_link_address(const tni_link *l, uint64_t address, uint64_t bytes, uint64_t *out)
{
    for (uint32_t i = 0; i < l->segments.count; i++) {
        const Elf64_Phdr *p = &l->segments.item[i];

        if (p->p_type != PT_LOAD || address < p->p_vaddr || address - p->p_vaddr > p->p_filesz ||
            bytes > p->p_filesz - (address - p->p_vaddr))
            continue;
        *out = p->p_offset + (address - p->p_vaddr);
        return TN_OK;
    }
    return damaged("a table of the dynamic section lies outside the file");
}

typedef struct dynamic { /* entries of the dynamic section; 0: not there */
    uint64_t strings, strings_size, symbols, gnu_hash, hash, rpath, runpath;
    uint64_t init, init_size, rela, rela_size;
} dynamic;

static const struct {
    int64_t tag;
    size_t offset;
} entries[] = {
    {DT_STRTAB, offsetof(dynamic, strings)},         {DT_STRSZ, offsetof(dynamic, strings_size)},
    {DT_SYMTAB, offsetof(dynamic, symbols)},         {DT_HASH, offsetof(dynamic, hash)},
    {DT_GNU_HASH, offsetof(dynamic, gnu_hash)},      {DT_RPATH, offsetof(dynamic, rpath)},
    {DT_RUNPATH, offsetof(dynamic, runpath)},        {DT_INIT_ARRAY, offsetof(dynamic, init)},
    {DT_INIT_ARRAYSZ, offsetof(dynamic, init_size)}, {DT_RELA, offsetof(dynamic, rela)},
    {DT_RELASZ, offsetof(dynamic, rela_size)},
};

static tn_status entry_take(const Elf64_Dyn *d, dynamic *to, tni_link *out)
{
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        if (entries[i].tag == d->d_tag)
            memcpy((char *)to + entries[i].offset, &d->d_un.d_val, sizeof d->d_un.d_val);
    if (d->d_tag != DT_NEEDED)
        return TN_OK;
    if (out->needed_count == TNI_ELF_NEEDED_MAX)
        return tni_refuse(3, TN_E_FORMAT, "the file needs over %u libraries", TNI_ELF_NEEDED_MAX);
    out->needed[out->needed_count++] = d->d_un.d_val;
    return TN_OK;
}

static tn_status dynamic_read(const tni_elf *e, const Elf64_Phdr *p, dynamic *d, tni_link *out)
{
    const uint64_t count = p->p_filesz / sizeof(Elf64_Dyn);
    Elf64_Dyn chunk[DYNAMIC_CHUNK];

    for (uint64_t i = 0; i < count && i < DYNAMIC_MAX; i++) {
        const uint64_t in = i % DYNAMIC_CHUNK, left = count - i;
        tn_status st = in ? TN_OK
                          : tni_elf_read(e, p->p_offset + i * sizeof *chunk, chunk,
                                         (left < DYNAMIC_CHUNK ? left : DYNAMIC_CHUNK) * sizeof *chunk);

        if (st)
            return st;
        if (chunk[in].d_tag == DT_NULL)
            return TN_OK;
        if ((st = entry_take(&chunk[in], d, out)))
            return st;
    }
    return damaged("the dynamic section has no end");
}

/* The tables that the entries point to: all lie in the file. */
static tn_status tables_find(const dynamic *d, tni_link *l)
{
    tn_status st;

    if ((st = tni_link_address(l, d->strings, d->strings_size, &l->strings)) ||
        (st = tni_link_address(l, d->symbols, sizeof(Elf64_Sym), &l->symbols)) ||
        (d->gnu_hash && (st = tni_link_address(l, d->gnu_hash, 16, &l->gnu_hash))) ||
        (d->hash && (st = tni_link_address(l, d->hash, 8, &l->hash))) ||
        (d->rela && (st = tni_link_address(l, d->rela, d->rela_size, &l->relocations))))
        return st;
    l->strings_size = d->strings_size;
    l->run_path = d->runpath ? d->runpath : d->rpath;
    l->init_array = d->init;
    l->init_count = d->init_size / sizeof(uint64_t);
    l->relocation_count = d->rela ? d->rela_size / sizeof(Elf64_Rela) : 0;
    return TN_OK;
}

tn_status tni_link_read(const tni_elf *e, tni_link *out)
{
    tni_link l = {0};
    const Elf64_Phdr *section = NULL;
    dynamic d = {0};
    uint64_t at = 0;
    tn_status st = tni_elf_header(e, &l.header);

    if (st)
        return st;
    if (l.header.e_machine != MACHINE)
        return tni_refuse(4, TN_E_UNSUPPORTED, "the file's machine is number %u, this is %u (" TN_ABI_TAG ")",
                          l.header.e_machine, MACHINE);
    if ((st = segments_read(e, &l.header, &l.segments)))
        return st;
    for (uint32_t i = 0; i < l.segments.count && !section; i++)
        if (l.segments.item[i].p_type == PT_DYNAMIC)
            section = &l.segments.item[i];
    if (!section)
        return damaged("the file has no dynamic section");
    if ((st = tni_link_address(&l, section->p_vaddr, section->p_filesz, &at)))
        return st;
    if (at != section->p_offset)
        return damaged("the dynamic section lies elsewhere in memory than in the file");
    if ((st = dynamic_read(e, section, &d, &l)) || (st = tables_find(&d, &l)))
        return st;
    *out = l;
    return TN_OK;
}

/* ---- texts ------------------------------------------------------------------------------------------- */

tn_status tni_link_text(const tni_elf *e, const tni_link *l, uint64_t at, char *out, size_t size)
{
    uint64_t left;
    tn_status st;

    if (at >= l->strings_size)
        return damaged("a name lies outside the table of names");
    left = l->strings_size - at;
    if ((st = tni_elf_read(e, l->strings + at, out, left < size ? left : size)))
        return st;
    if (!memchr(out, '\0', left < size ? left : size))
        return damaged("a name has no end");
    return TN_OK;
}

void tni_link_needed(const tni_elf *e, const tni_link *l, char *out, size_t size)
{
    char name[TNI_LIBRARY_BYTES];
    size_t at = 0;

    out[0] = '\0';
    for (uint32_t i = 0; i < l->needed_count && at < size; i++)
        if (!tni_link_text(e, l, l->needed[i], name, sizeof name))
            at += (size_t)snprintf(out + at, size - at, "%s%s", at ? ", " : "", name);
    tni_error_clear();
}

/* ---- symbols ----------------------------------------------------------------------------------------- */

/* TN_OK and *found: symbol `index` is `name`, defined here, data, visible to others. */
static tn_status symbol_is(const tni_elf *e, const tni_link *l, uint64_t index, const char *name, bool *found)
{
    char text[TNI_LIBRARY_BYTES];
    Elf64_Sym s;
    tn_status st = tni_elf_read(e, l->symbols + index * sizeof s, &s, sizeof s);

    if (st)
        return st;
    if (s.st_shndx == SHN_UNDEF || ELF64_ST_TYPE(s.st_info) != STT_OBJECT ||
        ELF64_ST_BIND(s.st_info) == STB_LOCAL || ELF64_ST_VISIBILITY(s.st_other) == STV_HIDDEN)
        return TN_OK;
    if (tni_link_text(e, l, s.st_name, text, sizeof text))
        tni_error_clear(); /* a longer name is another name */
    else
        *found = strcmp(text, name) == 0;
    return TN_OK;
}

static uint32_t gnu_hash_of(const char *name)
{
    uint32_t h = 5381;

    for (; *name; name++)
        h = h * 33 + (unsigned char)*name;
    return h;
}

static tn_status gnu_find(const tni_elf *e, const tni_link *l, const char *name, bool *found)
{
    uint32_t head[4], hash = gnu_hash_of(name), index,
                      value = 0; /* buckets, first symbol, bloom words, shift */
    uint64_t buckets, chain;
    tn_status st = tni_elf_read(e, l->gnu_hash, head, sizeof head);

    if (st)
        return st;
    if (!head[0])
        return TN_OK;
    buckets = l->gnu_hash + sizeof head + 8 * (uint64_t)head[2];
    if ((st = tni_elf_read(e, buckets + 4 * (uint64_t)(hash % head[0]), &index, sizeof index)))
        return st;
    chain = buckets + 4 * (uint64_t)head[0];
    if (index < head[1])
        return TN_OK; /* an empty bucket */
    for (uint32_t i = 0; i < CHAIN_MAX && !*found && !(value & 1u); i++, index++) {
        if ((st = tni_elf_read(e, chain + 4 * (uint64_t)(index - head[1]), &value, sizeof value)))
            return st;
        if ((value | 1u) == (hash | 1u) && (st = symbol_is(e, l, index, name, found)))
            return st;
    }
    return TN_OK;
}

static uint32_t sysv_hash_of(const char *name)
{
    uint32_t h = 0;

    for (; *name; name++) {
        h = (h << 4) + (unsigned char)*name;
        h = (h ^ (h & 0xf0000000u) >> 24) & 0x0fffffffu;
    }
    return h;
}

static tn_status sysv_find(const tni_elf *e, const tni_link *l, const char *name, bool *found)
{
    uint32_t head[2], index; /* buckets, symbols */
    tn_status st = tni_elf_read(e, l->hash, head, sizeof head);

    if (st)
        return st;
    if (!head[0])
        return TN_OK;
    st = tni_elf_read(e, l->hash + 8 + 4 * (uint64_t)(sysv_hash_of(name) % head[0]), &index, sizeof index);
    for (uint32_t i = 0; !st && i < CHAIN_MAX && index && !*found; i++) {
        if (!(st = symbol_is(e, l, index, name, found)))
            st = tni_elf_read(e, l->hash + 8 + 4 * ((uint64_t)head[0] + index), &index, sizeof index);
    }
    return st;
}

tn_status tni_link_defines(const tni_elf *e, const tni_link *l, const char *name)
{
    char needed[200];
    bool found = false;
    tn_status st = TN_OK;

    if (l->gnu_hash)
        st = gnu_find(e, l, name, &found);
    else if (l->hash)
        st = sysv_find(e, l, name, &found);
    if (st || found)
        return st;
    tni_link_needed(e, l, needed, sizeof needed);
    return tni_refuse(12, TN_E_FORMAT, "%.120s itself holds no symbol %s%s%s%s", e->name, name,
                      needed[0] ? "; what it needs (" : "", needed, needed[0] ? ") does not count" : "");
}
