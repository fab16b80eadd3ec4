/*
 * tenon plugins list: the notes of all plugins found. Nothing is loaded into this process, unless --ops asks
 * for kernels: what would be loaded at start is taken out of the options. Plugins that need a device are
 * asked for it as `tenon doctor` asks them, each in a process of its own.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/doctor.h"
#include "plugins/plugins.h"

#define SYSTEM_FOLDER "/tenon/plugins-1/"

static const char *const nothing_at_start[] = {"plugins.require=", "device.default=cpu", NULL};
static const char *const states[] = {[TN_PLUGIN_REFUSED] = "refused",
                                     [TN_PLUGIN_READY] = "ready",
                                     [TN_PLUGIN_LOADED] = "loaded",
                                     [TN_PLUGIN_FAILED] = "failed"};

/* ---- shared with the other commands ---- */

tn_app *cli_plugins_open(const cli_args *args)
{
    cli_args *plain = malloc(sizeof *plain); /* its texts stay args' */
    tn_app *app;

    if (!plain) {
        cli_error("out of memory");
        return NULL;
    }
    *plain = *args;
    for (size_t i = 0; nothing_at_start[i]; i++)
        if (plain->setting_count < CLI_SETTINGS_MAX)
            plain->settings[plain->setting_count++] = (char *)nothing_at_start[i];
    plain->settings[plain->setting_count] = NULL;
    app = cli_app_open(plain, NULL);
    free(plain);
    return app;
}

bool cli_plugin_refused(const tn_plugin_info *p)
{
    return p->state == TN_PLUGIN_REFUSED || p->state == TN_PLUGIN_FAILED;
}

const char *cli_plugin_state(const tn_plugin_info *p)
{
    return p->state >= 0 && p->state <= TN_PLUGIN_FAILED ? states[p->state] : "?";
}

bool cli_plugin_at(tn_app *app, size_t index, tn_plugin_info *out)
{
    *out = (tn_plugin_info){.struct_size = TN_SIZE(tn_plugin_info)};
    return tn_app_ok(app) && !tn_plugin_at(tn_app_ctx(app), index, out);
}

bool cli_plugin_is_file(const char *word)
{
    const size_t length = strlen(word);

    return strchr(word, '/') || (length > 3 && !strcmp(word + length - 3, ".so"));
}

const char *cli_plugin_package(const tn_plugin_info *p, char *out, size_t bytes)
{
    const char *end = strrchr(p->path, '/');

    if (strstr(p->path, SYSTEM_FOLDER))
        (void)snprintf(out, bytes, "tenon-plugin-%s", p->name);
    else
        (void)snprintf(out, bytes, "%.*s", end ? (int)(end - p->path) : 0, p->path);
    return out;
}

/* The kinds of what it provides, each once: "kernels@cpu op:acme" gives "kernels, op". */
static void kinds_of(const tn_plugin_info *p, char *text, size_t bytes)
{
    size_t used = 0;

    text[0] = '\0';
    for (const char *item = p->provides; *item;) {
        size_t length = strcspn(item, " "), word = strcspn(item, ":@ ");
        char kind[32];

        (void)snprintf(kind, sizeof kind, "%.*s", (int)word, item);
        if (word && !strstr(text, kind) && used < bytes)
            used += (size_t)snprintf(text + used, bytes - used, "%s%s", used ? ", " : "", kind);
        item += length + (item[length] == ' ');
    }
}

/* ---- a table ---- */

bool cli_table_row(cli_column_table *t, const char *const *cells)
{
    if (t->rows == t->room) {
        const size_t room = t->room ? 2 * t->room : 64;
        void *more = realloc(t->cells, room * t->columns * sizeof *t->cells);

        if (!more)
            return false;
        t->cells = more;
        t->room = room;
    }
    for (size_t c = 0; c < t->columns; c++) {
        char *copy = strdup(cells[c] && *cells[c] ? cells[c] : "-");

        if (!(t->cells[t->rows * t->columns + c] = copy)) {
            while (c-- > 0)
                free((char *)t->cells[t->rows * t->columns + c]);
            return false;
        }
        cli_clean(copy, '?');
    }
    t->rows++;
    return true;
}

