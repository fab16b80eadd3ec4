/*
 * Samples from files: what kind of file it is says its first bytes, what shape they have the net.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tenon/image.h"
#include "tenon/nn_data.h"
#include "train/predict.h"

#define STDIN_BYTES_MAX ((size_t)1 << 30)
#define IMAGE_SIDE_MAX 65500

static bool failed(tn_app *app, tn_status status, char *text)
{
    (void)tn_app_fail(app, text ? status : TN_E_NOMEM, text ? text : "out of memory");
    free(text);
    return false;
}

void cli_samples_fini(cli_samples *s)
{
    if (s->next)
        cli_samples_fini(s->next);
    free(s->next);
    free(s->values);
    memset(s, 0, sizeof *s);
}

/* ---- reading ---- */

typedef enum file_kind { FILE_CSV, FILE_IDX, FILE_NPY, FILE_NPZ, FILE_IMAGE } file_kind;

/* A .gz is an IDX file unless it is called .csv.gz. */
static file_kind kind_of(const char *path)
{
    unsigned char start[6] = "";
    FILE *file = fopen(path, "re");
    size_t n = file ? fread(start, 1, sizeof start, file) : 0;

    if (file)
        (void)fclose(file);
    if (n == 6 && !memcmp(start, "\x93NUMPY", 6))
        return FILE_NPY;
    if (cli_ends_with(path, ".npy"))
        return FILE_NPY; /* its reader says what is wrong with it */
    if ((n >= 2 && !memcmp(start, "PK", 2)) || cli_ends_with(path, ".npz"))
        return FILE_NPZ;
    if (n >= 4 && (!memcmp(start, "\xff\xd8\xff", 3) || !memcmp(start, "\x89PNG", 4)))
        return FILE_IMAGE;
    if (n >= 2 && start[0] == 0x1f && start[1] == 0x8b)
        return cli_ends_with(path, ".csv.gz") ? FILE_CSV : FILE_IDX;
    return n >= 2 && !start[0] && !start[1] ? FILE_IDX : FILE_CSV;
}

char *cli_stdin_read(tn_app *app, size_t *bytes)
{
    size_t room = 1 << 16, used = 0, n;
    char *text = malloc(room), *grown;

    while (text && (n = fread(text + used, 1, room - used, stdin)) > 0) {
        used += n;
        if (used < room)
            continue;
        grown = room < STDIN_BYTES_MAX ? realloc(text, 2 * room) : NULL;
        if (!grown)
            free(text);
        text = grown;
        room *= 2;
    }
    if (!text)
        (void)tn_app_fail(app, TN_E_NOMEM,
                          "standard input: more than 1 GiB, or out of memory; write it into a file");
    else if (ferror(stdin))
        (void)tn_app_fail(app, TN_E_IO, "standard input cannot be read");
    *bytes = used;
    return text;
}

/* The only array of an archive, or that called data. */
static tn_status npz_load(tn_ctx *ctx, const char *path, tn_array **out)
{
    tn_params *p = NULL;
    tn_status st = tn_load(ctx, path, &p);

    if (!st)
        st = tn_params_count(p) == 1 ? tn_params_at(p, 0, out) : tn_params_get(p, "data", out);
    tn_params_destroy(p);
    return st;
}

/* The size of an image and its channels, 1 or 3. */
static bool image_look(tn_app *app, const char *path, int64_t shape[3])
{
    tn_image_about about = {.struct_size = TN_SIZE(tn_image_about)};
    FILE *file = fopen(path, "re");
    char *text = NULL;
    long bytes = -1;
    tn_status st;

    if (file && !fseek(file, 0, SEEK_END) && (bytes = ftell(file)) > 0 && (size_t)bytes < STDIN_BYTES_MAX &&
        (text = malloc((size_t)bytes))) {
        rewind(file);
        bytes = (long)fread(text, 1, (size_t)bytes, file);
        if ((st = tn_image_look(tn_app_ctx(app), text, (uint64_t)bytes, &about)))
            (void)failed(app, st, cli_format("%s: %s", path, tn_error_text()));
    } else {
        (void)failed(app, TN_E_IO, cli_format("%s cannot be read", path));
    }
    free(text);
    if (file)
        (void)fclose(file);
    shape[0] = about.channels <= 2 ? 1 : 3;
    shape[1] = about.height;
    shape[2] = about.width;
    return tn_app_ok(app);
}

