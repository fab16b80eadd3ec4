/*
 * The app: the first error and what becomes of it, the objects that die with it, the stack of temporaries.
 *
 * The stack is cut where its owner says: a data set that gives a batch notes the height and releases
 * everything above at its next batch. Scopes nest as loops do; ending an outer one ends those inside.
 */
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors ---- */

/* Exit codes of statuses; rows of the error list with a number of their own know theirs. */
static int exit_code_of(tn_status status, uint32_t number)
{
    static const int codes[] = {
        [TN_OK] = 0,      [TN_E_ARG] = 2,         [TN_E_SHAPE] = 1,       [TN_E_DTYPE] = 1,
        [TN_E_ATTR] = 2,  [TN_E_KEY] = 2,         [TN_E_IO] = 1,          [TN_E_FORMAT] = 4,
        [TN_E_NOMEM] = 5, [TN_E_DEVICE] = 3,      [TN_E_UNSUPPORTED] = 1, [TN_E_TIMEOUT] = 1,
        [TN_E_PEER] = 6,  [TN_E_CANCELLED] = 130, [TN_E_STATE] = 1,       [TN_E_INTERNAL] = 70,
    };
    tn_error_info row = {.struct_size = sizeof row};

    if (number > TN_E_INTERNAL && !tn_error_find(number, &row))
        return row.exit_code;
    return status >= 0 && status <= TN_E_INTERNAL ? codes[status] : 1;
}

bool tnn_ok(const tn_app *app)
{
    return app && !app->status;
}

/* The thread must not go on recording for a program that has stopped. */
static void recording_end(tn_app *app)
{
    if (!app->recording)
        return;
    app->recording = false;
    (void)tn_record_set(0);
    (void)tn_train_set(0);
}

static void fail_with(tn_app *app, tn_status status, uint32_t number)
{
    app->status = status;
    app->number = number;
    app->exit_code = exit_code_of(status, number);
    recording_end(app);
    if (app->options.on_error)
        app->options.on_error(app->options.arg, app->error);
}

/* The app's error: what names and texts hold steers no terminal. Where the format breaks a line stands a
 * blank. */
static void TNN_PRINTF(2, 0) error_write(tn_app *app, const char *format, va_list args)
{
    const bool lines = strchr(format, '\n') != NULL;
    char text[sizeof app->error];

    (void)vsnprintf(text, sizeof text, format, args);
    for (char *c = text; lines && *c; c++)
        if (*c == '\n')
            *c = ' ';
    (void)tn_text_escape(app->error, sizeof app->error, text);
}

tn_status tnn_fail(tn_app *app, tn_status status, const char *format, ...)
{
    va_list args;

    if (!app || app->status)
        return status;
    va_start(args, format);
    error_write(app, format, args);
    va_end(args);
    fail_with(app, status, (uint32_t)status);
    return status;
}

void tnn_fail_text(tn_app *app, tn_status status, uint32_t number, const char *text)
{
    if (app->status)
        return;
    (void)snprintf(app->error, sizeof app->error, "%s", text);
    fail_with(app, status, number);
}

tn_status tnn_fail_absent(tn_app *app, const char *format, ...)
{
    va_list args;

    if (app->status)
        return TN_E_IO;
    va_start(args, format);
    error_write(app, format, args);
    va_end(args);
    fail_with(app, TN_E_IO, TNN_NUMBER_ABSENT);
    return TN_E_IO;
}

tn_status tnn_fail_system(tn_app *app, const char *path)
{
    return tnn_fail(app, tnn_status_of(errno), "%s: %s", path, strerror(errno));
}

tn_status tnn_fail_open(tn_app *app, const char *path)
{
    return errno == ENOENT || errno == ENOTDIR ? tnn_fail_absent(app, "%s: %s", path, strerror(errno))
                                               : tnn_fail_system(app, path);
}

