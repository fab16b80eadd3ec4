/*
 * Snapshots and the journal as files. A snapshot is written beside its name, synced and renamed, and older
 * ones than the newest three are removed then, and so are those behind a step to which servers went back; a
 * journal is appended to and synced. So a crash at any point leaves the newest state that was reported as
 * written, or a later one.
 *
 * Whose it is. A process that was stopped may go on when another has its place, and its folder. So each
 * writes its number into JOB-server-RANK.owner, or JOB-scheduler.owner: a server once the scheduler has given
 * it its place, a scheduler when it begins. It looks for its number there before it changes anything:
 *   - Of a snapshot, and of a journal that takes the place of another, after the sync, directly before the
 *     rename. Who comes removes what is half written before it reads: one that is stopped between the look
 *     and the rename finds nothing to rename.
 *   - The journal is appended to by a descriptor. Who comes writes the journal anew, as another file: one
 *     that is stopped between the look and the write appends to a file that nobody reads any more.
 *   - The owner's file: who comes removes those that others have half written.
 * A scheduler also holds a lock on JOB-scheduler.lock as long as it lives: a second one of its machine is
 * refused, also if the first one is stopped (which has the port, too). One that is dead, or on a machine that
 * a shared folder has given up, may be superseded. A server holds no lock: one that is stopped is superseded
 * at once.
 * Not guarded: a server that is stopped between the look and the removal of an old snapshot removes this
 * file; one that is stopped between its place and the beginning of its owner's file takes the folder from its
 * successor (which then fails with TN_E_PEER). And of schedulers of two machines, what one appends while its
 * successor reads may be lost.
 */
#include "kv/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kv/post.h"

#define SNAPSHOT_MAX ((uint64_t)1 << 46)
#define JOURNAL_MAX ((uint64_t)1 << 34)
#define NAME_BYTES 96u
#define LOCK_BYTES 128u /* "process 12 on host" */

struct tni_kv_disk {
    char *folder, *text; /* text: of the snapshot or journal that was read */
    const tni_log *log;
    uint64_t job, steps[3]; /* steps: of the snapshots that there are, newest first */
    uint64_t own;           /* the number of this process; 0: it has not written it */
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
    int fd, lock;
    struct tni_kv_disk *next; /* in `locked` */
};

static tni_mutex locked_lock = TNI_MUTEX_INIT;
static tni_kv_disk *locked; /* that have a lock's descriptor */
static bool watched;        /* a child lets go of them */

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

/* ---- the scheduler's lock ---- */

/* A child has the descriptors of its parent, and would hold the locks beyond its end. */
static void locks_drop(void) TN_NO_THREAD_CHECK
{
    for (tni_kv_disk *d = locked; d; d = d->next)
        (void)close(d->lock);
    locked = NULL;
}

/* Whoever forks waits until nobody holds a mutex of the core. */
static void lock_open(tni_kv_disk *d, const char *path)
{
    tni_mutex_lock(&locked_lock);
    watched = watched || !pthread_atfork(NULL, NULL, locks_drop);
    d->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (d->lock >= 0) {
        d->next = locked;
        locked = d;
    }
    tni_mutex_unlock(&locked_lock);
}

static void lock_close(tni_kv_disk *d)
{
    tni_kv_disk **at = &locked;

    tni_mutex_lock(&locked_lock);
    while (*at && *at != d)
        at = &(*at)->next;
    if (*at) { /* not in a child of who opened it */
        *at = d->next;
        (void)close(d->lock);
    }
    tni_mutex_unlock(&locked_lock);
}

static tn_status lock_refuse(int fd, const char *path)
{
    char who[LOCK_BYTES];
    const ssize_t bytes = pread(fd, who, sizeof who - 1, 0);
    ssize_t n = 0;

    while (n < bytes && who[n] >= ' ' && who[n] <= '~')
        n++;
    who[n] = 0;
    return tni_error(TN_E_STATE,
                     "%s: another scheduler of this job runs, or is stopped%s%s: end it first, or, if its "
                     "machine is gone, remove this file",
                     path, n ? ": " : "", who);
}

