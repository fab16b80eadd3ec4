/*
 * Prints the engine's own costs: a push through variables and a worker, the fast path on the caller, a round
 * trip. Each is the median of some repeats after a warm-up, with the lowest and the highest beside it.
 */
#include <stdlib.h>
#include <string.h>

#include "engine_bench.h"

#define VARS 64u
#define REPEATS 9
#define QUEUE_MAX 65536u /* the default of engine.queue_max */

typedef struct cell {
    _Alignas(64) tni_var var;
    uint64_t value;
} cell;

typedef struct add_args {
    const uint64_t *a, *b;
    uint64_t *y;
} add_args;

typedef struct bench {
    tni_device_set *devices;
    tni_engine *engine;
    cell *cells;
} bench;

static tn_status bench_open(bench *b, uint64_t inline_ns)
{
    tni_engine_options options = {
        .type = "threaded", .threads = 1, .workers = 1, .queue_max = QUEUE_MAX, .inline_ns = inline_ns};
    tn_status st;

    memset(b, 0, sizeof *b);
    if (!(b->cells = tni_alloc_aligned(64, VARS * sizeof *b->cells)))
        return TN_E_NOMEM;
    memset(b->cells, 0, VARS * sizeof *b->cells);
    if ((st = tni_device_set_create(NULL, NULL, NULL, &b->devices)))
        return st;
    return tni_engine_create(&options, b->devices, NULL, &b->engine);
}

static void bench_close(bench *b)
{
    tni_engine_destroy(b->engine);
    tni_device_set_destroy(b->devices);
    tni_free_aligned(b->cells);
}

static tn_status add_run(void *payload, tni_run *run)
{
    const add_args *a = payload;

    (void)run;
    *a->y += *a->a + *a->b;
    return TN_OK;
}

static tn_status push_many(bench *b, uint64_t count)
{
    uint32_t random = 1;

    for (uint64_t i = 0; i < count; i++) {
        cell *x, *z, *y;

        random = random * 1664525u + 1013904223u;
        x = &b->cells[random >> 8 & (VARS - 1)];
        z = &b->cells[random >> 16 & (VARS - 1)];
        y = &b->cells[random >> 24 & (VARS - 1)];
        {
            add_args args = {&x->value, &z->value, &y->value};
            tni_var *reads[] = {&x->var, &z->var}, *writes[] = {&y->var};
            tni_task task = {.run = add_run,
                             .payload = &args,
                             .payload_bytes = sizeof args,
                             .reads = reads,
                             .writes = writes,
                             .read_count = 2,
                             .write_count = 1,
                             .name = "add"};
            tn_status st = tni_engine_push(b->engine, &task);

            if (st)
                return st;
        }
    }
    return tni_engine_wait_all(b->engine);
}

tn_status bench_engine_push_ns(uint64_t count, double *out)
{
    bench b;
    uint64_t begin = 0;
    tn_status st = bench_open(&b, 0);

    if (!st && !(st = push_many(&b, count / 8 + 1))) { /* warm: thread, blocks */
        begin = tni_clock_ns();
        st = push_many(&b, count);
    }
    if (!st)
        *out = (double)(tni_clock_ns() - begin) / (double)count;
    bench_close(&b);
    return st;
}

tn_status bench_engine_enter_ns(uint64_t count, double *out)
{
    bench b;
    tn_status st = bench_open(&b, 2000);

    if (!st) {
        tni_var *reads[] = {&b.cells[0].var, &b.cells[1].var}, *writes[] = {&b.cells[2].var};
        uint64_t begin = tni_clock_ns();

        for (uint64_t i = 0; i < count && !st; i++) {
            if (!tni_engine_enter(b.engine, reads, 2, writes, 1))
                st = tni_error(TN_E_INTERNAL, "free variables were refused");
            else
                tni_engine_leave(b.engine, reads, 2, writes, 1, TN_OK, "add");
        }
        *out = (double)(tni_clock_ns() - begin) / (double)count;
    }
    bench_close(&b);
    return st;
}

tn_status bench_engine_round_trip_us(uint64_t count, double *out)
{
    bench b;
    tn_status st = bench_open(&b, 0);

    if (!st && !(st = push_many(&b, 1))) {
        uint64_t begin = tni_clock_ns();

        for (uint64_t i = 0; i < count && !st; i++)
            st = push_many(&b, 1);
        *out = (double)(tni_clock_ns() - begin) / (double)count / 1000.0;
    }
    bench_close(&b);
    return st;
}

#ifndef TN_BENCH_ENGINE_LIBRARY /* `tenon bench engine` has its own main */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static int measure(const char *name, const char *unit, tn_status (*fn)(uint64_t, double *), uint64_t count)
{
    double value[REPEATS];

    for (int i = 0; i < REPEATS; i++)
        if (fn(count, &value[i])) {
            (void)fprintf(stderr, "%s: %s\n", name, tni_error_message());
            return 1;
        }
    qsort(value, REPEATS, sizeof value[0], by_value);
    (void)printf("%-14s %8.2f %s  (%.2f to %.2f)\n", name, value[REPEATS / 2], unit, value[0],
                 value[REPEATS - 1]);
    return 0;
}

int main(void)
{
    return measure("push", "ns", bench_engine_push_ns, 262144) |
           measure("enter_leave", "ns", bench_engine_enter_ns, 1000000) |
           measure("round_trip", "us", bench_engine_round_trip_us, 5000);
}

#endif
