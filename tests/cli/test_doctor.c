/*
 * tenon doctor: each problem is planted, must be found by the check that is there for it with the advice that
 * helps, and must not be found where it was not planted.
 */
#include "tool.h"

#include <sys/stat.h>
#include <unistd.h>

#include "support/runs.h"
#include "tenon/plugin/plugin.h"

#define CLEAN "env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE -u OMP_NUM_THREADS -u TENON_RUNS -u TENON_SEED "

/* The finding of `check` whose text holds `part`; NULL: none. */
static json_t *finding(json_t *said_json, const char *check, const char *part)
{
    json_t *f;
    size_t i;

    json_array_foreach(json_object_get(said_json, "checks"), i,
                       f) if (!strcmp(json_string_value(json_object_get(f, "check")), check) &&
                              strstr(json_string_value(json_object_get(f, "text")), part)) return f;
    return NULL;
}

/* Runs the doctor; the line has to make it find this at this level, with this advice, and give this code. */
static void finds(const char *line, const char *check, const char *level, const char *part,
                  const char *advice)
{
    const tool_said *s = tool(line);
    json_t *o, *f;
    bool bad = !strcmp(level, "bad");

    if (s->code != 0 && s->code != 1)
        fail_msg("%s: code %d: %s", line, s->code, s->err);
    o = tool_json(s, 0);
    f = finding(o, check, part);
    if (!f)
        fail_msg("%s: %s does not say \"%s\": %s", line, check, part, s->out);
    assert_string_equal(json_string_value(json_object_get(f, "level")), level);
    assert_says(json_string_value(json_object_get(f, "advice")), advice);
    if (bad)
        assert_int_equal(s->code, 1);
    assert_true(json_integer_value(json_object_get(o, bad ? "problems" : "warnings")) > 0);
    json_decref(o);
}

/* What the doctor says of what is well is the same in all builds: the long ones look once. */
static void finds_not(const char *line, const char *check, const char *part)
{
    static bool looked;
    const tool_said *s;
    json_t *o;

    if (test_short() && looked)
        return;
    looked = true;
    s = tool(line);
    o = tool_json(s, 0);
    if (finding(o, check, part))
        fail_msg("%s: %s says \"%s\" although it was not planted", line, check, part);
    json_decref(o);
}

/* ---- planting ---- */

/* p/NAME.so: the template of a pool, with some bytes changed by `change`. */
static void plugin_plant(const char *name, void (*change)(char *bytes, size_t size))
{
    char path[600];
    const char *build = getenv("TENON_TEST_BUILD");
    struct stat info;
    char *bytes;
    FILE *file;

    assert_int_equal(tool("rm -rf p && mkdir -m 755 p && chmod 755 .")->code, 0);
    (void)snprintf(path, sizeof path, "%s/templates/acme-pool.so", build ? build : "");
    if (stat(path, &info)) {
        printf("skipped: the template of a pool was not built\n");
        skip();
    }
    bytes = malloc((size_t)info.st_size);
    assert_non_null(bytes);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fread(bytes, 1, (size_t)info.st_size, file), info.st_size);
    fclose(file);
    change(bytes, (size_t)info.st_size);
    (void)snprintf(path, sizeof path, "p/%s.so", name);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, (size_t)info.st_size, file), info.st_size);
    fclose(file);
    chmod(path, 0755);
    free(bytes);
}

static tn_note_body *note_of(char *bytes, size_t size)
{
    const char owner[8] = TN_NOTE_OWNER;

    for (size_t i = 12; i + sizeof owner + sizeof(tn_note_body) <= size; i += 4)
        if (!memcmp(bytes + i, owner, sizeof owner))
            return (tn_note_body *)(void *)(bytes + i + sizeof owner);
    fail_msg("the template holds no note");
    return NULL;
}

static void change_nothing(char *bytes, size_t size)
{
    (void)bytes;
    (void)size;
}

static void change_draft(char *bytes, size_t size)
{
    uint32_t magic = (TN_MAGIC & ~0xffu) | 0xfe;

    memcpy((char *)note_of(bytes, size) + offsetof(tn_note_body, magic), &magic, sizeof magic);
}

static void change_isa(char *bytes, size_t size)
{
    memcpy((char *)note_of(bytes, size) + offsetof(tn_note_body, isa), "x86-64-v9", sizeof "x86-64-v9");
}

