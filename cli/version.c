/*
 * tenon version: what a report about a fault should begin with.
 */
#include <gnu/libc-version.h>

#include "cli.h"
#include "tenon/plugin/plugin.h"

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

int cmd_version(const cli_args *args)
{
    char abi[48];

    (void)snprintf(abi, sizeof abi, "%d.%d draft %u %s", TN_ABI_MAJOR, TN_ABI_MINOR, TN_ABI_DRAFT,
                   TN_ABI_TAG);
    if (args->value[OPT_JSON]) {
        cli_json_line(json_pack("{s:s, s:s, s:{s:i, s:i, s:i, s:s}, s:s, s:{s:s, s:s}}", "version",
                                tn_version(), "build_id", tn_build_id(), "abi", "major", TN_ABI_MAJOR,
                                "minor", TN_ABI_MINOR, "draft", (int)TN_ABI_DRAFT, "tag", TN_ABI_TAG,
                                "compiler", COMPILER, "libraries", "glibc", gnu_get_libc_version(), "jansson",
                                jansson_version_str()));
        return 0;
    }
    (void)printf(
        "tenon      %s\nbuild id   %s\nplugin ABI %s\ncompiler   %s\nlibraries  glibc %s, jansson %s\n",
        tn_version(), *tn_build_id() ? tn_build_id() : "none", abi, COMPILER, gnu_get_libc_version(),
        jansson_version_str());
    return 0;
}
