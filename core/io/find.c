/*
 * Where a data set lies: a folder of its name in data.path, below the installation (found from where
 * libtenon.so lies, so that it may be moved), or in examples/data.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <string.h>
#include <sys/stat.h>

#include "io/io.h"

#if !defined(TN_DATA_FROM_LIB)
#define TN_DATA_FROM_LIB "../share/tenon/data"
#endif

static bool folder_is(const char *path)
{
    struct stat s;

    return stat(path, &s) == 0 && S_ISDIR(s.st_mode);
}

/* True: found, and `*path` is the caller's; `*st` is not TN_OK if there was no memory for it. */
static bool look_in(const char *folder, const char *name, tni_str *searched, char **path, tn_status *st)
{
    char *full = NULL;

    if ((*st = tni_path_join(folder, name, &full)))
        return true;
    if (folder_is(full)) {
        *path = full;
        return true;
    }
    (void)tni_str_addf(searched, "%s%s", searched->length ? ", " : "", full);
    tni_free(full);
    return false;
}

/* <folder of libtenon.so>/TN_DATA_FROM_LIB; false where it is linked into a program. */
static bool installed_folder(char *out, size_t size)
{
    const char *slash;
    Dl_info info;
    int length;

    if (!dladdr((const void *)(uintptr_t)&tni_data_find, &info) || !info.dli_fname ||
        !(slash = strrchr(info.dli_fname, '/')))
        return false;
    length = snprintf(out, size, "%.*s/%s", (int)(slash - info.dli_fname), info.dli_fname, TN_DATA_FROM_LIB);
    return length > 0 && (size_t)length < size;
}

#define NAMES_MAX 64 /* data sets that are compared with a wrong name */

/* The folders below `folder`, up to NAMES_MAX in all. */
static void names_add(const char *folder, char names[NAMES_MAX][64], size_t *count)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;

    while (dir && *count < NAMES_MAX && (entry = readdir(dir)))
        if (entry->d_name[0] != '.' && (entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN) &&
            strlen(entry->d_name) < 64)
            (void)strcpy(names[(*count)++], entry->d_name);
    if (dir)
        (void)closedir(dir);
}

/* What was meant: a folder of this name that is here, or a data set of a similar one. */
static tn_status absent(const tni_options *options, const char *name, const char *searched)
{
    char names[NAMES_MAX][64], folder[TN_PATH_BYTES_MAX], text[300] = "";
    const char *list[NAMES_MAX + 1];
    size_t count = 0;

    if (folder_is(name)) {
        (void)snprintf(text, sizeof text, "; the folder of this name here is ./%.60s", name);
    } else {
        for (size_t i = 0; i < tni_option_list_count(options, "data.path"); i++)
            if (!tni_option_list_item(options, "data.path", i, folder, sizeof folder))
                names_add(folder, names, &count);
        if (installed_folder(folder, sizeof folder))
            names_add(folder, names, &count);
        names_add("examples/data", names, &count);
        for (size_t i = 0; i < count; i++)
            list[i] = names[i];
        list[count] = NULL;
        tni_suggest_text(name, list, text, sizeof text);
    }
    return tni_error(TN_E_KEY, "no data set %.60s%s%s searched %.300s", name, text,
                     text[0] && text[strlen(text) - 1] == '?' ? "" : ";", searched);
}

tn_status tni_data_find(const tni_options *options, const char *name, char **path)
{
    const size_t count = tni_option_list_count(options, "data.path");
    char folder[TN_PATH_BYTES_MAX];
    tni_str searched;
    tn_status st = TN_OK;

    if (strchr(name, '/')) {
        if (!folder_is(name))
            return tni_error(TN_E_KEY, "there is no folder %.300s", name);
        return (*path = tni_strdup(name)) ? TN_OK : TN_E_NOMEM;
    }
    if (!*name || *name == '.')
        return tni_error(TN_E_KEY, "\"%.60s\" is no name of a data set", name);
    tni_str_init(&searched, 4096);
    for (size_t i = 0; i < count; i++)
        if ((st = tni_option_list_item(options, "data.path", i, folder, sizeof folder)) ||
            look_in(folder, name, &searched, path, &st))
            goto cleanup;
    if ((installed_folder(folder, sizeof folder) && look_in(folder, name, &searched, path, &st)) ||
        look_in("examples/data", name, &searched, path, &st))
        goto cleanup;
    st = absent(options, name, searched.text ? searched.text : "");

cleanup:
    tni_str_fini(&searched);
    return st;
}
