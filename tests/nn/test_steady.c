/*
 * A steady step asks for no memory: after some steps of inference or training of a net with 200 parameters,
 * no further one calls malloc from our own objects (the core, nn, plugins), nor touches a page for the first
 * time. What a vendor's library asks for is counted apart.
 *
 * The allocator's functions of this program stand before the C library's, for all that is loaded. Where a
 * sanitizer has its own, what the core counts itself stands in.
 */
#include "nn/support.h"

#include <errno.h>
#include <execinfo.h>
#include <limits.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "context/context.h"

enum { WARM = 4, AT_ONCE = 3, STEPS = 20, PARAMETERS = 200, RANGES = 64, FRAMES = 24 };

/* ---- who asks ---------------------------------------------------------------------------------------- */

typedef struct range {
    uintptr_t begin, end;
} range;

static range ours[RANGES];
static size_t range_count;
static atomic_bool watching;
static atomic_uint_fast64_t own, vendor;
static void *first[FRAMES]; /* where the first of our own came from */
static int first_count;

/* This program, which holds the core and nn, and the plugins. */
static int range_add(struct dl_phdr_info *info, size_t size, void *arg)
{
    const char *plugins = arg;

    (void)size;
    if (info->dlpi_name[0] && strncmp(info->dlpi_name, plugins, strlen(plugins)) != 0)
        return 0;
    for (int i = 0; i < info->dlpi_phnum && range_count < RANGES; i++) {
        const uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

        if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X)
            ours[range_count++] = (range){begin, begin + info->dlpi_phdr[i].p_memsz};
    }
    return 0;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WHOLE false /* the sanitizer has an allocator, and pages, of its own */
#else
#define WHOLE true
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *p, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);
void *malloc(size_t bytes);
void *calloc(size_t count, size_t bytes);
void *realloc(void *p, size_t bytes);
void *memalign(size_t align, size_t bytes);
void *aligned_alloc(size_t align, size_t bytes);
int posix_memalign(void **out, size_t align, size_t bytes);

static _Thread_local bool looking; /* backtrace may ask for memory */

static void asked(const void *caller)
{
    if (!atomic_load_explicit(&watching, memory_order_relaxed) || looking)
        return;
    for (size_t i = 0; i < range_count; i++)
        if ((uintptr_t)caller >= ours[i].begin && (uintptr_t)caller < ours[i].end) {
            looking = true;
            if (!atomic_fetch_add(&own, 1))
                first_count = backtrace(first, FRAMES);
            looking = false;
            return;
        }
    atomic_fetch_add(&vendor, 1);
}

void *malloc(size_t bytes)
{
    asked(__builtin_return_address(0));
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    asked(__builtin_return_address(0));
    return __libc_calloc(count, bytes);
}

void *realloc(void *p, size_t bytes)
{
    asked(__builtin_return_address(0));
    return __libc_realloc(p, bytes);
}

void *memalign(size_t align, size_t bytes)
{
    asked(__builtin_return_address(0));
    return __libc_memalign(align, bytes);
}

void *aligned_alloc(size_t align, size_t bytes)
{
    asked(__builtin_return_address(0));
    return __libc_memalign(align, bytes);
}

int posix_memalign(void **out, size_t align, size_t bytes)
{
    void *p;

    asked(__builtin_return_address(0));
    if (!(p = __libc_memalign(align, bytes)))
        return ENOMEM;
    *out = p;
    return 0;
}
#endif

static uint64_t own_now(void)
{
    tni_mem_stats stats;

    tni_mem_stats_get(&stats);
    return WHOLE ? atomic_load(&own) : stats.alloc_count;
}

static long faults_now(void)
{
    struct rusage u;

    (void)getrusage(RUSAGE_SELF, &u);
    return u.ru_minflt;
}

/* ---- nets -------------------------------------------------------------------------------------------- */

typedef struct steady {
    tn_app *app;
    tn_net *net;
    tn_trainer *trainer; /* NULL: inference */
    tn_array *x, *labels;
} steady;

