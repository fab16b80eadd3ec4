/*
 * Segments: runs of instructions that are one operation of the engine each, with the ports that they touch,
 * the segments that must be done before, and the moment from which on nobody in the segment touches a port.
 *
 * A segment ends where the device changes, at operators that are no kernels, and around a kernel that
 * completes later, that resizes its outputs, or that looks at its inputs from the host.
 */
#include <string.h>

#include "compile/code.h"

#define RELEASE_NS 3000u         /* releases closer together than this are one */
#define ASSUMED_NS 1000u         /* of a kernel of which nobody says how long it takes */
#define CONSTANT_USES_MAX 65536u /* ports of constants that segments of a device name themselves */

typedef struct constants { /* of one device: what phase ONCE reads there */
    const tni_device *device;
    uint32_t first, ports, uses; /* first: segment that reads what is made of them */
} constants;

typedef struct cutter {
    tni_code *c;
    tni_vec segments, uses, edges, bindings, releases;
    tni_vec constants;        /* per device */
    uint32_t *constants_from; /* per segment: the one that looks at the constants for it; TNI_NONE: itself */
    uint32_t *slots;          /* per operand: its tensor of the frame */
    uint32_t *port_segment;   /* per port: the last segment that touched it, +1 */
    uint32_t *port_last;      /* per port: the last instruction of that segment that did */
    uint32_t *slot_segment;   /* per value: the last segment that bound it, +1 */
    uint32_t *slot_of;        /* per value: its tensor of the frame there */
    uint32_t slot_count;
} cutter;

static uint64_t cost_of(const tni_instruction *in)
{
    return in->prepared && in->prepared->est_ns ? in->prepared->est_ns : ASSUMED_NS;
}

/* ---- where to cut -------------------------------------------------------------------------------- */

/* Copies run on the device that has streams. */
static tni_device *device_of(const tni_code *c, const tni_instruction *in)
{
    const uint32_t *operands = tni_code_operands(c, in);
    tni_device *to;

    if (!in->out_count || in->kind == TN_EXEC_KERNEL)
        return tni_code_device(c, in);
    to = tni_code_value(c, operands[in->in_count])->device;
    return in->kind == TN_EXEC_COPY && to->host ? tni_code_value(c, operands[0])->device : to;
}

/* TNI_SEGMENT_… of a kernel that stands alone; 0: it may stand with others. */
static uint32_t alone(const tni_instruction *in)
{
    const tni_prepared *p = in->prepared;

    if (!p)
        return 0;
    return (p->kernel->flags & TN_KERNEL_ASYNC ? TNI_SEGMENT_ASYNC : 0u) |
           (p->on_host ? TNI_SEGMENT_ARRIVED : 0u) |
           (p->plan.flags & TN_PLAN_RESIZES ? TNI_SEGMENT_RESIZES : 0u);
}

/* Has the segment as many instructions as were asked for? Phase ONCE runs within others and has no limit. */
static bool full(const tni_code *c, const tni_segment *s)
{
    const uint32_t bulk = s->phase == TNI_ONCE ? 0 : c->p->bulk[s->phase == TNI_BACKWARD];

    return bulk && s->code_count >= bulk;
}

static bool joins(const tni_code *c, const tni_segment *s, const tni_instruction *in)
{
    const uint32_t apart = TNI_SEGMENT_ASYNC | TNI_SEGMENT_ARRIVED | TNI_SEGMENT_RESIZES;

    return !full(c, s) && s->kind == TN_EXEC_KERNEL && in->kind == TN_EXEC_KERNEL &&
           s->device == device_of(c, in) && s->phase == tni_instruction_phase(in) && !(s->flags & apart) &&
           !alone(in);
}

/* Whoever reads the log learns why a net is not one operation. */
static void cut_tell(const tni_code *c, const tni_instruction *in)
{
    char why[256];

    if (c->p->graph && !(in->flags & TNI_CODE_HELPER) &&
        tni_node_cuts(in->def, in->prepared, why, sizeof why))
        tni_selector_tell_cut(c->selector, in->def, tni_code_name(c, in), why);
}

