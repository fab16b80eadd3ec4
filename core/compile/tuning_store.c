/*
 * Blobs of tuned kernels by key, and the file that keeps them from process to process. The file is read whole
 * and written whole, when its context closes: what is new is added to what stands there by then. Of two
 * processes that write at once one's new blobs may be lost; they are measured again. A damaged file is as
 * good as none.
 *
 * The file, little-endian: "TNTUNE1\n", u32 CRC-32 of all that follows, u32 number of entries, the entries,
 * oldest first: {u32 bytes of the key, u32 bytes of the blob, key, blob}.
 */
#include "compile/tuning.h"

#include <string.h>

#define MAGIC "TNTUNE1\n"
#define HEAD_BYTES 16u
#define ENTRY_HEAD_BYTES 8u
#define ENTRIES_MAX 8192u /* a key has some 500 bytes */
#define WHY_BYTES 600u

typedef struct entry {
    uint64_t hash;
    uint32_t key_bytes, blob_bytes;
    char *bytes; /* key, blob */
    bool fresh;  /* not of the file */
} entry;

struct tni_tuning_store {
    tni_mutex lock;
    const tni_log *log;
    char *path; /* "": none */
    tni_vec entries;
    uint64_t bytes; /* that they take in the file */
    bool read, fresh;
};

/* ---- entries ------------------------------------------------------------------------------------------- */

static uint64_t entry_bytes(const entry *e)
{
    return ENTRY_HEAD_BYTES + (uint64_t)e->key_bytes + e->blob_bytes;
}

static void entries_clear(tni_vec *list)
{
    for (size_t i = 0; i < list->count; i++)
        tni_free(((entry *)tni_vec_at(list, i))->bytes);
    tni_vec_fini(list);
}

static size_t entry_index(const tni_vec *list, const void *key, uint64_t bytes)
{
    const uint64_t hash = tni_hash_bytes(0, key, bytes);

    for (size_t i = 0; i < list->count; i++) {
        const entry *e = tni_vec_at(list, i);

        if (e->hash == hash && e->key_bytes == bytes && !memcmp(e->bytes, key, bytes))
            return i;
    }
    return SIZE_MAX;
}

static void entry_remove(tni_vec *list, uint64_t *total, size_t index)
{
    entry *e = tni_vec_at(list, index);

    *total -= entry_bytes(e);
    tni_free(e->bytes);
    memmove(e, e + 1, (list->count - index - 1) * sizeof *e);
    list->count--;
}

/* As the newest one, in place of one with this key; the oldest go where there is no room. */
static tn_status entry_set(tni_vec *list, uint64_t *total, const entry *from)
{
    const size_t old = entry_index(list, from->bytes, from->key_bytes);
    const uint64_t bytes = (uint64_t)from->key_bytes + from->blob_bytes;
    entry e = *from;
    tn_status st;

    if (!(e.bytes = tni_alloc(bytes)))
        return TN_E_NOMEM;
    memcpy(e.bytes, from->bytes, bytes);
    e.hash = tni_hash_bytes(0, e.bytes, e.key_bytes);
    if (old != SIZE_MAX)
        entry_remove(list, total, old);
    while (list->count &&
           (*total + entry_bytes(&e) > TNI_TUNING_FILE_MAX - HEAD_BYTES || list->count >= ENTRIES_MAX))
        entry_remove(list, total, 0);
    if ((st = tni_vec_push(list, &e)))
        tni_free(e.bytes);
    else
        *total += entry_bytes(&e);
    return st;
}

/* ---- the file ------------------------------------------------------------------------------------------ */

static void u32_put(char *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (char)(value >> 8 * i);
}

static uint32_t u32_get(const char *at)
{
    uint32_t value = 0;

    for (int i = 0; i < 4; i++)
        value |= (uint32_t)(unsigned char)at[i] << 8 * i;
    return value;
}

