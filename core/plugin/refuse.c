/*
 * The refusals L01 to L19. Each is a row of errors.list (TN number 3000 + code) with one sentence and one
 * advice; the checks here compare what a note or a descriptor says with what this core accepts, before
 * anything of it runs.
 */
#include <string.h>

#include "plugin/internal.h"

#define DESCRIPTOR_SIZE_MIN ((uint32_t)TN_END(tn_plugin, capabilities))

static const tni_abi_range core_range = {
    .magic = TN_MAGIC, .major = TN_ABI_MAJOR, .minor = TN_ABI_MINOR, .floor = 0};

const tni_abi_range *tni_abi_of_core(void)
{
    return &core_range;
}

tn_status tni_refuse(uint32_t code, tn_status status, const char *format, ...)
{
    char text[480];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return tni_error_number(TNI_REFUSAL_BASE + code, status, "%s", text);
}

uint32_t tni_refusal_code(void)
{
    tn_err err;

    tni_error_get(&err);
    return err.number > TNI_REFUSAL_BASE && err.number < TNI_REFUSAL_BASE + 100
               ? err.number - TNI_REFUSAL_BASE
               : 0;
}

void tni_refusal_reason(char *out, size_t size)
{
    const tni_error_row *row;
    tn_err err;

    tni_error_get(&err);
    row = tni_error_row_find(err.number);
    snprintf(out, size, "%.300s%s%s", err.message, row && row->advice[0] ? "; " : "", row ? row->advice : "");
}

/* Tags are compared byte for byte; the message shows both. */
static tn_status tag_check(const tn_note_body *b)
{
    if (strcmp(b->tag, TN_ABI_TAG) == 0)
        return TN_OK;
    return tni_refuse(4, TN_E_UNSUPPORTED, "%s %s is built for %s, this is %s", b->name, b->version,
                      b->tag[0] ? b->tag : "no platform", TN_ABI_TAG);
}

tn_status tni_refuse_note(const tni_note *note, const tni_abi_range *range)
{
    const tn_note_body *b = &note->body;
    tn_status st = tag_check(b);

    if (st)
        return st;
    if (b->magic != range->magic || b->abi_major != range->major)
        return tni_refuse(5, TN_E_UNSUPPORTED,
                          "%s %s is built for ABI %u draft %u, this core provides ABI %u draft %u", b->name,
                          b->version, b->abi_major, b->magic & 0xff, range->major, range->magic & 0xff);
    if (b->flags)
        return tni_refuse(3, TN_E_FORMAT, "%s: the note has the flags %#x, of which none is known", b->name,
                          b->flags);
    if (b->abi_minor_min > b->abi_minor)
        return tni_refuse(3, TN_E_FORMAT, "%s: the note needs minor %u but knows only %u", b->name,
                          b->abi_minor_min, b->abi_minor);
    if (b->abi_minor_min > range->minor)
        return tni_refuse(6, TN_E_UNSUPPORTED, "%s %s needs ABI %u.%u, this core provides %u.%u", b->name,
                          b->version, range->major, b->abi_minor_min, range->major, range->minor);
    if (b->abi_minor < range->floor)
        return tni_refuse(7, TN_E_UNSUPPORTED, "%s %s knows ABI %u.%u, this core supports %u.%u and newer",
                          b->name, b->version, range->major, b->abi_minor, range->major, range->floor);
    if (!tni_isa_present(b->isa))
        return tni_refuse(8, TN_E_UNSUPPORTED, "%s %s needs the instruction set %s", b->name, b->version,
                          b->isa);
    return TN_OK;
}

static tn_status text_equal(const char *theirs, const char *note, const char *what)
{
    if (!theirs)
        return tni_refuse(13, TN_E_FORMAT, "the descriptor has no %s", what);
    if (strcmp(theirs, note) != 0)
        return tni_refuse(13, TN_E_FORMAT, "the descriptor's %s is %.60s, the note's is %.60s", what, theirs,
                          note);
    return TN_OK;
}

static const char *const kind_names[] = {NULL,        "op",         "kernels", "device", "pool",
                                         "transport", "collective", "iter",    "format", "pass",
                                         "options",   "archive",    "image"};