static tn_status segments_cut(cutter *w)
{
    tni_code *c = w->c;
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < c->code.count && !st; i++) {
        tni_instruction *in = tni_code_at(c, i);
        tni_segment *s = w->segments.count ? tni_vec_at(&w->segments, w->segments.count - 1) : NULL;

        if (!s || !joins(c, s, in)) {
            const tni_segment made = {.device = device_of(c, in),
                                      .phase = tni_instruction_phase(in),
                                      .kind = in->kind,
                                      .first_code = i,
                                      .flags = alone(in)};

            if ((st = tni_vec_push(&w->segments, &made)))
                return st;
            s = tni_vec_at(&w->segments, w->segments.count - 1);
            cut_tell(c, in);
        }
        in->segment = (uint32_t)w->segments.count - 1;
        s->code_count++;
        s->est_ns += cost_of(in);
        if (in->prepared && in->prepared->plan.flags & TN_PLAN_PARALLEL)
            s->flags |= TNI_SEGMENT_PARALLEL;
    }
    return st;
}

/* ---- what a segment touches ---------------------------------------------------------------------- */

/* Fills `list` with the values that an instruction touches: operands, workspace, saved block. */
static uint32_t touched(const tni_code *c, const tni_instruction *in, uint32_t k)
{
    const uint32_t operands = in->in_count + in->out_count;

    if (k < operands)
        return tni_code_operands(c, in)[k];
    return k == operands ? in->workspace : in->saved;
}

static bool writes(const tni_code *c, const tni_instruction *in, uint32_t k)
{
    const uint32_t operands = in->in_count + in->out_count;

    if (k < operands)
        return k >= in->in_count && tni_code_modes(c, in)[k] != TN_MODE_NONE;
    return !(k > operands && in->flags & TNI_CODE_READS_SAVED);
}

/* A tensor of the frame for a value at a port: one for each segment, since segments run side by side. */
static tn_status bind(cutter *w, uint32_t segment, uint32_t value, uint32_t port)
{
    tni_binding b = {value, value, port};

    if (w->slot_segment[value] == segment + 1)
        return TN_OK;
    if (w->slot_segment[value])
        b.slot = w->slot_count++;
    w->slot_segment[value] = segment + 1;
    w->slot_of[value] = b.slot;
    return tni_vec_push(&w->bindings, &b);
}

static tn_status port_touch(cutter *w, uint32_t segment, uint32_t code, uint32_t value, bool write)
{
    tni_segment *s = tni_vec_at(&w->segments, segment);
    const uint32_t at = tni_code_value(w->c, tni_code_root(w->c, value))->port;
    tni_port *port = tni_vec_at(&w->c->ports, at);
    tn_status st = TN_OK;

    *(write ? &port->written : &port->read) |= 1u << s->phase;
    s->flags |= port->again ? TNI_SEGMENT_AGAIN : 0u;
    if (port->mode == TN_MODE_ADD)
        port->read |= 1u << s->phase;
    if (w->port_segment[at] != segment + 1)
        st = tni_vec_push(&w->uses, &at);
    w->port_segment[at] = segment + 1;
    w->port_last[at] = code;
    return st ? st : bind(w, segment, value, at);
}

/* Ports that the segment writes come behind those that it only reads. */
static void uses_order(cutter *w, tni_segment *s, uint8_t *written, uint32_t *scratch)
{
    uint32_t *uses = (uint32_t *)w->uses.data + s->first_use, count = (uint32_t)w->uses.count - s->first_use;
    uint32_t reads = 0, writes = 0;

    for (uint32_t i = 0; i < count; i++)
        if (written[uses[i]])
            scratch[writes++] = uses[i];
        else
            uses[reads++] = uses[i];
    for (uint32_t i = 0; i < writes; i++) {
        uses[reads + i] = scratch[i];
        written[scratch[i]] = 0;
    }
    s->read_count = reads;
    s->write_count = writes;
}

/* Ports that phase ONCE reads on the segment's device. */
static tn_status constants_touch(cutter *w, uint32_t index, uint32_t *ports)
{
    tni_segment *s = tni_vec_at(&w->segments, index);
    tn_status st = TN_OK;

    *ports = 0;
    for (uint32_t once = 0; once < index && !st; once++) {
        const tni_segment *made = tni_vec_at(&w->segments, once);

        if (made->phase != TNI_ONCE)
            break;
        if (made->device != s->device)
            continue;
        s->flags |= made->flags & TNI_SEGMENT_PARALLEL;
        *ports += made->read_count;
        for (uint32_t u = 0; u < made->read_count && !st; u++)
            st = port_touch(
                w, index, s->first_code + s->code_count - 1,
                ((tni_port *)tni_vec_at(&w->c->ports, *(uint32_t *)tni_vec_at(&w->uses, made->first_use + u)))
                    ->value,
                false);
    }
    return st;
}

