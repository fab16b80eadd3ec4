/* Files of another kind than a reader expects are named, whatever reader gets them. */
#include "api/fixture.h"

#include <stdbool.h>
#include <stdio.h>
#include <zlib.h>

#include "support/scratch.h"

#define SYMBOL_TEXT                                                                                          \
    "{\"nodes\": [{\"op\": \"null\", \"name\": \"x\", \"inputs\": []}], \"heads\": [[0, 0, 0]]}"
#define ZIP_HEAD "PK\3\4\24\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
#define ZIP(name, length) ZIP_HEAD length "\0\0\0" name

typedef struct sample {
    const char *bytes;
    size_t count;
    const char *what, *advice; /* that the message holds */
    tn_status status;
} sample;

#define SAMPLE(text, what, advice, status)                                                                   \
    {                                                                                                        \
        text, sizeof text - 1, what, advice, status                                                          \
    }

static const sample samples[] = {
    SAMPLE("", "is empty", "", TN_E_FORMAT),
    SAMPLE("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1"
           "258daaa5e2ca24d17e2393\nsize 12345\n",
           "a git-lfs pointer", "`git lfs pull`", TN_E_FORMAT),
    SAMPLE("/annex/objects/SHA256E-s31390--f50d7ac4.params\n", "a git-annex pointer", "`git annex get`",
           TN_E_FORMAT),
    SAMPLE("\n\n\n<!DOCTYPE html>\n<html lang=\"en\">\n<head>", "an HTML page", "fetch the file itself",
           TN_E_FORMAT),
    SAMPLE("<html><body>Sign in</body></html>", "an HTML page", "fetch the file itself", TN_E_FORMAT),
    SAMPLE("\xef\xbb\xbf<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>", "an XML document",
           "fetch", TN_E_FORMAT),
    SAMPLE("404: Not Found", "a server's refusal", "fetch", TN_E_FORMAT),
    SAMPLE("\x1f\x8b\x08\0\0\0\0\0\0\3", "gzip data", "unpack", TN_E_FORMAT),
    SAMPLE("BZh91AY&SY", "bzip2 data", "unpack", TN_E_FORMAT),
    SAMPLE("\xfd\x37zXZ\0\0\4", "xz data", "unpack", TN_E_FORMAT),
    SAMPLE("\x28\xb5\x2f\xfd\x24\0\1\0", "zstd data", "unpack", TN_E_FORMAT),
    SAMPLE(ZIP("readme.txt", "\12"), "a zip archive", "unpack", TN_E_UNSUPPORTED),
    SAMPLE(ZIP("fc_weight.npy", "\15"), "a .npz of NumPy", ": save parameters as .params, or name it .npz",
           TN_E_UNSUPPORTED),
    SAMPLE(ZIP("archive/data.pkl", "\20"), "a PyTorch file", "convert", TN_E_UNSUPPORTED),
    SAMPLE("\x80\2\x8a\x0al\xfc\x9c\x46\xf9\x20j\xa8P\x19.", "a PyTorch file", "convert", TN_E_UNSUPPORTED),
    SAMPLE(ZIP("metadata.json", "\15"), "a Keras model", "convert", TN_E_UNSUPPORTED),
    SAMPLE("\x89HDF\r\n\x1a\n\0\0\0\0", "an HDF5 file", "convert", TN_E_UNSUPPORTED),
    SAMPLE("\x08\x07\x12\x07pytorch\x1a\x05"
           "2.0.0:\xff",
           "an ONNX model", "convert", TN_E_UNSUPPORTED),
    SAMPLE("\x80\4\x95\x10\0\0\0\0\0\0\0}", "a Python pickle", "convert", TN_E_UNSUPPORTED),
    SAMPLE("\x40\0\0\0\0\0\0\0{\"w\":{\"dtype\":\"F32\"}}", "a safetensors file", "convert",
           TN_E_UNSUPPORTED),
    SAMPLE("GGUF\3\0\0\0", "a GGUF model", "convert", TN_E_UNSUPPORTED),
    SAMPLE("\x89PNG\r\n\x1a\n\0\0\0\15IHDR", "a PNG image", "", TN_E_FORMAT),
    SAMPLE("\xff\xfe<\0h\0", "UTF-16 text", "UTF-8", TN_E_FORMAT),
};

static tn_status params_load(const char *path)
{
    tn_params *p = NULL;
    const tn_status st = tn_params_load(f.ctx, path, NULL, &p);

    tn_params_destroy(p);
    return st;
}

static tn_status symbol_load(const char *path)
{
    tn_symbol *s = NULL;
    const tn_status st = tn_symbol_load(f.ctx, path, &s);

    tn_symbol_release(s);
    return st;
}

