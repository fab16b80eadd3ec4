/*
 * One configuration file says where a net is trained, from which pool its memory is and by which store
 * gradients are summed: cpu or the emulated GPU, three pools, one process with two devices or a job of two
 * workers over zmq or shared memory. The numbers of this net and its data are exact in float32, so all
 * eighteen trainings end with the same bits, which the test computes by itself.
 *
 * The program is its own worker.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuda.h"
#include "support/runs.h"
#include "tenon/kv.h"
#include "tenon/nn.h"

#define STEPS 3
#define ROWS 8 /* of a step, on both devices or workers together */
#define FEATURES 6
#define RATE 0.125
#define COMBINATIONS 18
#define STRIDE 7 /* of those that a short run takes: three of different devices, pools and stores */

/* -1 or 1; y: a feature of its own */
static float number_of(int step, int row, int feature)
{
    const uint32_t mixed = (uint32_t)(step * ROWS + row + 1) * 2654435761u >> (8 + feature);

    return mixed & 1u ? 1.f : -1.f;
}

/* ---- a worker ---------------------------------------------------------------------------------------- */

static tn_x net_of(tn_x x)
{
    return tn_dense(tn_mul(tn_add(x, tn_relu(x)), x), .units = 1);
}

/* The gradients of `count` rows from `first` on. */
static void gradients(tn_app *app, tn_net *net, int step, int first, int count, size_t device)
{
    float x[ROWS * FEATURES], y[ROWS];
    tn_array *in, *labels;

    for (int r = 0; r < count; r++) {
        for (int f = 0; f < FEATURES; f++)
            x[r * FEATURES + f] = number_of(step, first + r, f);
        y[r] = number_of(step, first + r, FEATURES);
    }
    in = tn_app_array(app, 2, (const int64_t[]){count, FEATURES}, x);
    labels = tn_app_array(app, 1, (const int64_t[]){count}, y);
    if (device != SIZE_MAX) { /* all rows are cut by devices */
        in = tn_app_part(app, in, device);
        labels = tn_app_part(app, labels, device);
    }
    tn_app_record(app);
    tn_app_backward(app, tn_loss_l2(app, tn_net_forward(net, in), labels));
}

static void train(tn_app *app, tn_kv *store, uint32_t rank)
{
    tn_net *net = tn_net_function(app, net_of, .name = "exact");
    tn_trainer *trainer;
    float values[FEATURES + 1];
    size_t at = 0;

    tn_net_init(net, .with = "zero", .shape = {ROWS, FEATURES});
    tn_net_hybridize(net);
    trainer = tn_trainer_new(net, .optimizer = "sgd", .lr = RATE, .store = store);
    for (int step = 0; step < STEPS; step++) {
        if (store)
            gradients(app, net, step, (int)rank * ROWS / 2, ROWS / 2, SIZE_MAX);
        for (size_t d = 0; d < tn_app_devices(app) && !store; d++)
            gradients(app, net, step, 0, ROWS, d);
        tn_trainer_step(trainer, ROWS);
    }
    for (size_t p = 0; p < tn_net_param_count(net); p++) {
        tn_array *a = tn_net_param(net, tn_net_param_name(net, p));
        const size_t count = p ? 1 : FEATURES;

        if (tn_app_check(app, tn_array_read(a, values + at, count * sizeof *values)))
            return;
        at += count;
    }
    (void)printf("values");
    for (size_t i = 0; i < at; i++)
        (void)printf(" %a", (double)values[i]);
    (void)printf("\n");
}

static int worker(const char *config, bool job)
{
    tn_app *app = tn_app_open(.name = "exact", .config = config, .errors = stderr);
    tn_kv_info info = {.struct_size = TN_SIZE(tn_kv_info)};
    tn_kv *store = NULL;

    if (tn_app_ok(app) && job && !tn_app_check(app, tn_kv_create(tn_app_ctx(app), "dist_sync", &store)))
        (void)tn_app_check(app, tn_kv_info_get(store, &info));
    if (tn_app_ok(app))
        train(app, store, info.rank);
    tn_kv_destroy(store);
    return tn_app_close(app);
}

