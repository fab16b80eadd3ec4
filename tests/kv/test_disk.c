/*
 * Snapshots and the journal as files: damaged ones, the way back to an earlier step, and who writes when
 * another process has its place.
 */
#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "kv/disk.h"
#include "support/scratch.h"

static struct {
    const char *folder, *name; /* whose folder is looked at */
    uint32_t times, had;       /* synced; files of that name there, the last time */
} synced;

static uint32_t files(const char *folder, const char *part);

/* In the library's place. */
int fsync(int fd)
{
    struct stat info;

    if (synced.folder && !fstat(fd, &info) && S_ISDIR(info.st_mode)) {
        synced.times++;
        synced.had = files(synced.folder, synced.name);
    }
    return (int)syscall(SYS_fsync, fd);
}

/* How many have this in their name. */
static uint32_t files(const char *folder, const char *part)
{
    DIR *dir = opendir(folder);
    const struct dirent *e;
    uint32_t count = 0;

    assert_non_null(dir);
    while ((e = readdir(dir)) != NULL)
        count += strstr(e->d_name, part) != NULL;
    (void)closedir(dir);
    return count;
}

static const tni_log no_log;

static tni_kv_snapshots disk_look(const char *folder, uint64_t steps[2], tni_kv_disk **d)
{
    assert_int_equal(tni_kv_disk_snapshots(folder, 5, 1, &no_log, steps, d), TN_OK);
    return tni_kv_disk_table(*d);
}

static tni_kv_snapshots disk_open(const char *folder, uint64_t steps[2], tni_kv_disk **d)
{
    const tni_kv_snapshots s = disk_look(folder, steps, d);
    const uint64_t seen[2] = {steps[0], steps[1]};

    assert_int_equal(s.claim(s.arg, steps), TN_OK);
    assert_memory_equal(steps, seen, sizeof seen);
    return s;
}

static void put(const char *folder, const char *name, const void *bytes, size_t count)
{
    char path[SCRATCH_PATH_BYTES];

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    scratch_put(path, bytes, count);
}

static void damaged_snapshots(void **state)
{
    const char *folder = scratch_quick_path("damaged");
    tni_kv_disk *d;
    tni_kv_snapshots s;
    uint64_t steps[2], bytes;
    const void *text;
    tni_str written;
    uint8_t good[12] = "12345678";

    (void)state;
    tni_kv_put(good + 8, tni_crc32(0, good, 8), 4);
    s = disk_open(folder, steps, &d);
    assert_true(steps[0] == 0 && steps[1] == 0);
    tni_str_init(&written, 100);
    assert_int_equal(tni_str_add_bytes(&written, good, sizeof good), TN_OK);
    for (uint64_t i = 1; i <= 5; i++) /* one of them again */
        assert_int_equal(s.write(s.arg, i < 5 ? i * 10 - 10 + (i == 1) : 30, &written), TN_OK);
    assert_int_equal(files(folder, ".snapshot"), 3);
    tni_kv_disk_close(d);
    put(folder, "0000000000000005-server-1-40.snapshot", "torn", 4);
    put(folder, "0000000000000005-server-1-50.snapshot", "", 0);
    put(folder, "0000000000000005-server-1-60.snapshot.x", good, sizeof good);
    put(folder, "0000000000000005-server-1-070.snapshot", good, sizeof good);
    put(folder, "0000000000000005-server-2-80.snapshot", good, sizeof good);
    put(folder, "0000000000000006-server-1-90.snapshot", good, sizeof good);
    s = disk_open(folder, steps, &d);
    assert_true(steps[0] == 30 && steps[1] == 20);
    assert_int_equal(s.read(s.arg, 30, &text, &bytes), TN_OK);
    assert_int_equal(bytes, sizeof good);
    assert_memory_equal(text, good, sizeof good);
    assert_int_equal(files(folder, "-server-1-40.snapshot"), 0); /* servers went back to 30 */
    assert_int_equal(files(folder, "-server-1-50.snapshot"), 0);
    assert_int_equal(s.read(s.arg, 31, &text, &bytes), TN_E_IO);
    tni_kv_disk_close(d);
    tni_kv_disk_close(NULL);
    tni_str_fini(&written);
    assert_int_not_equal(tni_kv_disk_snapshots("/proc/nowhere", 5, 1, &no_log, steps, &d), TN_OK);
}