/* The file needs libq… that is nowhere, instead of libc.so.6, or of what a sanitizer puts there. */
static void change_needed(char *bytes, size_t size)
{
    static const char *const needed[] = {"libc.so.6", "libasan.so.", "libubsan.so.", "libtsan.so."};
    bool found = false;

    for (size_t i = 0; i + 16 <= size && !found; i++)
        for (size_t k = 0; k < sizeof needed / sizeof *needed; k++)
            if (!memcmp(bytes + i, needed[k], strlen(needed[k]))) {
                bytes[i + 3] = 'q';
                found = true;
            }
    assert_true(found);
}

static bool has(const char *test, const char *what)
{
    if (tool(test)->code == 0)
        return true;
    printf("skipped: %s\n", what);
    return false;
}

/* Where the plugins are not meant one is enough: each is tried by a process of its own. */
#define DOCTOR "\"$T\" doctor --json --set plugins.load=cpu"
#define PLUGIN "\"$T\" doctor --json --set plugins.path=\"$PWD/p\""

/* ---- the ten ---- */

static void preset_openblas(void **state)
{
    (void)state;
    finds("OPENBLAS_CORETYPE=Haswell " DOCTOR, "variables", "bad", "OPENBLAS_CORETYPE=Haswell",
          "unset OPENBLAS_CORETYPE");
    finds("OPENBLAS_L2_SIZE=512 " DOCTOR, "variables", "bad", "OPENBLAS_L2_SIZE=512",
          "unset OPENBLAS_L2_SIZE");
    finds_not(CLEAN "\"$T\" doctor --json", "variables", "OPENBLAS");
}

static void wrong_mode(void **state)
{
    (void)state;
    plugin_plant("acme-pool", change_nothing);
    finds_not(PLUGIN, "plugins", "/p");
    chmod("p", 0777);
    finds(PLUGIN, "plugins", "bad", "may be written by everybody (mode 0777)", "take away write access");
    chmod("p", 0755);
    chmod("p/acme-pool.so", 0664);
    finds(PLUGIN, "plugins", "bad", "may be written by its group", "chown it");
    if (geteuid() == 0) {
        chmod("p/acme-pool.so", 0644);
        if (!chown("p", 12345, 0)) /* there are roots of one user only */
            finds(PLUGIN, "plugins", "bad", "belongs to user 12345", "chown it");
    }
}

static void store(void **state)
{
    (void)state;
    finds(DOCTOR " --set kvstore.type=mpi", "store", "bad", "the plugin kv-mpi cannot be used",
          "libopenmpi-dev");
    finds(DOCTOR " --set kvstore.type=dist_sync", "store", "bad", "the plugin kv-zmq cannot be used",
          "libzmq3-dev");
    finds(DOCTOR " --set kvstore.type=dist_sync --set kvstore.transport=rdma", "store", "bad",
          "the plugin kv-rdma cannot be used", "libibverbs-dev");
    finds_not("\"$T\" doctor --json", "store", "cannot be used");
    finds_not("\"$T\" doctor --json --set kvstore.type=mpi --set kvstore.transport=acme", "store", "kv-mpi");
}

static void missing_library(void **state)
{
    (void)state;
    plugin_plant("acme-pool", change_nothing);
    finds_not(PLUGIN, "libraries", "acme-pool");
    plugin_plant("acme-pool", change_needed);
    finds(PLUGIN, "libraries", "bad", "libq", "install the library it names");
}

static void unknown_variable(void **state)
{
    (void)state;
    finds("TENON_DEVICE__DEFUALT=cpu " DOCTOR, "variables", "bad", "did you mean TENON_DEVICE__DEFAULT?",
          "unset it");
    finds("MXNET_ENGINE_TYPE=Speedy " DOCTOR, "variables", "bad", "MXNET_ENGINE_TYPE=Speedy", "correct it");
    finds_not(CLEAN "\"$T\" doctor --json", "variables", "TENON_");
}

static void two_openmp(void **state)
{
    (void)state;
    if (!has("command -v cc", "no C compiler to build a plugin with"))
        skip();
    assert_int_equal(tool("rm -rf p l && mkdir -m 755 p l && chmod 755 . &&"
                          "for l in libgomp.so.1 libiomp5.so; do"
                          " echo 'int f(void) { return 0; }' | cc -shared -fPIC -x c - -Wl,-soname,$l -o "
                          "l/$l || exit; done &&"
                          "cc -shared -fPIC -I\"$TENON_TEST_SOURCE/sdk/include\" -o p/acme-pool.so "
                          "\"$TENON_TEST_SOURCE/sdk/template/pool/acme_pool.c\" -Wl,--no-as-needed "
                          "l/libiomp5.so l/libgomp.so.1 && chmod 755 p/acme-pool.so")
                         ->code,
                     0);
    finds("LD_LIBRARY_PATH=$PWD/l " PLUGIN, "OpenMP", "bad", "libiomp5.so of Intel (acme-pool)",
          "with gcc's OpenMP, or leave it out");
    finds_not("LD_LIBRARY_PATH=$PWD/l " PLUGIN " --set plugins.load=cpu,cpu-openblas", "OpenMP", "libiomp5");
}

