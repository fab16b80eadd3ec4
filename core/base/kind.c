/*
 * Files of another kind than their reader expects: what people really pass for a model or a data set, told by
 * the first bytes. One table, and one function for each kind that a magic number alone does not tell.
 */
#include <string.h>
#include <strings.h>

#include "base/base.h"

#define ADVICE_SWAPPED "were the names of two files exchanged?"
#define ADVICE_UNPACK "unpack it first"
#define ADVICE_CONVERT                                                                                       \
    "convert it in the library that wrote it, to MXNet's -symbol.json and .params or to arrays"
#define ADVICE_DOWNLOAD "the download failed, or the link shows a page about the file: fetch the file itself"

typedef struct head {
    const unsigned char *bytes;
    size_t count;
} head;

static bool has(const head *h, size_t at, const char *bytes, size_t count)
{
    return at + count <= h->count && !memcmp(h->bytes + at, bytes, count);
}

/* Text behind a byte order mark and blanks, in any case of letters. */
static bool begins(const head *h, const char *text)
{
    const size_t length = strlen(text);
    size_t at = has(h, 0, "\xef\xbb\xbf", 3) ? 3 : 0;

    while (at < h->count && strchr(" \t\r\n", h->bytes[at]) && h->bytes[at])
        at++;
    return at + length <= h->count && !strncasecmp((const char *)h->bytes + at, text, length);
}

static bool holds(const head *h, const char *text)
{
    const size_t length = strlen(text);

    for (size_t at = 0; at + length <= h->count; at++)
        if (!memcmp(h->bytes + at, text, length))
            return true;
    return false;
}

/* ---- kinds that a magic number does not tell ----------------------------------------------------- */

static bool is_empty(const head *h)
{
    return !h->count;
}

static bool is_page(const head *h)
{
    static const char *const tags[] = {"<!doctype html", "<html", "<head", "<body", "<script"};

    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        if (begins(h, tags[i]))
            return true;
    return false;
}

static bool is_xml(const head *h)
{
    return begins(h, "<?xml") || begins(h, "<error>");
}

static bool is_refusal(const head *h)
{
    static const char *const texts[] = {"404: not found",  "404 not found",        "not found",
                                        "entry not found", "repository not found", "access denied",
                                        "accessdenied"};

    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (begins(h, texts[i]))
            return true;
    return false;
}

static bool is_json(const head *h)
{
    return begins(h, "{") || begins(h, "[");
}

static bool is_symbol(const head *h)
{
    return begins(h, "{") && holds(h, "\"nodes\"");
}

static bool is_idx(const head *h)
{
    return h->count >= 8 && has(h, 0, "\0\0", 2) && h->bytes[2] >= 8 && h->bytes[2] <= 14 && h->bytes[3] &&
           h->bytes[3] <= TN_NDIM_MAX;
}

/* The name of a zip archive's first member ends so. */
static bool first_member(const head *h, const char *const *ends)
{
    const size_t length = h->count >= 30 ? (size_t)h->bytes[26] | (size_t)h->bytes[27] << 8 : 0;

    if (!has(h, 0, "PK\3\4", 4))
        return false;
    for (; *ends; ends++)
        if (length >= strlen(*ends) && has(h, 30 + length - strlen(*ends), *ends, strlen(*ends)))
            return true;
    return false;
}

static bool is_npz(const head *h)
{
    return first_member(h, (const char *const[]){".npy", NULL});
}

static bool is_torch(const head *h)
{
    return first_member(h, (const char *const[]){"data.pkl", "/version", "/byteorder", "/.format_version",
                                                 "constants.pkl", NULL}) ||
           has(h, 0, "\x80\2\x8a\x0al\xfc\x9c\x46\xf9\x20j\xa8P\x19", 14);
}

static bool is_keras(const head *h)
{
    return first_member(h, (const char *const[]){"metadata.json", "config.json", "model.weights.h5", NULL});
}

static bool is_zip(const head *h)
{
    return has(h, 0, "PK\3\4", 4) || has(h, 0, "PK\5\6", 4);
}

/* A protocol buffer whose first field is a version from 3 on, and the next a text or message. */
static bool is_onnx(const head *h)
{
    return h->count > 3 && h->bytes[0] == 0x08 && h->bytes[1] >= 3 && h->bytes[1] <= 32 &&
           (h->bytes[2] & 7) == 2 && h->bytes[2] >> 3 >= 2 && h->bytes[2] >> 3 <= 8;
}

static bool is_pickle(const head *h)
{
    return h->count > 2 && h->bytes[0] == 0x80 && h->bytes[1] >= 2 && h->bytes[1] <= 5;
}

static bool is_safetensors(const head *h)
{
    return h->count > 9 && h->bytes[8] == '{' && has(h, 4, "\0\0\0\0", 4) &&
           (h->bytes[9] == '"' || h->bytes[9] == '}' || h->bytes[9] == ' ');
}

/* ---- the table ----------------------------------------------------------------------------------- */

typedef struct kind {
    const char *what;
    bool (*is)(const head *h); /* NULL: `magic` at byte `at` tells */
    const char *magic;
    uint16_t at, count;
    tn_status status;
    const char *advice;
} kind;

#define MAGIC(at, text) NULL, text, at, sizeof text - 1
#define LOOK(function) function, NULL, 0, 0

