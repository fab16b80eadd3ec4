/*
 * A plugin named by its file: the checks of a scan, and who yields to whom.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugin/kit.h"

static void refused(fixture *f, const char *path, tn_status status, uint32_t code)
{
    size_t count = tni_registry_count(f->registry);
    tni_plugin *p = NULL;

    assert_int_equal(tni_registry_open(f->registry, path, &p), status);
    if (tni_refusal_code() != code)
        fail_msg("%s: L%02u rather than L%02u: %s", path, tni_refusal_code(), code, tni_error_message());
    assert_null(p);
    assert_int_equal(tni_registry_count(f->registry), count);
}

static void opens(void **state)
{
    const char *empty = folder_new("none"), *folder = folder_new("here");
    tni_plugin *p = NULL, *again = NULL;
    fixture f;

    (void)state;
    copy(plain, in(folder, "acme.so"));
    f = open_with(empty, NULL, NULL);
    assert_int_equal(f.status, TN_OK);
    assert_int_equal(tni_registry_open(f.registry, in(folder, "acme.so"), &p), TN_OK);
    assert_int_equal(p->state, TNI_PLUGIN_READY);
    assert_int_equal(tni_registry_open(f.registry, in(folder, "../here/acme.so"), &again), TN_OK);
    assert_ptr_equal(again, p); /* the same file */
    assert_int_equal(tni_plugin_load(f.registry, p), TN_OK);
    assert_int_equal(tni_registry_open(f.registry, in(folder, "acme.so"), &again), TN_OK);
    assert_ptr_equal(again, p);
    assert_int_equal(tni_registry_count(f.registry), 1);
    copy(plain, in(folder, "other.so"));
    refused(&f, in(folder, "other.so"), TN_E_KEY, 15); /* one of its name is loaded */
    assert_int_equal(p->state, TNI_PLUGIN_LOADED);
    close_all(&f);
}

static void yields(void **state)
{
    const char *found = folder_new("found"), *named = folder_new("named");
    tni_plugin *p = NULL, *old;
    fixture f;

    (void)state;
    copy(plain, in(found, "acme.so"));
    copy(plain, in(named, "mine.so"));
    f = open_with(found, NULL, NULL);
    old = tni_registry_find(f.registry, "acme");
    assert_int_equal(tni_registry_open(f.registry, in(named, "mine.so"), &p), TN_OK);
    assert_ptr_not_equal(p, old);
    assert_ptr_equal(tni_registry_find(f.registry, "acme"), p);
    assert_int_equal(old->state, TNI_PLUGIN_REFUSED);
    assert_int_equal(old->code, 15);
    assert_non_null(strstr(old->reason, "named/mine.so was opened in its place"));
    assert_ptr_equal(tni_registry_at(f.registry, 1), old); /* refused ones last */
    assert_int_equal(tni_registry_load_providers(f.registry, "pool", "p1"), TN_OK);
    assert_int_equal(p->state, TNI_PLUGIN_LOADED);
    close_all(&f);
    variant(in(named, "bad.so"), "acme", "-DFAIL=1");
    f = open_with(found, NULL, NULL);
    assert_int_equal(tni_registry_open(f.registry, in(named, "bad.so"), &p), TN_OK);
    assert_int_not_equal(tni_plugin_load(f.registry, p), TN_OK);
    refused(&f, in(named, "bad.so"), TN_E_DEVICE, 14); /* it failed and stays so */
    assert_int_equal(tni_registry_open(f.registry, in(named, "mine.so"), &p), TN_OK);
    assert_int_equal(tni_plugin_load(f.registry, p), TN_OK);
    close_all(&f);
}

typedef struct opening {
    fixture f;
    char path[SCRATCH_PATH_BYTES];
    tn_status status;
} opening;

static void open_named(void *arg)
{
    opening *o = arg;
    tni_plugin *p = NULL;

    o->status = tni_registry_open(o->f.registry, o->path, &p);
}

