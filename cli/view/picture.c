/*
 * Pictures: whole or absent, and text inside them that cannot break their syntax.
 */
#include <stdlib.h>
#include <string.h>

#include "view/viz.h"

bool cli_picture_begin(cli_picture *p, tn_app *app)
{
    memset(p, 0, sizeof *p);
    if (!(p->out = open_memstream(&p->text, &p->bytes)))
        (void)tn_app_fail(app, TN_E_NOMEM, "out of memory");
    return p->out != NULL;
}

bool cli_picture_end(cli_picture *p, tn_app *app, const char *path)
{
    bool ok = !ferror(p->out);

    if (fclose(p->out) || !p->text)
        ok = false;
    if (!ok)
        (void)tn_app_fail(app, TN_E_NOMEM, "out of memory");
    else if (path)
        ok = cli_folders_above(path) ? cli_text_save(app, path, p->text, p->bytes) : cli_failed_at(app, path);
    else
        (void)fwrite(p->text, 1, p->bytes, stdout); /* what fails comes out at the end */
    free(p->text);
    memset(p, 0, sizeof *p);
    return ok;
}

/* Bytes of the UTF-8 character at `text`; 0: it is none. */
static size_t utf8_bytes(const unsigned char *text)
{
    static const struct {
        unsigned char mask, lead;
        uint32_t least;
    } forms[] = {{0x80, 0, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};

    for (size_t n = 0; n < 4; n++) {
        uint32_t code = (uint32_t)(text[0] & (unsigned char)~forms[n].mask);

        if ((text[0] & forms[n].mask) != forms[n].lead)
            continue;
        for (size_t i = 1; i <= n; i++) {
            if ((text[i] & 0xc0) != 0x80)
                return 0;
            code = code << 6 | (text[i] & 0x3fu);
        }
        if (code < forms[n].least || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff) ||
            code == 0xfffe || code == 0xffff)
            return 0;
        return n + 1;
    }
    return 0;
}

void cli_xml_text(FILE *out, const char *text)
{
    static const char special[] = "<>&\"'";
    static const char *const entities[] = {"&lt;", "&gt;", "&amp;", "&quot;", "&#39;"};

    while (*text) {
        const size_t bytes = utf8_bytes((const unsigned char *)text);
        const char *at = strchr(special, *text);

        if (at)
            (void)fputs(entities[at - special], out);
        else if (!bytes || cli_control(text))
            (void)fputc(*text == '\n' ? ' ' : '?', out);
        else
            (void)fwrite(text, 1, bytes, out);
        text += bytes ? bytes : 1;
    }
}

void cli_dot_text(FILE *out, const char *text)
{
    while (*text) {
        const size_t bytes = utf8_bytes((const unsigned char *)text);

        if (*text == '"' || *text == '\\')
            (void)fprintf(out, "\\%c", *text);
        else if (!bytes || cli_control(text))
            (void)fputc(*text == '\n' ? ' ' : '?', out);
        else
            (void)fwrite(text, 1, bytes, out);
        text += bytes ? bytes : 1;
    }
}

/* The byte where character `index` begins. */
static const char *character(const char *text, size_t index)
{
    for (; *text; text++)
        if (((unsigned char)*text & 0xc0) != 0x80 && !index--)
            break;
    return text;
}

const char *cli_shorten(const char *text, size_t columns, char out[CLI_SHORT_TEXT])
{
    const size_t length = cli_columns(text), tail = columns / 2, head = columns - tail - 2;

    if (columns > CLI_SHORT_TEXT / 4 - 2)
        columns = CLI_SHORT_TEXT / 4 - 2; /* four bytes a character */
    if (length <= columns)
        (void)snprintf(out, CLI_SHORT_TEXT, "%s", text);
    else
        (void)snprintf(out, CLI_SHORT_TEXT, "%.*s..%s", (int)(character(text, head) - text), text,
                       character(text, length - tail));
    cli_clean(out, '?');
    return out;
}

void cli_pad(FILE *out, const char *text, int columns)
{
    const int wide = abs(columns), length = (int)cli_columns(text),
              spaces = wide > length ? wide - length : 0;

    (void)fprintf(out, "%*s%s%*s", columns < 0 ? spaces : 0, "", text, columns < 0 ? 0 : spaces, "");
}