/* Whoever reads constants looks whether what they were made of has changed, and keeps it from changing. Where
 * that would be very many ports, it waits for the first who did so: what they were made into stays the
 * call's. */
static tn_status constants_use(cutter *w, uint32_t index)
{
    const tni_segment *s = tni_vec_at(&w->segments, index);
    constants *of = NULL, made = {.device = s->device, .first = index};
    tn_status st;

    for (size_t i = 0; i < w->constants.count && !of; i++)
        if (((constants *)tni_vec_at(&w->constants, i))->device == s->device)
            of = tni_vec_at(&w->constants, i);
    if (of && of->uses + of->ports > CONSTANT_USES_MAX) {
        w->constants_from[index] = of->first;
        return TN_OK;
    }
    if ((st = constants_touch(w, index, &made.ports)))
        return st;
    if (of)
        of->uses += of->ports;
    made.uses = made.ports;
    return of ? TN_OK : tni_vec_push(&w->constants, &made);
}

static bool made_once(const cutter *w, const tni_segment *s, uint32_t value)
{
    const uint32_t def = tni_code_value(w->c, tni_code_root(w->c, value))->def;

    return s->phase != TNI_ONCE && def != TNI_NONE &&
           tni_instruction_phase(tni_code_at(w->c, def)) == TNI_ONCE;
}

static tn_status segment_uses(cutter *w, uint32_t index, uint8_t *written, uint32_t *scratch)
{
    tni_code *c = w->c;
    tni_segment *s = tni_vec_at(&w->segments, index);
    tn_status st = TN_OK;

    s->first_use = (uint32_t)w->uses.count;
    s->first_binding = (uint32_t)w->bindings.count;
    for (uint32_t i = s->first_code; i < s->first_code + s->code_count; i++) {
        const tni_instruction *in = tni_code_at(c, i);
        const uint32_t operands = in->in_count + in->out_count;

        for (uint32_t k = 0; k < operands + 2 && !st; k++) {
            const uint32_t value = touched(c, in, k);
            uint32_t slot = value;

            if (value != TNI_NONE && tni_code_value(c, tni_code_root(c, value))->place == TNI_PLACE_PORT) {
                const uint32_t port = tni_code_value(c, tni_code_root(c, value))->port;

                written[port] |= writes(c, in, k);
                ((tni_port *)tni_vec_at(&c->ports, port))->used |= 1u << s->phase;
                st = port_touch(w, index, i, value, writes(c, in, k));
                slot = w->slot_of[value];
                if (k > operands)
                    s->flags |= TNI_SEGMENT_BLOCKS;
            }
            if (value != TNI_NONE && made_once(w, s, value))
                s->flags |= TNI_SEGMENT_CONSTANTS;
            if (k < operands)
                w->slots[in->first_operand + k] = slot;
        }
    }
    if (!st && s->flags & TNI_SEGMENT_CONSTANTS)
        st = constants_use(w, index);
    s->binding_count = (uint32_t)w->bindings.count - s->first_binding;
    uses_order(w, s, written, scratch);
    return st;
}

/* Lists of uses by the instruction that touches them last, in order. */
static void uses_by_last(const cutter *w, const tni_segment *s, uint32_t *head, uint32_t *next)
{
    const uint32_t *uses = (const uint32_t *)w->uses.data + s->first_use;

    for (uint32_t i = s->first_code; i < s->first_code + s->code_count; i++)
        head[i] = TNI_NONE;
    for (uint32_t u = s->read_count + s->write_count; u-- > 0;) {
        next[u] = head[w->port_last[uses[u]]];
        head[w->port_last[uses[u]]] = u;
    }
}

/* What runs within another segment gives no variable free; but what it has read may leave memory. */
static tn_status segment_spends(cutter *w, tni_segment *s, uint32_t *head, uint32_t *next)
{
    tn_status st = TN_OK;

    uses_by_last(w, s, head, next);
    for (uint32_t i = s->first_code; i < s->first_code + s->code_count; i++)
        for (uint32_t u = head[i]; u != TNI_NONE && !st; u = next[u]) {
            const tni_release spent = {i, u};

            st = tni_vec_push(&w->releases, &spent);
        }
    s->spent_count = (uint32_t)w->releases.count - s->first_release;
    return st;
}

