/* Settings, faults, devices, contexts, memory, and how the plugin finds all of it. */
#include "emulator.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define CONTEXTS_MAX 16
#define FAULTS_MAX 16
#define BLOCK_ALIGN 512u

typedef struct block {
    struct block *next;
    char *data;
    size_t bytes;
    int32_t device; /* -1: pinned */
    bool registered;
} block;

static struct {
    pthread_once_t once;
    uint64_t seed, memory_bytes;
    uint32_t delay_us, hold;
    int32_t devices, version;
    struct {
        uint32_t clock;
        uint64_t at, until;
        tncuda_result result;
    } faults[FAULTS_MAX];
    uint32_t fault_count;
    atomic_ullong clocks[EMU_CLOCKS], queued_most;
    pthread_mutex_t lock; /* of what follows */
    block *blocks;
    struct CUctx_st *contexts[EMU_DEVICES_MAX];
} emu = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local struct {
    tncuda_context stack[CONTEXTS_MAX];
    uint32_t depth;
} current;
_Thread_local bool emu_in_function;

/* The names of the functions, in the order of their numbers. */
static const char *const names[] = {
#define DRIVER(member, name, params) name,
#include "driver.list"
#include "more.list"
#undef DRIVER
    "kernel", "edge"};

void emu_defect(const char *format, ...)
{
    char line[512] = "emulator: ";
    const size_t at = strlen(line);
    va_list args;

    va_start(args, format);
    (void)vsnprintf(line + at, sizeof line - at, format, args);
    va_end(args);
    (void)fprintf(stderr, "%s\n", line);
    abort();
}

void *emu_new(size_t bytes)
{
    void *made = calloc(1, bytes);

    if (!made)
        emu_defect("out of memory");
    return made;
}

/* ---- settings ---------------------------------------------------------------------------------------- */

static uint64_t number(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);

    return text && *text ? strtoull(text, NULL, 10) : fallback;
}

static void faults_read(const char *text)
{
    while (text && *text) {
        const size_t length = strcspn(text, ":,");
        char *end = (char *)(uintptr_t)text + length;
        uint32_t clock = 0;

        while (clock < EMU_CLOCKS &&
               (strlen(names[clock]) != length || strncmp(names[clock], text, length) != 0))
            clock++;
        if (clock == EMU_CLOCKS || *end != ':' || emu.fault_count == FAULTS_MAX)
            emu_defect("TNEMU_FAULT cannot be read at '%s'", text);
        emu.faults[emu.fault_count].clock = clock;
        emu.faults[emu.fault_count].at = strtoull(end + 1, &end, 10);
        emu.faults[emu.fault_count].until = *end == '+' ? UINT64_MAX : emu.faults[emu.fault_count].at;
        end += *end == '+';
        emu.faults[emu.fault_count++].result = *end == ':' ? (tncuda_result)strtol(end + 1, &end, 10) : 1;
        text = *end == ',' ? end + 1 : NULL;
    }
}

static uint32_t blocks_left(void)
{
    uint32_t left = 0;

    (void)pthread_mutex_lock(&emu.lock);
    for (const block *b = emu.blocks; b; b = b->next)
        left++;
    (void)pthread_mutex_unlock(&emu.lock);
    return left;
}

/* What a fault may be asked for: every function and event of which there was one. */
static void counts_write(void)
{
    FILE *to = fopen(getenv("TNEMU_COUNTS"), "w");

    for (uint32_t i = 0; to && i < EMU_CLOCKS; i++)
        if (atomic_load(&emu.clocks[i]))
            (void)fprintf(to, "%s %llu\n", names[i], (unsigned long long)atomic_load(&emu.clocks[i]));
    if (to)
        (void)fprintf(to, "blocks %u\nqueued %llu\n", blocks_left(),
                      (unsigned long long)atomic_load(&emu.queued_most));
    if (to)
        (void)fclose(to);
}

