/*
 * Products of matrices by cuBLASLt.
 *
 * The library is opened when the first product is planned, and never closed: it has threads of its own. Each
 * device has one handle, which goes with its context. A product's algorithm is chosen when it is planned: the
 * first that serves, or the fastest (lt_measure.c) where bits may differ from run to run. A run gives the
 * library addresses, nothing else. Where the library refuses at a run, the product goes to the plain kernel
 * from then on, and the log says once why.
 *
 * The library's matrices lie column by column. Rows side by side are columns of the transposed matrix, so
 * y = a b is planned as y' = b' a', and the rows of y' are the outputs that a bias belongs to.
 */
#include "lt_plan.h"
#include "measure.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DIM_MAX INT32_MAX       /* "usually only values that can be expressed as int32_t are supported" */
#define ALIGN_WHOLE 16u         /* of arrays that are no views; others have that of their elements */
#define WARNINGS 8              /* of products that the library refuses at a run; the others are told, too */
#define CHOICES 8               /* algorithms to look at */
#define ROOM_HOPPER (32u << 20) /* what NVIDIA recommends: cuBLAS, 2.1.8, cublasSetWorkspace */
#define ROOM_OTHERS (4u << 20)
#define ROOM_PART 64u  /* of the device's memory at most: a part of so many */
#define TRIAL_PART 16u /* the same of a product that is measured */
#define TRIAL_WORK                                                                                           \
    65536.0 /* its multiplications for each multiprocessor: fewer take less time than a launch */
#define ADVICE "install cuBLAS of CUDA 12 or 13, or name its folder in plugin.cuda.libraries"

/* ---- the library --------------------------------------------------------------------------------------- */

static tn_status functions_find(const tncuda_plugin *p, tncuda_lt_functions *f, tn_err *err)
{
    static const char *const files[] = {"libcublasLt.so.13", "libcublasLt.so.12", NULL};
    const library_function rows[] = {
#define LT(result, member, name, params) {name, (void *)&f->member},
#include "lt.list"
#undef LT
    };
    const tncuda_library l = {files,        rows,  sizeof rows / sizeof *rows, "cuBLASLt cannot be opened (",
                              "); " ADVICE, ADVICE};
    const char *file;
    void *library;

    return tncuda_library_open(p, &l, &library, &file, err);
}

/* TN_E_UNSUPPORTED, and TN_E_DEVICE in err->code: there is none. */
static tn_status library_need(tncuda_plugin *p, struct tncuda_lt_library **out, tn_err *err)
{
    struct tncuda_lt_library *l;
    tn_err absent;
    bool first;

    pthread_mutex_lock(&p->lock);
    if (!p->lt && (p->lt = tncuda_new(p, sizeof *p->lt))) {
        pthread_mutex_init(&p->lt->lock, NULL);
        pthread_mutex_init(&p->lt->measuring, NULL);
    }
    l = p->lt;
    pthread_mutex_unlock(&p->lock);
    if (!l)
        return tncuda_nomem(err, "a library");
    pthread_mutex_lock(&l->lock);
    first = !l->tried;
    l->tried = true;
    if (first)
        (void)functions_find(p, &l->f, &l->absent);
    absent = l->absent;
    pthread_mutex_unlock(&l->lock);
    if (first && absent.code)
        tncuda_log(p, TN_LEVEL_WARNING, "products of matrices run on plain kernels: %s", absent.message);
    else if (first)
        tncuda_log(p, TN_LEVEL_DEBUG, "cublaslt: version %zu", l->f.version());
    if (absent.code) {
        if (err)
            *err = absent;
        return TN_E_UNSUPPORTED;
    }
    *out = l;
    return TN_OK;
}

/* ---- handles ------------------------------------------------------------------------------------------- */

static tn_status refuse(const struct tncuda_lt_library *l, const char *what, const char *call,
                        tncuda_lt_status status, tn_err *err)
{
    const char *name = l->f.status_name(status);

    return tn_failf(err, TN_E_UNSUPPORTED, "%s: %s gives %s (%d)", what, call, name ? name : "?",
                    (int)status);
}