tn_status tnn_check(tn_app *app, tn_status status, const char *format, ...)
{
    const char *text = tn_error_text();
    uint32_t number = tn_error_number();
    va_list args;
    size_t length;

    if (!app || !status || app->status)
        return status;
    va_start(args, format);
    error_write(app, format, args);
    va_end(args);
    length = strlen(app->error);
    if (!strncmp(text, app->error, length)) /* a file's error names the file itself */
        length = 0;
    (void)snprintf(app->error + length, sizeof app->error - length, "%s%s", length ? ": " : "",
                   *text ? text : tn_status_name(status));
    fail_with(app, status, tn_error_code() == status && number ? number : (uint32_t)status);
    return status;
}

tn_status tnn_no_memory(tn_app *app)
{
    return tnn_fail(app, TN_E_NOMEM, "out of memory");
}

int tn_app_ok(const tn_app *app)
{
    return tnn_ok(app);
}

const char *tn_app_error(const tn_app *app)
{
    return !app ? "out of memory" : app->status ? app->error : "";
}

tn_status tn_app_status(const tn_app *app)
{
    return app ? app->status : TN_E_NOMEM;
}

int tn_app_exit_code(const tn_app *app)
{
    return app ? app->exit_code : 5;
}

void tn_app_report(tn_app *app)
{
    if (!app || !app->status || app->reported || !app->options.errors)
        return;
    app->reported = true;
    (void)fprintf(app->options.errors, "error[TN-%04u]: %s\n", (unsigned)app->number, app->error);
    (void)fflush(app->options.errors);
}

void tn_app_clear(tn_app *app)
{
    if (!app || !app->ctx)
        return;
    app->status = TN_OK;
    app->exit_code = 0;
    app->error[0] = '\0';
    app->reported = false;
}

tn_status tn_app_fail(tn_app *app, tn_status status, const char *text)
{
    return status ? tnn_fail(app, status, "%s", text ? text : tn_status_name(status)) : TN_OK;
}

tn_status tn_app_fail_number(tn_app *app, uint32_t number, const char *text)
{
    tn_error_info e = {.struct_size = TN_SIZE(tn_error_info)};
    char clean[sizeof app->error];

    if (tn_error_find(number, &e))
        return tnn_fail(app, TN_E_ARG, "tn_app_fail_number: there is no error %u", (unsigned)number);
    if (!app)
        return e.status;
    (void)tn_text_escape(clean, sizeof clean, text ? text : e.sentence);
    tnn_fail_text(app, e.status, number, clean);
    return e.status;
}

tn_status tn_app_check(tn_app *app, tn_status status)
{
    return tnn_check(app, status, "%s", "");
}

/* ---- memory ---- */

void tnn_warn(tn_app *app, const char *format, ...)
{
    const char *level = tn_ctx_option(app->ctx, "log.level");
    char text[512], clean[512];
    va_list args;

    if (!app->options.log || !level || !strcmp(level, "error"))
        return;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    (void)tn_text_escape(clean, sizeof clean, text);
    app->options.log(app->options.arg, TN_LOG_WARNING, clean);
}

void *tnn_alloc(tn_app *app, size_t count, size_t bytes)
{
    void *p = calloc(count ? count : 1, bytes ? bytes : 1);

    if (!p)
        (void)tnn_no_memory(app);
    return p;
}

void tnn_number_text(char out[TNN_NUMBER_TEXT], int digits, double x)
{
    char *point = out;
    size_t length;

    (void)snprintf(out, TNN_NUMBER_TEXT, "%.*g", digits, x);
    point += strspn(out, "+-0123456789");
    if (!*point || strchr("einEIN", *point)) /* 12, 1e-05, inf, nan */
        return;
    length = strcspn(point, "0123456789");
    memmove(point + 1, point + length, strlen(point + length) + 1);
    *point = '.';
}

