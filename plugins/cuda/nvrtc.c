/*
 * NVRTC, which compiles texts while the program runs, and what it has made: kept in memory while the plugin
 * is there, and in files of the user's cache folder, so that a text is compiled once on a machine. A file's
 * name is a hash of the text, the architecture and NVRTC's version; the file has a checksum of all its bytes,
 * is written under another name and renamed. A file that is damaged is as if there were none, and one that
 * cannot be written is no error.
 *
 * The lock is held while something is compiled: a second thread that wants the same finds it made.
 */
#include "fused.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define NVRTC_COMPILATION 6 /* NVRTC_ERROR_COMPILATION */
#define FILE_MAGIC "tenon kernel 1\n"
#define FILE_BYTES_MAX (16u << 20)
#define FOLDER_BYTES 3800
#define PATH_BYTES 4096
#define MADE_MAX 4096 /* texts of one process: what comes behind is interpreted */

typedef struct nvrtc_program *program;

struct tncuda_nvrtc {
    void *library;
    int32_t version;  /* 13000: 13.0 */
    bool tried, said; /* said: the first text that was refused */
    const char *(*text_of)(int32_t result);
    int32_t (*number)(int32_t *major, int32_t *minor);
    int32_t (*create)(program *out, const char *text, const char *name, int32_t count,
                      const char *const *headers, const char *const *names);
    int32_t (*compile)(program p, int32_t count, const char *const *options);
    int32_t (*destroy)(program *p);
    int32_t (*image_bytes)(program p, size_t *out);
    int32_t (*image)(program p, char *out);
    int32_t (*log_bytes)(program p, size_t *out);
    int32_t (*log)(program p, char *out);
    tncuda_compiled *made;
    uint32_t count;
    int32_t level; /* of what is to be logged once the lock is given back */
    char line[1024];
};

/* Beside what the plugin has (tncuda_texts): the compiler's own headers, which NVRTC does not have. */
static const char numbers_text[] =
    "#pragma once\n"
    "typedef signed char int8_t; typedef unsigned char uint8_t; typedef short int16_t;\n"
    "typedef unsigned short uint16_t; typedef int int32_t; typedef unsigned int uint32_t;\n"
    "typedef long long int64_t; typedef unsigned long long uint64_t;\n"
    "#define INT32_MIN (-2147483647 - 1)\n#define INT32_MAX 2147483647\n"
    "#define INT64_MIN (-9223372036854775807ll - 1)\n#define INT64_MAX 9223372036854775807ll\n"
    "#define UINT64_MAX 18446744073709551615ull\n"
    "#define INFINITY __int_as_float(0x7f800000)\n#define NAN __int_as_float(0x7fffffff)\n";

static const tncuda_text own_texts[] = {
    {"stdint.h", numbers_text}, {"math.h", "#pragma once\n"}, {"string.h", ""}, {"stdbool.h", ""}};

#define OWN_TEXTS (sizeof own_texts / sizeof *own_texts)
#define TEXTS_MAX 16

/* ---- the library --------------------------------------------------------------------------------------- */

/* One line of a call; the last one stays. */
__attribute__((format(printf, 3, 4))) static void say_later(struct tncuda_nvrtc *n, int32_t level,
                                                            const char *format, ...)
{
    va_list list;

    n->level = level;
    va_start(list, format);
    (void)vsnprintf(n->line, sizeof n->line, format, list);
    va_end(list);
}