static tncuda_lt_limits limits_of(const tncuda_plugin *p, int32_t index)
{
    int32_t ordinal = 0, major = 0, units = 0;
    size_t left = 0, total = 0;
    uint64_t room;

    (void)p->driver.device_get(&ordinal, index);
    (void)p->driver.device_attribute(&major, TNCUDA_ATTRIBUTE_COMPUTE_MAJOR, ordinal);
    (void)p->driver.device_attribute(&units, TNCUDA_ATTRIBUTE_UNITS, ordinal);
    (void)p->driver.memory_info(&left, &total);
    room = major >= 9 ? ROOM_HOPPER : ROOM_OTHERS;
    return (tncuda_lt_limits){.room = room < total / ROOM_PART ? room : total / ROOM_PART,
                              .trial = total / TRIAL_PART,
                              .work = TRIAL_WORK * units};
}

/* In the context. */
static tn_status handle_need(const tncuda_plugin *p, struct tncuda_lt_library *l, int32_t index,
                             tncuda_lt_handle *out, tn_err *err)
{
    tncuda_lt_handle made = atomic_load_explicit(&l->handles[index], memory_order_acquire);
    tncuda_lt_status status = 0;

    if (!made) {
        pthread_mutex_lock(&l->lock);
        made = atomic_load_explicit(&l->handles[index], memory_order_relaxed);
        if (!made && !(status = l->f.create(&made))) {
            l->limits[index] = limits_of(p, index);
            atomic_store_explicit(&l->handles[index], made, memory_order_release);
        }
        pthread_mutex_unlock(&l->lock);
    }
    *out = made;
    return status ? refuse(l, "a handle", "cublasLtCreate", status, err) : TN_OK;
}

void tncuda_lt_drop(tncuda_plugin *plugin, int32_t index)
{
    struct tncuda_lt_library *l = plugin->lt;
    tncuda_lt_handle handle = l ? atomic_exchange(&l->handles[index], NULL) : NULL;
    tncuda_context gone;

    if (!handle || plugin->driver.context_push(plugin->contexts[index].context))
        return;
    (void)l->f.destroy(handle);
    (void)plugin->driver.context_pop(&gone);
}

void tncuda_lt_fini(tncuda_plugin *plugin)
{
    if (plugin->lt) {
        pthread_mutex_destroy(&plugin->lt->lock);
        pthread_mutex_destroy(&plugin->lt->measuring);
        tncuda_delete(plugin, plugin->lt->kept);
    }
    tncuda_delete(plugin, plugin->lt);
    plugin->lt = NULL;
}

/* ---- shapes -------------------------------------------------------------------------------------------- */

/* A matrix (rows, cols), or its transposed one, whose columns are side by side. False: neither lies so. */
static bool side_of(int64_t rows, int64_t cols, int64_t row, int64_t col, tncuda_lt_side *out)
{
    const bool one_row = rows == 1, one_col = cols == 1;

    if (row == 1 && (one_col || col >= rows) && !(one_row && col == 1))
        *out = (tncuda_lt_side){TNCUDA_LT_OP_N, rows, cols, one_col ? rows : col, 0};
    else if (col == 1 && (one_row || row >= cols))
        *out = (tncuda_lt_side){TNCUDA_LT_OP_T, cols, rows, one_row ? cols : row, 0};
    else if (one_row && col >= 1)
        *out = (tncuda_lt_side){TNCUDA_LT_OP_N, 1, cols, col, 0};
    else if (one_col && row >= 1)
        *out = (tncuda_lt_side){TNCUDA_LT_OP_T, 1, rows, row, 0};
    else
        return false;
    return true;
}

/* The library's a and b, and d, which is not transposed. */
static tn_status sides_of(const tncuda_product_args *p, tncuda_lt_side side[3], bool *swapped, tn_err *err)
{
    bool fits;

    if (p->m < 1 || p->n < 1 || p->k < 1 || p->batch < 1)
        return tn_fail(err, TN_E_UNSUPPORTED, "a matrix without elements");
    if (p->m > DIM_MAX || p->n > DIM_MAX || p->k > DIM_MAX || p->batch > DIM_MAX)
        return tn_fail(err, TN_E_UNSUPPORTED, "a matrix of more than 2^31 - 1 rows, columns or batches");
    fits = side_of(p->n, p->m, p->c_col, p->c_row, &side[2]);
    if (fits && p->bias && side[2].transposed) { /* of one output */
        side[2] = (tncuda_lt_side){TNCUDA_LT_OP_N, p->n, p->m, p->c_row, 0};
        fits = p->n == 1;
    }
    *swapped = !side[2].transposed;
    fits = fits && (*swapped ? side_of(p->n, p->k, p->b_col, p->b_row, &side[0]) &&
                                   side_of(p->k, p->m, p->a_col, p->a_row, &side[1])
                             : side_of(p->m, p->k, p->a_row, p->a_col, &side[0]) &&
                                   side_of(p->k, p->n, p->b_row, p->b_col, &side[1]));
    if (p->batch > 1) {
        side[0].batch = *swapped ? p->b_batch : p->a_batch;
        side[1].batch = *swapped ? p->a_batch : p->b_batch;
        side[2].batch = p->c_batch;
    }
    return fits ? TN_OK
                : tn_fail(err, TN_E_UNSUPPORTED, "a matrix of which neither rows nor columns are together");
}

