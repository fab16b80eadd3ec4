/*
 * Growing text with a maximum: the first failure sticks, so a writer adds a hundred pieces and looks once.
 * Numbers are read and written in the C locale whatever the program has set.
 */
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/base.h"

#define EDIT_LENGTH_MAX 128 /* longer names are cut: two rows of the distance table live on the stack */
#define NUMBER_TEXT_MAX 512 /* longest text read as a number */

static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;
static locale_t c_locale;

static void c_locale_make(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

static locale_t c_locale_get(void)
{
    pthread_once(&c_locale_once, c_locale_make);
    return c_locale;
}

void tni_str_init(tni_str *s, size_t max)
{
    *s = (tni_str){.max = max};
}

void tni_str_fini(tni_str *s)
{
    tni_free(s->text);
    s->text = NULL;
    s->length = s->capacity = 0;
}

/* Room for `more` bytes and the NUL. */
static tn_status str_grow(tni_str *s, size_t more)
{
    size_t capacity = s->capacity ? s->capacity : 64;
    char *text;

    if (s->status)
        return s->status;
    if (more > s->max || s->length > s->max - more || s->max >= TN_SIZE_MAX / 2)
        return s->status = tni_error(TN_E_NOMEM, "text of %zu bytes, but the limit here is %zu",
                                     s->length + more, s->max);
    if (s->length + more < s->capacity)
        return TN_OK;
    while (capacity <= s->length + more)
        capacity *= 2;
    text = tni_realloc(s->text, capacity);
    if (!text)
        return s->status = TN_E_NOMEM;
    s->text = text;
    s->capacity = capacity;
    return TN_OK;
}

tn_status tni_str_add_bytes(tni_str *s, const void *bytes, size_t count)
{
    tn_status st = str_grow(s, count);

    if (st)
        return st;
    if (count)
        memcpy(s->text + s->length, bytes, count);
    s->length += count;
    s->text[s->length] = '\0';
    return TN_OK;
}

tn_status tni_str_add(tni_str *s, const char *text)
{
    return tni_str_add_bytes(s, text, strlen(text));
}

tn_status tni_str_addf(tni_str *s, const char *format, ...)
{
    va_list args;
    size_t room, length;

    do { /* mostly once: there is room */
        room = s->capacity - s->length;
        va_start(args, format);
        length = (size_t)vsnprintf(room ? s->text + s->length : NULL, room, format, args);
        va_end(args);
    } while (!str_grow(s, length) && length >= room);
    if (!s->status)
        s->length += length;
    else if (room)
        s->text[s->length] = '\0';
    return s->status;
}

tn_status tni_str_add_json(tni_str *s, const char *text, size_t length)
{
    size_t from = 0;

    tni_str_add_bytes(s, "\"", 1);
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        const char *at = c ? strchr("\"\"\\\\\bb\ff\nn\rr\tt", c) : NULL;

        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        tni_str_add_bytes(s, text + from, i - from);
        from = i + 1;
        if (at)
            tni_str_addf(s, "\\%c", at[1]);
        else
            tni_str_addf(s, "\\u%04x", c);
    }
    tni_str_add_bytes(s, text + from, length - from);
    return tni_str_add_bytes(s, "\"", 1);
}

tn_status tni_str_take(tni_str *s, char **out)
{
    tn_status st = s->text ? s->status : tni_str_add(s, "");

    if (st)
        return st;
    *out = s->text;
    tni_str_init(s, s->max);
    return TN_OK;
}

/* ---- text of strangers --------------------------------------------------------------------------- */

/* Bytes of the UTF-8 character at `s`, 1 to 4; 0: there is none. NUL ends the text, so nothing is read
 * behind it. */
static size_t utf8_bytes(const unsigned char *s, uint32_t *point)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const size_t n = s[0] < 0x80 ? 1 : s[0] >> 5 == 6 ? 2 : s[0] >> 4 == 14 ? 3 : s[0] >> 3 == 30 ? 4 : 0;
    uint32_t value = n == 1 ? s[0] : n ? s[0] & (0x7fu >> n) : 0;

    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        value = value << 6 | (s[i] & 0x3fu);
    }
    *point = value;
    return n && value >= least[n] && value <= 0x10ffff && (value < 0xd800 || value > 0xdfff) ? n : 0;
}

