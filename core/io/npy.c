/*
 * .npy: the bytes 93 "NUMPY", major and minor version, the length of the head (u16 in version 1, u32 in 2 and
 * 3), the head (a Python dict of descr, fortran_order and shape, padded with spaces to a newline), the
 * elements.
 *
 * The head is read by a scanner of exactly that dict: three keys in any order, each once, no nesting. Fortran
 * order becomes an array with strides. Format: numpy.lib.format.
 */
#include "io/internal.h"

#define KEY_DESCR 1u
#define KEY_ORDER 2u
#define KEY_SHAPE 4u

static const char *const descrs[TN_DTYPE_LIMIT] = {"f4", "f8", "f2", "u1", "i4", "i1", "i8",
                                                   "b1", "i2", "u2", "u4", "u8", NULL};

typedef struct head {
    const char *at, *name; /* cursor in the NUL-ended head; file name */
    int32_t dtype, ndim;
    bool fortran;
    int64_t shape[TN_NDIM_MAX];
} head;

static tn_status bad(const head *h, const char *what)
{
    return tni_error(TN_E_FORMAT, "%s: the head of the .npy file: %s near \"%.20s\"", h->name, what, h->at);
}

static void blanks(head *h)
{
    while (*h->at == ' ' || *h->at == '\t' || *h->at == '\n')
        h->at++;
}

static bool take(head *h, const char *text)
{
    size_t length = strlen(text);

    blanks(h);
    if (strncmp(h->at, text, length))
        return false;
    h->at += length;
    return true;
}

/* A quoted text without escapes. */
static bool take_text(head *h, char *out, size_t size)
{
    const char *end;
    char quote;

    blanks(h);
    quote = *h->at;
    if (quote != '\'' && quote != '"')
        return false;
    end = strchr(h->at + 1, quote);
    if (!end || (size_t)(end - h->at) > size)
        return false;
    memcpy(out, h->at + 1, (size_t)(end - h->at - 1));
    out[end - h->at - 1] = '\0';
    h->at = end + 1;
    return true;
}

static tn_status descr_read(head *h)
{
    char text[16];

    if (!take_text(h, text, sizeof text))
        return bad(h, "descr is no short text");
    for (int32_t i = 0; i < TN_DTYPE_LIMIT; i++) {
        const bool bytes = tn_dtype_bytes(i) == 1;

        if (descrs[i] && !strcmp(text + (text[0] ? 1 : 0), descrs[i]) &&
            (text[0] == '<' || text[0] == '=' || (bytes && (text[0] == '|' || text[0] == '>')))) {
            h->dtype = i;
            return TN_OK;
        }
    }
    return tni_error(TN_E_UNSUPPORTED, "%s: elements of type \"%s\" are not read, little-endian numbers are",
                     h->name, text);
}

static tn_status shape_read(head *h)
{
    if (!take(h, "("))
        return bad(h, "no shape");
    while (!take(h, ")")) {
        uint64_t dim = 0;

        blanks(h);
        if (h->ndim == TN_NDIM_MAX)
            return bad(h, "more than 32 dimensions");
        if (*h->at < '0' || *h->at > '9')
            return bad(h, "no dimension");
        for (; *h->at >= '0' && *h->at <= '9'; h->at++) {
            dim = dim * 10 + (uint64_t)(*h->at - '0');
            if (dim > TN_SIZE_MAX / 16)
                return bad(h, "a dimension that is too large");
        }
        (void)take(h, "L"); /* Python 2's long */
        h->shape[h->ndim++] = (int64_t)dim;
        if (!take(h, ",")) {
            if (take(h, ")"))
                return TN_OK;
            return bad(h, "no comma in the shape");
        }
    }
    return TN_OK;
}

static tn_status dict_read(head *h)
{
    uint32_t seen = 0;
    tn_status st = TN_OK;

    if (!take(h, "{"))
        return bad(h, "no dict");
    while (!st && !take(h, "}")) {
        char key[16] = "";
        uint32_t bit = 0;

        if (!take_text(h, key, sizeof key) || !take(h, ":"))
            return bad(h, "no key");
        bit = !strcmp(key, "descr")           ? KEY_DESCR
              : !strcmp(key, "fortran_order") ? KEY_ORDER
              : !strcmp(key, "shape")         ? KEY_SHAPE
                                              : 0;
        if (!bit || seen & bit)
            return bad(h, "an unknown or repeated key");
        seen |= bit;
        if (bit == KEY_DESCR)
            st = descr_read(h);
        else if (bit == KEY_SHAPE)
            st = shape_read(h);
        else if (take(h, "True"))
            h->fortran = true;
        else if (!take(h, "False"))
            st = bad(h, "fortran_order is neither True nor False");
        if (!st && !take(h, ",")) {
            if (!take(h, "}"))
                return bad(h, "no comma");
            break;
        }
    }
    blanks(h);
    if (!st && *h->at)
        st = bad(h, "something behind the dict");
    if (!st && seen != (KEY_DESCR | KEY_ORDER | KEY_SHAPE))
        st = bad(h, "descr, fortran_order or shape is missing");
    return st;
}

