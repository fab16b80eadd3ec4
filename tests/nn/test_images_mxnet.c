/* The batches that MXNet's ImageRecordIter makes of recorded/image/iter.rec, and its ImageDetRecordIter of
 * boxes.rec (tests/oracle/image.py). */
#include "nn/support.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tenon/nn_data.h"

#define NUMBERS_MAX (5 * 3 * 110 * 110)

#define LABELS_MAX 256

static char rec[1024], idx[1024], lst[1024], txt[1024];

typedef struct given { /* arguments as pairs */
    char line[512];
    const char *args[64];
    size_t count;
    bool round;
} given;

static void path_make(char out[1024], const char *name, const char *ending)
{
    (void)snprintf(out, 1024, "%s/tests/oracle/recorded/image/%s.%s", getenv("TENON_TEST_SOURCE"), name,
                   ending);
}

static void paths_make(const char *name)
{
    path_make(rec, name, "rec");
    path_make(idx, name, "idx");
    path_make(lst, name, "lst");
    path_make(txt, name, "txt");
}

static void pair_add(given *g, const char *name, const char *text)
{
    g->args[g->count++] = name;
    g->args[g->count++] = text;
}

/* "args name=text name=text" */
static void args_read(given *g, const char *line)
{
    char *at, *rest = NULL;

    memset(g, 0, sizeof *g);
    assert_true((size_t)snprintf(g->line, sizeof g->line, "%s", line + 5) < sizeof g->line);
    for (at = strtok_r(g->line, " \n", &rest); at; at = strtok_r(NULL, " \n", &rest)) {
        char *equals = strchr(at, '=');

        assert_non_null(equals);
        *equals = '\0';
        pair_add(g, at, !strcmp(at, "path_imgidx") ? idx : !strcmp(at, "path_imglist") ? lst : equals + 1);
    }
    pair_add(g, "path_imgrec", rec);
    pair_add(g, "round_batch", "1");
}

#define HASH_BEGIN 0xcbf29ce484222325u

static uint64_t hash_of(uint64_t h, const unsigned char *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        h = (h ^ at[i]) * 0x100000001b3u;
    return h;
}

/* Of a sample with boxes the pixels that its image has: (C, H, W) of `label`. */
static uint64_t there_hash(tn_array *x, const float *numbers, const float *labels, size_t count)
{
    const int64_t *shape;
    int32_t ndim;
    size_t width;
    uint64_t h = HASH_BEGIN;

    assert_int_equal(tn_array_shape(x, &ndim, &shape), TN_OK);
    width = count / (size_t)shape[0];
    for (int64_t i = 0; i < shape[0]; i++, labels += width)
        for (int64_t c = 0; c < shape[1]; c++)
            for (int64_t y = 0; y < (int64_t)labels[1]; y++)
                h = hash_of(h,
                            (const unsigned char *)(numbers + ((i * shape[1] + c) * shape[2] + y) * shape[3]),
                            (size_t)labels[2] * sizeof *numbers);
    return h;
}

static size_t labels_read(tn_app *app, tn_array *a, float *v, char *out, size_t bytes)
{
    const size_t count = nn_read(app, a, v, LABELS_MAX);
    size_t used = 0;

    out[0] = '\0';
    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(out + used, bytes - used, "%s%.9g", i ? "," : "", (double)v[i]);
    return count;
}

static void kept(const float *numbers, size_t count, int number, int epoch)
{
    char path[1024];
    FILE *file;

    if (!getenv("TENON_KEEP"))
        return;
    (void)snprintf(path, sizeof path, "%s/ours-%d-%d.bin", getenv("TENON_KEEP"), number, epoch);
    if (!(file = fopen(path, "wb")))
        return;
    (void)fwrite(numbers, sizeof *numbers, count, file);
    (void)fclose(file);
}

/* One line of a batch; `d` has the next one. False: it is another one. */
static bool batch_check(tn_app *app, tn_data *d, const char *line, int number, bool boxes)
{
    static float numbers[NUMBERS_MAX], labels[LABELS_MAX];
    char want[2000], got[2000];
    int epoch, filler;
    unsigned long long hash;
    tn_batch b;
    size_t count, label_count;
    uint64_t h;

    assert_int_equal(sscanf(line, "%d %d %1999s %llx", &epoch, &filler, want, &hash), 4);
    if (!tn_data_next(d, &b) && !tn_data_next(d, &b))
        fail_msg("arguments %d: there is no batch: %s", number, tn_app_error(app));
    count = nn_read(app, b.x, numbers, NUMBERS_MAX);
    label_count = labels_read(app, b.y, labels, got, sizeof got);
    h = boxes ? there_hash(b.x, numbers, labels, label_count)
              : hash_of(HASH_BEGIN, (const unsigned char *)numbers, count * sizeof *numbers);
    kept(numbers, count, number, epoch);
    if (b.epoch == epoch && tn_data_filler(d) == filler && !strcmp(got, want) && h == hash)
        return true;
    print_error("arguments %d, epoch %d: %s, %d filler; MXNet: %s, %d filler%s\n", number, (int)b.epoch, got,
                (int)tn_data_filler(d), want, filler, strcmp(got, want) ? "" : "; other pixels");
    return false;
}

static void all_batches(const char *name, const tn_boxes_options *boxes, int least)
{
    FILE *list;
    char line[4096];
    tn_app *app = NULL;
    tn_data *d = NULL;
    int number = -1, wrong = 0;
    given g;

    paths_make(name);
    list = fopen(txt, "r");
    assert_non_null(list);
    while (fgets(line, sizeof line, list)) {
        if (strncmp(line, "args ", 5) != 0) {
            wrong += !batch_check(app, d, line, number, boxes != NULL);
            continue;
        }
        if (app)
            nn_close(app);
        app = nn_open(NULL);
        args_read(&g, line);
        number++;
        d = tn_data_from_images(app, NULL, .args = g.args, .threads = number % 4 - 1, .boxes = boxes);
    }
    nn_close(app);
    (void)fclose(list);
    assert_int_equal(wrong, 0);
    assert_true(number >= least);
}

static void record_iter(void **state)
{
    (void)state;
    all_batches("iter", NULL, 20);
}

static void det_record_iter(void **state)
{
    (void)state;
    all_batches("boxes", &(const tn_boxes_options){0}, 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(record_iter), cmocka_unit_test(det_record_iter)};
    char path[2048];

    (void)snprintf(path, sizeof path, "%s/image.so", getenv("TENON_TEST_PLUGINS"));
    if (access(path, R_OK)) {
        printf("skipped: the plugin image was not built\n");
        return 77;
    }
    return cmocka_run_group_tests_name("images_mxnet", tests, NULL, NULL);
}