static void settings_read(void)
{
    if (getenv("TNEMU_COUNTS"))
        (void)atexit(counts_write);
    emu.seed = number("TNEMU_SEED", 0);
    emu.delay_us = (uint32_t)number("TNEMU_DELAY_US", 50);
    emu.hold = (uint32_t)number("TNEMU_HOLD", 0);
    emu.devices = (int32_t)number("TNEMU_DEVICES", 2);
    emu.memory_bytes = number("TNEMU_MEMORY", (uint64_t)1 << 34);
    emu.version = (int32_t)number("TNEMU_VERSION", 13000);
    if (emu.devices < 0 || emu.devices > EMU_DEVICES_MAX)
        emu_defect("TNEMU_DEVICES is %d", (int)emu.devices);
    faults_read(getenv("TNEMU_FAULT"));
}

/* SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014). */
uint64_t emu_random(uint64_t a, uint64_t b)
{
    uint64_t z = emu.seed * 0x9e3779b97f4a7c15u + a * 0xbf58476d1ce4e5b9u + b + 0x9e3779b97f4a7c15u;

    for (int i = 0; i < 2; i++) {
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        z ^= z >> 31;
    }
    return z;
}

uint32_t emu_delay_us(void)
{
    return emu.delay_us;
}

uint32_t emu_hold(void)
{
    return emu.hold;
}

void emu_queued(uint64_t items)
{
    unsigned long long most = atomic_load(&emu.queued_most);

    while (items > most && !atomic_compare_exchange_weak(&emu.queued_most, &most, items))
        ;
}

tncuda_result emu_due(uint32_t clock)
{
    const uint64_t now = atomic_fetch_add(&emu.clocks[clock], 1u) + 1;

    for (uint32_t i = 0; i < emu.fault_count; i++)
        if (emu.faults[i].clock == clock && now >= emu.faults[i].at && now <= emu.faults[i].until)
            return emu.faults[i].result;
    return 0;
}

/* ---- the way in -------------------------------------------------------------------------------------- */

/* CUDA_ERROR_NOT_PERMITTED, CUDA_ERROR_INVALID_CONTEXT, results that end the context. */
tncuda_result emu_enter(uint32_t function, tncuda_context *context)
{
    tncuda_result result;

    if (emu_in_function)
        return 800;
    if (context && !current.depth)
        return 201;
    if (context)
        *context = current.stack[current.depth - 1];
    if (context && (result = atomic_load(&(*context)->failed)))
        return result;
    result = emu_due(function);
    if (context && (result == 719 || result == 700 || result == 999))
        emu_context_fail(*context, result);
    return result;
}

EXPORT tncuda_result cuDriverGetVersion(int32_t *out);
EXPORT tncuda_result cuGetProcAddress_v2(const char *name, void **out, int32_t version,
                                         unsigned long long flags, int32_t *status);

tncuda_result cuDriverGetVersion(int32_t *out)
{
    (void)pthread_once(&emu.once, settings_read);
    *out = emu.version;
    return 0;
}

tncuda_result cuGetProcAddress_v2(const char *name, void **out, int32_t version, unsigned long long flags,
                                  int32_t *status)
{
    static const struct {
        const char *name;
        void (*fn)(void);
    } rows[] = {
#define DRIVER(member, name, params) {name, (void (*)(void))emu_##member},
#include "driver.list"
#include "more.list"
#undef DRIVER
    };

    (void)flags;
    (void)status;
    (void)pthread_once(&emu.once, settings_read);
    for (size_t i = 0; i < sizeof rows / sizeof *rows && version <= emu.version; i++)
        if (!strcmp(rows[i].name, name)) {
            memcpy(out, &rows[i].fn, sizeof *out);
            return 0;
        }
    return TNCUDA_NOT_FOUND;
}

tncuda_result emu_init(uint32_t flags)
{
    const tncuda_result result = emu_enter(EMU_init, NULL);

    if (result)
        return result;
    return flags ? TNCUDA_INVALID_VALUE : emu.devices ? 0 : TNCUDA_NO_DEVICE;
}