/* (C, H, W): what --shape says, or the image's own, grey or in colours as the net takes it. */
static bool image_shape(tn_app *app, tn_net *net, const char *wanted, const char *path, int64_t shape[3])
{
    long long asked[3];
    int64_t out[CLI_DIMS_MAX];
    int32_t ndim;

    if (!image_look(app, path, shape))
        return false;
    if (wanted && (sscanf(wanted, "%lld%*1[,x]%lld%*1[,x]%lld", &asked[0], &asked[1], &asked[2]) != 3 ||
                   (asked[0] != 1 && asked[0] != 3) || asked[1] < 1 || asked[2] < 1 ||
                   asked[1] > IMAGE_SIDE_MAX || asked[2] > IMAGE_SIDE_MAX))
        return failed(
            app, TN_E_ARG,
            cli_format("--shape %s: of an image, 1 or 3 channels, height and width are needed: 3,32,32",
                       wanted));
    for (int i = 0; wanted && i < 3; i++)
        shape[i] = asked[i];
    if (!wanted && !tn_net_takes(net, 4, (const int64_t[]){1, shape[0], shape[1], shape[2]}, &ndim, out) &&
        tn_net_takes(net, 4, (const int64_t[]){1, 4 - shape[0], shape[1], shape[2]}, &ndim, out))
        shape[0] = 4 - shape[0];
    return tn_app_ok(app);
}

/* An image as one sample, byte / 255. */
static tn_array *image_read(tn_app *app, tn_net *net, const char *wanted, const char *path)
{
    int64_t shape[3];
    tn_array *array = NULL;
    float *values = NULL;

    if (!image_shape(app, net, wanted, path, shape))
        return NULL;
    if (!(values = malloc((size_t)(shape[0] * shape[1] * shape[2]) * sizeof *values)))
        (void)tn_app_fail(app, TN_E_NOMEM, "out of memory");
    else if (tn_image_sample(app, path, shape, values))
        (void)tn_app_check(app,
                           tn_array_from(tn_app_ctx(app), TN_F32, 4,
                                         (const int64_t[]){1, shape[0], shape[1], shape[2]}, values, &array));
    free(values);
    return array;
}

/* Of a file that is there; the rest is its reader's to say. */
static bool is_image_name(const char *name)
{
    static const char *const ends[] = {".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff"};
    bool image = false;

    for (size_t i = 0; !image && i < sizeof ends / sizeof *ends; i++)
        image = cli_ends_with(name, ends[i]);
    return image && !access(name, R_OK) && !cli_is_folder(name);
}

static tn_array *array_read(tn_app *app, tn_net *net, const char *wanted, const char *name, file_kind *kind)
{
    static tn_status (*const readers[])(tn_ctx *, const char *, tn_array **) = {
        [FILE_CSV] = tn_csv_load, [FILE_IDX] = tn_idx_load, [FILE_NPY] = tn_npy_load, [FILE_NPZ] = npz_load};
    tn_array *array = NULL;
    size_t bytes = 0;
    char *text;

    if (strcmp(name, "-")) {
        *kind = kind_of(name);
        if (*kind == FILE_IMAGE)
            return image_read(app, net, wanted, name);
        if (*kind == FILE_CSV && is_image_name(name)) {
            (void)failed(
                app, TN_E_FORMAT,
                cli_format("%s is no image of a kind that is read: it does not begin as a JPEG or PNG does",
                           name));
            return NULL;
        }
        (void)tn_app_check(app, readers[*kind](tn_app_ctx(app), name, &array));
        return array;
    }
    *kind = FILE_CSV;
    text = cli_stdin_read(app, &bytes);
    if (text && tn_app_ok(app))
        (void)tn_app_check(app, tn_csv_from_memory(tn_app_ctx(app), text, bytes, "standard input", &array));
    free(text);
    return array;
}

/* As float32, each times `scale`. */
static bool values_take(cli_samples *s, tn_app *app, tn_array *array, double scale)
{
    const size_t count = tn_array_count(array);
    tn_array *cast = NULL;
    tn_status st;

    if (!(s->values = malloc((count ? count : 1) * sizeof *s->values)))
        return !tn_app_fail(app, TN_E_NOMEM, "out of memory");
    if (!(st = tn_array_cast(tn_app_ctx(app), array, TN_F32, &cast)))
        st = tn_array_read(cast, s->values, count * sizeof *s->values);
    tn_array_release(cast);
    if (tn_app_check(app, st))
        return false;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(s->values[i]))
            return failed(app, TN_E_FORMAT,
                          cli_format("%s: number %zu of sample %lld is %g: only finite numbers are taken",
                                     s->name, i % (size_t)s->each + 1, (long long)(i / (size_t)s->each),
                                     (double)s->values[i]));
        s->values[i] = (float)(scale == 1 ? (double)s->values[i] : (double)s->values[i] * scale);
    }
    return true;
}