/* Columns of the widest cell. */
static int width_of(const cli_column_table *t, size_t column)
{
    int width = 0;

    for (size_t i = 0; i < t->rows; i++) {
        const int length = (int)cli_columns(t->cells[i * t->columns + column]);

        width = length > width ? length : width;
    }
    return width;
}

/* On a terminal that is too narrow, what does not stand beside the first columns goes below them. */
void cli_table_print(const cli_column_table *t)
{
    const int columns = cli_line_columns();
    size_t beside = 0;

    for (int used = 0; beside < t->columns; beside++) {
        used += width_of(t, beside) + 2;
        if (columns && beside && used - 2 >= columns)
            break;
    }
    for (size_t r = 0; r < t->rows; r++) {
        int used = 0;

        for (size_t c = 0; c < beside; c++) {
            const char *cell = t->cells[r * t->columns + c];
            const int pad = c + 1 < t->columns ? width_of(t, c) + 2 - (int)cli_columns(cell) : 0;

            used = cli_line_wrap(cell, used, columns);
            (void)printf("%*s", c + 1 < beside || beside == t->columns ? pad : 0, "");
            used += pad;
        }
        (void)fputs(beside < t->columns ? "\n  " : "", stdout);
        used = 2;
        for (size_t c = beside; c < t->columns; c++) {
            char *cell = cli_format("  %s", t->cells[r * t->columns + c]);

            used = cell ? cli_line_wrap(cell, used, columns) : used;
            free(cell);
        }
        (void)putchar('\n');
    }
}

void cli_table_free(cli_column_table *t)
{
    for (size_t i = 0; i < t->rows * t->columns; i++)
        free((char *)t->cells[i]);
    free(t->cells);
}

/* ---- the list ---- */

#define COLUMNS 7
#define COLUMNS_ALL 11

/* By a plugin's number: why its device is not there, or NULL. */
typedef struct absences {
    char **why;
    size_t count;
} absences;

static const char *absent(const absences *a, size_t index)
{
    return index < a->count ? a->why[index] : NULL;
}

/* Before the list opens its own: what forks has no threads then. 0: done, else the exit code. */
static int absences_find(absences *a, const cli_args *args)
{
    tn_app *app = cli_plugins_open(args);
    tn_plugin_info p;
    size_t count = 0;
    int code;

    if (tn_app_ok(app) && !tn_plugin_count(tn_app_ctx(app), &count) &&
        (a->why = calloc(count + 1, sizeof *a->why)))
        a->count = count;
    for (size_t i = 0; i < a->count; i++) /* those that are asked: marked by an empty text */
        if (cli_plugin_at(app, i, &p) && p.state == TN_PLUGIN_READY &&
            (strstr(p.provides, "device:") || strstr(p.provides, "transport:rdma")))
            a->why[i] = strdup("");
    code = tn_app_close(app);
    for (size_t i = 0; i < a->count; i++)
        if (a->why[i]) {
            free(a->why[i]);
            a->why[i] = doctor_no_device(args, i);
        }
    return code;
}

static void absences_free(absences *a)
{
    for (size_t i = 0; i < a->count; i++)
        free(a->why[i]);
    free(a->why);
}

static bool row_add(cli_column_table *t, const tn_plugin_info *p, const char *state)
{
    char kinds[300], abi[32], package[4200], bytes[32];
    const char *cells[COLUMNS_ALL] = {p->name, kinds,  p->version, abi,         state,  p->provides,
                                      package, p->isa, bytes,      p->build_id, p->path};

    kinds_of(p, kinds, sizeof kinds);
    (void)snprintf(abi, sizeof abi, "%u.%u", (unsigned)p->abi_major, (unsigned)p->abi_minor);
    (void)snprintf(bytes, sizeof bytes, "%llu KiB", (unsigned long long)(p->file_bytes + 1023) / 1024);
    (void)cli_plugin_package(p, package, sizeof package);
    return cli_table_row(t, cells);
}

