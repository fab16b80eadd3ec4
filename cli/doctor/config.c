/*
 * Checks of what the user wrote: configuration files, variables, locale, home.
 */
#include "doctor/doctor.h"

#include <errno.h>
#include <glob.h>
#include <gnu/libc-version.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STATUSES 15u /* TN numbers that say no more than a status */
#define CORRECT "correct it; until then every command stops here"

void doctor_core(doctor *d)
{
    uint32_t major = 0, minor = 0, draft = 0;

    (void)tn_abi(&major, &minor, &draft);
    doctor_say(d, DOCTOR_OK, "", "tenon %s, plugin ABI %u.%u draft %u, glibc %s", tn_version(), major, minor,
               draft, gnu_get_libc_version());
}

/* ---- configuration ---- */

static const char *advice_of(uint32_t number, const char *otherwise)
{
    tn_error_info row = {.struct_size = TN_SIZE(tn_error_info)};

    return number <= STATUSES || tn_error_find(number, &row) || !*row.advice ? otherwise : row.advice;
}

/* A file that may say where plugins lie is as good as a program. */
static void file_check(doctor *d, const char *path)
{
    struct stat info;
    char advice[600];

    if (stat(path, &info) || !S_ISREG(info.st_mode))
        return;
    if (info.st_mode & (S_IWGRP | S_IWOTH)) {
        (void)snprintf(advice, sizeof advice, "chmod go-w %s", path);
        doctor_say(d, DOCTOR_BAD, advice, "%s may be written by %s (mode %04o), and says which code runs",
                   path, info.st_mode & S_IWOTH ? "everybody" : "its group", (unsigned)info.st_mode & 07777u);
    } else if (info.st_uid && info.st_uid != geteuid()) {
        (void)snprintf(advice, sizeof advice, "chown it to yourself or root, or look at what it says");
        doctor_say(d, DOCTOR_BAD, advice, "%s belongs to user %u, and says which code runs", path,
                   (unsigned)info.st_uid);
    }
}

static void files_check(doctor *d)
{
    const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    char path[512];
    glob_t parts = {0};

    file_check(d, "/etc/tenon/tenon.ini");
    if (!glob("/etc/tenon/tenon.d/*.ini", 0, NULL, &parts))
        for (size_t i = 0; i < parts.gl_pathc; i++)
            file_check(d, parts.gl_pathv[i]);
    globfree(&parts);
    if (xdg && *xdg == '/')
        (void)snprintf(path, sizeof path, "%s/tenon/tenon.ini", xdg);
    else
        (void)snprintf(path, sizeof path, "%s/.config/tenon/tenon.ini", home ? home : "");
    file_check(d, path);
    if (d->args->value[OPT_CONFIG])
        file_check(d, d->args->value[OPT_CONFIG]);
}

void doctor_configuration(doctor *d)
{
    const char *error = d->ctx_error ? d->ctx_error : d->start_error ? d->start_error : "";
    size_t before = d->count, set = 0, count = 0, k;
    bool said = false;
    json_t *problem;

    json_array_foreach(d->problems, k, problem)
    {
        const char *text = json_string_value(json_object_get(problem, "text"));
        const int level = (int)json_integer_value(json_object_get(problem, "level"));
        const uint32_t number = (uint32_t)json_integer_value(json_object_get(problem, "number"));

        if (level != TN_LOG_ERROR && !(level == TN_LOG_WARNING && number > STATUSES))
            continue;
        said |= strstr(text, error) != NULL || strstr(error, text) != NULL;
        doctor_say(d, level == TN_LOG_ERROR ? DOCTOR_BAD : DOCTOR_WARNING, advice_of(number, CORRECT), "%s",
                   text);
    }
    if (*error && !said)
        doctor_say(d, DOCTOR_BAD, advice_of(d->start_number, CORRECT), "%s%s",
                   d->ctx_error ? "" : "it does not start: ", error);
    files_check(d);
    if (d->count > before || tn_ctx_option_count(d->ctx, &count))
        return;
    for (size_t i = 0; i < count; i++) {
        tn_option_info o = {.struct_size = TN_SIZE(tn_option_info)};

        set += !tn_ctx_option_at(d->ctx, i, &o) && o.origin != TN_ORIGIN_DEFAULT;
    }
    doctor_say(d, DOCTOR_OK, "", "%zu of %zu options differ from their defaults", set, count);
    if (!strcmp(doctor_option(d, "plugins.trust"), "off"))
        doctor_say(d, DOCTOR_WARNING, "take plugins.trust = off out of the configuration",
                   "plugins.trust is off: code of any owner is loaded");
}

/* ---- variables ---- */

