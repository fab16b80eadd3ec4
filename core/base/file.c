/*
 * Reading files. A file is regular, its size known when it is opened; a .gz is bounded by what its caller
 * allows and by what deflate can make of the bytes that are left, so tni_file_left never promises more than
 * the file backs.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/base.h"

#define BUFFER_BYTES (64u << 10)
#define DEFLATE_RATIO_MAX 1032u /* zlib's technical notes: 1032 bytes out per byte in is the most */
#define GZ_HEAD_BYTES 2u

struct tni_file {
    int fd; /* -1: memory */
    char *name;
    const unsigned char *memory;
    uint64_t size, at; /* of the source: the file as it lies, or the memory */
    bool inflating, stream_open, stream_end;
    z_stream z;
    uint64_t max_bytes, produced; /* of the inflated bytes */
    uint64_t first, last;         /* unread part of buffer */
    unsigned char *buffer;
    unsigned char head[TNI_KIND_BYTES]; /* the first bytes that were handed out */
    uint32_t head_bytes, head_max;      /* head_max: fewer once bytes were skipped */
};

static const char *system_text(int error, char *buffer, size_t size)
{
    return strerror_r(error, buffer, size);
}

static tn_status io_error(const char *name, const char *what)
{
    char text[128];
    int error = errno;

    return tni_error_number(error == ENOENT || error == ENOTDIR ? TNI_ABSENT : 0, TN_E_IO,
                            "%s: cannot %s: %s", name, what, system_text(error, text, sizeof text));
}

static void *z_alloc(void *unused, unsigned count, unsigned bytes)
{
    (void)unused;
    return tni_calloc(count, bytes);
}

static void z_free(void *unused, void *p)
{
    (void)unused;
    tni_free(p);
}

void tni_file_close(tni_file *f)
{
    if (!f)
        return;
    if (f->stream_open)
        inflateEnd(&f->z);
    if (f->fd >= 0)
        close(f->fd);
    tni_free(f->buffer);
    tni_free(f->name);
    tni_free(f);
}

static tn_status file_create(const char *name, tni_file **out)
{
    tni_file *f = tni_zalloc(sizeof *f);

    if (!f)
        return TN_E_NOMEM;
    f->fd = -1;
    f->head_max = TNI_KIND_BYTES;
    f->name = tni_strdup(name);
    if (!f->name) {
        tni_file_close(f);
        return TN_E_NOMEM;
    }
    *out = f;
    return TN_OK;
}

tn_status tni_file_open(const char *path, tni_file **out)
{
    tni_file *f = NULL;
    struct stat info;
    tn_status st;

    if (!path || !path[0])
        return tni_error(TN_E_ARG, "the path of a file is empty");
    st = tni_failpoint("file_open");
    if (st || (st = file_create(path, &f)))
        return st;
    f->buffer = tni_alloc(BUFFER_BYTES);
    f->fd = f->buffer ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
                      : -1; /* a pipe without a writer may not hang us */
    if (!f->buffer)
        st = TN_E_NOMEM;
    else if (f->fd < 0 || fstat(f->fd, &info))
        st = io_error(path, "open");
    else if (!S_ISREG(info.st_mode))
        st = tni_error(TN_E_IO, "%s is not a regular file", path);
    if (st) {
        tni_file_close(f);
        return st;
    }
    f->size = (uint64_t)info.st_size;
    *out = f;
    return TN_OK;
}

tn_status tni_file_open_memory(const void *bytes, uint64_t count, tni_file **out)
{
    tni_file *f;
    tn_status st = file_create("(memory)", &f);

    if (st)
        return st;
    f->memory = bytes;
    f->size = count;
    *out = f;
    return TN_OK;
}

/* Reads at most `bytes` as they lie in the file. */
static tn_status source_read(tni_file *f, void *out, uint64_t bytes, uint64_t *got)
{
    uint64_t left = f->size - f->at;
    uint64_t want = bytes < left ? bytes : left;
    ssize_t n = 0;
    tn_status st;

    *got = 0;
    if (want == 0)
        return TN_OK;
    if (f->fd < 0) {
        memcpy(out, f->memory + f->at, want);
        n = (ssize_t)want;
    } else {
        st = tni_failpoint("file_read");
        if (st)
            return st;
        do
            n = read(f->fd, out, want < (1u << 30) ? want : 1u << 30);
        while (n < 0 && errno == EINTR);
        if (n < 0)
            return io_error(f->name, "read");
    }
    if (n == 0)
        f->size = f->at; /* cut while it was read */
    f->at += (uint64_t)n;
    *got = (uint64_t)n;
    return TN_OK;
}

