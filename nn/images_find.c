/* Which images a data set has: files of folders, records, lists of labels. */
#include "about.h"
#include "images.h"
#include "own.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#define CLASSES_MAX 65536
#define FILES_MAX ((size_t)UINT32_MAX)
#define LABELS_MAX 65536 /* of an image with boxes */
#define LINE_MAX_BYTES (1 << 20)

/* ---- folders ---- */

typedef struct texts {
    char **at;
    size_t count, room;
} texts;

static void texts_fini(texts *t)
{
    for (size_t i = 0; i < t->count; i++)
        free(t->at[i]);
    free(t->at);
    *t = (texts){NULL, 0, 0};
}

/* [takes] text; NULL fails. */
static tn_status text_add(tn_app *app, texts *t, char *text)
{
    char **grown = t->at;

    if (text && t->count == t->room) {
        t->room = t->room ? 2 * t->room : 64;
        grown = realloc(t->at, t->room * sizeof *grown);
        t->at = grown ? grown : t->at;
    }
    if (!text || !grown) {
        free(text);
        return tnn_no_memory(app);
    }
    t->at[t->count++] = text;
    return TN_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

bool tnn_is_image(const char *name)
{
    static const char *const ends[] = {".jpg", ".jpeg", ".png"};
    const size_t length = strlen(name);

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (length > strlen(ends[i]) && !strcasecmp(name + length - strlen(ends[i]), ends[i]))
            return true;
    return false;
}

static bool is_folder(const char *path)
{
    struct stat s;

    return !stat(path, &s) && S_ISDIR(s.st_mode);
}

/* Names in `folder`, sorted: of images, or of folders. Hidden ones are passed over. */
static tn_status names_read(tn_app *app, const char *folder, bool folders, texts *out)
{
    DIR *dir = opendir(folder);
    const struct dirent *e;
    tn_status st = TN_OK;

    if (!dir && errno == ENOENT)
        return tnn_fail_absent(app, "there is no folder %s", folder);
    if (!dir)
        return tnn_fail_open(app, folder);
    while (!st && (e = readdir(dir))) {
        char *path;

        if (e->d_name[0] == '.' || (!folders && !tnn_is_image(e->d_name)))
            continue;
        if (!(path = tnn_format(app, "%s/%s", folder, e->d_name)))
            st = app->status;
        else if (is_folder(path) == folders)
            st = text_add(app, out, tnn_strdup(app, e->d_name));
        free(path);
    }
    (void)closedir(dir);
    if (!st && out->count)
        qsort(out->at, out->count, sizeof *out->at, by_name);
    return st;
}

bool tnn_images_are_flat(const char *folder)
{
    DIR *dir = opendir(folder);
    const struct dirent *e;
    bool found = false;

    while (dir && !found && (e = readdir(dir)))
        found = e->d_name[0] != '.' && tnn_is_image(e->d_name);
    if (dir)
        (void)closedir(dir);
    return found;
}

char *tnn_images_lone(tn_app *app, const char *folder)
{
    DIR *dir = opendir(folder);
    const struct dirent *e;
    char name[256] = "";
    size_t count = 0, others = 0;

    while (dir && (e = readdir(dir))) {
        others += tnn_own_is(e->d_name) || strstr(e->d_name, "-ubyte");
        if (e->d_name[0] == '.' || !tnn_ends_with(e->d_name, ".rec"))
            continue;
        count++;
        (void)snprintf(name, sizeof name, "%s", e->d_name);
    }
    if (dir)
        (void)closedir(dir);
    return count == 1 && !others ? tnn_format(app, "%s/%s", folder, name) : NULL;
}

bool tnn_images_are_in(const char *folder)
{
    DIR *dir = opendir(folder), *inner;
    const struct dirent *e;
    char path[4096];
    bool found = false;

    while (dir && !found && (e = readdir(dir))) {
        if (e->d_name[0] == '.' ||
            (size_t)snprintf(path, sizeof path, "%s/%s", folder, e->d_name) >= sizeof path ||
            !(inner = opendir(path)))
            continue;
        while (!found && (e = readdir(inner)))
            found = e->d_name[0] != '.' && tnn_is_image(e->d_name);
        (void)closedir(inner);
    }
    if (dir)
        (void)closedir(dir);
    return found;
}

/* Images of one class. `every`: which of them, where the folder has no parts. */
static tn_status class_read(tn_app *app, const char *folder, const char *name, const char *every,
                            texts *paths)
{
    char *path = tnn_format(app, "%s/%s", folder, name);
    texts files = {NULL, 0, 0};
    tn_status st = path ? names_read(app, path, false, &files) : app->status;

    for (size_t i = 0; !st && i < files.count; i++) {
        const bool test = i % TNN_TEST_EVERY == TNN_TEST_EVERY - 1;

        if (paths->count == FILES_MAX)
            st = tnn_fail(app, TN_E_UNSUPPORTED, "%s holds more than 2^32 images", folder);
        else if (!every || test == !strcmp(every, "test"))
            st = text_add(app, paths, tnn_format(app, "%s/%s", name, files.at[i]));
    }
    texts_fini(&files);
    free(path);
    return st;
}

/* "FOLDER/train" has the classes, as where a training is given FOLDER. */
static const char *parts_text(tn_app *app, const char *folder)
{
    char *train = tnn_format(app, "%s/train", folder);
    const bool there = train && is_folder(train);

    free(train);
    return there ? "; its folders train and test are given one by one" : "";
}

static tn_status classes_read(tn_app *app, tnn_images *s, const texts *classes, const char *every)
{
    texts paths = {NULL, 0, 0};
    size_t *ends = tnn_alloc(app, classes->count + 1, sizeof *ends), k = 0;
    tn_status st = app->status;

    for (size_t i = 0; !st && i < classes->count; i++) {
        st = class_read(app, s->root, classes->at[i], every, &paths);
        ends[i] = paths.count;
    }
    if (!st && !paths.count)
        st = every && !strcmp(every, "test")
                 ? tnn_fail(
                       app, TN_E_FORMAT,
                       "%s: each fifth image of a class is to test with, and no class has five; add images, "
                       "or make the parts %s/train and %s/test",
                       s->root, s->root, s->root)
                 : tnn_fail(app, TN_E_FORMAT, "%s has no images (.jpg, .jpeg, .png) in folders of classes%s",
                            s->root, every ? "" : parts_text(app, s->root));
    if (!st && (s->labels = tnn_alloc(app, paths.count, sizeof *s->labels)))
        for (size_t i = 0; i < paths.count; i++) {
            while (ends[k] <= i)
                k++;
            s->labels[i] = (float)k;
        }
    free(ends);
    s->count = (int64_t)paths.count;
    s->paths = paths.at; /* moved */
    return st ? st : app->status;
}

tn_status tnn_images_folder(tn_app *app, tnn_images *s, const char *folder, const char *part,
                            struct tnn_names **names)
{
    char *below = part ? tnn_format(app, "%s/%s", folder, part) : NULL;
    const bool parts = below && is_folder(below);
    texts classes = {NULL, 0, 0};
    tn_status st;

    if (app->status || !(s->root = tnn_strdup(app, parts ? below : folder))) {
        free(below);
        return app->status;
    }
    st = names_read(app, s->root, true, &classes);
    if (!st && !classes.count)
        st = tnn_fail(app, TN_E_FORMAT, "%s has no folders, one for each class", s->root);
    if (!st && classes.count > CLASSES_MAX)
        st = tnn_fail(app, TN_E_UNSUPPORTED, "%s has more than %d folders", s->root, CLASSES_MAX);
    if (!st && !(st = classes_read(app, s, &classes, parts ? NULL : part)))
        st = tnn_names_make(app, (const char *const *)classes.at, classes.count, names);
    s->o.classes = (int64_t)classes.count;
    texts_fini(&classes);
    free(below);
    return st;
}

tn_status tnn_images_rename(tn_app *app, tnn_images *s, const struct tnn_names *from,
                            const struct tnn_texts *to)
{
    for (int64_t k = 0; s->file && tnn_names_at(from, k); k++) /* labels are in the records */
        if (k >= (int64_t)to->count || strcmp(tnn_names_at(from, k), to->at[k]) != 0)
            return tnn_fail(app, TN_E_KEY, "%s: class %lld is \"%s\", that of the model is \"%s\"", s->file,
                            (long long)k, tnn_names_at(from, k), k < (int64_t)to->count ? to->at[k] : "");
    for (int64_t i = 0; s->labels && from && i < s->count; i++) {
        const char *name = tnn_names_at(from, (int64_t)s->labels[s->first + i]);
        const int64_t k = name ? tnn_texts_find(to, name) : -1;

        if (k < 0)
            return tnn_fail(app, TN_E_KEY, "%s: the folder \"%s\" is none of the model's classes", s->root,
                            name ? name : "");
        s->labels[s->first + i] = (float)k;
    }
    return TN_OK;
}

/* ---- lists ---- */

static int by_id(const void *a, const void *b)
{
    const uint64_t x = ((const tnn_listed *)a)->id, y = ((const tnn_listed *)b)->id;

    return (x > y) - (x < y);
}

/* "17\t3\tcat/1.jpg", with label_width labels; 0: any. `label`: where the next one goes. */
static tn_status line_take(tn_app *app, tnn_images *s, char *line, size_t number, float **label)
{
    const size_t width = (size_t)s->o.label_width;
    tnn_listed *row = &s->listed[s->listed_count];
    char *at = line, *end;

    *row = (tnn_listed){strtoull(at, &end, 10), (size_t)(*label - s->list_labels), 0};
    for (char *next; end != at && *end == '\t' && (!width || row->count < width); end = next) {
        const double v = tnn_number_read(end + 1, &next);

        if (next == end + 1 || *next != '\t')
            break; /* this is the path */
        *(*label)++ = (float)v;
        row->count++;
    }
    if (end == at || *end != '\t' || (width && row->count < width))
        return tnn_fail(app, TN_E_FORMAT,
                        "%s, line %zu: a number, %s labels and a path are needed, with tabs between",
                        s->o.list, number, width ? "label_width" : "its");
    s->listed_count++;
    return TN_OK;
}

static size_t marks_in(const char *line, int mark)
{
    size_t count = 0;

    for (; (line = strchr(line, mark)); line++)
        count++;
    return count;
}

static size_t marks_count(FILE *file, int mark)
{
    size_t count = 0;
    int c;

    while ((c = getc(file)) != EOF)
        count += c == mark;
    rewind(file);
    return count;
}

tn_status tnn_images_list(tn_app *app, tnn_images *s)
{
    FILE *file = fopen(s->o.list, "re");
    char *line = NULL;
    size_t room = 0, number = 0, count, tabs;
    float *label;

    if (!file)
        return tnn_fail_open(app, s->o.list);
    count = marks_count(file, '\n') + 1;
    tabs = marks_count(file, '\t');
    s->listed = tnn_alloc(app, count, sizeof *s->listed);
    label = s->list_labels = tnn_alloc(app, tabs + 1, sizeof *s->list_labels);
    while (!app->status && getline(&line, &room, file) >= 0) {
        number++;
        if (strspn(line, " \t\r\n") == strlen(line))
            continue;
        if (s->listed_count == count || (size_t)(label - s->list_labels) + marks_in(line, '\t') > tabs)
            (void)tnn_fail(app, TN_E_IO, "%s grows while it is read", s->o.list);
        else
            (void)line_take(app, s, line, number, &label);
    }
    free(line);
    (void)fclose(file);
    if (!app->status && s->listed_count)
        qsort(s->listed, s->listed_count, sizeof *s->listed, by_id);
    return app->status;
}

/* ---- records ---- */

static int by_offset(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* MXNet's share of an index: ceil(n / parts) records each, the last ones fewer. */
static tn_status index_take(tn_app *app, tnn_images *s, int64_t parts, int64_t part)
{
    tn_record_place *places = NULL;
    size_t count = 0;
    int64_t step, begin, end;

    if (tnn_check(app, tn_record_index_load(s->o.index, &count, &places), "%s", s->o.index))
        return app->status;
    step = ((int64_t)count + parts - 1) / parts;
    begin = step * part < (int64_t)count ? step * part : (int64_t)count;
    end = begin + step < (int64_t)count ? begin + step : (int64_t)count;
    s->count = end - begin;
    if ((s->places = tnn_alloc(app, count + 1, sizeof *s->places))) {
        for (size_t i = 0; i < count; i++)
            s->places[i] = places[i].offset;
        if (count)
            qsort(s->places, count, sizeof *s->places, by_offset);
        memmove(s->places, s->places + begin, (size_t)s->count * sizeof *s->places);
    }
    tn_free(places);
    return app->status;
}

/* All records of a share of the file's bytes. */
static tn_status places_scan(tn_app *app, tnn_images *s, int64_t parts, int64_t part)
{
    tn_record_reader *r = NULL;
    size_t room = 0;
    tn_status st = tn_record_open(s->file, (uint32_t)part, (uint32_t)parts, &r);

    while (!st) {
        uint64_t bytes, offset, *grown;

        if ((st = tn_record_peek(r, NULL, 0, &bytes, &offset)) || offset == UINT64_MAX)
            break;
        if ((size_t)s->count == room) {
            room = room ? 2 * room : 1024;
            if (!(grown = realloc(s->places, room * sizeof *grown))) {
                (void)tnn_no_memory(app);
                break;
            }
            s->places = grown;
        }
        s->places[s->count++] = offset;
    }
    tn_record_close(r);
    return app->status ? app->status : tnn_check(app, st, "%s", s->file);
}

#define HEAD_BYTES 24 /* of a record: flag (u32, how many labels follow), label (f32), two numbers (u64) */

/* Heads of the share's records, each handed to `look`, which ends it with false. */
static tn_status heads_read(tn_app *app, tnn_images *s,
                            bool (*look)(const unsigned char *head, uint64_t bytes, void *arg), void *arg)
{
    unsigned char head[HEAD_BYTES];
    tn_record_reader *r = NULL;
    tn_status st = tn_record_open(s->file, 0, 1, &r);

    for (int64_t i = 0; !st && i < s->count; i++) {
        uint64_t bytes, offset;

        if ((st = tn_record_seek(r, s->places[i])) ||
            (st = tn_record_peek(r, head, sizeof head, &bytes, &offset)) || !look(head, bytes, arg))
            break;
    }
    tn_record_close(r);
    return tnn_check(app, st, "%s", s->file);
}

static bool class_look(const unsigned char *head, uint64_t bytes, void *arg)
{
    float label, *most = arg;

    memcpy(&label, head + 4, sizeof label);
    if (bytes < HEAD_BYTES || !(label >= 0 && label < 16777216) || label != (float)(int64_t)label) {
        *most = -1;
        return false;
    }
    *most = label > *most ? label : *most;
    return true;
}

static bool width_look(const unsigned char *head, uint64_t bytes, void *arg)
{
    uint32_t count;
    int64_t *most = arg;

    memcpy(&count, head, sizeof count);
    if (bytes == HEAD_BYTES && count <= LABELS_MAX && count > *most)
        *most = count; /* one with more is named when it is read */
    return true;
}

tn_status tnn_images_widest(tn_app *app, tnn_images *s, int64_t *most)
{
    *most = 0;
    if (!s->listed)
        return heads_read(app, s, width_look, most);
    for (size_t i = 0; i < s->listed_count; i++)
        *most = (int64_t)s->listed[i].count > *most ? (int64_t)s->listed[i].count : *most;
    return TN_OK;
}

tn_status tnn_images_records(tn_app *app, tnn_images *s, int64_t parts, int64_t part, int64_t *classes)
{
    float most = -1;
    tn_status st;

    if (parts > UINT32_MAX)
        return tnn_fail(app, TN_E_ARG, "%s: %lld parts", s->file, (long long)parts);
    st = s->o.index && *s->o.index ? index_take(app, s, parts, part) : places_scan(app, s, parts, part);
    if (!st && !s->count)
        return tnn_fail(app, TN_E_ARG, "%s: part %lld of %lld has no records", s->file, (long long)part,
                        (long long)parts);
    if (!st && s->count > UINT32_MAX)
        return tnn_fail(app, TN_E_UNSUPPORTED, "%s has more than 2^32 records", s->file);
    if (!st && !s->o.classes && s->o.label_width == 1 && !s->o.list) {
        st = heads_read(app, s, class_look, &most);
        *classes = (int64_t)most + 1;
    }
    return st;
}