tncuda_result emu_error_name(tncuda_result error, const char **out)
{
    static const struct {
        tncuda_result result;
        const char *name;
    } rows[] = {{0, "CUDA_SUCCESS"},
                {1, "CUDA_ERROR_INVALID_VALUE"},
                {2, "CUDA_ERROR_OUT_OF_MEMORY"},
                {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
                {719, "CUDA_ERROR_LAUNCH_FAILED"}};

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].result == error) {
            *out = rows[i].name;
            return 0;
        }
    *out = "CUDA_ERROR";
    return 0;
}

tncuda_result emu_error_text(tncuda_result error, const char **out)
{
    *out = error == 2 ? "out of memory" : "as the emulator was told";
    return 0;
}

/* ---- devices and contexts ---------------------------------------------------------------------------- */

tncuda_result emu_device_count(int32_t *out)
{
    const tncuda_result result = emu_enter(EMU_device_count, NULL);

    if (!result)
        *out = emu.devices;
    return result;
}

tncuda_result emu_device_get(int32_t *out, int32_t ordinal)
{
    const tncuda_result result = emu_enter(EMU_device_get, NULL);

    if (result || ordinal < 0 || ordinal >= emu.devices)
        return result ? result : 101;
    *out = ordinal;
    return 0;
}

tncuda_result emu_device_name(char *out, int32_t bytes, int32_t device)
{
    const tncuda_result result = emu_enter(EMU_device_name, NULL);

    if (!result)
        (void)snprintf(out, (size_t)bytes, "emulated GPU %d", (int)device);
    return result;
}

tncuda_result emu_device_attribute(int32_t *out, int32_t attribute, int32_t device)
{
    const tncuda_result result = emu_enter(EMU_device_attribute, NULL);

    (void)device;
    *out = attribute == TNCUDA_ATTRIBUTE_UNITS ? 4 : attribute == TNCUDA_ATTRIBUTE_COMPUTE_MAJOR ? 8 : 0;
    return result;
}

tncuda_result emu_device_uuid(unsigned char out[16], int32_t device)
{
    const tncuda_result result = emu_enter(EMU_device_uuid, NULL);

    memset(out, 0xE0 + device, 16);
    return result;
}

tncuda_result emu_device_peer(int32_t *out, int32_t device, int32_t peer)
{
    const tncuda_result result = emu_enter(EMU_device_peer, NULL);

    *out = device != peer;
    return result;
}

tncuda_result emu_context_retain(tncuda_context *out, int32_t device)
{
    const tncuda_result result = emu_enter(EMU_context_retain, NULL);

    if (result || device < 0 || device >= emu.devices)
        return result ? result : 101;
    (void)pthread_mutex_lock(&emu.lock);
    if (!emu.contexts[device]) {
        emu.contexts[device] = emu_new(sizeof **emu.contexts);
        emu.contexts[device]->device = device;
        (void)pthread_mutex_init(&emu.contexts[device]->lock, NULL);
    }
    *out = emu.contexts[device];
    (*out)->users++;
    (void)pthread_mutex_unlock(&emu.lock);
    return 0;
}

/* The last user takes the failure with it: the primary context is made anew. */
tncuda_result emu_context_release(int32_t device)
{
    const tncuda_result result = emu_enter(EMU_context_release, NULL);
    tncuda_context c;

    if (result || device < 0 || device >= emu.devices)
        return result ? result : 101;
    (void)pthread_mutex_lock(&emu.lock);
    c = emu.contexts[device];
    if (!c || !c->users)
        emu_defect("a context is released more often than it was retained");
    if (--c->users == 0)
        atomic_store(&c->failed, 0);
    (void)pthread_mutex_unlock(&emu.lock);
    return 0;
}

void emu_context_fail(tncuda_context context, tncuda_result result)
{
    int none = 0;

    (void)atomic_compare_exchange_strong(&context->failed, &none, result);
}