static bool shape_take(cli_samples *s, tn_app *app, tn_array *array)
{
    const int64_t *shape = NULL;
    int32_t ndim = 0;

    if (tn_app_check(app, tn_array_shape(array, &ndim, &shape)))
        return false;
    if (ndim < 1 || ndim > CLI_DIMS_MAX)
        return failed(app, TN_E_SHAPE,
                      cli_format("%s has %d dimensions, 1 to %d are taken", s->name, ndim, CLI_DIMS_MAX));
    s->ndim = ndim;
    memcpy(s->shape, shape, (size_t)ndim * sizeof *shape);
    if (ndim == 1) { /* one sample */
        s->shape[1] = s->shape[0];
        s->shape[0] = 1;
        s->ndim = 2;
    }
    s->count = s->shape[0];
    s->each = 1;
    for (int32_t i = 1; i < s->ndim; i++)
        s->each *= s->shape[i];
    if (s->count < 1 || s->each < 1)
        return failed(app, TN_E_FORMAT, cli_format("%s holds no samples", s->name));
    return true;
}

bool cli_samples_load(cli_samples *s, tn_app *app, tn_net *net, const char *wanted, const char *name,
                      double scale)
{
    file_kind kind = FILE_CSV;
    tn_array *array = array_read(app, net, wanted, name, &kind);
    const bool pixels = kind == FILE_NPY || kind == FILE_NPZ; /* if they are bytes */
    bool ok = array != NULL;

    s->name = strcmp(name, "-") ? name : "standard input";
    s->bytes = kind == FILE_IMAGE || (array && tn_array_dtype(array) == TN_U8);
    if (kind == FILE_IMAGE)
        scale = isnan(scale) ? 1 : scale * 255;
    if (isnan(scale))
        scale = (kind == FILE_IDX || pixels) && ok && tn_array_dtype(array) == TN_U8 ? 1.0 / 255 : 1;
    if (ok && scale == 1.0 / 255 && tn_array_dtype(array) == TN_U8) {
        /* exactly what a training makes of them: float32 / 255 */
        ok = shape_take(s, app, array) && values_take(s, app, array, 1);
        for (int64_t i = 0; ok && i < s->count * s->each; i++)
            s->values[i] /= 255.0f;
    } else {
        ok = ok && shape_take(s, app, array) && values_take(s, app, array, scale);
    }
    tn_array_release(array);
    return ok && tn_app_ok(app);
}

cli_samples *cli_samples_next(cli_samples *s, tn_app *app)
{
    if (!(s->next = calloc(1, sizeof *s->next)))
        (void)tn_app_fail(app, TN_E_NOMEM, "out of memory");
    else
        s->next->name = s->name;
    return s->next;
}

/* "words, age" */
static void inputs_text(const tn_net *net, char out[256])
{
    size_t used = 0;

    out[0] = '\0';
    for (size_t i = 0; i < tn_net_input_count(net) && used < 200; i++)
        used += (size_t)snprintf(out + used, 256 - used, "%s%.40s", i ? ", " : "", tn_net_input_at(net, i));
}

bool cli_samples_named(cli_samples *s, tn_app *app, const tn_net *net, const char *name)
{
    const bool npz = strcmp(name, "-") != 0 && kind_of(name) == FILE_NPZ;
    const int64_t *count = &s->count;
    tn_params *p = NULL;
    bool ok = npz && !tn_app_check(app, tn_load(tn_app_ctx(app), name, &p));
    char names[256];

    inputs_text(net, names);
    if (!npz)
        ok =
            failed(app, TN_E_FORMAT,
                   cli_format("%s: the model has the inputs %s: an .npz with arrays of these names is needed",
                              name, names));
    s->name = name;
    for (size_t i = 0; ok && i < tn_net_input_count(net); i++) {
        tn_array *array = NULL;

        if ((i && !(s = cli_samples_next(s, app))) || tn_params_get(p, tn_net_input_at(net, i), &array))
            ok = tn_app_ok(app) && failed(app, TN_E_KEY,
                                          cli_format("%s has no array %s; the model's inputs are %s", name,
                                                     tn_net_input_at(net, i), names));
        else if ((ok = shape_take(s, app, array) && values_take(s, app, array, 1)) && s->count != *count)
            ok = failed(app, TN_E_SHAPE,
                        cli_format("%s: %s has %lld samples, the array before it %lld", name,
                                   tn_net_input_at(net, i), (long long)s->count, (long long)*count));
        tn_array_release(array);
    }
    tn_params_destroy(p);
    return ok;
}

