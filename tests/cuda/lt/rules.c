/*
 * The functions of cuBLASLt, and what they refuse. "cublasLt.h" is that header's own comment at the name;
 * "guide" is NVIDIA's "cuBLAS Library" 13, section 3 (Using the cuBLASLt API).
 */
#include "double.h"

#include "../../../plugins/cuda/kernels/args.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define HANDLE 0x4c54u
#define DESC 0x4c5444u
#define LAYOUT 0x4c544cu
#define PREFERENCE 0x4c5450u
#define ALGO 0x4c5441u
#define DEVICE_MEMORY 2 /* CU_MEMORYTYPE_DEVICE */
#define WORKSPACE 4096u /* bytes that the schemes of split sums ask for */
#define LARGE 262144u   /* and an algorithm with a large workspace */

_Static_assert(sizeof(double_layout) <= sizeof(cublasLtMatrixLayoutOpaque_t), "");
_Static_assert(sizeof(double_desc) <= sizeof(cublasLtMatmulDescOpaque_t), "");
_Static_assert(sizeof(double_algo) <= sizeof(cublasLtMatmulAlgo_t), "");

struct cublasLtContext {
    uint32_t magic;
    int device;
};

typedef struct double_preference {
    uint32_t magic, schemes, align[4];
    uint64_t workspace_bytes;
} double_preference;

static const char *const clocks[] = {"create", "desc",   "layout", "preference", "set",  "heuristic",
                                     "algo",   "matmul", "none",   "inplace",    "state"};
enum {
    CREATE,
    DESC_MADE,
    LAYOUT_MADE,
    PREFERENCE_MADE,
    SET,
    HEURISTIC,
    ALGO_ASKED,
    MATMUL,
    NONE,
    INPLACE,
    STATE
};
#define CLOCKS (sizeof clocks / sizeof *clocks)

static struct {
    pthread_once_t once;
    pthread_mutex_t lock;
    int (*device)(int *out);
    int (*pointer)(void *out, int attribute, unsigned long long data);
    int (*function)(cudaStream_t stream, void (*fn)(void *arg), void *arg);
    int (*capturing)(cudaStream_t stream, int *status, unsigned long long *id, void **graph,
                     const void **last, size_t *last_count);
    int (*find)(void **out, void *module, const char *name);
    int (*launch)(void *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                  unsigned block_y, unsigned block_z, unsigned shared, cudaStream_t stream, void **params,
                  void **extra);
    atomic_uint counts[CLOCKS];
    atomic_int handles, things; /* that were not given back */
    double_job *jobs;           /* all: graphs may have them */
} lt = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

static cublasStatus_t refuse(cublasStatus_t status, const char *rule)
{
    (void)fprintf(stderr, "cublaslt double: %s\n", rule);
    return status;
}

/* ---- faults and counts --------------------------------------------------------------------------------- */

/* The status that TNLT_FAULT wants of this call: 0 if it is none. */
static int fault(int clock)
{
    const unsigned now = atomic_fetch_add(&lt.counts[clock], 1u) + 1;
    const size_t length = strlen(clocks[clock]);
    const char *at = getenv("TNLT_FAULT");

    for (; at && *at; at += strcspn(at, ","), at += *at == ',') {
        char *end;
        unsigned long number;
        bool more;

        if (strncmp(at, clocks[clock], length) != 0 || at[length] != ':')
            continue;
        number = strtoul(at + length + 1, &end, 10);
        more = *end == '+';
        end += more;
        if (number == now || (more && number < now))
            return *end == ':' ? atoi(end + 1) : 1;
    }
    return 0;
}

static void counts_write(void)
{
    const char *path = getenv("TNLT_COUNTS");
    FILE *to = path ? fopen(path, "a") : NULL;

    for (size_t i = 0; to && i < CLOCKS; i++)
        (void)fprintf(to, "lt %s %u\n", clocks[i], atomic_load(&lt.counts[i]));
    if (to) {
        (void)fprintf(to, "lt handles left %d\nlt things left %d\n", atomic_load(&lt.handles),
                      atomic_load(&lt.things));
        (void)fclose(to);
    }
}

