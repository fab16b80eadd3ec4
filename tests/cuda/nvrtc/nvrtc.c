/*
 * A double of NVRTC for tests: libnvrtc.so.13. Its machine code is a library that the host's compiler makes
 * and the double of the driver loads. It holds the plugin to NVRTC's interface (NVIDIA, "NVRTC", 3): the
 * options, the order of the calls, texts that are complete. Never installed.
 *
 *     TNEMU_NVRTC    unset: nvrtcVersion fails, so there is none. "1": it works. "refuse": no text is
 *                    compiled. "garbage": what it makes is no machine code
 *     TNEMU_NVRTC_COUNTS  a file: a line for each text that was compiled, with its kernel's name
 *     CC             the compiler, default cc
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

#define OK 0
#define INVALID_INPUT 3
#define INVALID_PROGRAM 4
#define INVALID_OPTION 5
#define COMPILATION 6
#define INTERNAL_ERROR 11

typedef struct text {
    char *name, *text;
} text;

typedef struct program {
    text source, *headers;
    int32_t count;
    bool compiled;
    char *image, log[4096];
    size_t bytes;
} program;

/* The words of kernel.h, as emulated.h has them, in a library of its own. */
static const char words[] =
    "#include <stdint.h>\n"
    "typedef struct { uint32_t grid_dim[3], block_dim[3], block[3], thread[3]; } emu_place;\n"
    "typedef struct { const char *name; void (*run)(const void *); uint32_t bytes, sync; } emu_kernel;\n"
    "static emu_place *(*emu_at)(void);\n"
    "void tnemu_open(emu_place *(*at)(void)) { emu_at = at; }\n"
    "#define TNCUDA_BLOCK_THREADS 256\n"
    "#define TNCUDA_KERNEL(name, mode, args) TNCUDA_KERNEL_(name, mode, args)\n"
    "#define TNCUDA_KERNEL_(name, mode, args) static void name##_thread(const args *call); \\\n"
    "    static void name##_run(const void *call) { name##_thread((const args *)call); } \\\n"
    "    const emu_kernel tnemu_kernel = {#name, name##_run, (uint32_t)sizeof(args), 0}; \\\n"
    "    static void name##_thread(const args *call)\n"
    "#define TNCUDA_INLINE static inline\n"
    "#define TNCUDA_THREAD ((int32_t)emu_at()->thread[0])\n"
    "#define TNCUDA_THREADS ((int32_t)emu_at()->block_dim[0])\n"
    "#define TNCUDA_BLOCK ((int64_t)emu_at()->block[0])\n"
    "#define TNCUDA_BLOCKS ((int64_t)emu_at()->grid_dim[0])\n";

static const char *const compilers_own[] = {"math.h", "stdint.h", "string.h", "stdbool.h"};

/* ---- small things -------------------------------------------------------------------------------------- */

static const char *mode(void)
{
    const char *m = getenv("TNEMU_NVRTC");

    return m ? m : "";
}

static char *copy_of(const char *of)
{
    char *made = strdup(of);

    if (!made)
        abort();
    return made;
}

static bool is_own(const char *name)
{
    for (size_t i = 0; i < sizeof compilers_own / sizeof *compilers_own; i++)
        if (!strcmp(compilers_own[i], name))
            return true;
    return false;
}

static bool file_put(const char *folder, const char *name, const char *what)
{
    char path[512];
    FILE *to;
    bool done;

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    if (!(to = fopen(path, "w")))
        return false;
    done = fputs(what, to) >= 0;
    return !fclose(to) && done;
}

/* ---- the interface ------------------------------------------------------------------------------------- */

EXPORT const char *nvrtcGetErrorString(int32_t result)
{
    static const char *const names[] = {[OK] = "NVRTC_SUCCESS",
                                        [INVALID_INPUT] = "NVRTC_ERROR_INVALID_INPUT",
                                        [INVALID_PROGRAM] = "NVRTC_ERROR_INVALID_PROGRAM",
                                        [INVALID_OPTION] = "NVRTC_ERROR_INVALID_OPTION",
                                        [COMPILATION] = "NVRTC_ERROR_COMPILATION",
                                        [INTERNAL_ERROR] = "NVRTC_ERROR_INTERNAL_ERROR"};

    return result >= 0 && result <= INTERNAL_ERROR && names[result] ? names[result] : "NVRTC_ERROR unknown";
}

EXPORT int32_t nvrtcVersion(int32_t *major, int32_t *minor)
{
    if (!*mode())
        return INTERNAL_ERROR;
    *major = 13;
    *minor = 0;
    return OK;
}

EXPORT int32_t nvrtcCreateProgram(program **out, const char *source, const char *name, int32_t count,
                                  const char *const *headers, const char *const *names)
{
    program *p;

    if (!out || !source || count < 0 || (count && (!headers || !names)))
        return INVALID_INPUT;
    if (!(p = calloc(1, sizeof *p)) || !(p->headers = calloc((size_t)count + 1, sizeof *p->headers)))
        abort();
    p->source = (text){copy_of(name ? name : "default_program"), copy_of(source)};
    p->count = count;
    for (int32_t i = 0; i < count; i++)
        p->headers[i] = (text){copy_of(names[i]), copy_of(headers[i])};
    *out = p;
    return OK;
}