/* The first row that fits counts. */
static const kind kinds[] = {
    {"empty", LOOK(is_empty), TN_E_FORMAT, "fetch or write it again"},
    {"a git-lfs pointer", MAGIC(0, "version https://git-lfs.github.com/spec/"), TN_E_FORMAT,
     "fetch what it stands for with `git lfs pull`"},
    {"a git-annex pointer", MAGIC(0, "/annex/objects/"), TN_E_FORMAT,
     "fetch what it stands for with `git annex get`"},
    {"an HTML page", LOOK(is_page), TN_E_FORMAT, ADVICE_DOWNLOAD},
    {"an XML document", LOOK(is_xml), TN_E_FORMAT, ADVICE_DOWNLOAD},
    {"a server's refusal as text", LOOK(is_refusal), TN_E_FORMAT, ADVICE_DOWNLOAD},
    {"a safetensors file", LOOK(is_safetensors), TN_E_UNSUPPORTED, ADVICE_CONVERT},
    {TNI_KIND_PARAMS, MAGIC(0, "\x12\1\0\0\0\0\0\0"), TN_E_FORMAT, ADVICE_SWAPPED},
    {TNI_KIND_SYMBOL, LOOK(is_symbol), TN_E_FORMAT, ADVICE_SWAPPED},
    {"a JSON file", LOOK(is_json), TN_E_FORMAT, ADVICE_SWAPPED},
    {TNI_KIND_IDX, LOOK(is_idx), TN_E_FORMAT, ADVICE_SWAPPED},
    {TNI_KIND_CHECKPOINT, MAGIC(0, "TNCKPT"), TN_E_FORMAT,
     "a run's model is its model-0000.params and model-symbol.json"},
    {TNI_KIND_NPY, MAGIC(0, "\x93NUMPY"), TN_E_UNSUPPORTED, ADVICE_SWAPPED},
    {"a .npz of NumPy (a zip archive)", LOOK(is_npz), TN_E_UNSUPPORTED,
     "save parameters as .params, or name it .npz to read it as data"},
    {"a PyTorch file", LOOK(is_torch), TN_E_UNSUPPORTED, ADVICE_CONVERT},
    {"a Keras model", LOOK(is_keras), TN_E_UNSUPPORTED, ADVICE_CONVERT},
    {"a zip archive", LOOK(is_zip), TN_E_UNSUPPORTED, ADVICE_UNPACK},
    {"gzip data", MAGIC(0, "\x1f\x8b"), TN_E_FORMAT, ADVICE_UNPACK},
    {"bzip2 data", MAGIC(0, "BZh"), TN_E_FORMAT, ADVICE_UNPACK},
    {"xz data", MAGIC(0, "\xfd\x37zXZ"), TN_E_FORMAT, ADVICE_UNPACK},
    {"zstd data", MAGIC(0, "\x28\xb5\x2f\xfd"), TN_E_FORMAT, ADVICE_UNPACK},
    {"a 7z archive", MAGIC(0, "7z\xbc\xaf\x27\x1c"), TN_E_FORMAT, ADVICE_UNPACK},
    {"a RAR archive", MAGIC(0, "Rar!\x1a"), TN_E_FORMAT, ADVICE_UNPACK},
    {"a tar archive", MAGIC(257, "ustar"), TN_E_FORMAT, ADVICE_UNPACK},
    {"an HDF5 file (Keras)", MAGIC(0, "\x89HDF\r\n\x1a\n"), TN_E_UNSUPPORTED, ADVICE_CONVERT},
    {"an ONNX model", LOOK(is_onnx), TN_E_UNSUPPORTED, ADVICE_CONVERT},
    {"a Python pickle", LOOK(is_pickle), TN_E_UNSUPPORTED, ADVICE_CONVERT},
    {"a GGUF model", MAGIC(0, "GGUF"), TN_E_UNSUPPORTED, ADVICE_CONVERT},
    {"a TensorFlow Lite model", MAGIC(4, "TFL3"), TN_E_UNSUPPORTED, ADVICE_CONVERT},
    {"a RecordIO file", MAGIC(0, "\x0a\x23\xd7\xce"), TN_E_UNSUPPORTED, "RecordIO is not read here"},
    {"a MATLAB file", MAGIC(0, "MATLAB "), TN_E_UNSUPPORTED, ADVICE_CONVERT},
    {"a PNG image", MAGIC(0, "\x89PNG\r\n"), TN_E_FORMAT, "tn_image_decode() reads it"},
    {"a JPEG image", MAGIC(0, "\xff\xd8\xff"), TN_E_FORMAT, "tn_image_decode() reads it"},
    {"a PDF document", MAGIC(0, "%PDF-"), TN_E_FORMAT, ADVICE_SWAPPED},
    {"a program or library", MAGIC(0, "\x7f\x45LF"), TN_E_FORMAT, ADVICE_SWAPPED},
    {"UTF-16 text", MAGIC(0, "\xff\xfe"), TN_E_FORMAT, "save it as UTF-8"},
};

tn_status tni_kind_check(const char *name, const char *wanted, const void *bytes, uint64_t count)
{
    const head h = {bytes, count < TNI_KIND_BYTES ? (size_t)count : TNI_KIND_BYTES};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const kind *k = &kinds[i];

        if (k->is ? !k->is(&h) : !has(&h, k->at, k->magic, k->count))
            continue;
        if (!strcmp(k->what, wanted))
            return TN_OK; /* damaged further on: the reader knows more */
        return tni_error(k->status, "%s is %s, not %s: %s", name, k->what, wanted, k->advice);
    }
    return TN_OK;
}