/* NULL: all is well. `list` may hold a part where it is not. */
static const char *file_parse(char *text, uint64_t bytes, tni_vec *list, uint64_t *total)
{
    uint64_t at = HEAD_BYTES;
    uint32_t count;

    if (bytes < HEAD_BYTES || memcmp(text, MAGIC, strlen(MAGIC)) != 0)
        return "it is no file of this version";
    if (tni_crc32(0, text + 12, bytes - 12) != u32_get(text + 8))
        return "its checksum is wrong";
    if ((count = u32_get(text + 12)) > ENTRIES_MAX)
        return "it has too many entries";
    for (uint32_t i = 0; i < count; i++) {
        entry e = {0};

        if (bytes - at < ENTRY_HEAD_BYTES)
            return "it ends too early";
        e.key_bytes = u32_get(text + at);
        e.blob_bytes = u32_get(text + at + 4);
        at += ENTRY_HEAD_BYTES;
        if (e.key_bytes > TNI_TUNING_KEY_MAX || e.blob_bytes > TNI_TUNING_BLOB_MAX ||
            (uint64_t)e.key_bytes + e.blob_bytes > bytes - at)
            return "an entry is larger than the file or the limit";
        e.bytes = text + at;
        at += (uint64_t)e.key_bytes + e.blob_bytes;
        if (entry_set(list, total, &e))
            return "there is no memory for it";
    }
    return at == bytes ? NULL : "something stands behind its end";
}

/* What the file holds, in an empty `list`; `why` says what is wrong with it, "" if nothing is. */
static void file_read(const char *path, tni_vec *list, uint64_t *total, char why[WHY_BYTES])
{
    const char *wrong = NULL;
    char *text = NULL;
    uint64_t bytes = 0;

    *total = 0;
    *why = '\0';
    if (!tni_file_exists(path))
        return;
    if (tni_file_read_all(path, TNI_TUNING_FILE_MAX, &text, &bytes))
        snprintf(why, WHY_BYTES, "tuned kernels are not read: %s", tni_error_message());
    else if ((wrong = file_parse(text, bytes, list, total)) != NULL)
        snprintf(why, WHY_BYTES, "%.400s is not used and will be written anew: %s", path, wrong);
    if (wrong) {
        entries_clear(list);
        *total = 0;
    }
    tni_free(text);
}

static tn_status list_write(const tni_tuning_store *s, const tni_vec *list)
{
    char head[HEAD_BYTES] = MAGIC;
    const char *slash = strrchr(s->path, '/');
    char *folder = slash && slash != s->path ? tni_strndup(s->path, (size_t)(slash - s->path)) : NULL;
    tni_str out;
    tn_status st;

    tni_str_init(&out, TNI_TUNING_FILE_MAX + 1);
    u32_put(head + 12, (uint32_t)list->count);
    (void)tni_str_add_bytes(&out, head, sizeof head);
    for (size_t i = 0; i < list->count; i++) {
        const entry *e = tni_vec_at(list, i);
        char sizes[ENTRY_HEAD_BYTES];

        u32_put(sizes, e->key_bytes);
        u32_put(sizes + 4, e->blob_bytes);
        (void)tni_str_add_bytes(&out, sizes, sizeof sizes);
        (void)tni_str_add_bytes(&out, e->bytes, (size_t)e->key_bytes + e->blob_bytes);
    }
    if (!(st = out.status)) {
        u32_put(out.text + 8, tni_crc32(0, out.text + 12, out.length - 12));
        if (!folder || !(st = tni_folder_create(folder)))
            st = tni_file_write_all(s->path, out.text, out.length);
    }
    tni_str_fini(&out);
    tni_free(folder);
    return st;
}

