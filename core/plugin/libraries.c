/*
 * Where the dynamic linker would find the libraries that a plugin needs, told from files alone: the plugin's
 * DT_RUNPATH, LD_LIBRARY_PATH, /etc/ld.so.cache, then the system's folders. A file counts if it is a shared
 * object for this machine.
 *
 * ld.so.cache: the format "glibc-ld.so.cache1.1" (glibc, sysdeps/generic/dl-cache.h): a header of 48 bytes,
 * then entries of 24 bytes whose texts are offsets from the beginning of the file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugin/elf.h"

#define CACHE_FILE "/etc/ld.so.cache"
#define CACHE_MAGIC "glibc-ld.so.cache1.1"
#define CACHE_BYTES_MAX (16u << 20)
#define CACHE_HEADER 48u
#define CACHE_ENTRY 24u

#if defined(__x86_64__)
#define TRIPLE "x86_64-linux-gnu"
#else
#define TRIPLE "aarch64-linux-gnu"
#endif

static const char system_folders[] = "/lib/" TRIPLE ":/usr/lib/" TRIPLE ":/lib64:/usr/lib64:/lib:/usr/lib";

static bool serves(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    tni_elf e = {.name = path, .fd = fd};
    struct stat info;
    tni_link link;
    bool ok;

    if (fd < 0)
        return false;
    ok = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
    e.size = ok ? (uint64_t)info.st_size : 0;
    ok = ok && tni_link_read(&e, &link) == TN_OK;
    tni_error_clear();
    close(fd);
    return ok;
}

/* One folder of a list, with $ORIGIN replaced; "" is passed over. */
static bool folder_try(const char *from, size_t length, const char *origin, const char *name, char *out,
                       size_t size)
{
    static const char *const marks[] = {"$ORIGIN", "${ORIGIN}"};

    if (!length || length > 4096)
        return false;
    for (size_t i = 0; i < 2; i++) {
        const size_t mark = strlen(marks[i]);

        if (length >= mark && strncmp(from, marks[i], mark) == 0)
            return snprintf(out, size, "%s%.*s/%s", origin, (int)(length - mark), from + mark, name) <
                       (int)size &&
                   serves(out);
    }
    return snprintf(out, size, "%.*s/%s", (int)length, from, name) < (int)size && serves(out);
}

static bool list_try(const char *list, const char *origin, const char *name, char *out, size_t size)
{
    for (; list && *list; list += *list == ':') {
        const size_t length = strcspn(list, ":");

        if (folder_try(list, length, origin, name, out, size))
            return true;
        list += length;
    }
    return false;
}

/* The text at `offset`; NULL: it does not end inside the file. */
static const char *cache_text(const char *bytes, uint64_t count, uint32_t offset)
{
    return offset < count && memchr(bytes + offset, '\0', count - offset) ? bytes + offset : NULL;
}

static bool cache_search(const char *bytes, uint64_t count, const char *name, char *out, size_t size)
{
    uint32_t entries;

    if (count < CACHE_HEADER || memcmp(bytes, CACHE_MAGIC, sizeof CACHE_MAGIC - 1) != 0)
        return false;
    memcpy(&entries, bytes + sizeof CACHE_MAGIC - 1, sizeof entries);
    for (uint64_t i = 0; i < entries && CACHE_HEADER + (i + 1) * CACHE_ENTRY <= count; i++) {
        uint32_t at[2]; /* key, value */
        const char *key, *value;

        memcpy(at, bytes + CACHE_HEADER + i * CACHE_ENTRY + 4, sizeof at);
        key = cache_text(bytes, count, at[0]);
        value = cache_text(bytes, count, at[1]);
        if (key && value && strcmp(key, name) == 0 && snprintf(out, size, "%s", value) < (int)size &&
            serves(out))
            return true;
    }
    return false;
}

static bool cache_try(const char *name, char *out, size_t size)
{
    uint64_t count = 0;
    char *bytes = NULL;
    bool found = !tni_file_read_all(CACHE_FILE, CACHE_BYTES_MAX, &bytes, &count) &&
                 cache_search(bytes, count, name, out, size);

    tni_free(bytes);
    tni_error_clear();
    return found;
}

bool tni_library_find(const char *name, const char *folder, const char *run_path, char *out, size_t size)
{
    if (strchr(name, '/'))
        return name[0] == '/' && snprintf(out, size, "%s", name) < (int)size && serves(out);
    return list_try(run_path, folder, name, out, size) ||
           list_try(secure_getenv("LD_LIBRARY_PATH"), folder, name, out, size) ||
           cache_try(name, out, size) || list_try(system_folders, folder, name, out, size);
}

/* ---- the list of a plugin ---------------------------------------------------------------------- */

static tn_status library_take(const tni_elf *e, const tni_link *l, const char *folder, uint64_t at,
                              tni_library *out)
{
    char path[TN_PATH_BYTES_MAX], run_path[TN_PATH_BYTES_MAX] = "";
    tn_status st = tni_link_text(e, l, at, out->name, sizeof out->name);

    if (!st && l->run_path)
        st = tni_link_text(e, l, l->run_path, run_path, sizeof run_path);
    if (!st && tni_library_find(out->name, folder, run_path, path, sizeof path))
        st = (out->path = tni_strdup(path)) ? TN_OK : TN_E_NOMEM;
    return st;
}

void tni_libraries_free(tni_library *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        tni_free(list[i].path);
    tni_free(list);
}

static tn_status list_make(const tni_elf *e, const char *path, tni_library **out, size_t *count)
{
    char folder[TN_PATH_BYTES_MAX];
    tni_library *list = NULL;
    tni_link l;
    tn_status st = tni_link_read(e, &l);

    if (st)
        return st;
    if (!(list = tni_calloc(l.needed_count + 1u, sizeof *list)))
        return TN_E_NOMEM;
    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = '\0';
    for (uint32_t i = 0; i < l.needed_count && !st; i++)
        st = library_take(e, &l, folder, l.needed[i], &list[i]);
    if (st) {
        tni_libraries_free(list, l.needed_count);
        return st;
    }
    *out = list;
    *count = l.needed_count;
    return TN_OK;
}

static tn_status file_list(const char *path, tni_library **out, size_t *count)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    tni_elf e = {.name = path, .fd = fd};
    struct stat info;
    tn_status st;

    if (fd < 0)
        return tni_refuse(1, TN_E_IO, "%.200s cannot be opened", path);
    if (fstat(fd, &info) || !S_ISREG(info.st_mode)) {
        st = tni_refuse(1, TN_E_ARG, "%.200s is no regular file", path);
    } else {
        e.size = (uint64_t)info.st_size;
        st = list_make(&e, path, out, count);
    }
    close(fd);
    return st;
}

/* Read once; the list lives as long as the plugin. */
tn_status tni_plugin_libraries(tni_registry *r, tni_plugin *p, const tni_library **out, size_t *count)
{
    tni_plugin_internal *in = tni_plugin_internal_of(p);
    tni_library *list = NULL;
    size_t found = 0;
    tn_status st;

    tni_mutex_lock(&r->lock);
    list = in->libraries;
    found = in->library_count;
    tni_mutex_unlock(&r->lock);
    if (!list && p->path[0] == '/') {
        if ((st = file_list(p->path, &list, &found)))
            return st;
        tni_mutex_lock(&r->lock);
        if (in->libraries) { /* another thread was faster */
            tni_libraries_free(list, found);
        } else {
            in->libraries = list;
            in->library_count = found;
        }
        list = in->libraries;
        found = in->library_count;
        tni_mutex_unlock(&r->lock);
    }
    *out = list;
    *count = found;
    return TN_OK;
}