static void driver_open(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *symbol;
    int (*find)(const char *name, void **out, int version, unsigned long long flags, int *status);
    const struct {
        const char *name;
        void *member;
    } rows[] = {{"cuLaunchHostFunc", (void *)&lt.function}, {"cuStreamGetCaptureInfo", (void *)&lt.capturing},
                {"cuModuleGetFunction", (void *)&lt.find},  {"cuLaunchKernel", (void *)&lt.launch},
                {"cuCtxGetDevice", (void *)&lt.device},     {"cuPointerGetAttribute", (void *)&lt.pointer}};

    if (!library || !(symbol = dlsym(library, "cuGetProcAddress_v2")))
        abort();
    memcpy((void *)&find, &symbol, sizeof symbol);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (find(rows[i].name, &symbol, 12000, 0, NULL))
            abort();
        else
            memcpy(rows[i].member, &symbol, sizeof symbol);
    if (getenv("TNLT_COUNTS"))
        (void)atexit(counts_write);
}

/* ---- the library --------------------------------------------------------------------------------------- */

EXPORT size_t cublasLtGetVersion(void)
{
    return CUBLAS_VERSION;
}

EXPORT const char *cublasLtGetStatusName(cublasStatus_t status)
{
    static const char *const names[] = {"CUBLAS_STATUS_SUCCESS",
                                        "CUBLAS_STATUS_NOT_INITIALIZED",
                                        NULL,
                                        "CUBLAS_STATUS_ALLOC_FAILED",
                                        NULL,
                                        NULL,
                                        NULL,
                                        "CUBLAS_STATUS_INVALID_VALUE",
                                        "CUBLAS_STATUS_ARCH_MISMATCH",
                                        NULL,
                                        NULL,
                                        "CUBLAS_STATUS_MAPPING_ERROR",
                                        NULL,
                                        "CUBLAS_STATUS_EXECUTION_FAILED",
                                        "CUBLAS_STATUS_INTERNAL_ERROR",
                                        "CUBLAS_STATUS_NOT_SUPPORTED",
                                        "CUBLAS_STATUS_LICENSE_ERROR"};
    const size_t at = (size_t)status;

    return at < sizeof names / sizeof *names && names[at] ? names[at] : "an unknown status";
}

EXPORT cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
    int failure, device = 0;

    (void)pthread_once(&lt.once, driver_open);
    if ((failure = fault(CREATE)))
        return (cublasStatus_t)failure;
    if (lt.device(&device))
        return refuse(CUBLAS_STATUS_NOT_INITIALIZED,
                      "guide 3.4, cublasLtCreate: the context is tied to the current device; there is none");
    if (!(*handle = calloc(1, sizeof **handle)))
        return CUBLAS_STATUS_ALLOC_FAILED;
    **handle = (struct cublasLtContext){HANDLE, device};
    atomic_fetch_add(&lt.handles, 1);
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    int device = -1;

    if (!handle || handle->magic != HANDLE || lt.device(&device) || device != handle->device)
        return refuse(CUBLAS_STATUS_NOT_INITIALIZED,
                      "guide 3.4, cublasLtDestroy: no handle, or of another device than the current one");
    handle->magic = 0;
    free(handle);
    atomic_fetch_sub(&lt.handles, 1);
    return CUBLAS_STATUS_SUCCESS;
}

