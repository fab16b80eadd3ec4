/*
 * Output of many processes on one stream, line by line.
 *
 * A line is passed on whole, with the rank in it (JSON) or in front. One that is longer than LINE_MAX_BYTES
 * goes out in pieces and holds the stream until it ends: no other line gets into it. Nothing is dropped and
 * memory is bounded: where the reader of the stream is slow, a full sink stops the reading of the processes'
 * pipes.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launch.h"

#define LINE_MAX_BYTES (1u << 20)
#define LINE_FIRST_BYTES 16384u
#define SINK_MAX_BYTES (1u << 18) /* from here on nothing is read for it */
#define TAIL_BYTES 4096u
#define TAIL_LINES 10

/* ---- sinks ---- */

void launch_sink_init(launch_sink *s, int fd)
{
    struct stat is;

    /* A pipe or a terminal that is ready takes as much as PIPE_BUF without waiting; files never wait. */
    *s = (launch_sink){.fd = fd, .piece = PIPE_BUF};
    if (!fstat(fd, &is) && S_ISREG(is.st_mode))
        s->piece = SINK_MAX_BYTES;
}

bool launch_sink_pending(const launch_sink *s)
{
    return s->end > s->begin;
}

bool launch_sink_full(const launch_sink *s)
{
    return s->end - s->begin >= SINK_MAX_BYTES;
}

static void sink_fail(launch_sink *s, int why)
{
    s->error = why;
    s->begin = s->end = 0;
}

void launch_sink_put(launch_sink *s, const char *bytes, size_t count)
{
    if (s->error)
        return;
    if (s->begin && s->room - s->end < count) {
        memmove(s->bytes, s->bytes + s->begin, s->end - s->begin);
        s->end -= s->begin;
        s->begin = 0;
    }
    if (s->room - s->end < count) {
        size_t room = s->room ? s->room : LINE_FIRST_BYTES;
        char *more;

        while (room - s->end < count)
            room *= 2;
        if (!(more = realloc(s->bytes, room))) {
            sink_fail(s, ENOMEM);
            return;
        }
        s->bytes = more;
        s->room = room;
    }
    memcpy(s->bytes + s->end, bytes, count);
    s->end += count;
}

static void write_once(launch_sink *s)
{
    const size_t count = s->end - s->begin < s->piece ? s->end - s->begin : s->piece;
    const ssize_t n = write(s->fd, s->bytes + s->begin, count);

    if (n < 0 && errno != EINTR && errno != EAGAIN)
        sink_fail(s, errno);
    else if (n > 0)
        s->begin += (size_t)n;
    if (s->begin == s->end)
        s->begin = s->end = 0;
}

static bool sink_ready(const launch_sink *s, int timeout)
{
    struct pollfd ready = {s->fd, POLLOUT, 0};

    return poll(&ready, 1, timeout) > 0;
}

void launch_sink_flush(launch_sink *s)
{
    for (int i = 0; i < 64 && launch_sink_pending(s) && sink_ready(s, 0); i++)
        write_once(s);
}

void launch_sink_end(launch_sink *s)
{
    launch_sink_release(s);
    while (launch_sink_pending(s))
        if (sink_ready(s, -1))
            write_once(s);
    free(s->bytes);
    s->bytes = NULL;
    s->room = 0;
}

void launch_sink_say(launch_sink *s, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    int length;

    va_start(args, format);
    length = vasprintf(&text, format, args);
    va_end(args);
    if (length < 0)
        return;
    launch_sink_release(s);
    launch_sink_put(s, text, (size_t)length);
    free(text);
}

void launch_sink_release(launch_sink *s)
{
    if (!s->holder)
        return;
    s->holder->held = false;
    s->holder = NULL;
    launch_sink_put(s, "\n", 1);
}

/* ---- logs ---- */

static void log_write(launch_log *log, const char *bytes, size_t count)
{
    while (log->fd >= 0 && count && !log->error) {
        const ssize_t n = write(log->fd, bytes, count);

        if (n < 0 && errno != EINTR)
            log->error = errno;
        if (n > 0) {
            bytes += n;
            count -= (size_t)n;
        }
    }
}

/* Keeps the last TAIL_BYTES. */
static void tail_put(launch_log *log, const char *bytes, size_t count)
{
    size_t spare;

    if (!log->tail && !(log->tail = malloc(TAIL_BYTES)))
        return;
    if (count > TAIL_BYTES) {
        bytes += count - TAIL_BYTES;
        count = TAIL_BYTES;
    }
    spare = TAIL_BYTES - log->tail_used;
    if (count > spare) {
        memmove(log->tail, log->tail + (count - spare), log->tail_used - (count - spare));
        log->tail_used -= count - spare;
    }
    memcpy(log->tail + log->tail_used, bytes, count);
    log->tail_used += count;
}

static void log_put(launch_log *log, const char *bytes, size_t count, bool end)
{
    log_write(log, bytes, count);
    tail_put(log, bytes, count);
    if (end) {
        log_write(log, "\n", 1);
        tail_put(log, "\n", 1);
    }
}

/* The next of the last lines from *at on; false: no more. The first one may have lost its beginning. */
static bool tail_next(const launch_log *log, size_t *at, const char **line, size_t *length)
{
    const char *end;

    if (*at >= log->tail_used)
        return false;
    *line = log->tail + *at;
    end = memchr(*line, '\n', log->tail_used - *at);
    *length = end ? (size_t)(end - *line) : log->tail_used - *at;
    *at += *length + 1;
    return true;
}

