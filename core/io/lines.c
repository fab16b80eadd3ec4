/* Text files line by line, plain or gzip, or from memory. One line is held, with its number for messages. */
#include "io/internal.h"

#define LINE_BYTES_MAX ((uint64_t)4 << 20)
#define CHUNK_BYTES (64u << 10)

void tni_lines_close(tni_lines *r)
{
    tni_file_close(r->file);
    tni_free(r->chunk);
    tni_str_fini(&r->line);
}

static tn_status lines_start(tni_lines *r, const tni_origin *from)
{
    tn_status st;

    memset(r, 0, sizeof *r);
    r->name = from->name;
    tni_str_init(&r->line, LINE_BYTES_MAX);
    if ((st = from->bytes ? tni_file_open_memory(from->bytes, from->count, &r->file)
                          : tni_file_open_gz(from->name, TNI_TEXT_BYTES_MAX, &r->file)))
        return st;
    r->chunk = tni_alloc(CHUNK_BYTES);
    return r->chunk ? TN_OK : TN_E_NOMEM;
}

bool tni_lines_mine(const tni_lines *r)
{
    return (r->at > r->above || !r->above) && r->at <= r->upto;
}

tn_status tni_lines_open(tni_lines *r, const tni_origin *from)
{
    uint64_t step = UINT64_MAX;
    tn_status st = lines_start(r, from);

    if (!st && from->parts > 1) { /* its bytes are counted first */
        do
            st = tni_lines_next(r);
        while (!st && !r->end);
        if (st)
            return st;
        step = r->next / from->parts + (r->next % from->parts != 0);
        tni_lines_close(r);
        st = lines_start(r, from);
    }
    r->above = step * from->part;
    r->upto = step * (from->part + (uint64_t)1);
    return st;
}

static tn_status line_add(tni_lines *r, uint64_t count)
{
    if (r->line.length + count > LINE_BYTES_MAX)
        return tni_error(TN_E_FORMAT, "%s:%llu: a line of more than %llu bytes", r->name,
                         (unsigned long long)r->number, (unsigned long long)LINE_BYTES_MAX);
    if (memchr(r->chunk + r->first, 0, count))
        return tni_error(TN_E_FORMAT, "%s:%llu: a NUL: this is no text", r->name,
                         (unsigned long long)r->number);
    return tni_str_add_bytes(&r->line, r->chunk + r->first, count);
}

/* What some programs write before the first line is no part of it, also where nothing else stands there. */
static void byte_order_drop(tni_lines *r)
{
    static const char mark[] = "\xef\xbb\xbf";
    const size_t size = sizeof mark - 1;

    if (r->line.length < size || memcmp(r->line.text, mark, size))
        return;
    r->line.length -= size;
    memmove(r->line.text, r->line.text + size, r->line.length);
}

tn_status tni_lines_next(tni_lines *r)
{
    bool any = false;
    tn_status st;

    r->line.length = 0;
    r->number++;
    r->at = r->next;
    for (;;) {
        const char *newline;
        uint64_t count;

        if (r->first == r->last) {
            r->first = 0;
            if ((st = tni_file_read_some(r->file, r->chunk, CHUNK_BYTES, &r->last)))
                return st;
            if (!r->last)
                break;
        }
        any = true;
        newline = memchr(r->chunk + r->first, '\n', r->last - r->first);
        count = newline ? (uint64_t)(newline - (r->chunk + r->first)) : r->last - r->first;
        if ((st = line_add(r, count)))
            return st;
        r->first += count + (newline != NULL);
        r->next += count + (newline != NULL);
        if (newline)
            break;
    }
    r->end = !any;
    if (r->number == 1)
        byte_order_drop(r);
    if (r->line.length && r->line.text[r->line.length - 1] == '\r')
        r->line.length--;
    return tni_str_add_bytes(&r->line, "", 0) ? TN_E_NOMEM : TN_OK;
}

bool tni_lines_blank(const tni_lines *r)
{
    for (size_t i = 0; i < r->line.length; i++)
        if (r->line.text[i] != ' ' && r->line.text[i] != '\t')
            return false;
    return true;
}
