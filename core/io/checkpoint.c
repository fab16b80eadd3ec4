/*
 * Checkpoints: one file each, in a folder.
 *
 * A file is magic, then sections {u32 kind, u32 0, u64 bytes, payload, u32 crc of all these}: the JSON text,
 * the arrays (an embedded .params), and an end that repeats the number and the checksum of all before it: a
 * file without a right end is torn. It is written aside, synced, renamed, and the folder synced; the number
 * of the newest file is the order. Loading takes the newest file that is whole and says which newer ones were
 * not.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/internal.h"

#define MAGIC "TNCKPT1\n"
#define SECTION_JSON 0x4e4f534au   /* "JSON" */
#define SECTION_PARAMS 0x534d5250u /* "PRMS" */
#define SECTION_END 0x20444e45u    /* "END " */
#define NAME_FORMAT "checkpoint-%06u.tnck"
#define FILES_MAX (TNI_CHECKPOINT_KEEP_MAX + 64) /* in one folder */
#define NUMBER_MAX 4000000000u

/* ---- the folder -------------------------------------------------------------------------------------- */

/* "checkpoint-000012.tnck" gives 12 and ""; "checkpoint-000012.tnck.tmp-7-1" gives ".tmp-7-1" as `rest`. */
static bool name_parse(const char *name, uint32_t *number, const char **rest)
{
    char expected[48];
    char *end;
    unsigned long long value;

    if (strncmp(name, "checkpoint-", 11) || name[11] < '0' || name[11] > '9')
        return false;
    value = strtoull(name + 11, &end, 10);
    if (value == 0 || value > NUMBER_MAX)
        return false;
    (void)snprintf(expected, sizeof expected, NAME_FORMAT, (unsigned)value);
    if (strncmp(name, expected, strlen(expected)))
        return false;
    *number = (uint32_t)value;
    *rest = name + strlen(expected);
    return true;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

/* Numbers of the files that are there, ascending; a folder that is not there has none. `clean`: left-overs of
 * processes that are gone are removed. */
static tn_status folder_list(const char *folder, bool clean, tni_vec *numbers)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    tn_status st = TN_OK;

    if (!dir) {
        char text[128];

        return errno == ENOENT ? TN_OK
                               : tni_error(TN_E_IO, "%s: cannot read the folder: %s", folder,
                                           strerror_r(errno, text, sizeof text));
    }
    while (!st && (entry = readdir(dir))) {
        uint32_t number;
        const char *rest;

        if (!name_parse(entry->d_name, &number, &rest))
            continue;
        if (rest[0] == '\0')
            st = tni_vec_push(numbers, &number);
        else if (clean && !strncmp(rest, ".tmp-", 5))
            (void)unlinkat(dirfd(dir), entry->d_name, 0);
    }
    closedir(dir);
    if (!st && numbers->count)
        qsort(numbers->data, numbers->count, sizeof(uint32_t), by_number);
    return st;
}

static tn_status file_path(const char *folder, uint32_t number, char **out)
{
    char name[48];

    (void)snprintf(name, sizeof name, NAME_FORMAT, (unsigned)number);
    return tni_path_join(folder, name, out);
}

/* ---- writing ----------------------------------------------------------------------------------------- */

static tn_status section_begin(tni_sink *to, uint32_t kind, uint64_t bytes)
{
    tn_status st;

    to->crc = 0;
    if ((st = tni_sink_u32(to, kind)) || (st = tni_sink_u32(to, 0)))
        return st;
    return tni_sink_u64(to, bytes);
}

static tn_status section_end(tni_sink *to)
{
    return tni_sink_u32(to, to->crc);
}

/* A sink that only counts. */
static tn_status params_bytes(const tni_params *p, uint64_t *out)
{
    uint64_t bytes = 4 * sizeof(uint64_t);

    for (size_t i = 0; i < p->count; i++) {
        tni_array *a = p->arrays[i];
        tni_array *values = NULL;
        tn_status st;

        bytes += p->named ? sizeof(uint64_t) + strlen(p->names[i]) : 0;
        bytes += 12; /* magic, storage type, dimensions */
        if (!a)
            continue;
        if ((st = tni_array_shape_wait(a)))
            return st;
        bytes += (uint64_t)a->ndim * 8 + 12; /* dimensions, device, dtype */
        if (a->storage_type == TN_STORAGE_DENSE) {
            bytes += tni_array_bytes(a);
            continue;
        }
        if ((st = tni_array_values(a, &values)))
            return st;
        bytes += 4 + (uint64_t)values->ndim * 8 + tni_array_bytes(values);
        for (int k = 0; k < 2 && a->aux[k]; k++)
            bytes += 16 + tni_array_bytes(a->aux[k]);
        tni_array_release(values);
    }
    *out = bytes;
    return TN_OK;
}