/* Servers that go back leave no snapshot behind that step, of whatever process of theirs; others' stay. */
static void rolled_back_snapshots(void **state)
{
    const char *folder = scratch_quick_path("back");
    tni_kv_snapshots s;
    uint64_t steps[2], bytes;
    const void *text;
    tni_kv_disk *d;
    tni_str written;
    uint8_t good[12] = "12345678";

    (void)state;
    tni_kv_put(good + 8, tni_crc32(0, good, 8), 4);
    tni_str_init(&written, 100);
    assert_int_equal(tni_str_add_bytes(&written, good, sizeof good), TN_OK);
    s = disk_open(folder, steps, &d);
    for (uint64_t step = 10; step <= 40; step += 10)
        assert_int_equal(s.write(s.arg, step, &written), TN_OK);
    put(folder, "0000000000000005-server-1-70.snapshot.tmp-4-0", good, 5);
    put(folder, "0000000000000005-server-11-80.snapshot", good, sizeof good);
    put(folder, "0000000000000006-server-1-90.snapshot", good, sizeof good);
    assert_int_equal(s.read(s.arg, 35, &text, &bytes), TN_E_IO);
    assert_int_equal(files(folder, "-server-1-40.snapshot"), 1); /* nothing was read */
    synced.folder = folder;
    synced.name = "-server-1-40.snapshot";
    assert_int_equal(s.read(s.arg, 30, &text, &bytes), TN_OK);
    assert_true(synced.times == 1 && !synced.had); /* it does not come back when the power does */
    assert_int_equal(files(folder, ".tmp-4-0"), 0);
    assert_int_equal(files(folder, ".snapshot"), 4); /* 20, 30 and the others' */
    assert_int_equal(s.write(s.arg, 35, &written), TN_OK);
    tni_kv_disk_close(d);
    s = disk_open(folder, steps, &d);
    assert_true(steps[0] == 35 && steps[1] == 30);
    put(folder, "0000000000000005-server-1-70.snapshot.tmp-4-0", good, 5);
    synced.times = 0;
    synced.name = "-server-1-30.snapshot.aside";
    assert_int_equal(s.read(s.arg, 0, &text, &bytes), TN_OK); /* to the beginning: they are kept beside */
    assert_true(synced.times == 1 && synced.had == 1);
    synced.folder = NULL;
    assert_int_equal(files(folder, "-server-1-35.snapshot.aside"), 1);
    assert_int_equal(files(folder, "-server-1-30.snapshot.aside"), 1);
    assert_int_equal(files(folder, ".snapshot.aside"), 3);
    assert_int_equal(files(folder, ".tmp-4-0"), 0);
    assert_int_equal(files(folder, "-server-11-80.snapshot.aside"), 0); /* another server's */
    tni_kv_disk_close(d);
    assert_int_equal(tni_kv_disk_snapshots(folder, 5, 1, &no_log, steps, &d), TN_OK);
    assert_true(steps[0] == 0 && steps[1] == 0); /* no process finds them under that name */
    tni_kv_disk_close(d);
    tni_str_fini(&written);
}

static void text_make(const char *eight, tni_str *out)
{
    uint8_t text[12];

    memcpy(text, eight, 8);
    tni_kv_put(text + 8, tni_crc32(0, text, 8), 4);
    tni_str_init(out, 100);
    assert_int_equal(tni_str_add_bytes(out, (const char *)text, sizeof text), TN_OK);
}

/* A server was stopped, another one has its place, and then it goes on: whatever it was about to do, its
 * successor's snapshots stay as they are. */
