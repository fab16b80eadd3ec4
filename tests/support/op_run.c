/* Tensors from text; kernels straight out of the plugins' files; one prepared run. No engine, no registry. */
#include "op_run.h"

#include <dirent.h>
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct {
    tni_opset *ops;
    struct {
        const tn_plugin *descriptor;
        void *self, *library;
    } plugins[16];
    size_t plugin_count;
    const char *device; /* whose kernels are run; those of the host where it has none */
    const tn_device_ops *device_ops;
    tn_device_handle *device_handle;
    tn_stream *stream;
    tn_err err;
} run;

int tn_op_open(void);
int tn_op_close(int failed);

tn_err *op_error(void)
{
    return &run.err;
}

/* ---- tensors ---------------------------------------------------------------------------------- */

/* A tensor without memory. */
static void tensor_describe(op_tensor *t, int32_t dtype, int32_t ndim, const int64_t *shape, bool strided)
{
    int64_t extent = 1;

    memset(t, 0, sizeof *t);
    for (int32_t d = 0; d < ndim; d++)
        t->shape[d] = shape[d];
    for (int32_t d = 0; d < ndim;
         d++) { /* dense: last dimension first; strided: first first, and every second */
        int32_t k = strided ? d : ndim - 1 - d;

        t->stride[k] = strided ? 2 * extent : extent;
        extent *= shape[k];
    }
    t->t = (tn_tensor){.shape = t->shape,
                       .stride = t->stride,
                       .ndim = ndim,
                       .dtype = dtype,
                       .memory = TN_MEMORY_HOST,
                       .version = 1};
    t->t.bytes = (uint64_t)(strided ? 2 * extent : extent) * tn_dtype_bytes(dtype);
}

void op_tensor_create(op_tensor *t, int32_t dtype, int32_t ndim, const int64_t *shape, bool strided)
{
    tensor_describe(t, dtype, ndim, shape, strided);
    if (posix_memalign(&t->block, 64, t->t.bytes ? (size_t)t->t.bytes : 1)) /* it ends where they end */
        abort();
    memset(t->block, 0x5a, (size_t)t->t.bytes);
    t->t.data = t->block;
}

void op_tensor_free(op_tensor *t)
{
    free(t->block);
    memset(t, 0, sizeof *t);
}

static void *element(const op_tensor *t, int64_t index)
{
    int64_t offset = 0;

    for (int32_t d = t->t.ndim; d-- > 0;) {
        offset += index % t->shape[d] * t->stride[d];
        index /= t->shape[d];
    }
    return (char *)t->t.data + (uint64_t)offset * tn_dtype_bytes(t->t.dtype);
}

double op_tensor_get(const op_tensor *t, int64_t index)
{
    double value;

    tni_cast(element(t, index), t->t.dtype, 1, &value, TN_F64, 1, 1);
    return value;
}

void op_tensor_set(op_tensor *t, int64_t index, double value)
{
    tni_cast(&value, TN_F64, 1, element(t, index), t->t.dtype, 1, 1);
}

void op_tensor_copy(const op_tensor *from, op_tensor *to)
{
    int64_t count = tn_tensor_count(&from->t);

    for (int64_t i = 0; i < count; i++)
        tni_cast(element(from, i), from->t.dtype, 1, element(to, i), to->t.dtype, 1, 1);
}

static bool is_float(int32_t dtype)
{
    return dtype == TN_F32 || dtype == TN_F64 || dtype == TN_F16 || dtype == TN_BF16;
}

static double uniform(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(*seed >> 11) / 9007199254740992.0;
}