static void small_shared_memory(void **state)
{
    (void)state;
    if (!has("mkdir -p r && unshare -m mount -t tmpfs none r", "nothing may be mounted"))
        skip();
    finds("unshare -m sh -c 'mount -t tmpfs -o size=1m none /dev/shm && " DOCTOR
          " --set kvstore.type=dist_sync'",
          "shared memory", "bad", "/dev/shm has 1 MiB", "--shm-size");
    finds("unshare -m sh -c 'mount -t tmpfs -o size=1m none /dev/shm && " DOCTOR "'",
          "shared memory", /* alone */
          "warning", "/dev/shm has 1 MiB", "--shm-size");
    finds("unshare -m sh -c 'mount -t tmpfs none /dev && " DOCTOR "'", "shared memory", "warning",
          "/dev/shm: No such file or directory", "mount -t tmpfs");
    finds("unshare -m sh -c 'mount -t tmpfs none /dev && " DOCTOR " --set kvstore.type=dist_sync'",
          "shared memory", "bad", "/dev/shm: No such file or directory", "mount -t tmpfs");
    finds("unshare -m sh -c 'mount -t tmpfs -o size=64m none /dev/shm && " DOCTOR "'", "shared memory",
          "warning", "64 MiB", "size=1G");
    finds_not("unshare -m sh -c 'mount -t tmpfs -o size=1g none /dev/shm && \"$T\" doctor --json'",
              "shared memory", "need more");
}

static void without_proc(void **state)
{
    (void)state;
    if (!has("mkdir -p r && unshare -m mount -t tmpfs none r", "nothing may be mounted"))
        skip();
    finds("unshare -m sh -c 'mount -t tmpfs none /proc && " DOCTOR "'", "memory", "warning",
          " MiB in all; /proc/meminfo, which has what of it is available, cannot be read", "mount -t proc");
    finds_not("unshare -m sh -c 'mount -t tmpfs none /proc && \"$T\" doctor --json'", "memory", "\"0 MiB");
}

static void full_disk(void **state)
{
    (void)state;
    assert_int_equal(tool("mkdir -p r")->code, 0);
    if (!has("mkdir -p r && unshare -m mount -t tmpfs none r", "nothing may be mounted"))
        skip();
    finds("unshare -m sh -c 'mount -t tmpfs -o size=100k none r && head -c 1m /dev/zero >r/fill;"
          " " DOCTOR " r'",
          "disk", "bad", "checkpoints: 0 MiB are free in r", "make room below r");
    finds("unshare -m sh -c 'mount -t tmpfs -o size=1g,nr_inodes=3 none r && touch r/a r/b;"
          " " DOCTOR " --set run.dir=r'",
          "disk", "bad", "new runs: room for 0 more files", "make room");
    finds("unshare -m sh -c 'mount -t tmpfs -o size=300m none r; TMPDIR=$PWD/r " DOCTOR "'", "disk",
          "warning", "temporary files: 300 MiB are free", "make room");
    finds("unshare -m sh -c 'mount -t tmpfs -o ro none r; " DOCTOR " r'", "disk", "bad", "may not be written",
          "--out");
}

static void old_abi(void **state)
{
    (void)state;
    plugin_plant("acme-pool", change_draft);
    finds(PLUGIN, "plugins", "bad", "built for ABI 1 draft 254", "get a build for this version of Tenon");
    finds(PLUGIN, "plugins", "bad", "L05", "");
}

static void wrong_isa(void **state)
{
    (void)state;
    plugin_plant("acme-pool", change_isa);
    finds(PLUGIN, "plugins", "bad", "needs the instruction set x86-64-v9; this processor is x86-64",
          "get a build for this processor");
}

