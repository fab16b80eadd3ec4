/*
 * Runs a fuzz target without a fuzzer: first every file given (folders: the files in them), then TENON_RUNS
 * mutations of them (default 2000) from TENON_SEED (default 1), at most TENON_MAX_LEN bytes long (default
 * 65536). The same seed gives the same inputs. If the target dies, hangs or a sanitizer stops it, the input
 * at fault is written to the working folder and its name, seed and number are printed; giving that file as an
 * argument replays it.
 *
 * Invariant: `current` is what the target sees, so the handlers can write it out at any moment.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#define FILES_MAX 4096        /* seeds of a target: a few dozen */
#define RUN_SECONDS_MAX 60    /* of processor time for one input, under sanitizers; others may hold it up */
#define WAIT_SECONDS_MAX 240u /* one that waits, by the clock: below the time limit of the tests */
#define MUTATIONS_MAX 8u      /* on top of each other */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
__attribute__((visibility("default"))) const char *__ubsan_default_options(void);
__attribute__((weak)) int LLVMFuzzerInitialize(int *argc, char ***argv);
__attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t size_max,
                                                     unsigned seed);
__attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)(void));

typedef struct input {
    uint8_t *data;
    size_t size;
} input;

static input files[FILES_MAX];
static size_t file_count;
static input current;
static uint64_t run_number, seed_given, random_state;
static const char *target_name;

static uint64_t number_of(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);

    return text && *text ? strtoull(text, NULL, 10) : fallback;
}

/* splitmix64 */
static uint64_t random_next(void)
{
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static size_t random_below(size_t limit)
{
    return limit ? (size_t)(random_next() % limit) : 0;
}

/* ---- the input at fault ----------------------------------------------------- */

static void save_current(void)
{
    char name[256], text[512];
    int length, file;

    if (!current.data) /* not the target's doing: a leak found at the end */
        return;
    snprintf(name, sizeof name, "fault-%s-%llu-%llu", target_name, (unsigned long long)seed_given,
             (unsigned long long)run_number);
    file = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file >= 0) {
        for (size_t done = 0; done < current.size;) {
            ssize_t now = write(file, current.data + done, current.size - done);

            if (now <= 0)
                break;
            done += (size_t)now;
        }
        close(file);
    }
    length = snprintf(text, sizeof text, "%s: input written to %s (TENON_SEED=%llu, run %llu, %zu bytes)\n",
                      target_name, name, (unsigned long long)seed_given, (unsigned long long)run_number,
                      current.size);
    if (length > 0 && write(STDERR_FILENO, text, (size_t)length) < 0)
        return;
}

static void on_signal(int number)
{
    static const char slow[] = "took too long\n";

    if ((number == SIGALRM || number == SIGPROF) && write(STDERR_FILENO, slow, sizeof slow - 1) < 0)
        _exit(1);
    save_current();
    signal(number, SIG_DFL);
    raise(number);
    _exit(1);
}

/* The runtime of gcc's undefined behaviour sanitizer knows no death callback, but it can abort. */
const char *__ubsan_default_options(void)
{
    return "abort_on_error=1";
}

static void catch_faults(void)
{
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};

    if (__sanitizer_set_death_callback) {
        __sanitizer_set_death_callback(save_current);
    } else {
        for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
            signal(fatal[i], on_signal);
    }
    signal(SIGABRT, on_signal); /* a failed check of the target; the address sanitizer leaves it alone */
    signal(SIGALRM, on_signal);
    signal(SIGPROF, on_signal);
}

/* The input lies in a block of its own size, so that a sanitizer sees the first byte too many. */
static void run_one(const uint8_t *data, size_t size)
{
    const struct itimerval limit = {.it_value = {.tv_sec = RUN_SECONDS_MAX}}, none = {.it_value = {0}};
    uint8_t *copy = malloc(size ? size : 1);

    if (!copy)
        return;
    if (size)
        memcpy(copy, data, size);
    current = (input){copy, size};
    alarm(WAIT_SECONDS_MAX);
    (void)setitimer(ITIMER_PROF, &limit, NULL);
    LLVMFuzzerTestOneInput(copy, size);
    (void)setitimer(ITIMER_PROF, &none, NULL);
    alarm(0);
    current = (input){NULL, 0};
    free(copy);
    run_number++;
}

/* ---- seeds ----------------------------------------------------- */

static bool file_load(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct stat info;
    input in = {NULL, 0};
    bool ok = false;

    if (file && fstat(fileno(file), &info) == 0 && S_ISREG(info.st_mode) && file_count < FILES_MAX) {
        in.data = malloc((size_t)info.st_size + 1);
        in.size = in.data ? fread(in.data, 1, (size_t)info.st_size, file) : 0;
        ok = in.data && in.size == (size_t)info.st_size;
    }
    if (ok)
        files[file_count++] = in;
    else
        free(in.data);
    if (file)
        fclose(file);
    return ok;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Sorted by bytes, so that the same seed meets the same files under every locale. */
static bool path_load(const char *path)
{
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, NULL, by_name);
    bool ok = true;

    if (count < 0)
        return file_load(path);
    for (int i = 0; i < count; i++) {
        char full[4096];

        if (entries[i]->d_name[0] != '.' &&
            snprintf(full, sizeof full, "%s/%s", path, entries[i]->d_name) < (int)sizeof full)
            ok = file_load(full) && ok;
        free(entries[i]);
    }
    free(entries);
    return ok;
}