/* What a later one makes, an earlier driver does not load. */
static tn_status library_load(const tncuda_plugin *plugin, struct tncuda_nvrtc *n, tn_err *err)
{
    static const char *const files[] = {"libnvrtc.so.13", "libnvrtc.so.12", NULL};
    const library_function rows[] = {
        {"nvrtcGetErrorString", (void *)&n->text_of}, {"nvrtcVersion", (void *)&n->number},
        {"nvrtcCreateProgram", (void *)&n->create},   {"nvrtcCompileProgram", (void *)&n->compile},
        {"nvrtcDestroyProgram", (void *)&n->destroy}, {"nvrtcGetCUBINSize", (void *)&n->image_bytes},
        {"nvrtcGetCUBIN", (void *)&n->image},         {"nvrtcGetProgramLogSize", (void *)&n->log_bytes},
        {"nvrtcGetProgramLog", (void *)&n->log}};
    const tncuda_library l = {
        .files = files + (plugin->driver.version && plugin->driver.version < 13000),
        .rows = rows,
        .count = sizeof rows / sizeof *rows,
        .absent =
            "libnvrtc.so.13 and libnvrtc.so.12 were not found; install NVRTC of CUDA 12 or 13, or name its "
            "folder: plugin.cuda.libraries",
        .advice = "install NVRTC of CUDA 12 or 13"};
    const char *file = NULL;
    int32_t major = 0, minor = 0, result;
    tn_status st = tncuda_library_open(plugin, &l, &n->library, &file, err);

    if (st)
        return st;
    if ((result = n->number(&major, &minor)))
        return tn_failf(err, TN_E_UNSUPPORTED, "%s: nvrtcVersion gives error %d", file, (int)result);
    n->version = major * 1000 + minor * 10;
    return TN_OK;
}

/* Under the lock. NULL: there is none, which is said once. */
static struct tncuda_nvrtc *library_need_locked(tncuda_plugin *plugin)
{
    struct tncuda_nvrtc *n = plugin->nvrtc;
    tn_err why = {0};

    if (!n && !(n = plugin->nvrtc = tncuda_new(plugin, sizeof *n)))
        return NULL;
    if (n->tried)
        return n->library ? n : NULL;
    n->tried = true;
    if (!library_load(plugin, n, &why))
        return n;
    if (n->library)
        (void)dlclose(n->library);
    n->library = NULL;
    say_later(n, TN_LEVEL_INFO, "chains of pointwise operators are interpreted: %s", why.message);
    return NULL;
}

/* ---- files --------------------------------------------------------------------------------------------- */

typedef struct file_head {
    char magic[16];
    uint64_t key, check, text_bytes, image_bytes; /* check: of the image */
} file_head;

static uint64_t hash(uint64_t h, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;

    for (size_t i = 0; i < count; i++)
        h = (h ^ at[i]) * 1099511628211u;
    return h ^ h >> 29;
}

/* As the host's other files of this kind: tenon/ in the user's cache folder. "": there is none. */
static void folder_find(char *out, size_t bytes)
{
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = 0;

    if (xdg && xdg[0] == '/')
        n = snprintf(out, bytes, "%s/tenon/cuda", xdg);
    else if (home && home[0] == '/')
        n = snprintf(out, bytes, "%s/.cache/tenon/cuda", home);
    if (n <= 0 || n >= (int)bytes)
        out[0] = '\0';
}

static void folder_make(char *folder)
{
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(folder, 0700);
        *slash = '/';
    }
    (void)mkdir(folder, 0700);
}

static bool read_all(int fd, void *to, size_t bytes)
{
    for (ssize_t got; bytes; bytes -= (size_t)got, to = (char *)to + got) {
        got = read(fd, to, bytes);
        if (got < 0 && errno == EINTR)
            got = 0;
        else if (got <= 0)
            return false;
    }
    return true;
}

static bool write_all(int fd, const void *from, size_t bytes)
{
    for (ssize_t put; bytes; bytes -= (size_t)put, from = (const char *)from + put) {
        put = write(fd, from, bytes);
        if (put < 0 && errno == EINTR)
            put = 0;
        else if (put <= 0)
            return false;
    }
    return true;
}

/* Fills in the image, or leaves it NULL. */
static void file_read(const tncuda_plugin *plugin, const char *path, uint64_t text_bytes, tncuda_compiled *c)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    file_head head;
    struct stat s;
    char *image = NULL;

    if (fd < 0)
        return;
    if (!fstat(fd, &s) && S_ISREG(s.st_mode) && read_all(fd, &head, sizeof head) &&
        !memcmp(head.magic, FILE_MAGIC, sizeof FILE_MAGIC) && head.key == c->key &&
        head.text_bytes == text_bytes && head.image_bytes > 0 && head.image_bytes <= FILE_BYTES_MAX &&
        (uint64_t)s.st_size == sizeof head + head.image_bytes &&
        (image = tncuda_new(plugin, head.image_bytes)) && read_all(fd, image, (size_t)head.image_bytes) &&
        hash(head.key, image, (size_t)head.image_bytes) == head.check) {
        c->image = image;
        c->bytes = head.image_bytes;
        image = NULL;
    }
    tncuda_delete(plugin, image);
    (void)close(fd);
}