/* A thing of `bytes` that begins with its magic number. */
static cublasStatus_t make(int clock, size_t bytes, const void *like, size_t used, void *out)
{
    const int failure = fault(clock);
    void *made;

    if (failure)
        return (cublasStatus_t)failure;
    if (!(made = calloc(1, bytes)))
        return CUBLAS_STATUS_ALLOC_FAILED;
    memcpy(made, like, used);
    memcpy(out, &made, sizeof made);
    atomic_fetch_add(&lt.things, 1);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t give_back(void *thing, uint32_t magic)
{
    if (!thing || memcmp(thing, &magic, sizeof magic) != 0)
        return refuse(CUBLAS_STATUS_INVALID_VALUE, "cublasLt.h: what is given back was not made, or twice");
    memset(thing, 0, sizeof magic);
    free(thing);
    atomic_fetch_sub(&lt.things, 1);
    return CUBLAS_STATUS_SUCCESS;
}

/* The value of an attribute; cublasLt.h: sizeInBytes has to be the size of the internal storage. */
static cublasStatus_t put(void *to, size_t size, const void *from, size_t bytes)
{
    const int failure = fault(SET);

    if (failure)
        return (cublasStatus_t)failure;
    if (!from || size != bytes)
        return refuse(CUBLAS_STATUS_INVALID_VALUE,
                      "cublasLt.h, SetAttribute: buf is NULL, or sizeInBytes is not that of the attribute");
    memcpy(to, from, size);
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- descriptors --------------------------------------------------------------------------------------- */

/* guide 3.4, cublasLtMatmul: the table of supported types, as far as all matrices have one. */
static const struct {
    int32_t compute, scale, type;
} supported[] = {{CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F},
                 {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16F},
                 {CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_16BF},
                 {CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F, CUDA_R_32F},
                 {CUBLAS_COMPUTE_64F, CUDA_R_64F, CUDA_R_64F}};

static bool is_supported(const double_desc *d, int32_t type)
{
    for (size_t i = 0; i < sizeof supported / sizeof *supported; i++)
        if (supported[i].compute == d->compute && supported[i].scale == d->scale &&
            (type < 0 || supported[i].type == type))
            return true;
    return false;
}

EXPORT cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t compute,
                                               cudaDataType_t scale)
{
    const double_desc d = {.magic = DESC,
                           .compute = (int32_t)compute,
                           .scale = (int32_t)scale,
                           .epilogue = CUBLASLT_EPILOGUE_DEFAULT};

    if (!is_supported(&d, -1))
        return refuse(CUBLAS_STATUS_INVALID_VALUE,
                      "guide 3.4, cublasLtMatmul: no such pair of compute and scale types");
    return make(DESC_MADE, sizeof **out, &d, sizeof d, out);
}

EXPORT cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    return give_back(desc, DESC);
}

EXPORT cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                                     cublasLtMatmulDescAttributes_t attribute,
                                                     const void *value, size_t bytes)
{
    double_desc *d = (double_desc *)desc;
    cublasStatus_t st;

    if (!d || d->magic != DESC)
        return refuse(CUBLAS_STATUS_INVALID_VALUE, "cublasLtMatmulDescSetAttribute: no descriptor");
    if (attribute == CUBLASLT_MATMUL_DESC_BIAS_POINTER)
        return put((void *)&d->bias, sizeof d->bias, value, bytes);
    if (attribute == CUBLASLT_MATMUL_DESC_EPILOGUE) {
        if (!(st = put(&d->epilogue, sizeof d->epilogue, value, bytes)) &&
            d->epilogue != CUBLASLT_EPILOGUE_DEFAULT && d->epilogue != CUBLASLT_EPILOGUE_BGRADB &&
            d->epilogue & ~(uint32_t)CUBLASLT_EPILOGUE_RELU_BIAS)
            st = refuse(CUBLAS_STATUS_NOT_SUPPORTED, "an epilogue that this double does not know");
        return st;
    }
    if (attribute != CUBLASLT_MATMUL_DESC_TRANSA && attribute != CUBLASLT_MATMUL_DESC_TRANSB)
        return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "an attribute that this double does not know");
    const int at = attribute == CUBLASLT_MATMUL_DESC_TRANSB;
    if (!(st = put(&d->trans[at], sizeof d->trans[at], value, bytes)) && d->trans[at] != CUBLAS_OP_N &&
        d->trans[at] != CUBLAS_OP_T)
        st = refuse(CUBLAS_STATUS_INVALID_VALUE, "cublasLt.h, TRANSA, TRANSB: no cublasOperation_t of reals");
    return st;
}

/* ---- layouts ------------------------------------------------------------------------------------------- */