static tn_status head_read(tni_source *s, head *h, char **text)
{
    unsigned char start[8], size[4] = {0};
    uint32_t length;
    tn_status st = tni_source_read(s, start, sizeof start), other;

    if ((st ? st == TN_E_FORMAT : memcmp(start, "\x93NUMPY", 6)) && s->file &&
        (other = tni_file_kind_check(s->file, TNI_KIND_NPY)))
        return other;
    if (st && st != TN_E_FORMAT)
        return st;
    if (st || memcmp(start, "\x93NUMPY", 6) || start[6] < 1 || start[6] > 3)
        return tni_error(TN_E_FORMAT, "%s is no .npy file of version 1 to 3", h->name);
    if ((st = tni_source_read(s, size, start[6] == 1 ? 2 : 4)))
        return st;
    length = (uint32_t)size[0] | (uint32_t)size[1] << 8 | (uint32_t)size[2] << 16 | (uint32_t)size[3] << 24;
    if (length > TNI_NPY_HEAD_MAX || length > s->left)
        return tni_error(TN_E_FORMAT, "%s: a head of %u bytes, %llu are left", h->name, length,
                         (unsigned long long)s->left);
    *text = tni_alloc((uint64_t)length + 1);
    if (!*text)
        return TN_E_NOMEM;
    if ((st = tni_source_read(s, *text, length)))
        return st;
    (*text)[length] = '\0';
    h->at = *text;
    if (strlen(*text) != length)
        return bad(h, "a NUL");
    return dict_read(h);
}

static tn_status data_read(tni_source *s, const head *h, tni_space *space, tni_array **out)
{
    int64_t reversed[TN_NDIM_MAX], stride[TN_NDIM_MAX], step = 1;
    tni_device *host;
    tni_array *a = NULL;
    uint64_t count;
    tn_status st;

    if (tni_shape_check(h->dtype, h->ndim, h->shape, &count))
        return tni_error(TN_E_FORMAT, "%s: its %d dimensions have too many elements", h->name, h->ndim);
    if (count * tn_dtype_bytes(h->dtype) != s->left)
        return tni_error(TN_E_FORMAT, "%s: its head promises %llu bytes, %llu follow", h->name,
                         (unsigned long long)(count * tn_dtype_bytes(h->dtype)), (unsigned long long)s->left);
    for (int32_t i = 0; i < h->ndim; i++) {
        reversed[h->ndim - 1 - i] = h->shape[i];
        stride[i] = step;
        step *= h->shape[i] ? h->shape[i] : 1;
    }
    if ((st = tni_device_get(space->devices, "cpu", 0, &host)) ||
        (st = tni_array_fresh(space, host, h->dtype, h->ndim, h->fortran ? reversed : h->shape, &a)))
        return st;
    if (!(st = count ? tni_source_read(s, tni_array_data(a), s->left) : TN_OK) && h->fortran && h->ndim > 1)
        st = tni_array_view(a, 0, h->ndim, h->shape, stride, out);
    else if (!st) {
        tni_array_retain(a);
        *out = a;
    }
    tni_array_release(a);
    return st;
}

tn_status tni_npy_read(tni_source *s, tni_space *space, const char *name, tni_array **out)
{
    head h = {.name = name, .dtype = TN_DTYPE_UNKNOWN};
    char *text = NULL;
    tn_status st = head_read(s, &h, &text);

    if (!st)
        st = data_read(s, &h, space, out);
    tni_free(text);
    return st;
}

tn_status tni_npy_load(tni_space *space, const char *path, tni_array **out)
{
    tni_source s = {.file = NULL};
    tn_status st = tni_file_open(path, &s.file);

    if (st)
        return st;
    s.left = tni_file_left(s.file);
    st = tni_npy_read(&s, space, path, out);
    tni_file_close(s.file);
    return st;
}

/* ---- writing ----------------------------------------------------------------------------------------- */

tn_status tni_npy_head(tni_str *out, const tni_array *a)
{
    const char start[10] = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0, 0, 0};
    size_t length;

    if (a->storage_type != TN_STORAGE_DENSE || !descrs[a->dtype])
        return tni_error(TN_E_UNSUPPORTED, ".npy has no %s arrays",
                         a->storage_type == TN_STORAGE_DENSE ? tni_dtype_name(a->dtype) : "sparse");
    (void)tni_str_add_bytes(out, start, sizeof start);
    (void)tni_str_addf(out, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                       tn_dtype_bytes(a->dtype) == 1 ? '|' : '<', descrs[a->dtype]);
    for (int32_t i = 0; i < a->ndim; i++)
        (void)tni_str_addf(out, "%s%lld", i ? ", " : "", (long long)a->shape[i]);
    (void)tni_str_add(out, a->ndim == 1 ? ",), }" : "), }");
    while (!out->status && (out->length + 1) % 64)
        (void)tni_str_add(out, " ");
    if (tni_str_add(out, "\n"))
        return out->status;
    length = out->length - sizeof start;
    out->text[8] = (char)(length & 0xff);
    out->text[9] = (char)(length >> 8);
    return TN_OK;
}

tn_status tni_npy_save(tni_array *a, const char *path)
{
    tni_writer *w = NULL;
    const void *data = NULL;
    void *copy = NULL;
    tni_str text;
    tn_status st;

    tni_str_init(&text, TNI_NPY_HEAD_MAX);
    if ((st = tni_npy_head(&text, a)) || (st = tni_array_borrow(a, &data, &copy)) ||
        (st = tni_writer_open(path, &w)) || (st = tni_writer_write(w, text.text, text.length)) ||
        (st = tni_writer_write(w, data, tni_array_bytes(a))))
        tni_writer_abandon(w);
    else
        st = tni_writer_commit(w);
    tni_str_fini(&text);
    tni_free(copy);
    return st;
}