static tn_status checkpoint_write(tni_sink *to, uint32_t number, const char *json, const tni_params *p)
{
    uint64_t params = 0, start;
    uint32_t crcs[2];
    tn_status st;

    if ((st = params_bytes(p, &params)) || (st = tni_sink_write(to, MAGIC, 8)) ||
        (st = section_begin(to, SECTION_JSON, strlen(json))) || (st = tni_sink_write(to, json, strlen(json))))
        return st;
    crcs[0] = to->crc;
    if ((st = section_end(to)) || (st = section_begin(to, SECTION_PARAMS, params)))
        return st;
    start = to->bytes;
    if ((st = tni_params_write(p, to)))
        return st;
    if (to->bytes - start != params)
        return tni_error(TN_E_INTERNAL, "a checkpoint of %llu bytes was announced as %llu",
                         (unsigned long long)(to->bytes - start), (unsigned long long)params);
    crcs[1] = to->crc;
    if ((st = section_end(to)) || (st = section_begin(to, SECTION_END, 12)) ||
        (st = tni_sink_u32(to, number)) || (st = tni_sink_write(to, crcs, sizeof crcs)))
        return st;
    return section_end(to);
}

static tn_status file_write(const char *path, uint32_t number, const char *json, const tni_params *p)
{
    tni_sink to = {.writer = NULL};
    tn_status st = tni_writer_open(path, &to.writer);

    if (st)
        return st;
    if ((st = checkpoint_write(&to, number, json, p)) || (st = tni_failpoint("checkpoint_written")) ||
        (st = tni_writer_sync(to.writer)) || (st = tni_failpoint("checkpoint_synced"))) {
        tni_writer_abandon(to.writer);
        return st;
    }
    st = tni_writer_commit(to.writer);
    return st ? st : tni_failpoint("checkpoint_renamed");
}

tn_status tni_checkpoint_save(const char *folder, const char *json, const tni_params *p, uint32_t keep,
                              char **path)
{
    tni_vec numbers;
    char *file = NULL, *old = NULL;
    uint32_t number = 1;
    tn_status st;

    if (strlen(json) > TN_JSON_BYTES_MAX)
        return tni_error(TN_E_ARG, "a checkpoint's text of %zu bytes", strlen(json));
    tni_vec_init(&numbers, sizeof(uint32_t), FILES_MAX);
    if ((st = tni_failpoint("checkpoint_begin")) || (st = tni_folder_create(folder)) ||
        (st = folder_list(folder, true, &numbers)))
        goto cleanup;
    if (numbers.count)
        number = *(uint32_t *)tni_vec_at(&numbers, numbers.count - 1) + 1;
    if (number > NUMBER_MAX) {
        st = tni_error(TN_E_STATE, "%s: no checkpoint number is left", folder);
        goto cleanup;
    }
    if ((st = file_path(folder, number, &file)) || (st = file_write(file, number, json, p)))
        goto cleanup;
    for (size_t i = 0; keep && i + keep <= numbers.count; i++) {
        if (file_path(folder, *(uint32_t *)tni_vec_at(&numbers, i), &old))
            break; /* one too many is no harm */
        (void)unlink(old);
        tni_free(old);
    }
    if (path) {
        *path = file;
        file = NULL;
    }

cleanup:
    tni_free(file);
    tni_vec_fini(&numbers);
    return st;
}

/* ---- reading ----------------------------------------------------------------------------------------- */

void tni_checkpoint_destroy(tni_checkpoint *c)
{
    if (!c)
        return;
    tni_free(c->path);
    tni_free(c->json);
    tni_free(c->skipped);
    tni_params_destroy(c->params);
    tni_free(c);
}

/* Opens the next section: `part` then reads its payload. */
static tn_status section_open(tni_source *file, uint32_t kind, uint64_t bytes_max, tni_source *part)
{
    uint32_t found, zero;
    uint64_t bytes;
    tn_status st;

    file->crc = 0;
    if ((st = tni_source_u32(file, &found)) || (st = tni_source_u32(file, &zero)) ||
        (st = tni_source_u64(file, &bytes)))
        return st;
    if (found != kind || zero)
        return tni_error(TN_E_FORMAT, "%s: section %08x, but %08x was expected", tni_file_name(file->file),
                         found, kind);
    if (bytes > bytes_max || bytes > file->left)
        return tni_error(TN_E_FORMAT, "%s: a section of %llu bytes, %llu are left", tni_file_name(file->file),
                         (unsigned long long)bytes, (unsigned long long)file->left);
    *part = (tni_source){.file = file->file, .left = bytes, .crc = file->crc};
    file->left -= bytes;
    return TN_OK;
}

static tn_status section_close(tni_source *file, const tni_source *part)
{
    uint32_t crc;
    tn_status st = tni_source_u32(file, &crc);

    if (st)
        return st;
    if (crc != part->crc || part->left)
        return tni_error(TN_E_FORMAT, "%s: damaged: checksum %08x, but %08x was written",
                         tni_file_name(file->file), part->crc, crc);
    return TN_OK;
}

