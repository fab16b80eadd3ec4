/*
 * Snapshots and the journal as files. A snapshot is written beside its name, synced and renamed, and older
 * ones than the newest three are removed then, and so are those behind a step to which servers went back; a
 * journal is appended to and synced. So a crash at any point leaves the newest state that was reported as
 * written, or a later one.
 *
 * Whose it is. A process that was stopped may go on when another has its place, and its folder. So each that
 * opens it writes its number into JOB-server-RANK.owner, or JOB-scheduler.owner, and nothing is renamed,
 * removed or appended unless one's own is there. The one that comes removes what is half written before it
 * looks at what there is: whoever was about to rename a snapshot finds it gone.
 */
#include "kv/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kv/post.h"

#define SNAPSHOT_MAX ((uint64_t)1 << 46)
#define JOURNAL_MAX ((uint64_t)1 << 34)
#define NAME_BYTES 96u

struct tni_kv_disk {
    char *folder, *text; /* text: of the snapshot or journal that was read */
    const tni_log *log;
    uint64_t job, steps[3], own; /* own: the number of this process */
    uint32_t rank;
    tni_thread *thread; /* that writes; what it works on is its own until `over` */
    tni_str writing;
    uint64_t step;
    tn_status status;
    tn_err error;
    atomic_bool over;
    void (*wake)(void *arg);
    void *wake_arg;
    char *path;  /* of the journal */
    char *owner; /* of the file that says whose it is */
    int fd;
};

static void name_of(const tni_kv_disk *d, uint64_t step, char out[NAME_BYTES])
{
    (void)snprintf(out, NAME_BYTES, "%016" PRIx64 "-server-%u-%" PRIu64 ".snapshot", d->job, d->rank, step);
}

static tn_status path_of(const tni_kv_disk *d, uint64_t step, char **out)
{
    char name[NAME_BYTES];

    name_of(d, step, name);
    return tni_path_join(d->folder, name, out);
}

/* The step that a file of this server is of; 0: it is none. `torn`: one that was not written to its end. */
static uint64_t step_of(const tni_kv_disk *d, const char *file, bool *torn)
{
    char name[NAME_BYTES], digits[24];
    uint64_t step = 0;
    size_t length;

    name_of(d, 0, name);
    length = strlen(name) - strlen("0.snapshot");
    if (strncmp(file, name, length) != 0)
        return 0;
    (void)snprintf(digits, sizeof digits, "%.*s", (int)strcspn(file + length, "."), file + length);
    if (!tni_parse_u64(digits, &step))
        return 0;
    name_of(d, step, name);
    length = strlen(name);
    *torn = strncmp(file, name, length) == 0 && strncmp(file + length, ".tmp-", 5) == 0;
    return *torn || strcmp(name, file) == 0 ? step : 0;
}

static void writer_wait(tni_kv_disk *d)
{
    if (!d->thread)
        return;
    tni_thread_join(d->thread);
    d->thread = NULL;
    tni_str_fini(&d->writing);
    atomic_store(&d->over, false);
}

static tn_status disk_make(const char *folder, uint64_t job, tni_kv_disk **out)
{
    tni_kv_disk *d = tni_zalloc(sizeof *d);
    tn_status st;

    if (!d)
        return TN_E_NOMEM;
    d->job = job;
    d->fd = -1;
    d->folder = tni_strdup(folder);
    st = d->folder ? tni_folder_create(folder) : TN_E_NOMEM;
    if (st)
        tni_kv_disk_close(d);
    else
        *out = d;
    return st;
}

void tni_kv_disk_close(tni_kv_disk *d)
{
    if (!d)
        return;
    writer_wait(d);
    if (d->fd >= 0)
        (void)close(d->fd);
    tni_free(d->folder);
    tni_free(d->text);
    tni_free(d->path);
    tni_free(d->owner);
    tni_free(d);
}

/* ---- whose it is ---- */