/* 30 blocks of convolution and batch normalisation, 40 dense layers: 200 parameters that are trained. */
static tn_net *net_make(tn_app *app)
{
    tn_net *net = tn_net_new(app, .name = "n");

    for (int i = 0; i < 30; i++) {
        tn_net_conv2d(net, .channels = 4, .kernel = {3}, .pad = {1, 1}, .activation = "relu");
        tn_net_batchnorm(net);
    }
    for (int i = 0; i < 40; i++)
        tn_net_dense(net, .units = 8, .activation = "tanh");
    return net;
}

/* The same, as a function. */
static tn_x net_function(tn_x x)
{
    for (int i = 0; i < 30; i++)
        x = tn_batchnorm(tn_conv2d(x, .channels = 4, .kernel = {3}, .pad = {1, 1}, .activation = "relu"));
    for (int i = 0; i < 40; i++)
        x = tn_dense(x, .units = 8, .activation = "tanh");
    return x;
}

static bool as_function;

static void steady_open(steady *s, bool train, bool hybrid, const char *optimizer, const char *setting)
{
    static const int64_t image[4] = {2, 1, 6, 6}, labels[1] = {2};

    memset(s, 0, sizeof *s);
    s->app =
        nn_open("memory.cpu.pool=segment", "plugins.load=cpu, mempool", "engine.threads=1", setting, NULL);
    s->net = as_function ? tn_net_function(s->app, net_function, .name = "n") : net_make(s->app);
    s->x = nn_array(s->app, 4, image, 1);
    s->labels = tn_app_array(s->app, 1, labels, (const float[]){1, 3});
    tn_net_init(s->net, .seed = 1);
    if (hybrid)
        tn_net_hybridize(s->net, .static_alloc = 1, .static_shape = 1);
    if (train)
        s->trainer = tn_trainer_new(s->net, .optimizer = optimizer, .lr = 0.01, .momentum = 0.9);
}

static void queue(const steady *s)
{
    tn_array *y;

    if (s->trainer)
        tn_app_record(s->app);
    y = tn_net_forward(s->net, s->x);
    if (s->trainer) {
        tn_app_backward(s->app, tn_loss_softmax_ce(s->app, y, s->labels));
        tn_trainer_step(s->trainer, 2);
    }
}

static void step(const steady *s)
{
    const size_t mark = tn_app_mark(s->app);

    queue(s);
    (void)tn_app_check(s->app, tn_wait_all(tn_app_ctx(s->app)));
    tn_app_release(s->app, mark);
}

/* ---- the busiest time -------------------------------------------------------------------------------- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool open;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

static tn_status gate_wait(void *payload, tni_run *run)
{
    (void)payload;
    (void)run;
    pthread_mutex_lock(&gate.lock);
    while (!gate.open)
        pthread_cond_wait(&gate.cond, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
    return TN_OK;
}

/* Several steps are queued behind one operation: no later time has more under way. */
static void steps_at_once(const steady *s, int count)
{
    const size_t mark = tn_app_mark(s->app);
    tni_context *c = (tni_context *)tn_app_ctx(s->app);
    tni_var *writes[] = {tni_array_var((tni_array *)s->x)};
    const tni_task task = {.run = gate_wait, .writes = writes, .write_count = 1, .name = "gate"};

    gate.open = false;
    assert_int_equal(tni_engine_push(c->engine, &task), TN_OK);
    while (count-- > 0)
        queue(s);
    pthread_mutex_lock(&gate.lock);
    gate.open = true;
    pthread_cond_broadcast(&gate.cond);
    pthread_mutex_unlock(&gate.lock);
    (void)tn_app_check(s->app, tn_wait_all(tn_app_ctx(s->app)));
    tn_app_release(s->app, mark);
}