/* What other processes have written meanwhile stays. */
static void file_write(tni_tuning_store *s)
{
    char why[WHY_BYTES]; /* was told when it was first read */
    tni_vec list;
    uint64_t total;
    tn_status st = TN_OK;
    tn_err err;

    tni_error_get(&err);
    tni_vec_init(&list, sizeof(entry), ENTRIES_MAX);
    file_read(s->path, &list, &total, why);
    for (size_t i = 0; i < s->entries.count && !st; i++) {
        entry *e = tni_vec_at(&s->entries, i);

        if (e->fresh)
            st = entry_set(&list, &total, e);
    }
    if (st || (st = list_write(s, &list)))
        tni_logf(s->log, TN_LOG_DEBUG, "tuned kernels are not kept (%s): %s", tni_status_name(st),
                 tni_error_message());
    entries_clear(&list);
    tni_error_set(&err);
}

/* ---- the store ----------------------------------------------------------------------------------------- */

tn_status tni_tuning_store_create(const char *path, const tni_log *log, tni_tuning_store **out)
{
    tni_tuning_store *s = tni_zalloc(sizeof *s);

    if (!s)
        return TN_E_NOMEM;
    s->log = log;
    tni_vec_init(&s->entries, sizeof(entry), ENTRIES_MAX);
    if (!(s->path = tni_strdup(path)) || tni_mutex_init(&s->lock)) {
        tni_free(s->path);
        tni_free(s);
        return TN_E_NOMEM;
    }
    *out = s;
    return TN_OK;
}

void tni_tuning_store_destroy(tni_tuning_store *s)
{
    if (!s)
        return;
    if (s->fresh && s->path[0])
        file_write(s);
    entries_clear(&s->entries);
    tni_mutex_fini(&s->lock);
    tni_free(s->path);
    tni_free(s);
}

static void read_locked(tni_tuning_store *s, char why[WHY_BYTES])
{
    tn_err err;

    if (s->read || !s->path[0])
        return;
    s->read = true;
    tni_error_get(&err);
    file_read(s->path, &s->entries, &s->bytes, why);
    tni_error_set(&err);
}

void *tni_tuning_store_find(tni_tuning_store *s, const tni_str *key, uint64_t *bytes)
{
    char why[WHY_BYTES] = "";
    void *out = NULL;
    size_t at;

    tni_mutex_lock(&s->lock);
    read_locked(s, why);
    if ((at = entry_index(&s->entries, key->text, key->length)) != SIZE_MAX) {
        const entry *e = tni_vec_at(&s->entries, at);

        if ((out = tni_alloc(e->blob_bytes)) != NULL) {
            memcpy(out, e->bytes + e->key_bytes, e->blob_bytes);
            *bytes = e->blob_bytes;
        }
    }
    tni_mutex_unlock(&s->lock);
    if (*why)
        tni_logf(s->log, TN_LOG_WARNING, "%s", why);
    return out;
}

void tni_tuning_store_set(tni_tuning_store *s, const tni_str *key, const void *blob, uint64_t bytes)
{
    entry e = {.key_bytes = (uint32_t)key->length, .blob_bytes = (uint32_t)bytes, .fresh = true};
    const entry *old;
    size_t at;

    if (key->length > TNI_TUNING_KEY_MAX || bytes > TNI_TUNING_BLOB_MAX || !bytes) {
        tni_logf(s->log, TN_LOG_DEBUG, "what a kernel measured is not kept: %llu bytes, and at most %u are",
                 (unsigned long long)bytes, TNI_TUNING_BLOB_MAX);
        return;
    }
    if (!(e.bytes = tni_alloc(key->length + bytes)))
        return;
    memcpy(e.bytes, key->text, key->length);
    memcpy(e.bytes + key->length, blob, bytes);
    tni_mutex_lock(&s->lock);
    at = entry_index(&s->entries, key->text, key->length);
    old = at == SIZE_MAX ? NULL : tni_vec_at(&s->entries, at);
    if (!old || old->blob_bytes != bytes || memcmp(old->bytes + old->key_bytes, blob, bytes) != 0)
        s->fresh |= !entry_set(&s->entries, &s->bytes, &e);
    tni_mutex_unlock(&s->lock);
    tni_free(e.bytes);
}