static void words_fill(op_tensor *t, const char *text, uint64_t seed)
{
    int64_t count = tn_tensor_count(&t->t), got = 0;
    double low = -1, high = 1, value = 0;

    seed = seed * 0x9e3779b97f4a7c15u + 12345;
    if (strncmp(text, "random", 6) == 0) {
        if (!is_float(t->t.dtype))
            low = 0, high = 9.999;
        sscanf(text, "random:%lf:%lf", &low, &high);
        for (int64_t i = 0; i < count; i++) {
            value = low + (high - low) * uniform(&seed);
            op_tensor_set(t, i, is_float(t->t.dtype) ? value : floor(value));
        }
        return;
    }
    if (strcmp(text, "range") == 0 || sscanf(text, "fill:%lf", &value) == 1) {
        for (int64_t i = 0; i < count; i++)
            op_tensor_set(t, i, text[0] == 'r' ? (double)i : value);
        return;
    }
    for (char *end; *text; text = end) {
        value = strtod(text, &end);
        if (end == text)
            break;
        if (got < count)
            op_tensor_set(t, got, value);
        got++;
        while (*end == ' ')
            end++;
    }
    if (got != count) {
        fprintf(stderr, "a tensor of %lld elements has %lld values: %s\n", (long long)count, (long long)got,
                text);
        abort();
    }
}

void op_tensor_read(op_tensor *t, const char *text, int32_t dtype, uint64_t seed)
{
    char name[16] = "";
    int64_t shape[TN_NDIM_MAX];
    int32_t ndim = 0, own = 0;
    const char *p = strchr(text, '[');

    if (!p || (size_t)(p - text) >= sizeof name) {
        fprintf(stderr, "not a tensor: %s\n", text);
        abort();
    }
    memcpy(name, text, (size_t)(p - text));
    if (!tni_dtype_parse(name, &own)) {
        fprintf(stderr, "not a data type: %s\n", text);
        abort();
    }
    for (p++; *p && *p != ']'; p += *p == ',')
        shape[ndim++] = strtoll(p, (char **)(uintptr_t)&p, 10);
    op_tensor_create(t, dtype >= 0 && is_float(own) ? dtype : own, ndim, shape, false);
    for (p++; *p == ' ';)
        p++;
    words_fill(t, p, seed);
}

const char *op_tensor_differs(const op_tensor *got, const op_tensor *expected, double tolerance)
{
    static char text[256];
    int64_t count = tn_tensor_count(&expected->t);

    if (got->t.dtype != expected->t.dtype || got->t.ndim != expected->t.ndim) {
        snprintf(text, sizeof text, "%s with %d dimensions, expected %s with %d",
                 tni_dtype_name(got->t.dtype), got->t.ndim, tni_dtype_name(expected->t.dtype),
                 expected->t.ndim);
        return text;
    }
    for (int32_t d = 0; d < got->t.ndim; d++)
        if (got->shape[d] != expected->shape[d]) {
            snprintf(text, sizeof text, "dimension %d is %lld, expected %lld", d, (long long)got->shape[d],
                     (long long)expected->shape[d]);
            return text;
        }
    for (int64_t i = 0; i < count; i++) {
        double a = op_tensor_get(got, i), b = op_tensor_get(expected, i);
        bool same = memcmp(element(got, i), element(expected, i), tn_dtype_bytes(got->t.dtype)) == 0;

        if (same || (isnan(a) && isnan(b)))
            continue;
        if (tolerance > 0 && (a == b || fabs(a - b) <= tolerance * (1 + fabs(b))))
            continue;
        snprintf(text, sizeof text, "element %lld is %.17g, expected %.17g", (long long)i, a, b);
        return text;
    }
    return NULL;
}

/* ---- plugins ---------------------------------------------------------------------------------- */

static void *host_alloc(const tn_host *host, uint64_t bytes, uint64_t align)
{
    (void)host;
    return tni_alloc_aligned(align, bytes);
}

static void host_free(const tn_host *host, void *memory)
{
    (void)host;
    tni_free_aligned(memory);
}

static const tn_service *host_service(const tn_host *host, const char *id)
{
    static const tn_memory_service memory = {
        {(uint32_t)TN_END(tn_memory_service, free), 0, TN_SERVICE_MEMORY}, host_alloc, host_free};

    (void)host;
    return strcmp(id, TN_SERVICE_MEMORY) == 0 ? &memory.head : NULL;
}

