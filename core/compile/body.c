/*
 * Operators that have a body and no kernel of their own that takes the request: a kernel of _fused_pointwise
 * computes it. Run-time attributes keep their places, so the kernel reads them where those of the operator
 * lie.
 */
#include "compile/select.h"

static tn_status dtypes_check(const tni_request *r)
{
    for (uint32_t i = 0; i < r->in_count + r->out_count; i++)
        if ((i < r->in_count ? r->in[i] : r->out[i - r->in_count])->dtype != r->out[0]->dtype)
            return tni_error(TN_E_UNSUPPORTED, "operator %s: its body takes arguments of one data type",
                             r->def->op->name);
    return TN_OK;
}

tn_status tni_point_attrs(tni_opset *ops, const tn_point_code *code, tni_attrs **out)
{
    const char *const names[] = {"program", "num_args"};
    const char *texts[2];
    const tni_opdef *def = NULL;
    char count[16];
    tni_str text;
    tn_status st;

    tni_str_init(&text, 1u << 16);
    (void)snprintf(count, sizeof count, "%u", code->input_count);
    if (!(st = tni_opset_find(ops, "_fused_pointwise", &def)) && !(st = tni_point_write(code, &text))) {
        texts[0] = text.text;
        texts[1] = count;
        st = tni_attrs_parse(def, 2, names, texts, out);
    }
    tni_str_fini(&text);
    return st;
}

static tn_status body_ask(tni_selector *s, const tni_request *r, tn_point_code *code, tni_prepared **out)
{
    tni_request fused = *r;
    tni_attrs *attrs = NULL;
    tn_status st = dtypes_check(r);

    if (st)
        return st;
    tni_body_code(r->def, r->attrs, r->out[0]->dtype, code);
    if (!(st = tni_point_attrs(tni_selector_ops(s), code, &attrs))) {
        fused.def = attrs->def;
        fused.attrs = attrs;
        fused.forward = NULL;
        st = tni_select(s, &fused, out);
    }
    tni_attrs_release(attrs);
    return st;
}

tn_status tni_body_select(tni_selector *s, const tni_request *r, tni_prepared **out, tni_str *text)
{
    tn_point_code *code = tni_alloc(sizeof *code);
    const tn_status st = code ? body_ask(s, r, code, out) : TN_E_NOMEM;

    if (st == TN_E_UNSUPPORTED)
        (void)tni_str_addf(text, "and its body cannot run: %s", tni_error_message());
    tni_free(code);
    return st;
}

tn_status tni_body_count(tni_selector *s, const tni_opdef *def, tni_device *device, uint32_t *count,
                         uint32_t *prompt)
{
    const tni_opdef *fused = NULL;
    const tn_status st = def->body ? tni_opset_find(tni_selector_ops(s), "_fused_pointwise", &fused) : TN_OK;

    *count = *prompt = 0;
    return st || !fused ? st : tni_select_count(s, fused, device, count, prompt);
}