static void stale_lock(void **state)
{
    (void)state;
    assert_int_equal(
        tool("mkdir -p runs/a/checkpoints runs/b/checkpoints && : >runs/b/checkpoints/run.lock &&"
             "printf 'pid 999999999\\nstart 1\\nhost %s\\n' \"$(uname -n)\" >runs/a/checkpoints/run.lock")
            ->code,
        0);
    finds(DOCTOR, "runs", "bad", "runs/a: stale lock, process 999999999 is gone",
          "rm runs/a/checkpoints/run.lock");
    finds(DOCTOR " runs/b", "runs", "bad", "runs/b: stale lock, the file names no process",
          "rm runs/b/checkpoints/run.lock");
    assert_int_equal(tool("printf 'pid %d\\nstart %s\\nhost %s\\n' $$ $(cut -d' ' -f22 /proc/$$/stat)"
                          " \"$(uname -n)\" >runs/b/checkpoints/run.lock; " DOCTOR " runs/b >lives;"
                          " printf 'pid 7\\nstart 1\\nhost elsewhere\\n' >runs/a/checkpoints/run.lock")
                             ->code &
                         ~1,
                     0);
    finds_not("cat lives", "runs", "stale");
    finds(DOCTOR " runs/a", "runs", "warning", "locked by process 7 on host elsewhere", "rm runs/a/");
    assert_int_equal(tool("rm -r runs")->code, 0);
}

/* ---- run folders ---- */

#define GOOD "runs/2026-01-01-lenet-aaaa"

