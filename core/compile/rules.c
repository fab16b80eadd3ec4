/*
 * The rules of a kernel that are decided without asking it: device, versions, instruction set, determinism;
 * and storage and data types, as kernel_types.c reads them. The reason of a refusal is one clause, without
 * the kernel's name.
 */
#include <string.h>

#include "compile/select.h"

/* A kernel may be older than the definition, as long as no attribute that it does not know says anything. */
static bool version_matches(const tni_request *r, const tn_kernel *k, char *why, size_t size)
{
    const uint16_t version = r->def->op->version;
    const tn_attr_def *newer =
        version > k->op_version_max ? tni_attrs_newer(r->attrs, k->op_version_max) : NULL;

    if (version >= k->op_version_min && !newer)
        return true;
    if (newer)
        snprintf(why, size, "made for version %u of the operator, but %s came with version %u",
                 k->op_version_max, newer->name, newer->since);
    else
        snprintf(why, size, "made for versions %u to %u of the operator, this is %u", k->op_version_min,
                 k->op_version_max, version);
    return false;
}

/* Rows name arguments; which of them are there the attributes say. */
static bool types_match(const tni_request *r, const tn_kernel *k, char *why, size_t size)
{
    tni_request named = *r;
    tni_args args;

    if (r->attrs && r->def->op->args && tni_op_args(r->def, r->attrs, r->in_count, &args) == TN_OK &&
        args.in_count == r->in_count)
        named.in_names = args.in_names;
    return tni_kernel_types_match(&named, k, why, size);
}

bool tni_rules_match(const tni_request *r, const tni_candidate *c, char *why, size_t size)
{
    const tn_kernel *k = c->kernel;

    if (r->device->kernels_plugin && strcmp(k->device, r->device->type) &&
        strcmp(r->device->kernels_plugin, c->plugin->descriptor->name)) {
        snprintf(why, size, "device %s runs the kernels of %s, and those made for %s, only", r->device->type,
                 r->device->kernels_plugin, r->device->type);
        return false;
    }
    if (!version_matches(r, k, why, size))
        return false;
    if (!tni_isa_present(k->isa)) {
        snprintf(why, size, "needs %s", k->isa);
        return false;
    }
    if ((r->flags & TN_NODE_DETERMINISTIC) && !(k->flags & TN_KERNEL_DETERMINISTIC)) {
        snprintf(why, size, "is not deterministic, as run.deterministic asks");
        return false;
    }
    return types_match(r, k, why, size);
}