char *tnn_format(tn_app *app, const char *format, ...)
{
    char *text;
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0 || !(text = tnn_alloc(app, (size_t)length + 1, 1)))
        return NULL;
    va_start(args, format);
    (void)vsnprintf(text, (size_t)length + 1, format, args);
    va_end(args);
    return text;
}

char *tnn_strdup(tn_app *app, const char *text)
{
    return tnn_format(app, "%s", text);
}

void tnn_object_add(tn_app *app, tnn_object *object, void (*destroy)(tnn_object *))
{
    object->app = app;
    object->destroy = destroy;
    object->next = app->objects;
    app->objects = object;
}

void tnn_object_drop(tnn_object *object)
{
    tnn_object **at = &object->app->objects;

    while (*at && *at != object)
        at = &(*at)->next;
    if (*at)
        *at = object->next;
    object->destroy(object);
}

void tnn_options_copy(void *dst, size_t dst_bytes, const void *src)
{
    uint32_t size = 0;

    if (!src)
        return;
    memcpy(&size, src, sizeof size);
    memcpy(dst, src, size < dst_bytes ? size : dst_bytes);
}

/* ---- opening and closing ---- */

static tn_status context_open(tn_app *app, const tn_app_options *o)
{
    const char *files[2] = {o->config, NULL};
    tn_open_options open = {.struct_size = TN_SIZE(tn_open_options), .log = o->log, .log_arg = o->arg};
    const tn_device *device = NULL;
    const char **settings = NULL;
    char *device_setting = NULL;
    size_t count = 0;
    tn_status st;

    while (o->settings && o->settings[count])
        count++;
    if (!(settings = calloc(count + 2, sizeof *settings)) ||
        (o->device && !(device_setting = tnn_format(app, "device.default=%s", o->device)))) {
        st = tnn_no_memory(app);
        goto cleanup;
    }
    for (size_t i = 0; i < count; i++)
        settings[i] = o->settings[i];
    settings[count] = device_setting;
    open.files = o->config ? files : NULL;
    open.settings = settings;
    open.flags = (o->no_environment ? TN_OPEN_NO_ENVIRONMENT : 0) | (o->local ? TN_OPEN_LOCAL : 0);
    if (!(st = tn_open(&open, &app->ctx)) && !(st = tn_device_get(app->ctx, NULL, &device)))
        (void)snprintf(app->device, sizeof app->device, "%s:%d", tn_device_type(device),
                       tn_device_index(device));
    if (!tnn_check(app, st, "%s", ""))
        st = tnn_devices_open(app);

cleanup:
    free(device_setting);
    free(settings);
    return st;
}

tn_app *tn_app_open_(const tn_app_options *options)
{
    tn_app *app = calloc(1, sizeof *app);

    if (!app)
        return NULL;
    tnn_options_copy(&app->options, sizeof app->options, options);
    app->name = tnn_strdup(app, app->options.name ? app->options.name : "tenon");
    if (!app->status)
        (void)context_open(app, &app->options);
    app->options.name = app->name;
    app->options.config = app->options.device = NULL;
    app->options.settings = NULL;
    return app;
}

int tn_app_close(tn_app *app)
{
    int code;

    if (!app)
        return 5;
    recording_end(app);
    tn_app_release(app, 0);
    while (app->objects) {
        tnn_object *object = app->objects;

        app->objects = object->next;
        object->destroy(object);
    }
    tnn_sites_destroy(app->sites);
    (void)tnn_check(app, tn_close(app->ctx), "%s", "");
    app->ctx = NULL;
    tn_app_report(app);
    code = app->exit_code;
    free(app->temporaries);
    free(app->name);
    free(app);
    return code;
}

tn_ctx *tn_app_ctx(const tn_app *app)
{
    return app ? app->ctx : NULL;
}

const char *tn_app_device(const tn_app *app)
{
    return app ? app->device : "";
}

/* ---- temporaries ---- */

