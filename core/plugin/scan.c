/*
 * Finding candidates: the folders of plugins.path in their order, then the one beside libtenon.so; in each,
 * the files that end in .so, by name. Each is opened, trusted and its note read; nothing of it runs. What is
 * refused stays in the list with its reason. Of two valid files with one name the first found stays, the
 * other is L15.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugin/elf.h"

#if !defined(TN_PLUGIN_FOLDER)
#define TN_PLUGIN_FOLDER "tenon/plugins-1"
#endif
#define FOLDERS_MAX 64 /* of plugins.path */

const char *tni_library_path(char *out, size_t size)
{
    Dl_info info;
    char resolved[PATH_MAX];

    if (!dladdr((const void *)(uintptr_t)&tni_library_path, &info) || !info.dli_fname ||
        !strchr(info.dli_fname, '/') || !realpath(info.dli_fname, resolved)) {
        ssize_t n = readlink("/proc/self/exe", resolved, sizeof resolved - 1); /* linked into the program */

        if (n <= 0)
            return NULL;
        resolved[n] = '\0';
    }
    return snprintf(out, size, "%s", resolved) < (int)size ? out : NULL;
}

bool tni_registry_permits(const tni_registry *r, const char *name)
{
    char item[TN_NOTE_NAME_BYTES];
    size_t count = tni_option_list_count(r->options, "plugins.load");

    for (size_t i = 0; i < count; i++)
        if (!tni_option_list_item(r->options, "plugins.load", i, item, sizeof item) &&
            (strcmp(item, "auto") == 0 || strcmp(item, name) == 0))
            return true;
    tni_error_clear();
    return false;
}

tn_status tni_plugin_create(tni_registry *r, const char *path, tni_plugin **out)
{
    tni_plugin *p = tni_zalloc(sizeof *p);
    tni_plugin_internal *in = tni_zalloc(sizeof *in);

    if (!p || !in || !(in->path = tni_strdup(path))) {
        tni_free(p);
        tni_free(in);
        return TN_E_NOMEM;
    }
    in->services.options = r->options;
    in->services.log = &r->log;
    in->services.registry = r;
    p->path = in->path;
    p->internal = in;
    *out = p;
    return TN_OK;
}

void tni_plugin_destroy(tni_plugin *p)
{
    tni_plugin_internal *in;

    if (!p)
        return;
    in = tni_plugin_internal_of(p);
    tni_libraries_free(in->libraries, in->library_count);
    tni_note_clear(&p->note);
    tni_free(in->rows);
    tni_free(in->path);
    tni_free(in);
    tni_free(p);
}

/* Whether the linker could map the file, the entry is its own and nothing runs by itself: L03, L04, L12,
 * L19. */
static tn_status link_check(int fd, const char *path, const struct stat *info)
{
    tni_elf_window window = {0};
    const tni_elf e = {.name = path, .fd = fd, .size = (uint64_t)info->st_size, .window = &window};
    tni_link link;
    tn_status st = tni_link_read(&e, &link);

    if (st || (st = tni_link_defines(&e, &link, TNI_ENTRY)))
        return st;
    return tni_link_quiet(&e, &link);
}

/* Everything that is asked of a file before it may be loaded. */
static tn_status file_check(tni_registry *r, const char *path, tni_note *note, struct stat *info)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    tn_status st;

    if (fd < 0)
        return errno == ELOOP || errno == ENXIO ? tni_refuse(1, TN_E_ARG, "%.200s is no regular file", path)
                                                : tni_refuse(1, TN_E_IO, "%.200s cannot be opened", path);
    if ((st = tni_trust_file(&r->trust, path, fd)) || (st = tni_note_read(fd, path, note)) ||
        (st = tni_refuse_note(note, tni_abi_of_core())))
        goto cleanup;
    st = fstat(fd, info) ? tni_refuse(1, TN_E_IO, "%.200s cannot be read", path) : link_check(fd, path, info);

cleanup:
    close(fd);
    return st;
}

/* Which file it is, and that it is what was read. */
static void file_note(tni_plugin_internal *in, const struct stat *info)
{
    in->device = info->st_dev;
    in->inode = info->st_ino;
    in->size = info->st_size;
    in->changed_s = info->st_mtim.tv_sec;
    in->changed_ns = info->st_mtim.tv_nsec;
}

bool tni_plugin_unchanged(const tni_plugin *p)
{
    const tni_plugin_internal *in = tni_plugin_internal_of(p);
    struct stat info;

    return lstat(p->path, &info) == 0 && info.st_ino == in->inode && info.st_dev == in->device &&
           info.st_size == in->size && info.st_mtim.tv_sec == in->changed_s &&
           info.st_mtim.tv_nsec == in->changed_ns;
}

const tni_option_def *tni_plugin_options(const tni_plugin *p, size_t *count)
{
    const tni_services *s = &tni_plugin_internal_of(p)->services;

    *count = tni_plugin_state(p) == TNI_PLUGIN_LOADED ? s->row_count : 0;
    return *count ? s->rows : NULL;
}