/* Libraries of a plugin that the linker would not find, read from its file: "libx.so.1, liby.so". */
static const char *libraries_missing(tn_app *app, size_t index, char *out, size_t bytes)
{
    tn_library_info l = {.struct_size = TN_SIZE(tn_library_info)};
    size_t used = 0;

    out[0] = '\0';
    for (size_t i = 0; !tn_plugin_library(tn_app_ctx(app), index, i, &l) && used < bytes; i++)
        if (!l.found)
            used += (size_t)snprintf(out + used, bytes - used, "%s%s", used ? ", " : "", l.name);
    return out;
}

static void missing_print(tn_app *app, size_t count)
{
    char missing[512];
    tn_plugin_info p;

    for (size_t i = 0; i < count; i++)
        if (cli_plugin_at(app, i, &p) && !cli_plugin_refused(&p) &&
            *libraries_missing(app, i, missing, sizeof missing))
            (void)printf("will not load: %s: not found: %s\n", p.name, missing);
}

const char *cli_plugin_colon(const char *name, const char *why)
{
    const size_t length = strlen(name);

    return !strncmp(why, name, length) && why[length] == ':' ? "" : ": ";
}

static void no_device_print(const char *name, const char *why)
{
    const char *colon = cli_plugin_colon(name, why);

    (void)printf("no device: %s%s%s\n", *colon ? name : "", colon, why);
}

static void text_print(tn_app *app, const cli_args *args, size_t count, const absences *a)
{
    static const char *const head[COLUMNS_ALL] = {"NAME",    "KIND",  "VERSION", "ABI",   "STATE", "GIVES",
                                                  "PACKAGE", "NEEDS", "SIZE",    "BUILD", "FILE"};
    cli_column_table t = {.columns = args->value[OPT_REFUSED] ? COLUMNS_ALL : COLUMNS};
    bool ok = cli_table_row(&t, head);
    tn_plugin_info p;

    for (size_t i = 0; ok && i < count; i++)
        if (cli_plugin_at(app, i, &p) && !cli_plugin_refused(&p))
            ok = row_add(&t, &p, absent(a, i) ? "no device" : cli_plugin_state(&p));
    if (ok)
        cli_table_print(&t);
    else
        (void)tn_app_fail(app, TN_E_NOMEM, "out of memory");
    cli_table_free(&t);
    missing_print(app, count);
    for (size_t i = 0; i < count; i++)
        if (absent(a, i) && cli_plugin_at(app, i, &p))
            no_device_print(p.name, absent(a, i));
    for (size_t i = 0; i < count; i++) {
        if (!cli_plugin_at(app, i, &p) || !cli_plugin_refused(&p))
            continue;
        if (p.refusal)
            (void)printf("rejected: %s: L%02u: %s\n", *p.path ? p.path : p.name, (unsigned)p.refusal,
                         p.reason);
        else
            (void)printf("left out: %s: %s\n", *p.path ? p.path : p.name, p.reason);
    }
}

json_t *cli_plugin_json(const tn_plugin_info *p)
{
    char package[4200];
    const struct {
        const char *key, *text;
    } texts[] = {
        {"name", p->name},
        {"version", p->version},
        {"vendor", p->vendor},
        {"license", p->license},
        {"summary", p->summary},
        {"isa", p->isa},
        {"platform", p->abi},
        {"build_id", p->build_id},
        {"path", p->path},
        {"state", cli_plugin_state(p)},
        {"provides", p->provides},
        {"reason", p->reason},
        {"package", cli_plugin_package(p, package, sizeof package)},
    };
    json_t *o = json_object();
    char abi[32], code[16] = "";

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        (void)json_object_set_new(o, texts[i].key, cli_json_text(texts[i].text));
    (void)snprintf(abi, sizeof abi, "%u.%u", (unsigned)p->abi_major, (unsigned)p->abi_minor);
    if (p->refusal)
        (void)snprintf(code, sizeof code, "L%02u", (unsigned)p->refusal);
    (void)json_object_set_new(o, "abi", json_string(abi));
    (void)json_object_set_new(o, "abi_min", json_integer(p->abi_minor_min));
    (void)json_object_set_new(o, "bytes", json_integer((json_int_t)p->file_bytes));
    (void)json_object_set_new(o, "refusal", *code ? json_string(code) : json_null());
    return o;
}