/* Uses by the instruction that touches them last, early enough to be worth it; near ones together. */
static tn_status segment_releases(cutter *w, uint32_t index, uint32_t *head, uint32_t *next)
{
    tni_segment *s = tni_vec_at(&w->segments, index);
    const uint32_t end = s->first_code + s->code_count;
    uint64_t waited = 0, left = s->est_ns;
    uint32_t pending = TNI_NONE;
    tn_status st = TN_OK;

    s->first_release = (uint32_t)w->releases.count;
    if (s->phase == TNI_ONCE)
        return segment_spends(w, s, head, next);
    if (s->kind != TN_EXEC_KERNEL || s->code_count < 2)
        return TN_OK;
    uses_by_last(w, s, head, next);
    for (uint32_t i = s->first_code; i < end && !st; i++) {
        const uint64_t cost = cost_of(tni_code_at(w->c, i));

        left -= cost < left ? cost : left;
        waited += pending != TNI_NONE ? cost : 0;
        for (uint32_t u = head[i]; u != TNI_NONE;) {
            const uint32_t after = next[u];

            next[u] = pending;
            pending = u;
            u = after;
        }
        if (pending == TNI_NONE || waited + cost < RELEASE_NS || left < RELEASE_NS)
            continue;
        for (; pending != TNI_NONE && !st; pending = next[pending]) {
            const tni_release release = {i, pending};

            st = tni_vec_push(&w->releases, &release);
        }
        waited = 0;
    }
    s->release_count = (uint32_t)w->releases.count - s->first_release;
    return st;
}

/* ---- order --------------------------------------------------------------------------------------- */

typedef struct hazards { /* per root in an arena: its last writer, and the readers since, as lists */
    uint32_t *writer, *readers;
    tni_vec links;  /* {segment, next} */
    uint32_t *mark; /* per segment: the last one that has an edge from it, +1 */
    uint32_t *seen; /* per port: the first segment of the forward that notes its version */
    /* per node of the graph: segments of the forward, modulo 64, in which it or its inputs may fail */
    uint64_t *behind;
} hazards;

typedef struct reader {
    uint32_t segment, next;
} reader;

/* Who runs once is waited for by all calls, through a variable that they share. */
static bool ran_once(const cutter *w, uint32_t from, uint32_t to)
{
    const tni_segment *all = (const tni_segment *)w->segments.data;

    return all[from].phase == TNI_ONCE && all[to].phase != TNI_ONCE;
}

static tn_status edge_add(cutter *w, hazards *h, uint32_t from, uint32_t to)
{
    if (from == TNI_NONE || from == to || h->mark[from] == to + 1 || ran_once(w, from, to))
        return TN_OK;
    h->mark[from] = to + 1;
    ((tni_segment *)tni_vec_at(&w->segments, from))->flags |= TNI_SEGMENT_AWAITED;
    return tni_vec_push(&w->edges, &from);
}

static tn_status root_touch(cutter *w, hazards *h, uint32_t segment, uint32_t root, bool write)
{
    tn_status st = edge_add(w, h, h->writer[root], segment);

    if (!write) {
        const reader r = {segment, h->readers[root]};

        if (h->readers[root] != TNI_NONE && ((reader *)tni_vec_at(&h->links, r.next))->segment == segment)
            return st;
        h->readers[root] = (uint32_t)h->links.count;
        return st ? st : tni_vec_push(&h->links, &r);
    }
    for (uint32_t at = h->readers[root]; at != TNI_NONE && !st;) {
        const reader *r = tni_vec_at(&h->links, at);

        at = r->next;
        st = edge_add(w, h, r->segment, segment);
    }
    h->writer[root] = segment;
    h->readers[root] = TNI_NONE;
    return st;
}

/* A segment that computes values again from a port compares its version with the one that the forward noted,
 * so it waits for that, even where it reads nothing else of the forward. */
static tn_status again_wait(cutter *w, hazards *h, uint32_t index)
{
    const tni_segment *s = tni_vec_at(&w->segments, index);
    const uint32_t *uses = (const uint32_t *)w->uses.data + s->first_use;
    tn_status st = TN_OK;

    for (uint32_t u = 0; s->flags & TNI_SEGMENT_AGAIN && u < s->read_count && !st; u++) {
        if (!((const tni_port *)tni_vec_at(&w->c->ports, uses[u]))->again)
            continue;
        if (s->phase != TNI_FORWARD)
            st = edge_add(w, h, h->seen[uses[u]], index);
        else if (h->seen[uses[u]] == TNI_NONE)
            h->seen[uses[u]] = index;
    }
    return st;
}

