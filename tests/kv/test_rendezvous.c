/* What launchers' variables say of a process: its rank, how many there are, where the first one is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "context/context.h"
#include "kv/group.h"

static const char *const variables[] = {
    "RANK",      "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",  "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
    "PMIX_RANK", "PMI_RANK",   "PMI_SIZE",    "SLURM_PROCID", "SLURM_NTASKS",         NULL};

#define LIST(...)                                                                                            \
    {                                                                                                        \
        __VA_ARGS__, NULL                                                                                    \
    }
typedef struct row {
    const char *set[12];     /* names and values */
    const char *settings[4]; /* of the context */
    int64_t rank, ranks;
    const char *root;
    const char *fault[2]; /* parts of the error; NULL: none */
} row;

static const row rows[] = {
    {.rank = -1, .ranks = -1, .root = ""},
    {.set = LIST("RANK", "1", "WORLD_SIZE", "4", "MASTER_ADDR", "node7", "MASTER_PORT", "29500"),
     .rank = 1,
     .ranks = 4,
     .root = "node7:29500"},
    {.set = LIST("RANK", "1"), .rank = -1, .ranks = -1, .root = ""}, /* anybody's */
    {.set = LIST("OMPI_COMM_WORLD_RANK", "2", "OMPI_COMM_WORLD_SIZE", "3", "PMIX_RANK", "2"),
     .rank = 2,
     .ranks = 3,
     .root = ""},
    {.set = LIST("PMI_RANK", "0", "PMI_SIZE", "2"), .rank = 0, .ranks = 2, .root = ""},
    {.set = LIST("SLURM_PROCID", "5", "SLURM_NTASKS", "8"), .rank = 5, .ranks = 8, .root = ""},
    /* a batch script of Slurm that calls mpirun */
    {.set = LIST("SLURM_PROCID", "0", "SLURM_NTASKS", "1", "OMPI_COMM_WORLD_RANK", "3",
                 "OMPI_COMM_WORLD_SIZE", "4"),
     .rank = 3,
     .ranks = 4,
     .root = ""},
    {.settings = LIST("kvstore.rank=1", "kvstore.workers=2", "kvstore.scheduler=10.0.0.1"),
     .rank = 1,
     .ranks = 2,
     .root = "10.0.0.1:9091"},
    {.set = LIST("PMIX_RANK", "1"), .settings = LIST("kvstore.workers=2"), .rank = 1, .ranks = 2, .root = ""},
    {.set = LIST("RANK", "1", "WORLD_SIZE", "2", "OMPI_COMM_WORLD_RANK", "0", "OMPI_COMM_WORLD_SIZE", "2"),
     .fault = {"RANK says 1", "OMPI_COMM_WORLD_RANK says 0"}},
    {.set = LIST("RANK", "1", "WORLD_SIZE", "2", "PMI_RANK", "1", "PMI_SIZE", "3"),
     .fault = {"WORLD_SIZE says 2", "PMI_SIZE says 3"}},
    {.set = LIST("PMI_RANK", "1", "PMI_SIZE", "2"),
     .settings = LIST("kvstore.rank=0"),
     .fault = {"kvstore.rank says 0", "PMI_RANK says 1"}},
    {.set = LIST("RANK", "1", "WORLD_SIZE", "2", "PMI_RANK", "0", "PMI_SIZE", "3"),
     .settings = LIST("kvstore.rendezvous=pmi"),
     .rank = 0,
     .ranks = 3,
     .root = ""},
    {.set = LIST("RANK", "1", "WORLD_SIZE", "2"),
     .settings = LIST("kvstore.rendezvous=none", "kvstore.workers=3"),
     .rank = -1,
     .ranks = -1,
     .root = ""},
    {.set = LIST("RANK", "2", "WORLD_SIZE", "2"),
     .fault = {"RANK says rank 2", "WORLD_SIZE says that there are 2"}},
    {.set = LIST("RANK", "-1", "WORLD_SIZE", "2"), .fault = {"RANK is \"-1\"", "a number is needed"}},
    {.set = LIST("RANK", "0", "WORLD_SIZE", "two"), .fault = {"WORLD_SIZE is \"two\"", "a number"}},
    {.set = LIST("PMI_RANK", "99999999999", "PMI_SIZE", "2"),
     .fault = {"PMI_RANK is \"99999999999\"", "number"}},
    {.set = LIST("PMI_RANK", "18446744073709551616", "PMI_SIZE", "2"), .fault = {"PMI_RANK", "number"}},
};

static void places(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row *r = &rows[i];
        const tni_context_options o = {.settings = r->settings};
        tni_kv_place place = {7, 7, "untouched"};
        tni_context *c = NULL;
        tn_status st;

        for (size_t k = 0; variables[k]; k++)
            (void)unsetenv(variables[k]);
        for (size_t k = 0; r->set[k]; k += 2)
            (void)setenv(r->set[k], r->set[k + 1], 1);
        assert_int_equal(tni_context_open(&o, &c), TN_OK);
        st = tni_kv_rendezvous(c->options, &place);
        if (st != (r->fault[0] ? TN_E_ATTR : TN_OK))
            fail_msg("row %zu: %s", i, tni_error_message());
        for (size_t k = 0; k < 2 && r->fault[0]; k++)
            if (!strstr(tni_error_message(), r->fault[k]))
                fail_msg("row %zu: %s", i, tni_error_message());
        assert_int_equal(place.rank, r->fault[0] ? 7 : r->rank);
        assert_int_equal(place.ranks, r->fault[0] ? 7 : r->ranks);
        assert_string_equal(place.root, r->fault[0] ? "untouched" : r->root);
        assert_int_equal(tni_context_close(c, 0), TN_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(places)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