static json_t *listed_json(tn_app *app, size_t index, const tn_plugin_info *p, const char *why)
{
    json_t *o = cli_plugin_json(p);
    char missing[512];

    if (!cli_plugin_refused(p))
        (void)json_object_set_new(o, "missing",
                                  cli_json_text(libraries_missing(app, index, missing, sizeof missing)));
    if (why) {
        (void)json_object_set_new(o, "state", json_string("no device"));
        (void)json_object_set_new(o, "reason", cli_json_text(why));
    }
    return o;
}

/* ---- --ops: kernels of each operator ---- */

tn_kernel_info *cli_kernels(tn_app *app)
{
    tn_kernel_info *list;
    size_t count = 0, used = 0;

    (void)tn_kernel_count(tn_app_ctx(app), &count);
    list = calloc(count + 1, sizeof *list);
    if (!list)
        (void)tn_app_fail(app, TN_E_NOMEM, "out of memory");
    for (size_t i = 0; list && i < count; i++) {
        list[used].struct_size = TN_SIZE(tn_kernel_info);
        used += !tn_kernel_at(tn_app_ctx(app), i, &list[used]);
    }
    return list;
}

bool cli_kernel_letters(const tn_kernel_info *kernels, const char *plugin, const char *op,
                        char out[CLI_LETTERS])
{
    static const char backward[] = "_backward_";
    bool forward = false, back = false, deterministic = true, strided = false, half = false;

    for (const tn_kernel_info *k = kernels; k->op; k++) {
        const bool is_back = !strncmp(k->op, backward, sizeof backward - 1);

        if (strcmp(k->plugin, plugin) || strcmp(k->op + (is_back ? sizeof backward - 1 : 0), op))
            continue;
        forward |= !is_back;
        back |= is_back;
        deterministic &= (k->flags & TN_KERNEL_IS_DETERMINISTIC) != 0;
        strided |= (k->flags & TN_KERNEL_IS_STRIDED) != 0;
        for (const char *const *t = k->types; *t; t++)
            half |= strstr(*t, "f16") != NULL && strcmp(strstr(*t, "f16"), "bf16");
    }
    (void)snprintf(out, CLI_LETTERS, "%c%c%c%c%c", forward ? 'F' : '.', back ? 'B' : '.',
                   deterministic ? 'D' : '.', strided ? 'S' : '.', half ? 'h' : '.');
    return forward || back;
}

#define OPS_PLUGINS 16 /* columns of the table */

/* Loads what has kernels; one that cannot be is said and passed over. Returns how many have some. */
static size_t kernels_load(tn_app *app, size_t count, const char *names[OPS_PLUGINS])
{
    size_t used = 0;
    tn_plugin_info p;

    for (size_t i = 0; i < count && used < OPS_PLUGINS; i++) {
        if (!cli_plugin_at(app, i, &p) || cli_plugin_refused(&p) || !strstr(p.provides, "kernels@"))
            continue;
        if (tn_plugin_load(tn_app_ctx(app), p.name))
            cli_error("%s: %s", p.name, tn_error_text());
        else
            names[used++] = p.name;
    }
    return used;
}

static bool ops_row(const tn_kernel_info *kernels, cli_column_table *t, json_t *list, const char *op,
                    const char *const *names)
{
    char letters[OPS_PLUGINS][CLI_LETTERS];
    const char *cells[OPS_PLUGINS + 1] = {op};
    json_t *row = list ? json_object() : NULL;
    bool any = false;

    for (size_t i = 0; i + 1 < t->columns; i++) {
        const bool has = cli_kernel_letters(kernels, names[i], op, letters[i]);

        any |= has;
        cells[i + 1] = has ? letters[i] : "";
        if (has && row)
            (void)json_object_set_new(row, names[i], json_string(letters[i]));
    }
    if (any && list)
        (void)json_object_set_new(list, op, row);
    else
        json_decref(row);
    return !any || list || cli_table_row(t, cells);
}

