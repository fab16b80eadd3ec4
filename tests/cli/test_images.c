/* Folders of images: training, answers for single files, `tenon data pack`; what the plugin is missed for. */
#include "tool.h"

#include <sys/stat.h>
#include <unistd.h>

#include "tenon/image.h"
#include "tenon/nn.h"
#include "tenon/nn_data.h"

#define SIDE 8
#define EACH (SIDE * SIDE)

/* Images of an IDX file as PART/CLASS/NUMBER.EXTENSION. */
static void part_write(tn_ctx *ctx, const char *part, const char *stem, const char *extension)
{
    char path[256];
    unsigned char pixels[EACH], label;
    FILE *images, *labels;

    (void)snprintf(path, sizeof path, "small/%s-images-idx3-ubyte", stem);
    images = fopen(path, "r");
    (void)snprintf(path, sizeof path, "small/%s-labels-idx1-ubyte", stem);
    labels = fopen(path, "r");
    assert_true(images && labels && !fseek(images, 16, SEEK_SET) && !fseek(labels, 8, SEEK_SET));
    (void)mkdir(part, 0700);
    for (int i = 0; fread(pixels, 1, EACH, images) == EACH && fread(&label, 1, 1, labels) == 1; i++) {
        tn_array *a = NULL;
        void *data = NULL;
        uint64_t bytes = 0;
        FILE *out;

        assert_false(tn_array_from(ctx, TN_U8, 2, (const int64_t[]){SIDE, SIDE}, pixels, &a));
        assert_false(tn_image_encode(ctx, a, extension, 0, &data, &bytes));
        (void)snprintf(path, sizeof path, "%s/%d", part, label);
        (void)mkdir(path, 0700);
        (void)snprintf(path, sizeof path, "%s/%d/%03d.%s", part, label, i, extension);
        out = fopen(path, "w");
        assert_true(out && fwrite(data, 1, bytes, out) == bytes && !fclose(out));
        tn_free(data);
        tn_array_release(a);
    }
    (void)fclose(images);
    (void)fclose(labels);
}

static void folders_make(void)
{
    static char path[2048];
    const char *settings[] = {path, NULL};
    tn_app *app;

    (void)snprintf(path, sizeof path, "plugins.path=%s", getenv("TENON_TEST_PLUGINS"));
    app = tn_app_open(.name = "images", .settings = settings);
    assert_true(tn_app_ok(app));
    tool_data("small", 40);
    assert_false(mkdir("png", 0700) || mkdir("jpg", 0700));
    part_write(tn_app_ctx(app), "png/train", "train", "png");
    part_write(tn_app_ctx(app), "png/test", "t10k", "png");
    part_write(tn_app_ctx(app), "jpg/train", "train", "jpg");
    part_write(tn_app_ctx(app), "jpg/test", "t10k", "jpg");
    assert_int_equal(tn_app_close(app), 0);
}

/* PNG has the numbers of the IDX file, so the training is the same, bit by bit. */
static void same_training(void **state)
{
    char *one, *two, hash[65];
    const tool_said *s;

    (void)state;
    s = tool(
        "\"$T\" train zoo:lenet --data ./png --epochs 2 --out run --progress none --set train.shuffle=false");
    if (s->code)
        fail_msg("%s", s->err);
    one = strstr(s->out, "params_sha256 ");
    assert_non_null(one);
    memcpy(hash, one + 14, 64);
    hash[64] = '\0';
    s = tool("\"$T\" eval run/model-symbol.json run/model-0000.params --data ./png");
    assert_int_equal(s->code, 0);
    two = strstr(s->out, "accuracy ");
    assert_non_null(two);
    s = tool("\"$T\" eval run/model-symbol.json run/model-0000.params --data ./small");
    assert_int_equal(s->code, 0);
    assert_says(s->out, hash);
    assert_int_equal(tool("test -s run/classes.txt")->code, 0);
}

static void answers(void **state)
{
    const tool_said *s =
        tool("\"$T\" predict run png/test/*/00[0-3].png jpg/test/*/00[0-3].jpg --json | wc -l");

    (void)state;
    assert_int_equal(s->code, 0);
    assert_int_equal(atoi(s->out), 8);
    s = tool("\"$T\" predict run png/test/*/000.png --json; \"$T\" predict run/model-symbol.json "
             "run/model-0000.params "
             "png/test/*/000.png --shape 1,8,8 --json");
    assert_int_equal(s->code, 0);
    assert_says(s->out, "\"sample\":0");
    s = tool("\"$T\" predict run png/test/*/000.png --shape 1,40,40");
    assert_true(s->code != 0);
    s = tool("\"$T\" predict run png/test/*/000.png --shape 2,8,8");
    assert_true(s->code != 0);
    assert_says(s->err, "1 or 3 channels");
    s = tool("\"$T\" predict run");
    assert_int_equal(s->code, 2);
    s = tool("head -c 60 png/test/*/000.png > cut.png; \"$T\" predict run cut.png");
    assert_int_equal(s->code, 4);
    assert_says(s->err, "cut.png");
    assert_says(s->err, "ends early, at byte 60");
}