static tn_status owner_become(tni_kv_disk *d, const char *name)
{
    char number[24];
    tn_status st = tni_path_join(d->folder, name, &d->owner);

    d->own = tni_kv_birth();
    (void)snprintf(number, sizeof number, "%016" PRIx64 "\n", d->own);
    return st ? st : tni_file_write_all(d->owner, number, strlen(number));
}

/* Without the file nobody else can have come. */
static tn_status owner_check(const tni_kv_disk *d)
{
    char *text = NULL;
    uint64_t bytes, own = d->own;

    if (tni_file_exists(d->owner) && !tni_file_read_all(d->owner, NAME_BYTES, &text, &bytes))
        own = strtoull(text, NULL, 16);
    tni_free(text);
    return own == d->own ? TN_OK
                         : tni_error(TN_E_PEER, "%s: another process has taken this one's place", d->owner);
}

/* ---- snapshots ---- */

static tn_status snapshot_read(void *arg, uint64_t step, const void **text, uint64_t *bytes)
{
    tni_kv_disk *d = arg;
    char *path = NULL;
    tn_status st;

    writer_wait(d);
    st = path_of(d, step, &path);
    tni_free(d->text);
    d->text = NULL;
    if (!st)
        st = tni_file_read_all(path, SNAPSHOT_MAX, &d->text, bytes);
    if (!st)
        *text = d->text;
    tni_free(path);
    return st;
}

/* Calls fn for each snapshot of this server, with step 0 for those that are torn. */
static tn_status each(tni_kv_disk *d, void (*fn)(tni_kv_disk *d, uint64_t step, const char *name, void *arg),
                      void *arg)
{
    DIR *dir = opendir(d->folder);
    const struct dirent *e;

    if (!dir)
        return tni_error(TN_E_IO, "%s: %s", d->folder, strerror(errno));
    while ((e = readdir(dir)) != NULL) {
        bool torn = false;
        const uint64_t step = step_of(d, e->d_name, &torn);

        if (step)
            fn(d, torn ? 0 : step, e->d_name, arg);
    }
    (void)closedir(dir);
    return TN_OK;
}

/* `aside`: whole ones get another name, under which no process finds them; it counts them. */
static void old_remove(tni_kv_disk *d, uint64_t step, const char *name, void *aside)
{
    char *path = NULL, *kept = NULL, other[NAME_BYTES];

    (void)snprintf(other, sizeof other, "%s.aside", name);
    if ((step && (step == d->steps[0] || step == d->steps[1] || step == d->steps[2])) || owner_check(d) ||
        tni_path_join(d->folder, name, &path))
        return;
    if (!aside || !step)
        (void)unlink(path);
    else if (!tni_path_join(d->folder, other, &kept) && !rename(path, kept))
        ++*(uint32_t *)aside;
    tni_free(path);
    tni_free(kept);
}

/* To go on from: those behind it are of a past that is over, and no later process may find them. To begin
 * empty is mostly not meant (a server's disk is lost, or not mounted yet): then they are set aside. Nobody
 * waits for the disk here. */
static tn_status snapshot_load(void *arg, uint64_t step, const void **text, uint64_t *bytes)
{
    tni_kv_disk *d = arg;
    uint32_t aside = 0;
    tn_status st;

    if (d->thread && !atomic_load(&d->over))
        return TN_PENDING;
    if (step && (st = snapshot_read(d, step, text, bytes)))
        return st;
    writer_wait(d);
    for (uint32_t i = 0; i < 3 && d->steps[0] > step; i++) {
        memmove(d->steps, d->steps + 1, 2 * sizeof *d->steps);
        d->steps[2] = 0;
    }
    st = each(d, old_remove, step ? NULL : &aside);
    if (aside)
        tni_logf(d->log, TN_LOG_WARNING,
                 "kvstore: the servers have no snapshot of one step and begin empty; the %u of this one are "
                 "kept in %s as .aside: if another server's kvstore.state_folder comes back, end the job, "
                 "take .aside away and begin again",
                 aside, d->folder);
    return st;
}

