/*
 * Group archive: one case for each archive table of the plugin. The host's file is memory; what the plugin
 * wrote there it reads again, whole, cut and changed.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define ENTRIES 4u
#define ROOM_BYTES ((uint64_t)1 << 20)

typedef struct archive {
    chk_env *env;
    chk_plugin plugin;
    const tn_archive_ops *ops;
    uint8_t *file; /* ROOM_BYTES */
    uint64_t bytes;
    uint64_t fail_at; /* the so-manieth call of the host's fails, counted down; 0: none */
    bool failed;
    tn_archive_entry entries[ENTRIES];
} archive;

static uint8_t byte_of(uint32_t index, uint64_t at)
{
    return (uint8_t)(at * at * (index + 3) + at / 251);
}

/* True: this call of the host fails. */
static bool fails(archive *a, tn_err *err)
{
    if (!a->fail_at || --a->fail_at)
        return false;
    a->failed = true;
    (void)tn_fail(err, TN_E_IO, "the host's file fails");
    return true;
}

static tn_status file_read(void *self, uint64_t at, void *out, uint64_t bytes, tn_err *err)
{
    archive *a = self;

    if (fails(a, err))
        return TN_E_IO;
    if (at > a->bytes || bytes > a->bytes - at)
        return tn_fail(err, TN_E_FORMAT, "the file ends before");
    memcpy(out, a->file + at, bytes);
    return TN_OK;
}

static tn_status file_write(void *self, const void *data, uint64_t bytes, tn_err *err)
{
    archive *a = self;

    if (fails(a, err))
        return TN_E_IO;
    if (bytes > ROOM_BYTES - a->bytes)
        return tn_fail(err, TN_E_IO, "the file is full");
    memcpy(a->file + a->bytes, data, bytes);
    a->bytes += bytes;
    return TN_OK;
}

static tn_status entry_read(void *self, uint32_t index, uint64_t at, void *out, uint64_t bytes, tn_err *err)
{
    archive *a = self;

    if (fails(a, err))
        return TN_E_IO;
    if (index >= ENTRIES || at > a->entries[index].bytes || bytes > a->entries[index].bytes - at)
        chk_fail(a->env, "A-round", "write asks for %llu bytes from %llu on of entry %u, which has no such",
                 (unsigned long long)bytes, (unsigned long long)at, (unsigned)index);
    for (uint64_t i = 0; i < bytes; i++)
        ((uint8_t *)out)[i] = byte_of(index, at + i);
    return TN_OK;
}

static tn_status archive_write(archive *a, tn_err *err)
{
    const tn_archive_output to = {.struct_size = (uint32_t)TN_END(tn_archive_output, write),
                                  .count = ENTRIES,
                                  .self = a,
                                  .entries = a->entries,
                                  .read = entry_read,
                                  .write = file_write};

    a->bytes = 0;
    return a->ops->write(a->plugin.self, &to, err);
}

static void begin(archive *a, chk_env *env)
{
    static const char *const names[ENTRIES] = {"weight", "a", "layer1.bias", "large"};
    static const uint64_t sizes[ENTRIES] = {80, 0, 1, 70001};

    *a = (archive){.env = env, .file = malloc(ROOM_BYTES)};
    chk_fail_if(env, !a->file, "kit", "out of memory");
    a->ops = chk_capability(env, TN_KIND_ARCHIVE, env->subject, NULL);
    for (uint32_t i = 0; i < ENTRIES; i++)
        a->entries[i] = (tn_archive_entry){
            .struct_size = (uint32_t)TN_END(tn_archive_entry, bytes), .name = names[i], .bytes = sizes[i]};
    (void)chk_plugin_open(env, CHK_HOST_EXACT, &a->plugin);
}

static void end(archive *a)
{
    (void)chk_plugin_close(a->env, &a->plugin);
    free(a->file);
}

static void write_well(archive *a)
{
    tn_err err = {0};
    const tn_status st = archive_write(a, &err);

    chk_fail_if(a->env, st, NULL, "write fails with %s: %s", tn_status_name(st), err.message);
}