static void lock_sign(int fd)
{
    char host[65] = "";

    (void)gethostname(host, sizeof host - 1);
    if (!ftruncate(fd, 0))
        (void)dprintf(fd, "process %ld on %s\n", (long)getpid(), host);
}

static tn_status disk_make(const char *folder, uint64_t job, const tni_log *log, tni_kv_disk **out)
{
    tni_kv_disk *d = tni_zalloc(sizeof *d);
    tn_status st;

    if (!d)
        return TN_E_NOMEM;
    d->job = job;
    d->log = log;
    d->fd = d->lock = -1;
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
    lock_close(d);
    tni_free(d->folder);
    tni_free(d->text);
    tni_free(d->path);
    tni_free(d->owner);
    tni_free(d);
}

/* ---- whose it is ---- */

/* Removes what somebody has begun to write as `name`, and not renamed. */
static tn_status begun_remove(const tni_kv_disk *d, const char *name)
{
    const size_t length = strlen(name);
    DIR *dir = opendir(d->folder);
    const struct dirent *e;

    if (!dir)
        return tni_error(TN_E_IO, "%s: %s", d->folder, strerror(errno));
    while ((e = readdir(dir)) != NULL)
        if (strncmp(e->d_name, name, length) == 0 && strncmp(e->d_name + length, ".tmp-", 5) == 0)
            (void)unlinkat(dirfd(dir), e->d_name, 0);
    (void)closedir(dir);
    return TN_OK;
}

static tn_status owner_become(tni_kv_disk *d, const char *name)
{
    const uint64_t own = tni_kv_birth();
    char number[24];
    tn_status st = begun_remove(d, name);

    (void)snprintf(number, sizeof number, "%016" PRIx64 "\n", own);
    if (!st && !d->owner)
        st = tni_path_join(d->folder, name, &d->owner);
    if (!st && !(st = tni_file_write_all(d->owner, number, strlen(number))))
        d->own = own;
    return st;
}

/* Who comes leaves a file, and removes none: where there is none nobody has come, and somebody has removed
 * ours. A file that cannot be read may be another's. */
static tn_status owner_check(const tni_kv_disk *d)
{
    char *text = NULL;
    uint64_t bytes, own;
    tn_status st;

    if (!d->own)
        return tni_error(TN_E_STATE, "%s: this server has no place yet, and writes nothing", d->folder);
    if (access(d->owner, F_OK) && errno == ENOENT)
        return TN_OK;
    if ((st = tni_file_read_all(d->owner, NAME_BYTES, &text, &bytes)))
        return st;
    own = strtoull(text, NULL, 16);
    tni_free(text);
    return own == d->own ? TN_OK
                         : tni_error(TN_E_PEER, "%s: another process has taken this one's place", d->owner);
}