/* Eight bytes in the middle of trained values: one alone could be there already. */
static const struct {
    const char *damage, *level, *part, *advice;
} damages[] = {
    {"rm run.json", "bad", "b: run.json is missing", "put a copy of b/run.json back"},
    {": >run.json", "bad", "run.json is damaged: line 1", "put a copy of b/run.json"},
    {"head -c 200 run.json >x; mv x run.json", "bad", "run.json is damaged: line ", "put a copy"},
    {"echo '{}' >run.json", "bad", "run.json is not what `tenon train` writes", "put a copy"},
    {"echo '[1]' >run.json", "bad", "run.json is damaged", "put a copy"},
    {"sed -i 's/\"command\": \\[/\"command\": 7, \"x\": [/' run.json", "bad", "not what `tenon train`",
     "put"},
    {"truncate -s 20M run.json", "bad", "run.json cannot be read", "put a copy"},
    {"rm run.json && mkfifo run.json", "bad", "run.json cannot be read", "put a copy"},
    {"rm run.json && mkdir run.json", "bad", "run.json cannot be read", "put a copy"},
    {"mv run.json y && ln -s y run.json", "bad", "run.json cannot be read", "put a copy"},
    {"rm metrics.jsonl", "bad", "b/metrics.jsonl is missing", "only the curves"},
    {": >metrics.jsonl", "bad", "ends with step 0, the training with step 15", "put a copy"},
    {"sed -i '$d' metrics.jsonl", "bad", "ends with step 10, the training with step 15", "put a copy"},
    {"printf '{\"epoch\":4,\"st' >>metrics.jsonl", "bad", "metrics.jsonl:4: the line has no end",
     "sed -i 4d b/metrics.jsonl"},
    {"sed -i '2s/.*/rubbish/' metrics.jsonl", "bad", "metrics.jsonl:2: the line is no epoch",
     "sed -i 2d b/m"},
    {"sed -i '2s/.*/[]/;1s/.*//' metrics.jsonl", "bad", "metrics.jsonl:1: the line is no epoch, and others",
     "take these lines out"},
    {"sed -i '2s/\"epoch\": *2/\"epoch\":1/' metrics.jsonl", "bad", ":2: the line does not follow", "sed -i"},
    {"head -c 100000 /dev/zero >>metrics.jsonl", "bad", ":4: the line has no end", "sed -i 4d"},
    {"head -c 9000 /dev/zero | tr '\\0' x >>metrics.jsonl; echo >>metrics.jsonl; echo '{}' "
     ">>metrics.jsonl",
     "bad", ":4: the line has no end, and others", "take these lines out"},
    {"rm metrics.jsonl && mkfifo metrics.jsonl", "bad", "metrics.jsonl cannot be read", "regular file"},
    {"truncate -s 2G metrics.jsonl", "bad", "metrics.jsonl cannot be read", "regular file"},
    {"truncate -s 1000 checkpoints/checkpoint-000003.tnck", "bad", "checkpoint-000003.tnck",
     "rm b/checkpoints/checkpoint-000003.tnck; --resume goes on from "
     "b/checkpoints/checkpoint-000002.tnck"},
    {"truncate -s 4 checkpoints/checkpoint-000003.tnck", "bad", "checkpoint-000003.tnck", "goes on from"},
    {": >checkpoints/checkpoint-000003.tnck", "bad", "checkpoint-000003.tnck", "goes on from"},
    {"printf x >>checkpoints/checkpoint-000003.tnck", "bad", "checkpoint-000003.tnck", "goes on from"},
    {"printf NOCKPT1 | dd of=checkpoints/checkpoint-000003.tnck conv=notrunc status=none", "bad",
     "checkpoint-000003.tnck is no checkpoint of version 1", "goes on from"},
    {"printf xxxxxxxx | dd of=checkpoints/checkpoint-000002.tnck bs=1 seek=30000 conv=notrunc status=none",
     "bad", "checkpoint-000002.tnck: damaged: checksum",
     "rm b/checkpoints/checkpoint-000002.tnck; --resume goes on"},
    {"printf '\\377\\377\\377\\377\\377\\377' | dd of=checkpoints/checkpoint-000002.tnck bs=1 seek=16 "
     "conv=notrunc status=none",
     "bad", "checkpoint-000002.tnck: a section of ", "goes on from"},
    {"for i in 1 2 3; do truncate -s 1000 checkpoints/checkpoint-00000$i.tnck; done", "bad",
     "checkpoint-000003.tnck", "put a copy of b/checkpoints/checkpoint-000003.tnck back, or train anew"},
    {"mv checkpoints/checkpoint-000003.tnck checkpoints/checkpoint-000007.tnck", "bad",
     "checkpoint-000007.tnck is checkpoint 3 by",
     "mv b/checkpoints/checkpoint-000007.tnck b/checkpoints/checkpoint-000003.tnck:"},
    {"rm checkpoints/checkpoint-000003.tnck", "warning",
     "the newest checkpoint is of step 10, the run came to 15", "put a copy"},
    {"rm checkpoints/*.tnck", "warning", "there is no checkpoint", "put copies into b/checkpoints"},
    {"rm -r checkpoints", "warning", "there is no checkpoint", "put copies"},
    {"rm -r checkpoints && : >checkpoints", "bad", "b/checkpoints: ", "mv b/checkpoints b/checkpoints.old"},
    {"rm model-0000.params && mkdir model-0000.params", "bad", "model-0000.params",
     "mv b/model-0000.params b/model-0000.params.old && tenon"},
    {"rm checkpoints/checkpoint-000003.tnck && mkfifo checkpoints/checkpoint-000003.tnck", "bad",
     "checkpoint-000003.tnck is not a regular file", "goes on from"},
    {"rm checkpoints/checkpoint-000003.tnck && ln -s nowhere checkpoints/checkpoint-000003.tnck", "bad",
     "checkpoint-000003.tnck", "goes on from"},
    {"rm model-symbol.json", "bad", "b/model-symbol.json is missing",
     "tenon train --resume b: it is written again"},
    {"rm model-0000.params", "bad", "b/model-0000.params is missing",
     "tenon train --resume b: it is written again"},
    {"rm model-0000.params checkpoints/*", "bad", "b/model-0000.params is missing", "or train anew"},
    {"rm model-best.params", "bad", "b/model-best.params is missing", "it cannot be made again"},
    {"truncate -s 1000 model-0000.params", "bad",
     "b/model-0000.params: ", "rm b/model-0000.params && tenon train"},
    {": >model-0000.params", "bad", "b/model-0000.params", "rm b/model-0000.params && tenon train"},
    {"printf xxxxxxxx | dd of=model-0000.params bs=1 seek=3000 conv=notrunc status=none", "bad",
     "its values are not those that the training wrote", "rm b/model-0000.params && tenon train --resume b"},
    {"truncate -s 1000 model-best.params", "bad", "b/model-best.params: ", "it cannot be made again"},
    {"head -c 500 model-symbol.json >x; mv x model-symbol.json", "bad", "b/model-symbol.json",
     "rm b/model-symbol"},
    {"sed -i s/Convolution/AcmeSecret/ model-symbol.json", "bad", "there is no operator AcmeSecret",
     "tenon plugins needs b/model-symbol.json"},
    {"rm model-0000.params && mkfifo model-0000.params", "bad", "model-0000.params is not a regular",
     "rm b/model"},
    {"sed -i 's/\"result\": {/\"result\": 7, \"x\": {/' run.json; printf '{\"ep' >>metrics.jsonl", "warning",
     "metrics.jsonl: the last line has no end", "tenon train --resume b drops the line"},
};

