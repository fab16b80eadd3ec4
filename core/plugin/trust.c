/*
 * Whose code may run here. A plugin and every folder above it must belong to root, to us or to the owner of
 * libtenon.so, and nobody else may write there. A sticky folder such as /tmp, in which everybody may create
 * but only owners may replace, passes if the component below it belongs to root or us. Paths come resolved,
 * without symbolic links, so what was checked is what dlopen opens.
 */
#include <errno.h>
#include <grp.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugin/internal.h"

#define GROUP_BYTES_MAX (1u << 20) /* a group with very many members */

static tn_status group_find(const char *name, gid_t *out)
{
    struct group group, *found = NULL;
    uint64_t number;
    int error = ERANGE;

    if (tni_parse_u64(name, &number) && number < UINT32_MAX) {
        *out = (gid_t)number;
        return TN_OK;
    }
    for (size_t size = 1024; error == ERANGE && size <= GROUP_BYTES_MAX; size *= 4) {
        char *buffer = tni_alloc(size);

        if (!buffer)
            return TN_E_NOMEM;
        error = getgrnam_r(name, &group, buffer, size, &found);
        if (found)
            *out = found->gr_gid;
        tni_free(buffer);
    }
    return found ? TN_OK : tni_error(TN_E_ARG, "plugins.trust_group = %.100s: there is no such group", name);
}

tn_status tni_trust_create(const tni_options *options, const char *library, tni_trust *out)
{
    const char *group = tni_option_text(options, "plugins.trust_group");
    struct stat info;
    tni_trust trust = {.check = !tni_str_equal(tni_option_text(options, "plugins.trust"), "off")};
    tn_status st = TN_OK;

    trust.owners[0] = 0;
    trust.owners[1] = geteuid();
    trust.owners[2] = library && stat(library, &info) == 0 ? info.st_uid : trust.owners[1];
    if (group[0]) {
        st = group_find(group, &trust.group);
        trust.has_group = !st;
    }
    if (!st)
        *out = trust;
    return st;
}

static bool owner_trusted(const tni_trust *t, uid_t owner)
{
    return owner == t->owners[0] || owner == t->owners[1] || owner == t->owners[2];
}

static bool others_may_write(const tni_trust *t, const struct stat *info)
{
    if (info->st_mode & S_IWOTH)
        return true;
    return (info->st_mode & S_IWGRP) && !(t->has_group && info->st_gid == t->group);
}

/* `below`: owner of the component beneath; a sticky folder is safe for what belongs to root or us. */
static tn_status component_check(const tni_trust *t, const char *path, const struct stat *info, uid_t below)
{
    bool sticky = (info->st_mode & S_ISVTX) && S_ISDIR(info->st_mode) &&
                  (below == t->owners[0] || below == t->owners[1]);

    if (!owner_trusted(t, info->st_uid))
        return tni_refuse(2, TN_E_STATE, "%s belongs to user %u", path, (unsigned)info->st_uid);
    if (others_may_write(t, info) && !sticky)
        return tni_refuse(2, TN_E_STATE, "%s may be written by %s (mode %04o)", path,
                          info->st_mode & S_IWOTH ? "everybody" : "its group",
                          (unsigned)info->st_mode & 07777u);
    return TN_OK;
}

/* Owner of a component that nobody trusted: no sticky folder above helps it. */
#define NOBODY ((uid_t)-1)

tn_status tni_trust_folder(const tni_trust *trust, const char *folder)
{
    char path[TN_PATH_BYTES_MAX];
    uid_t below = trust->owners[1]; /* what lies directly in `folder` is checked file by file */
    bool last = false;

    if (folder[0] != '/' || strlen(folder) >= sizeof path)
        return tni_refuse(1, TN_E_ARG, "%.200s is no absolute path", folder);
    snprintf(path, sizeof path, "%s", folder);
    for (bool first = true; !last; first = false) {
        struct stat info;
        char *slash = strrchr(path, '/');
        tn_status st;

        if (lstat(path, &info) || !S_ISDIR(info.st_mode))
            return tni_refuse(1, TN_E_ARG, "%.200s is no folder", path);
        /* The plugin folder itself may be sticky only for files that are ours: tni_trust_file
         * looks at them. */
        st = trust->check ? component_check(trust, path, &info, first ? NOBODY : below) : TN_OK;
        if (st)
            return st;
        below = info.st_uid;
        last = strcmp(path, "/") == 0;
        slash[slash == path] = '\0';
    }
    return TN_OK;
}

tn_status tni_trust_file(const tni_trust *trust, const char *path, int fd)
{
    struct stat info;

    if (fstat(fd, &info) || !S_ISREG(info.st_mode))
        return tni_refuse(1, TN_E_ARG, "%.200s is no regular file", path);
    return trust->check ? component_check(trust, path, &info, NOBODY) : TN_OK;
}
