/*
 * Are the tables of a plugin what their readers take for granted? A kernel without a function or a name would
 * be a crash in whoever looks for kernels, so the whole plugin is refused (L13) before its init. What a
 * definition of an operator, a device or a pool must have is looked at where it is first used.
 */
#include <string.h>

#include "plugin/internal.h"
#include "tenon/plugin/archive.h"
#include "tenon/plugin/collective.h"
#include "tenon/plugin/image.h"
#include "tenon/plugin/op.h"
#include "tenon/plugin/transport.h"

/* "data:f32,f64": a name, a colon, at least one type. */
static bool types_read(const char *const *types)
{
    for (size_t i = 0; types && types[i]; i++) {
        const char *colon = strchr(types[i], ':');

        if (!colon || colon == types[i] || !colon[1])
            return false;
    }
    return true;
}

/* What is wrong with a kernel; NULL: nothing. */
static const char *kernel_fault(const tn_kernel *k)
{
    if (k->struct_size < TN_END(tn_kernel, release))
        return "is too small a struct";
    if (!k->op || !k->op[0])
        return "names no operator";
    if (!k->name || !k->name[0])
        return "has no name";
    if (!k->device || !k->device[0])
        return "names no device type";
    if (!k->run)
        return "has no function run";
    if (k->op_version_min > k->op_version_max)
        return "is for no version of its operator";
    if (k->flags & ~TN_KERNEL_KNOWN)
        return "has flags that this core does not know";
    return types_read(k->types) ? NULL : "has a rule of types that is not NAME:TYPES";
}

tn_status tni_refuse_kernels(const tn_capability *head, const tn_note_body *b)
{
    const tn_kernel_table *t = (const tn_kernel_table *)(const void *)head;

    if (head->struct_size < TN_END(tn_kernel_table, kernels) || !t->kernels)
        return tni_refuse(13, TN_E_FORMAT, "%s has a table kernels@%.60s without kernels", b->name, head->id);
    for (size_t i = 0; t->kernels[i]; i++) {
        const char *fault = i < TN_KERNELS_MAX ? kernel_fault(t->kernels[i]) : "is one too many";

        if (fault)
            return tni_refuse(13, TN_E_FORMAT, "kernel %zu of %s's table kernels@%.60s %s", i, b->name,
                              head->id, fault);
    }
    return TN_OK;
}

tn_status tni_refuse_ops(const tn_capability *head, const tn_note_body *b)
{
    if (head->struct_size < TN_END(tn_op_table, ops) || !((const tn_op_table *)(const void *)head)->ops)
        return tni_refuse(13, TN_E_FORMAT, "%s has a table op:%.60s without operators", b->name, head->id);
    return TN_OK;
}

static tn_status function_lacks(const char *kind, const tn_capability *head, const tn_note_body *b)
{
    return tni_refuse(13, TN_E_FORMAT, "%s has a table %s:%.60s that lacks a function", b->name, kind,
                      head->id);
}

tn_status tni_refuse_archive(const tn_capability *head, const tn_note_body *b)
{
    const tn_archive_ops *o = (const tn_archive_ops *)(const void *)head;

    if (head->struct_size >= TN_END(tn_archive_ops, write) && o->probe && o->open && o->entry && o->begin &&
        o->read && o->close && o->write)
        return TN_OK;
    return function_lacks("archive", head, b);
}

tn_status tni_refuse_image(const tn_capability *head, const tn_note_body *b)
{
    const tn_image_ops *o = (const tn_image_ops *)(const void *)head;

    if (head->struct_size >= TN_END(tn_image_ops, encode) && o->extensions && o->probe && o->info &&
        o->decode && o->encode)
        return TN_OK;
    return function_lacks("image", head, b);
}

tn_status tni_refuse_collective(const tn_capability *head, const tn_note_body *b)
{
    const tn_collective_ops *o = (const tn_collective_ops *)(const void *)head;

    if (head->struct_size >= TN_END(tn_collective_ops, close) && o->open && o->info && o->start && o->poll &&
        o->wake && o->abort && o->close)
        return TN_OK;
    return function_lacks("collective", head, b);
}

/* Of members that go together: all of them, or none. */
static bool transport_whole(const tn_transport_ops *o)
{
    const bool put = TN_OFFERS(o, tn_transport_ops, put), landing = TN_OFFERS(o, tn_transport_ops, landing);

    return o->open && o->info && o->listen && o->connect && o->send && o->poll && o->wake && o->release &&
           o->disconnect && o->close && put == landing &&
           put == TN_OFFERS(o, tn_transport_ops, landing_remove) &&
           TN_OFFERS(o, tn_transport_ops, region_add) == TN_OFFERS(o, tn_transport_ops, region_remove);
}

tn_status tni_refuse_transport(const tn_capability *head, const tn_note_body *b)
{
    if (head->struct_size >= TN_END(tn_transport_ops, close) &&
        transport_whole((const tn_transport_ops *)(const void *)head))
        return TN_OK;
    return function_lacks("transport", head, b);
}