EXPORT int32_t nvrtcDestroyProgram(program **at)
{
    program *p = at ? *at : NULL;

    if (!p)
        return INVALID_PROGRAM;
    for (int32_t i = 0; i < p->count; i++) {
        free(p->headers[i].name);
        free(p->headers[i].text);
    }
    free(p->headers);
    free(p->source.name);
    free(p->source.text);
    free(p->image);
    free(p);
    *at = NULL;
    return OK;
}

/* ---- compiling ----------------------------------------------------------------------------------------- */

/* "-DNAME=…" into `define`. All others must be known here; bits are equal with fmad=false alone. */
static int32_t options_read(int32_t count, const char *const *options, char *define, size_t bytes)
{
    bool exact = false, architecture = false;

    for (int32_t i = 0; i < count; i++) {
        int major = 0, used = 0;

        if (!strcmp(options[i], "--fmad=false"))
            exact = true;
        else if (!strncmp(options[i], "-D", 2) && strlen(options[i]) < bytes &&
                 !strpbrk(options[i], " '\"$`"))
            (void)snprintf(define, bytes, "%s", options[i]);
        else if (sscanf(options[i], "--gpu-architecture=sm_%d%n", &major, &used) == 1 && !options[i][used])
            architecture = major >= 75 && major <= 121;
        else if (strcmp(options[i], "--std=c++17") != 0)
            return INVALID_OPTION;
    }
    return exact && architecture ? OK : INVALID_OPTION;
}

static void image_read(program *p, const char *path)
{
    const size_t room = 64;
    struct stat s;
    int fd = open(path, O_RDONLY);

    if (fd < 0 || fstat(fd, &s) || !(p->image = malloc((size_t)s.st_size + room)))
        abort();
    memset(p->image, 0, room);
    (void)snprintf(p->image, room, "tenon kernels by the host's compiler %lld\n", (long long)s.st_size);
    if (read(fd, p->image + room, (size_t)s.st_size) != s.st_size)
        abort();
    p->bytes = room + (size_t)s.st_size;
    (void)close(fd);
}

static void log_read(program *p, const char *path)
{
    FILE *from = fopen(path, "r");
    const size_t got = from ? fread(p->log, 1, sizeof p->log - 1, from) : 0;

    p->log[got] = '\0';
    if (from)
        (void)fclose(from);
}

static int32_t compile_in(program *p, const char *folder, const char *define)
{
    const char *cc = getenv("CC");
    char command[2048], path[512];
    bool written = file_put(folder, "words.inc.h", words) && file_put(folder, "chain.c", p->source.text);
    int status;

    for (int32_t i = 0; i < p->count && written; i++)
        written = is_own(p->headers[i].name) || file_put(folder, p->headers[i].name, p->headers[i].text);
    if (!written)
        return INTERNAL_ERROR;
    (void)snprintf(command, sizeof command,
                   "cd '%s' && LD_PRELOAD= %s -std=gnu11 -Wall -Wextra -Werror -Wno-unused-function "
                   "-Wno-unknown-pragmas -Wno-unused-value -shared -fPIC -O1 -ffp-contract=off -I. -include "
                   "words.inc.h %s -o chain.so "
                   "chain.c -lm >log 2>&1",
                   folder, cc && *cc ? cc : "cc", define);
    status = system(command);
    (void)snprintf(path, sizeof path, "%s/log", folder);
    log_read(p, path);
    if (status)
        return COMPILATION;
    (void)snprintf(path, sizeof path, "%s/chain.so", folder);
    image_read(p, path);
    return OK;
}

static void counts_add(const char *define)
{
    const char *path = getenv("TNEMU_NVRTC_COUNTS");
    FILE *to = path ? fopen(path, "a") : NULL;

    if (!to)
        return;
    (void)fprintf(to, "%s\n", define);
    (void)fclose(to);
}

EXPORT int32_t nvrtcCompileProgram(program *p, int32_t count, const char *const *options)
{
    char folder[] = "/tmp/tnemu-nvrtc-XXXXXX", define[128] = "", command[128];
    int32_t result;

    if (!p || p->compiled)
        return INVALID_PROGRAM;
    if ((result = options_read(count, options, define, sizeof define)))
        return result;
    p->compiled = true;
    if (!strcmp(mode(), "refuse")) {
        (void)snprintf(p->log, sizeof p->log, "chain.cu(1): error: refused\nas was asked for\n");
        return COMPILATION;
    }
    counts_add(define);
    if (!mkdtemp(folder))
        return INTERNAL_ERROR;
    result = compile_in(p, folder, define);
    (void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command))
        return INTERNAL_ERROR;
    if (!result && !strcmp(mode(), "garbage"))
        memset(p->image, 'x', p->bytes);
    return result;
}

EXPORT int32_t nvrtcGetCUBINSize(program *p, size_t *out)
{
    if (!p || !p->image)
        return INVALID_PROGRAM;
    *out = p->bytes;
    return OK;
}

EXPORT int32_t nvrtcGetCUBIN(program *p, char *out)
{
    if (!p || !p->image)
        return INVALID_PROGRAM;
    memcpy(out, p->image, p->bytes);
    return OK;
}

EXPORT int32_t nvrtcGetProgramLogSize(program *p, size_t *out)
{
    if (!p)
        return INVALID_PROGRAM;
    *out = strlen(p->log) + 1;
    return OK;
}

EXPORT int32_t nvrtcGetProgramLog(program *p, char *out)
{
    if (!p)
        return INVALID_PROGRAM;
    memcpy(out, p->log, strlen(p->log) + 1);
    return OK;
}
