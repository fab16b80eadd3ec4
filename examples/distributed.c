/* LeNet trained by several processes, each of them this program: DMLC_ROLE says scheduler or server, else it
 * is a worker, which trains on its part of the digits. docs/store.md runs it. */
#include <tenon/kv.h>
#include <tenon/nn.h>

static tn_net *lenet(tn_app *app)
{
    tn_net *net = tn_net_new(app, .name = "lenet");

    tn_net_conv2d(net, .channels = 20, .kernel = {5, 5}, .pad = {2, 2}, .activation = "tanh");
    tn_net_maxpool2d(net, .kernel = {2, 2}, .stride = {2, 2});
    tn_net_conv2d(net, .channels = 50, .kernel = {5, 5}, .pad = {2, 2}, .activation = "tanh");
    tn_net_maxpool2d(net, .kernel = {2, 2}, .stride = {2, 2});
    tn_net_dense(net, .units = 500, .activation = "tanh");
    tn_net_dense(net, .units = 10);
    return net;
}

/* Worker 0's first values are those of all, and every step is one of all workers' gradients. */
static void train(tn_app *app, tn_kv *store, const tn_kv_info *job)
{
    tn_net *net = lenet(app);
    tn_data *part = tn_data_open(app, "digits:train", .batch = 32, .shuffle = 1, .seed = 42,
                                 .parts = job->workers, .part = job->rank);
    tn_data *test = tn_data_open(app, "digits:test", .batch = 256);

    tn_fit(net, part, .valid_data = test, .epochs = 4, .lr = 0.05, .momentum = 0.9, .seed = 42,
           .store = store);
    if (tn_app_ok(app))
        printf("worker %u of %u: accuracy %.4f\n", job->rank, job->workers,
               tn_net_eval(net, test, "accuracy"));
    if (!job->rank)
        tn_net_export(net, "lenet");
}

int main(void)
{
    tn_app *app = tn_app_open(.name = "distributed", .errors = stderr);
    tn_kv_info job = {.struct_size = TN_SIZE(tn_kv_info)};
    tn_kv *store = NULL;
    int32_t ran = 0;

    if (tn_app_ok(app) && !tn_app_check(app, tn_kv_run_role(tn_app_ctx(app), NULL, NULL, &ran)) && !ran &&
        !tn_app_check(app, tn_kv_create(tn_app_ctx(app), "dist_sync", &store)) &&
        !tn_app_check(app, tn_kv_info_get(store, &job)))
        train(app, store, &job);
    tn_kv_destroy(store);
    return tn_app_close(app);
}