/* It is there under a name of its own when the owner is looked for. */
static tn_status file_write(const tni_kv_disk *d, const char *path, const void *bytes, uint64_t count)
{
    tni_writer *w;
    tn_status st = tni_writer_open(path, &w);

    if (st)
        return st;
    if ((st = tni_writer_write(w, bytes, count)) || (st = tni_writer_sync(w)) || (st = owner_check(d))) {
        tni_writer_abandon(w);
        return st;
    }
    return tni_writer_commit(w);
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

static bool known(const tni_kv_disk *d, uint64_t step)
{
    return step == d->steps[0] || step == d->steps[1] || step == d->steps[2];
}

typedef struct removal {
    bool aside;     /* whole ones get another name, under which no process finds them */
    uint32_t count; /* of those */
    tn_status status;
} removal;

static void old_remove(tni_kv_disk *d, uint64_t step, const char *name, void *arg)
{
    char *path = NULL, *kept = NULL, other[NAME_BYTES];
    removal *r = arg;

    (void)snprintf(other, sizeof other, "%s.aside", name);
    if (r->status || (step && known(d, step)) || (r->status = owner_check(d)) ||
        (r->status = tni_path_join(d->folder, name, &path)))
        return;
    if (!r->aside || !step)
        (void)unlink(path);
    else if (!(r->status = tni_path_join(d->folder, other, &kept)) && !rename(path, kept))
        r->count++;
    tni_free(path);
    tni_free(kept);
}

/* All but those of `steps`. */
static tn_status olds_remove(tni_kv_disk *d, removal *r)
{
    const tn_status st = each(d, old_remove, r);

    return st ? st : r->status;
}

/* To go on from: those behind it are of a past that is over, and no later process may find them. To begin
 * empty is mostly not meant (a server's disk is lost, or not mounted yet): then they are set aside. Nobody
 * waits for the disk here. */
static tn_status snapshot_load(void *arg, uint64_t step, const void **text, uint64_t *bytes)
{
    tni_kv_disk *d = arg;
    removal r = {.aside = !step};
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
    st = olds_remove(d, &r);
    if (!st && d->owner)
        st = tni_folder_sync(d->owner); /* or a machine that loses power finds them again */
    if (r.count)
        tni_logf(d->log, TN_LOG_WARNING,
                 "kvstore: the servers have no snapshot of one step and begin empty; the %u of this one are "
                 "kept in %s as .aside: if another server's kvstore.state_folder comes back, end the job, "
                 "take .aside away and begin again",
                 r.count, d->folder);
    return st;
}

/* The third one, which nobody is told of, is there in case that servers go back while this is written. */
static tn_status text_write(tni_kv_disk *d, uint64_t step, tni_str *text)
{
    removal r = {0};
    char *path = NULL;
    tn_status st = path_of(d, step, &path);

    tni_kv_snapshot_seal(text->text, text->length);
    if (!st)
        st = tni_failpoint("kv.snapshot");
    if (!st)
        st = file_write(d, path, text->text, text->length);
    tni_free(path);
    if (st)
        return st;
    if (step != d->steps[0]) {
        memmove(d->steps + 1, d->steps, 2 * sizeof *d->steps);
        d->steps[0] = step;
    }
    st = olds_remove(d, &r);
    TNI_KV_POINT(trimmed);
    return st;
}

#ifdef TN_TEST_SWITCHES
void (*tni_kv_disk_busy)(int32_t change);
#endif

static void busy(int32_t change)
{
#ifdef TN_TEST_SWITCHES
    if (tni_kv_disk_busy)
        tni_kv_disk_busy(change);
#else
    (void)change;
#endif
}

static void writer(void *arg)
{
    tni_kv_disk *d = arg;

    d->status = text_write(d, d->step, &d->writing);
    tni_error_get(&d->error);
    atomic_store(&d->over, true);
    d->wake(d->wake_arg);
    busy(-1);
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
    busy(1);
    if (tni_thread_create("tenon-kv-disk", writer, d, &d->thread)) {
        busy(-1);
        return text_write(d, step, text);
    }
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

typedef struct newest {
    uint64_t step, below;
} newest;

static void newest_take(tni_kv_disk *d, uint64_t step, const char *name, void *arg)
{
    newest *n = arg;

    (void)d, (void)name;
    if (step > n->step && step < n->below)
        n->step = step;
}

/* The newest three that are whole; those that are known already are. */
static tn_status newest_find(tni_kv_disk *d)
{
    newest next = {0, UINT64_MAX};
    uint64_t found[3] = {0};
    tn_status st = TN_OK;

    for (uint32_t count = 0; count < 3; next = (newest){0, next.step}) {
        if ((st = each(d, newest_take, &next)) || !next.step)
            break;
        if (known(d, next.step) || whole(d, next.step))
            found[count++] = next.step;
        else
            tni_logf(d->log, TN_LOG_WARNING, "kvstore: the snapshot of step %" PRIu64 " in %s is damaged: %s",
                     next.step, d->folder, "the one before it is taken");
    }
    tni_free(d->text);
    d->text = NULL;
    memcpy(d->steps, found, sizeof found);
    return st;
}

/* What was removed or written since they were read, by who had this place before, is seen here. */
static tn_status snapshots_claim(void *arg, uint64_t steps[2])
{
    tni_kv_disk *d = arg;
    char name[NAME_BYTES];
    tn_status st;

    (void)snprintf(name, sizeof name, "%016" PRIx64 "-server-%u.owner", d->job, d->rank);
    if ((st = owner_become(d, name)) || (st = each(d, torn_remove, NULL)) || (st = newest_find(d)))
        return st;
    memcpy(steps, d->steps, 2 * sizeof *steps);
    return TN_OK;
}

tn_status tni_kv_disk_snapshots(const char *folder, uint64_t job, uint32_t rank, const tni_log *log,
                                uint64_t steps[2], tni_kv_disk **out)
{
    tni_kv_disk *d;
    tn_status st = disk_make(folder, job, log, &d);

    if (st)
        return st;
    d->rank = rank;
    if ((st = newest_find(d))) {
        tni_kv_disk_close(d);
        return st;
    }
    memcpy(steps, d->steps, 2 * sizeof *steps);
    *out = d;
    return TN_OK;
}

tni_kv_snapshots tni_kv_disk_table(tni_kv_disk *d)
{
    return (tni_kv_snapshots){
        d, snapshot_write, snapshot_load, snapshot_over, snapshot_wakes, snapshots_claim};
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
    const int fd = open(d->path, O_WRONLY | O_APPEND | O_CLOEXEC);

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
    tn_status st = file_write(d, d->path, record, bytes);

    return st ? st : journal_open(d);
}

/* The kernel lets go of it when the process ends, however. Where there are no locks the owner's file alone
 * decides. */
static tn_status journal_lock(tni_kv_disk *d)
{
    char name[NAME_BYTES], *path = NULL;
    int failed = 0;
    tn_status st;

    (void)snprintf(name, sizeof name, "%016" PRIx64 "-scheduler.lock", d->job);
    if ((st = tni_path_join(d->folder, name, &path)))
        return st;
    lock_open(d, path);
    do
        failed = d->lock < 0 || flock(d->lock, LOCK_EX | LOCK_NB) ? errno : 0;
    while (failed == EINTR && d->lock >= 0);
    if (!failed)
        lock_sign(d->lock);
    else if (failed == EWOULDBLOCK)
        st = lock_refuse(d->lock, path);
    else
        tni_logf(d->log, TN_LOG_WARNING,
                 "kvstore: %s cannot be locked: %s: a second scheduler is not refused", path,
                 strerror(failed));
    tni_free(path);
    return st;
}

/* From here on it is this process's: what there is, as another file than the one that was there. */
static tn_status journal_claim(tni_kv_disk *d, uint64_t *good)
{
    char name[NAME_BYTES], owner[NAME_BYTES];
    uint64_t bytes = 0;
    tn_status st = journal_lock(d);

    if (st)
        return st;
    (void)snprintf(name, sizeof name, "%016" PRIx64 "-scheduler.journal", d->job);
    (void)snprintf(owner, sizeof owner, "%016" PRIx64 "-scheduler.owner", d->job);
    if ((st = tni_path_join(d->folder, name, &d->path)) || (st = owner_become(d, owner)) ||
        (st = begun_remove(d, name)))
        return st;
    if (tni_file_exists(d->path) && (st = tni_file_read_all(d->path, JOURNAL_MAX, &d->text, &bytes)))
        return st;
    *good = tni_kv_journal_whole(d->text, bytes);
    return journal_replace(d, d->text ? d->text : "", *good);
}

tn_status tni_kv_disk_journal(const char *folder, uint64_t job, const tni_log *log, tni_kv_journal *out,
                              const void **text, uint64_t *bytes, tni_kv_disk **disk)
{
    tni_kv_disk *d;
    tn_status st = disk_make(folder, job, log, &d);

    if (st)
        return st;
    if ((st = journal_claim(d, bytes))) {
        tni_kv_disk_close(d);
        return st;
    }
    *text = d->text;
    *out = (tni_kv_journal){d, journal_append, journal_replace};
    *disk = d;
    return TN_OK;
}
