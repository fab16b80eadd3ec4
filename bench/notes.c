/*
 * Reading the notes of 200 plugins: a folder of copies of a real one, each with a name of its own, is scanned
 * as a context does it. Nothing may be mapped; that is looked at, too.
 *
 *     notes [--plugin FILE.so] [--count N] [--runs N] [--json]
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugin/internal.h"

#define BOUND_MS 20.0 /* for 200 */
#define RUNS_MAX 1000
#define COUNT_MAX 1000
#define PLUGIN_BYTES_MAX (64u << 20)

typedef struct setup {
    const char *plugin;
    char folder[64];
    int count, runs;
    bool json;
} setup;

static int failed(const char *what)
{
    fprintf(stderr, "notes: %s: %s\n", what, tni_error_message());
    return 1;
}

/* Copies with names p0000, p0001, … in their notes. */
static int copies_write(const setup *s)
{
    char *bytes = NULL, *note;
    uint64_t size;
    char path[128];
    int status = 0;

    if (tni_file_read_all(s->plugin, PLUGIN_BYTES_MAX, &bytes, &size))
        return failed(s->plugin);
    note = memmem(bytes, size, "\1\0\0\0" TN_NOTE_OWNER "\0\0\0", 12);
    for (int i = 0; note && i < s->count && !status; i++) {
        FILE *file;

        snprintf(note + 12 + offsetof(tn_note_body, name), TN_NOTE_NAME_BYTES, "p%04d", i);
        snprintf(path, sizeof path, "%s/p%04d.so", s->folder, i);
        file = fopen(path, "wb");
        status = !file || fwrite(bytes, 1, size, file) != size;
        if (file)
            status |= fclose(file);
    }
    tni_free(bytes);
    return note ? status : failed("no note in the plugin");
}

static void copies_remove(const setup *s)
{
    char path[128];

    for (int i = 0; i < s->count; i++) {
        snprintf(path, sizeof path, "%s/p%04d.so", s->folder, i);
        unlink(path);
    }
    rmdir(s->folder);
}

/* Whether any file of the folder is mapped now. */
static bool anything_mapped(const setup *s)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    bool found = false;

    while (maps && fgets(line, sizeof line, maps))
        found |= strstr(line, s->folder) != NULL;
    if (maps)
        fclose(maps);
    return found;
}

static int scan_once(const setup *s, double *ms)
{
    tni_options *options = NULL;
    tni_registry *r = NULL;
    char setting[128];
    uint64_t began;
    size_t found = 0;

    snprintf(setting, sizeof setting, "plugins.path=%s", s->folder);
    if (tni_options_create(NULL, &options) || tni_options_set(options, setting))
        return failed("options");
    began = tni_clock_ns();
    if (tni_registry_create(options, NULL, &r))
        return failed("scan");
    *ms = (double)(tni_clock_ns() - began) / 1e6;
    for (size_t i = 0; i < tni_registry_count(r); i++)
        found += strncmp(tni_registry_at(r, i)->path, s->folder, strlen(s->folder)) == 0 &&
                 tni_registry_at(r, i)->state == TNI_PLUGIN_READY;
    if (anything_mapped(s) || found != (size_t)s->count) {
        fprintf(stderr, "notes: %zu of %d files are ready, %s\n", found, s->count,
                anything_mapped(s) ? "and some are mapped" : "none is mapped");
        return 1;
    }
    tni_registry_destroy(r);
    tni_options_destroy(options);
    return 0;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static int measure(const setup *s)
{
    static double ms[RUNS_MAX];
    const double bound = BOUND_MS * s->count / 200;

    for (int i = -3; i < s->runs; i++) /* three to warm the page cache */
        if (scan_once(s, &ms[i < 0 ? 0 : i]))
            return 1;
    qsort(ms, (size_t)s->runs, sizeof *ms, by_value);
    printf(s->json ? "{\"notes_ms\":%.3f,\"min_ms\":%.3f,\"max_ms\":%.3f,\"bound_ms\":%.1f,\"notes\":%d,"
                     "\"runs\":%d}\n"
                   : "notes read: median %.3f ms, min %.3f, max %.3f, bound %.1f; %d notes, %d runs\n",
           ms[s->runs / 2], ms[0], ms[s->runs - 1], bound, s->count, s->runs);
    return ms[s->runs / 2] > bound;
}

/* The plugins of the build lie beside bench/. */
static const char *plugin_default(void)
{
    static char path[TN_PATH_BYTES_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 64);

    path[length < 0 ? 0 : length] = '\0';
    for (int i = 0; i < 2 && strrchr(path, '/'); i++)
        *strrchr(path, '/') = '\0';
    strcat(path, "/lib/tenon/plugins-1/cpu.so");
    return path;
}

int main(int argc, char **argv)
{
    setup s = {.plugin = plugin_default(), .folder = "/tmp/tenon-notes-XXXXXX", .count = 200, .runs = 31};
    int status;

    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--plugin") && i + 1 < argc)
            s.plugin = argv[++i];
        else if (!strcmp(argv[i], "--count") && i + 1 < argc)
            s.count = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--runs") && i + 1 < argc)
            s.runs = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--json"))
            s.json = true;
    }
    umask(022);
    if (s.runs < 1 || s.runs > RUNS_MAX || s.count < 1 || s.count > COUNT_MAX || !mkdtemp(s.folder) ||
        chmod(s.folder, 0755))
        return 1;
    status = copies_write(&s);
    if (!status)
        status = measure(&s);
    copies_remove(&s);
    return status;
}
