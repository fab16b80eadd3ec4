/*
 * The kernel of a chain as text: the rows of plugins/common as functions, one element through all steps, and
 * around it the loops, over groups of elements that are read and written in pieces of 16 bytes where all lies
 * dense, and over single ones for the rest. Shapes, strides, addresses and numbers are arguments, so that one
 * text serves every size; what depends on the plan is only how many elements there are (32-bit indices, or
 * 64-bit ones) and how each array lies.
 */
#include "fused.h"

#include "tenon/plugin/pointwise.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const dtype_names[TN_DTYPE_LIMIT] = {
    [TN_F32] = "f32", [TN_F64] = "f64", [TN_F16] = "f16",   [TN_U8] = "u8",   [TN_I32] = "i32",
    [TN_I8] = "i8",   [TN_I64] = "i64", [TN_BOOL] = "bool", [TN_I16] = "i16", [TN_U16] = "u16",
    [TN_U32] = "u32", [TN_U64] = "u64", [TN_BF16] = "bf16"};
static const char *const kind_names[] = {"f32", "f64", "i32", "i64"};
static const char *const kind_words[] = {"F32", "F64", "I32", "I64"};

static const char *const expressions[] = {
#define LOOP1(id, ns, expression) #expression,
#define LOOP2(id, ns, expression) #expression,
#define LOOP3(id, ns, expression) #expression,
#define LOOP1S(id, ns, expression) #expression,
#define LOOP2S(id, ns, expression) #expression,
#define LOOP1SS(id, ns, expression) #expression,
#define LOOP2SS(id, ns, expression) #expression,
#include "../common/loops.list"
#include "../common/loops_float.list"
#include "../common/loops_int.list"
};

typedef struct writer {
    char *at, *end;
    bool full;
} writer;

__attribute__((format(printf, 2, 3))) static void put(writer *w, const char *format, ...)
{
    va_list list;
    int n;

    va_start(list, format);
    n = vsnprintf(w->at, (size_t)(w->end - w->at), format, list);
    va_end(list);
    if (n < 0 || n >= w->end - w->at)
        w->full = true;
    else
        w->at += n;
}

/* ---- how arrays lie ------------------------------------------------------------------------------------ */

/* Inputs, then outputs. */
static const tncuda_fused_place *place_at(const tncuda_fused_plan *p, uint32_t index)
{
    return index < p->in_count ? &p->args.in[index] : &p->args.out[index - p->in_count];
}

static uint32_t places(const tncuda_fused_plan *p)
{
    return p->in_count + (uint32_t)p->args.outs;
}

static uint8_t lies_of(const tncuda_fused_args *args, const tncuda_fused_place *place)
{
    int64_t expected = 1;
    bool dense = true, one = true;

    for (int32_t d = args->ndim; d-- > 0;) {
        dense = dense && place->stride[d] == expected;
        one = one && place->stride[d] == 0;
        expected *= args->shape[d];
    }
    return dense ? TNCUDA_LIES_DENSE : one ? TNCUDA_LIES_ONE : TNCUDA_LIES_FAR;
}

static int32_t bytes_of(const tncuda_fused_place *place)
{
    return (int32_t)tn_dtype_bytes(place->dtype);
}

void tncuda_fused_look(tncuda_fused_plan *p)
{
    int32_t least = 8;

    p->far_count = 0;
    for (uint32_t i = 0; i < places(p); i++) {
        const uint8_t lies = p->lies[i] = lies_of(&p->args, place_at(p, i));

        if (lies == TNCUDA_LIES_FAR || (lies == TNCUDA_LIES_ONE && i >= p->in_count)) {
            p->lies[i] = TNCUDA_LIES_FAR;
            p->far[p->far_count++] = (uint8_t)i;
        } else if (lies == TNCUDA_LIES_DENSE && bytes_of(place_at(p, i)) < least) {
            least = bytes_of(place_at(p, i));
        }
    }
    for (uint32_t i = p->in_count; i < places(p); i++)
        least = p->lies[i] == TNCUDA_LIES_FAR ? 16 : least;
    p->width = least < 2 ? 8 : 16 / least;
}

static bool is_add(const tncuda_fused_plan *p, uint32_t place)
{
    return place >= p->in_count && place_at(p, place)->mode == TN_MODE_ADD;
}

/* ---- the parts of the text ----------------------------------------------------------------------------- */