static const tn_host host = {
    (uint32_t)TN_END(tn_host, service), TN_ABI_MAJOR, TN_ABI_MINOR, "test", NULL, host_service};

static void plugin_open(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const tn_plugin *p = library ? dlsym(library, "tn_plugin_v1") : NULL;

    if (!p || run.plugin_count == sizeof run.plugins / sizeof run.plugins[0])
        return;
    run.plugins[run.plugin_count].descriptor = p;
    run.plugins[run.plugin_count].library = library;
    if (!p->init || p->init(&host, &run.plugins[run.plugin_count].self, &run.err) == TN_OK)
        run.plugin_count++;
    else
        fprintf(stderr, "%s: %s\n", path, run.err.message);
}

/* TENON_CASE_DEVICE=cuda: cases are run by kernels of the plugin cuda, on the double of the driver, whose
 * memory is the host's. */
static void device_open(void)
{
    for (size_t p = 0; p < run.plugin_count && !run.stream; p++)
        for (const tn_capability *const *c = run.plugins[p].descriptor->capabilities; *c; c++) {
            const tn_device_ops *ops = (const tn_device_ops *)(const void *)*c;

            if ((*c)->kind != TN_KIND_DEVICE || strcmp((*c)->id, run.device) != 0)
                continue;
            run.device_ops = ops;
            if (ops->open(run.plugins[p].self, 0, &run.device_handle, &run.err) ||
                ops->stream_create(run.device_handle, 0, &run.stream, &run.err)) {
                printf("skipped: %s\n", run.err.message);
                exit(77);
            }
        }
}

static void driver_open(void)
{
    const char *folder = getenv("TENON_TEST_DRIVER");
    char path[4096];

    run.device = getenv("TENON_CASE_DEVICE");
    if (!run.device)
        return;
    (void)snprintf(path, sizeof path, "%s/libcuda.so.1", folder ? folder : "");
    if (!dlopen(path, RTLD_NOW | RTLD_LOCAL)) { /* found by its name afterwards */
        printf("skipped: no double of the driver in TENON_TEST_DRIVER\n");
        exit(77);
    }
}

static void device_close(void)
{
    if (run.stream)
        run.device_ops->stream_destroy(run.stream);
    if (run.device_handle)
        run.device_ops->close(run.device_handle);
}

int tn_op_open(void)
{
    const char *folder = getenv("TENON_TEST_PLUGINS");
    struct dirent **names = NULL;
    int count = folder ? scandir(folder, &names, NULL, alphasort) : 0;

    driver_open();
    for (int i = 0; i < count; i++) {
        size_t length = strlen(names[i]->d_name);
        char path[4096];

        snprintf(path, sizeof path, "%s/%s", folder, names[i]->d_name);
        if (length > 3 && strcmp(names[i]->d_name + length - 3, ".so") == 0)
            plugin_open(path);
        free(names[i]);
    }
    free(names);
    if (run.plugin_count == 0) {
        printf("skipped: no plugin in TENON_TEST_PLUGINS\n");
        exit(77);
    }
    if (run.device)
        device_open();
    if (tni_opset_create(NULL, &run.ops)) {
        fprintf(stderr, "definitions: %s\n", tni_error_message());
        exit(1);
    }
    return 0;
}

tni_opset *op_set(void)
{
    return run.ops;
}

/* A name that ends in '*' is that of all its repetitions. */
static bool argument_is(const tni_opdef *def, const tni_args *args, uint32_t i, const char *name,
                        size_t length)
{
    char text[TN_NAME_MAX];
    const size_t star = length > 1 && name[length - 1] == '*';
    const tn_status st = i < args->in_count
                             ? tni_op_input_name(def, args, i, text, sizeof text)
                             : tni_op_output_name(def, args, i - args->in_count, text, sizeof text);

    if (st != TN_OK || strncmp(text, name, length - star) != 0)
        return false;
    return strspn(text + length - star, star ? "0123456789" : "") == strlen(text) - (length - star);
}