static void snapshots_of_a_successor(void **state)
{
    const char *folder = scratch_quick_path("successor");
    tni_kv_snapshots first, second, third;
    uint64_t steps[2], bytes;
    tni_kv_disk *of[3];
    const void *text;
    tni_str a, b;

    (void)state;
    text_make("of first", &a);
    text_make("of other", &b);
    first = disk_open(folder, steps, &of[0]);
    for (uint64_t step = 10; step <= 30; step += 10)
        assert_int_equal(first.write(first.arg, step, &a), TN_OK);
    put(folder, "0000000000000005-server-1-40.snapshot.tmp-4-0", a.text, a.length); /* it is stopped here */
    put(folder, "0000000000000005-server-2-40.snapshot.tmp-4-0", a.text, a.length);
    second = disk_open(folder, steps, &of[1]);
    assert_true(steps[0] == 30 && steps[1] == 20);
    assert_int_equal(files(folder, ".tmp-4-0"), 1); /* there is nothing left to rename */
    assert_int_equal(second.read(second.arg, 20, &text, &bytes), TN_OK);
    for (uint64_t step = 22; step <= 26; step += 2)
        assert_int_equal(second.write(second.arg, step, &b), TN_OK);
    assert_int_equal(files(folder, "-server-1-20.snapshot"), 0);

    assert_int_equal(first.write(first.arg, 40, &a), TN_E_PEER);
    assert_non_null(strstr(tni_error_message(), "place"));
    assert_int_equal(first.write(first.arg, 24, &a), TN_E_PEER);
    assert_int_equal(first.read(first.arg, 0, &text, &bytes), TN_E_PEER); /* sets nothing aside */
    assert_int_equal(files(folder, ".aside"), 0);
    assert_int_equal(files(folder, ".tmp-"), 1); /* and leaves nothing */
    assert_int_equal(files(folder, "-server-1-"), 3);
    third = disk_open(folder, steps, &of[2]);
    assert_true(steps[0] == 26 && steps[1] == 24);
    assert_int_equal(third.read(third.arg, 24, &text, &bytes), TN_OK);
    assert_memory_equal(text, "of other", 8);
    assert_int_equal(second.write(second.arg, 28, &b), TN_E_PEER);
    assert_int_equal(third.write(third.arg, 28, &b), TN_OK);
    for (int i = 0; i < 3; i++)
        tni_kv_disk_close(of[i]);
    tni_str_fini(&a);
    tni_str_fini(&b);
}

/* A server that gets no place changes nothing, and one that gets it sees what was written meanwhile. */
static void snapshots_without_a_place(void **state)
{
    const char *folder = scratch_quick_path("refused");
    tni_kv_snapshots first, second;
    uint64_t steps[2], bytes;
    tni_kv_disk *of[2];
    const void *text;
    tni_str a;

    (void)state;
    text_make("of first", &a);
    first = disk_open(folder, steps, &of[0]);
    for (uint64_t step = 10; step <= 30; step += 10)
        assert_int_equal(first.write(first.arg, step, &a), TN_OK);
    put(folder, "0000000000000005-server-1-40.snapshot.tmp-4-0", a.text, a.length);
    put(folder, "0000000000000005-server-1.owner.tmp-4-0", "5", 1);
    second = disk_look(folder, steps, &of[1]);
    assert_true(steps[0] == 30 && steps[1] == 20);
    assert_int_equal(second.write(second.arg, 35, &a), TN_E_STATE);
    assert_int_equal(second.read(second.arg, 20, &text, &bytes), TN_E_STATE);
    assert_int_equal(files(folder, "-server-1-"), 4);
    assert_int_equal(files(folder, ".tmp-4-0"), 2);
    assert_int_equal(first.write(first.arg, 40, &a), TN_OK); /* its folder is its own */
    assert_int_equal(first.write(first.arg, 50, &a), TN_OK);
    put(folder, "0000000000000005-server-1-60.snapshot", "torn", 4);
    put(folder, "0000000000000005-server-1-70.snapshot.tmp-4-0", a.text, a.length);
    assert_int_equal(second.claim(second.arg, steps), TN_OK);
    assert_true(steps[0] == 50 && steps[1] == 40);
    assert_int_equal(files(folder, ".tmp-4-0"), 0); /* nor can another one become the owner late */
    assert_int_equal(first.write(first.arg, 60, &a), TN_E_PEER);
    assert_int_equal(second.write(second.arg, 60, &a), TN_OK);
    tni_kv_disk_close(of[0]);
    tni_kv_disk_close(of[1]);
    tni_str_fini(&a);
}