/* The loops of one compute type, each once. */
static void put_loops(writer *w, const tncuda_fused_plan *p, uint8_t kind)
{
    bool any = false;

    for (int32_t k = 0; k < p->args.steps; k++) {
        const tncuda_fused_step *s = &p->args.step[k];
        bool first = s->kind == kind;

        for (int32_t before = 0; before < k && first; before++)
            first = p->args.step[before].kind != kind || p->args.step[before].loop != s->loop;
        if (!first)
            continue;
        if (!any)
            put(w, "#define WORDS_%s\n#include \"words.inc\"\n", kind_words[kind]);
        any = true;
        put(w,
            "TNCUDA_INLINE T loop_%s_%s(T a, T b, T c, T s, T s2, int32_t to_short)\n{\n"
            "    (void)a, (void)b, (void)c, (void)s, (void)s2, (void)to_short;\n    return (T)(%s);\n}\n",
            p->loop[k], kind_names[kind], expressions[s->loop]);
    }
    if (any)
        put(w, "#include \"words_end.inc\"\n");
}

static void put_args(writer *w, const tncuda_fused_plan *p)
{
    const uint32_t n = p->far_count;

    put(w, "typedef struct fused_args {\n    int64_t count, wide;\n    void *at[%u];\n", (unsigned)places(p));
    if (p->numbers)
        put(w, "    double number[%u];\n", (unsigned)p->numbers);
    if (n)
        put(w, "    int64_t shape[%d], stride[%u][%d];\n", (int)p->args.ndim, (unsigned)n, (int)p->args.ndim);
    put(w, "} fused_args;\n");
}

static const char *name_of(const tncuda_fused_place *place)
{
    return dtype_names[place->dtype];
}

/* The operand of a step as its compute type: an element of an input, or of an earlier step. */
static void put_operand(writer *w, const tncuda_fused_plan *p, const tncuda_fused_step *s, uint8_t from)
{
    const bool result = from >= TNCUDA_FUSED_RESULT;
    const int32_t dtype = result ? p->args.step[from - TNCUDA_FUSED_RESULT].dtype : p->args.in[from].dtype;

    put(w, "get_%s_%s(%c%u)", dtype_names[dtype], kind_names[s->kind], result ? 'r' : 'i',
        (unsigned)(result ? from - TNCUDA_FUSED_RESULT : from));
}

static void put_step(writer *w, const tncuda_fused_plan *p, int32_t k)
{
    const tncuda_fused_step *s = &p->args.step[k];
    const char *kind = kind_names[s->kind], *dtype = dtype_names[s->dtype];
    const unsigned given = (unsigned)p->loop_numbers[k] + (s->scalar != 255), at = s->number;

    put(w, "    const e_%s r%d = put_%s_%s(loop_%s_%s(", dtype, (int)k, dtype, kind, p->loop[k], kind);
    for (uint32_t o = 0, from = 0; o < 3; o++) {
        if (o >= s->operands)
            put(w, "0");
        else if (o == s->scalar)
            put(w, "n%u", at);
        else
            put_operand(w, p, s, s->operand[from++]);
        put(w, ", ");
    }
    put(w, given > 0 ? "n%u, " : "0, ", at);
    put(w, p->loop_numbers[k] > 1 ? "n%u" : "0", at + 1);
    put(w, ", %d));\n", tncuda_is_short(s->dtype));
}

/* One element through all steps. An output that is added to has what is there. */
static void put_element(writer *w, const tncuda_fused_plan *p)
{
    const char *comma = "";

    put(w, "TNCUDA_INLINE void fused_element(");
    for (uint32_t n = 0; n < p->numbers; n++, comma = ", ")
        put(w, "%sconst t_%s n%u", comma, kind_names[p->number[n].kind], (unsigned)n);
    for (uint32_t i = 0; i < places(p); i++, comma = ", ")
        put(w, i < p->in_count ? "%sconst e_%s i%u" : "%se_%s *i%u", comma, name_of(place_at(p, i)),
            (unsigned)i);
    put(w, ")\n{\n");
    for (int32_t k = 0; k < p->args.steps; k++)
        put_step(w, p, k);
    for (uint32_t i = p->in_count; i < places(p); i++) {
        const unsigned result = p->args.result[i - p->in_count], to = i;

        if (is_add(p, i))
            put(w, "    *i%u = plus_%s(*i%u, r%u);\n", to, name_of(place_at(p, i)), to, result);
        else
            put(w, "    *i%u = r%u;\n", to, result);
    }
    put(w, "}\n");
}

