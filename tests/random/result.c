/* What a run gave: a status for each stage and the values of arrays; and how two of them differ. */
#include "run.h"

#include <stdlib.h>
#include <string.h>

void fuzz_result_init(fuzz_result *r)
{
    memset(r->reached, 0, sizeof r->reached);
    memset(r->status, 0, sizeof r->status);
    memset(r->message, 0, sizeof r->message);
    r->part_count = 0;
    r->used = 0;
    r->wrong[0] = '\0';
}

void fuzz_result_fini(fuzz_result *r)
{
    free(r->bytes);
    r->bytes = NULL;
    r->room = 0;
}

void fuzz_result_wrong(fuzz_result *r, const char *format, ...)
{
    va_list args;

    if (r->wrong[0])
        return;
    va_start(args, format);
    vsnprintf(r->wrong, sizeof r->wrong, format, args);
    va_end(args);
}

/* Every failure has a text of one line; a broken invariant is never the caller's doing. */
void fuzz_result_status(fuzz_result *r, uint32_t stage, tn_status st)
{
    const char *text = tn_error_text();

    r->reached[stage] = true;
    if (!st || r->status[stage])
        return;
    r->status[stage] = st;
    snprintf(r->message[stage], sizeof r->message[stage], "%s", text);
    if (st == TN_E_INTERNAL)
        fuzz_result_wrong(r, "internal: %s", text);
    else if (!text[0] || strchr(text, '\n'))
        fuzz_result_wrong(r, "text: status %s with the text \"%s\"", tn_status_name(st), text);
    else if (st < 0 || st > TN_E_INTERNAL)
        fuzz_result_wrong(r, "text: an unknown status %d", st);
}

void fuzz_result_add(fuzz_result *r, uint32_t stage, uint32_t kind, uint32_t index, tn_array *a)
{
    fuzz_part *p = &r->parts[r->part_count];
    const int64_t *shape;
    uint8_t *bytes;
    tn_status st = tn_array_shape(a, &p->shape.ndim, &shape);

    if (st) {
        fuzz_result_status(r, stage, st);
        return;
    }
    memcpy(p->shape.dim, shape, (size_t)p->shape.ndim * sizeof *shape);
    p->kind = kind;
    p->index = index;
    p->dtype = tn_array_dtype(a);
    p->bytes = tn_array_bytes(a);
    p->at = r->used;
    if (r->used + p->bytes > r->room) {
        if (!(bytes = realloc(r->bytes, 2 * (r->used + p->bytes))))
            return;
        r->bytes = bytes;
        r->room = 2 * (r->used + p->bytes);
    }
    fuzz_result_status(r, stage, st = tn_array_read(a, r->bytes + p->at, p->bytes));
    if (st)
        return;
    r->used += p->bytes;
    r->part_count++;
}

/* ---- comparing ----------------------------------------------------------------------------------------- */

static const char *const stage_names[] = {"forward", "backward", "the second backward"};
static const char *const kind_names[] = {"head", "variable", "gradient", "second gradient"};

/* The caller's mistakes are one class: which of them is told first may differ. So are all failures of a
 * graph, where calls stop at the first node and a net infers all of them before it asks for kernels. */
static int status_class(tn_status st, bool one)
{
    if (!one)
        return st ? TN_E_ARG : TN_OK;
    switch (st) {
    case TN_E_ARG:
    case TN_E_SHAPE:
    case TN_E_DTYPE:
    case TN_E_ATTR:
    case TN_E_KEY:
        return TN_E_ARG;
    default:
        return st;
    }
}

static const fuzz_part *part_find(const fuzz_result *r, const fuzz_part *like)
{
    for (uint32_t i = 0; i < r->part_count; i++)
        if (r->parts[i].kind == like->kind && r->parts[i].index == like->index)
            return &r->parts[i];
    return NULL;
}

static uint64_t element_bits(const fuzz_result *r, const fuzz_part *p, uint64_t i, uint64_t size)
{
    uint64_t bits = 0;

    memcpy(&bits, r->bytes + p->at + i * size, size);
    return bits;
}

static bool part_differs(const fuzz_result *a, const fuzz_part *p, const fuzz_result *b, const fuzz_part *q,
                         char *text, size_t room)
{
    const uint64_t size = tn_dtype_bytes(p->dtype);

    if (p->dtype != q->dtype || p->shape.ndim != q->shape.ndim ||
        memcmp(p->shape.dim, q->shape.dim, (size_t)p->shape.ndim * sizeof *p->shape.dim)) {
        tni_str s, t;

        tni_str_init(&s, 1024);
        tni_str_init(&t, 1024);
        tni_shape_format(&p->shape, &s);
        tni_shape_format(&q->shape, &t);
        snprintf(text, room, "shape: %s %u is %s %s, and %s %s", kind_names[p->kind], p->index,
                 tni_dtype_name(p->dtype), s.text, tni_dtype_name(q->dtype), t.text);
        tni_str_fini(&s);
        tni_str_fini(&t);
        return true;
    }
    if (!p->bytes || !memcmp(a->bytes + p->at, b->bytes + q->at, p->bytes))
        return false;
    for (uint64_t i = 0; i * size < p->bytes; i++) {
        const uint64_t x = element_bits(a, p, i, size), y = element_bits(b, q, i, size);

        if (x == y)
            continue;
        snprintf(text, room, "bits: %s %u, element %llu of %llu: 0x%llx and 0x%llx", kind_names[p->kind],
                 p->index, (unsigned long long)i, (unsigned long long)(p->bytes / size),
                 (unsigned long long)x, (unsigned long long)y);
        return true;
    }
    return false;
}

const char *fuzz_result_differs(const fuzz_result *a, const fuzz_result *b, bool one)
{
    static char text[600];

    for (uint32_t s = 0; s < FUZZ_STAGES; s++) {
        if (!a->reached[s] || !b->reached[s])
            continue;
        if (a->status[s] == TN_E_NOMEM || b->status[s] == TN_E_NOMEM)
            return ""; /* plans need memory at different times */
        if (status_class(a->status[s], one) != status_class(b->status[s], one)) {
            snprintf(text, sizeof text, "status: %s gives %s (%s), and %s (%s)", stage_names[s],
                     tn_status_name(a->status[s]), a->message[s], tn_status_name(b->status[s]),
                     b->message[s]);
            return text;
        }
        if (s == FUZZ_FORWARD && a->status[s])
            return "";
    }
    for (uint32_t i = 0; i < a->part_count; i++) {
        const fuzz_part *q = part_find(b, &a->parts[i]);

        if (q && part_differs(a, &a->parts[i], b, q, text, sizeof text))
            return text;
    }
    return "";
}
