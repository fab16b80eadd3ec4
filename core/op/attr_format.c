/*
 * Attribute values as MXNet's Python front end writes them into a symbol file: "(3, 3)", "(3,)", "True",
 * "relu", "0.9", "1e-05", "None", "float32". Reading such a text gives the same value again, bit for bit.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "op/attr_type.h"
#include "op/op.h"

/* The fewest decimal digits that read back as `value`, without a point; *exponent: value = 0.DIGITS x
 * 10^exponent. */
static size_t float_digits(double value, char digits[24], int *exponent)
{
    char text[40];

    for (int precision = 0; precision < 17; precision++) {
        double back;
        size_t count = 0;
        char *e;

        snprintf(text, sizeof text, "%.*e", precision, value);
        if (precision > 0)
            text[1] = '.'; /* whatever the locale's point is */
        e = strchr(text, 'e');
        for (char *p = text; p < e; p++)
            if (*p >= '0' && *p <= '9')
                digits[count++] = *p;
        digits[count] = '\0';
        *exponent = (int)strtol(e + 1, NULL, 10) + 1;
        if (tni_parse_f64(text, &back) && back == value)
            break;
    }
    for (size_t count = strlen(digits); count > 1 && digits[count - 1] == '0';)
        digits[--count] = '\0';
    return strlen(digits);
}

/* As Python's repr(): exponents from -4 to 15 are written out. */
static tn_status float_format(double value, tni_str *out)
{
    char digits[24];
    int exponent, count;

    if (isnan(value))
        return tni_str_add(out, "nan");
    if (signbit(value))
        tni_str_add(out, "-");
    if (isinf(value))
        return tni_str_add(out, "inf");
    count = (int)float_digits(fabs(value), digits, &exponent);
    if (value == 0.0)
        exponent = 1;
    if (exponent < -3 || exponent > 16) {
        tni_str_addf(out, "%c%s%s", digits[0], count > 1 ? "." : "", digits + 1);
        return tni_str_addf(out, "e%c%02d", exponent < 1 ? '-' : '+',
                            exponent < 1 ? 1 - exponent : exponent - 1);
    }
    if (exponent <= 0)
        return tni_str_addf(out, "0.%.*s%s", -exponent, "0000", digits);
    if (count <= exponent)
        return tni_str_addf(out, "%s%.*s.0", digits, exponent - count, "0000000000000000");
    return tni_str_addf(out, "%.*s.%s", exponent, digits, digits + exponent);
}

static tn_status choice_format(const char *choices, tn_value value, tni_str *out)
{
    const char *p = choices;

    for (tn_value i = 0; p && i < value; i++)
        p = (p = strchr(p, '|')) ? p + 1 : NULL;
    if (!p)
        return tni_error(TN_E_ATTR, "choice %" PRIu64 " is not among %s", value, choices);
    return tni_str_add_bytes(out, p, strcspn(p, "|"));
}

static tn_status tuple_format(uint32_t type, const void *p, tni_str *out)
{
    const tn_tuple *t = p;
    const tn_floats *f = p;

    tni_str_add(out, "(");
    for (int64_t i = 0; i < t->count; i++) {
        if (i > 0)
            tni_str_add(out, ", ");
        if (type == TN_ATTR_T_FLOATS)
            float_format(f->item[i], out);
        else if (type == TN_ATTR_T_OPT_TUPLE && t->item[i] == TN_NONE_ITEM)
            tni_str_add(out, "None");
        else
            tni_str_addf(out, "%" PRId64, t->item[i]);
    }
    return tni_str_add(out, t->count == 1 ? ",)" : ")");
}

/* Two items are one dimension, whose numbers MXNet writes as two tuples. */
static tn_status pairs_format(const tn_tuple *t, tni_str *out)
{
    const int64_t each = t->count == 2 ? 1 : 2;

    tni_str_add(out, "(");
    for (int64_t i = 0; i < t->count; i += each) {
        tni_str_addf(out, "%s(%" PRId64 ",", i ? ", " : "", t->item[i]);
        if (each == 2 && i + 1 < t->count)
            tni_str_addf(out, " %" PRId64, t->item[i + 1]);
        tni_str_add(out, ")");
    }
    return tni_str_add(out, t->count == 1 ? ",)" : ")");
}

static tn_status pointer_format(const tn_attr_def *d, const void *p, tni_str *out)
{
    if (d->flags & TN_ATTR_F_PAIRS)
        return pairs_format(p, out);
    switch (d->type) {
    case TN_ATTR_T_TEXT:
        return tni_str_add(out, p);
    case TN_ATTR_T_OPT_INT:
        return tni_str_addf(out, "%" PRId64, *(const int64_t *)p);
    case TN_ATTR_T_OPT_BOOL:
        return tni_str_add(out, *(const int64_t *)p ? "True" : "False");
    case TN_ATTR_T_OPT_FLOAT:
        return float_format(*(const double *)p, out);
    default:
        return tuple_format(d->type, p, out);
    }
}

tn_status tni_attr_format(const tn_attr_def *def, tn_value value, tni_str *out)
{
    const char *name;

    if (tni_attr_is_pointer(def->type))
        return value ? pointer_format(def, tn_value_pointer(value), out) : tni_str_add(out, "None");
    switch (def->type) {
    case TN_ATTR_T_INT:
        return tni_str_addf(out, "%" PRId64, tn_value_int(value));
    case TN_ATTR_T_BOOL:
        return tni_str_add(out, value ? "True" : "False");
    case TN_ATTR_T_FLOAT:
        return float_format(tn_value_float(value), out);
    case TN_ATTR_T_CHOICE:
        return choice_format(def->choices, value, out);
    case TN_ATTR_T_DTYPE:
        name = tn_value_int(value) < 0 ? "None" : tni_dtype_name((int32_t)tn_value_int(value));
        if (name)
            return tni_str_add(out, name);
        return tni_error(TN_E_ATTR, "%s: %" PRId64 " is not a data type", def->name, tn_value_int(value));
    default:
        return tni_error(TN_E_INTERNAL, "%s: attribute type %u is unknown", def->name, def->type);
    }
}