EXPORT cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType type,
                                                 uint64_t rows, uint64_t cols, int64_t ld)
{
    const double_layout l = {
        .magic = LAYOUT, .type = (int32_t)type, .batch = 1, .rows = rows, .cols = cols, .ld = ld};

    if (!rows || !cols || rows > INT32_MAX || cols > INT32_MAX)
        return refuse(CUBLAS_STATUS_INVALID_VALUE,
                      "cublasLt.h, ROWS, COLS: usually only what int32_t expresses is supported");
    if (ld < 0 || (uint64_t)ld < rows)
        return refuse(CUBLAS_STATUS_INVALID_VALUE,
                      "cublasLt.h, LD: has to be at least ROWS where the order is by columns");
    return make(LAYOUT_MADE, sizeof **out, &l, sizeof l, out);
}

EXPORT cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    return give_back(layout, LAYOUT);
}

EXPORT cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                       cublasLtMatrixLayoutAttribute_t attribute,
                                                       const void *value, size_t bytes)
{
    double_layout *l = (double_layout *)layout;
    cublasStatus_t st;

    if (!l || l->magic != LAYOUT)
        return refuse(CUBLAS_STATUS_INVALID_VALUE, "cublasLtMatrixLayoutSetAttribute: no layout");
    if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)
        return put(&l->stride, sizeof l->stride, value, bytes);
    if (attribute != CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)
        return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "an attribute that this double does not know");
    if (!(st = put(&l->batch, sizeof l->batch, value, bytes)) && l->batch < 1)
        st = refuse(CUBLAS_STATUS_INVALID_VALUE, "cublasLt.h, BATCH_COUNT: the number of products");
    return st;
}

/* ---- preferences --------------------------------------------------------------------------------------- */

EXPORT cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out)
{
    const double_preference p = {
        .magic = PREFERENCE, .schemes = CUBLASLT_REDUCTION_SCHEME_MASK, .align = {256, 256, 256, 256}};

    return make(PREFERENCE_MADE, sizeof **out, &p, sizeof p, out);
}

EXPORT cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    return give_back(preference, PREFERENCE);
}

EXPORT cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                           cublasLtMatmulPreferenceAttributes_t attribute,
                                                           const void *value, size_t bytes)
{
    double_preference *p = (double_preference *)preference;
    const int at = (int)attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;
    cublasStatus_t st;

    if (!p || p->magic != PREFERENCE)
        return refuse(CUBLAS_STATUS_INVALID_VALUE, "cublasLtMatmulPreferenceSetAttribute: no preference");
    if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
        return put(&p->workspace_bytes, sizeof p->workspace_bytes, value, bytes);
    if (attribute == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)
        return put(&p->schemes, sizeof p->schemes, value, bytes);
    if (at < 0 || at > 3)
        return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "an attribute that this double does not know");
    if (!(st = put(&p->align[at], sizeof p->align[at], value, bytes)) &&
        (!p->align[at] || p->align[at] & (p->align[at] - 1)))
        st = refuse(CUBLAS_STATUS_INVALID_VALUE, "cublasLt.h, MIN_ALIGNMENT: no alignment in bytes");
    return st;
}

/* ---- products ------------------------------------------------------------------------------------------ */

static bool has_bias(const double_desc *d)
{
    return (d->epilogue & (CUBLASLT_EPILOGUE_BIAS | CUBLASLT_EPILOGUE_BGRADB)) != 0;
}

static uint32_t bytes_of(int32_t type)
{
    return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2;
}

/* NULL: these go together. */
static const char *wrong(const double_desc *o, const double_layout *a, const double_layout *b,
                         const double_layout *c, const double_layout *d)
{
    const double_layout *all[] = {a, b, c, d};

    if (!o || o->magic != DESC)
        return "no descriptor";
    for (int i = 0; i < 4; i++) {
        if (!all[i] || all[i]->magic != LAYOUT)
            return "no layout";
        if (!is_supported(o, all[i]->type))
            return "guide 3.4, cublasLtMatmul: these types are not in the table";
        if (all[i]->batch != d->batch)
            return "cublasLt.h, BATCH_COUNT: matrices of a product have one number of batches";
    }
    if (d->batch > 1 && d->stride < d->ld * ((int64_t)d->cols - 1) + (int64_t)d->rows &&
        d->ld < d->stride * (d->batch - 1) + (int64_t)d->rows)
        return "the results of two batches lie over each other";
    if ((o->trans[0] ? a->cols : a->rows) != d->rows || (o->trans[1] ? b->rows : b->cols) != d->cols ||
        (o->trans[0] ? a->rows : a->cols) != (o->trans[1] ? b->cols : b->rows))
        return "guide 3.4, cublasLtMatmul: D = op(A) op(B): rows and columns differ";
    if (c->rows != d->rows || c->cols != d->cols)
        return "guide 3.4, cublasLtMatmul: C has to have D's rows and columns";
    return NULL;
}