/* Another thread looks for providers meanwhile: it finds the one that was there, or the one in its place. */
static void yields_beside_a_load(void **state)
{
    static opening o;
    const char *found = scratch_path("found");

    (void)state;
    snprintf(o.path, sizeof o.path, "%s", in(scratch_path("named"), "mine.so"));
    for (int round = 0; round < 50; round++) {
        const tn_capability *table;
        tni_thread *thread;

        o.f = open_with(found, NULL, NULL);
        assert_int_equal(tni_thread_create("open", open_named, &o, &thread), TN_OK);
        assert_int_equal(tni_registry_load_providers(o.f.registry, "pool", "p1"), TN_OK);
        assert_true(tni_registry_capability(o.f.registry, TN_KIND_POOL, 0, &table, NULL));
        tni_thread_join(thread);
        assert_true(o.status == TN_OK || o.status == TN_E_KEY); /* TN_E_KEY: the other one was loaded first */
        close_all(&o.f);
    }
}

static void refuses(void **state)
{
    const char *folder = folder_new("bad");
    fixture f = open_with(folder_new("none2"), NULL, NULL);
    char longer[TN_PATH_BYTES_MAX + 100];

    (void)state;
    copy(plain, in(folder, "acme.so"));
    refused(&f, "acme.so", TN_E_ARG, 1);
    refused(&f, "", TN_E_ARG, 1);
    refused(&f, "/", TN_E_ARG, 1);
    refused(&f, in(folder, ""), TN_E_ARG, 1);
    refused(&f, folder, TN_E_ARG, 1);
    refused(&f, "/dev/null", TN_E_ARG, 1);
    refused(&f, in(folder, "absent.so"), TN_E_IO, 1);
    refused(&f, in(folder, "absent/x.so"), TN_E_IO, 1);
    memset(longer, 'x', sizeof longer);
    longer[0] = '/';
    longer[sizeof longer - 1] = '\0';
    refused(&f, longer, TN_E_ARG, 1);
    longer[sizeof longer - 5] = '/';
    refused(&f, longer, TN_E_ARG, 1);
    assert_int_equal(symlink(in(folder, "acme.so"), in(folder, "link.so")), 0);
    refused(&f, in(folder, "link.so"), TN_E_ARG, 1);
    assert_int_equal(chmod(in(folder, "acme.so"), 0666), 0);
    refused(&f, in(folder, "acme.so"), TN_E_STATE, 2);
    assert_int_equal(chmod(in(folder, "acme.so"), 0644), 0);
    assert_int_equal(chmod(folder, 0777), 0);
    refused(&f, in(folder, "acme.so"), TN_E_STATE, 2);
    assert_int_equal(chmod(folder, 0755), 0);
    patched(in(folder, "isa.so"), offsetof(tn_note_body, isa), "x86-64-v9", 10);
    refused(&f, in(folder, "isa.so"), TN_E_UNSUPPORTED, 8);
    close_all(&f);
    f = open_with(scratch_path("none2"), "plugins.load=cpu", NULL);
    refused(&f, in(folder, "acme.so"), TN_E_STATE, 0);
    assert_non_null(strstr(tni_error_message(), "plugin acme is not in plugins.load"));
    close_all(&f);
}

static tn_status open_body(void *arg)
{
    tni_options *options = NULL;
    tni_registry *r = NULL;
    tni_plugin *p;
    tn_status st;

    if ((st = tni_options_create(NULL, &options)) || (st = tni_registry_create(options, NULL, &r)) ||
        (st = tni_registry_open(r, arg, &p)))
        goto cleanup;

cleanup:
    tni_registry_destroy(r);
    tni_options_destroy(options);
    return st;
}

static void without_memory(void **state)
{
    char path[SCRATCH_PATH_BYTES];

    (void)state;
    snprintf(path, sizeof path, "%s", in(scratch_path("here"), "acme.so"));
    assert_true(scratch_each_allocation_fails(open_body, path) > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens),   cmocka_unit_test(yields),         cmocka_unit_test(yields_beside_a_load),
        cmocka_unit_test(refuses), cmocka_unit_test(without_memory),
    };

    return cmocka_run_group_tests(tests, plugins_build, NULL);
}