#define KINDS (sizeof kind_names / sizeof kind_names[0])

const char *tni_kind_name(uint32_t kind)
{
    return kind > 0 && kind < KINDS ? kind_names[kind] : NULL;
}

/* What a plugin brings must stand in `provides`, or nobody would load it for that. Kinds with a name but no
 * user are sketches and refused; numbers without a name are for newer cores. */
static tn_status capability_check(const tn_capability *c, const tni_note *note)
{
    const tn_note_body *b = &note->body;
    const char *kind;

    if (c->struct_size < sizeof *c)
        return tni_refuse(13, TN_E_FORMAT, "a capability table of %s says it has %u bytes", b->name,
                          c->struct_size);
    kind = tni_kind_name(c->kind);
    if (!c->kind)
        return tni_refuse(13, TN_E_FORMAT, "a capability table of %s has no kind", b->name);
    if (!kind)
        return TN_OK;
    if (c->kind >= TN_KIND_ITER && c->kind <= TN_KIND_PASS)
        return tni_refuse(
            13, TN_E_UNSUPPORTED,
            "%s has a table of kind %s, which is reserved: this core uses none from plugins yet", b->name,
            kind);
    if (!c->id)
        return tni_refuse(13, TN_E_FORMAT, "a capability table of kind %s has no id", kind);
    if (c->kind == TN_KIND_OPTIONS)
        return TN_OK;
    if (!tni_note_provides(note, kind, c->kind == TN_KIND_OPS ? NULL : c->id))
        return tni_refuse(13, TN_E_FORMAT,
                          "%s has a table %s:%.60s, which the note's `provides` does not name", b->name, kind,
                          c->id);
    if (c->kind == TN_KIND_KERNELS)
        return tni_refuse_kernels(c, b);
    if (c->kind == TN_KIND_ARCHIVE)
        return tni_refuse_archive(c, b);
    if (c->kind == TN_KIND_TRANSPORT)
        return tni_refuse_transport(c, b);
    if (c->kind == TN_KIND_COLLECTIVE)
        return tni_refuse_collective(c, b);
    if (c->kind == TN_KIND_IMAGE)
        return tni_refuse_image(c, b);
    return c->kind == TN_KIND_OPS ? tni_refuse_ops(c, b) : TN_OK;
}

tn_status tni_refuse_descriptor(const tn_plugin *d, const tni_note *note, const tni_abi_range *range)
{
    const tn_note_body *b = &note->body;
    tn_status st;

    if (d->struct_size < DESCRIPTOR_SIZE_MIN || d->magic != range->magic)
        return tni_refuse(13, TN_E_FORMAT,
                          "the descriptor has %u bytes and magic %08x, expected at least %u and %08x",
                          d->struct_size, d->magic, DESCRIPTOR_SIZE_MIN, range->magic);
    if (d->flags != b->flags)
        return tni_refuse(13, TN_E_FORMAT, "the descriptor has the flags %#x, the note %#x", d->flags,
                          b->flags);
    if (d->abi_major != b->abi_major || d->abi_minor != b->abi_minor || d->abi_minor_min != b->abi_minor_min)
        return tni_refuse(
            13, TN_E_FORMAT, "the descriptor's ABI is %u.%u (needs %u), the note's %u.%u (needs %u)",
            d->abi_major, d->abi_minor, d->abi_minor_min, b->abi_major, b->abi_minor, b->abi_minor_min);
    if ((st = text_equal(d->name, b->name, "name")) || (st = text_equal(d->version, b->version, "version")) ||
        (st = text_equal(d->license, b->license, "license")))
        return st;
    if (!d->capabilities)
        return tni_refuse(13, TN_E_FORMAT, "the descriptor has no list of capabilities");
    for (size_t i = 0; d->capabilities[i] && !st; i++)
        st = i < TNI_CAPABILITIES_MAX
                 ? capability_check(d->capabilities[i], note)
                 : tni_refuse(13, TN_E_FORMAT, "over %d capability tables", TNI_CAPABILITIES_MAX);
    return st;
}