static const struct {
    int32_t dtype, type;
    const char *name;
} types[] = {{TN_F32, TNCUDA_R_F32, "f32"},
             {TN_F64, TNCUDA_R_F64, "f64"},
             {TN_F16, TNCUDA_R_F16, "f16"},
             {TN_BF16, TNCUDA_R_BF16, "bf16"}};
#define TYPES (sizeof types / sizeof *types)

/* Of `types`; TYPES: none. */
static size_t type_find(int32_t dtype)
{
    size_t i = 0;

    while (i < TYPES && types[i].dtype != dtype)
        i++;
    return i;
}

static tncuda_lt_scale scale_of(int32_t dtype, double number)
{
    return dtype == TN_F64 ? (tncuda_lt_scale){.wide = number} : (tncuda_lt_scale){.single = (float)number};
}

/* ---- plans --------------------------------------------------------------------------------------------- */

static tn_status checked(const tncuda_lt *lt, tncuda_lt_status status, const char *call, tn_err *err)
{
    return status ? refuse(lt->library, lt->what, call, status, err) : TN_OK;
}

static tn_status desc_put(tncuda_lt *lt, int32_t attribute, const void *value, size_t bytes, tn_err *err)
{
    return checked(lt, lt->library->f.desc_set(lt->desc, attribute, value, bytes),
                   "cublasLtMatmulDescSetAttribute", err);
}

static tn_status layout_put(tncuda_lt *lt, int i, int32_t attribute, const void *value, size_t bytes,
                            tn_err *err)
{
    return checked(lt, lt->library->f.layout_set(lt->layouts[i], attribute, value, bytes),
                   "cublasLtMatrixLayoutSetAttribute", err);
}

static tn_status desc_make(tncuda_lt *lt, tn_err *err)
{
    const bool wide = lt->form.dtype == TN_F64, tf32 = lt->form.dtype == TN_F32 && lt->plugin->tf32;
    const int32_t compute = wide   ? TNCUDA_LT_COMPUTE_F64
                            : tf32 ? TNCUDA_LT_COMPUTE_TF32
                                   : TNCUDA_LT_COMPUTE_F32;
    const int32_t turned[2] = {(int32_t)lt->form.side[0].transposed, (int32_t)lt->form.side[1].transposed};
    const uint32_t epilogue = (uint32_t)lt->form.epilogue;
    tn_status st =
        checked(lt, lt->library->f.desc_create(&lt->desc, compute, wide ? TNCUDA_R_F64 : TNCUDA_R_F32),
                "cublasLtMatmulDescCreate", err);

    if (st || (st = desc_put(lt, TNCUDA_LT_DESC_TRANS_A, &turned[0], sizeof turned[0], err)) ||
        (st = desc_put(lt, TNCUDA_LT_DESC_TRANS_B, &turned[1], sizeof turned[1], err)))
        return st;
    return epilogue ? desc_put(lt, TNCUDA_LT_DESC_EPILOGUE, &epilogue, sizeof epilogue, err) : TN_OK;
}

static tn_status layouts_make(tncuda_lt *lt, tn_err *err)
{
    const tncuda_lt_functions *f = &lt->library->f;
    const int32_t batch = (int32_t)lt->form.batch;
    tn_status st = TN_OK;

    for (int i = 0; i < 3 && !st; i++) {
        const tncuda_lt_side *s = &lt->form.side[i];

        st = checked(lt,
                     f->layout_create(&lt->layouts[i], types[type_find(lt->form.dtype)].type,
                                      (uint64_t)s->rows, (uint64_t)s->cols, s->ld),
                     "cublasLtMatrixLayoutCreate", err);
        if (!st && batch > 1)
            (void)((st = layout_put(lt, i, TNCUDA_LT_LAYOUT_BATCH_COUNT, &batch, sizeof batch, err)) ||
                   (st = layout_put(lt, i, TNCUDA_LT_LAYOUT_BATCH_STRIDE, &s->batch, sizeof s->batch, err)));
    }
    return st;
}