tncuda_result emu_context_push(tncuda_context context)
{
    const tncuda_result result = emu_enter(EMU_context_push, NULL);

    if (result)
        return result;
    if (current.depth == CONTEXTS_MAX)
        emu_defect("a thread has %u contexts at once: pushes without pops", current.depth);
    current.stack[current.depth++] = context;
    return 0;
}

tncuda_result emu_context_pop(tncuda_context *out)
{
    if (!current.depth)
        return 201;
    *out = current.stack[--current.depth];
    return 0;
}

tncuda_result emu_context_device(int32_t *out)
{
    tncuda_context c;
    const tncuda_result result = emu_enter(EMU_context_device, &c);

    if (!result)
        *out = c->device;
    return result;
}

tncuda_result emu_context_priorities(int32_t *least, int32_t *greatest)
{
    tncuda_context c;

    *least = 0;
    *greatest = -5;
    return emu_enter(EMU_context_priorities, &c);
}

tncuda_result emu_context_peer(tncuda_context peer, uint32_t flags)
{
    tncuda_context c;

    return flags || !peer ? TNCUDA_INVALID_VALUE : emu_enter(EMU_context_peer, &c);
}

/* ---- memory ------------------------------------------------------------------------------------------ */

static block *block_find_locked(const char *at)
{
    for (block *b = emu.blocks; b; b = b->next)
        if (at >= b->data && (size_t)(at - b->data) < b->bytes)
            return b;
    return NULL;
}

int32_t emu_memory_kind(tncuda_address at, size_t bytes)
{
    const char *data = (const char *)(uintptr_t)at;
    const block *b;
    int32_t kind;

    (void)pthread_mutex_lock(&emu.lock);
    b = block_find_locked(data);
    kind = !b ? 0 : bytes > b->bytes - (size_t)(data - b->data) ? -1 : b->device < 0 ? 2 : 1;
    (void)pthread_mutex_unlock(&emu.lock);
    return kind;
}

/* CU_POINTER_ATTRIBUTE_MEMORY_TYPE: 1 host, 2 device; INVALID_VALUE: memory that the driver does not know. */
tncuda_result emu_pointer(void *out, int32_t attribute, tncuda_address data)
{
    tncuda_context c;
    const tncuda_result result = emu_enter(EMU_pointer, &c);
    const int32_t kind = emu_memory_kind(data, 1);
    const uint32_t type = kind == 2 ? 1 : 2;

    if (result || attribute != 2 || !kind)
        return result ? result : TNCUDA_INVALID_VALUE;
    memcpy(out, &type, sizeof type);
    return 0;
}

static void block_add(void *data, size_t bytes, int32_t device, bool registered)
{
    block *b = emu_new(sizeof *b);

    *b = (block){.data = data, .bytes = bytes, .device = device, .registered = registered};
    (void)pthread_mutex_lock(&emu.lock);
    b->next = emu.blocks;
    emu.blocks = b;
    (void)pthread_mutex_unlock(&emu.lock);
}

/* Takes the block that begins at `data` out of the list. */
static bool block_take(void *data, bool pinned, bool registered, block *out)
{
    block *b;

    (void)pthread_mutex_lock(&emu.lock);
    for (block **at = &emu.blocks; (b = *at); at = &b->next)
        if (b->data == data && (b->device < 0) == pinned && b->registered == registered) {
            *at = b->next;
            break;
        }
    (void)pthread_mutex_unlock(&emu.lock);
    if (b)
        *out = *b;
    free(b);
    return b != NULL;
}