static void packed(void **state)
{
    const tool_said *s;

    (void)state;
    assert_int_not_equal(tool("exec \"$T\" data pack absent packed/train.rec")->code, 0);
    for (size_t i = 0; i < 3; i++) { /* no folder for what is not packed */
        static const char *const options[] = {"--labels nowhere", "--part other", "--encoding gif"};
        char line[256];

        (void)snprintf(line, sizeof line, "\"$T\" data pack png packed/by/x.rec %s", options[i]);
        s = tool(line);
        if (!s->code || !tool("test -e packed")->code)
            fail_msg("%s: %d, %s", line, s->code, s->err);
    }
    s = tool("test ! -e packed && \"$T\" data pack png packed/train.rec --part train && \"$T\" data pack png "
             "packed/test.rec "
             "--part test --threads 3 --json");
    assert_int_equal(s->code, 0);
    assert_says(s->out, "images 40");
    assert_says(s->out, "\"broken\":0");
    assert_int_equal(
        tool("cmp packed/train.idx packed/train.idx && grep -c png packed/train.lst | grep -q 40")->code, 0);
    s = tool("\"$T\" eval run/model-symbol.json run/model-0000.params --data ./packed > a && "
             "\"$T\" eval run/model-symbol.json run/model-0000.params --data ./png > b && grep -v ^data a >c "
             "&& grep -v ^data b | cmp c -");
    if (s->code)
        fail_msg("%s%s", s->out, s->err);
    s = tool("\"$T\" data pack png x.rec --labels packed/test.lst --encoding jpg --quality 80 --resize 12 "
             "--center-crop "
             "--channels 1 --shuffle && test -s x.rec && ! cmp -s x.lst packed/test.lst");
    if (s->code)
        fail_msg("%s%s", s->out, s->err);
    s = tool("cp -r png bad; for f in bad/train/*/002.png; do echo no >$f; done; \"$T\" data pack bad x.rec "
             "--part train");
    assert_int_equal(s->code, 0);
    assert_says(s->out, "images 39\nbroken 1\n");
    assert_says(s->out, "002.png");
    s = tool("\"$T\" train zoo:lenet --data ./bad --epochs 3 --out badrun --progress plain");
    assert_int_equal(s->code, 0);
    assert_says(s->err, "./bad:train: 1 of 40 images cannot be read: ./bad/");
    assert_says(s->err,
                "002.png: this is no image of a known format: JPEG and PNG are; the next image stands in\n");
    assert_null(strstr(strstr(s->err, "cannot be read") + 1, "cannot be read")); /* once */
    s = tool("\"$T\" data pack bad y.rec --part train --strict");
    assert_true(s->code != 0 && access("y.rec", F_OK) && access("y.lst", F_OK) && access("y.lst.tmp", F_OK));
}

