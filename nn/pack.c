/*
 * Images of a folder as a .rec, as MXNet's im2rec makes it. Threads read and encode a stretch of images; the
 * program's thread writes them in order.
 */
#include "images.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pixels.h"
#include "tenon/image.h"

#define THREADS_MAX 256
#define STRETCH 64 /* images of one thread */
#define SIDE_MAX 65500
#define LABELS_MAX 65536

typedef struct item {
    char *path; /* in the folder */
    uint64_t id;
    float *labels;
    uint32_t label_count;
    void *bytes; /* of the encoded image: malloc'd, or tn_free()'s */
    uint64_t size;
    bool ours, fatal;
    tn_status status;
    char why[320];
} item;

typedef struct packing {
    tn_app *app;
    tn_ctx *ctx;
    tn_pack_options o;
    const char *folder;
    item *items;
    size_t count, first, end; /* a stretch */
    struct tnn_names *names;  /* of the classes of a folder */
    atomic_size_t next;
    tn_packed packed;
} packing;

/* ---- one image, on any thread ---- */

static tn_status item_fail(item *i, tn_status st, const char *why)
{
    (void)snprintf(i->why, sizeof i->why, "%s", why);
    i->fatal = st == TN_E_NOMEM || st == TN_E_ARG || tn_error_number() == TNN_NUMBER_PLUGIN_MISSING;
    return i->status = st;
}

static tn_status bytes_read(const packing *p, item *i)
{
    char path[4200];
    FILE *file;
    struct stat s;

    if ((size_t)snprintf(path, sizeof path, "%s/%s", p->folder, i->path) >= sizeof path)
        return item_fail(i, TN_E_IO, "its path is too long");
    if (!(file = fopen(path, "re"))) {
        (void)item_fail(i, tnn_status_of(errno), strerror(errno));
    } else if (fstat(fileno(file), &s) || !S_ISREG(s.st_mode) || s.st_size > 1 << 29) {
        (void)item_fail(i, TN_E_IO, "this is no regular file of at most 512 MiB");
    } else if (!(i->bytes = malloc((size_t)s.st_size + 1))) {
        (void)item_fail(i, TN_E_NOMEM, "out of memory");
    } else {
        i->ours = true;
        i->size = fread(i->bytes, 1, (size_t)s.st_size, file);
        if (ferror(file))
            (void)item_fail(i, TN_E_IO, "it cannot be read");
    }
    if (file)
        (void)fclose(file);
    return i->status;
}

static void bytes_free(item *i)
{
    if (i->ours)
        free(i->bytes);
    else
        tn_free(i->bytes);
    i->bytes = NULL;
}

/* The size that the image gets, of its part `r`. */
static void size_of(const packing *p, const tn_image_about *a, tnb_rect *r, int64_t size[2])
{
    const int64_t edge = p->o.resize;

    *r = (tnb_rect){0, 0, a->width, a->height};
    if (p->o.center_crop && a->width != a->height) {
        const int32_t side = a->width < a->height ? a->width : a->height;

        *r = (tnb_rect){(a->width - side) / 2, (a->height - side) / 2, side, side};
    }
    size[0] = r->width;
    size[1] = r->height;
    if (edge) {
        size[0] = r->height > r->width ? edge : edge * r->width / r->height;
        size[1] = r->height > r->width ? edge * r->height / r->width : edge;
    }
}

/* `pixels` of the part r become those of `size`. */
static tn_status resized_make(item *i, uint8_t **pixels, const tnb_rect *r, const int64_t size[2],
                              int32_t channels)
{
    const tnb_resize way = {{r->width, r->height}, {(int32_t)size[0], (int32_t)size[1]}, TNB_LINEAR};
    const tnb_pixels from = {*pixels,   (int64_t)r->width * channels, channels, r->width,
                             r->height, {0, 0, r->width, r->height}};
    tnb_pixels to = {NULL,       size[0] * channels, channels,
                     way.out[0], way.out[1],         {0, 0, way.out[0], way.out[1]}};

    if (size[0] == r->width && size[1] == r->height)
        return TN_OK;
    if (!(to.data = malloc((size_t)to.stride * (size_t)size[1])) || !tnb_resize_run(&way, &from, &to)) {
        free(to.data);
        return item_fail(i, TN_E_NOMEM, "out of memory");
    }
    free(*pixels);
    *pixels = to.data;
    return TN_OK;
}

