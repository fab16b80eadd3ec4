/*
 * Group abi: hosts of other versions. On an old one every table ends at the minor that the plugin needs, with
 * a page behind it that may not be touched; on a future one every table is longer and its tail is poison, and
 * tables of unknown services are there. What a plugin does there must be what it does today. Pools, devices
 * and kernels have tests of their own on these hosts; here is the plugin as a whole.
 */
#include <string.h>

#include "internal.h"

static void life(chk_env *env, chk_host_kind kind, const char *name)
{
    chk_plugin p;
    tn_err err;

    for (int i = 0; i < 2; i++) {
        tn_status st = chk_plugin_try(env, kind, &p, &err);

        if (st)
            chk_fail(env, i ? "R9" : NULL, "init on %s host fails with %s: %s", name, tn_status_name(st),
                     err.message);
        chk_fail_if(env, !chk_host_intact(p.host), NULL, "init writes behind the end of a table of the host");
        (void)chk_plugin_close(env, &p);
        chk_fail_if(env, !chk_host_intact(p.host), NULL, "fini writes behind the end of a table of the host");
        chk_count(env);
    }
}

void chk_abi_old_host(chk_env *env)
{
    chk_fault_rules(env, "R3", "R3", "init");
    life(env, CHK_HOST_OLD, "an old");
}

void chk_abi_future_host(chk_env *env)
{
    chk_fault_rules(env, "R3", "R3", "init");
    life(env, CHK_HOST_FUTURE, "a future");
}

/* Descriptors are constant: nobody writes to them, and they say the same after init and fini. */
void chk_abi_constant(chk_env *env)
{
    const tn_plugin *d = chk_descriptor(env);
    tn_plugin before = *d;
    chk_plugin p;

    (void)chk_plugin_open(env, CHK_HOST_EXACT, &p);
    chk_count(env);
    chk_fail_if(env, memcmp(&before, d, sizeof before) != 0, NULL, "init changes the descriptor");
    (void)chk_plugin_close(env, &p);
    chk_fail_if(env, memcmp(&before, d, sizeof before) != 0, NULL, "fini changes the descriptor");
}

/* The core asks `fork` around every fork, in each phase, on any thread. */
void chk_abi_fork(chk_env *env)
{
    static const uint32_t phases[] = {TN_FORK_PREPARE, TN_FORK_PARENT, TN_FORK_PREPARE, TN_FORK_CHILD};
    const tn_plugin *d = chk_descriptor(env);
    chk_plugin p;

    if (!TN_HAS(d, tn_plugin, fork))
        chk_skip(env, "the plugin has no `fork`");
    (void)chk_plugin_open(env, CHK_HOST_EXACT, &p);
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) {
        tn_status st = d->fork(p.self, phases[i]);

        chk_fail_if(env, st, NULL, "fork in phase %u gives %s", (unsigned)phases[i], tn_status_name(st));
        chk_count(env);
    }
    (void)chk_plugin_close(env, &p);
}