/* The names of folders come back from a .rec, through NAME.classes; a list has none. */
static void class_names(void **state)
{
    const tool_said *s;

    (void)state;
    s = tool("mkdir named named/train named/test set && for p in train test; do for k in 0 1; do "
             "cp -r png/$p/$k named/$p/kind$k; done; \"$T\" data pack named set/$p.rec --part $p; done && "
             "printf 'kind0\\nkind1\\n' | cmp - set/train.classes && "
             "\"$T\" train zoo:lenet --data ./set --epochs 1 --out namedrun --progress none && "
             "\"$T\" predict namedrun png/test/0/000.png");
    if (s->code || !strstr(s->out, "kind"))
        fail_msg("%d: %s%s", s->code, s->out, s->err);
    /* One packed file, by its name or by its folder's, holds both parts; but test.rec is the test part. */
    s = tool("mkdir alone && for n in train mine; do rm -f alone/*.rec && cp set/train.rec alone/$n.rec && "
             "\"$T\" data info alone/$n.rec >by-file && \"$T\" data info ./alone >by-folder && "
             "sed \"s,./alone,alone,g\" by-folder | cmp - by-file && grep -q 'each fifth' by-file || exit 1; "
             "done; "
             "\"$T\" train zoo:lenet --data ./alone --epochs 1 --out alonerun -q && \"$T\" eval alonerun");
    if (s->code || !strstr(s->out, "accuracy"))
        fail_msg("%d: %s%s", s->code, s->out, s->err);
    s = tool(
        "mkdir only && cp set/test.rec set/test.classes only && \"$T\" eval alonerun --data ./only --json");
    assert_int_equal(s->code, 0);
    assert_says(s->out, "\"samples\":8,");
    assert_says(tool("\"$T\" data info ./only")->out, "\ntest: 8 samples");
    s = tool("\"$T\" train zoo:lenet --data ./only --epochs 1 --out onlyrun");
    assert_int_equal(s->code, 2);
    assert_says(s->err, "./only has test.rec and no train one; to train on four fifths of the file, give the "
                        "file: --data ./only/test.rec");
    /* Either part may lie there packed, the other as images. */
    s = tool(
        "for p in train test; do mkdir half$p && cp set/$p.rec set/$p.classes half$p; done; "
        "cp -r named/test halftrain && cp -r named/train halftest && "
        "for d in set halftrain halftest; do \"$T\" data info ./$d | sed -n '/samples/s, of .*,,p' >$d.says; "
        "done; cat half*.says; cmp set.says halftrain.says && cmp set.says halftest.says");
    if (s->code || !strstr(s->out, "train: "))
        fail_msg("%d: %s%s", s->code, s->out, s->err);
    s = tool("cp alone/mine.rec alone/more.rec; \"$T\" data info ./alone");
    assert_true(s->code != 0);
    assert_says(s->err, "a packed file of another name is given itself: --data ./alone/NAME.rec");
    s = tool("printf 'kind1\\nkind0\\n' >set/test.classes; \"$T\" eval namedrun --data ./set");
    assert_true(s->code != 0);
    assert_says(s->err, "class 0 is \"kind1\", that of the model is \"kind0\"");
    s = tool("echo kind0 >set/train.classes; \"$T\" train zoo:lenet --data ./set --epochs 1 --out other");
    assert_int_equal(s->code, 4);
    assert_says(s->err, "set/train.classes names 1 classes, ./set/train.rec has 2");
    s = tool("\"$T\" data pack named set/train.rec --labels set/test.lst; test ! -e set/train.classes");
    assert_int_equal(s->code, 0);
}

/* Images to test with have the size of those to train on. */
static void sizes(void **state)
{
    const tool_said *s;

    (void)state;
    s = tool("\"$T\" data pack png big.rec --part test --resize 12 --encoding png");
    assert_int_equal(s->code, 0);
    s = tool(
        "mkdir mixed && \"$T\" data pack png mixed/train.rec --part train && mv big.rec mixed/test.rec && "
        "mv big.idx mixed/test.idx && \"$T\" train zoo:lenet --data ./mixed --epochs 1 --out mixedrun "
        "--progress none && \"$T\" eval mixedrun --data ./mixed");
    if (s->code || !strstr(s->out, "accuracy"))
        fail_msg("%d: %s%s", s->code, s->out, s->err);
}

static void refused(void **state)
{
    static const struct {
        const char *line, *says;
    } rows[] = {
        {"data pack png x.rec --resize 0", "--resize 0: a whole number"},
        {"data pack png x.rec --threads many", "--threads many: a whole number"},
        {"data pack png x.rec --quality 50", "a quality goes with an encoding"},
        {"data pack png x.rec --part test --encoding gif", "no plugin writes images as \"gif\""},
        {"data pack png x.rec --channels 2 --encoding png", "is out of range"},
        {"data pack png x.rec --part other", "unknown part of a data set"},
        {"data pack nowhere x.rec", "nowhere"},
        {"data pack png x.rec --labels nowhere", "nowhere"},
        {"data pack png x.rec --labels run/run.json", "line 1: a number, labels and a path"},
        {"data pack png /proc/nowhere/x.rec --part test",
         ": /proc/nowhere/x.rec: No such file or directory\n"},
        {"data pack png x.rec --part test --set plugins.load=cpu", "images need the plugin image"},
        {"train zoo:lenet --data ./png --set plugins.load=cpu --out r", "images need the plugin image"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char line[256];
        const tool_said *s;

        (void)snprintf(line, sizeof line, "\"$T\" %s", rows[i].line);
        s = tool(line);
        if (!s->code || !strstr(s->err, rows[i].says))
            fail_msg("%s: %d, %s", rows[i].line, s->code, s->err);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_training), cmocka_unit_test(answers), cmocka_unit_test(packed),
        cmocka_unit_test(class_names),   cmocka_unit_test(sizes),   cmocka_unit_test(refused),
    };
    char path[2048];
    int failed;

    (void)snprintf(path, sizeof path, "%s/image.so", getenv("TENON_TEST_PLUGINS"));
    if (access(path, R_OK)) {
        printf("skipped: the plugin image was not built\n");
        return 77;
    }
    tool_setup();
    folders_make();
    failed = cmocka_run_group_tests_name("images", tests, NULL, NULL);
    tool_teardown();
    return failed;
}