/* Each damage in a fresh copy of a good run: what is found in it, and what helps. */
static void damaged_run(void **state)
{
    (void)state;
    tool_data("small", 40);
    assert_int_equal(
        tool("rm -rf runs && \"$T\" train zoo:lenet --data ./small --batch 8 --epochs 3 -q --seed 1 "
             "--set train.checkpoint_keep=3 --out " GOOD)
            ->code,
        0);
    finds_not("\"$T\" doctor --json aaaa", "runs", "aaaa");
    finds_not("\"$T\" doctor --json --set plugins.load=mempool aaaa", "runs", "aaaa");
    finds_not("\"$T\" doctor --json --set device.default=cuda aaaa", "runs", "aaaa");
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        char line[512];

        (void)snprintf(line, sizeof line, "rm -rf b && cp -r " GOOD " b && (cd b && %s)", damages[i].damage);
        if (tool(line)->code)
            fail_msg("%s: %d", line, tool(line)->code);
        finds(DOCTOR " b", "runs", damages[i].level, damages[i].part, damages[i].advice);
    }
    /* Below runs/ what is small is looked at without being named. */
    assert_int_equal(tool("rm -rf b && : >" GOOD "/run.json && mkdir runs/notes")->code, 0);
    finds(DOCTOR, "runs", "bad", GOOD ": run.json is damaged", "put a copy");
    finds_not("\"$T\" doctor --json", "runs", "notes");
    finds(DOCTOR " notes", "runs", "bad", "no run below runs", "name a folder");
    finds(DOCTOR " runs/notes", "runs", "bad", "is no run folder", "name a folder");
    assert_int_equal(tool("rm -r runs")->code, 0);
}

/* What a damaged file is said to be mended with mends it. */
static void advice_helps(void **state)
{
    static const char *const mended[] = {
        "rm model-0000.params",
        "rm model-0000.params; mkdir model-0000.params",
        "truncate -s 10 model-0000.params",
        "printf xxxxxxxx | dd of=model-0000.params bs=1 seek=3000 conv=notrunc status=none",
        "rm model-symbol.json",
        "head -c 50 model-symbol.json >x; mv x model-symbol.json",
        "truncate -s 1000 checkpoints/checkpoint-000003.tnck",
        "mv checkpoints/checkpoint-000002.tnck checkpoints/checkpoint-000001.tnck",
        "printf '{\"epoch\":4,\"st' >>metrics.jsonl",
        "printf 'rubbish\\n' >>metrics.jsonl",
    };
    char line[512];

    (void)state;
    assert_int_equal(
        tool("rm -rf good && \"$T\" train zoo:lenet --data ./small --batch 8 --epochs 3 -q --seed 1 "
             "--out good")
            ->code,
        0);
    for (size_t i = 0; i < sizeof mended / sizeof *mended; i++) {
        const tool_said *s;
        json_t *o, *f;
        size_t k, said = 0;

        (void)snprintf(line, sizeof line, "rm -rf b && cp -r good b && (cd b && %s); " DOCTOR " b",
                       mended[i]);
        s = tool(line);
        o = tool_json(s, 0);
        json_array_foreach(json_object_get(o, "checks"), k, f)
        {
            char *advice;

            if (strcmp(json_string_value(json_object_get(f, "check")), "runs"))
                continue;
            said++;
            advice = strdup(json_string_value(json_object_get(f, "advice")));
            advice[strcspn(advice, strstr(advice, "goes on from") ? ";" : ":,")] = '\0';
            (void)snprintf(line, sizeof line, "tenon() { \"$T\" \"$@\"; }; %s", advice);
            if (tool(line)->code)
                fail_msg("%s: %s: %s", mended[i], line, tool(line)->err);
            free(advice);
        }
        assert_int_equal(said, 1);
        json_decref(o);
        s = tool(DOCTOR " b");
        o = tool_json(s, 0);
        f = finding(o, "runs", "");
        if (!f || strcmp(json_string_value(json_object_get(f, "level")), "bad") == 0)
            fail_msg("%s: %s", mended[i], s->out);
        json_decref(o);
        assert_int_equal(
            tool("test ! -f b/model-0000.params || cmp good/model-0000.params b/model-0000.params")->code, 0);
    }
}

/* ---- more ---- */

