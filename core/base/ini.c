/*
 * Configuration files. libinih splits the lines; our reader hands them over one by one, so that what libinih
 * would cut or guess (long lines, long names, ':' for '=', a key given twice) is an error with file and line.
 * An indented line continues the value above it as a further item of a list; the value is reported once, when
 * it is complete.
 */
#include <ini.h>
#include <string.h>

#include "base/base.h"

#define INI_KEYS_MAX 65536 /* keys of one file */
#define SPACES " \t\r\f\v"

typedef struct ini_reader_state {
    const char *name, *at, *end;
    tni_ini_fn fn;
    void *arg;
    uint32_t line, key_line;
    bool continues; /* the line handed over last is indented */
    char section[TN_INI_NAME_MAX + 1], key[TN_INI_NAME_MAX + 1];
    bool key_open; /* key and value wait for further lines */
    tni_str value;
    tni_map *seen;
    tn_status status;
    void (*problem)(void *arg);    /* NULL: the first line that is not understood ends the reading */
    bool value_lost, section_lost; /* the lines that belong to a wrong one are passed over */
} ini_reader_state;

static tn_status TN_PRINTF(2, 3) ini_error(ini_reader_state *s, const char *format, ...)
{
    char text[400];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return s->status = tni_error_number(1201, TN_E_FORMAT, "%s:%u: %s", s->name, s->line, text);
}

static void key_report(ini_reader_state *s)
{
    tn_status st;

    if (!s->key_open || s->status)
        return;
    s->key_open = false;
    st = s->value.status ? s->value.status : s->fn(s->arg, s->section, s->key, s->value.text, s->key_line);
    s->value.length = 0;
    s->status = st;
}

static void key_check(ini_reader_state *s, const char *line, const char *end)
{
    const char *equals = memchr(line, '=', (size_t)(end - line));
    const char *colon = memchr(line, ':', (size_t)(end - line));
    const char *stop = equals;

    if (!equals) {
        ini_error(s, "expected key = value");
        return;
    }
    if (colon && colon < equals) {
        ini_error(s, "':' stands before '='; write key = value");
        return;
    }
    while (stop > line && strchr(SPACES, stop[-1]))
        stop--;
    if (stop == line)
        ini_error(s, "the key before '=' is empty");
    else if (stop - line > TN_INI_NAME_MAX)
        ini_error(s, "the key has %td bytes, at most %d are allowed", stop - line, TN_INI_NAME_MAX);
    else if (memchr(line, ';', (size_t)(stop - line)))
        ini_error(s, "a key cannot hold ';'");
}

static void section_check(ini_reader_state *s, const char *line, const char *end)
{
    const char *close = memchr(line, ']', (size_t)(end - line));

    if (!close)
        ini_error(s, "']' is missing");
    else if (close - line - 1 > TN_INI_NAME_MAX)
        ini_error(s, "the section has %td bytes, at most %d are allowed", close - line - 1, TN_INI_NAME_MAX);
    else if (close == line + 1)
        ini_error(s, "the section's name is empty");
    for (const char *at = close ? close + 1 : end; !s->status && at < end; at++) {
        if (*at == ';' || *at == '#')
            break;
        if (!strchr(SPACES, *at))
            ini_error(s, "text after ']'");
    }
}

/* Looks at a line before libinih does. Returns false if it is to be skipped (blank or a comment). */
static bool line_check(ini_reader_state *s, const char *line, const char *end)
{
    const char *first = line;

    if (s->line == 1 && end - first >= 3 && memcmp(first, "\xEF\xBB\xBF", 3) == 0)
        first += 3;
    s->continues = first < end && (*first == ' ' || *first == '\t');
    while (first < end && strchr(SPACES, *first))
        first++;
    if (first == end || *first == ';' || *first == '#')
        return false;
    if (end - line > TN_INI_LINE_MAX)
        ini_error(s, "the line has %td bytes, at most %d are allowed; lists may go on in an indented line",
                  end - line, TN_INI_LINE_MAX);
    else if (memchr(line, '\0', (size_t)(end - line)))
        ini_error(s, "the line holds a zero byte");
    else if (s->continues && !s->key[0])
        ini_error(s, "an indented line continues a value, but there is none above");
    else if (s->continues)
        return true;
    else if (*first == '[')
        section_check(s, first, end);
    else
        key_check(s, first, end);
    return !s->status;
}

/* After a wrong line, if somebody collects them: told, after what stands above it, and all that belongs to it
 * passed over. */
static void line_problem(ini_reader_state *s)
{
    tn_err err;

    if (!s->problem || s->status != TN_E_FORMAT)
        return;
    tni_error_get(&err);
    s->status = TN_OK;
    key_report(s);
    if (s->status)
        return;
    tni_error_set(&err);
    s->problem(s->arg);
    tni_error_clear();
    s->key[0] = '\0';
    s->value_lost = true;
}

/* Whether the line belongs to something that was not understood. */
static bool line_is_lost(ini_reader_state *s, const char *line, const char *end)
{
    bool continues = line < end && (*line == ' ' || *line == '\t');

    if (s->value_lost && continues)
        return true;
    s->value_lost = false;
    if (s->section_lost && line < end && *line == '[')
        s->section_lost = false;
    return s->section_lost;
}

