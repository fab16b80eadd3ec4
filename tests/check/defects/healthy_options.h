/*
 * A healthy plugin with a pool and options of its own, read in init. A file that includes it says by DEFECT
 * what is wrong with it, and by NAME what it is called.
 */
#ifndef TN_DEFECTS_HEALTHY_OPTIONS_H
#define TN_DEFECTS_HEALTHY_OPTIONS_H

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "healthy.h"

enum {
    HEALTHY,
    CHOICE_WAITS,  /* init takes long with one of the choices */
    REFUSAL_LEAKS, /* what init has when it says no is lost */
    LONG_TEXT,     /* a text of any length is copied into a short one, behind which nothing is */
};

#define ROW(name_, type_, choices_, default_, min_, max_)                                                    \
    static const tn_option_row name_ = {                                                                     \
        .struct_size = (uint32_t)TN_END(tn_option_row, max),                                                 \
        .key = #name_,                                                                                       \
        .type = type_,                                                                                       \
        .choices = choices_,                                                                                 \
        .default_text = default_,                                                                            \
        .help = "an option",                                                                                 \
        .since = "1.0",                                                                                      \
        .min = min_,                                                                                         \
        .max = max_,                                                                                         \
    }

ROW(level, "int", NULL, "3", 0, 9);
ROW(mode, "choice", "fast|slow", "fast", 1, 0);
ROW(label, "text", NULL, "", 1, 0);
static const tn_option_row *const rows[] = {&level, &mode, &label, NULL};
static const tn_option_table option_table = {
    .head = TN_CAPABILITY(tn_option_table, rows, TN_KIND_OPTIONS, NAME), .rows = rows};
static const tn_capability *const tables[] = {&pool_ops.head, &option_table.head, NULL};

typedef struct settings {
    int64_t level;
    char label[32];
} settings;

/* The last bytes before a page that nobody may touch: what becomes of writing on is no matter of chance. */
static char *short_place(uint64_t bytes)
{
    static char *pages;
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

    if (!pages) {
        pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pages == MAP_FAILED || mprotect(pages + page, page, PROT_NONE))
            abort();
    }
    return pages + page - bytes;
}

static tn_status init(const tn_host *host, void **plugin, tn_err *err)
{
    const tn_options_service *s = tn_host_service(host, TN_SERVICE_OPTIONS);
    const char *mode_text = s ? s->text(host, "mode") : NULL, *text = s ? s->text(host, "label") : NULL;
    settings *made = calloc(1, sizeof *made);

    if (!made)
        return tn_fail(err, TN_E_NOMEM, "no memory for the settings");
    if (s && s->integer(host, "level", 3, &made->level)) {
        free(made);
        return tn_fail(err, TN_E_ARG, "level must be a number");
    }
    if (made->level == 9) {
        if (DEFECT != REFUSAL_LEAKS)
            free(made);
        return tn_fail(err, TN_E_ARG, "level 9 is for later releases");
    }
    if (DEFECT == CHOICE_WAITS && mode_text && strcmp(mode_text, "slow") == 0)
        (void)usleep(300000);
    if (text && DEFECT == LONG_TEXT)
        memcpy(short_place(sizeof made->label), text, strlen(text) + 1);
    else if (text)
        memcpy(made->label, text, strnlen(text, sizeof made->label - 1));
    *plugin = made;
    return TN_OK;
}

static void fini(void *plugin)
{
    free(plugin);
}

TN_PLUGIN_DEFINE(NAME, "1.0.0", "Acme", "Apache-2.0", "a planted defect", "", "pool:first-fit options", init,
                 fini, NULL, tables);

#endif