static tn_status array_load(tn_status (*load)(tn_ctx *, const char *, tn_array **), const char *path)
{
    tn_array *a = NULL;
    const tn_status st = load(f.ctx, path, &a);

    tn_array_release(a);
    return st;
}

static tn_status idx_load(const char *path)
{
    return array_load(tn_idx_load, path);
}

static tn_status npy_load(const char *path)
{
    return array_load(tn_npy_load, path);
}

static tn_status csv_load(const char *path)
{
    return array_load(tn_csv_load, path);
}

static const struct {
    const char *name;
    tn_status (*load)(const char *path);
    bool inflates; /* reads .gz: "gzip data" is damaged for it, and empty has its own text */
} readers[] = {{"a .params file", params_load, false},
               {"a -symbol.json", symbol_load, false},
               {"an IDX file", idx_load, true},
               {"a .npy file", npy_load, false},
               {"a CSV file", csv_load, true}};
#define READERS (sizeof readers / sizeof *readers)

static void expect(size_t reader, const char *path, const sample *s)
{
    const tn_status st = readers[reader].load(path);
    const char *text = tn_error_text();

    if (st != s->status || !strstr(text, s->what) || !strstr(text, s->advice) ||
        strncmp(text, path, strlen(path)) || !strstr(text, readers[reader].name))
        fail_msg("%s for %s: status %d: %s", s->what, readers[reader].name, st, text);
}

static void every_kind_for_every_reader(void **state)
{
    (void)state;
    for (size_t r = 0; r < READERS; r++)
        for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
            const sample *s = &samples[i];

            if (readers[r].inflates && strstr(s->what, "gzip"))
                continue;
            if (!s->count && readers[r].load == csv_load)
                continue; /* "holds no numbers" */
            expect(r, scratch_write("x.params", s->bytes, s->count), s);
        }
}

/* tar has its magic at byte 257, behind the name of the first file. */
static void archives(void **state)
{
    const sample tar = {.what = "a tar archive", .advice = "unpack", .status = TN_E_FORMAT};
    char block[1024] = "model-0000.params";

    (void)state;
    memcpy(block + 257, "ustar", 5);
    for (size_t r = 0; r < READERS; r++)
        if (readers[r].load != csv_load)
            expect(r, scratch_write("x.params", block, sizeof block), &tar);
}

/* The three files of a model and a data set in each other's place. */
static void exchanged(void **state)
{
    static const char idx[] = "\0\0\x08\1\0\0\0\4abcd", npy[] = "\x93NUMPY\1\0v\0{}";
    const sample params = {.what = "is a .params file, not", .advice = "exchanged?", .status = TN_E_FORMAT};
    const sample symbol = {.what = "is a -symbol.json, not", .advice = "exchanged?", .status = TN_E_FORMAT};
    const sample data = {.what = "is an IDX file, not", .advice = "exchanged?", .status = TN_E_FORMAT};
    const sample array = {.what = "is a .npy file, not", .advice = "exchanged?", .status = TN_E_UNSUPPORTED};
    tn_params *p = NULL;

    (void)state;
    assert_ok(tn_params_create(&p));
    assert_ok(tn_params_add(p, "w", f.a));
    assert_ok(tn_params_save(p, scratch_path("real.params")));
    tn_params_destroy(p);
    expect(1, scratch_path("real.params"), &params);
    expect(2, scratch_path("real.params"), &params);
    expect(0, scratch_write("s.json", SYMBOL_TEXT, sizeof SYMBOL_TEXT - 1), &symbol);
    expect(2, scratch_path("s.json"), &symbol);
    expect(0, scratch_write("i.idx", idx, sizeof idx - 1), &data);
    expect(1, scratch_path("i.idx"), &data);
    expect(0, scratch_write("a.npy", npy, sizeof npy - 1), &array);
    expect(2, scratch_path("a.npy"), &array);
    assert_ok(readers[0].load(scratch_path("real.params"))); /* each in its own place */
    assert_ok(readers[1].load(scratch_path("s.json")));
    assert_ok(readers[2].load(scratch_path("i.idx")));
}

/* What a .gz inflates to is looked at, not the gzip head. */
static void inside_gzip(void **state)
{
    const sample page = {.what = "an HTML page", .advice = "fetch", .status = TN_E_FORMAT};
    gzFile out = gzopen(scratch_path("page.gz"), "wb");

    (void)state;
    assert_non_null(out);
    assert_true(gzputs(out, "<!doctype html>\n<title>x</title>") > 0);
    assert_int_equal(gzclose(out), Z_OK);
    expect(2, scratch_path("page.gz"), &page);
    expect(4, scratch_path("page.gz"), &page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_for_every_reader),
        cmocka_unit_test(archives),
        cmocka_unit_test(exchanged),
        cmocka_unit_test(inside_gzip),
    };

    return cmocka_run_group_tests(tests, fixture_open, fixture_close);
}