/* Numbers of the run, and elements that are the same for all. */
static void put_constants(writer *w, const tncuda_fused_plan *p)
{
    for (uint32_t n = 0; n < p->numbers; n++)
        put(w, "    const t_%s n%u = number_%s(call->number[%u]);\n", kind_names[p->number[n].kind],
            (unsigned)n, kind_names[p->number[n].kind], (unsigned)n);
    for (uint32_t i = 0; i < p->in_count; i++)
        if (p->lies[i] == TNCUDA_LIES_ONE)
            put(w, "    const e_%s one%u = *(const e_%s *)call->at[%u];\n", name_of(place_at(p, i)),
                (unsigned)i, name_of(place_at(p, i)), (unsigned)i);
}

/* Where element `first` lies in the arrays that lie by strides: at0, at1 ... */
static void put_offsets(writer *w, const tncuda_fused_plan *p, const char *first)
{
    const uint32_t n = p->far_count;

    if (!n)
        return;
    put(w, "        index_t rest = %s%s;\n", first, p->args.ndim > 1 ? ", above" : "");
    for (uint32_t f = 0; f < n; f++)
        put(w, "        int64_t at%u = 0;\n", (unsigned)p->far[f]);
    for (int32_t d = p->args.ndim; d-- > 0;) {
        if (d > 0)
            put(w,
                "        above = rest / (index_t)call->shape[%d];\n"
                "        rest -= above * (index_t)call->shape[%d];\n",
                (int)d, (int)d);
        for (uint32_t f = 0; f < n; f++)
            put(w, "        at%u += (int64_t)rest * call->stride[%u][%d];\n", (unsigned)p->far[f],
                (unsigned)f, (int)d);
        if (d > 0)
            put(w, "        rest = above;\n");
    }
}

static void put_call(writer *w, const tncuda_fused_plan *p, bool wide)
{
    const char *comma = "";

    put(w, "fused_element(");
    for (uint32_t n = 0; n < p->numbers; n++, comma = ", ")
        put(w, "%sn%u", comma, (unsigned)n);
    for (uint32_t i = 0; i < places(p); i++, comma = ", ") {
        const int32_t lies = p->lies[i];
        const char *dtype = name_of(place_at(p, i));
        const unsigned u = i;
        uint32_t f = 0;

        while (f < p->far_count && p->far[f] != i)
            f++;
        put(w, "%s", comma);
        if (i >= p->in_count)
            put(w, wide ? "&p%u.v[j]" : "&p%u", u);
        else if (lies == TNCUDA_LIES_ONE)
            put(w, "one%u", u);
        else if (lies == TNCUDA_LIES_DENSE)
            put(w, wide ? "p%u.v[j]" : "p%u", u);
        else if (wide)
            put(w, "((const e_%s *)call->at[%u])[at%u + j * call->stride[%u][%d]]", dtype, u, u, (unsigned)f,
                (int)p->args.ndim - 1);
        else
            put(w, "((const e_%s *)call->at[%u])[at%u]", dtype, u, u);
    }
    put(w, ");\n");
}

/* Reads and writes of one turn of a loop: of packs at `g`, or of single elements at `i` and by strides. */
static void put_moves(writer *w, const tncuda_fused_plan *p, bool wide, bool reads)
{
    for (uint32_t i = reads ? 0 : p->in_count; i < places(p); i++) {
        const bool far = p->lies[i] == TNCUDA_LIES_FAR, out = i >= p->in_count;
        const char *type = wide ? "pack" : "e", *dtype = name_of(place_at(p, i)), *index = wide ? "g" : "i";
        const unsigned u = i;
        char at[24];

        if (!out && p->lies[i] != TNCUDA_LIES_DENSE)
            continue;
        if (far)
            (void)snprintf(at, sizeof at, "at%u", u);
        else
            (void)snprintf(at, sizeof at, "%s", index);
        if (!reads)
            put(w, "        ((%s_%s *)call->at[%u])[%s] = p%u;\n", type, dtype, u, at, u);
        else if (out && !is_add(p, i))
            put(w, "        %s_%s p%u;\n", type, dtype, u);
        else
            put(w, "        %s%s_%s p%u = ((const %s_%s *)call->at[%u])[%s];\n", out ? "" : "const ", type,
                dtype, u, type, dtype, u, at);
    }
}