/* ---- mutations ----------------------------------------------------- */

static size_t insert_bytes(uint8_t *data, size_t size, size_t size_max, const uint8_t *from, size_t count)
{
    size_t at = random_below(size + 1);

    if (count > size_max - size)
        count = size_max - size;
    memmove(data + at + count, data + at, size - at);
    if (from)
        memmove(data + at, from, count);
    else
        for (size_t i = 0; i < count; i++)
            data[at + i] = (uint8_t)random_next();
    return size + count;
}

static size_t remove_bytes(uint8_t *data, size_t size)
{
    size_t at = random_below(size), count = 1 + random_below(random_next() & 1 ? 8 : size - at);

    if (count > size - at)
        count = size - at;
    memmove(data + at, data + at + count, size - at - count);
    return size - count;
}

/* Lengths and counts are where parsers break: numbers at the borders of their types, either byte order. */
static void put_number(uint8_t *data, size_t size)
{
    static const uint64_t numbers[] = {0,
                                       1,
                                       2,
                                       0x7f,
                                       0x80,
                                       0xff,
                                       0x100,
                                       0x7fff,
                                       0x8000,
                                       0xffff,
                                       0x10000,
                                       0x7fffffff,
                                       0x80000000u,
                                       0xffffffffu,
                                       0x100000000u,
                                       INT64_MAX,
                                       (uint64_t)INT64_MAX + 1,
                                       UINT64_MAX,
                                       UINT64_MAX - 7};
    uint64_t value = numbers[random_below(sizeof numbers / sizeof *numbers)];
    size_t width = (size_t)1 << random_below(4), at;
    bool big = random_next() & 1;

    if (width > size)
        width = 1;
    at = random_below(size - width + 1);
    for (size_t i = 0; i < width; i++)
        data[at + i] = (uint8_t)(value >> 8 * (big ? width - 1 - i : i));
}

/* Text formats: a byte that means something to some of them. */
static void put_mark(uint8_t *data, size_t size)
{
    static const char marks[] = "[]{}()\"',:;=#\\/\n\r\t -+.0123456789eE%*|";

    data[random_below(size)] = (uint8_t)marks[random_below(sizeof marks - 1)];
}

static size_t mutate(uint8_t *data, size_t size, size_t size_max)
{
    const input *other = file_count ? &files[random_below(file_count)] : NULL;
    size_t from, count;

    if (LLVMFuzzerCustomMutator && random_below(2))
        return LLVMFuzzerCustomMutator(data, size, size_max, (unsigned)random_next());
    if (!size)
        return insert_bytes(data, size, size_max, NULL, 1 + random_below(64));
    switch (random_below(9)) {
    case 0:
        data[random_below(size)] ^= (uint8_t)(1u << random_below(8));
        return size;
    case 1:
        data[random_below(size)] = (uint8_t)random_next();
        return size;
    case 2:
    case 3:
        put_number(data, size);
        return size;
    case 4:
        put_mark(data, size);
        return size;
    case 5:
        return remove_bytes(data, size);
    case 6:
        return insert_bytes(data, size, size_max, NULL, 1 + random_below(16));
    case 7:
        return random_below(size + 1);
    default:
        if (!other || !other->size)
            return size;
        from = random_below(other->size);
        count = 1 + random_below(other->size - from);
        return insert_bytes(data, size, size_max, other->data + from, count);
    }
}

static void run_mutations(uint64_t runs, size_t size_max)
{
    uint8_t *work = malloc(size_max + 1);

    for (uint64_t i = 0; work && i < runs; i++) {
        const input *seed = file_count ? &files[random_below(file_count)] : NULL;
        size_t size = seed ? seed->size : 0;

        if (size > size_max)
            size = size_max;
        if (size)
            memcpy(work, seed->data, size);
        for (size_t left = 1 + random_below(MUTATIONS_MAX); left; left--)
            size = mutate(work, size, size_max);
        run_one(work, size);
    }
    free(work);
}

int main(int argc, char **argv)
{
    uint64_t runs = number_of("TENON_RUNS", 2000);
    size_t size_max = (size_t)number_of("TENON_MAX_LEN", 65536);
    bool ok = true;

    target_name = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
    seed_given = random_state = number_of("TENON_SEED", 1);
    catch_faults();
    if (LLVMFuzzerInitialize)
        LLVMFuzzerInitialize(&argc, &argv);
    for (int i = 1; i < argc; i++) {
        if (!path_load(argv[i])) {
            fprintf(stderr, "%s: cannot read %s\n", target_name, argv[i]);
            ok = false;
        }
    }
    for (size_t i = 0; i < file_count; i++)
        run_one(files[i].data, files[i].size);
    run_mutations(runs, size_max);
    for (size_t i = 0; i < file_count; i++)
        free(files[i].data);
    printf("%s: %llu runs from %zu files, seed %llu\n", target_name, (unsigned long long)run_number,
           file_count, (unsigned long long)seed_given);
    return ok ? 0 : 1;
}
