/* What launchers' variables say of a process: its rank, how many there are, where the first one is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "context/context.h"
#include "kv/group.h"

static const char *const variables[] = {"RANK",
                                        "WORLD_SIZE",
                                        "MASTER_ADDR",
                                        "MASTER_PORT",
                                        "OMPI_COMM_WORLD_RANK",
                                        "OMPI_COMM_WORLD_SIZE",
                                        "PMIX_RANK",
                                        "PMI_RANK",
                                        "PMI_SIZE",
                                        "SLURM_PROCID",
                                        "SLURM_NTASKS",
                                        "SLURM_STEP_NODELIST",
                                        "SLURM_STEP_NUM_NODES",
                                        "SLURM_JOB_ID",
                                        "SLURM_STEP_ID",
                                        "PMIX_NAMESPACE",
                                        "PMI_JOBID",
                                        "OMPI_COMM_WORLD_LOCAL_SIZE",
                                        "LOCAL_WORLD_SIZE",
                                        "MPI_LOCALNRANKS",
                                        "TORCHELASTIC_USE_AGENT_STORE",
                                        NULL};

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
    {.set = LIST("RANK", "1", "WORLD_SIZE", "4", "MASTER_ADDR", "fd00::7", "MASTER_PORT", "29500"),
     .rank = 1,
     .ranks = 4,
     .root = "[fd00::7]:29500"},
    {.set = LIST("RANK", "1", "WORLD_SIZE", "4", "MASTER_ADDR", "[fd00::7]", "MASTER_PORT", "29500"),
     .rank = 1,
     .ranks = 4,
     .root = "[fd00::7]:29500"},
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
    {.settings = LIST("kvstore.rank=1", "kvstore.workers=2", "kvstore.scheduler=::1"),
     .rank = 1,
     .ranks = 2,
     .root = "[::1]:9091"},
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

static tni_context *context(const char *const *set, const char *const *settings)
{
    const tni_context_options o = {.settings = settings};
    tni_context *c = NULL;

    for (size_t k = 0; variables[k]; k++)
        (void)unsetenv(variables[k]);
    for (size_t k = 0; set[k]; k += 2)
        (void)setenv(set[k], set[k + 1], 1);
    assert_int_equal(tni_context_open(&o, &c), TN_OK);
    return c;
}

static void places(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row *r = &rows[i];
        tni_context *c = context(r->set, r->settings);
        tni_kv_place place = {7, 7, "untouched"};
        const tn_status st = tni_kv_rendezvous(c->options, &place);

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

/* Where the scheduler of a dist type is to be. Ports that follow from a job's number have a range only. */
typedef struct meeting_row {
    const char *set[16];
    const char *settings[4];
    uint32_t rank, ranks;
    const char *host;
    uint64_t port;     /* 0: of the range */
    const char *fault; /* part of the error; NULL: none */
} meeting_row;

#define TORCH(rank, ranks, host, port)                                                                       \
    "RANK", rank, "WORLD_SIZE", ranks, "MASTER_ADDR", host, "MASTER_PORT", port
#define SLURM(rank, ranks, list)                                                                             \
    "SLURM_PROCID", rank, "SLURM_NTASKS", ranks, "SLURM_JOB_ID", "71", "SLURM_STEP_NODELIST", list