static void put_kernel(writer *w, const tncuda_fused_plan *p)
{
    const int32_t width = p->width;

    put(w, "TNCUDA_KERNEL(FUSED_NAME, FREE, fused_args)\n{\n    const index_t count = (index_t)call->count;\n"
           "    index_t done = 0;\n");
    put_constants(w, p);
    if (width > 1) {
        put(w,
            "    if (call->wide) {\n    done = count / %d * %d;\n"
            "    for (index_t g = (index_t)TNCUDA_FIRST; g < count / %d; g += (index_t)TNCUDA_STEP) {\n",
            (int)width, (int)width, (int)width);
        put_offsets(w, p, "g * FUSED_WIDTH");
        put_moves(w, p, true, true);
        put(w, "        FUSED_EACH\n        for (int32_t j = 0; j < FUSED_WIDTH; j++)\n            ");
        put_call(w, p, true);
        put_moves(w, p, true, false);
        put(w, "    }\n    }\n");
    }
    put(w, "    for (index_t i = done + (index_t)TNCUDA_FIRST; i < count; i += (index_t)TNCUDA_STEP) {\n");
    put_offsets(w, p, "i");
    put_moves(w, p, false, true);
    put(w, "        ");
    put_call(w, p, false);
    put_moves(w, p, false, false);
    put(w, "    }\n}\n");
}

static void put_packs(writer *w, const tncuda_fused_plan *p)
{
    const int32_t width = p->width;

    put(w, "#define FUSED_WIDTH %d\n", (int)width);
    for (uint32_t i = 0; i < places(p); i++) {
        bool first = true;
        const int32_t bytes = bytes_of(place_at(p, i)) * width;

        for (uint32_t before = 0; before < i && first; before++)
            first = place_at(p, before)->dtype != place_at(p, i)->dtype;
        if (first)
            put(w, "FUSED_PACK(%s, %d, %d)\n", name_of(place_at(p, i)), (int)width,
                (int)(bytes < 16 ? bytes : 16));
    }
}

tn_status tncuda_fused_source(const tncuda_fused_plan *p, char *out, size_t bytes, tn_err *err)
{
    writer w = {out, out + bytes, false};

    put(&w,
        "#include \"functions_float.h\"\n#include \"kernel.h\"\n#include \"fused_words.inc\"\n"
        "typedef %s index_t;\n",
        p->args.count < INT32_MAX ? "uint32_t" : "int64_t");
    for (uint8_t kind = 0; kind < 4; kind++)
        put_loops(&w, p, kind);
    put_args(&w, p);
    put_packs(&w, p);
    put_element(&w, p);
    put_kernel(&w, p);
    return w.full ? tn_fail(err, TN_E_UNSUPPORTED, "the chain is too long to be compiled") : TN_OK;
}

/* ---- arguments ----------------------------------------------------------------------------------------- */

void *tncuda_fused_data(const tncuda_fused_plan *p, const tn_exec *x, uint32_t place)
{
    return place < p->in_count ? x->in[p->in_of[place]]->data : x->out[p->out_of[place - p->in_count]]->data;
}

double tncuda_fused_number(const tncuda_fused_plan *p, const tn_exec *x, uint32_t index)
{
    return p->number[index].run == TN_POINT_NUMBER ? p->number[index].value
                                                   : tn_value_float(x->attrs[p->number[index].run]);
}

/* Groups of the wide loop stay within rows, and all packs are aligned. */
static bool fits_wide(const tncuda_fused_plan *p, const tn_exec *x)
{
    bool fits = p->width > 1 && !(p->far_count && p->args.shape[p->args.ndim - 1] % p->width);

    for (uint32_t i = 0; i < places(p) && fits; i++) {
        const uint32_t bytes = (uint32_t)(bytes_of(place_at(p, i)) * p->width);

        if (p->lies[i] == TNCUDA_LIES_DENSE)
            fits = (uintptr_t)tncuda_fused_data(p, x, i) % (bytes < 16 ? bytes : 16) == 0;
    }
    return fits;
}

uint32_t tncuda_fused_words(const tncuda_fused_plan *p, const tn_exec *x, uint64_t *words)
{
    const size_t axes = (size_t)p->args.ndim;
    uint32_t n = 0;

    words[n++] = (uint64_t)p->args.count;
    words[n++] = fits_wide(p, x);
    for (uint32_t i = 0; i < places(p); i++)
        words[n++] = (uint64_t)(uintptr_t)tncuda_fused_data(p, x, i);
    for (uint32_t i = 0; i < p->numbers; i++, n++) {
        const double number = tncuda_fused_number(p, x, i);

        memcpy(&words[n], &number, sizeof number);
    }
    if (!p->far_count)
        return n;
    memcpy(words + n, p->args.shape, axes * sizeof *words);
    n += (uint32_t)axes;
    for (uint32_t f = 0; f < p->far_count; f++, n += (uint32_t)axes)
        memcpy(words + n, place_at(p, p->far[f])->stride, axes * sizeof *words);
    return n;
}