static tn_status encode(const packing *p, item *i, const uint8_t *pixels, const int64_t size[2],
                        const char *format)
{
    const int64_t shape[] = {size[1], size[0], p->o.channels};
    tn_array *a = NULL;
    void *data = NULL;
    uint64_t bytes = 0;
    tn_status st = tn_array_from(p->ctx, TN_U8, 3, shape, pixels, &a);

    if (!st)
        st = tn_image_encode(p->ctx, a, format, p->o.quality, &data, &bytes);
    tn_array_release(a);
    if (st)
        return item_fail(i, st, tn_error_text());
    bytes_free(i);
    i->bytes = data;
    i->size = bytes;
    i->ours = false;
    return TN_OK;
}

/* Decoded, changed, encoded. */
static tn_status again(const packing *p, item *i)
{
    tn_image_about a = {.struct_size = TN_SIZE(tn_image_about)};
    tn_image_options o = {.struct_size = TN_SIZE(tn_image_options), .channels = p->o.channels};
    uint8_t *pixels = NULL;
    int64_t size[2], stride;
    tnb_rect r;
    tn_status st = tn_image_look(p->ctx, i->bytes, i->size, &a);

    if (st)
        return item_fail(i, st, tn_error_text());
    size_of(p, &a, &r, size);
    if (size[0] < 1 || size[1] < 1 || size[0] > SIDE_MAX || size[1] > SIDE_MAX)
        return item_fail(i, TN_E_SHAPE, "the resized image has no pixels, or too many");
    o.x = r.x;
    o.y = r.y;
    o.width = r.width;
    o.height = r.height;
    stride = (int64_t)r.width * o.channels;
    if (!(pixels = malloc((size_t)stride * (size_t)r.height)))
        return item_fail(i, TN_E_NOMEM, "out of memory");
    st = tn_image_read(p->ctx, i->bytes, i->size, &o, pixels, (uint64_t)stride * (uint64_t)r.height, stride);
    if (st)
        (void)item_fail(i, st, tn_error_text());
    else if (!(st = resized_make(i, &pixels, &r, size, o.channels)))
        st = encode(p, i, pixels, size, p->o.encoding ? p->o.encoding : "jpg");
    free(pixels);
    return st;
}

static void item_make(const packing *p, item *i)
{
    tn_image_about a = {.struct_size = TN_SIZE(tn_image_about)};
    tn_status st;

    tn_error_clear();
    if (bytes_read(p, i))
        return;
    if (p->o.encoding || p->o.resize || p->o.center_crop)
        (void)again(p, i);
    else if ((st = tn_image_look(p->ctx, i->bytes, i->size, &a)))
        (void)item_fail(i, st, tn_error_text());
}

static void *work(void *arg)
{
    packing *p = arg;
    size_t at;

    while ((at = atomic_fetch_add(&p->next, 1)) < p->end)
        item_make(p, &p->items[at]);
    return NULL;
}

/* ---- what is packed ---- */

static tn_status folder_list(packing *p)
{
    tnn_images s = {.ctx = p->ctx};
    tn_status st = tnn_images_folder(p->app, &s, p->folder, p->o.part_of, &p->names);

    if (!st && (p->items = tnn_alloc(p->app, (size_t)s.count, sizeof *p->items)))
        for (p->count = 0; !p->app->status && p->count < (size_t)s.count; p->count++) {
            item *i = &p->items[p->count];

            i->id = p->count;
            i->label_count = 1;
            i->path =
                tnn_format(p->app, "%s%s%s", s.root + strlen(p->folder) + (s.root[strlen(p->folder)] == '/'),
                           s.root[strlen(p->folder)] ? "/" : "", s.paths[p->count]);
            if ((i->labels = tnn_alloc(p->app, 1, sizeof *i->labels)))
                i->labels[0] = s.labels[p->count];
        }
    for (int64_t k = 0; s.paths && k < s.count; k++)
        free(s.paths[k]);
    free(s.paths);
    free(s.labels);
    free(s.root);
    return p->app->status;
}

/* "17\t3\tcat/1.jpg\n": a number, one label or more, a path. */
static tn_status line_take(packing *p, char *line, size_t number)
{
    item *i = &p->items[p->count];
    const size_t labels_max = strlen(line) / 2 + 1;
    char *at, *end, *tab;

    line[strcspn(line, "\r\n")] = '\0';
    i->id = strtoull(line, &end, 10);
    if (!(i->labels = tnn_alloc(p->app, labels_max, sizeof *i->labels)))
        return p->app->status;
    p->count++;
    for (at = end; *at == '\t' && (tab = strchr(at + 1, '\t')) && i->label_count < LABELS_MAX; at = tab) {
        i->labels[i->label_count++] = (float)tnn_number_read(at + 1, &end);
        if (end != tab || end == at + 1)
            break;
    }
    if (end == line || *at != '\t' || end != at || !i->label_count || !at[1])
        return tnn_fail(p->app, TN_E_FORMAT,
                        "%s, line %zu: a number, labels and a path are needed, with tabs between", p->o.list,
                        number);
    i->path = tnn_strdup(p->app, at + 1);
    return p->app->status;
}