/* The file is there under a name of its own when the check is made, and `rename` takes it from there. */
static tn_status file_write(const tni_kv_disk *d, const char *path, const tni_str *text)
{
    tni_writer *w;
    tn_status st = tni_writer_open(path, &w);

    if (st)
        return st;
    if ((st = tni_writer_write(w, text->text, text->length)) || (st = tni_writer_sync(w)) ||
        (st = owner_check(d))) {
        tni_writer_abandon(w);
        return st;
    }
    return tni_writer_commit(w);
}

/* The third one, which nobody is told of, is there in case that servers go back while this is written. */
static tn_status text_write(tni_kv_disk *d, uint64_t step, tni_str *text)
{
    char *path = NULL;
    tn_status st = path_of(d, step, &path);

    tni_kv_snapshot_seal(text->text, text->length);
    if (!st)
        st = tni_failpoint("kv.snapshot");
    if (!st)
        st = file_write(d, path, text);
    tni_free(path);
    if (st)
        return st;
    if (step != d->steps[0]) {
        memmove(d->steps + 1, d->steps, 2 * sizeof *d->steps);
        d->steps[0] = step;
    }
    st = each(d, old_remove, NULL);
    TNI_KV_POINT(trimmed);
    return st;
}

static void writer(void *arg)
{
    tni_kv_disk *d = arg;

    d->status = text_write(d, d->step, &d->writing);
    tni_error_get(&d->error);
    atomic_store(&d->over, true);
    d->wake(d->wake_arg);
}

/* Where nobody is woken it is written at once. */
static tn_status snapshot_write(void *arg, uint64_t step, tni_str *text)
{
    tni_kv_disk *d = arg;

    writer_wait(d);
    if (!d->wake)
        return text_write(d, step, text);
    d->step = step;
    d->writing = *text;
    if (tni_thread_create("tenon-kv-disk", writer, d, &d->thread))
        return text_write(d, step, text);
    tni_str_init(text, 1);
    return TN_PENDING;
}

static bool snapshot_over(void *arg, uint64_t *step, tn_status *st)
{
    tni_kv_disk *d = arg;

    if (!atomic_load(&d->over))
        return false;
    writer_wait(d);
    *step = d->step;
    *st = d->status;
    tni_error_set(&d->error);
    return true;
}

static void snapshot_wakes(void *arg, void (*wake)(void *), void *wake_arg)
{
    tni_kv_disk *d = arg;

    writer_wait(d);
    d->wake = wake;
    d->wake_arg = wake_arg;
}

/* Its checksum, which ends it, is right. */
static bool whole(tni_kv_disk *d, uint64_t step)
{
    const void *text;
    uint64_t bytes;

    return !snapshot_read(d, step, &text, &bytes) && bytes >= 4 &&
           tni_crc32(0, text, bytes - 4) == tni_kv_get((const uint8_t *)text + bytes - 4, 4);
}

static void torn_remove(tni_kv_disk *d, uint64_t step, const char *name, void *unused)
{
    char *path = NULL;

    (void)unused;
    if (!step && !tni_path_join(d->folder, name, &path))
        (void)unlink(path);
    tni_free(path);
}

static void newest_take(tni_kv_disk *d, uint64_t step, const char *name, void *arg)
{
    const uint64_t *below = arg; /* the one before */

    (void)name;
    if (step > d->steps[0] && step < *below)
        d->steps[0] = step;
}