int64_t tni_plugin_size(const tni_plugin *p)
{
    const tni_plugin_internal *in = tni_plugin_internal_of(p);
    int64_t size;

    tni_mutex_lock(&in->services.registry->lock);
    size = in->size;
    tni_mutex_unlock(&in->services.registry->lock);
    return size;
}

tn_status tni_plugin_recheck(tni_registry *r, tni_plugin *p)
{
    tni_plugin_internal *in = tni_plugin_internal_of(p);
    char folder[TN_PATH_BYTES_MAX];
    struct stat info;
    tni_note note = {0};
    tn_status st;

    snprintf(folder, sizeof folder, "%s", p->path);
    *(strrchr(folder, '/') == folder ? folder + 1 : strrchr(folder, '/')) = '\0';
    if ((st = tni_trust_folder(&r->trust, folder)) || (st = file_check(r, p->path, &note, &info)))
        goto cleanup;
    if (memcmp(&note.body, &p->note.body, sizeof note.body) != 0 ||
        strcmp(note.provides, p->note.provides) != 0) {
        st = tni_refuse(13, TN_E_STATE, "the file has changed since it was found; open Tenon again");
        goto cleanup;
    }
    tni_mutex_lock(&r->lock);
    file_note(in, &info);
    tni_mutex_unlock(&r->lock);

cleanup:
    tni_note_clear(&note);
    return st;
}

static void plugin_refuse(tni_registry *r, tni_plugin *p)
{
    p->code = tni_refusal_code();
    tni_refusal_reason(p->reason, sizeof p->reason);
    tni_plugin_turn(p, TNI_PLUGIN_REFUSED);
    tni_logf(&r->log, TN_LOG_INFO, "L%02u %s: %s", p->code, p->path, p->reason);
    tni_error_clear();
}

static tni_plugin *same_name(const tni_registry *r, const char *name)
{
    for (size_t i = 0; i < r->plugins.count; i++) {
        tni_plugin *p = ((tni_plugin **)r->plugins.data)[i];

        if (tni_plugin_state(p) != TNI_PLUGIN_REFUSED && strcmp(p->note.body.name, name) == 0)
            return p;
    }
    return NULL;
}

static bool same_file(const tni_registry *r, const tni_plugin *p)
{
    const tni_plugin_internal *own = tni_plugin_internal_of(p);

    for (size_t i = 0; i < r->plugins.count; i++) {
        const tni_plugin_internal *in = tni_plugin_internal_of(((tni_plugin **)r->plugins.data)[i]);

        if (in->inode == own->inode && in->device == own->device)
            return true;
    }
    return false;
}

tn_status tni_plugin_check(tni_registry *r, tni_plugin *p)
{
    tni_plugin_internal *in = tni_plugin_internal_of(p);
    struct stat info;
    tn_status st = file_check(r, p->path, &p->note, &info);

    if (st)
        return st;
    file_note(in, &info);
    snprintf(in->services.name, sizeof in->services.name, "%s", p->note.body.name);
    in->permitted = tni_registry_permits(r, p->note.body.name);
    return TN_OK;
}

/* TN_OK also for a refused file; its reason stands in the list. `folder_refused`: what this thread's error
 * says of the folder holds for its files. */
static tn_status candidate_add(tni_registry *r, const char *path, bool folder_refused)
{
    tni_plugin *p = NULL, *other;
    tn_status st = tni_vec_reserve(&r->plugins, r->plugins.count + 1);

    if (st || (st = tni_plugin_create(r, path, &p)))
        return st;
    if (!folder_refused && (st = tni_plugin_check(r, p)) == TN_E_NOMEM) {
        tni_plugin_destroy(p);
        return st;
    }
    if (folder_refused || st) {
        plugin_refuse(r, p);
    } else if (same_file(r, p)) { /* a folder named twice */
        tni_plugin_destroy(p);
        return TN_OK;
    } else if ((other = same_name(r, p->note.body.name))) {
        tni_refuse(15, TN_E_KEY, "%.60s was found at %.200s first", p->note.body.name, other->path);
        plugin_refuse(r, p);
    } else if (!tni_plugin_internal_of(p)->permitted) {
        snprintf(p->reason, sizeof p->reason, "not in plugins.load");
        tni_plugin_turn(p, TNI_PLUGIN_REFUSED);
        tni_logf(&r->log, TN_LOG_DEBUG, "%s is left out: not in plugins.load", path);
    } else {
        tni_plugin_turn(p, TNI_PLUGIN_READY);
    }
    return tni_vec_push(&r->plugins, &p);
}

static int name_compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool ends_in_so(const char *name)
{
    size_t length = strlen(name);

    return length > 3 && name[0] != '.' && strcmp(name + length - 3, ".so") == 0;
}

static tn_status names_read(DIR *dir, tni_vec *names)
{
    struct dirent *entry;
    tn_status st = TN_OK;

    while (!st && (entry = readdir(dir))) {
        char *name;

        if (!ends_in_so(entry->d_name))
            continue;
        name = tni_strdup(entry->d_name);
        st = name ? tni_vec_push(names, &name) : TN_E_NOMEM;
        if (st)
            tni_free(name);
    }
    if (names->count)
        qsort(names->data, names->count, sizeof(char *), name_compare);
    return st;
}