tn_array *tn_app_own(tn_app *app, tn_array *array)
{
    if (!app || !array) {
        tn_array_release(array);
        return NULL;
    }
    if (app->temporary_count == app->temporary_capacity) {
        size_t more = app->temporary_capacity ? 2 * app->temporary_capacity : 64;
        tn_array **grown = NULL;

        if (app->temporary_count >= TNN_TEMPORARIES_MAX)
            (void)tnn_fail(app, TN_E_STATE,
                           "%d temporary arrays are held; tn_app_mark() before and "
                           "tn_app_release() behind a loop free them",
                           TNN_TEMPORARIES_MAX);
        else if (!(grown = realloc(app->temporaries, more * sizeof *grown)))
            (void)tnn_no_memory(app);
        if (!grown) {
            tn_array_release(array);
            return NULL;
        }
        app->temporaries = grown;
        app->temporary_capacity = more;
    }
    app->temporaries[app->temporary_count++] = array;
    return array;
}

size_t tn_app_mark(const tn_app *app)
{
    return app ? app->temporary_count : 0;
}

void tn_app_release(tn_app *app, size_t mark)
{
    while (app && app->temporary_count > mark)
        tn_array_release(app->temporaries[--app->temporary_count]);
}

void tnn_scope_end(tn_app *app, const void *owner)
{
    for (size_t i = 0; i < app->scope_count; i++)
        if (app->scopes[i].owner == owner) {
            tn_app_release(app, app->scopes[i].mark);
            app->scope_count = i;
            return;
        }
}

void tnn_scope_begin(tn_app *app, const void *owner)
{
    tnn_scope_end(app, owner);
    if (app->scope_count == sizeof app->scopes / sizeof *app->scopes) {
        (void)tnn_fail(app, TN_E_STATE, "loops over more than %zu data sets are open at once",
                       app->scope_count);
        return;
    }
    app->scopes[app->scope_count++] = (tnn_scope){owner, app->temporary_count};
}

tn_array *tn_app_array(tn_app *app, int32_t ndim, const int64_t *shape, const float *values)
{
    tn_array *a = NULL;
    tn_status st;

    if (!tnn_ok(app))
        return NULL;
    st = values ? tn_array_from(app->ctx, TN_F32, ndim, shape, values, &a)
                : tn_array_zeros(app->ctx, TN_F32, ndim, shape, NULL, &a);
    return tnn_check(app, st, "tn_app_array") ? NULL : tn_app_own(app, a);
}

int tn_app_read(tn_app *app, tn_array *array, size_t count, float *out)
{
    tn_array *cast = NULL;
    tn_status st = TN_OK;

    if (!tnn_ok(app) || !array)
        return 0;
    if (tn_array_count(array) != count)
        st = tnn_fail(app, TN_E_ARG, "tn_app_read: %zu numbers asked, the array has %llu", count,
                      (unsigned long long)tn_array_count(array));
    else if (tn_array_dtype(array) == TN_F32)
        st = tnn_check(app, tn_array_read(array, out, count * sizeof *out), "tn_app_read");
    else if (!(st = tn_array_cast(app->ctx, array, TN_F32, &cast)))
        st = tnn_check(app, tn_array_read(cast, out, count * sizeof *out), "tn_app_read");
    else
        (void)tnn_check(app, st, "tn_app_read");
    tn_array_release(cast);
    return !st;
}

/* ---- recording ---- */

void tn_app_record(tn_app *app)
{
    if (!tnn_ok(app))
        return;
    app->recording = true;
    (void)tn_record_set(1);
    (void)tn_train_set(1);
}

void tn_app_pause(tn_app *app)
{
    if (app)
        recording_end(app);
}

void tn_app_backward(tn_app *app, tn_array *loss)
{
    const char *what = app && app->recording ? "backward" : "backward without tn_app_record()";

    if (!tnn_ok(app))
        return;
    recording_end(app);
    if (loss)
        (void)tnn_check(app, tn_backward(app->ctx, 1, &loss, NULL, 0), "%s", what);
}