static void further_problems(void **state)
{
    static const struct {
        const char *line, *check, *level, *part, *advice;
    } rows[] = {
        {"OMP_NUM_THREADS=100000 " DOCTOR, "threads", "bad", "OMP_NUM_THREADS=100000",
         "unset OMP_NUM_THREADS"},
        {"OMP_NUM_THREADS=many " DOCTOR, "threads", "bad", "no number of threads", "unset"},
        {"env -u HOME -u XDG_CONFIG_HOME " DOCTOR, "home", "warning", "HOME is unset", "export"},
        {"XDG_CONFIG_HOME=x " DOCTOR, "home", "warning", "not absolute", "make it absolute"},
        {"LC_ALL=xx_XX.UTF-8 " DOCTOR, "locale", "warning", "xx_XX.UTF-8 is not installed", "C.UTF-8"},
        {"LC_ALL= LC_CTYPE=yy_YY.UTF-8 LANG=xx_XX " DOCTOR, "locale", "warning",
         "yy_YY.UTF-8 is not installed", "C.UTF-8"},
        {"LC_ALL= LC_CTYPE= LANG=xx_XX " DOCTOR, "locale", "warning", "xx_XX is not installed", "C.UTF-8"},
        {"GLIBC_TUNABLES=glibc.malloc.check=1 " DOCTOR, "variables", "warning", "GLIBC_TUNABLES",
         "unset GLIBC_TUNABLES"},
        {DOCTOR " --set plugins.require=absent", "configuration", "bad", "absent is required",
         "take its name out of plugins.require"},
        {DOCTOR " --set train.epochs=0", "configuration", "bad", "train.epochs", "kind and range"},
        {DOCTOR " --config nowhere.ini", "configuration", "bad", "nowhere.ini", "check the spelling"},
        {"mkdir -p x/tenon && : >x/tenon/tenon.ini && chmod 666 x/tenon/tenon.ini &&"
         " XDG_CONFIG_HOME=$PWD/x " DOCTOR,
         "configuration", "bad", "may be written by everybody", "chmod go-w"},
        {"mkdir -p i && cd i && printf '[train]\\nepochs = 0\\n' >tenon.ini; " DOCTOR, "configuration", "bad",
         "tenon.ini:2", "kind and range"},
        {"printf '[engine]\\ntype = thraeded\\nthreads = x\\n' >two.ini; " DOCTOR " --config "
         "two.ini",
         "configuration", "bad", "two.ini:3", "kind and range"},
        {DOCTOR " --set plugins.path=\"$PWD\"/absent/p", "variables", "bad", "/absent/p cannot be opened",
         "correct it"},
        {DOCTOR " --set plugins.trust=off", "configuration", "warning", "plugins.trust is off",
         "take plugins.trust"},
        {DOCTOR " --set plugins.load=nothing", "plugins", "bad", "none can be used", "install"},
        {"ulimit -n 40; " DOCTOR, "limits", "bad", "open files: 40", "ulimit -n"},
        {DOCTOR " nowhere", "runs", "bad", "nowhere is no folder", "name a folder"},
        {DOCTOR " \"$(head -c 60000 /dev/zero | tr '\\0' a)\"", "runs", "bad", "is no folder", "name"},
        {"d=$(printf '\\377\\001x'); mkdir -p $d/checkpoints && : >$d/checkpoints/run.lock; \"$T\" doctor "
         "--json $d",
         "runs", "bad", "stale lock", "rm "},
        {"mkdir -p f/checkpoints && mkfifo f/checkpoints/run.lock; " DOCTOR " f", "runs", "bad",
         "f: stale lock", "rm f/"},
        {"mkdir -p z/checkpoints && head -c 5m /dev/zero >z/checkpoints/run.lock; " DOCTOR " z", "runs",
         "bad", "z: stale lock", "rm z/"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        finds(rows[i].line, rows[i].check, rows[i].level, rows[i].part, rows[i].advice);
}

/* A plugin that ends the process while it is loaded, and one that never comes back, are findings. */
static void crashing_plugin(void **state)
{
    (void)state;
    if (!has("command -v cc", "no C compiler to build a plugin with"))
        skip();
    assert_int_equal(tool("rm -rf p && mkdir -m 755 p && { echo '#include <stdlib.h>'; echo '#include"
                          " \"tenon/plugin/plugin.h\"'; echo 'static tn_status boom(const tn_host *host, "
                          "void **plugin, tn_err"
                          " *err) { (void)host; (void)plugin; (void)err; abort(); }';"
                          " sed 's/\"pool:first-fit\", NULL,/\"pool:first-fit\", boom,/'"
                          " \"$TENON_TEST_SOURCE/sdk/template/pool/acme_pool.c\"; } | cc -shared -fPIC "
                          "-I\"$TENON_TEST_SOURCE/sdk/include\" -x c - -o"
                          " p/acme-pool.so && chmod 755 p/acme-pool.so")
                         ->code,
                     0);
    finds(PLUGIN, "libraries", "bad", "acme-pool: loading it ends the process with signal 6", "plugins.load");
    finds(PLUGIN " --set plugins.require=acme-pool", "configuration", "bad", "ends the process with signal 6",
          "");
}

static void governor(void **state)
{
    (void)state;
    if (!has("unshare -m sh -c 'mount -t tmpfs none /sys/devices/system/cpu/cpu0'", "nothing may be mounted"))
        skip();
    finds(
        "unshare -m sh -c 'cd /sys/devices/system/cpu/cpu0 && mount -t tmpfs none . && cd . && cd ../cpu0 &&"
        " mkdir cpufreq && echo powersave >cpufreq/scaling_governor && " DOCTOR "'",
        "processor", "warning", "powersave", "cpupower");
}

/* ---- output ---- */

static void report(void **state)
{
    const tool_said *s =
        tool("TENON_PLUGIN__ACME__API_KEY=hush1 TENON_TOKEN=hush2 OMP_NUM_THREADS=1 \"$T\" doctor "
             "--report --set run.seed=77");

    (void)state;
    assert_says(s->out, "[versions]");
    assert_says(s->out, "build_id");
    assert_says(s->out, "key=run.seed value=77 from=");
    assert_says(s->out, "OMP_NUM_THREADS    1");
    assert_says(s->out, "TENON_TOKEN        (set, not shown)");
    assert_says(s->out, "name=cpu version=");
    assert_null(strstr(s->out, "hush"));
    assert_null(strstr(s->err, "hush"));
    s = tool("TENON_TOKEN=hush2 \"$T\" doctor --report --json");
    assert_says(s->out, "\"report\":{\"versions\"");
    assert_null(strstr(s->out, "hush"));
}

static void output(void **state)
{
    const tool_said *s = tool(CLEAN "OPENBLAS_CORETYPE=x \"$T\" doctor --quiet");

    (void)state;
    assert_says(s->out, "bad  variables: OPENBLAS_CORETYPE=x");
    assert_null(strstr(s->out, "ok   "));
    assert_null(strchr(s->out, '\033'));
    assert_int_equal(tool("\"$T\" doctor >/dev/full")->code, 1);
    assert_int_equal(tool("\"$T\" doctor --reprot")->code, 2);
    /* A warning that comes when the context is closed, after the report. */
    assert_true(
        tool("mkdir p && exec \"$T\" doctor -q --set profiler.autostart=1 --set profiler.file=p")->code <= 1);
}

/* A plugin that loads, and whose device wants a driver: told, and no fault of the machine. */
static void no_driver(void **state)
{
    const tool_said *s;
    json_t *o, *f;

    (void)state;
    if (tool("\"$T\" plugins list --exists cuda && ! ldconfig -p | grep -q libcuda.so.1")->code) {
        print_message("skipped: no plugin cuda, or a driver is there\n");
        return;
    }
    s = tool("\"$T\" doctor --json");
    o = tool_json(s, 0);
    f = finding(o, "libraries", "no device: cuda: there is no NVIDIA driver");
    assert_non_null(f);
    assert_string_equal(json_string_value(json_object_get(f, "level")), "ok");
    if (tool("\"$T\" plugins list --exists kv-nccl")->code == 0)
        assert_non_null(finding(o, "libraries", "no device: kv-nccl: there is no NVIDIA driver"));
    json_decref(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(preset_openblas),
        cmocka_unit_test(wrong_mode),
        cmocka_unit_test(store),
        cmocka_unit_test(missing_library),
        cmocka_unit_test(unknown_variable),
        cmocka_unit_test(two_openmp),
        cmocka_unit_test(small_shared_memory),
        cmocka_unit_test(without_proc),
        cmocka_unit_test(full_disk),
        cmocka_unit_test(old_abi),
        cmocka_unit_test(wrong_isa),
        cmocka_unit_test(stale_lock),
        cmocka_unit_test(damaged_run),
        cmocka_unit_test(advice_helps),
        cmocka_unit_test(further_problems),
        cmocka_unit_test(crashing_plugin),
        cmocka_unit_test(governor),
        cmocka_unit_test(report),
        cmocka_unit_test(output),
        cmocka_unit_test(no_driver),
    };
    int failed;

    tool_setup();
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    tool_teardown();
    return failed;
}