static void file_write(struct tncuda_nvrtc *n, const char *path, uint64_t text_bytes,
                       const tncuda_compiled *c)
{
    const file_head head = {.magic = FILE_MAGIC,
                            .key = c->key,
                            .check = hash(c->key, c->image, (size_t)c->bytes),
                            .text_bytes = text_bytes,
                            .image_bytes = c->bytes};
    char made[PATH_BYTES + 16];
    bool done;
    int fd;

    (void)snprintf(made, sizeof made, "%s.XXXXXX", path);
    fd = mkostemp(made, O_CLOEXEC);
    done = fd >= 0 && write_all(fd, &head, sizeof head) && write_all(fd, c->image, (size_t)c->bytes);
    if (fd >= 0)
        done = !close(fd) && done;
    if (done && !rename(made, path))
        return;
    say_later(n, TN_LEVEL_DEBUG, "a compiled kernel is not kept: %.800s: %s", path, strerror(errno));
    if (fd >= 0)
        (void)unlink(made);
}

/* ---- compiling ----------------------------------------------------------------------------------------- */

/* The first text that is refused is a warning: it is a defect, of this plugin or of the installation. */
static void refusal_say(const tncuda_plugin *plugin, struct tncuda_nvrtc *n, program p, int32_t result)
{
    char *log = NULL;
    size_t bytes = 0;

    if (p && !n->log_bytes(p, &bytes) && bytes > 1 && bytes < FILE_BYTES_MAX &&
        (log = tncuda_new(plugin, bytes + 1)) && n->log(p, log))
        log[0] = '\0';
    for (char *c = log; c && *c; c++)
        *c = *c == '\n' ? ' ' : *c;
    say_later(n, n->said ? TN_LEVEL_DEBUG : TN_LEVEL_WARNING,
              "NVRTC %d.%d refuses a chain of pointwise operators, which is interpreted: %s: %.700s",
              (int)(n->version / 1000), (int)(n->version % 1000 / 10), n->text_of(result), log ? log : "");
    n->said = true;
    tncuda_delete(plugin, log);
}

static tn_status image_take(const tncuda_plugin *plugin, const struct tncuda_nvrtc *n, program p,
                            tncuda_compiled *c, tn_err *err)
{
    size_t bytes = 0;
    int32_t result = n->image_bytes(p, &bytes);

    if (result || !bytes || bytes > FILE_BYTES_MAX)
        return tn_failf(err, TN_E_UNSUPPORTED, "nvrtcGetCUBINSize gives error %d, %zu bytes", (int)result,
                        bytes);
    if (!(c->image = tncuda_new(plugin, bytes)))
        return tncuda_nomem(err, "a compiled kernel");
    c->bytes = bytes;
    if ((result = n->image(p, c->image)))
        return tn_failf(err, TN_E_UNSUPPORTED, "nvrtcGetCUBIN gives error %d", (int)result);
    return TN_OK;
}

static tn_status text_compile(const tncuda_plugin *plugin, struct tncuda_nvrtc *n, int32_t arch,
                              const char *text, tncuda_compiled *c, tn_err *err)
{
    const char *names[TEXTS_MAX], *texts[TEXTS_MAX], *options[4];
    char name[96], machine[48];
    int32_t count = 0, result;
    program p = NULL;
    tn_status st = TN_OK;

    for (size_t i = 0; i < OWN_TEXTS; i++, count++) {
        names[count] = own_texts[i].name;
        texts[count] = own_texts[i].text;
    }
    for (const tncuda_text *t = tncuda_texts; t->name && count < TEXTS_MAX; t++, count++) {
        names[count] = t->name;
        texts[count] = t->text;
    }
    (void)snprintf(machine, sizeof machine, "--gpu-architecture=sm_%d", (int)arch);
    (void)snprintf(name, sizeof name, "-DFUSED_NAME=%s", c->name);
    options[0] = machine;
    options[1] = "--fmad=false";
    options[2] = "--std=c++17";
    options[3] = name;
    if (!(result = n->create(&p, text, "chain.cu", count, texts, names)))
        result = n->compile(p, 4, options);
    if (result)
        st = tn_failf(err, TN_E_UNSUPPORTED, "NVRTC refuses the chain: %s", n->text_of(result));
    else
        st = image_take(plugin, n, p, c, err);
    if (result)
        refusal_say(plugin, n, p, result);
    if (p)
        (void)n->destroy(&p);
    return st;
}