/* Variables of others that change what runs here. */
static const struct {
    const char *name;
    doctor_level level;
    const char *why;
} foreign[] = {
    {"OPENBLAS_CORETYPE", DOCTOR_BAD, "OpenBLAS takes kernels made for that processor, right or not"},
    {"OPENBLAS_L2_SIZE", DOCTOR_BAD, "OpenBLAS divides its work for a cache of that size, right or not"},
    {"OPENBLAS_VERBOSE", DOCTOR_WARNING, "OpenBLAS prints into the results"},
    {"LD_PRELOAD", DOCTOR_WARNING, "its code runs in every process, before ours"},
    {"LD_AUDIT", DOCTOR_WARNING, "its code runs in every process, before ours"},
    {"LD_DEBUG", DOCTOR_WARNING, "the dynamic linker prints into the results"},
    {"GLIBC_TUNABLES", DOCTOR_WARNING, "glibc's memory and its choice of kernels behave otherwise"},
    {"MALLOC_PERTURB_", DOCTOR_WARNING, "memory is filled on each allocation: slow"},
    {"MALLOC_CHECK_", DOCTOR_WARNING, "memory is checked on each allocation: slow"},
    {"GOMP_CPU_AFFINITY", DOCTOR_WARNING, "OpenMP's threads are bound to processors, those of others not"},
    {"OMP_DYNAMIC", DOCTOR_WARNING, "the number of threads may change while a net runs"},
};

static bool was_said(const doctor *d, const char *text)
{
    for (size_t i = 0; i < d->count; i++)
        if (!strcmp(d->findings[i].text, text))
            return true;
    return false;
}

void doctor_variables(doctor *d)
{
    size_t before = d->count, i;
    json_t *text, *problem;
    char advice[128];

    json_array_foreach(d->warnings, i, text)
        doctor_say(d, DOCTOR_BAD, "correct it, or unset it", "%s", json_string_value(text));
    json_array_foreach(d->problems, i, problem)
    {
        text = json_object_get(problem, "text");
        if (json_integer_value(json_object_get(problem, "level")) == TN_LOG_WARNING &&
            json_integer_value(json_object_get(problem, "number")) <= STATUSES &&
            !was_said(d, json_string_value(text)))
            doctor_say(d, DOCTOR_BAD, "correct it, or unset it", "%s", json_string_value(text));
    }
    for (size_t k = 0; k < sizeof foreign / sizeof *foreign; k++) {
        const char *value = getenv(foreign[k].name);

        if (!value || !*value)
            continue;
        (void)snprintf(advice, sizeof advice, "unset %s", foreign[k].name);
        doctor_say(d, foreign[k].level, advice, "%s=%.80s: %s", foreign[k].name, value, foreign[k].why);
    }
    if (d->count == before)
        doctor_say(d, DOCTOR_OK, "", "none that is unknown or does harm");
}

/* ---- locale and home ---- */

void doctor_locale(doctor *d)
{
    static const char *const variables[] = {"LC_ALL", "LC_CTYPE",
                                            "LANG"}; /* the first one that is set counts */
    const char *name = NULL;

    for (size_t i = 0; (!name || !*name) && i < sizeof variables / sizeof *variables; i++)
        name = getenv(variables[i]);
    if (!setlocale(LC_CTYPE, "")) { /* as main() has done; newlocale() leaks a path where LOCPATH is set */
        doctor_say(d, DOCTOR_WARNING, "export LC_ALL=C.UTF-8, or install the locale",
                   "the locale %.60s is not installed", name && *name ? name : "of the LC_ variables");
        return;
    }
    if (strcmp(nl_langinfo(CODESET), "UTF-8"))
        doctor_say(d, DOCTOR_OK, "", "texts in %s: bars and curves are drawn in ASCII", nl_langinfo(CODESET));
    else
        doctor_say(d, DOCTOR_OK, "", "UTF-8");
}

void doctor_home(doctor *d)
{
    const char *home = getenv("HOME"), *xdg = getenv("XDG_CONFIG_HOME");
    struct stat info;

    if (xdg && *xdg && *xdg != '/')
        doctor_say(d, DOCTOR_WARNING, "make it absolute", "XDG_CONFIG_HOME=%.100s is not absolute: not read",
                   xdg);
    else if (xdg && *xdg)
        doctor_say(d, DOCTOR_OK, "", "the user's configuration is %.200s/tenon/tenon.ini", xdg);
    else if (!home || !*home)
        doctor_say(d, DOCTOR_WARNING, "export HOME, or XDG_CONFIG_HOME",
                   "HOME is unset: no configuration of the user is read");
    else if (stat(home, &info) || !S_ISDIR(info.st_mode))
        doctor_say(d, DOCTOR_WARNING, "export HOME as a folder that is there", "HOME=%.200s is no folder",
                   home);
    else
        doctor_say(d, DOCTOR_OK, "", "the user's configuration is %.200s/.config/tenon/tenon.ini", home);
}