/* Whose it is cannot be read: it may be another's. Without the file nobody has come. */
static void owner_unreadable(void **state)
{
    const char *folder = scratch_quick_path("unreadable");
    char path[SCRATCH_PATH_BYTES];
    uint64_t steps[2];
    tni_kv_snapshots s;
    tni_kv_disk *d;
    tni_str a;

    (void)state;
    text_make("anything", &a);
    s = disk_open(folder, steps, &d);
    (void)snprintf(path, sizeof path, "%s/0000000000000005-server-1.owner", folder);
    assert_int_equal(remove(path), 0);
    tni_error_clear();
    assert_int_equal(s.write(s.arg, 10, &a), TN_OK);
    assert_string_equal(tni_error_message(), "");
    assert_int_equal(mkdir(path, 0777), 0);
    assert_int_equal(s.write(s.arg, 20, &a), TN_E_IO);
    assert_int_equal(remove(path), 0);
    scratch_put(path, "", 0);
    assert_int_equal(s.write(s.arg, 20, &a), TN_E_PEER);
    assert_int_equal(files(folder, ".snapshot"), 1);
    assert_int_equal(files(folder, ".tmp-"), 0);
    tni_kv_disk_close(d);
    tni_str_fini(&a);
}

/* As where the folder has given up a machine that is stopped. */
static void lock_remove(const char *folder)
{
    char path[SCRATCH_PATH_BYTES];

    (void)snprintf(path, sizeof path, "%s/0000000000000009-scheduler.lock", folder);
    assert_int_equal(remove(path), 0);
}

/* The same of a scheduler: its last view would be the job's. */
static void journal_of_a_successor(void **state)
{
    const char *folder = scratch_quick_path("successors");
    char path[SCRATCH_PATH_BYTES];
    struct stat before, after;
    tni_kv_journal j[4];
    tni_kv_disk *d[4];
    const void *text;
    uint64_t bytes;

    (void)state;
    assert_int_equal(tni_kv_disk_journal(folder, 9, &no_log, &j[0], &text, &bytes, &d[0]), TN_OK);
    lock_remove(folder);
    assert_int_equal(tni_kv_disk_journal(folder, 9, &no_log, &j[1], &text, &bytes, &d[1]), TN_OK);
    assert_int_equal(j[0].append(j[0].arg, "first", 5), TN_E_PEER);
    assert_int_equal(j[0].replace(j[0].arg, "first", 5), TN_E_PEER);
    assert_int_equal(tni_kv_disk_journal(folder, 10, &no_log, &j[2], &text, &bytes, &d[2]),
                     TN_OK); /* another job */
    assert_int_equal(j[1].append(j[1].arg, "second", 6), TN_OK);
    put(folder, "0000000000000009-scheduler.journal.tmp-4-0", "x", 1);
    put(folder, "0000000000000009-scheduler.owner.tmp-4-0", "x", 1);
    (void)snprintf(path, sizeof path, "%s/0000000000000009-scheduler.journal", folder);
    assert_int_equal(stat(path, &before), 0);
    lock_remove(folder);
    assert_int_equal(tni_kv_disk_journal(folder, 9, &no_log, &j[3], &text, &bytes, &d[3]), TN_OK);
    assert_int_equal(stat(path, &after), 0);
    assert_true(before.st_ino != after.st_ino); /* where one that was stopped appends nobody reads */
    assert_int_equal(files(folder, ".tmp-"), 0);
    assert_int_equal(j[1].append(j[1].arg, "second", 6), TN_E_PEER);
    j[1] = j[3];
    assert_int_equal(j[1].replace(j[1].arg, "second", 6), TN_OK);
    assert_int_equal(j[2].append(j[2].arg, "third", 5), TN_OK);
    for (int i = 0; i < 4; i++)
        tni_kv_disk_close(d[i]);
    assert_int_equal(files(folder, ".owner"), 2);
}