/* Opens what lies in the file and reads every entry to its end. `whole`: it must be what was written. */
static tn_status archive_read(archive *a, bool whole, tn_err *err)
{
    const tn_archive_input from = {.struct_size = (uint32_t)TN_END(tn_archive_input, read),
                                   .self = a,
                                   .bytes = a->bytes,
                                   .read = file_read};
    tn_archive *opened = NULL;
    uint8_t piece[4096];
    uint32_t index = 0;
    tn_status st = a->ops->open(a->plugin.self, &from, &opened, err);

    if (st)
        return st;
    chk_fail_if(a->env, !opened, "R1", "open gives no archive");
    for (; !st; index++) {
        tn_archive_entry e = {.struct_size = (uint32_t)TN_END(tn_archive_entry, bytes)};

        if ((st = a->ops->entry(opened, index, &e, err)))
            break;
        chk_fail_if(a->env, !e.name, "R1", "entry %u has no name", (unsigned)index);
        if (whole && (index >= ENTRIES || strcmp(e.name, a->entries[index].name) != 0 ||
                      e.bytes != a->entries[index].bytes))
            chk_fail(a->env, "A-round", "entry %u is \"%s\" of %llu bytes, another one was written",
                     (unsigned)index, e.name, (unsigned long long)e.bytes);
        st = a->ops->begin(opened, index, err);
        for (uint64_t at = 0; !st && at < e.bytes;) {
            const uint64_t left = e.bytes - at, count = 1 + chk_random(a->env) % sizeof piece;
            const uint64_t bytes = count < left ? count : left;

            st = a->ops->read(opened, piece, bytes, err);
            for (uint64_t i = 0; whole && !st && i < bytes; i++, at++)
                if (piece[i] != byte_of(index, at))
                    chk_fail(a->env, "A-round", "byte %llu of entry %u is another one than was written",
                             (unsigned long long)at, (unsigned)index);
            at += whole ? 0 : bytes;
        }
        if (!st && whole && !a->ops->read(opened, piece, 1, err))
            chk_fail(a->env, "A-round", "entry %u gives a byte more than it has", (unsigned)index);
    }
    a->ops->close(opened);
    if (st == TN_E_KEY && (!whole || index == ENTRIES))
        return TN_OK;
    chk_fail_if(a->env, st == TN_E_KEY, "A-round", "%u entries are read, %u were written", (unsigned)index,
                (unsigned)ENTRIES);
    return st;
}

void chk_archive_round(chk_env *env)
{
    tn_err err = {0};
    archive a;
    tn_status st;

    begin(&a, env);
    for (int again = 0; again < 2; again++) {
        write_well(&a);
        chk_fail_if(env, a.ops->probe(a.plugin.self, a.file, a.bytes < 64 ? a.bytes : 64) != 1, NULL,
                    "probe does not know what write wrote");
        chk_fail_if(env, a.ops->probe(a.plugin.self, a.file, 0) != 0, NULL, "probe knows a file of no bytes");
        st = archive_read(&a, true, &err);
        chk_fail_if(env, st, NULL, "what write wrote fails with %s: %s", tn_status_name(st), err.message);
        chk_count(env);
    }
    end(&a);
}

void chk_archive_damaged(chk_env *env)
{
    uint64_t before;
    archive a;

    begin(&a, env);
    a.entries[3].bytes = 300;
    write_well(&a);
    before = chk_host_memory(a.plugin.host, NULL);
    for (uint64_t i = 0; i < a.bytes; i++) {
        const uint64_t whole = a.bytes;
        const uint8_t kept = a.file[i];
        tn_err err = {0};
        tn_status st;

        a.bytes = i;
        st = archive_read(&a, false, &err);
        a.bytes = whole;
        if (!st)
            chk_fail(env, NULL, "a file of %llu bytes is read of which %llu are left",
                     (unsigned long long)whole, (unsigned long long)i);
        a.file[i] = (uint8_t)(kept ^ (1u << i % 8));
        (void)archive_read(&a, false, &err);
        a.file[i] = kept;
        chk_host_left(a.plugin.host, before, "reading a file that is damaged at byte %llu",
                      (unsigned long long)i);
        chk_count(env);
    }
    end(&a);
}

/* Each call of the host's fails once: the call of the plugin's gives its status. */
void chk_archive_passed(chk_env *env)
{
    archive a;

    begin(&a, env);
    for (int reads = 0; reads < 2; reads++) {
        bool over = false;

        a.entries[3].bytes = 300;
        for (uint64_t nth = 1; !over && nth < 1000; nth++) {
            tn_err err = {0};
            tn_status st;

            a.failed = false;
            if (reads)
                write_well(&a);
            a.fail_at = nth;
            st = reads ? archive_read(&a, false, &err) : archive_write(&a, &err);
            a.fail_at = 0;
            over = !a.failed;
            if (a.failed && st != TN_E_IO)
                chk_fail(env, NULL, "call %llu of the host's file fails with TN_E_IO, %s gives %s",
                         (unsigned long long)nth, reads ? "reading" : "writing", tn_status_name(st));
            chk_count(env);
        }
    }
    end(&a);
}

void chk_archive_memory(chk_env *env)
{
    bool over = false;
    archive a;

    begin(&a, env);
    for (uint64_t nth = 1; !over && nth < 1000; nth++) {
        const uint64_t before = chk_host_memory(a.plugin.host, NULL);
        tn_err err = {0};
        tn_status st;

        chk_host_fail_at(a.plugin.host, nth);
        st = archive_write(&a, &err);
        if (!st)
            st = archive_read(&a, true, &err);
        over = !chk_host_failed(a.plugin.host);
        chk_host_fail_at(a.plugin.host, 0);
        if (over ? st != TN_OK : st != TN_E_NOMEM)
            chk_fail(env, NULL, "allocation %llu of the host fails: %s", (unsigned long long)nth,
                     tn_status_name(st));
        chk_host_left(a.plugin.host, before, "where allocation %llu fails", (unsigned long long)nth);
        chk_count(env);
    }
    end(&a);
}