static tn_status preference_make(tncuda_lt *lt, uint32_t align, uint32_t schemes, tncuda_lt_preference *out,
                                 tn_err *err)
{
    static const char call[] = "cublasLtMatmulPreferenceSetAttribute";
    const uint64_t room = lt->library->limits[lt->form.device].room;
    const tncuda_lt_functions *f = &lt->library->f;
    tn_status st = checked(lt, f->preference_create(out), "cublasLtMatmulPreferenceCreate", err);

    if (st ||
        (st = checked(lt, f->preference_set(*out, TNCUDA_LT_PREFERENCE_WORKSPACE, &room, sizeof room), call,
                      err)) ||
        (st = checked(lt, f->preference_set(*out, TNCUDA_LT_PREFERENCE_REDUCTION, &schemes, sizeof schemes),
                      call, err)))
        return st;
    for (int32_t i = 0; i < 4 && !st; i++) /* of a, b, c, d */
        st = checked(lt, f->preference_set(*out, TNCUDA_LT_PREFERENCE_ALIGN_A + i, &align, sizeof align),
                     call, err);
    return st;
}

/* Whether a choice adds in one order: `out` is filled then, but for its number. */
static bool choice_serves(const tncuda_lt *lt, const tncuda_lt_choice *c, tncuda_lt_taken *out)
{
    uint32_t scheme = ~0u;
    size_t written = 0;

    if (c->state || c->workspace_bytes > lt->library->limits[lt->form.device].room ||
        lt->library->f.algo_get(&c->algo, TNCUDA_LT_ALGO_REDUCTION, &scheme, sizeof scheme, &written) ||
        (scheme != TNCUDA_LT_REDUCTION_NONE && scheme != TNCUDA_LT_REDUCTION_COMPUTE))
        return false;
    *out = (tncuda_lt_taken){.algo = c->algo, .bytes = c->workspace_bytes, .scheme = scheme};
    return true;
}

static void choice_tell(const tncuda_lt *lt, int low)
{
    static const char *const how[] = {"", ", measured", ", measured before"};
    const tncuda_lt_functions *f = &lt->library->f;
    const tncuda_lt_taken *t = &lt->taken[low];
    uint32_t tile = 0;
    int32_t id = 0, split = 0;
    size_t written = 0;

    (void)f->algo_get(&t->algo, TNCUDA_LT_ALGO_ID, &id, sizeof id, &written);
    (void)f->algo_get(&t->algo, TNCUDA_LT_ALGO_TILE, &tile, sizeof tile, &written);
    (void)f->algo_get(&t->algo, TNCUDA_LT_ALGO_SPLIT, &split, sizeof split, &written);
    tncuda_log(
        lt->plugin, TN_LEVEL_DEBUG,
        "cublaslt: %s%s: algorithm %d, tile %u, split %d, reduction %u, workspace %zu, number %u of %u%s",
        lt->what, low ? ", unaligned" : "", (int)id, (unsigned)tile, (int)split, (unsigned)t->scheme,
        t->bytes, (unsigned)t->number, (unsigned)t->count, how[t->measured]);
}

/* Of the choices the first that serves, or the fastest. */
static bool choice_take(tncuda_lt *lt, tncuda_lt_handle handle, int low, const tncuda_lt_choice *choices,
                        uint32_t count)
{
    const uint32_t wanted = lt->measured && !low ? TNCUDA_WAYS : 1;
    tncuda_lt_taken ways[TNCUDA_WAYS];
    uint32_t found = 0, best = 0;
    bool measured;

    for (uint32_t i = 0; i < count && found < wanted; i++)
        if (choice_serves(lt, &choices[i], &ways[found])) {
            ways[found].number = i + 1;
            ways[found++].count = count;
        }
    if (!found)
        return false;
    measured = found > 1 && tncuda_lt_fastest_locked(lt, handle, found, ways, &best);
    lt->taken[low] = ways[best];
    lt->taken[low].measured = measured ? TNCUDA_LT_MEASURED : TNCUDA_LT_FIRST;
    return true;
}