/* ---- all of them ------------------------------------------------------------------------------------- */

static char self[4096], wanted[512];

/* The same training in double, in which it is exact, too. */
static void wanted_make(void)
{
    double w[FEATURES + 1] = {0};
    int at;

    for (int step = 0; step < STEPS; step++) {
        double sum[FEATURES + 1] = {0};

        for (int r = 0; r < ROWS; r++) {
            double x[FEATURES + 1], error = -(double)number_of(step, r, FEATURES);

            for (int f = 0; f <= FEATURES; f++) {
                const double v = (double)number_of(step, r, f);

                x[f] = f == FEATURES ? 1 : (v + (v > 0 ? v : 0)) * v;
                error += w[f] * x[f];
            }
            for (int f = 0; f <= FEATURES; f++)
                sum[f] += error * x[f];
        }
        for (int f = 0; f <= FEATURES; f++)
            w[f] -= RATE * sum[f] / ROWS;
    }
    at = snprintf(wanted, sizeof wanted, "values");
    for (int f = 0; f <= FEATURES; f++) {
        assert_true((double)(float)w[f] == w[f]);
        at += snprintf(wanted + at, sizeof wanted - (size_t)at, " %a", w[f]);
    }
}

static void one(const char *device, const char *pool, const char *store)
{
    const int job = strcmp(store, "local") != 0;
    char command[8192];
    const said *s;
    int found = 0;

    (void)snprintf(command, sizeof command,
                   "D=$(mktemp -d) && cd $D || exit 1; trap 'rm -r $D' EXIT; "
                   "printf '[plugins]\\npath = %%s\\n[device]\\ndefault = %s\\n[memory.%s]\\npool = "
                   "%s\\n[kvstore]\\ntype = %s\\ntransport = %s\\n' \"$TENON_TEST_PLUGINS\" >net.ini;"
                   " %s '%s' worker net.ini%s",
                   job                     ? device
                   : strcmp(device, "cpu") ? "cuda:0, cuda:1"
                                           : "cpu:0, cpu:1",
                   device, pool, job ? "dist_sync" : "local", job ? store : "auto",
                   job ? "\"$T\" launch -n 2 -s 1 --launcher local --config net.ini --" : "", self,
                   job ? " job" : "");
    s = cuda_say("TNEMU_DELAY_US=20", command);
    for (const char *at = s->out; (at = strstr(at, wanted)); at++)
        found++;
    if (s->code || found != (job ? 2 : 1))
        fail_msg("%s, %s, %s: ends with %d, %d times %s:\n%s", device, pool, store, s->code, found, wanted,
                 s->out);
}

/* All, or three with each commit. */
static void same_bits(void **state)
{
    static const char *const devices[] = {"cpu", "cuda"}, *const pools[] = {"round", "naive", "segment"},
                             *const stores[] = {"local", "zmq", "shm"};
    const unsigned first = (unsigned)test_rotation(COMBINATIONS), runs = test_short() ? 3 : COMBINATIONS;
    unsigned done = 0;

    (void)state;
    wanted_make();
    for (unsigned i = 0; i < runs; i++) {
        const unsigned k = (first + i * STRIDE) % COMBINATIONS, store = k % 3;

        if (store == 1 && cuda_say("", "\"$T\" plugins list --exists kv-zmq")->code) {
            print_message("left out: the plugin kv-zmq is not built\n");
            continue;
        }
        one(devices[k % 2], pools[k / 6], stores[store]);
        done++;
    }
    (void)printf("count %u\n", done);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits)};

    (void)snprintf(self, sizeof self, "%s", argv[0]);
    if (argc > 2)
        return worker(argv[2], argc > 3);
    cuda_setup();
    return cmocka_run_group_tests_name("combinations", tests, NULL, NULL);
}