/* ---- instructions that read a shape alone ------------------------------------------------------------ */

/* A run may refuse it, for its attributes or for what it reads. */
static bool may_fail(const tni_code *c, const tni_instruction *in)
{
    return tni_instruction_phase(in) == TNI_FORWARD &&
           (in->kind != TN_EXEC_KERNEL || in->def->op->effects || in->def->op->flags & TN_OP_CHECKS_VALUES) &&
           in->node < c->p->graph->node_count;
}

static bool reads_shape(const tni_code *c, const tni_instruction *in)
{
    for (uint32_t k = 0; k < in->in_count; k++)
        if (tni_code_value(c, tni_code_operands(c, in)[k])->place == TNI_PLACE_SHAPE)
            return tni_instruction_phase(in) == TNI_FORWARD && in->node < c->p->graph->node_count;
    return false;
}

/* Per node: the segments in which it, or a node before it, may fail. */
static tn_status behind_make(cutter *w, hazards *h)
{
    const tni_graph *g = w->c->p->graph;

    if (!w->c->shape_of || w->segments.count < 2)
        return TN_OK;
    if (!(h->behind = tni_calloc(g->node_count + 1u, sizeof *h->behind)))
        return TN_E_NOMEM;
    for (uint32_t index = 0; index < w->segments.count; index++) {
        const tni_segment *s = tni_vec_at(&w->segments, index);

        for (uint32_t i = s->first_code; i < s->first_code + s->code_count; i++)
            if (may_fail(w->c, tni_code_at(w->c, i)))
                h->behind[tni_code_at(w->c, i)->node] |= (uint64_t)1 << index % 64;
    }
    for (uint32_t n = 0; n < g->node_count; n++)
        for (uint32_t i = 0; i < g->nodes[n].input_count; i++)
            h->behind[n] |= h->behind[g->entry_node[tni_graph_input(g, &g->nodes[n], i)]];
    return TN_OK;
}

/* An instruction that reads only the shape of a value fails where that value's computation fails, as an
 * operator called by itself does: it waits for that. The last 64 segments are looked at, so that edges grow
 * no faster than nets. */
static tn_status shape_wait(cutter *w, hazards *h, const tni_instruction *in, uint32_t index)
{
    tn_status st = TN_OK;

    if (!h->behind || !reads_shape(w->c, in))
        return TN_OK;
    for (uint32_t from = index > 64 ? index - 64 : 0; from < index && !st; from++)
        if (h->behind[in->node] >> from % 64 & 1u &&
            ((const tni_segment *)tni_vec_at(&w->segments, from))->phase == TNI_FORWARD)
            st = edge_add(w, h, from, index);
    return st;
}

static tn_status edges_make(cutter *w, hazards *h)
{
    tni_code *c = w->c;
    tn_status st = TN_OK;

    for (uint32_t index = 0; index < w->segments.count && !st; index++) {
        tni_segment *s = tni_vec_at(&w->segments, index);

        s->first_edge = (uint32_t)w->edges.count;
        for (uint32_t i = s->first_code; i < s->first_code + s->code_count && !st; i++) {
            const tni_instruction *in = tni_code_at(c, i);

            for (uint32_t k = 0; k < in->in_count + in->out_count + 2 && !st; k++) {
                const uint32_t value = touched(c, in, k);

                if (value != TNI_NONE && tni_code_value(c, tni_code_root(c, value))->place == TNI_PLACE_NONE)
                    st = root_touch(w, h, index, tni_code_root(c, value), writes(c, in, k));
            }
            if (!st)
                st = shape_wait(w, h, in, index);
        }
        if (!st)
            st = edge_add(w, h, w->constants_from[index], index);
        if (!st)
            st = again_wait(w, h, index);
        s->edge_count = (uint32_t)w->edges.count - s->first_edge;
    }
    return st;
}