static const meeting_row meetings[] = {
    {.host = ""},
    {.set = LIST(TORCH("1", "4", "node7", "29500")), .rank = 1, .ranks = 4, .host = "node7", .port = 29500},
    {.set = LIST(TORCH("1", "4", "::1", "29500"), "TORCHELASTIC_USE_AGENT_STORE", "True"),
     .rank = 1,
     .ranks = 4,
     .host = "::1",
     .port = 29501},
    {.set = LIST(SLURM("1", "4", "m[03-04,7]-ib,k9")), .rank = 1, .ranks = 4, .host = "m03-ib"},
    {.set = LIST(SLURM("1", "4", "m[7]")), .rank = 1, .ranks = 4, .host = "m7"},
    {.set = LIST(SLURM("1", "4", "k9,m[3-4]")), .rank = 1, .ranks = 4, .host = "k9"},
    {.set = LIST(SLURM("1", "4", "k9"), "SLURM_STEP_NUM_NODES", "1"),
     .rank = 1,
     .ranks = 4,
     .host = "127.0.0.1"},
    /* ranks of mpirun in a batch script: its list is not theirs */
    {.set = LIST(SLURM("0", "1", "k9"), "OMPI_COMM_WORLD_RANK", "3", "OMPI_COMM_WORLD_SIZE", "4"),
     .fault = "nothing says where rank 0 is"},
    {.set = LIST("OMPI_COMM_WORLD_RANK", "1", "OMPI_COMM_WORLD_SIZE", "2", "OMPI_COMM_WORLD_LOCAL_SIZE", "2",
                 "PMIX_NAMESPACE", "5.1"),
     .rank = 1,
     .ranks = 2,
     .host = "127.0.0.1"},
    {.set = LIST("OMPI_COMM_WORLD_RANK", "1", "OMPI_COMM_WORLD_SIZE", "2", "OMPI_COMM_WORLD_LOCAL_SIZE", "2"),
     .fault = "rank 1 of 2: nothing says"}, /* another job here would have the same port */
    {.set = LIST("OMPI_COMM_WORLD_RANK", "1", "OMPI_COMM_WORLD_SIZE", "2", "OMPI_COMM_WORLD_LOCAL_SIZE", "1",
                 "PMIX_NAMESPACE", "5.1"),
     .fault = "nothing says"},
    {.set = LIST("RANK", "0", "WORLD_SIZE", "1"), .rank = 0, .ranks = 1, .host = "127.0.0.1"},
    {.set = LIST(TORCH("1", "4", "node7", "29500")), .settings = LIST("kvstore.scheduler=k1"), .host = ""},
    {.set = LIST(TORCH("1", "4", "node7", "29500")),
     .settings = LIST("kvstore.scheduler_port=9"),
     .host = ""},
    {.set = LIST(TORCH("1", "4", "node7", "29500")), .settings = LIST("kvstore.role=server"), .host = ""},
    {.set = LIST(TORCH("1", "4", "node7", "29500")), .settings = LIST("kvstore.rendezvous=none"), .host = ""},
    {.settings = LIST("kvstore.rank=1", "kvstore.workers=2"), .host = ""},
    {.set = LIST(TORCH("4", "4", "node7", "29500")), .fault = "RANK says rank 4"},
    {.set = LIST(TORCH("1", "4", "node7", "0")), .fault = "MASTER_PORT \"0\""},
    {.set = LIST(TORCH("1", "4", "node7", "65535")), .fault = "MASTER_PORT \"65535\""},
    {.set = LIST(TORCH("1", "4", "node7", "18446744073709551617")), .fault = "a port from 1"},
    {.set = LIST(TORCH("1", "4", "node7", "")), .fault = "nothing says"},
    {.set = LIST(TORCH("1", "4", "", "29500")), .fault = "nothing says"},
    {.set = LIST(SLURM("1", "4", "")), .fault = "nothing says"},
    {.set = LIST(SLURM("1", "4", "m[")), .fault = "nothing says"},
    {.set = LIST(SLURM("1", "4", "m[3")), .fault = "nothing says"},
    {.set = LIST(SLURM("1", "4", "m[]")), .fault = "nothing says"},
    {.set = LIST(SLURM("1", "4", "m[x]")), .fault = "nothing says"},
    {.set = LIST(SLURM("1", "4", "m[1][2]")), .fault = "nothing says"},
};

static void meets(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof meetings / sizeof *meetings; i++) {
        const meeting_row *r = &meetings[i];
        tni_context *c = context(r->set, r->settings);
        tni_kv_meeting m = {7, 7, "touched", 7};
        const tn_status st = tni_kv_meet(c->options, &m);

        if (st != (r->fault ? TN_E_ATTR : TN_OK) || (st && !strstr(tni_error_message(), r->fault)))
            fail_msg("row %zu: %s", i, st ? tni_error_message() : "no error");
        assert_int_equal(m.ranks, r->ranks);
        assert_int_equal(m.rank, r->rank);
        assert_string_equal(m.host, r->fault ? "" : r->host);
        if (r->port)
            assert_int_equal(m.port, r->port);
        else if (r->ranks)
            assert_in_range(m.port, 10240, 30719);
        assert_int_equal(tni_context_close(c, 0), TN_OK);
    }
}

static void long_host(void **state)
{
    char host[301] = "";
    const char *const set[] = {TORCH("0", "2", host, "29500"), NULL};
    tni_kv_meeting m;
    tni_context *c;

    (void)state;
    memset(host, 'a', sizeof host - 1);
    c = context(set, NULL);
    assert_int_equal(tni_kv_meet(c->options, &m), TN_E_ATTR);
    assert_int_equal(m.ranks, 0);
    assert_int_equal(tni_context_close(c, 0), TN_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(places), cmocka_unit_test(meets),
                                       cmocka_unit_test(long_host)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
