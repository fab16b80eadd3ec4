/* The batches that MXNet's ImageRecordIter makes of recorded/image/iter.rec (tests/oracle/image.py). */
#include "nn/support.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tenon/nn_data.h"

#define NUMBERS_MAX (5 * 3 * 110 * 110)

static char rec[1024], idx[1024], lst[1024], txt[1024];

typedef struct given { /* arguments as pairs */
    char line[512];
    const char *args[64];
    size_t count;
    bool round;
} given;

static void path_make(char out[1024], const char *ending)
{
    (void)snprintf(out, 1024, "%s/tests/oracle/recorded/image/iter.%s", getenv("TENON_TEST_SOURCE"), ending);
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
    (void)snprintf(g->line, sizeof g->line, "%s", line + 5);
    for (at = strtok_r(g->line, " \n", &rest); at; at = strtok_r(NULL, " \n", &rest)) {
        char *equals = strchr(at, '=');

        assert_non_null(equals);
        *equals = '\0';
        pair_add(g, at, !strcmp(at, "path_imgidx") ? idx : !strcmp(at, "path_imglist") ? lst : equals + 1);
    }
    pair_add(g, "path_imgrec", rec);
    pair_add(g, "round_batch", "1");
}

static uint64_t hash_of(const unsigned char *at, size_t bytes)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (size_t i = 0; i < bytes; i++)
        h = (h ^ at[i]) * 0x100000001b3u;
    return h;
}

static void labels_text(tn_app *app, tn_array *a, char *out, size_t bytes)
{
    float v[64];
    const size_t count = nn_read(app, a, v, 64);
    size_t used = 0;

    out[0] = '\0';
    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(out + used, bytes - used, "%s%g", i ? "," : "", (double)v[i]);
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
static bool batch_check(tn_app *app, tn_data *d, const char *line, int number)
{
    static float numbers[NUMBERS_MAX];
    char want[256], got[256];
    int epoch, filler;
    unsigned long long hash;
    tn_batch b;
    size_t count;

    assert_int_equal(sscanf(line, "%d %d %255s %llx", &epoch, &filler, want, &hash), 4);
    if (!tn_data_next(d, &b) && !tn_data_next(d, &b))
        fail_msg("arguments %d: there is no batch: %s", number, tn_app_error(app));
    count = nn_read(app, b.x, numbers, NUMBERS_MAX);
    labels_text(app, b.y, got, sizeof got);
    kept(numbers, count, number, epoch);
    if (b.epoch == epoch && tn_data_filler(d) == filler && !strcmp(got, want) &&
        hash_of((const unsigned char *)numbers, count * sizeof *numbers) == hash)
        return true;
    print_error("arguments %d, epoch %d: %s, %d filler; MXNet: %s, %d filler%s\n", number, (int)b.epoch, got,
                (int)tn_data_filler(d), want, filler, strcmp(got, want) ? "" : "; other pixels");
    return false;
}

static void all_batches(void **state)
{
    FILE *list = fopen(txt, "r");
    char line[512];
    tn_app *app = NULL;
    tn_data *d = NULL;
    int number = -1, wrong = 0;
    given g;

    (void)state;
    assert_non_null(list);
    while (fgets(line, sizeof line, list)) {
        if (strncmp(line, "args ", 5) != 0) {
            wrong += !batch_check(app, d, line, number);
            continue;
        }
        if (app)
            nn_close(app);
        app = nn_open(NULL);
        args_read(&g, line);
        number++;
        d = tn_data_from_images(app, NULL, .args = g.args, .threads = number % 4 - 1);
    }
    nn_close(app);
    (void)fclose(list);
    assert_int_equal(wrong, 0);
    assert_true(number > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_batches)};
    char path[2048];

    (void)snprintf(path, sizeof path, "%s/image.so", getenv("TENON_TEST_PLUGINS"));
    if (access(path, R_OK)) {
        printf("skipped: the plugin image was not built\n");
        return 77;
    }
    path_make(rec, "rec");
    path_make(idx, "idx");
    path_make(lst, "lst");
    path_make(txt, "txt");
    return cmocka_run_group_tests_name("images_mxnet", tests, NULL, NULL);
}
