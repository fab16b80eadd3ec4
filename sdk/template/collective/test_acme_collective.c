/*
 * What `make test` runs: the core takes the plugin; then three processes are ranks of a job, without the
 * core: sums and broadcasts have their values, and a rank that dies is named by the others.
 *
 * usage: test_acme_collective ./acme-collective.so
 */
#define _XOPEN_SOURCE 700 /* realpath */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tenon/plugin/collective.h>
#include <tenon/tenon.h>

#define RANKS 3u
#define COUNT 1000u
#define CALLS 200u
#define MINUTE_NS 60000000000u

static const tn_collective_ops *ops;

static void must(tn_status st, const char *what, const char *why)
{
    if (!st)
        return;
    (void)fprintf(stderr, "%s: %s: %s\n", what, tn_status_name(st), why);
    exit(1);
}

static void require(int holds, const char *what)
{
    if (holds)
        return;
    (void)fprintf(stderr, "%s does not hold\n", what);
    exit(1);
}

static void add(int32_t dtype, uint64_t count, const void *from, void *into)
{
    require(dtype == TN_F32, "the type");
    for (uint64_t i = 0; i < count; i++)
        ((float *)into)[i] += ((const float *)from)[i];
}

/* A call of one part; its end, whose text is in `text`. */
static tn_status call(tn_communicator *c, uint32_t kind, float *in, float *out, char text[600])
{
    const tn_collective_part part = {in, out, kind == TN_COLLECTIVE_BARRIER ? 0 : COUNT};
    const tn_collective_call what = {.struct_size = (uint32_t)sizeof what,
                                     .flags = TN_COLLECTIVE_ORDERED,
                                     .kind = kind,
                                     .dtype = TN_F32,
                                     .root = 1,
                                     .part_count = kind != TN_COLLECTIVE_BARRIER,
                                     .parts = &part,
                                     .timeout_ns = MINUTE_NS,
                                     .cookie = 42,
                                     .name = "bucket"};
    tn_collective_event e = {.struct_size = (uint32_t)sizeof e};
    uint32_t count = 0;
    tn_err err = {0};
    tn_status st = ops->start(c, &what, &err);

    (void)snprintf(text, 600, "%s", err.message);
    while (!st && !count) {
        count = 1;
        must(ops->poll(c, &e, &count, MINUTE_NS, &err), "poll", err.message);
    }
    if (st)
        return st;
    require(e.cookie == 42, "the cookie");
    (void)snprintf(text, 600, "%s", e.text ? e.text : "");
    return e.status;
}

static void rank_main(uint32_t rank, const char *job)
{
    const tn_collective_config config = {.struct_size = (uint32_t)sizeof config,
                                         .rank = rank,
                                         .ranks = RANKS,
                                         .job = job,
                                         .timeout_ns = MINUTE_NS,
                                         .add = add};
    static float in[COUNT], out[COUNT];
    char text[600];
    tn_communicator *c;
    tn_err err = {0};

    must(ops->open(NULL, &config, &c, &err), "open", err.message);
    for (uint32_t n = 0; n < CALLS; n++) {
        const uint32_t kind = 1 + n % 3;

        for (uint32_t i = 0; i < COUNT; i++)
            in[i] = (float)(rank + 1) * (float)(n + i);
        must(call(c, kind, in, out, text), "a call", text);
        for (uint32_t i = 0; i < COUNT && kind != TN_COLLECTIVE_BARRIER; i++)
            require(out[i] == (kind == TN_COLLECTIVE_SUM ? 6 : 2) * (float)(n + i), "the value");
    }
    if (rank == 2)
        _exit(0); /* without a word */
    require(call(c, TN_COLLECTIVE_SUM, in, out, text) == TN_E_PEER, "a job without rank 2 fails");
    require(strstr(text, "rank 2") != NULL, "the text names the rank");
    ops->close(c, 0);
    _exit(0);
}

int main(int argc, char **argv)
{
    char path[4096], job[40], *file = argc > 1 ? realpath(argv[1], NULL) : NULL;
    char *slash = file ? strrchr(file, '/') : NULL;
    const char *settings[] = {path, NULL};
    const tn_open_options options = {.struct_size = TN_SIZE(tn_open_options), .settings = settings};
    const tn_plugin *plugin = NULL;
    tn_ctx *ctx;
    void *handle;

    if (!slash) {
        (void)fprintf(stderr, "usage: %s ./acme-collective.so\n", argv[0]);
        return 2;
    }
    (void)snprintf(path, sizeof path, "plugins.path=%.*s", (int)(slash - file), file);
    must(tn_open(&options, &ctx), "tn_open", tn_error_text());
    must(tn_plugin_load(ctx, "acme-collective"), "tn_plugin_load", tn_error_text());
    must(tn_close(ctx), "tn_close", tn_error_text());
    require((handle = dlopen(file, RTLD_NOW)) && (plugin = dlsym(handle, "tn_plugin_v1")), "a plugin");
    ops = (const tn_collective_ops *)(const void *)plugin->capabilities[0];
    (void)snprintf(job, sizeof job, "test %ld", (long)getpid());
    for (uint32_t rank = 0; rank < RANKS; rank++)
        if (!fork())
            rank_main(rank, job);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        int status = 1;

        require(wait(&status) > 0 && status == 0, "every rank ends well");
    }
    free(file);
    (void)printf("acme_star: values, a rank that dies: ok\n");
    return 0;
}
