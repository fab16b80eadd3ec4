/* What the public header base.h says about this library itself: errors of the thread, version, build id. */
#include <elf.h>
#include <link.h>
#include <string.h>

#include "base/base.h"

#if !defined(TN_VERSION)
#define TN_VERSION "0.1.0"
#endif
#define BUILD_ID_BYTES_MAX 32

static char build_id[2 * BUILD_ID_BYTES_MAX + 1];
static pthread_once_t build_once = PTHREAD_ONCE_INIT;

const char *tn_error_text(void)
{
    return tni_error_message();
}

tn_status tn_error_code(void)
{
    tn_err err;

    tni_error_get(&err);
    return err.code;
}

void tn_error_clear(void)
{
    tni_error_clear();
}

const char *tn_status_name(tn_status status)
{
    return tni_status_name(status);
}

const char *tn_version(void)
{
    return TN_VERSION;
}

/* Walks the notes of one mapped segment. They were made by the linker and are mapped as a whole. */
static void notes_search(const unsigned char *at, size_t bytes)
{
    while (bytes >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) head;
        size_t name, body;

        memcpy(&head, at, sizeof head);
        name = sizeof head + (((size_t)head.n_namesz + 3) & ~(size_t)3);
        body = ((size_t)head.n_descsz + 3) & ~(size_t)3;
        if (name > bytes || body > bytes - name)
            return;
        if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 && memcmp(at + sizeof head, "GNU", 4) == 0 &&
            head.n_descsz <= BUILD_ID_BYTES_MAX) {
            for (size_t i = 0; i < head.n_descsz; i++)
                snprintf(build_id + 2 * i, 3, "%02x", at[name + i]);
            return;
        }
        at += name + body;
        bytes -= name + body;
    }
}

static int object_visit(struct dl_phdr_info *info, size_t size, void *unused)
{
    uintptr_t here = (uintptr_t)&build_once;
    bool ours = false;

    (void)size;
    (void)unused;
    for (size_t i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD)
            ours |= here - (info->dlpi_addr + info->dlpi_phdr[i].p_vaddr) < info->dlpi_phdr[i].p_memsz;
    for (size_t i = 0; ours && i < info->dlpi_phnum && !build_id[0]; i++)
        if (info->dlpi_phdr[i].p_type == PT_NOTE)
            notes_search((const unsigned char *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr),
                         info->dlpi_phdr[i].p_memsz);
    return ours;
}

static void build_id_find(void)
{
    dl_iterate_phdr(object_visit, NULL);
}

const char *tn_build_id(void)
{
    pthread_once(&build_once, build_id_find);
    return build_id;
}