static uint64_t key_of(const struct tncuda_nvrtc *n, int32_t arch, const char *text)
{
    const int32_t numbers[] = {arch, n->version};
    uint64_t h = hash(14695981039346656037u, numbers, sizeof numbers);

    for (const tncuda_text *t = tncuda_texts; t->name; t++)
        h = hash(h, t->text, strlen(t->text));
    for (size_t i = 0; i < OWN_TEXTS; i++)
        h = hash(h, own_texts[i].text, strlen(own_texts[i].text));
    return hash(h, text, strlen(text));
}

static tn_status make_locked(const tncuda_plugin *plugin, struct tncuda_nvrtc *n, int32_t arch,
                             const char *text, tncuda_compiled *c, tn_err *err)
{
    char folder[FOLDER_BYTES], path[PATH_BYTES] = "";
    tn_status st;

    folder_find(folder, sizeof folder);
    if (folder[0]) {
        (void)snprintf(path, sizeof path, "%s/%016" PRIx64 ".cubin", folder, c->key);
        file_read(plugin, path, strlen(text), c);
    }
    if (c->image)
        return TN_OK;
    if ((st = text_compile(plugin, n, arch, text, c, err)))
        return st;
    if (folder[0]) {
        folder_make(folder);
        file_write(n, path, strlen(text), c);
    }
    return TN_OK;
}

static tn_status compile_locked(tncuda_plugin *plugin, int32_t arch, const char *text, tncuda_compiled **out,
                                tn_err *err)
{
    struct tncuda_nvrtc *n = library_need_locked(plugin);
    tncuda_compiled *c;
    uint64_t key;
    tn_status st;

    if (!n)
        return tncuda_absent(err, "there is no NVRTC");
    key = key_of(n, arch, text);
    for (c = n->made; c && c->key != key; c = c->next)
        ;
    if (c) {
        *out = c;
        return c->image ? TN_OK : tn_fail(err, TN_E_UNSUPPORTED, "NVRTC has refused the chain before");
    }
    if (n->count == MADE_MAX)
        return tn_failf(err, TN_E_UNSUPPORTED, "more than %d chains were compiled", MADE_MAX);
    if (!(c = tncuda_new(plugin, sizeof *c)))
        return tncuda_nomem(err, "a compiled kernel");
    c->key = key;
    (void)snprintf(c->name, sizeof c->name, "fused_%016" PRIx64, key);
    st = make_locked(plugin, n, arch, text, c, err);
    if (st) {
        tncuda_delete(plugin, c->image);
        c->image = NULL;
    }
    if (st && st != TN_E_UNSUPPORTED) {
        tncuda_delete(plugin, c);
        return st;
    }
    c->next = n->made;
    n->made = c;
    n->count++;
    *out = c;
    return st;
}

tn_status tncuda_nvrtc_compile(tncuda_plugin *plugin, int32_t arch, const char *text, tncuda_compiled **out,
                               tn_err *err)
{
    char line[sizeof plugin->nvrtc->line] = "";
    int32_t level = TN_LEVEL_DEBUG;
    tn_status st;

    pthread_mutex_lock(&plugin->compiling);
    st = compile_locked(plugin, arch, text, out, err);
    if (plugin->nvrtc) {
        memcpy(line, plugin->nvrtc->line, sizeof line);
        level = plugin->nvrtc->level;
        plugin->nvrtc->line[0] = '\0';
    }
    pthread_mutex_unlock(&plugin->compiling);
    if (line[0])
        tncuda_log(plugin, level, "%s", line);
    return st;
}

void tncuda_nvrtc_close(tncuda_plugin *plugin)
{
    struct tncuda_nvrtc *n = plugin->nvrtc;

    if (!n)
        return;
    for (tncuda_compiled *c = n->made, *next; c; c = next) {
        next = c->next;
        tncuda_delete(plugin, c->image);
        tncuda_delete(plugin, c);
    }
    tncuda_delete(plugin, n); /* the library stays, as the driver does */
    plugin->nvrtc = NULL;
}