/* All steps are counted before the first is judged: what judges asks for memory. */
static void steady_watch(const steady *s, bool at_once, bool own_kernels, const char *what)
{
    uint64_t asked_for[STEPS], before;
    long faults = LONG_MAX;
    bool bad = false;

    range_count = 0;
    (void)dl_iterate_phdr(range_add, (void *)(uintptr_t)getenv("TENON_TEST_PLUGINS"));
    (void)backtrace(first, FRAMES);
    first_count = 0;
    for (int i = 0; i < WARM; i++)
        step(s);
    if (at_once) /* a thread of workers, so that what each keeps is known */
        steps_at_once(s, AT_ONCE);
    atomic_store(&own, 0);
    atomic_store(&vendor, 0);
    for (int i = 0; i < STEPS; i++) {
        const long begin = faults_now();
        long now;

        before = own_now();
        atomic_store(&watching, true);
        step(s);
        atomic_store(&watching, false);
        asked_for[i] = own_now() - before;
        now = faults_now() - begin;
        faults = now < faults ? now : faults;
    }
    if (!tn_app_ok(s->app))
        print_error("%s\n", tn_app_error(s->app));
    assert_true(tn_app_ok(s->app));
    print_message("%s: %llu of others; page faults of the best step %ld\n", what,
                  (unsigned long long)atomic_load(&vendor), faults);
    for (int i = 0; i < STEPS; i++)
        if (asked_for[i]) {
            print_error("%s: step %d asks for memory %llu times\n", what, i,
                        (unsigned long long)asked_for[i]);
            bad = true;
        }
    if (bad && first_count)
        backtrace_symbols_fd(first, first_count, STDERR_FILENO);
    assert_false(bad);
    if (own_kernels && WHOLE)
        assert_int_equal(faults, 0);
}

static void watch(bool train, bool hybrid, const char *optimizer, const char *setting)
{
    char what[128];
    steady s;

    (void)snprintf(what, sizeof what, "%s, %s, %s", train ? optimizer : "inference",
                   hybrid ? "hybridized" : "call by call", setting);
    steady_open(&s, train, hybrid, optimizer, setting);
    steady_watch(&s, !strstr(setting, "naive"), !strstr(setting, "plugins"), what);
    nn_close(s.app);
}

static void test_inference(void **state)
{
    (void)state;
    watch(false, true, NULL, "engine.type=naive");
    watch(false, true, NULL, "engine.type=threaded");
}

static void test_training(void **state)
{
    (void)state;
    watch(true, true, "sgd", "engine.type=naive");
    watch(true, true, "sgd", "engine.type=threaded");
    watch(true, true, "adam", "engine.type=threaded");
}

static void test_call_by_call(void **state)
{
    (void)state;
    watch(false, false, NULL, "engine.type=threaded");
    watch(true, false, "sgd", "engine.type=naive");
    watch(true, false, "sgd", "engine.type=threaded");
}

static void test_function(void **state)
{
    (void)state;
    as_function = true;
    watch(false, true, NULL, "engine.type=threaded");
    watch(true, true, "sgd", "engine.type=threaded");
    watch(false, false, NULL, "engine.type=threaded");
    watch(true, false, "sgd", "engine.type=naive");
    as_function = false;
}

/* Whatever plugins are built: their own calls are ours. Nothing is known of a vendor's pages. */
static void test_all_plugins(void **state)
{
    (void)state;
    watch(false, true, NULL, "plugins.load=auto");
    watch(true, true, "sgd", "plugins.load=auto");
}

static void test_parameters(void **state)
{
    steady s;
    size_t count = 0;

    (void)state;
    steady_open(&s, true, true, "sgd", NULL);
    step(&s);
    for (size_t i = 0; i < tn_net_param_count(s.net); i++)
        count += tn_net_param_grad(s.net, tn_net_param_name(s.net, i)) != NULL;
    assert_int_equal(count, PARAMETERS);
    nn_close(s.app);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parameters), cmocka_unit_test(test_inference),
        cmocka_unit_test(test_training),   cmocka_unit_test(test_call_by_call),
        cmocka_unit_test(test_function),   cmocka_unit_test(test_all_plugins),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