static uint64_t hash(uint64_t h, const void *data, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        h = (h ^ ((const unsigned char *)data)[i]) * 1099511628211u;
    return h;
}

/* What an algorithm was found for, but the addresses. */
static uint64_t problem_of(const double_desc *o, const double_layout *a, const double_layout *b,
                           const double_layout *c, const double_layout *d)
{
    double_desc same = *o;
    uint64_t h = 1469598103934665603u;

    same.bias = NULL;
    h = hash(h, &same, sizeof same);
    h = hash(hash(h, a, sizeof *a), b, sizeof *b);
    return hash(hash(h, c, sizeof *c), d, sizeof *d);
}

/* What a heuristic may list. */
static const struct choice {
    char letter;
    bool refuses;
    uint32_t id, scheme;
    uint64_t workspace_bytes;
} choices[] = {{'i', false, 21, CUBLASLT_REDUCTION_SCHEME_INPLACE, 0},
               {'p', false, 13, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, WORKSPACE},
               {'n', false, 0, CUBLASLT_REDUCTION_SCHEME_NONE, 0},
               {'w', false, 66, CUBLASLT_REDUCTION_SCHEME_NONE, LARGE},
               {'x', true, 67, CUBLASLT_REDUCTION_SCHEME_NONE, 0}};

/* NULL: the preference leaves it out. */
static const struct choice *choice_of(char letter, const double_preference *p)
{
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        if (choices[i].letter == letter && choices[i].workspace_bytes <= p->workspace_bytes &&
            (choices[i].scheme & ~p->schemes) == 0)
            return &choices[i];
    return NULL;
}

static cublasLtMatmulHeuristicResult_t result_of(const struct choice *c, uint32_t align, uint64_t problem)
{
    const double_algo a = {ALGO, c->scheme, align, c->id, c->workspace_bytes, problem, c->refuses};
    cublasLtMatmulHeuristicResult_t r;

    memset(&r, 0, sizeof r);
    memcpy(&r.algo, &a, sizeof a);
    r.workspaceSize = c->workspace_bytes;
    r.state = CUBLAS_STATUS_SUCCESS;
    r.wavesCount = 0.5f;
    return r;
}

EXPORT cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                                     cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                                     cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                                     cublasLtMatmulPreference_t preference, int wanted,
                                                     cublasLtMatmulHeuristicResult_t *out, int *count)
{
    const double_desc *o = (const double_desc *)desc;
    const double_preference *p = (const double_preference *)preference;
    const double_layout *l[] = {(const double_layout *)a, (const double_layout *)b, (const double_layout *)c,
                                (const double_layout *)d};
    const int failure = fault(HEURISTIC);
    const char *what = wrong(o, l[0], l[1], l[2], l[3]);
    const bool inplace = fault(INPLACE) != 0, bad = fault(STATE) != 0;
    const char *list = getenv("TNLT_CHOICES");
    uint32_t align = 256;
    uint64_t problem;

    *count = 0;
    if (failure)
        return (cublasStatus_t)failure;
    if (!handle || handle->magic != HANDLE || !p || p->magic != PREFERENCE || wanted < 1 || what)
        return refuse(CUBLAS_STATUS_INVALID_VALUE, what ? what : "no handle, preference or room for results");
    if (fault(NONE))
        return CUBLAS_STATUS_SUCCESS;
    for (int i = 0; i < 4; i++)
        align = p->align[i] < align ? p->align[i] : align;
    if (has_bias(o))
        while ((uintptr_t)o->bias % align) /* cublasLt.h, BIAS_POINTER: its value tells the alignment */
            align /= 2;
    align = align > 32 ? 32 : align;
    problem = problem_of(o, l[0], l[1], l[2], l[3]);
    if (inplace || p->schemes & CUBLASLT_REDUCTION_SCHEME_INPLACE)
        out[(*count)++] = result_of(&choices[0], align, problem);
    for (list = list ? list : "pn"; *list && *count < wanted; list++) {
        const struct choice *c = choice_of(*list, p);

        if (c)
            out[(*count)++] = result_of(c, align, problem);
    }
    for (int i = 0; bad && i < *count; i++)
        out[i].state = CUBLAS_STATUS_NOT_SUPPORTED;
    return CUBLAS_STATUS_SUCCESS;
}