static tncuda_result memory_make(uint32_t function, size_t bytes, bool pinned, void **out)
{
    const size_t whole = (bytes + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN;
    tncuda_context c;
    tncuda_result result = emu_enter(function, &c);
    void *data;

    if (result || !bytes || bytes > ((size_t)1 << 46))
        return result ? result : bytes ? TNCUDA_OUT_OF_MEMORY : TNCUDA_INVALID_VALUE;
    (void)pthread_mutex_lock(&c->lock);
    if (!pinned && whole > emu.memory_bytes - c->used_bytes)
        result = TNCUDA_OUT_OF_MEMORY;
    else if (!pinned)
        c->used_bytes += whole;
    (void)pthread_mutex_unlock(&c->lock);
    if (result || posix_memalign(&data, BLOCK_ALIGN, bytes))
        return TNCUDA_OUT_OF_MEMORY;
    if (!pinned && bytes <= ((size_t)1 << 24))
        memset(data, 0xff, bytes); /* a float that is read too early is NaN */
    block_add(data, bytes, pinned ? -1 : c->device, false);
    *out = data;
    return 0;
}

tncuda_result emu_memory_alloc(tncuda_address *out, size_t bytes)
{
    void *data;
    const tncuda_result result = memory_make(EMU_memory_alloc, bytes, false, &data);

    if (!result)
        *out = (tncuda_address)(uintptr_t)data;
    return result;
}

tncuda_result emu_memory_managed(tncuda_address *out, size_t bytes, uint32_t flags)
{
    void *data;
    const tncuda_result result = memory_make(EMU_memory_managed, bytes, false, &data);

    if (flags != TNCUDA_MANAGED_GLOBAL)
        return TNCUDA_INVALID_VALUE;
    if (!result)
        *out = (tncuda_address)(uintptr_t)data;
    return result;
}

tncuda_result emu_memory_free(tncuda_address data)
{
    tncuda_context c;
    const tncuda_result result = emu_enter(EMU_memory_free, &c);
    block b;

    if (!block_take((void *)(uintptr_t)data, false, false, &b))
        return TNCUDA_INVALID_VALUE;
    (void)pthread_mutex_lock(&emu.contexts[b.device]->lock);
    emu.contexts[b.device]->used_bytes -= (b.bytes + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN;
    (void)pthread_mutex_unlock(&emu.contexts[b.device]->lock);
    free(b.data);
    return result;
}

tncuda_result emu_memory_info(size_t *free_bytes, size_t *total_bytes)
{
    tncuda_context c;
    const tncuda_result result = emu_enter(EMU_memory_info, &c);

    if (result)
        return result;
    (void)pthread_mutex_lock(&c->lock);
    *free_bytes = (size_t)(emu.memory_bytes - c->used_bytes);
    (void)pthread_mutex_unlock(&c->lock);
    *total_bytes = (size_t)emu.memory_bytes;
    return 0;
}

tncuda_result emu_host_alloc(void **out, size_t bytes, uint32_t flags)
{
    return flags == TNCUDA_HOST_PORTABLE ? memory_make(EMU_host_alloc, bytes, true, out)
                                         : TNCUDA_INVALID_VALUE;
}

tncuda_result emu_host_free(void *data)
{
    tncuda_context c;
    const tncuda_result result = emu_enter(EMU_host_free, &c);
    block b;

    if (!block_take(data, true, false, &b))
        return TNCUDA_INVALID_VALUE;
    free(b.data);
    return result;
}

tncuda_result emu_host_register(void *data, size_t bytes, uint32_t flags)
{
    tncuda_context c;
    const tncuda_result result = emu_enter(EMU_host_register, &c);
    bool taken;

    if (result || flags != TNCUDA_HOST_PORTABLE)
        return result ? result : TNCUDA_INVALID_VALUE;
    (void)pthread_mutex_lock(&emu.lock);
    taken = block_find_locked(data) != NULL;
    (void)pthread_mutex_unlock(&emu.lock);
    if (taken)
        return 712; /* HOST_MEMORY_ALREADY_REGISTERED */
    block_add(data, bytes, -1, true);
    return 0;
}

tncuda_result emu_host_unregister(void *data)
{
    tncuda_context c;
    const tncuda_result result = emu_enter(EMU_host_unregister, &c);
    block b;

    return block_take(data, true, true, &b) ? result : 713;
}