static tn_status order_make(cutter *w)
{
    hazards h = {.writer = tni_alloc((w->c->values.count + 1) * sizeof(uint32_t)),
                 .readers = tni_alloc((w->c->values.count + 1) * sizeof(uint32_t)),
                 .mark = tni_calloc(w->segments.count + 1, sizeof(uint32_t)),
                 .seen = tni_alloc((w->c->ports.count + 1) * sizeof(uint32_t))};
    tn_status st = TN_E_NOMEM;

    tni_vec_init(&h.links, sizeof(reader), UINT32_MAX / 2);
    if (h.writer && h.readers && h.mark && h.seen) {
        memset(h.seen, 0xff, w->c->ports.count * sizeof(uint32_t));
        memset(h.writer, 0xff, w->c->values.count * sizeof(uint32_t));
        memset(h.readers, 0xff, w->c->values.count * sizeof(uint32_t));
        if (!(st = behind_make(w, &h)))
            st = edges_make(w, &h);
    }
    tni_free(h.behind);
    tni_free(h.writer);
    tni_free(h.readers);
    tni_free(h.mark);
    tni_free(h.seen);
    tni_vec_fini(&h.links);
    return st;
}

/* ---- the whole ----------------------------------------------------------------------------------- */

static tn_status cutter_init(cutter *w, tni_code *c)
{
    *w = (cutter){.c = c, .slot_count = (uint32_t)c->values.count};
    tni_vec_init(&w->segments, sizeof(tni_segment), UINT32_MAX / 2);
    tni_vec_init(&w->uses, sizeof(uint32_t), UINT32_MAX / 2);
    tni_vec_init(&w->edges, sizeof(uint32_t), UINT32_MAX / 2);
    tni_vec_init(&w->bindings, sizeof(tni_binding), UINT32_MAX / 2);
    tni_vec_init(&w->releases, sizeof(tni_release), UINT32_MAX / 2);
    tni_vec_init(&w->constants, sizeof(constants), TN_DEVICES_MAX);
    w->slots = tni_calloc(c->operands.count + 1, sizeof *w->slots);
    w->port_segment = tni_calloc(c->ports.count + 1, sizeof *w->port_segment);
    w->port_last = tni_calloc(c->ports.count + 1, sizeof *w->port_last);
    w->slot_segment = tni_calloc(c->values.count + 1, sizeof *w->slot_segment);
    w->slot_of = tni_calloc(c->values.count + 1, sizeof *w->slot_of);
    return w->slots && w->port_segment && w->port_last && w->slot_segment && w->slot_of ? TN_OK : TN_E_NOMEM;
}

static void cutter_fini(cutter *w)
{
    tni_program *p = w->c->p;

    p->segments = w->segments.data; /* all moved */
    p->segment_count = (uint32_t)w->segments.count;
    p->uses = w->uses.data;
    p->edges = w->edges.data;
    p->bindings = w->bindings.data;
    p->releases = w->releases.data;
    p->slots = w->slots;
    p->slot_count = w->slot_count;
    tni_free(w->port_segment);
    tni_free(w->port_last);
    tni_free(w->slot_segment);
    tni_free(w->slot_of);
    tni_free(w->constants_from);
    tni_vec_fini(&w->constants);
}

static void phases_note(const cutter *w)
{
    for (uint32_t i = 0; i < w->segments.count; i++) {
        tni_segment *s = tni_vec_at(&w->segments, i);
        const tni_instruction *in = tni_code_at(w->c, s->first_code);

        tni_phase *phase = &w->c->p->phases[s->phase];

        if (!phase->segment_count++) {
            phase->first_segment = i;
            phase->first_code = s->first_code;
        }
        phase->code_count += s->code_count;
        phase->est_ns += s->est_ns;
        if (s->code_count == 1 && in->prepared && !in->prepared->plan.est_ns)
            s->est_ns = 0; /* nobody knows */
    }
}

tn_status tni_pass_segments(tni_code *c)
{
    uint8_t *written = tni_calloc(c->ports.count + 1, 1);
    uint32_t *lists = tni_calloc(c->code.count + c->ports.count + 2, sizeof *lists);
    cutter w;
    tn_status st = cutter_init(&w, c);

    if (!written || !lists)
        st = TN_E_NOMEM;
    if (!st && !(st = segments_cut(&w))) {
        w.constants_from = tni_alloc((w.segments.count + 1) * sizeof *w.constants_from);
        st = w.constants_from ? TN_OK : TN_E_NOMEM;
    }
    if (!st)
        memset(w.constants_from, 0xff, w.segments.count * sizeof *w.constants_from);
    for (uint32_t i = 0; i < w.segments.count && !st; i++)
        if (!(st = segment_uses(&w, i, written, lists)))
            st = segment_releases(&w, i, lists, lists + c->code.count + 1);
    if (!st && w.segments.count > 1)
        st = order_make(&w);
    phases_note(&w);
    tni_free(written);
    tni_free(lists);
    cutter_fini(&w);
    return st;
}