/* The bias is not read here: its address tells how it is aligned. */
static tn_status choices_ask(tncuda_lt *lt, tncuda_lt_handle handle, int low, uint32_t align,
                             tncuda_lt_preference preference, tn_err *err)
{
    const void *address = (const void *)(uintptr_t)align;
    tncuda_lt_layout *l = lt->layouts;
    tncuda_lt_choice choices[CHOICES];
    int32_t count = 0;
    tn_status st = TN_OK;

    memset(choices, 0, sizeof choices);
    if (lt->biased)
        st = desc_put(lt, TNCUDA_LT_DESC_BIAS, &address, sizeof address, err);
    if (st || (st = checked(lt,
                            lt->library->f.heuristic(handle, lt->desc, l[0], l[1], l[2], l[2], preference,
                                                     CHOICES, choices, &count),
                            "cublasLtMatmulAlgoGetHeuristic", err)))
        return st;
    if (choice_take(lt, handle, low, choices, count < 0 ? 0 : count < CHOICES ? (uint32_t)count : CHOICES))
        return TN_OK;
    return tn_failf(err, TN_E_UNSUPPORTED,
                    "%s: of %d algorithms of cublasLtMatmulAlgoGetHeuristic none serves", lt->what,
                    (int)count);
}

/* `schemes`: of sums in parts that the library may look at. */
static tn_status choose_among(tncuda_lt *lt, tncuda_lt_handle handle, int low, uint32_t schemes, tn_err *err)
{
    const uint32_t align = low ? (uint32_t)tn_dtype_bytes(lt->form.dtype) : ALIGN_WHOLE;
    tncuda_lt_preference preference = NULL;
    tn_status st = preference_make(lt, align, schemes, &preference, err);

    if (!st)
        st = choices_ask(lt, handle, low, align, preference, err);
    if (preference)
        (void)lt->library->f.preference_destroy(preference);
    return st;
}

static tn_status choose_one(tncuda_lt *lt, tncuda_lt_handle handle, int low, tn_err *err)
{
    const tn_status st = choose_among(lt, handle, low, TNCUDA_LT_REDUCTION_COMPUTE, err);

    return st == TN_E_UNSUPPORTED ? choose_among(lt, handle, low, TNCUDA_LT_REDUCTION_ALL, err) : st;
}

/* Equal products are measured once, and none while another one is. */
static tn_status choose_measured(tncuda_lt *lt, tncuda_lt_handle handle, tn_err *err)
{
    struct tncuda_lt_library *l = lt->library;
    tn_status st = TN_OK;

    pthread_mutex_lock(&l->measuring);
    if (!tncuda_lt_find_locked(lt, &lt->taken[0]) && !(st = choose_one(lt, handle, 0, err)) &&
        lt->taken[0].measured)
        tncuda_lt_keep_locked(lt, &lt->taken[0]);
    pthread_mutex_unlock(&l->measuring);
    return st;
}

/* For addresses as arrays have them, then for views, which may have none: plain kernels serve those. */
static tn_status choose(tncuda_lt *lt, tncuda_lt_handle handle, tn_err *err)
{
    for (int low = 0; low < 2; low++) {
        tn_err why = {0};
        const tn_status st =
            lt->measured && !low ? choose_measured(lt, handle, &why) : choose_one(lt, handle, low, &why);

        if (!st) {
            choice_tell(lt, low);
            continue;
        }
        if (err && !low)
            *err = why;
        if (!low)
            return st;
        tncuda_log(lt->plugin, TN_LEVEL_DEBUG, "%s", why.message);
    }
    return TN_OK;
}

/* In the context. */
static tn_status planned(tncuda_lt *lt, tn_err *err)
{
    tncuda_lt_handle handle = NULL;
    tn_status st;

    if ((st = handle_need(lt->plugin, lt->library, lt->form.device, &handle, err)) ||
        (st = desc_make(lt, err)) || (st = layouts_make(lt, err)))
        return st;
    lt->measured = lt->measured && tncuda_lt_work(lt) >= lt->library->limits[lt->form.device].work;
    return choose(lt, handle, err);
}