EXPORT cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo,
                                                           cublasLtMatmulAlgoConfigAttributes_t attribute,
                                                           void *out, size_t bytes, size_t *written)
{
    const int failure = fault(ALGO_ASKED);
    double_algo a;
    uint32_t value = 1;

    if (failure)
        return (cublasStatus_t)failure;
    memcpy(&a, algo, sizeof a);
    if (a.magic != ALGO || !out || bytes != sizeof value || !written)
        return refuse(CUBLAS_STATUS_INVALID_VALUE,
                      "cublasLtMatmulAlgoConfigGetAttribute: sizeInBytes is not that of the attribute");
    if (attribute == CUBLASLT_ALGO_CONFIG_ID)
        value = a.id;
    else if (attribute == CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME)
        value = a.scheme;
    else if (attribute == CUBLASLT_ALGO_CONFIG_SPLITK_NUM)
        value = a.scheme ? 4 : 1;
    else if (attribute != CUBLASLT_ALGO_CONFIG_TILE_ID)
        return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "an attribute that this double does not know");
    memcpy(out, &value, sizeof value);
    *written = sizeof value;
    return CUBLAS_STATUS_SUCCESS;
}

/* The first byte and the last one are memory of a device. */
static bool on_device(const void *data, uint64_t bytes)
{
    const unsigned long long at = (unsigned long long)(uintptr_t)data;
    uint32_t first = 0, last = 0;

    return data && !lt.pointer(&first, 2, at) && !lt.pointer(&last, 2, at + bytes - 1) &&
           first == DEVICE_MEMORY && last == DEVICE_MEMORY;
}

static bool matrix_there(const void *data, const double_layout *l)
{
    const uint64_t last = (uint64_t)((l->batch - 1) * l->stride + ((int64_t)l->cols - 1) * l->ld) + l->rows;

    return on_device(data, last * bytes_of(l->type));
}

/* NULL: addresses and workspace are as the algorithm wants them. */
static const char *wrong_places(const double_job *j, const double_algo *algo)
{
    const void *all[] = {j->from[0], j->from[1], j->other, j->to};
    const uint64_t length = j->desc.epilogue == CUBLASLT_EPILOGUE_BGRADB ? j->d.cols : j->d.rows;

    if (algo->magic != ALGO || algo->problem != problem_of(&j->desc, &j->a, &j->b, &j->c, &j->d))
        return "cublasLtMatmul: the algorithm was found for another product";
    if (j->workspace_bytes < algo->workspace_bytes)
        return "cublasLt.h, cublasLtMatmul: workspaceSizeInBytes is less than the algorithm needs";
    if (j->workspace_bytes && ((uintptr_t)j->workspace % 16 || !on_device(j->workspace, j->workspace_bytes)))
        return "guide 3.4, cublasLtMatmul: the workspace has to be memory of the device, aligned to 16 bytes";
    if (!matrix_there(j->from[0], &j->a) || !matrix_there(j->from[1], &j->b) || !matrix_there(j->to, &j->d) ||
        (j->beta != 0 && !matrix_there(j->other, &j->c)))
        return "cublasLtMatmul: a matrix is not, or not as a whole, memory of the device";
    for (int i = 0; i < 4; i++)
        if ((uintptr_t)all[i] % algo->align)
            return "cublasLt.h, MIN_ALIGNMENT: an address is less aligned than the preference said";
    if (j->other == j->to && memcmp(&j->c, &j->d, sizeof j->c) != 0)
        return "guide 3.4, cublasLtMatmul: in place, C and D have to have one layout";
    if (has_bias(&j->desc) &&
        ((uintptr_t)j->desc.bias % algo->align || !on_device(j->desc.bias, length * bytes_of(j->d.type))))
        return "cublasLt.h, BIAS, BGRADB: as many elements as D has rows, or columns, aligned as was told";
    return NULL;
}