static void ops_print(tn_app *app, bool json, size_t count)
{
    const char *names[OPS_PLUGINS + 1] = {"OPERATOR"};
    cli_column_table t = {.columns = 1 + kernels_load(app, count, names + 1)};
    json_t *list = json ? json_object() : NULL;
    tn_kernel_info *kernels = cli_kernels(app);
    bool ok = kernels && cli_table_row(&t, names);
    size_t ops = 0;

    (void)tn_app_check(app, tn_op_count(tn_app_ctx(app), &ops));
    for (size_t i = 0; ok && i < ops; i++) {
        tn_op_info o = {.struct_size = TN_SIZE(tn_op_info)};

        if (!tn_op_at(tn_app_ctx(app), i, &o) && strncmp(o.name, "_backward_", 10) != 0)
            ok = ops_row(kernels, &t, list, o.name, names + 1);
    }
    if (!ok)
        (void)tn_app_fail(app, TN_E_NOMEM, "out of memory");
    else if (json)
        cli_json_line(json_pack("{s:o}", "ops", list));
    else
        cli_table_print(&t);
    cli_table_free(&t);
    free(kernels);
}

/* ---- --exists ---- */

/* As versions: numbers by value, other characters as they are. */
static int version_compare(const char *a, const char *b)
{
    while (*a || *b) {
        char *a_end, *b_end;
        const unsigned long x = strtoul(a, &a_end, 10), y = strtoul(b, &b_end, 10);

        if (a_end != a && b_end != b && x != y)
            return x < y ? -1 : 1;
        if (a_end == a && b_end == b && *a != *b)
            return *a < *b ? -1 : 1;
        if ((a_end == a) != (b_end == b))
            return a_end == a ? -1 : 1;
        a = a_end != a ? a_end : a + (*a != '\0');
        b = b_end != b ? b_end : b + (*b != '\0');
    }
    return 0;
}

static int exists(tn_app *app, const cli_args *args, size_t count)
{
    const char *name = args->value[OPT_EXISTS], *least = args->value[OPT_AT_LEAST];
    char missing[512];
    tn_plugin_info p;

    for (size_t i = 0; i < count; i++)
        if (cli_plugin_at(app, i, &p) && !cli_plugin_refused(&p) && !strcmp(p.name, name) &&
            !*libraries_missing(app, i, missing, sizeof missing))
            return !least || version_compare(p.version, least) >= 0 ? 0 : CLI_EXIT_MISSING;
    return CLI_EXIT_MISSING;
}

int cmd_plugins_list(const cli_args *args)
{
    const bool json = args->value[OPT_JSON] != NULL;
    absences a = {.count = 0};
    tn_app *app;
    size_t count = 0;
    int code = 0, closed;

    if (args->value[OPT_AT_LEAST] && !args->value[OPT_EXISTS]) {
        cli_error("--at-least goes with --exists NAME");
        return CLI_EXIT_USAGE;
    }
    if (args->value[OPT_AT_LEAST] && !isdigit((unsigned char)*args->value[OPT_AT_LEAST])) {
        cli_error("--at-least %s: a version such as 0.1.0 is needed", args->value[OPT_AT_LEAST]);
        return CLI_EXIT_USAGE;
    }
    if (!args->value[OPT_EXISTS] && !args->value[OPT_OPS] && (code = absences_find(&a, args))) {
        absences_free(&a);
        return code;
    }
    app = cli_plugins_open(args);
    if (!tn_app_ok(app) || tn_app_check(app, tn_plugin_count(tn_app_ctx(app), &count))) {
        absences_free(&a);
        return tn_app_close(app);
    }
    if (args->value[OPT_EXISTS]) {
        code = exists(app, args, count);
    } else if (args->value[OPT_OPS]) {
        ops_print(app, json, count);
    } else if (json) {
        json_t *list = json_array();
        tn_plugin_info p;

        for (size_t i = 0; i < count; i++)
            if (cli_plugin_at(app, i, &p))
                (void)json_array_append_new(list, listed_json(app, i, &p, absent(&a, i)));
        cli_json_line(json_pack("{s:o}", "plugins", list));
    } else {
        text_print(app, args, count, &a);
    }
    absences_free(&a);
    closed = tn_app_close(app);
    return closed ? closed : code;
}