static int64_t argument_find(const tni_opdef *def, const tni_args *args, const char *name, size_t length)
{
    for (uint32_t i = 0; i < args->in_count + args->out_count; i++)
        if (argument_is(def, args, i, name, length))
            return i;
    return -1;
}

static bool isa_present(const char *isa)
{
#if defined(__x86_64__)
    if (strcmp(isa, "x86-64-v3") == 0)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (strcmp(isa, "x86-64-v4") == 0)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
#endif
    return !isa[0];
}

static bool rule_allows(const char *rule, const tni_opdef *def, const tni_args *args, const int32_t *dtypes,
                        int32_t dtype)
{
    while (*rule) {
        size_t length = strcspn(rule, ",");
        char text[32] = "";
        int32_t allowed = -1;

        if (*rule == '=') {
            int64_t at = argument_find(def, args, rule + 1, length - 1);

            allowed = at >= 0 ? dtypes[at] : -1;
        } else if (length < sizeof text) {
            memcpy(text, rule, length);
            tni_dtype_parse(text, &allowed);
        }
        if (allowed == dtype)
            return true;
        rule += length + (rule[length] == ',');
    }
    return false;
}

static bool types_match(const tn_kernel *k, const tni_opdef *def, const tni_args *args, const int32_t *dtypes)
{
    for (uint32_t i = 0; i < args->in_count + args->out_count; i++) {
        const char *rule = NULL;

        for (const char *const *t = k->types; t && *t; t++) {
            size_t length = strcspn(*t, ":");

            if (argument_is(def, args, i, *t, length)) {
                rule = *t + length + 1;
                break;
            }
            if (length == 1 && **t == '*')
                rule = *t + 2;
        }
        if (rule && !rule_allows(rule, def, args, dtypes, dtypes[i]))
            return false;
    }
    return true;
}

/* Whether no input or output need be sparse. */
static bool takes_dense(const tn_kernel *k)
{
    for (size_t i = 0; k->types && k->types[i]; i++) {
        const char *rule = strchr(k->types[i], ':');

        if (rule && (strncmp(rule, ":csr", 4) == 0 || strncmp(rule, ":row_sparse", 11) == 0))
            return false;
    }
    return true;
}

bool op_kernels_any(const tni_opdef *def, bool dense)
{
    def = tni_op_meaning(def);
    for (size_t p = 0; p < run.plugin_count; p++)
        for (const tn_capability *const *c = run.plugins[p].descriptor->capabilities; *c; c++) {
            const tn_kernel_table *table = (const tn_kernel_table *)(const void *)*c;

            for (size_t k = 0; (*c)->kind == TN_KIND_KERNELS && !strcmp((*c)->id, "cpu") && table->kernels[k];
                 k++)
                if (!strcmp(table->kernels[k]->op, def->op->name) &&
                    (!dense || takes_dense(table->kernels[k])))
                    return true;
        }
    return false;
}

static size_t kernels_find(const char *device, const tni_opdef *def, const tni_args *args, const int32_t *in,
                           const int32_t *out, op_kernel *found, size_t max)
{
    const tni_opdef *meaning = tni_op_meaning(def);
    int32_t dtypes[2 * OP_ARGS_MAX];
    tni_args names = *args;
    size_t count = 0;

    if (meaning != def) { /* kernels call the arguments what it calls them */
        names.in_names = meaning->op->inputs;
        names.out_names = meaning->op->outputs;
    }
    memcpy(dtypes, in, args->in_count * sizeof *in);
    memcpy(dtypes + args->in_count, out, args->out_count * sizeof *out);
    for (size_t p = 0; p < run.plugin_count; p++)
        for (const tn_capability *const *c = run.plugins[p].descriptor->capabilities; *c; c++) {
            const tn_kernel_table *table = (const tn_kernel_table *)(const void *)*c;

            if ((*c)->kind != TN_KIND_KERNELS || strcmp((*c)->id, device) != 0)
                continue;
            for (size_t k = 0; table->kernels[k] && count < max; k++)
                if (strcmp(table->kernels[k]->op, meaning->op->name) == 0 && takes_dense(table->kernels[k]) &&
                    isa_present(table->kernels[k]->isa) &&
                    types_match(table->kernels[k], meaning, &names, dtypes))
                    found[count++] =
                        (op_kernel){table->kernels[k], run.plugins[p].self, run.plugins[p].descriptor->name};
        }
    return count;
}