/* libinih's fgets: the next line that matters. NULL ends the reading, after an error too. */
static char *line_next(char *out, int size, void *arg)
{
    ini_reader_state *s = arg;

    while (!s->status && s->at < s->end) {
        const char *line = s->at;
        const char *end = memchr(line, '\n', (size_t)(s->end - line));
        size_t length;

        end = end ? end : s->end;
        s->at = end < s->end ? end + 1 : end;
        if (++s->line == UINT32_MAX) {
            ini_error(s, "too many lines");
            return NULL;
        }
        if (line_is_lost(s, line, end))
            continue;
        if (!line_check(s, line, end)) {
            s->section_lost |= s->problem && s->status && *line == '[';
            line_problem(s);
            continue;
        }
        if (!s->continues)
            key_report(s);
        length = (size_t)(end - line);
        if (s->status || length + 2 > (size_t)size)
            break;
        if (s->line == 1 && memcmp(line, "\xEF\xBB\xBF", length < 3 ? length : 3) == 0 && length >= 3) {
            line += 3;
            length -= 3;
        }
        memcpy(out, line, length);
        out[length] = '\n';
        out[length + 1] = '\0';
        if (!s->continues && out[strspn(out, SPACES)] == '[')
            s->key[0] = '\0'; /* a new section: nothing to continue */
        return out;
    }
    return NULL;
}

/* libinih leaves comments on the lines that continue a value. */
static size_t comment_cut(const char *value)
{
    size_t length = strlen(value);

    for (size_t i = 0; i < length; i++)
        if (value[i] == ';' && (i == 0 || strchr(SPACES, value[i - 1])))
            length = i;
    while (length > 0 && strchr(SPACES, value[length - 1]))
        length--;
    return length;
}

static tn_status value_continue(ini_reader_state *s, const char *value)
{
    size_t length = s->value.length;

    if (length > TN_OPTION_VALUE_MAX)
        return ini_error(s, "the value is longer than %d bytes", TN_OPTION_VALUE_MAX);
    if (length > 0)
        tni_str_add(&s->value, s->value.text[length - 1] == ',' ? " " : ", ");
    return tni_str_add_bytes(&s->value, value, comment_cut(value));
}

static tn_status key_begin(ini_reader_state *s, const char *section, const char *key, const char *value)
{
    char full[2 * TN_INI_NAME_MAX + 2];

    if (strlen(section) > TN_INI_NAME_MAX || strlen(key) > TN_INI_NAME_MAX)
        return ini_error(s, "section or key is too long");
    snprintf(full, sizeof full, "%s\n%s", section, key);
    if (tni_map_get(s->seen, full, NULL))
        return ini_error(s, "%s is set twice in section [%s]", key, section);
    snprintf(s->section, sizeof s->section, "%s", section);
    snprintf(s->key, sizeof s->key, "%s", key);
    s->key_line = s->line;
    s->key_open = true;
    return tni_map_set(s->seen, full, NULL) || tni_str_add(&s->value, value) ? TN_E_NOMEM : TN_OK;
}

static int key_handle(void *arg, const char *section, const char *key, const char *value)
{
    ini_reader_state *s = arg;
    tn_status st;

    if (s->status)
        return 0;
    st = s->continues && s->key_open ? value_continue(s, value)
                                     : key_begin(s, section, key, value ? value : "");
    if (st)
        s->status = st;
    if (st == TN_E_FORMAT && s->problem) {
        s->key_open = false;
        s->value.length = 0;
        line_problem(s);
    }
    return s->status == TN_OK;
}

static tn_status text_read(ini_reader_state *s, size_t bytes)
{
    tn_status st;
    int line;

    if (bytes > TN_INI_BYTES_MAX)
        return tni_error(TN_E_FORMAT, "%s has %zu bytes, at most %llu are allowed", s->name, bytes,
                         (unsigned long long)TN_INI_BYTES_MAX);
    st = tni_map_create(INI_KEYS_MAX, &s->seen);
    if (st)
        return st;
    tni_str_init(&s->value, 2 * TN_OPTION_VALUE_MAX);
    line = ini_parse_stream(line_next, s, key_handle, s);
    if (line > 0 && !s->status)
        ini_error(s, "not understood");
    key_report(s);
    tni_str_fini(&s->value);
    tni_map_destroy(s->seen);
    return s->status;
}

tn_status tni_ini_read_all(const char *name, const char *text, size_t bytes, tni_ini_fn fn,
                           void (*problem)(void *arg), void *arg)
{
    ini_reader_state s = {
        .name = name, .at = text, .end = text + bytes, .fn = fn, .problem = problem, .arg = arg};

    return text_read(&s, bytes);
}

tn_status tni_ini_read_memory(const char *name, const char *text, size_t bytes, tni_ini_fn fn, void *arg)
{
    return tni_ini_read_all(name, text, bytes, fn, NULL, arg);
}

tn_status tni_ini_read(const char *path, tni_ini_fn fn, void (*problem)(void *arg), void *arg)
{
    char *text = NULL;
    uint64_t bytes = 0;
    tn_status st = tni_file_read_all(path, TN_INI_BYTES_MAX, &text, &bytes);

    if (!st)
        st = tni_ini_read_all(path, text, (size_t)bytes, fn, problem, arg);
    tni_free(text);
    return st;
}
