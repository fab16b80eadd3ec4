/*
 * Bytes of an ELF file, each within its size, and the header. Nothing is allocated and nothing is trusted. A
 * window of the bytes read last saves most of the system calls.
 *
 * Layout: System V ABI, chapter "ELF Header".
 */
#include "plugin/elf.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static tn_status file_read(const tni_elf *s, uint64_t at, unsigned char *to, uint64_t count)
{
    while (count > 0) {
        ssize_t n = pread(s->fd, to, count, (off_t)at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return tni_refuse(3, TN_E_IO,
                              n < 0 ? "the file cannot be read" : "the file is shorter than it was");
        to += n;
        at += (uint64_t)n;
        count -= (uint64_t)n;
    }
    return TN_OK;
}

tn_status tni_elf_read(const tni_elf *s, uint64_t at, void *out, uint64_t count)
{
    unsigned char *to = out;

    if (at > s->size || count > s->size - at)
        return tni_refuse(3, TN_E_FORMAT, "the file ends inside its own tables");
    if (s->bytes) {
        memcpy(out, s->bytes + at, count);
        return TN_OK;
    }
    if (!s->window || count > sizeof s->window->bytes)
        return file_read(s, at, to, count);
    if (at < s->window->at || at + count > s->window->at + s->window->count) {
        const uint64_t left = s->size - at;
        const uint64_t take = left < sizeof s->window->bytes ? left : sizeof s->window->bytes;
        tn_status st = file_read(s, at, s->window->bytes, take);

        s->window->at = at;
        s->window->count = st ? 0 : take;
        if (st)
            return st;
    }
    memcpy(out, s->window->bytes + (at - s->window->at), count);
    return TN_OK;
}

tn_status tni_elf_header(const tni_elf *src, Elf64_Ehdr *h)
{
    static const unsigned char magic[4] = {0x7f, 'E', 'L', 'F'};
    tn_status st;

    if (src->size < sizeof *h)
        return tni_refuse(3, TN_E_FORMAT, "the file is too short for a shared object");
    st = tni_elf_read(src, 0, h, sizeof *h);
    if (st)
        return st;
    if (memcmp(h->e_ident, magic, sizeof magic) != 0)
        return tni_refuse(3, TN_E_FORMAT, "the file is no ELF file");
    if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB)
        return tni_refuse(4, TN_E_UNSUPPORTED, "the file is a %s-bit %s-endian object, this is " TN_ABI_TAG,
                          h->e_ident[EI_CLASS] == ELFCLASS32 ? "32" : "64",
                          h->e_ident[EI_DATA] == ELFDATA2MSB ? "big" : "little");
    if (h->e_ident[EI_VERSION] != EV_CURRENT || h->e_type != ET_DYN)
        return tni_refuse(3, TN_E_FORMAT, "the file is no shared object");
    if (h->e_phentsize != sizeof(Elf64_Phdr) || h->e_phnum == 0 || h->e_phnum > TNI_ELF_SEGMENTS_MAX)
        return tni_refuse(3, TN_E_FORMAT, "the file has %u segments of %u bytes each", h->e_phnum,
                          h->e_phentsize);
    return TN_OK;
}
