/*
 * tenon plugins new: a folder with a plugin of one's own, made from the installed templates.
 *
 * A template is a folder of text files. Every token of its kind is replaced by the new name, in texts and in
 * names of files. All is written into a folder beside the new one, which gets its name when it is whole, so a
 * failure leaves nothing behind.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

#define NAME_BYTES 31         /* of a plugin's name: its note has room for these */
#define FILE_BYTES (1u << 20) /* of a template's file */
#define DEPTH_MAX 4           /* folders in folders */
#define PATH_BYTES 4096
#define TOKENS_MAX 5
#define COMMON "common"  /* the folder of what every kind has */
#define FOLDER_MODE 0755 /* whatever the umask lets through: a plugin in a folder of a group's is refused */

typedef enum form { AS_GIVEN, UNDERSCORES, CAPITALS } form; /* acme-fft, acme_fft, ACME_FFT */

typedef struct template_kind {
    const char *name, *what; /* what: gets the plugin's name, "a device"; NULL: nothing does */
    const char *gives;       /* as in a note's `provides` */
    struct {
        const char *text;
        form form;
    } tokens[TOKENS_MAX]; /* ended by NULL, or all of them */
} template_kind;

static const template_kind kinds[] = {
    {"operator",
     "an operator",
     "op",
     {{"acme-operator", AS_GIVEN},
      {"acme-plugin", AS_GIVEN},
      {"acme_operator", UNDERSCORES},
      {"acme_scale_shift", UNDERSCORES},
      {"ACME_OPERATOR", CAPITALS}}},
    {"kernel",
     NULL,
     "kernels",
     {{"acme-kernel", AS_GIVEN},
      {"acme-plugin", AS_GIVEN},
      {"acme_kernel", UNDERSCORES},
      {"ACME_KERNEL", CAPITALS}}},
    {"device",
     "a device",
     "device",
     {{"acme-device", AS_GIVEN},
      {"acme-plugin", AS_GIVEN},
      {"acme_device", UNDERSCORES},
      {"ACME_DEVICE", CAPITALS}}},
    {"device-async",
     "a device",
     "device",
     {{"acme-async", AS_GIVEN},
      {"acme-plugin", AS_GIVEN},
      {"acme_async", UNDERSCORES},
      {"ACME_ASYNC", CAPITALS}}},
    {"pool",
     "a pool",
     "pool",
     {{"acme-pool", AS_GIVEN},
      {"acme-plugin", AS_GIVEN},
      {"acme_pool", UNDERSCORES},
      {"first-fit", AS_GIVEN},
      {"ACME_POOL", CAPITALS}}},
    {"transport",
     "a transport",
     "transport",
     {{"acme-transport", AS_GIVEN},
      {"acme-plugin", AS_GIVEN},
      {"acme_transport", UNDERSCORES},
      {"acme_tcp", UNDERSCORES},
      {"ACME_TRANSPORT", CAPITALS}}},
    {"collective",
     "a collective",
     "collective",
     {{"acme-collective", AS_GIVEN},
      {"acme-plugin", AS_GIVEN},
      {"acme_collective", UNDERSCORES},
      {"acme_star", UNDERSCORES},
      {"ACME_COLLECTIVE", CAPITALS}}},
};

#define KINDS (sizeof kinds / sizeof *kinds)
#define KIND_WORDS "operator, kernel, device, device-async, pool, transport, collective"

typedef struct making {
    const template_kind *kind;
    char names[3][NAME_BYTES + 1]; /* by form */
    json_t *files;                 /* relative to the new folder */
} making;

/* ---- names --------------------------------------------------------------------------------------------- */

static const char *kind_name(const void *from, size_t index)
{
    (void)from;
    return index < KINDS ? kinds[index].name : NULL;
}

static const template_kind *kind_find(const char *name)
{
    char similar[CLI_SIMILAR_BYTES];

    if (!name || !*name) {
        cli_error("--kind says what to make: " KIND_WORDS);
        return NULL;
    }
    for (size_t i = 0; i < KINDS; i++)
        if (!strcmp(kinds[i].name, name))
            return &kinds[i];
    cli_error("there is no template of kind \"%s\"; kinds are " KIND_WORDS "%s", name,
              cli_similar_text(cli_nearest(name, kind_name, NULL), similar));
    return NULL;
}

