/*
 * One model on one input, run when stdin says so: Tenon's side of bench/peers.
 *
 *     serve NET-symbol.json NET-0000.params N,C,H,W INPUT.f32 [SECTION.KEY=VALUE...]
 *
 * Lines: "run N" runs N times and prints the milliseconds of each; "save FILE" writes the output as raw
 * float32.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tenon/tenon.h>

#define LINE_BYTES 4200
#define CALLS_MAX 100000

typedef struct served {
    tn_ctx *ctx;
    tn_program *program;
    tn_array *x, *y;
} served;

static double now_ms(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static tn_status input_read(served *s, const char *shape_text, const char *path)
{
    long long n, c, h, w;
    char end;
    size_t count;
    float *values;
    FILE *file;
    tn_status st = TN_E_ARG;

    if (sscanf(shape_text, "%lld,%lld,%lld,%lld%c", &n, &c, &h, &w, &end) != 4 || n < 1 || c < 1 || h < 1 ||
        w < 1 || n > 4096 || c > 4096 || h > 4096 || w > 4096) {
        fprintf(stderr, "serve: %s is no shape N,C,H,W of 1 to 4096 each\n", shape_text);
        return st;
    }
    count = (size_t)n * (size_t)c * (size_t)h * (size_t)w;
    values = malloc(count * sizeof *values);
    file = fopen(path, "rb");
    if (!values || !file || fread(values, sizeof *values, count, file) != count)
        fprintf(stderr, "serve: %s does not have %zu float32 values\n", path, count);
    else
        st = tn_array_from(s->ctx, TN_F32, 4, (int64_t[]){n, c, h, w}, values, &s->x);
    if (file)
        fclose(file);
    free(values);
    return st;
}

static tn_status run(served *s, long calls)
{
    tn_status st = TN_OK;

    for (long i = 0; !st && i < calls; i++) {
        const double start = now_ms(CLOCK_MONOTONIC), used = now_ms(CLOCK_PROCESS_CPUTIME_ID);

        st = tn_program_run(s->program, 1, &s->x, 1, &s->y);
        if (!st)
            st = tn_array_wait(s->y);
        printf("%s%.4f:%.4f", i ? " " : "", now_ms(CLOCK_MONOTONIC) - start,
               now_ms(CLOCK_PROCESS_CPUTIME_ID) - used);
    }
    printf("\n");
    return st;
}

static tn_status save(served *s, const char *path)
{
    const uint64_t bytes = tn_array_bytes(s->y);
    void *values = malloc(bytes + 1);
    FILE *file = fopen(path, "wb");
    tn_status st = values && file ? tn_array_read(s->y, values, bytes) : TN_E_IO;

    if (!st && fwrite(values, 1, bytes, file) != bytes)
        st = TN_E_IO;
    if (file && fclose(file))
        st = TN_E_IO;
    free(values);
    printf("saved\n");
    return st;
}

static tn_status serve(served *s)
{
    char line[LINE_BYTES];
    tn_status st = TN_OK;

    printf("ready tenon %s\n", tn_version());
    fflush(stdout);
    while (!st && fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        if (!strncmp(line, "run ", 4) && atol(line + 4) > 0 && atol(line + 4) <= CALLS_MAX) {
            st = run(s, atol(line + 4));
        } else if (!strncmp(line, "save ", 5) && s->y) {
            st = save(s, line + 5);
        } else {
            fprintf(stderr, "serve: \"run N\" or, after it, \"save FILE\" is asked, not \"%s\"\n", line);
            st = TN_E_ARG;
        }
        fflush(stdout);
    }
    return st;
}

int main(int argc, char **argv)
{
    const tn_open_options options = {.struct_size = TN_SIZE(tn_open_options),
                                     .settings = argc > 5 ? (const char *const *)argv + 5 : NULL};
    served s = {.ctx = NULL};
    tn_status st;

    if (argc < 5) {
        fprintf(stderr,
                "usage: serve NET-symbol.json NET-0000.params N,C,H,W INPUT.f32 [SECTION.KEY=VALUE...]\n");
        return 2;
    }
    if ((st = tn_open(&options, &s.ctx)) ||
        (st = tn_program_load(s.ctx, argv[1], argv[2], NULL, &s.program)) ||
        (st = input_read(&s, argv[3], argv[4])) || (st = serve(&s)))
        fprintf(stderr, "serve: %s: %s\n", tn_status_name(st), tn_error_text());
    tn_array_release(s.x);
    tn_array_release(s.y);
    tn_program_destroy(s.program);
    if (s.ctx && tn_close(s.ctx) && !st)
        st = TN_E_INTERNAL;
    return st != TN_OK;
}