/* A scheduler in a process of its own, until it is killed. Its helper, a child without exec, says when it has
 * the journal, and outlives it until *helper is closed. */
static pid_t scheduler_elsewhere(const char *folder, int *helper)
{
    int ends[2], stays[2];
    char ready = 0;
    pid_t pid;

    assert_int_equal(pipe(ends), 0);
    assert_int_equal(pipe(stays), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        tni_kv_journal j;
        tni_kv_disk *d;
        const void *text;
        uint64_t bytes;

        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)close(stays[1]);
        ready = !tni_kv_disk_journal(folder, 9, &no_log, &j, &text, &bytes, &d);
        if (fork() == 0) {
            (void)!write(ends[1], &ready, 1);
            (void)close(ends[1]);
            (void)!read(stays[0], &ready, 1);
            _exit(0);
        }
        (void)close(ends[1]);
        for (;;)
            (void)pause();
    }
    (void)close(ends[1]);
    (void)close(stays[0]);
    assert_int_equal(read(ends[0], &ready, 1), 1);
    (void)close(ends[0]);
    assert_int_equal(ready, 1);
    *helper = stays[1];
    return pid;
}

static void lock_text(const char *folder, const char *text)
{
    put(folder, "0000000000000009-scheduler.lock", text, strlen(text));
}

/* A second scheduler, by mistake: it is told, and the first one's journal stays as it is. One that was killed
 * is succeeded at once, also if it has left a child. */
static void journal_of_a_living_one(void **state)
{
    const char *folder = scratch_quick_path("living");
    char path[SCRATCH_PATH_BYTES];
    struct stat before, after;
    tni_kv_journal j;
    tni_kv_disk *d, *second = NULL;
    const void *text;
    uint64_t bytes;
    char who[32];
    pid_t pid;
    int status, helper;

    (void)state;
    pid = scheduler_elsewhere(folder, &helper);
    (void)snprintf(who, sizeof who, ": process %ld on ", (long)pid);
    (void)snprintf(path, sizeof path, "%s/0000000000000009-scheduler.journal", folder);
    for (int stopped = 0; stopped < 2; stopped++) {
        assert_int_equal(stat(path, &before), 0);
        assert_int_equal(tni_kv_disk_journal(folder, 9, &no_log, &j, &text, &bytes, &d), TN_E_STATE);
        assert_non_null(strstr(tni_error_message(), "another scheduler"));
        assert_non_null(strstr(tni_error_message(), "0000000000000009-scheduler.lock"));
        assert_non_null(strstr(tni_error_message(), who));
        assert_int_equal(stat(path, &after), 0);
        assert_true(before.st_ino == after.st_ino);
        assert_int_equal(kill(pid, stopped ? SIGKILL : SIGSTOP), 0);
        assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    }
    assert_int_equal(tni_kv_disk_journal(folder, 9, &no_log, &j, &text, &bytes, &d), TN_OK);
    (void)close(helper);
    lock_text(folder, "");
    assert_int_equal(tni_kv_disk_journal(folder, 9, &no_log, &j, &text, &bytes, &second), TN_E_STATE);
    assert_non_null(
        strstr(tni_error_message(), "is stopped: end it first, or, if its machine is gone, remove"));
    lock_text(folder, "process 7 on \033[2J\n");
    assert_int_equal(tni_kv_disk_journal(folder, 9, &no_log, &j, &text, &bytes, &second), TN_E_STATE);
    assert_non_null(strstr(tni_error_message(), "is stopped: process 7 on : end it first"));
    assert_null(second);
    assert_int_equal(j.append(j.arg, "mine", 4), TN_OK); /* nor was the owner's file changed */
    tni_kv_disk_close(d);
    assert_int_equal(tni_kv_disk_journal(folder, 9, &no_log, &j, &text, &bytes, &d), TN_OK);
    tni_kv_disk_close(d);
    put(folder, "000000000000000a-scheduler.lock", "", 0); /* of a machine that was switched off */
    assert_int_equal(tni_kv_disk_journal(folder, 10, &no_log, &j, &text, &bytes, &d), TN_OK);
    tni_kv_disk_close(d);
}