size_t op_kernels_find(const tni_opdef *def, const tni_args *args, const int32_t *in, const int32_t *out,
                       op_kernel *found, size_t max)
{
    const size_t count = run.device ? kernels_find(run.device, def, args, in, out, found, max) : 0;

    return count ? count : kernels_find("cpu", def, args, in, out, found, max);
}

size_t op_kernels_of_host(const tni_opdef *def, const tni_args *args, const int32_t *in, const int32_t *out,
                          op_kernel *found, size_t max)
{
    const size_t all = run.device ? kernels_find("cpu", def, args, in, out, found, max) : 0;
    size_t count = 0;

    for (size_t k = 0; k < all; k++)
        if (strcmp(found[k].plugin_name, "cpu") == 0)
            found[count++] = found[k];
    return count;
}

/* ---- one node --------------------------------------------------------------------------------- */

tn_status op_infer(const tni_opdef *def, const tni_attrs *attrs, const tni_args *args, uint32_t flags,
                   tn_shape *in_shape, tn_shape *out_shape, int32_t *in_dtype, int32_t *out_dtype)
{
    tn_shape *in[OP_ARGS_MAX], *out[OP_ARGS_MAX];
    int32_t storage[2 * OP_ARGS_MAX];
    tn_status st = TN_OK;

    for (uint32_t i = 0; i < args->in_count; i++)
        in[i] = &in_shape[i];
    for (uint32_t i = 0; i < args->out_count; i++)
        out[i] = &out_shape[i];
    for (uint32_t i = 0; i < 2 * OP_ARGS_MAX; i++)
        storage[i] = TN_STORAGE_DENSE;
    for (int32_t pass = 0; !st && pass < 2; pass++)
        if (!(st = tni_op_infer_shape(def, attrs, args, flags, in, out)))
            st = tni_op_infer_dtype(def, attrs, args, in_dtype, out_dtype);
    return st ? st : tni_op_infer_storage(def, attrs, args, storage, storage + OP_ARGS_MAX);
}

typedef struct op_call {
    op_node *node;
    tn_status completed;
    void *blocks[64];
    size_t block_count;
} op_call;

#define RESIZED_MAX ((int64_t)1 << 27) /* elements; a host, too, has no memory for more at some point */

static tn_status call_resize(tn_call *call, uint32_t out, int32_t ndim, const int64_t *shape,
                             const tn_tensor **tensor, tn_err *err)
{
    op_node *n = ((op_call *)(void *)call)->node;
    int32_t dtype = n->out[out].t.dtype;
    int64_t count = 1;

    for (int32_t d = 0; d < ndim; d++)
        if (__builtin_mul_overflow(count, shape[d], &count) || count > RESIZED_MAX)
            return tn_fail(err, TN_E_NOMEM, "there is no memory for so many elements");
    op_tensor_free(&n->out[out]);
    op_tensor_create(&n->out[out], dtype, ndim, shape, false);
    *tensor = &n->out[out].t;
    return TN_OK;
}

static tn_status call_alloc(tn_call *call, uint64_t bytes, void **out, tn_err *err)
{
    op_call *c = (op_call *)(void *)call;

    if (c->block_count == 64)
        return tn_fail(err, TN_E_NOMEM, "too many scratch blocks in a test");
    *out = c->blocks[c->block_count++] = aligned_alloc(64, (size_t)(bytes + 64) / 64 * 64);
    return TN_OK;
}

