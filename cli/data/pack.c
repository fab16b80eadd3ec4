/* tenon data pack: images of a folder as a .rec of MXNet's, what im2rec does. */
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "tenon/nn_data.h"

/* The number of an option, 0 where it is not given. */
static bool number_read(tn_app *app, const cli_args *args, int option, long most, int32_t *out)
{
    const char *text = args->value[option];
    char *end = NULL, *why;
    long n;

    if (!text)
        return true;
    n = strtol(text, &end, 10);
    if (*text && !*end && n >= 1 && n <= most) {
        *out = (int32_t)n;
        return true;
    }
    why = cli_format("--%s %s: a whole number from 1 to %ld is needed", cli_options[option].name, text, most);
    (void)tn_app_fail(app, why ? TN_E_ARG : TN_E_NOMEM, why ? why : "out of memory");
    free(why);
    return false;
}

static void packed_print(const cli_args *args, const char *path, const tn_packed *p)
{
    if (args->value[OPT_JSON]) {
        cli_json_line(json_pack("{s:o, s:I, s:I}", "file", cli_json_text(path), "images",
                                (json_int_t)p->images, "broken", (json_int_t)p->broken));
        return;
    }
    (void)printf("images %lld\nbroken %lld\nfile %s\n", (long long)p->images, (long long)p->broken, path);
    if (p->broken)
        (void)printf("first broken %s\n", p->text);
}

int cmd_data_pack(const cli_args *args)
{
    tn_app *app = cli_app_open(args, NULL);
    const char *color = args->value[OPT_CHANNELS];
    int32_t resize = 0, quality = 0, threads = 0, channels = 0;
    tn_packed packed = {0};
    const char *path = args->words[1];
    const size_t there = cli_folders_there(path);

    if (tn_app_ok(app) && number_read(app, args, OPT_RESIZE, 65500, &resize) &&
        number_read(app, args, OPT_QUALITY, 100, &quality) &&
        number_read(app, args, OPT_THREADS, 256, &threads) &&
        (!color || number_read(app, args, OPT_CHANNELS, 4, &channels)) &&
        (cli_folders_above(path) || cli_failed_at(app, path)) &&
        tn_pack_images(app, args->words[0], path, &packed, .list = args->value[OPT_LABELS],
                       .part_of = args->value[OPT_PART], .shuffle = args->value[OPT_SHUFFLE] != NULL,
                       .resize = resize, .center_crop = args->value[OPT_CENTER_CROP] != NULL,
                       .encoding = args->value[OPT_ENCODING], .quality = quality, .channels = channels,
                       .threads = threads, .strict = args->value[OPT_STRICT] != NULL))
        packed_print(args, path, &packed);
    cli_folders_back(path, there);
    return tn_app_close(app);
}
