/* Whose kernels OpenBLAS has once the plugin cpu-openblas is there: those of the fallback ("Prescott") on no
 * processor that has AVX2. Each case is a process of its own, as the library chooses once. */
#include "api/support.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIBRARY "libopenblas.so.0"
#define FALLBACK "Prescott"

typedef const char *(*name_function)(void);

enum { FITS, FALLS_BACK, ABSENT, BROKEN };

static bool wide(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return false;
#endif
}

/* The kernels by name, and a product of theirs. */
static int looked_at(void)
{
    const int64_t shape[] = {2, 2};
    const float values[] = {1, 2, 3, 4};
    tn_ctx *ctx = NULL;
    tn_array *a = NULL, *in[2], *out = NULL;
    tn_op_call call = {.struct_size = TN_SIZE(tn_op_call), .in_count = 2, .op = "dot", .in = in};
    float got[4] = {0};
    uint32_t made = 0;
    name_function name;
    void *library;

    if (test_open_with((const char *const[]){"kernel.prefer=cpu-openblas", NULL}, &ctx))
        return BROKEN;
    if (tn_array_from(ctx, TN_F32, 2, shape, values, &a))
        return BROKEN;
    in[0] = in[1] = a;
    if (tn_invoke_text(ctx, &call, 1, &out, &made) || tn_array_read(out, got, sizeof got) || got[0] != 7 ||
        got[1] != 10 || got[2] != 15 || got[3] != 22)
        return BROKEN;
    if (!(library = dlopen(LIBRARY, RTLD_NOW | RTLD_NOLOAD)))
        return ABSENT;
    if (!(name = (name_function)(uintptr_t)dlsym(library, "openblas_get_corename")) ||
        !dlsym(library, "gotoblas_dynamic_init"))
        return ABSENT;
    return strcmp(name(), FALLBACK) == 0 ? FALLS_BACK : FITS;
}

/* `setting` of OPENBLAS_CORETYPE, or NULL; `before`: the library is there before the plugin. */
static int in_a_process(const char *setting, bool before)
{
    const pid_t child = fork();
    int status = 0;

    assert_true(child >= 0);
    if (!child) {
        if (setting)
            (void)setenv("OPENBLAS_CORETYPE", setting, 1);
        else
            (void)unsetenv("OPENBLAS_CORETYPE");
        if (before && !dlopen(LIBRARY, RTLD_NOW))
            _exit(ABSENT);
        _exit(looked_at());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_not_equal(WEXITSTATUS(status), BROKEN);
    if (WEXITSTATUS(status) == ABSENT || !wide()) {
        print_message("skipped: no cpu-openblas, or a processor without AVX2\n");
        skip();
    }
    return WEXITSTATUS(status);
}

static void kernels_fit_the_processor(void **state)
{
    (void)state;
    assert_int_equal(in_a_process(NULL, false), FITS);
}

static void a_choice_of_the_user_stays(void **state)
{
    (void)state;
    assert_int_equal(in_a_process(FALLBACK, false), FALLS_BACK);
}

/* Somebody else may be computing with it. */
static void a_library_that_was_there_is_left_alone(void **state)
{
    void *own;

    (void)state;
    const int got = in_a_process(NULL, true), alone = in_a_process(FALLBACK, true);

    own = dlopen(LIBRARY, RTLD_NOW); /* it stays: it would leave memory behind */
    assert_non_null(own);
    assert_int_equal(alone, FALLS_BACK);
    assert_int_equal(got,
                     strcmp(((name_function)(uintptr_t)dlsym(own, "openblas_get_corename"))(), FALLBACK) == 0
                         ? FALLS_BACK
                         : FITS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_fit_the_processor),
        cmocka_unit_test(a_choice_of_the_user_stays),
        cmocka_unit_test(a_library_that_was_there_is_left_alone),
    };

    return cmocka_run_group_tests_name("api.blas_cores", tests, NULL, NULL);
}
