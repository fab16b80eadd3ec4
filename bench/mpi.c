/*
 * Sums over the ranks of mpirun: by plain MPI_Allreduce, an array at a time, and by the plugin kv-mpi, in
 * buckets of 4 MiB, in any order and in the order of ranks. The ways take turns, so that a busy minute hits
 * all. Rank 0 prints the median of each, in ms, and plain's by it.
 *
 *     mpirun -n 2 mpi FOLDER/kv-mpi.so [ROUNDS]
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tenon/plugin/collective.h"

#define ARRAYS_MAX 161
#define ROUNDS_MAX 200
#define BUCKET_BYTES ((uint64_t)4 << 20)
#define MINUTE_NS 60000000000u

typedef struct load {
    const char *name;
    uint64_t sizes[ARRAYS_MAX]; /* elements of float32 */
    uint32_t count;
    float *data;
} load;

static const tn_collective_ops *ops;
static tn_communicator *job;

static void die(const char *what, const char *why)
{
    (void)fprintf(stderr, "mpi: %s: %s\n", what, why);
    exit(1);
}

/* ---- loads -------------------------------------------------------------------------------------------- */

static void conv_add(load *l, uint64_t out, uint64_t in, uint64_t kernel)
{
    l->sizes[l->count++] = out * in * kernel * kernel;
    l->sizes[l->count++] = out; /* of its batch norm */
    l->sizes[l->count++] = out;
}

/* The 161 arrays of ResNet-50 that have gradients, 25,557,032 numbers. */
static void resnet50_make(load *l)
{
    static const int blocks[4] = {3, 4, 6, 3};
    uint64_t in = 64;

    conv_add(l, 64, 3, 7);
    for (int stage = 0; stage < 4; stage++)
        for (int block = 0; block < blocks[stage]; block++) {
            const uint64_t mid = (uint64_t)64 << stage, out = 4 * mid;

            conv_add(l, mid, in, 1);
            conv_add(l, mid, mid, 3);
            conv_add(l, out, mid, 1);
            if (!block)
                conv_add(l, out, in, 1);
            in = out;
        }
    l->sizes[l->count++] = 1000 * in;
    l->sizes[l->count++] = 1000;
}

static void load_fill(load *l)
{
    uint64_t all = 0;

    for (uint32_t i = 0; i < l->count; i++)
        all += l->sizes[i];
    if (!(l->data = malloc(all * sizeof *l->data)))
        die(l->name, "out of memory");
    for (uint64_t i = 0; i < all; i++)
        l->data[i] = 1e-6f * (float)(i % 1000);
}

/* ---- ways --------------------------------------------------------------------------------------------- */

static void plain(const load *l)
{
    float *at = l->data;

    for (uint32_t i = 0; i < l->count; at += l->sizes[i++])
        if (MPI_Allreduce(MPI_IN_PLACE, at, (int)l->sizes[i], MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD))
            die("MPI_Allreduce", "failed");
}

static void add(int32_t dtype, uint64_t count, const void *from, void *into)
{
    const float *x = from;
    float *y = into;

    (void)dtype;
    for (uint64_t i = 0; i < count; i++)
        y[i] += x[i];
}

static uint32_t bucket_fill(const load *l, uint32_t first, float **at, tn_collective_part *parts)
{
    uint64_t bytes = 0;
    uint32_t n = 0;

    while (first + n < l->count && (!n || bytes + l->sizes[first + n] * sizeof **at <= BUCKET_BYTES)) {
        parts[n] = (tn_collective_part){*at, *at, l->sizes[first + n]};
        bytes += l->sizes[first + n] * sizeof **at;
        *at += l->sizes[first + n++];
    }
    return n;
}

static void ends_take(uint32_t left)
{
    while (left) {
        tn_collective_event e = {.struct_size = (uint32_t)sizeof e};
        uint32_t count = 1;
        tn_err err = {0};

        if (ops->poll(job, &e, &count, MINUTE_NS, &err) || (count && e.status))
            die("poll", count && e.text ? e.text : err.message);
        left -= count;
    }
}

static void by_plugin(const load *l, uint32_t flags)
{
    tn_collective_part parts[ARRAYS_MAX];
    float *at = l->data;
    uint32_t calls = 0;

    for (uint32_t i = 0, n; i < l->count; i += n, calls++) {
        tn_collective_call call = {.struct_size = (uint32_t)sizeof call,
                                   .flags = flags,
                                   .kind = TN_COLLECTIVE_SUM,
                                   .dtype = TN_F32,
                                   .parts = parts,
                                   .timeout_ns = MINUTE_NS,
                                   .cookie = i,
                                   .name = l->name};
        tn_err err = {0};

        call.part_count = n = bucket_fill(l, i, &at, parts);
        if (ops->start(job, &call, &err))
            die("start", err.message);
    }
    ends_take(calls);
}

/* ---- rounds ------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void measure(const load *l, int rounds, int rank)
{
    static double times[3][ROUNDS_MAX];

    for (int n = -1; n < rounds; n++) /* the first is not counted */
        for (int way = 0; way < 3; way++) {
            double begun;

            (void)MPI_Barrier(MPI_COMM_WORLD);
            begun = MPI_Wtime();
            if (way)
                by_plugin(l, way == 2 ? TN_COLLECTIVE_ORDERED : 0);
            else
                plain(l);
            if (n >= 0)
                times[way][n] = (MPI_Wtime() - begun) * 1e3;
        }
    for (int way = 0; way < 3; way++)
        qsort(times[way], (size_t)rounds, sizeof times[way][0], by_value);
    if (!rank)
        printf("%-10s plain %8.2f ms   kv-mpi %8.2f ms (%.2f)   ordered %8.2f ms (%.2f)\n", l->name,
               times[0][rounds / 2], times[1][rounds / 2], times[0][rounds / 2] / times[1][rounds / 2],
               times[2][rounds / 2], times[0][rounds / 2] / times[2][rounds / 2]);
}

int main(int argc, char **argv)
{
    const tn_collective_config config = {
        .struct_size = (uint32_t)sizeof config, .job = "bench", .timeout_ns = MINUTE_NS, .add = add};
    load loads[] = {{.name = "64 MiB", .sizes = {(uint64_t)16 << 20}, .count = 1}, {.name = "resnet50"}};
    const int rounds = argc > 2 ? atoi(argv[2]) : 11;
    const tn_plugin *plugin;
    void *handle, *self = NULL;
    tn_err err = {0};
    int rank;

    if (argc < 2 || rounds < 1 || rounds > ROUNDS_MAX)
        die("usage", "mpirun -n 2 mpi FOLDER/kv-mpi.so [ROUNDS]");
    (void)MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &rank);
    (void)MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    handle = dlopen(argv[1], RTLD_NOW);
    plugin = handle ? dlsym(handle, "tn_plugin_v1") : NULL;
    if (!plugin)
        die(argv[1], dlerror());
    ops = (const tn_collective_ops *)(const void *)plugin->capabilities[0];
    if (plugin->init(NULL, &self, &err) || ops->open(self, &config, &job, &err))
        die("open", err.message);
    resnet50_make(&loads[1]);
    for (size_t i = 0; i < 2; i++) {
        load_fill(&loads[i]);
        measure(&loads[i], rounds, rank);
        free(loads[i].data);
    }
    ops->close(job, MINUTE_NS);
    plugin->fini(self);
    (void)MPI_Finalize();
    return 0;
}