static tn_status files_add(tni_registry *r, const char *folder, const tni_vec *names)
{
    tn_status trusted = names->count ? tni_trust_folder(&r->trust, folder) : TN_OK;
    tn_err why;
    tn_status st = TN_OK;

    tni_error_get(&why);
    for (size_t i = 0; i < names->count && !st; i++) {
        char *path = NULL;

        st = tni_path_join(folder, ((char **)names->data)[i], &path);
        if (!st && trusted)
            tni_error_set(&why);
        if (!st)
            st = candidate_add(r, path, trusted != TN_OK);
        tni_free(path);
    }
    return st;
}

/* That it was searched; the one beside libtenon.so may be named in plugins.path, too. */
static tn_status folder_note(tni_registry *r, const char *path, bool opened)
{
    tni_folder f = {.opened = opened};
    tn_status st;

    for (size_t i = 0; i < r->folders.count; i++)
        if (strcmp(((const tni_folder *)tni_vec_at(&r->folders, i))->path, path) == 0)
            return TN_OK;
    if (!(f.path = tni_strdup(path)))
        return TN_E_NOMEM;
    if ((st = tni_vec_push(&r->folders, &f)))
        tni_free(f.path);
    return st;
}

static tn_status folder_scan(tni_registry *r, const char *folder, bool expected)
{
    char resolved[PATH_MAX];
    tni_vec names;
    DIR *dir;
    tn_status st;

    if (folder[0] != '/')
        return tni_refuse(1, TN_E_ARG, "plugins.path: %.200s is not absolute", folder);
    if (!realpath(folder, resolved) || !(dir = opendir(resolved))) {
        if (expected)
            tni_logf(&r->log, TN_LOG_WARNING, "plugins.path: %s cannot be opened", folder);
        return folder_note(r, folder, false);
    }
    tni_vec_init(&names, sizeof(char *), TN_PLUGINS_MAX);
    st = names_read(dir, &names);
    closedir(dir);
    if (!st)
        st = folder_note(r, resolved, true);
    if (!st)
        st = files_add(r, resolved, &names);
    for (size_t i = 0; i < names.count; i++)
        tni_free(((char **)names.data)[i]);
    tni_vec_fini(&names);
    return st;
}

static int plugin_compare(const void *a, const void *b)
{
    const tni_plugin *x = *(tni_plugin *const *)a, *y = *(tni_plugin *const *)b;
    const bool x_refused = tni_plugin_state(x) == TNI_PLUGIN_REFUSED;
    const bool y_refused = tni_plugin_state(y) == TNI_PLUGIN_REFUSED;

    if (x_refused != y_refused)
        return x_refused - y_refused;
    return x_refused ? strcmp(x->path, y->path) : strcmp(x->note.body.name, y->note.body.name);
}

void tni_registry_sort(tni_registry *r)
{
    if (r->plugins.count)
        qsort(r->plugins.data, r->plugins.count, sizeof(tni_plugin *), plugin_compare);
}

/* The folder of the plugins that were installed with libtenon.so. */
static bool own_folder(char *out, size_t size)
{
    char *slash;

    if (!tni_library_path(out, size - sizeof TN_PLUGIN_FOLDER) || !(slash = strrchr(out, '/')))
        return false;
    memcpy(slash + 1, TN_PLUGIN_FOLDER, sizeof TN_PLUGIN_FOLDER);
    return true;
}

tn_status tni_registry_scan(tni_registry *r)
{
    size_t count = tni_option_list_count(r->options, "plugins.path");
    char folder[TN_PATH_BYTES_MAX];
    tn_status st = TN_OK;

    if (count > FOLDERS_MAX)
        return tni_error(TN_E_ARG, "plugins.path names %zu folders, at most %d are allowed", count,
                         FOLDERS_MAX);
    for (size_t i = 0; i < count && !st; i++) {
        st = tni_option_list_item(r->options, "plugins.path", i, folder, sizeof folder);
        if (!st)
            st = folder_scan(r, folder, true);
    }
    if (!st && own_folder(folder, sizeof folder))
        st = folder_scan(r, folder, false);
    if (!st)
        tni_registry_sort(r);
    return st;
}

/* Candidates that lie directly in `folder`. */
static size_t files_in(const tni_registry *r, const char *folder)
{
    size_t length = strlen(folder), count = 0;

    for (size_t i = 0; i < r->plugins.count; i++) {
        const char *path = ((tni_plugin **)r->plugins.data)[i]->path;

        count += strncmp(path, folder, length) == 0 && path[length] == '/' && !strchr(path + length + 1, '/');
    }
    return count;
}

bool tni_registry_folder(const tni_registry *registry, size_t index, const char **path, bool *opened,
                         size_t *files)
{
    tni_registry *r = (tni_registry *)registry; /* for the lock */
    const tni_folder *f;

    if (index >= r->folders.count)
        return false;
    f = tni_vec_at(&r->folders, index);
    *path = f->path;
    *opened = f->opened;
    tni_mutex_lock(&r->lock);
    *files = files_in(r, f->path);
    tni_mutex_unlock(&r->lock);
    return true;
}