static tn_status json_read(tni_source *file, tni_checkpoint *c, uint32_t *crc)
{
    tni_source part;
    uint64_t bytes;
    tn_status st = section_open(file, SECTION_JSON, TN_JSON_BYTES_MAX, &part);

    if (st)
        return st;
    bytes = part.left;
    c->json = tni_alloc(bytes + 1);
    if (!c->json)
        return TN_E_NOMEM;
    c->json[bytes] = '\0';
    if ((st = tni_source_read(&part, c->json, bytes)) || (st = section_close(file, &part)))
        return st;
    *crc = part.crc;
    if (strlen(c->json) != bytes)
        return tni_error(TN_E_FORMAT, "%s: its text holds a NUL", tni_file_name(file->file));
    return TN_OK;
}

static tn_status end_read(tni_source *file, uint32_t *number, const uint32_t crcs[2])
{
    uint32_t end[3];
    tni_source part;
    tn_status st;

    if ((st = section_open(file, SECTION_END, sizeof end, &part)) ||
        (st = tni_source_read(&part, end, sizeof end)) || (st = section_close(file, &part)))
        return st;
    if (end[1] != crcs[0] || end[2] != crcs[1] || file->left)
        return tni_error(TN_E_FORMAT, "%s: its end belongs to another checkpoint", tni_file_name(file->file));
    *number = end[0];
    return TN_OK;
}

tn_status tni_checkpoint_load(tni_space *s, tni_device *device, const char *path, tni_checkpoint **out)
{
    tni_file *f = NULL;
    tni_checkpoint *c = tni_zalloc(sizeof *c);
    tni_source file, part;
    char magic[8];
    uint32_t crcs[2] = {0};
    tn_status st;

    if (!c)
        return TN_E_NOMEM;
    if ((st = tni_file_open(path, &f)))
        goto cleanup;
    file = (tni_source){.file = f, .left = tni_file_left(f)};
    if ((st = tni_source_read(&file, magic, sizeof magic)))
        goto cleanup;
    if (memcmp(magic, MAGIC, sizeof magic)) {
        if (!(st = tni_file_kind_check(f, TNI_KIND_CHECKPOINT)))
            st = tni_error(TN_E_FORMAT, "%s is no checkpoint of version 1", path);
        goto cleanup;
    }
    if ((st = json_read(&file, c, &crcs[0])) ||
        (st = section_open(&file, SECTION_PARAMS, TN_SIZE_MAX, &part)) ||
        (st = tni_params_read(&part, s, device, &c->params)) || (st = section_close(&file, &part)))
        goto cleanup;
    crcs[1] = part.crc;
    if ((st = end_read(&file, &c->number, crcs)))
        goto cleanup;
    c->path = tni_strdup(path);
    st = c->path ? TN_OK : TN_E_NOMEM;

cleanup:
    tni_file_close(f);
    if (st) {
        tni_checkpoint_destroy(c);
        return st;
    }
    *out = c;
    return TN_OK;
}

static bool worth_another(tn_status st)
{
    return st == TN_E_FORMAT || st == TN_E_IO || st == TN_E_UNSUPPORTED;
}

tn_status tni_checkpoint_load_latest(tni_space *s, tni_device *device, const char *folder,
                                     tni_checkpoint **out)
{
    tni_checkpoint *c = NULL;
    tni_vec numbers;
    tni_str skipped;
    char *path = NULL;
    tn_err last; /* its text goes into another one */
    tn_status st;

    tni_vec_init(&numbers, sizeof(uint32_t), FILES_MAX);
    tni_str_init(&skipped, TN_TEXT_MAX);
    st = folder_list(folder, false, &numbers);
    if (!st && numbers.count == 0)
        st = tni_error(TN_E_KEY, "there is no checkpoint in %s", folder);
    for (size_t i = numbers.count; i-- > 0;) {
        if ((st = file_path(folder, *(uint32_t *)tni_vec_at(&numbers, i), &path)))
            break;
        st = tni_checkpoint_load(s, device, path, &c);
        tni_free(path);
        if (!st || !worth_another(st))
            break;
        (void)tni_str_addf(&skipped, "%s\n", tni_error_message());
    }
    if (!st && skipped.length)
        st = tni_str_take(&skipped, &c->skipped);
    if (worth_another(st) && numbers.count) {
        tni_error_get(&last);
        st = tni_error(TN_E_FORMAT, "no checkpoint of %zu in %s is whole; the oldest: %.200s", numbers.count,
                       folder, last.message);
    }
    if (st)
        tni_checkpoint_destroy(c);
    else
        *out = c;
    tni_str_fini(&skipped);
    tni_vec_fini(&numbers);
    return st;
}