static bool names_make(making *m, const char *name)
{
    const size_t length = strlen(name), good = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");

    if (!length || length > NAME_BYTES || good != length || name[0] < 'a' || name[0] > 'z') {
        cli_error("a plugin cannot be called \"%s\": a name has 1 to %d characters, a to z, 0 to 9 and -, "
                  "and begins "
                  "with a letter",
                  name, NAME_BYTES);
        return false;
    }
    for (size_t i = 0; i <= length; i++) {
        const char c = name[i];

        m->names[AS_GIVEN][i] = c;
        m->names[UNDERSCORES][i] = c == '-' ? '_' : c;
        m->names[CAPITALS][i] = c == '-' ? '_' : c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
    }
    return true;
}

static bool op_called(const tn_op_info *op, const char *name)
{
    bool found = !strcmp(op->name, name);

    for (size_t i = 0; !found && op->aliases[i]; i++)
        found = !strcmp(op->aliases[i], name);
    return found;
}

/* Whether one of `words`, divided by spaces, is "kind:name". */
static bool word_given(const char *words, const char *kind, const char *name)
{
    char word[NAME_BYTES + 16];
    const size_t length = (size_t)snprintf(word, sizeof word, "%s:%s", kind, name);

    for (const char *at = words; (at = strstr(at, word)) != NULL; at++)
        if ((at == words || at[-1] == ' ') && (!at[length] || at[length] == ' '))
            return true;
    return false;
}

/* A plugin of this name is installed, or what it is to bring is there: the new one could not be loaded, or
 * nobody would get to what it brings. */
static bool name_taken(const making *m)
{
    static const char *const quiet[] = {"plugins.require=", "device.default=cpu", NULL};
    const tn_open_options options = {.struct_size = TN_SIZE(tn_open_options), .settings = quiet};
    tn_plugin_info plugin = {.struct_size = TN_SIZE(tn_plugin_info)};
    tn_op_info op = {.struct_size = TN_SIZE(tn_op_info)};
    const bool is_op = !strcmp(m->kind->gives, "op");
    const char *name = m->names[AS_GIVEN], *what = NULL;
    size_t plugins = 0, ops = 0;
    tn_ctx *ctx = NULL;

    if (word_given("device:cpu device:gpu device:cuda pool:none pool:auto transport:auto transport:zmq",
                   m->kind->gives, name))
        what = m->kind->what; /* the core's, and words for others */

    if (tn_open(&options, &ctx) || tn_plugin_count(ctx, &plugins) || tn_op_count(ctx, &ops))
        plugins = ops = 0; /* a broken configuration is no reason to make nothing */
    for (size_t i = 0; !what && i < plugins; i++)
        if (!tn_plugin_at(ctx, i, &plugin))
            what = !strcmp(plugin.name, name)                          ? "a plugin"
                   : word_given(plugin.provides, m->kind->gives, name) ? m->kind->what
                                                                       : NULL;
    for (size_t i = 0; !what && is_op && i < ops; i++)
        if (!tn_op_at(ctx, i, &op) && op_called(&op, m->names[UNDERSCORES]))
            what = m->kind->what;
    (void)tn_close(ctx);
    if (what)
        cli_error("there is %s called \"%s\" already; take another name", what,
                  is_op && what == m->kind->what ? m->names[UNDERSCORES] : name);
    return what != NULL;
}

/* `text` with every token replaced; free(). NULL: out of memory, said. */
static char *text_rename(const making *m, const char *text)
{
    const size_t bytes = strlen(text) * (NAME_BYTES + 1) + 1; /* a token has at least one byte */
    char *out = malloc(bytes), *to = out;

    if (!out) {
        cli_error("out of memory");
        return NULL;
    }
    while (*text) {
        const char *name = NULL;

        for (size_t i = 0; !name && i < TOKENS_MAX && m->kind->tokens[i].text; i++) {
            const size_t length = strlen(m->kind->tokens[i].text);

            if (strncmp(text, m->kind->tokens[i].text, length))
                continue;
            name = m->names[m->kind->tokens[i].form];
            text += length;
        }
        if (name) {
            const size_t length = strlen(name);

            memcpy(to, name, length);
            to += length;
        } else {
            *to++ = *text++;
        }
    }
    *to = '\0';
    return out;
}