/* C0, delete, C1; ends of lines and paragraphs; what turns the direction of writing. */
static bool steers(uint32_t point)
{
    return point < 0x20 || (point >= 0x7f && point < 0xa0) || point == 0x61c || point == 0x200e ||
           point == 0x200f || (point >= 0x2028 && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
}

size_t tni_text_escape(char *out, size_t size, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t used = 0;

    while (*s) {
        uint32_t point = 0;
        const size_t bytes = utf8_bytes(s, &point), count = bytes ? bytes : 1;
        const bool plain = bytes && !steers(point);

        if (used + (plain ? count : 4 * count) >= size)
            break;
        for (size_t i = 0; i < count; i++)
            if (plain)
                out[used++] = (char)s[i];
            else
                used += (size_t)snprintf(out + used, size - used, "\\x%02x", s[i]);
        s += count;
    }
    if (size)
        out[used] = '\0';
    return used;
}

bool tni_str_equal(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* `*text` past its sign; false unless a digit follows and nothing but digits. */
static bool digits_only(const char *text)
{
    size_t i = 0;

    while (text[i] >= '0' && text[i] <= '9')
        i++;
    return i > 0 && text[i] == '\0';
}

bool tni_parse_u64(const char *text, uint64_t *out)
{
    uint64_t value = 0;

    if (!digits_only(text))
        return false;
    for (; *text; text++)
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
            return false;
    *out = value;
    return true;
}

bool tni_parse_i64(const char *text, int64_t *out)
{
    bool negative = text[0] == '-';
    uint64_t value;

    if (!tni_parse_u64(text + (text[0] == '-' || text[0] == '+'), &value))
        return false;
    if (value > (uint64_t)INT64_MAX + negative)
        return false;
    *out = (int64_t)(negative ? 0 - value : value);
    return true;
}

bool tni_parse_f64(const char *text, double *out)
{
    size_t length = strnlen(text, NUMBER_TEXT_MAX);
    locale_t c = c_locale_get();
    char *end;
    double value;

    if (length == 0 || length == NUMBER_TEXT_MAX || !c || strchr(" \t\n\v\f\r", text[0]) ||
        strpbrk(text, "xX("))
        return false;
    errno = 0;
    value = strtod_l(text, &end, c);
    if (*end != '\0' || (errno == ERANGE && isinf(value)))
        return false;
    *out = value;
    return true;
}

static bool format_exact(char *out, size_t size, double value, int digits, int *length)
{
    double back;

    *length = snprintf(out, size, "%.*g", digits, value);
    return *length > 0 && (size_t)*length < size && tni_parse_f64(out, &back) && back == value;
}

int tni_format_f64(char *out, size_t size, double value)
{
    locale_t c = c_locale_get();
    locale_t before;
    int length = 0;

    if (isnan(value))
        return snprintf(out, size, "nan");
    if (isinf(value))
        return snprintf(out, size, value < 0 ? "-inf" : "inf");
    before = c ? uselocale(c) : (locale_t)0;
    /* 15 digits without their trailing zeros are the shortest text of a normal number that has one. */
    for (int digits = fabs(value) < 2.3e-308 ? 1 : 15; digits <= 17; digits++)
        if (format_exact(out, size, value, digits, &length))
            break;
    if (c)
        uselocale(before);
    return length;
}

static size_t least_of(size_t a, size_t b)
{
    return b < a ? b : a;
}

/* One row of the table, columns low to high; the cells beside them count as too far. Returns its least. */
static size_t distance_row(const char *a, const char *b, size_t *const rows[3], size_t low, size_t high)
{
    size_t *row = rows[2], *above = rows[1], *before = rows[0], least;

    row[low - 1] = low == 1 ? above[0] + 1 : EDIT_LENGTH_MAX;
    least = row[low - 1];
    for (size_t j = low; j <= high; j++) {
        size_t best = above[j - 1] + (a[0] != b[j - 1]);

        best = least_of(best, least_of(above[j], row[j - 1]) + 1);
        if (before && j > 1 && a[0] == b[j - 2] && a[-1] == b[j - 1])
            best = least_of(best, before[j - 2] + 1); /* two letters exchanged */
        row[j] = best;
        least = least_of(least, best);
    }
    row[high + 1] = EDIT_LENGTH_MAX;
    return least;
}

/* Only cells within `limit` of the diagonal can matter; a row without one that near ends it. */
size_t tni_edit_distance(const char *a, const char *b, size_t limit)
{
    size_t a_length = strnlen(a, EDIT_LENGTH_MAX), b_length = strnlen(b, EDIT_LENGTH_MAX), least_above = 0;
    size_t cells[3][EDIT_LENGTH_MAX + 2];
    size_t *rows[3] = {NULL, cells[0], cells[1]}, *spare = cells[2];

    if ((a_length > b_length ? a_length - b_length : b_length - a_length) > limit)
        return limit + 1;
    for (size_t j = 0; j <= b_length + 1; j++)
        rows[1][j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t least = distance_row(a + i - 1, b, rows, i > limit ? i - limit : 1,
                                    limit < b_length && i + limit < b_length ? i + limit : b_length);
        size_t *oldest = rows[0];

        if (least > limit && least_above > limit)
            return limit + 1;
        least_above = least;
        rows[0] = rows[1];
        rows[1] = rows[2];
        rows[2] = oldest ? oldest : spare;
    }
    return rows[1][b_length] > limit ? limit + 1 : rows[1][b_length];
}

/* Names that other libraries and tools have for ours: the wrong one, then the right one. */
static const char others[][2][20] = {
    {"learning_rate", "train.lr"},
    {"batch_size", "train.batch"},
    {"num_epoch", "train.epochs"},
    {"num_epochs", "train.epochs"},
    {"max_epochs", "train.epochs"},
    {"weight_decay", "train.wd"},
    {"dataset", "train.data"},
    {"train_data", "train.data"},
    {"val_data", "train.valid"},
    {"grad_clip", "train.clip_norm"},
    {"num_classes", "model.classes"},
    {"ctx", "device.default"},
    {"num_threads", "engine.threads"},
    {"output_dir", "run.dir"},
    {"conv2d", "Convolution"},
    {"linear", "FullyConnected"},
    {"dense", "FullyConnected"},
    {"maxpool2d", "Pooling"},
    {"max_pool2d", "Pooling"},
    {"avg_pool2d", "Pooling"},
    {"lstm", "RNN"},
    {"gru", "RNN"},
    {"matmul", "dot"},
};

/* Our name; NULL: there is none. Of a key such as train.batch_size the last part counts. */
static const char *other_name(const char *wrong)
{
    const char *dot = strrchr(wrong, '.');

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (!strcasecmp(dot ? dot + 1 : wrong, others[i][0]))
            return others[i][1];
    return NULL;
}

/* How far `name` is from `wrong`. Near are the same letters as capitals, and a name whose last part is
 * `wrong`; less so one that `wrong` is the beginning of. */
static size_t suggestion_distance(const char *wrong, const char *name, size_t limit)
{
    const char *tail = strrchr(name, '.');
    const bool begins = (wrong[0] | 32) == (name[0] | 32); /* most names are passed over here */
    size_t distance = tni_edit_distance(wrong, name, limit);

    if (distance > 1 &&
        ((begins && !strcasecmp(wrong, name)) || (tail && tni_edit_distance(wrong, tail + 1, 1) <= 1)))
        distance = 1;
    else if (distance > 2 && begins && wrong[0] && wrong[1] && wrong[2] &&
             !strncasecmp(wrong, name, strlen(wrong)))
        distance = 2;
    return distance;
}

/* Smaller is nearer; of names equally far the one that begins most alike. */
static size_t suggestion_rank(const char *wrong, const char *name, size_t limit)
{
    size_t distance = suggestion_distance(wrong, name, limit), same = 0;

    while (same < EDIT_LENGTH_MAX && wrong[same] && name[same] &&
           (wrong[same] | 32) == (name[same] | 32)) /* letters whatever their case */
        same++;
    return distance > limit ? SIZE_MAX : distance * (EDIT_LENGTH_MAX + 1) + EDIT_LENGTH_MAX - same;
}

size_t tni_suggest(const char *wrong, const char *const *suggested, const char *out[3])
{
    size_t length = strnlen(wrong, EDIT_LENGTH_MAX);
    size_t limit = length < 4 ? 1 : 2 + length / 8;
    const char *right = other_name(wrong);
    size_t rank[3], count = 0;

    for (; *suggested; suggested++) {
        size_t r = right && !strcmp(*suggested, right) ? 0 : suggestion_rank(wrong, *suggested, limit);
        size_t at = count;

        if (r == SIZE_MAX)
            continue;
        while (at > 0 && rank[at - 1] > r)
            at--;
        if (at == 3)
            continue;
        for (size_t i = count < 3 ? count : 2; i > at; i--) {
            rank[i] = rank[i - 1];
            out[i] = out[i - 1];
        }
        rank[at] = r;
        out[at] = *suggested;
        count += count < 3;
    }
    return count;
}