tn_status tni_kv_disk_snapshots(const char *folder, uint64_t job, uint32_t rank, const tni_log *log,
                                uint64_t steps[2], tni_kv_disk **out)
{
    uint64_t below = UINT64_MAX, found[3] = {0};
    char name[NAME_BYTES];
    uint32_t count = 0;
    tni_kv_disk *d;
    tn_status st = disk_make(folder, job, &d);

    if (st)
        return st;
    d->rank = rank;
    d->log = log;
    (void)snprintf(name, sizeof name, "%016" PRIx64 "-server-%u.owner", job, rank);
    if (!(st = owner_become(d, name)))
        st = each(d, torn_remove, NULL);
    while (!st && count < 3) {
        d->steps[0] = 0;
        st = each(d, newest_take, &below);
        if (st || !d->steps[0])
            break;
        below = d->steps[0];
        if (whole(d, below))
            found[count++] = below;
        else
            tni_logf(log, TN_LOG_WARNING, "kvstore: the snapshot of step %" PRIu64 " in %s is damaged: %s",
                     below, folder, "the one before it is taken");
    }
    tni_free(d->text);
    d->text = NULL;
    memcpy(d->steps, found, sizeof found);
    memcpy(steps, found, 2 * sizeof *found);
    if (st)
        tni_kv_disk_close(d);
    else
        *out = d;
    return st;
}

tni_kv_snapshots tni_kv_disk_table(tni_kv_disk *d)
{
    return (tni_kv_snapshots){d, snapshot_write, snapshot_load, snapshot_over, snapshot_wakes};
}

/* ---- journal ---- */

static tn_status io_error(const tni_kv_disk *d, const char *what)
{
    return tni_error(TN_E_IO, "%s: cannot %s: %s", d->path, what, strerror(errno));
}

static tn_status journal_append(void *arg, const void *record, uint64_t bytes)
{
    tni_kv_disk *d = arg;
    const char *at = record;
    tn_status st = tni_failpoint("kv.journal");

    if (!st)
        st = owner_check(d);
    while (!st && bytes) {
        const ssize_t done = write(d->fd, at, bytes);

        if (done < 0 && errno != EINTR)
            return io_error(d, "write");
        at += done > 0 ? done : 0;
        bytes -= done > 0 ? (uint64_t)done : 0;
    }
    TNI_KV_POINT(view_written);
    return st ? st : fdatasync(d->fd) ? io_error(d, "sync") : TN_OK;
}

static tn_status journal_open(tni_kv_disk *d)
{
    const int fd = open(d->path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);

    if (fd < 0)
        return io_error(d, "open");
    if (d->fd >= 0)
        (void)close(d->fd);
    d->fd = fd;
    return TN_OK;
}

static tn_status journal_replace(void *arg, const void *record, uint64_t bytes)
{
    tni_kv_disk *d = arg;
    tn_status st = owner_check(d);

    if (!st)
        st = tni_file_write_all(d->path, record, bytes);
    return st ? st : journal_open(d);
}

tn_status tni_kv_disk_journal(const char *folder, uint64_t job, tni_kv_journal *out, const void **text,
                              uint64_t *bytes, tni_kv_disk **disk)
{
    char name[NAME_BYTES];
    uint64_t good = 0;
    tni_kv_disk *d;
    tn_status st = disk_make(folder, job, &d);

    if (st)
        return st;
    *bytes = 0;
    (void)snprintf(name, sizeof name, "%016" PRIx64 "-scheduler.journal", job);
    if (!(st = tni_path_join(folder, name, &d->path))) {
        (void)snprintf(name, sizeof name, "%016" PRIx64 "-scheduler.owner", job);
        st = owner_become(d, name);
    }
    if (!st && tni_file_exists(d->path))
        st = tni_file_read_all(d->path, JOURNAL_MAX, &d->text, bytes);
    if (!st && !(st = journal_open(d))) {
        good = tni_kv_journal_whole(d->text, *bytes);
        if (good < *bytes && ftruncate(d->fd, (off_t)good))
            st = io_error(d, "cut");
    }
    if (st) {
        tni_kv_disk_close(d);
        return st;
    }
    *bytes = good;
    *text = d->text;
    *out = (tni_kv_journal){d, journal_append, journal_replace};
    *disk = d;
    return TN_OK;
}