/* ---- files --------------------------------------------------------------------------------------------- */

static bool failed(const char *what, const char *path)
{
    cli_error("cannot %s %s: %s", what, path, strerror(errno));
    return false;
}

/* The whole file as text; free(). NULL: said. */
static char *file_read(const char *path)
{
    FILE *f = fopen(path, "re");
    char *text = f ? malloc(FILE_BYTES + 1) : NULL;
    size_t bytes = text ? fread(text, 1, FILE_BYTES + 1, f) : 0;
    const bool good = text && !ferror(f) && bytes <= FILE_BYTES && !memchr(text, '\0', bytes);

    if (!f || (text && ferror(f)))
        (void)failed("read", path);
    else if (!good)
        cli_error("%s is no template: a text of at most %u bytes was expected", path, FILE_BYTES);
    if (f)
        (void)fclose(f);
    if (!good) {
        free(text);
        return NULL;
    }
    text[bytes] = '\0';
    return text;
}

/* A script is made executable, whatever the modes are in the template's package. */
static bool file_write(const char *path, const char *text)
{
    FILE *f = fopen(path, "wxe");
    bool good = f && fputs(text, f) >= 0;

    if (f)
        good = !fclose(f) && good;
    if (good && !strncmp(text, "#!", 2))
        good = !chmod(path, 0755);
    return good || failed("write", path);
}

/* Frees what it is given. */
static bool file_make(making *m, const char *from, char *to, char *relative)
{
    char *text = to && relative ? file_read(from) : NULL, *renamed = text ? text_rename(m, text) : NULL;
    const bool good = renamed && file_write(to, renamed);

    if (good)
        (void)json_array_append_new(m->files, cli_json_text(relative));
    free(renamed);
    free(text);
    free(relative);
    free(to);
    return good;
}

static int entry_wanted(const struct dirent *e)
{
    return e->d_name[0] != '.';
}

static bool folder_make(making *m, const char *from, const char *to, const char *relative, int depth);

static bool entry_make(making *m, const char *const folder[3], const char *entry, int depth)
{
    char *from = cli_path(folder[0], entry), *name = text_rename(m, entry);
    char *to = name ? cli_path(folder[1], name) : NULL;
    char *relative = name ? cli_format("%s%s%s", folder[2], *folder[2] ? "/" : "", name) : NULL;
    struct stat s;
    bool good = from && to && relative;

    free(name);
    if (good && stat(from, &s))
        good = failed("read", from);
    if (good && S_ISREG(s.st_mode)) {
        good = file_make(m, from, to, relative);
        to = relative = NULL;
    } else if (good && S_ISDIR(s.st_mode)) {
        good =
            (!mkdir(to, FOLDER_MODE) || failed("make", to)) && folder_make(m, from, to, relative, depth + 1);
    }
    free(relative);
    free(to);
    free(from);
    return good;
}

/* Copies what lies in folder `from` into the folder `to`, in the order of the names. */
static bool folder_make(making *m, const char *from, const char *to, const char *relative, int depth)
{
    const char *const folder[3] = {from, to, relative};
    struct dirent **entries = NULL;
    int count = depth < DEPTH_MAX ? scandir(from, &entries, entry_wanted, alphasort) : 0;
    bool good = count >= 0 || failed("read the template", from);

    for (int i = 0; i < count; i++) {
        good = good && entry_make(m, folder, entries[i]->d_name, depth);
        free(entries[i]);
    }
    free((void *)entries);
    return good;
}