static tn_status list_read(packing *p)
{
    FILE *file = fopen(p->o.list, "re");
    char *line = NULL;
    size_t room = 0, number = 0, items = 0;
    item *grown;

    if (!file)
        return tnn_fail_open(p->app, p->o.list);
    while (!p->app->status && getline(&line, &room, file) >= 0) {
        number++;
        if (strspn(line, " \t\r\n") == strlen(line))
            continue;
        if (p->count == items) {
            items = items ? 2 * items : 256;
            if (!(grown = realloc(p->items, items * sizeof *grown))) {
                (void)tnn_no_memory(p->app);
                break;
            }
            p->items = grown;
            memset(p->items + p->count, 0, (items - p->count) * sizeof *grown);
        }
        (void)line_take(p, line, number);
    }
    free(line);
    (void)fclose(file);
    if (!p->app->status && !p->count)
        return tnn_fail(p->app, TN_E_FORMAT, "%s names no images", p->o.list);
    return p->app->status;
}

static void items_shuffle(packing *p)
{
    const uint64_t key = tnn_random_mix(p->o.seed, TNN_PURPOSE_SHUFFLE);

    for (size_t i = p->count - 1; p->o.shuffle && i > 0; i--) {
        const size_t j = (size_t)(tnn_random_unit(key, 0, i) * (double)(i + 1));
        const item kept = p->items[i];

        p->items[i] = p->items[j <= i ? j : i];
        p->items[j <= i ? j : i] = kept;
    }
}

/* ---- writing ---- */

static tn_status item_write(packing *p, tn_record_writer *w, FILE *list, const item *i)
{
    const tn_record_header h = {.struct_size = TN_SIZE(tn_record_header),
                                .label_count = i->label_count > 1 ? i->label_count : 0,
                                .labels = i->label_count > 1 ? i->labels : NULL,
                                .label = i->labels[0],
                                .id = i->id};
    char text[TNN_NUMBER_TEXT];
    void *record = NULL;
    uint64_t bytes = 0;
    tn_status st = tn_record_pack(&h, i->bytes, i->size, &record, &bytes);

    if (!st)
        st = tn_record_append(w, i->id, record, bytes);
    tn_free(record);
    (void)fprintf(list, "%llu\t", (unsigned long long)i->id);
    for (uint32_t k = 0; k < i->label_count; k++) {
        tnn_number_text(text, 9, (double)i->labels[k]);
        (void)fprintf(list, "%s\t", text);
    }
    (void)fprintf(list, "%s\n", i->path);
    p->packed.images++;
    return tnn_check(p->app, st, "%s", i->path);
}

static tn_status item_end(packing *p, tn_record_writer *w, FILE *list, item *i)
{
    tn_status st = TN_OK;

    if (!i->status) {
        st = item_write(p, w, list, i);
    } else if (p->o.strict || i->fatal) {
        st = tnn_fail(p->app, i->status, "%s/%s: %s", p->folder, i->path, i->why);
    } else if (!p->packed.broken++) {
        (void)snprintf(p->packed.text, sizeof p->packed.text, "%.180s: %s", i->path, i->why);
    }
    bytes_free(i);
    return st;
}

static tn_status stretch_run(packing *p, tn_record_writer *w, FILE *list)
{
    pthread_t threads[THREADS_MAX];
    int32_t started = 0;

    atomic_store(&p->next, p->first);
    while (started < p->o.threads - 1 && !pthread_create(&threads[started], NULL, work, p))
        started++;
    (void)work(p);
    while (started-- > 0)
        (void)pthread_join(threads[started], NULL);
    for (size_t i = p->first; !p->app->status && i < p->end; i++)
        (void)item_end(p, w, list, &p->items[i]);
    return p->app->status;
}

