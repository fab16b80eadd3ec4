/*
 * Writing files so that a reader, or a machine that loses power, sees the old file or the new one and nothing
 * else: a temporary file beside the target, fsync, rename, fsync of the folder. The first failure sticks.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

#define WRITE_BUFFER_BYTES (64u << 10)
#define NAMES_TRIED_MAX 100 /* left-overs of killed processes with our id */

struct tni_writer {
    int fd;
    char *path, *temporary;
    unsigned char *buffer;
    size_t used;
    bool synced; /* all that was written is on the disk */
    tn_status status;
    tn_err error; /* of the failure that stuck */
};

static atomic_uint temporaries;

static tn_status io_error(const char *path, const char *what)
{
    char text[128];
    int error = errno;

    return tni_error(TN_E_IO, "%s: cannot %s: %s", path, what, strerror_r(error, text, sizeof text));
}

static tn_status writer_fail(tni_writer *w, tn_status st)
{
    w->status = st;
    tni_error_get(&w->error);
    return st;
}

static void writer_free(tni_writer *w)
{
    if (w->fd >= 0)
        close(w->fd);
    tni_free(w->path);
    tni_free(w->temporary);
    tni_free(w->buffer);
    tni_free(w);
}

void tni_writer_abandon(tni_writer *w)
{
    if (!w)
        return;
    if (w->fd >= 0)
        unlink(w->temporary);
    writer_free(w);
}

static tn_status temporary_open(tni_writer *w)
{
    size_t size = strlen(w->path) + 48;

    w->temporary = tni_alloc(size);
    if (!w->temporary)
        return TN_E_NOMEM;
    for (int i = 0; i < NAMES_TRIED_MAX; i++) {
        snprintf(w->temporary, size, "%s.tmp-%ld-%u", w->path, (long)getpid(),
                 atomic_fetch_add(&temporaries, 1));
        w->fd = open(w->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (w->fd >= 0)
            return TN_OK;
        if (errno != EEXIST)
            break;
    }
    return io_error(w->path, "create");
}

tn_status tni_writer_open(const char *path, tni_writer **out)
{
    tni_writer *w;
    tn_status st;

    if (!path || !path[0])
        return tni_error(TN_E_ARG, "the path of a file is empty");
    w = tni_zalloc(sizeof *w);
    if (!w)
        return TN_E_NOMEM;
    w->fd = -1;
    w->path = tni_strdup(path);
    w->buffer = tni_alloc(WRITE_BUFFER_BYTES);
    st = w->path && w->buffer ? temporary_open(w) : TN_E_NOMEM;
    if (st) {
        tni_writer_abandon(w);
        return st;
    }
    *out = w;
    return TN_OK;
}

static tn_status write_through(tni_writer *w, const unsigned char *bytes, uint64_t count)
{
    tn_status st = tni_failpoint("writer_write");

    if (st)
        return writer_fail(w, st);
    while (count > 0) {
        ssize_t n = write(w->fd, bytes, count < (1u << 30) ? count : 1u << 30);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return writer_fail(w, io_error(w->path, "write"));
        bytes += n;
        count -= (uint64_t)n;
    }
    return TN_OK;
}

static tn_status writer_flush(tni_writer *w)
{
    size_t used = w->used;

    w->used = 0;
    return used ? write_through(w, w->buffer, used) : TN_OK;
}

tn_status tni_writer_write(tni_writer *w, const void *bytes, uint64_t count)
{
    tn_status st;

    if (w->status) {
        tni_error_set(&w->error);
        return w->status;
    }
    if (count > WRITE_BUFFER_BYTES - w->used) {
        w->synced = false;
        st = writer_flush(w);
        if (st || count >= WRITE_BUFFER_BYTES)
            return st ? st : write_through(w, bytes, count);
    }
    if (count)
        memcpy(w->buffer + w->used, bytes, count);
    w->used += count;
    w->synced = false;
    return TN_OK;
}

tn_status tni_writer_sync(tni_writer *w)
{
    tn_status st = w->status;

    if (st) {
        tni_error_set(&w->error);
        return st;
    }
    if (w->synced)
        return TN_OK;
    if ((st = writer_flush(w)))
        return st;
    if ((st = tni_failpoint("writer_sync")))
        return writer_fail(w, st);
    if (fsync(w->fd)) /* what it lost will not come back: never tried again */
        return writer_fail(w, io_error(w->path, "sync"));
    w->synced = true;
    return TN_OK;
}

/* File systems that cannot sync a folder say EINVAL; there is nothing more to do there. */
tn_status tni_folder_sync(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? tni_strndup(path, slash == path ? 1 : (size_t)(slash - path)) : tni_strdup(".");
    tn_status st = TN_OK;
    int fd;

    if (!folder)
        return TN_E_NOMEM;
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || (fsync(fd) && errno != EINVAL && errno != EROFS))
        st = io_error(folder, "sync");
    if (fd >= 0)
        close(fd);
    tni_free(folder);
    return st;
}

static tn_status writer_finish(tni_writer *w)
{
    tn_status st = tni_writer_sync(w);
    int fd = w->fd;

    if (st)
        return st;
    w->fd = -1;
    if (close(fd)) {
        st = io_error(w->path, "close");
    } else if (!(st = tni_failpoint("writer_rename")) && rename(w->temporary, w->path)) {
        st = io_error(w->path, "rename the temporary file to");
    }
    if (st) {
        unlink(w->temporary);
        return st;
    }
    st = tni_failpoint("writer_renamed");
    return st ? st : tni_folder_sync(w->path);
}

tn_status tni_writer_commit(tni_writer *w)
{
    tn_status st = writer_finish(w);

    tni_writer_abandon(w);
    return st;
}

tn_status tni_file_write_all(const char *path, const void *bytes, uint64_t count)
{
    tni_writer *w;
    tn_status st = tni_writer_open(path, &w);

    if (st)
        return st;
    st = tni_writer_write(w, bytes, count);
    if (st) {
        tni_writer_abandon(w);
        return st;
    }
    return tni_writer_commit(w);
}

tn_status tni_folder_create(const char *path)
{
    char *copy;
    struct stat info;
    tn_status st = TN_OK;

    if (!path || !path[0])
        return tni_error(TN_E_ARG, "the path of a folder is empty");
    copy = tni_strdup(path);
    if (!copy)
        return TN_E_NOMEM;
    for (char *at = copy + 1; !st; at++) {
        char kept = *at;

        if (kept != '/' && kept != '\0')
            continue;
        *at = '\0';
        if (mkdir(copy, 0777) && errno != EEXIST && (stat(copy, &info) || !S_ISDIR(info.st_mode)))
            st = io_error(copy, "create");
        *at = kept;
        if (kept == '\0')
            break;
    }
    if (!st && (stat(copy, &info) || !S_ISDIR(info.st_mode)))
        st = tni_error(TN_E_IO, "%s exists and is not a folder", path);
    tni_free(copy);
    return st;
}

bool tni_file_exists(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0;
}

tn_status tni_path_join(const char *a, const char *b, char **out)
{
    size_t length = strlen(a);
    tni_str s;
    tn_status st;

    tni_str_init(&s, TN_PATH_BYTES_MAX);
    if (b[0] != '/' && length) {
        tni_str_add(&s, a);
        if (a[length - 1] != '/')
            tni_str_add(&s, "/");
    }
    tni_str_add(&s, b);
    st = tni_str_take(&s, out);
    tni_str_fini(&s);
    return st;
}