static tn_status planned_in_context(tncuda_lt *lt, tn_err *err)
{
    tncuda_plugin *p = lt->plugin;
    tncuda_context context, gone;
    tncuda_result result;
    tn_status st;

    if ((st = tncuda_driver_need(p, err)) || (st = tncuda_context_get(p, lt->form.device, &context, err)))
        return st;
    if ((result = p->driver.context_push(context))) {
        st = tncuda_driver_fail(&p->driver, result, "cuCtxPushCurrent", err);
    } else {
        st = planned(lt, err);
        (void)p->driver.context_pop(&gone);
    }
    tncuda_context_give(p, lt->form.device);
    return st;
}

static void lt_free(tncuda_owned *owned)
{
    tncuda_lt *lt = (tncuda_lt *)owned;
    const tncuda_lt_functions *f = &lt->library->f;

    for (int i = 0; i < 3; i++)
        if (lt->layouts[i])
            (void)f->layout_destroy(lt->layouts[i]);
    if (lt->desc)
        (void)f->desc_destroy(lt->desc);
    pthread_mutex_destroy(&lt->lock);
    tncuda_delete(lt->plugin, lt);
}

static void what_set(tncuda_lt *lt, const char *op, const tncuda_product_args *p)
{
    (void)snprintf(lt->what, sizeof lt->what,
                   "%.48s: %s (%" PRId64 ", %" PRId64 ") by (%" PRId64 ", %" PRId64 "), batch %" PRId64 "%s",
                   op, types[type_find(lt->form.dtype)].name, p->m, p->k, p->k, p->n, p->batch,
                   lt->sums  ? ", sums"
                   : p->bias ? ", bias"
                             : "");
}

tn_status tncuda_lt_make(tncuda_plugin *plugin, const tn_node *node, tn_plan *plan,
                         const tncuda_lt_shape *shape, tncuda_lt **out, tn_err *err)
{
    const tncuda_product_args *p = &shape->of;
    struct tncuda_lt_library *library = NULL;
    tncuda_lt_form form = {.device = node->out[0]->device, .dtype = p->dtype, .batch = p->batch};
    tncuda_lt *lt;
    tn_err own = {0};
    bool swapped = false;
    tn_status st;

    if (type_find(p->dtype) == TYPES)
        return tn_fail(err, TN_E_UNSUPPORTED, "a data type that cuBLASLt is not asked for");
    if ((st = library_need(plugin, &library, err)) || (st = sides_of(p, form.side, &swapped, err)))
        return st;
    if (!(lt = tncuda_new(plugin, sizeof *lt)))
        return tncuda_nomem(err, "a plan");
    lt->owned.free = lt_free;
    lt->plugin = plugin;
    lt->library = library;
    form.epilogue =
        shape->sums ? TNCUDA_LT_EPILOGUE_SUMS
                    : (p->bias ? TNCUDA_LT_EPILOGUE_BIAS : 0u) | (shape->relu ? TNCUDA_LT_EPILOGUE_RELU : 0u);
    lt->form = form;
    lt->swapped = swapped;
    lt->biased = p->bias != NULL;
    lt->relu = shape->relu;
    lt->sums = shape->sums;
    lt->measured = !(node->flags & TN_NODE_DETERMINISTIC) && plugin->autotune;
    lt->alpha = scale_of(p->dtype, shape->alpha);
    lt->beta = scale_of(p->dtype, shape->beta);
    lt->zero = scale_of(p->dtype, 0);
    lt->one = scale_of(p->dtype, 1);
    for (int low = 0; low < 2; low++)
        lt->ways[low] = (tncuda_lt_way){lt, low};
    pthread_mutex_init(&lt->lock, NULL);
    what_set(lt, node->op, p);
    if (lt->form.device < 0 || lt->form.device >= TNCUDA_DEVICES_MAX)
        st = tn_fail(&own, TN_E_UNSUPPORTED, "no such device");
    else
        st = planned_in_context(lt, &own);
    if (!st) {
        tncuda_own(plan, &lt->owned);
        *out = lt;
        return TN_OK;
    }
    tncuda_log(plugin, TN_LEVEL_DEBUG, "%s", own.message);
    lt_free(&lt->owned);
    if (err)
        *err = own;
    return st == TN_E_NOMEM ? st : TN_E_UNSUPPORTED;
}