static tn_status buffer_fill(tni_file *f)
{
    f->first = 0;
    f->last = 0;
    return source_read(f, f->buffer, BUFFER_BYTES, &f->last);
}

/* Takes bytes from the buffer and the source; large reads of a plain file go around the buffer. */
static tn_status plain_read(tni_file *f, void *out, uint64_t bytes, uint64_t *got)
{
    tn_status st = TN_OK;

    if (f->first == f->last) {
        if (f->fd < 0 || bytes >= BUFFER_BYTES)
            return source_read(f, out, bytes, got);
        st = buffer_fill(f);
    }
    *got = bytes < f->last - f->first ? bytes : f->last - f->first;
    if (*got)
        memcpy(out, f->buffer + f->first, *got);
    f->first += *got;
    return st;
}

/* A member of a .gz has ended: another one follows, or the file is at its end. */
static tn_status gz_next_member(tni_file *f, bool *end)
{
    tn_status st = f->z.avail_in == 0 ? buffer_fill(f) : TN_OK;

    if (st)
        return st;
    if (f->z.avail_in == 0) {
        f->z.next_in = f->buffer;
        f->z.avail_in = (unsigned)f->last;
    }
    *end = f->z.avail_in == 0;
    if (!*end && inflateReset(&f->z) != Z_OK)
        return tni_error(TN_E_INTERNAL, "%s: inflate cannot be reset", f->name);
    f->stream_end = *end;
    return TN_OK;
}

static tn_status gz_read(tni_file *f, void *out, uint64_t bytes, uint64_t *got)
{
    unsigned want = bytes < (1u << 30) ? (unsigned)bytes : 1u << 30;
    tn_status st = TN_OK;

    *got = 0;
    f->z.next_out = out;
    f->z.avail_out = want;
    while (want && f->z.avail_out == want && !f->stream_end) {
        int code;

        if (f->z.avail_in == 0) {
            st = buffer_fill(f);
            f->z.next_in = f->buffer;
            f->z.avail_in = (unsigned)f->last;
        }
        if (!st && f->z.avail_in == 0)
            st = tni_error(TN_E_FORMAT, "%s: the gzip data ends too early", f->name);
        if (st)
            return st;
        code = inflate(&f->z, Z_NO_FLUSH);
        if (code == Z_STREAM_END) {
            bool end;

            st = gz_next_member(f, &end);
        } else if (code == Z_MEM_ERROR) {
            st = TN_E_NOMEM;
        } else if (code != Z_OK) {
            st = tni_error(TN_E_FORMAT, "%s: damaged gzip data after %llu bytes: %s", f->name,
                           (unsigned long long)f->produced, f->z.msg ? f->z.msg : "bad stream");
        }
        if (st)
            return st;
    }
    *got = want - f->z.avail_out;
    f->produced += *got;
    if (f->produced > f->max_bytes)
        return tni_error(TN_E_FORMAT, "%s: inflates to more than the %llu bytes allowed", f->name,
                         (unsigned long long)f->max_bytes);
    return TN_OK;
}

tn_status tni_file_open_gz(const char *path, uint64_t max_bytes, tni_file **out)
{
    tni_file *f = NULL;
    tn_status st = tni_file_open(path, &f);

    if (st)
        return st;
    f->max_bytes = max_bytes;
    st = buffer_fill(f);
    f->inflating = !st && f->last >= GZ_HEAD_BYTES && f->buffer[0] == 0x1f && f->buffer[1] == 0x8b;
    if (f->inflating) {
        f->z = (z_stream){
            .zalloc = z_alloc, .zfree = z_free, .next_in = f->buffer, .avail_in = (unsigned)f->last};
        if (inflateInit2(&f->z, 15 + 16) == Z_OK)
            f->stream_open = true;
        else
            st = TN_E_NOMEM;
    } else if (!st && f->size > max_bytes) {
        st = tni_error(TN_E_FORMAT, "%s has %llu bytes, but at most %llu are allowed", path,
                       (unsigned long long)f->size, (unsigned long long)max_bytes);
    }
    if (st) {
        tni_file_close(f);
        return st;
    }
    *out = f;
    return TN_OK;
}