/* ---- a shape that the net takes ---- */

static void shape_text(int32_t ndim, const int64_t *shape, const char *times, char out[256])
{
    size_t used = 0;

    out[0] = '\0';
    for (int32_t i = 0; i < ndim && used < 200; i++)
        used += (size_t)snprintf(out + used, 256 - used, "%s%lld", i ? times : "", (long long)shape[i]);
}

/* "1,28,28" or "1x28x28" behind the number of samples. */
static bool shape_wanted(cli_samples *s, tn_app *app, const char *text)
{
    int64_t each = 1;
    int32_t ndim = 1;
    const char *at = text;
    char *end;

    while (*at && ndim < CLI_DIMS_MAX) {
        long long dim;

        errno = 0;
        dim = *at >= '0' && *at <= '9' ? strtoll(at, &end, 10) : 0;
        if (dim < 1 || errno || dim > s->each || each > s->each / dim)
            break;
        each *= dim;
        s->shape[ndim++] = dim;
        at = end;
        if ((*at == ',' || *at == 'x') && at[1])
            at++;
        else
            break;
    }
    if (*at || ndim == 1 || each != s->each)
        return failed(app, TN_E_ARG,
                      cli_format("--shape %s: %s has samples of %lld numbers; whole numbers above 0 whose "
                                 "product that is are needed, such as 1,28,28",
                                 text, s->name, (long long)s->each));
    s->ndim = ndim;
    return true;
}

static bool takes(tn_net *net, const cli_samples *s)
{
    int64_t out[CLI_DIMS_MAX];
    int32_t ndim;

    return tn_net_takes(net, s->ndim, s->shape, &ndim, out) != 0;
}

static int64_t square_root(int64_t n)
{
    int64_t root = (int64_t)(sqrt((double)n) + 0.5);

    return root > 0 && root * root == n ? root : 0;
}

/* Rows may be images, of one channel or three; images without channels have one. */
static bool image_try(cli_samples *s, tn_net *net)
{
    cli_samples other = *s;

    other.ndim = 4;
    for (int64_t channels = 1; channels <= 3; channels += 2) {
        const int64_t side = s->each % channels ? 0 : square_root(s->each / channels);

        if (s->ndim == 3 && channels == 1)
            memcpy(other.shape, (int64_t[]){s->count, 1, s->shape[1], s->shape[2]}, 4 * sizeof(int64_t));
        else if (s->ndim == 2 && side)
            memcpy(other.shape, (int64_t[]){s->count, channels, side, side}, 4 * sizeof(int64_t));
        else
            continue;
        if (takes(net, &other)) {
            *s = other;
            return true;
        }
    }
    return false;
}

bool cli_samples_fit(cli_samples *s, tn_app *app, tn_net *net, const char *wanted)
{
    char shape[256], why[512];

    if (wanted && !shape_wanted(s, app, wanted))
        return false;
    if (takes(net, s))
        return true;
    (void)snprintf(why, sizeof why, "%s", tn_error_text());
    if (!tn_app_ok(app) || (!wanted && image_try(s, net)))
        return tn_app_ok(app) != 0;
    if (s->takes && *s->takes && !wanted) {
        shape_text(s->ndim - 1, s->shape + 1, "×", shape);
        return failed(app, TN_E_SHAPE,
                      cli_format("%s: the model takes %s, the data is %s; --shape "
                                 "C,H,W says what shape a sample has",
                                 s->name, s->takes, shape));
    }
    shape_text(s->ndim, s->shape, "x", shape);
    return failed(app, TN_E_SHAPE,
                  cli_format("%s: the model does not take its samples, %s: %s%s", s->name, shape, why,
                             wanted ? "" : "; --shape C,H,W says what shape a sample has"));
}
