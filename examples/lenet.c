/* LeNet, layer by layer: trained on handwritten digits of 8×8, evaluated, saved. Build it alone with
 *     gcc lenet.c $(pkg-config --cflags --libs tenon-nn) */
#include <tenon/nn.h>

int main(void)
{
    tn_app *app = tn_app_open(.name = "lenet", .errors = stderr);

    tn_net *net = tn_net_new(app, .name = "lenet");
    tn_net_conv2d(net, .channels = 20, .kernel = {5, 5}, .pad = {2, 2}, .activation = "tanh");
    tn_net_maxpool2d(net, .kernel = {2, 2}, .stride = {2, 2});
    tn_net_conv2d(net, .channels = 50, .kernel = {5, 5}, .pad = {2, 2}, .activation = "tanh");
    tn_net_maxpool2d(net, .kernel = {2, 2}, .stride = {2, 2});
    tn_net_dense(net, .units = 500, .activation = "tanh"); /* input widths are found at the first batch */
    tn_net_dense(net, .units = 10);
    tn_net_init(net, .with = "xavier", .seed = 42);
    tn_net_hybridize(net, .static_alloc = 1, .static_shape = 1);

    tn_data *train = tn_data_open(app, "digits:train", .batch = 64, .shuffle = 1, .seed = 42);
    tn_data *test = tn_data_open(app, "digits:test", .batch = 256);
    int64_t epochs = 12, steps = epochs * tn_data_batches(train);
    tn_trainer *trainer = tn_trainer_new(net, .lr = 0.05, .momentum = 0.9, .wd = 1e-4, .schedule = "cosine",
                                         .steps = steps, .warmup = tn_data_batches(train));
    tn_meter *mean = tn_meter_new(app, "loss");

    for (int64_t epoch = 1; epoch <= epochs && tn_app_ok(app); epoch++, tn_meter_reset(mean)) {
        for (tn_batch b; tn_data_next(train, &b);) {
            tn_app_record(app);
            tn_array *loss = tn_loss_softmax_ce(app, tn_net_forward(net, b.x), b.y);
            tn_app_backward(app, loss);
            tn_trainer_step(trainer, b.n);
            tn_meter_add(mean, loss, NULL); /* does not wait for the device */
        }
        double loss = tn_meter_value(mean), accuracy = tn_net_eval(net, test, "accuracy");
        if (tn_app_ok(app))
            printf("epoch %2d  loss %.4f  accuracy %.4f\n", (int)epoch, loss, accuracy);
    }
    tn_net_export(net, "lenet"); /* lenet-symbol.json and lenet-0000.params, for MXNet too */
    return tn_app_close(app);    /* frees all, reports the first error, gives the exit code */
}