/* The workspace is the library's: a kernel of the driver's double writes zeros, as the first of two nodes. */
static int room_use(const double_job *j, cudaStream_t stream)
{
    tncuda_columns_args args = {.n = (int64_t)(j->workspace_bytes / sizeof(float)),
                                .y = j->workspace,
                                .slices = 1,
                                .depth = 1,
                                .pack = 1,
                                .lanes = 32};
    void *kernel = NULL, *params[] = {&args};
    int failure;

    if (!j->workspace_bytes)
        return 0;
    failure = lt.find(&kernel, NULL, "columns_f32");
    return failure ? failure : lt.launch(kernel, 2, 1, 1, 256, 1, 1, 0, stream, params, NULL);
}

static void job_keep(double_job *j, bool once)
{
    j->once = once;
    if (once)
        return;
    (void)pthread_mutex_lock(&lt.lock);
    j->next = lt.jobs;
    lt.jobs = j;
    (void)pthread_mutex_unlock(&lt.lock);
}

static double number_of(int32_t scale, const void *at)
{
    return scale == CUDA_R_64F ? *(const double *)at : (double)*(const float *)at;
}

EXPORT cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha,
                                     const void *A, cublasLtMatrixLayout_t a, const void *B,
                                     cublasLtMatrixLayout_t b, const void *beta, const void *C,
                                     cublasLtMatrixLayout_t c, void *D, cublasLtMatrixLayout_t d,
                                     const cublasLtMatmulAlgo_t *algo, void *workspace, size_t bytes,
                                     cudaStream_t stream)
{
    const double_desc *o = (const double_desc *)desc;
    const double_layout *l[] = {(const double_layout *)a, (const double_layout *)b, (const double_layout *)c,
                                (const double_layout *)d};
    const int failure = fault(MATMUL);
    const char *what = wrong(o, l[0], l[1], l[2], l[3]);
    int device = -1, capturing = 0;
    double_algo chosen;
    double_job *j;

    if (failure)
        return (cublasStatus_t)failure;
    if (!handle || handle->magic != HANDLE || lt.device(&device) || device != handle->device)
        return refuse(CUBLAS_STATUS_NOT_INITIALIZED, "cublasLtMatmul: no handle of the current device");
    if (what || !algo || !alpha || !beta || !stream)
        return refuse(CUBLAS_STATUS_INVALID_VALUE, what ? what : "cublasLtMatmul: an argument is NULL");
    if (!(j = calloc(1, sizeof *j)))
        return CUBLAS_STATUS_ALLOC_FAILED;
    *j = (double_job){.desc = *o,
                      .a = *l[0],
                      .b = *l[1],
                      .c = *l[2],
                      .d = *l[3],
                      .from = {A, B},
                      .other = C,
                      .to = D,
                      .workspace = workspace,
                      .workspace_bytes = bytes,
                      .alpha = number_of(o->scale, alpha),
                      .beta = number_of(o->scale, beta)};
    memcpy(&chosen, algo, sizeof chosen);
    what = wrong_places(j, &chosen);
    if (!has_bias(o))
        j->desc.bias = NULL;
    (void)lt.capturing(stream, &capturing, NULL, NULL, NULL, NULL);
    if (what || chosen.refuses) {
        free(j);
        return what ? refuse(CUBLAS_STATUS_INVALID_VALUE, what) : CUBLAS_STATUS_NOT_SUPPORTED;
    }
    job_keep(j, !capturing);
    return room_use(j, stream) || lt.function(stream, double_job_run, j) ? CUBLAS_STATUS_EXECUTION_FAILED
                                                                         : CUBLAS_STATUS_SUCCESS;
}