static void *prepare_scratch(void *arg, uint64_t bytes)
{
    (void)arg;
    (void)bytes;
    return NULL;
}

#define BLOCK_MAX ((uint64_t)1 << 30)

static void *block(uint64_t bytes)
{
    void *p = bytes && bytes <= BLOCK_MAX ? aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64) : NULL;

    if (p)
        memset(p, 0xa5, (size_t)bytes);
    return p;
}

static tn_status node_prepare(op_node *n, const tn_tensor *const *in, const tn_tensor *const *out,
                              const uint8_t *modes, const op_form *form, const op_node *forward)
{
    const tn_prepare_ops ops = {
        .struct_size = TN_END(tn_prepare_ops, stream), .host = &host, .scratch = prepare_scratch};
    tn_tensor blind[2 * OP_ARGS_MAX];
    const tn_tensor *pin[OP_ARGS_MAX], *pout[OP_ARGS_MAX];
    tn_node node = {.struct_size = TN_END(tn_node, host),
                    .op_version = n->def->op->version,
                    .flags = (uint16_t)(form->node_flags | (form->recorded ? TN_NODE_RECORDED : 0)),
                    .op = tni_op_meaning(n->def)->op->name,
                    .attrs = n->attrs->values,
                    .attr_count = n->def->attr_count,
                    .in_count = n->args.in_count,
                    .out_count = (uint32_t)n->out_count,
                    .threads = form->threads,
                    .in = pin,
                    .out = pout,
                    .modes = modes,
                    .host = &ops,
                    .forward = forward && forward->kernel.plugin == n->kernel.plugin ? &forward->plan : NULL};

    for (uint32_t i = 0; i < n->args.in_count; i++) { /* data is not known yet */
        blind[i] = *in[i];
        blind[i].data = NULL;
        pin[i] = &blind[i];
    }
    for (uint32_t i = 0; i < n->out_count; i++) {
        blind[OP_ARGS_MAX + i] = *out[i];
        blind[OP_ARGS_MAX + i].data = NULL;
        pout[i] = &blind[OP_ARGS_MAX + i];
        n->inplace[i] = -1;
    }
    memset(&n->plan, 0, sizeof n->plan);
    n->plan.struct_size = TN_END(tn_plan, tuning);
    n->plan.inplace = n->inplace;
    n->plan.in_layout = n->in_layout;
    n->plan.out_layout = n->out_layout;
    memset(&run.err, 0, sizeof run.err);
    return n->kernel.kernel->prepare(n->kernel.plugin, &node, &n->plan, &run.err);
}

/* Outputs with what the form says that they held. */
static void outputs_create(op_node *n, const tn_shape *out_shape, const int32_t *out_dtype,
                           const op_form *form, const tn_tensor **tout, uint8_t *modes)
{
    for (uint32_t i = 0; i < n->args.out_count; i++) {
        int64_t none[1] = {-1};
        bool known = tn_shape_known(&out_shape[i]);

        modes[i] = form->mode;
        tout[i] = &n->out[i].t;
        if (form->unwanted >> i & 1u) {
            modes[i] = TN_MODE_NONE;
            tensor_describe(&n->out[i], out_dtype[i], out_shape[i].ndim, out_shape[i].dim, false);
            continue;
        }
        op_tensor_create(&n->out[i], out_dtype[i], known ? out_shape[i].ndim : 0,
                         known ? out_shape[i].dim : none, form->strided);
        for (int64_t k = 0; form->mode == TN_MODE_ADD && k < tn_tensor_count(&n->out[i].t); k++)
            op_tensor_set(&n->out[i], k, (double)(k % 5));
    }
}

bool op_kernel_on_device(const op_kernel *k)
{
    return run.device && strcmp(k->kernel->device, run.device) == 0;
}

static tn_status kernel_run(op_node *n, tn_exec *x)
{
    const bool streams = op_kernel_on_device(&n->kernel);
    tn_status st;

    x->stream = streams ? run.stream : NULL;
    st = n->kernel.kernel->run(&n->plan, x, &run.err);
    return st || !streams ? st : run.device_ops->stream_wait(run.stream, &run.err);
}