static void folder_remove(const char *path, int depth)
{
    struct dirent **entries = NULL;
    int count = depth < DEPTH_MAX ? scandir(path, &entries, entry_wanted, alphasort) : 0;

    for (int i = 0; i < count; i++) {
        char *inner = cli_path(path, entries[i]->d_name);

        if (inner && unlink(inner) && (errno == EISDIR || errno == EPERM))
            folder_remove(inner, depth + 1);
        free(inner);
        free(entries[i]);
    }
    free((void *)entries);
    (void)rmdir(path);
}

/* ---- the command --------------------------------------------------------------------------------------- */

/* Where the templates of this installation lie; false: said. */
static bool template_folder(const char *kind, char out[PATH_BYTES])
{
    char self[PATH_BYTES];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash;
    struct stat s;
    int n;

    self[length > 0 ? length : 0] = '\0';
    if (!(slash = strrchr(self, '/'))) {
        cli_error("cannot find where this program lies: /proc/self/exe: %s", strerror(errno));
        return false;
    }
    *slash = '\0';
    n = snprintf(out, PATH_BYTES, "%s/%s/%s", self, CLI_TEMPLATE_FROM_BIN, kind);
    if (n > 0 && n < PATH_BYTES && !stat(out, &s) && S_ISDIR(s.st_mode))
        return true;
    cli_error("the templates are not installed: there is no %.500s; they come with the headers for plugins "
              "(libtenon-dev)",
              out);
    return false;
}

/* True: nothing is there, or an empty folder. */
static bool place_free(const char *path)
{
    struct stat s;

    if (lstat(path, &s))
        return (errno == ENOENT && cli_folders_above(path)) || failed("make", path);
    if (S_ISDIR(s.st_mode) && !rmdir(path))
        return !mkdir(path, FOLDER_MODE) || failed("make", path);
    cli_error("%s is there already%s; nothing was written", path, S_ISDIR(s.st_mode) ? " and not empty" : "");
    return false;
}

static void made_print(const cli_args *args, const making *m, const char *path)
{
    const json_t *file;
    size_t i;

    if (args->value[OPT_JSON]) {
        cli_json_line(json_pack("{s:s, s:s, s:o, s:O}", "name", m->names[AS_GIVEN], "kind", m->kind->name,
                                "folder", cli_json_text(path), "files", m->files));
        return;
    }
    json_array_foreach(m->files, i, file)(void) printf("%s/%s\n", path, json_string_value(file));
    if (!args->value[OPT_QUIET])
        (void)fprintf(stderr, "now: cd %s && make && make test\n", path);
}

static bool make_all(making *m, const char *const from[2], const char *path)
{
    char *aside = cli_format("%s.new-%ld", path, (long)getpid());
    bool good = aside && (!mkdir(aside, FOLDER_MODE) || failed("make", aside));

    if (!good) {
        free(aside);
        return false;
    }
    for (int i = 0; good && i < 2; i++)
        good = folder_make(m, from[i], aside, "", 0);
    if (good && !json_array_size(m->files)) {
        cli_error("the template %s holds no files", from[0]);
        good = false;
    }
    if (good && rename(aside, path))
        good = failed("make", path);
    if (!good)
        folder_remove(aside, 0);
    free(aside);
    return good;
}

int cmd_plugins_new(const cli_args *args)
{
    const char *dir = args->value[OPT_DIR];
    making m = {.kind = kind_find(args->value[OPT_KIND])};
    char own[PATH_BYTES], common[PATH_BYTES], *path;
    bool good;

    if (!m.kind || !names_make(&m, args->words[0]) || name_taken(&m))
        return CLI_EXIT_USAGE;
    if (!template_folder(m.kind->name, own) || !template_folder(COMMON, common))
        return CLI_EXIT_FAILED;
    m.files = json_array();
    path = dir ? cli_path(dir, m.names[AS_GIVEN]) : cli_format("%s", m.names[AS_GIVEN]);
    good = m.files && path && place_free(path) && make_all(&m, (const char *const[]){own, common}, path);
    if (good)
        made_print(args, &m, path);
    json_decref(m.files);
    free(path);
    return good ? 0 : CLI_EXIT_FAILED;
}