tn_status tni_file_read_some(tni_file *f, void *out, uint64_t bytes, uint64_t *got)
{
    const tn_status st = f->inflating ? gz_read(f, out, bytes, got) : plain_read(f, out, bytes, got);

    if (!st && f->head_bytes < f->head_max && *got) {
        const uint64_t room = f->head_max - f->head_bytes, count = *got < room ? *got : room;

        memcpy(f->head + f->head_bytes, out, count);
        f->head_bytes += (uint32_t)count;
    }
    return st;
}

tn_status tni_file_read(tni_file *f, void *out, uint64_t bytes)
{
    unsigned char *to = out;

    while (bytes > 0) {
        uint64_t got;
        tn_status st = tni_file_read_some(f, to, bytes, &got);

        if (st)
            return st;
        if (got == 0)
            return tni_error(TN_E_FORMAT, "%s ends %llu bytes too early", f->name, (unsigned long long)bytes);
        to += got;
        bytes -= got;
    }
    return TN_OK;
}

tn_status tni_file_read_at(const tni_file *f, uint64_t at, void *out, uint64_t bytes)
{
    unsigned char *to = out;
    ssize_t n = 0;
    tn_status st;

    for (uint64_t got = 0; got < bytes; got += (uint64_t)n) {
        const uint64_t want = bytes - got < (1u << 30) ? bytes - got : 1u << 30;

        if ((st = tni_failpoint("file_read")))
            return st;
        do
            n = pread(f->fd, to + got, want, (off_t)(at + got));
        while (n < 0 && errno == EINTR);
        if (n < 0)
            return io_error(f->name, "read");
        if (n == 0)
            return tni_error(TN_E_FORMAT, "%s ends %llu bytes too early", f->name,
                             (unsigned long long)(bytes - got));
    }
    return TN_OK;
}

tn_status tni_file_skip(tni_file *f, uint64_t bytes)
{
    unsigned char sink[4096];

    if (!f->inflating && bytes > tni_file_left(f))
        return tni_error(TN_E_FORMAT, "%s ends %llu bytes too early", f->name,
                         (unsigned long long)(bytes - tni_file_left(f)));
    if (!f->inflating && bytes > f->last - f->first) {
        uint64_t jump = bytes - (f->last - f->first);

        f->head_max = f->head_bytes; /* what follows is not the beginning */
        if (f->fd >= 0 && lseek(f->fd, (off_t)(f->at + jump), SEEK_SET) < 0)
            return io_error(f->name, "seek");
        f->at += jump;
        f->first = f->last = 0;
        return TN_OK;
    }
    while (bytes > 0) {
        uint64_t step = bytes < sizeof sink ? bytes : sizeof sink;
        tn_status st = tni_file_read(f, sink, step);

        if (st)
            return st;
        bytes -= step;
    }
    return TN_OK;
}

uint64_t tni_file_left(const tni_file *f)
{
    uint64_t packed = f->size - f->at;
    uint64_t allowed, backed;

    if (!f->inflating)
        return packed + (f->last - f->first);
    if (f->stream_end)
        return 0;
    allowed = f->max_bytes - (f->produced < f->max_bytes ? f->produced : f->max_bytes);
    /* 32 KiB: what the inflater holds and has not handed out */
    backed = (packed + f->z.avail_in) * DEFLATE_RATIO_MAX + (32u << 10);
    return backed < allowed ? backed : allowed;
}

const char *tni_file_name(const tni_file *f)
{
    return f->name;
}

tn_status tni_file_kind_check(tni_file *f, const char *wanted)
{
    unsigned char sink[TNI_KIND_BYTES];
    uint64_t got = 1;

    while (f->head_bytes < f->head_max && got)
        if (tni_file_read_some(f, sink, f->head_max - f->head_bytes, &got))
            got = 0; /* what came before tells enough, or nothing */
    return tni_kind_check(f->name, wanted, f->head, f->head_bytes);
}

tn_status tni_file_read_all(const char *path, uint64_t max_bytes, char **out, uint64_t *bytes)
{
    tni_file *f = NULL;
    char *text = NULL;
    uint64_t size;
    tn_status st = tni_file_open(path, &f);

    if (st)
        return st;
    size = f->size;
    if (size > max_bytes)
        st = tni_error(TN_E_FORMAT, "%s has %llu bytes, but at most %llu are allowed", path,
                       (unsigned long long)size, (unsigned long long)max_bytes);
    else if (!(text = tni_alloc(size + 1)))
        st = TN_E_NOMEM;
    else
        st = tni_file_read(f, text, size);
    tni_file_close(f);
    if (st) {
        tni_free(text);
        return st;
    }
    text[size] = '\0';
    *out = text;
    if (bytes)
        *bytes = size;
    return TN_OK;
}