static size_t tail_begin(const launch_log *log)
{
    size_t at = log->tail_used;

    for (int lines = 0; at; at--)
        if (log->tail[at - 1] == '\n' && lines++ == TAIL_LINES)
            break;
    return at;
}

void launch_log_show(const launch_log *log, launch_sink *sink)
{
    const char *line;
    size_t at = tail_begin(log), length;

    while (tail_next(log, &at, &line, &length)) {
        launch_sink_put(sink, "  | ", 4);
        launch_sink_put(sink, line, length);
        launch_sink_put(sink, "\n", 1);
    }
}

/* Of bytes that need not be text: those of no UTF-8 become '?'. */
static json_t *text_of(const char *bytes, size_t count)
{
    json_t *text = json_stringn(bytes, count);
    char *copy = text ? NULL : malloc(count + 1);

    if (!copy)
        return text;
    for (size_t i = 0; i < count; i++)
        copy[i] = (unsigned char)bytes[i] < 0x80 ? bytes[i] : '?';
    text = json_stringn(copy, count);
    free(copy);
    return text;
}

json_t *launch_log_lines(const launch_log *log)
{
    json_t *lines = json_array();
    const char *line;
    size_t at = tail_begin(log), length;

    while (tail_next(log, &at, &line, &length))
        (void)json_array_append_new(lines, text_of(line, length));
    return lines;
}

/* ---- streams ---- */

bool launch_stream_ready(const launch_stream *s)
{
    return s->fd >= 0 && !launch_sink_full(s->sink) && (!s->sink->holder || s->sink->holder == s);
}

/* A JSON object gets the rank as its last member; its own text stays as it is. */
static bool json_put(const launch_stream *s, const char *line, size_t length)
{
    char rank[32];
    json_t *object;
    bool put = false;

    while (length && (line[length - 1] == '\r' || line[length - 1] == ' '))
        length--;
    if (length < 2 || *line != '{' || line[length - 1] != '}')
        return false;
    object = json_loadb(line, length, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
    if (json_is_object(object)) {
        (void)snprintf(rank, sizeof rank, "%s\"rank\": %u", json_object_size(object) ? ", " : "", s->rank);
        launch_sink_put(s->sink, line, length - 1);
        if (!json_object_get(object, "rank"))
            launch_sink_put(s->sink, rank, strlen(rank));
        launch_sink_put(s->sink, "}\n", 2);
        put = true;
    }
    json_decref(object);
    return put;
}

static void object_put(const launch_stream *s, const char *line, size_t length)
{
    json_t *object = json_pack("{s:o, s:I}", "text", text_of(line, length), "rank", (json_int_t)s->rank);
    char *text = object ? json_dumps(object, 0) : NULL;

    if (text)
        launch_sink_say(s->sink, "%s\n", text);
    free(text);
    json_decref(object);
}

static void line_put(launch_stream *s, const char *line, size_t length)
{
    log_put(s->log, line, length, true);
    if (s->held) {
        launch_sink_put(s->sink, line, length);
        launch_sink_put(s->sink, "\n", 1);
        s->held = false;
        s->sink->holder = NULL;
        return;
    }
    if (s->rank != LAUNCH_NO_RANK && json_put(s, line, length))
        return;
    if (s->only_json) {
        object_put(s, line, length);
        return;
    }
    if (!s->raw)
        launch_sink_put(s->sink, s->prefix, strlen(s->prefix));
    launch_sink_put(s->sink, line, length);
    launch_sink_put(s->sink, "\n", 1);
}

/* The beginning of a line that is too long to be kept. */
static void piece_put(launch_stream *s)
{
    log_put(s->log, s->line, s->used, false);
    if (!s->held && !s->raw)
        launch_sink_put(s->sink, s->prefix, strlen(s->prefix));
    launch_sink_put(s->sink, s->line, s->used);
    s->held = true;
    s->sink->holder = s;
    s->used = 0;
}

static bool room_make(launch_stream *s)
{
    char *more;

    if (s->used < s->room)
        return true;
    if (s->room >= LINE_MAX_BYTES)
        return false;
    more = realloc(s->line, s->room ? 2 * s->room : LINE_FIRST_BYTES);
    if (!more)
        return false;
    s->line = more;
    s->room = s->room ? 2 * s->room : LINE_FIRST_BYTES;
    return true;
}

void launch_stream_close(launch_stream *s)
{
    if (s->fd < 0)
        return;
    (void)close(s->fd);
    s->fd = -1;
    if (s->used || s->held)
        line_put(s, s->line, s->used);
    free(s->line);
    s->line = NULL;
    s->used = s->room = 0;
}

void launch_stream_read(launch_stream *s, bool last)
{
    size_t begin = 0;
    const char *end;
    ssize_t n;

    if (!room_make(s)) { /* there is not even memory for the first bytes */
        sink_fail(s->sink, ENOMEM);
        launch_stream_close(s);
        return;
    }
    n = read(s->fd, s->line + s->used, s->room - s->used);
    if (n < 0 && errno != EINTR && (errno != EAGAIN || last))
        n = 0;
    if (!n)
        launch_stream_close(s);
    if (n <= 0)
        return;
    for (size_t at = s->used; (end = memchr(s->line + at, '\n', s->used + (size_t)n - at)); at = begin) {
        const size_t stop = (size_t)(end - s->line);

        line_put(s, s->line + begin, stop - begin);
        begin = stop + 1;
    }
    s->used += (size_t)n - begin;
    memmove(s->line, s->line + begin, s->used);
    if (s->held || !room_make(s))
        piece_put(s);
}