void tncuda_lt_room(tn_plan *plan)
{
    const uint64_t at = tncuda_aligned(plan->workspace_bytes);
    uint64_t most = 0;

    for (tncuda_owned *o = tncuda_owned_of(plan); o; o = o->next) {
        tncuda_lt *lt = (tncuda_lt *)o;

        if (o->free != lt_free)
            continue;
        lt->at = at;
        for (int low = 0; low < 2; low++)
            most = most < lt->taken[low].bytes ? lt->taken[low].bytes : most;
    }
    if (!most)
        return;
    plan->workspace_bytes = at + most;
    plan->workspace_align = plan->workspace_align < TNCUDA_ALIGN ? TNCUDA_ALIGN : plan->workspace_align;
}

/* ---- runs ---------------------------------------------------------------------------------------------- */

static tn_status refused(tncuda_lt *lt, tncuda_lt_status status, tn_err *err)
{
    const tn_status st = refuse(lt->library, lt->what, "cublasLtMatmul", status, err);

    if (!atomic_exchange(&lt->refused, true))
        tncuda_log(lt->plugin,
                   atomic_fetch_add(&lt->library->refusals, 1u) < WARNINGS ? TN_LEVEL_WARNING
                                                                           : TN_LEVEL_DEBUG,
                   "cublaslt: %s: cublasLtMatmul gives %s (%d); a plain kernel serves", lt->what,
                   lt->library->f.status_name(status), (int)status);
    return st;
}

tncuda_lt_status tncuda_lt_multiply(tncuda_lt *lt, tncuda_lt_handle handle, const tncuda_lt_taken *by,
                                    const tncuda_lt_args *a, tncuda_stream stream)
{
    const tncuda_lt_functions *f = &lt->library->f;
    const tncuda_lt_scale *beta = a->add ? &lt->one : a->c ? &lt->beta : &lt->zero;
    tncuda_lt_status status = 0;

    if (lt->biased) {
        pthread_mutex_lock(&lt->lock);
        status = f->desc_set(lt->desc, TNCUDA_LT_DESC_BIAS, &a->bias, sizeof a->bias);
    }
    if (!status)
        status = f->matmul(handle, lt->desc, &lt->alpha, lt->swapped ? a->b : a->a, lt->layouts[0],
                           lt->swapped ? a->a : a->b, lt->layouts[1], beta, a->c ? a->c : a->d,
                           lt->layouts[2], a->d, lt->layouts[2], &by->algo, a->room, by->bytes, stream);
    if (lt->biased)
        pthread_mutex_unlock(&lt->lock);
    return status;
}

/* A tncuda_library_fn. */
static tn_status multiply(const void *state, const void *args, tncuda_stream stream, tn_err *err)
{
    const tncuda_lt_way *way = state;
    tncuda_lt *lt = way->lt;
    tncuda_lt_handle handle = NULL;
    tncuda_lt_status status;
    tn_status st = handle_need(lt->plugin, lt->library, lt->form.device, &handle, err);

    if (st)
        return st;
    status = tncuda_lt_multiply(lt, handle, &lt->taken[way->low], args, stream);
    return status ? refused(lt, status, err) : TN_OK;
}

static bool aligned(const void *data)
{
    return (uintptr_t)data % ALIGN_WHOLE == 0;
}

tn_status tncuda_lt_run(tncuda_lt *lt, const tn_exec *x, const tncuda_lt_call *call, tn_err *err)
{
    const int low = !aligned(call->a) || !aligned(call->b) || !aligned(call->c) || !aligned(call->d) ||
                    !aligned(call->bias);
    const tncuda_lt_args args = {.a = call->a,
                                 .b = call->b,
                                 .bias = call->bias,
                                 .c = call->c,
                                 .d = call->d,
                                 .room = lt->taken[low].bytes ? (char *)x->workspace + lt->at : NULL,
                                 .add = call->add};

    if (!lt->taken[low].count || atomic_load_explicit(&lt->refused, memory_order_relaxed))
        return TN_E_UNSUPPORTED;
    return tncuda_library_call(x, multiply, &lt->ways[low], &args, (uint32_t)sizeof args, err);
}

tn_status tncuda_product(const tn_exec *x, tncuda_lt *lt, const tncuda_product_args *args, void *room,
                         tn_err *err)
{
    const tncuda_lt_call call = {
        .a = args->a, .b = args->b, .bias = args->bias, .d = args->c, .add = args->add != 0};
    const tn_status st = lt ? tncuda_lt_run(lt, x, &call, err) : TN_E_UNSUPPORTED;

    if (st != TN_E_UNSUPPORTED)
        return st;
    return tncuda_product_plain(x, args, room, err);
}