static tn_status all_write(packing *p, const char *path, const char *index, const char *list_path,
                           const char *aside)
{
    tn_record_writer *w = NULL;
    FILE *list = fopen(aside, "we");
    bool bad;

    if (!list)
        return tnn_fail_system(p->app, list_path);
    (void)tnn_check(p->app, tn_record_create(path, index, &w), "%s", path);
    for (; !p->app->status && p->first < p->count; p->first = p->end) {
        const size_t stretch = STRETCH * (size_t)p->o.threads;

        p->end = p->count - p->first < stretch ? p->count : p->first + stretch;
        (void)stretch_run(p, w, list);
    }
    if (!p->app->status && !p->packed.images)
        (void)tnn_fail(p->app, TN_E_FORMAT, "%s: no image can be read: %s", p->folder, p->packed.text);
    bad = ferror(list) != 0;
    bad |= fclose(list) != 0;
    if (!p->app->status && bad)
        (void)tnn_fail(p->app, TN_E_IO, "%s cannot be written", list_path);
    if (p->app->status)
        tn_record_abandon(w);
    else if (!tnn_check(p->app, tn_record_finish(w), "%s", path) && rename(aside, list_path))
        (void)tnn_fail_system(p->app, list_path);
    if (p->app->status)
        (void)unlink(aside);
    return p->app->status;
}

/* A name per line; of a list, which has numbers alone, an old file must not stay. */
static tn_status classes_write(packing *p, const char *path)
{
    FILE *file = p->names ? fopen(path, "we") : NULL;
    bool ok = file != NULL;

    if (!p->names)
        return unlink(path) && errno != ENOENT ? tnn_fail_system(p->app, path) : TN_OK;
    for (int64_t k = 0; ok && tnn_names_at(p->names, k); k++)
        ok = fprintf(file, "%s\n", tnn_names_at(p->names, k)) > 0;
    if (file)
        ok = !fclose(file) && ok;
    return ok ? TN_OK : tnn_fail(p->app, TN_E_IO, "%s cannot be written", path);
}

static tn_status options_check(packing *p, const char *what)
{
    static const char *const parts[] = {"train", "test", NULL};
    const tn_pack_options *o = &p->o;

    p->o.threads = o->threads ? o->threads : 1;
    p->o.channels = o->channels ? o->channels : 3;
    if (o->part_of && !tnn_one_of(o->part_of, parts))
        return tnn_unknown(p->app, "part of a data set", o->part_of, parts);
    if (o->threads < 1 || o->threads > THREADS_MAX || o->resize < 0 || o->resize > SIDE_MAX ||
        o->quality < 0 || o->quality > 100 || (o->channels != 1 && o->channels != 3 && o->channels != 4))
        return tnn_fail(
            p->app, TN_E_ARG,
            "%s: .threads (1 to %d), .resize (1 to %d), .quality (1 to 100) or .channels (1, 3, 4) is out "
            "of range",
            what, THREADS_MAX, SIDE_MAX);
    if (o->quality && !o->encoding && !o->resize && !o->center_crop)
        return tnn_fail(p->app, TN_E_ARG, "%s: a quality goes with an encoding, a size or a crop", what);
    return TN_OK;
}

int tn_pack_images_(tn_app *app, const char *folder, const char *path, tn_packed *packed,
                    const tn_pack_options *options)
{
    packing p = {.app = app, .folder = folder};
    char what[96], *index = NULL, *list = NULL, *aside = NULL, *classes = NULL;

    if (!tnn_ok(app))
        return 0;
    tnn_options_copy(&p.o, sizeof p.o, options);
    (void)snprintf(what, sizeof what, "tn_pack_images at %.60s:%d", p.o.file ? p.o.file : "?", p.o.line);
    if (!folder || !path)
        return !tnn_fail(app, TN_E_ARG, "%s: a folder or a path is missing", what);
    p.ctx = app->ctx;
    if (tnn_seed(app, p.o.seed, &p.o.seed))
        return 0;
    index = tnn_beside(app, path, ".idx");
    list = tnn_beside(app, path, ".lst");
    aside = tnn_beside(app, path, ".lst.tmp");
    classes = tnn_beside(app, path, ".classes");
    if (!options_check(&p, what) && !(p.o.list ? list_read(&p) : folder_list(&p))) {
        items_shuffle(&p);
        if (!all_write(&p, path, index, list, aside))
            (void)classes_write(&p, classes);
    }
    for (size_t i = 0; i < p.count; i++) {
        bytes_free(&p.items[i]);
        free(p.items[i].path);
        free(p.items[i].labels);
    }
    free(p.items);
    tnn_names_destroy(p.names);
    free(classes);
    free(index);
    free(list);
    free(aside);
    if (packed)
        *packed = p.packed;
    return app->status ? 0 : 1;
}
