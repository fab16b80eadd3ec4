/* An LSTM that reads a digit row by row: the cell is a C function, the loop over the rows is C's. Build it
 * with
 *     gcc recurrent.c $(pkg-config --cflags --libs tenon-nn)
 * The number of epochs may stand on the command line. */
#include <stdlib.h>
#include <tenon/nn.h>

/* s: h and c, which are replaced. Gates in Gluon's order: input, forget, new, output. */
static tn_x step(tn_x x, tn_x s[2], int64_t units)
{
    tn_x g[4];

    tn_split(tn_add(tn_dense(x, .units = 4 * units, .name = "i2h", .share = 1),
                    tn_dense(s[0], .units = 4 * units, .name = "h2h", .share = 1)),
             4, 1, g);
    s[1] = tn_add(tn_mul(tn_sigmoid(g[1]), s[1]), tn_mul(tn_sigmoid(g[0]), tn_tanh(g[2])));
    return s[0] = tn_mul(tn_sigmoid(g[3]), tn_tanh(s[1]));
}

static tn_x rows(tn_x x) /* an image (N, 1, T, W) is T steps of W numbers */
{
    tn_x s[2] = {tn_state(x, 64), NULL};

    s[1] = s[0];
    tn_scope_begin(x, "lstm0");
    for (int64_t t = 0; t < tn_dim(x, 2); t++)
        step(tn_flatten(tn_slice(x, .axis = 2, .begin = t, .end = t + 1)), s, 64);
    tn_scope_end(x);
    return tn_dense(s[0], .units = 10);
}

int main(int argc, char **argv)
{
    tn_app *app = tn_app_open(.name = "recurrent", .errors = stderr);
    tn_net *net = tn_net_function(app, rows, .name = "rows");

    tn_net_init(net, .seed = 1);
    tn_fit(net, tn_data_open(app, "digits:train", .batch = 64, .shuffle = 1, .seed = 1),
           .valid_data = tn_data_open(app, "digits:test", .batch = 256),
           .epochs = argc > 1 ? atoi(argv[1]) : 12, .optimizer = "adam", .lr = 0.01, .clip_norm = 5,
           .log = stdout);
    tn_net_export(net, "recurrent");
    return tn_app_close(app);
}