tn_status op_node_run(op_node *n, op_tensor *const *in, const tn_shape *out_shape, const int32_t *out_dtype,
                      const op_form *form, const op_node *forward)
{
    static const uint64_t step = 7;
    static const tn_call_ops call_ops = {
        .struct_size = TN_END(tn_call_ops, complete), .resize = call_resize, .alloc = call_alloc};
    const tn_rng rng = {.struct_size = (uint32_t)TN_END(tn_rng, step_add), .seed = 42, .step = &step};
    const tn_tensor *tin[OP_ARGS_MAX], *tout[OP_ARGS_MAX];
    uint8_t modes[OP_ARGS_MAX];
    op_call call = {.node = n};
    tn_exec x = {.struct_size = TN_END(tn_exec, ops),
                 .threads = form->threads,
                 .in = tin,
                 .out = tout,
                 .modes = modes,
                 .attrs = n->attrs->values,
                 .rng = &rng,
                 .call = (tn_call *)(void *)&call,
                 .ops = &call_ops};
    tn_status st;

    n->out_count = n->args.out_count;
    for (uint32_t i = 0; i < n->args.in_count; i++)
        tin[i] = &in[i]->t;
    outputs_create(n, out_shape, out_dtype, form, tout, modes);
    for (uint32_t i = 0; i < n->args.in_count; i++)
        if (tn_op_mutates(n->def->op, n->args.in_count, i)) { /* shares the input's memory */
            n->out[n->out_count] = *in[i];
            n->out[n->out_count].t.shape = n->out[n->out_count].shape;
            n->out[n->out_count].t.stride = n->out[n->out_count].stride;
            n->out[n->out_count].block = NULL;
            modes[n->out_count] = TN_MODE_WRITE;
            tout[n->out_count] = &n->out[n->out_count].t;
            n->out_count++;
        }
    if ((st = node_prepare(n, tin, tout, modes, form, forward)))
        return st;
    for (uint32_t i = 0; form->in_place && i < n->args.out_count; i++)
        if (n->inplace[i] >= 0)
            n->out[i].t.data = in[n->inplace[i]]->t.data;
    x.workspace = block(n->plan.workspace_bytes);
    n->saved =
        forward && forward->kernel.plugin == n->kernel.plugin ? forward->saved : block(n->plan.saved_bytes);
    x.saved = n->saved;
    st = TN_E_NOMEM;
    if (!n->plan.workspace_bytes || x.workspace)
        st = kernel_run(n, &x);
    for (uint32_t i = 0; st == TN_OK && form->in_place && i < n->args.out_count; i++)
        if (n->out[i].t.data != n->out[i].block) {
            n->out[i].t.data = n->out[i].block;
            memcpy(n->out[i].block, in[n->inplace[i]]->t.data, (size_t)n->out[i].t.bytes);
        }
    if (forward && n->saved == forward->saved)
        n->saved = NULL;
    free(x.workspace);
    for (size_t i = 0; i < call.block_count; i++)
        free(call.blocks[i]);
    return st;
}

void op_node_free(op_node *n)
{
    for (uint32_t i = 0; i < n->args.out_count; i++)
        op_tensor_free(&n->out[i]);
    if (n->kernel.kernel && n->kernel.kernel->release && n->plan.struct_size)
        n->kernel.kernel->release(&n->plan);
    if (n->plan.tuning.release)
        n->plan.tuning.release(n->plan.tuning.data);
    free(n->saved);
    tni_attrs_release(n->attrs);
}

int tn_op_close(int failed)
{
    device_close();
    for (size_t p = run.plugin_count; p-- > 0;)
        if (run.plugins[p].descriptor->fini)
            run.plugins[p].descriptor->fini(run.plugins[p].self);
    tni_opset_destroy(run.ops);
    return failed;
}
