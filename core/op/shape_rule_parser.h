/*
 * What reads rules, between shape_rule_parse.c (shapes) and shape_rule_gradient.c (gradients). Each function
 * takes what it needs from the text and leaves the rest. The first failure sticks: the functions behind it
 * read on without effect.
 */
#ifndef TN_OP_SHAPE_RULE_PARSER_H
#define TN_OP_SHAPE_RULE_PARSER_H

#include <stddef.h>
#include <string.h>

#include "op/shape_rule.h"

typedef struct parser {
    tni_shape_rule *rule;
    const char *which; /* rule it is, for messages */
    const char *text;  /* the whole rule */
    const char *p;
    tn_status st;
    bool heads;         /* only what names need: the heads of the first case's arguments, the first row */
    uint8_t case_index; /* that is read */
    uint8_t arg;        /* that is read, within its case */
    uint8_t depth;      /* of brackets around the place that is read */
} parser;

static inline void fail(parser *p, const char *what)
{
    char rest[41] = "its end"; /* the text may be anybody's: what cannot be printed is a point */

    for (size_t n = 0; n + 1 < sizeof rest && p->p[n]; n++) {
        rest[n] = p->p[n];
        if (rest[n] < ' ' || rest[n] > '~')
            rest[n] = '.';
        rest[n + 1] = '\0';
    }
    if (!p->st)
        p->st = tni_error(TN_E_ARG, "operator %.100s: its %s rule: %s at \"%s\", character %td",
                          p->rule->op->name, p->which, what, rest, p->p - p->text + 1);
}

static inline bool lower(char c)
{
    return (c >= 'a' && c <= 'z') || c == '_';
}

static inline bool upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static inline bool digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline void blanks(parser *p)
{
    while (*p->p == ' ')
        p->p++;
}

static inline bool take(parser *p, const char *token)
{
    const size_t n = strlen(token);

    if (p->st || strncmp(p->p, token, n) != 0)
        return false;
    p->p += n;
    return true;
}

static inline void expect(parser *p, const char *token)
{
    char what[32];

    if (take(p, token))
        return;
    snprintf(what, sizeof what, "%s is missing", token);
    fail(p, what);
}

/* Takes the next free row of a table. */
static inline uint8_t table_add(parser *p, uint8_t *count, size_t max)
{
    if (*count >= max) {
        fail(p, "it is too long");
        return 0;
    }
    return (*count)++;
}

static inline size_t word_length(const char *text)
{
    size_t n = 0;

    while (lower(text[n]) || upper(text[n]) || digit(text[n]))
        n++;
    return n;
}

/* The attribute of this name; -1: there is none. */
static inline int16_t attr_find(const tn_op *op, const char *name, size_t length)
{
    for (int16_t i = 0; op->attrs && op->attrs[i].name; i++)
        if (strlen(op->attrs[i].name) == length && memcmp(op->attrs[i].name, name, length) == 0)
            return i;
    return -1;
}

/* An attribute of one of these types, called `needed` in messages. */
int16_t tni_rule_attr_read(parser *p, uint32_t types, const char *needed);
/* "name", an argument as written; RULE_NONE, and nothing is taken: none is called so. */
uint8_t tni_rule_arg_find(const parser *p, size_t length);
uint8_t tni_rule_cond_read(parser *p);
/* These begin a text of their own; arguments are known. */
void tni_rule_gradients_read(parser *p, const char *text);
void tni_rule_types_read(parser *p, const char *text);
/* Reads steps without making anything, up to "|" or the end. `row`: of the backward operator whose second
 * derivative they are; NULL: of the operator. `factor`: one value instead. */
void tni_gradient_steps_read(parser *p, const rule_gradient *row, bool factor);

#endif