static void says_unlocked(void *arg, int32_t level, const char *line)
{
    assert_int_equal(level, TN_LOG_WARNING);
    assert_non_null(strstr(line, "-scheduler.lock cannot be locked: "));
    ++*(uint32_t *)arg;
}

/* The lock's file cannot be opened: the owner's file alone decides, and the log says so. */
static void journal_without_a_lock(void **state)
{
    const char *folder = scratch_quick_path("unlocked");
    char path[SCRATCH_PATH_BYTES];
    uint32_t warnings = 0;
    const tni_log log = {.fn = says_unlocked, .arg = &warnings, .level = TN_LOG_WARNING};
    tni_kv_journal j[2];
    tni_kv_disk *d[2];
    const void *text;
    uint64_t bytes;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/0000000000000009-scheduler.lock", folder);
    assert_int_equal(tni_folder_create(path), TN_OK);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(tni_kv_disk_journal(folder, 9, &log, &j[i], &text, &bytes, &d[i]), TN_OK);
        assert_int_equal(warnings, i + 1);
    }
    assert_int_equal(j[0].append(j[0].arg, "first", 5), TN_E_PEER);
    assert_int_equal(j[1].append(j[1].arg, "second", 6), TN_OK);
    for (uint32_t i = 0; i < 2; i++)
        tni_kv_disk_close(d[i]);
}

static void torn_journal_file(void **state)
{
    const char *folder = scratch_quick_path("journal");
    tni_kv_journal j;
    tni_kv_disk *d;
    const void *text;
    uint64_t bytes;
    tni_str record;

    (void)state;
    tni_str_init(&record, 4096);
    assert_int_equal(tni_kv_journal_record("first", 5, &record), TN_OK);
    assert_int_equal(tni_kv_disk_journal(folder, 9, &no_log, &j, &text, &bytes, &d), TN_OK);
    assert_true(bytes == 0);
    assert_int_equal(j.append(j.arg, record.text, record.length), TN_OK);
    assert_int_equal(j.append(j.arg, record.text, record.length / 2), TN_OK); /* the crash */
    tni_kv_disk_close(d);
    assert_int_equal(tni_kv_disk_journal(folder, 9, &no_log, &j, &text, &bytes, &d), TN_OK);
    assert_int_equal(bytes, record.length);
    assert_int_equal(j.append(j.arg, record.text, record.length), TN_OK);
    tni_kv_disk_close(d);
    assert_int_equal(tni_kv_disk_journal(folder, 9, &no_log, &j, &text, &bytes, &d), TN_OK);
    assert_int_equal(bytes, 2 * record.length);
    assert_int_equal(j.replace(j.arg, record.text, record.length), TN_OK);
    assert_int_equal(j.append(j.arg, record.text, record.length), TN_OK);
    tni_kv_disk_close(d);
    assert_int_equal(tni_kv_disk_journal(folder, 9, &no_log, &j, &text, &bytes, &d), TN_OK);
    assert_int_equal(bytes, 2 * record.length);
    tni_kv_disk_close(d);
    assert_int_not_equal(tni_kv_disk_journal("/proc/nowhere", 9, &no_log, &j, &text, &bytes, &d), TN_OK);
    tni_str_fini(&record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(damaged_snapshots),        cmocka_unit_test(rolled_back_snapshots),
        cmocka_unit_test(snapshots_of_a_successor), cmocka_unit_test(snapshots_without_a_place),
        cmocka_unit_test(owner_unreadable),         cmocka_unit_test(journal_of_a_successor),
        cmocka_unit_test(journal_without_a_lock),   cmocka_unit_test(torn_journal_file),
        cmocka_unit_test(journal_of_a_living_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
