/*
 * Cold start: from the start of a process to the first result of an MLP 784-128-10, with cpu.so alone.
 *
 * The parent writes the model, then starts itself again and again with --child; each child opens a context,
 * loads the model, runs it once and prints when it had the result. Both read the same monotonic clock.
 *
 *     cold_start [--runs N] [--json]
 */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <tenon/tenon.h>

#define RUNS_MAX 1000

extern char **environ;

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int failed(const char *what)
{
    fprintf(stderr, "cold_start: %s: %s\n", what, tn_error_text());
    return 1;
}

static tn_status open_small(tn_ctx **out)
{
    const char *const settings[] = {"plugins.load=cpu", NULL};
    const tn_open_options options = {.struct_size = TN_SIZE(tn_open_options), .settings = settings};

    return tn_open(&options, out);
}

static int child(const char *folder)
{
    const int64_t shape[2] = {1, 784};
    static float pixels[784], scores[10];
    char symbol[512], params[512];
    tn_ctx *ctx = NULL;
    tn_program *program = NULL;
    tn_array *x = NULL, *y = NULL;

    snprintf(symbol, sizeof symbol, "%s/mlp-symbol.json", folder);
    snprintf(params, sizeof params, "%s/mlp-0000.params", folder);
    if (open_small(&ctx) || tn_program_load(ctx, symbol, params, NULL, &program) ||
        tn_array_from(ctx, TN_F32, 2, shape, pixels, &x) || tn_program_run(program, 1, &x, 1, &y) ||
        tn_array_read(y, scores, sizeof scores))
        return failed("child");
    printf("%.6f\n", now_ms());
    tn_array_release(x);
    tn_array_release(y);
    tn_program_destroy(program);
    return tn_close(ctx) ? failed("close") : 0;
}

/* ---- the model --------------------------------------------------------------------------------------- */

static tn_status layer(tn_ctx *ctx, const char *op, const char *name, const char *key, const char *text,
                       tn_symbol **s)
{
    const char *const attrs[] = {key, text, NULL};
    const tn_symbol_call call = {.struct_size = TN_SIZE(tn_symbol_call),
                                 .op = op,
                                 .name = name,
                                 .attrs = attrs,
                                 .in_count = 1,
                                 .in = s};
    tn_symbol *next = NULL;
    tn_status st = tn_symbol_op(ctx, &call, &next);

    if (!st) {
        tn_symbol_release(*s);
        *s = next;
    }
    return st;
}

static tn_status weight(tn_ctx *ctx, tn_params *p, const char *name, int32_t ndim, int64_t rows,
                        int64_t columns)
{
    const int64_t shape[2] = {rows, columns};
    tn_array *a = NULL;
    tn_status st = tn_array_zeros(ctx, TN_F32, ndim, shape, NULL, &a);

    if (!st && !(st = tn_array_fill(a, 0.01)))
        st = tn_params_add(p, name, a);
    tn_array_release(a);
    return st;
}

static int model_write(const char *folder)
{
    char path[512];
    tn_ctx *ctx = NULL;
    tn_symbol *s = NULL;
    tn_params *p = NULL;

    if (open_small(&ctx) || tn_symbol_variable(ctx, "data", &s) ||
        layer(ctx, "FullyConnected", "fc1", "num_hidden", "128", &s) ||
        layer(ctx, "Activation", "act1", "act_type", "relu", &s) ||
        layer(ctx, "FullyConnected", "fc2", "num_hidden", "10", &s) || tn_params_create(&p) ||
        weight(ctx, p, "arg:fc1_weight", 2, 128, 784) || weight(ctx, p, "arg:fc1_bias", 1, 128, 0) ||
        weight(ctx, p, "arg:fc2_weight", 2, 10, 128) || weight(ctx, p, "arg:fc2_bias", 1, 10, 0))
        return failed("model");
    snprintf(path, sizeof path, "%s/mlp-symbol.json", folder);
    if (tn_symbol_save(s, path))
        return failed(path);
    snprintf(path, sizeof path, "%s/mlp-0000.params", folder);
    if (tn_params_save(p, path))
        return failed(path);
    tn_params_destroy(p);
    tn_symbol_release(s);
    return tn_close(ctx) ? failed("close") : 0;
}

/* ---- runs -------------------------------------------------------------------------------------------- */

static int run_once(const char *self, const char *folder, double *ms)
{
    char *const argv[] = {(char *)(size_t)self, (char *)(size_t) "--child", (char *)(size_t)folder, NULL};
    posix_spawn_file_actions_t actions;
    char text[64] = "";
    int pipes[2], status = 1;
    double start;
    pid_t pid;

    if (pipe(pipes))
        return 1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipes[1], 1);
    start = now_ms();
    if (posix_spawn(&pid, self, &actions, NULL, argv, environ))
        return 1;
    close(pipes[1]);
    if (read(pipes[0], text, sizeof text - 1) < 0)
        text[0] = '\0';
    close(pipes[0]);
    waitpid(pid, &status, 0);
    posix_spawn_file_actions_destroy(&actions);
    *ms = atof(text) - start;
    return status;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
    static double ms[RUNS_MAX];
    char folder[] = "/tmp/tenon-cold-XXXXXX", path[64];
    int runs = 31, json = 0;

    if (argc == 3 && !strcmp(argv[1], "--child"))
        return child(argv[2]);
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--runs") && i + 1 < argc)
            runs = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--json"))
            json = 1;
    }
    if (runs < 1 || runs > RUNS_MAX || !mkdtemp(folder) || model_write(folder))
        return 1;
    for (int i = -3; i < runs; i++) /* three to warm the page cache */
        if (run_once("/proc/self/exe", folder, &ms[i < 0 ? 0 : i]))
            return 1;
    qsort(ms, (size_t)runs, sizeof *ms, by_value);
    printf(json ? "{\"cold_start_ms\":%.3f,\"min_ms\":%.3f,\"max_ms\":%.3f,\"runs\":%d}\n"
                : "start to first result: median %.3f ms, min %.3f, max %.3f of %d\n",
           ms[runs / 2], ms[0], ms[runs - 1], runs);
    snprintf(path, sizeof path, "%s/mlp-symbol.json", folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/mlp-0000.params", folder);
    unlink(path);
    return rmdir(folder) ? 1 : 0;
}
