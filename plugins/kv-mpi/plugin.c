/*
 * The plugin kv-mpi: collectives by an installed MPI. MPI begins with the first communicator of a process and
 * ends with the last user of the plugin; it can do both once. MPI_THREAD_MULTIPLE is asked for, and
 * MPI_THREAD_FUNNELED will do: the thread that opens a communicator makes all calls.
 */
#include "kv_mpi.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define NAP_NS 50000u        /* between two looks at calls, after YIELDS of them */
#define IDLE_NAP_NS 5000000u /* between two looks at what others say */
#define YIELDS 400u

static struct { /* of the process */
    pthread_mutex_t lock;
    uint32_t users; /* of the plugin: contexts */
    int provided;   /* threads that MPI serves */
    bool begun, ended, broken, open;
} mpi = {.lock = PTHREAD_MUTEX_INITIALIZER};

tn_status tnmpi_fail(tn_err *err, tn_status st, const char *what, int error)
{
    char text[MPI_MAX_ERROR_STRING + 1] = "";
    int length = 0;

    (void)MPI_Error_string(error, text, &length);
    return tn_failf(err, st, "%s: %.200s", what, text);
}

void tnmpi_nap(uint32_t *naps, uint64_t most_ns, int bell)
{
    struct pollfd fd = {.fd = bell, .events = POLLIN};
    const struct timespec t = {.tv_nsec = (long)(most_ns < 999999999u ? most_ns : 999999999u)};

    if ((*naps)++ < YIELDS)
        (void)sched_yield();
    else
        (void)ppoll(&fd, bell >= 0, &t, NULL);
}

/* ---- opening and closing ------------------------------------------------------------------------------ */

/* [locked] */
static tn_status mpi_begin(tn_err *err)
{
    int flag = 0, error;

    if (mpi.open)
        return tn_fail(err, TN_E_STATE, "this process has an open MPI communicator already");
    if (!MPI_Finalized(&flag) && flag)
        return tn_fail(err, TN_E_STATE, "MPI has ended in this process, and cannot begin again");
    if (mpi.broken)
        return tn_fail(err, TN_E_STATE, "an MPI job of this process has failed; start the process again");
    if (!MPI_Initialized(&flag) && flag)
        (void)MPI_Query_thread(&mpi.provided);
    else if ((error = MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &mpi.provided)))
        return tn_failf(err, TN_E_UNSUPPORTED, "MPI_Init_thread fails with %d", error);
    else
        mpi.begun = true;
    if (mpi.provided < MPI_THREAD_FUNNELED)
        return tn_fail(err, TN_E_UNSUPPORTED, "this MPI serves no process that has threads");
    (void)MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    return TN_OK;
}

static tn_status place_take(tn_communicator *c, tn_err *err)
{
    int rank = 0, ranks = 0;

    if (MPI_Comm_rank(MPI_COMM_WORLD, &rank) || MPI_Comm_size(MPI_COMM_WORLD, &ranks))
        return tn_fail(err, TN_E_UNSUPPORTED, "MPI does not say which rank this is");
    c->rank = (uint32_t)rank;
    c->ranks = (uint32_t)ranks;
    if (c->config.ranks && c->config.ranks != c->ranks && c->config.rank == UINT32_MAX)
        return tn_failf(err, TN_E_ARG, "%u workers are asked for, but MPI's launcher says rank %u of %u",
                        c->config.ranks, c->rank, c->ranks);
    if (c->config.ranks &&
        (c->config.ranks != c->ranks || (c->config.rank != UINT32_MAX && c->config.rank != c->rank)))
        return tn_failf(err, TN_E_ARG, "rank %u of %u is asked for, but MPI's launcher says rank %u of %u",
                        c->config.rank, c->config.ranks, c->rank, c->ranks);
    return TN_OK;
}

/* One that failed to open, or in use: what MPI may still write to stays. */
static void communicator_free(tn_communicator *c)
{
    bool whole;

    while (c->calls) {
        tnmpi_call *call = c->calls;

        c->calls = call->next;
        free(call);
    }
    whole = tnmpi_pieces_free(c) && c->listening == MPI_REQUEST_NULL && !c->duplicates;
    if (c->bell >= 0)
        (void)close(c->bell);
    free(c->peers);
    if (whole)
        free(c);
}

static tn_status mpi_open(void *plugin, const tn_collective_config *config, tn_communicator **out,
                          tn_err *err)
{
    tn_communicator *c;
    tn_status st;

    (void)plugin;
    if (config->flags || !config->add ||
        (config->ranks && config->rank >= config->ranks && config->rank != UINT32_MAX))
        return tn_failf(err, TN_E_ARG, "rank %u of %u, flags %#x", config->rank, config->ranks,
                        config->flags);
    if (!(c = calloc(1, sizeof *c)))
        return tn_fail(err, TN_E_NOMEM, "out of memory");
    c->config.rank = config->rank;
    c->config.ranks = config->ranks;
    c->config.job = config->job ? config->job : "";
    c->config.timeout_ns = config->timeout_ns;
    c->config.add = config->add;
    c->listening = MPI_REQUEST_NULL;
    c->last = &c->calls;
    (void)pthread_mutex_lock(&mpi.lock);
    if ((c->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        st = tn_fail(err, TN_E_IO, "no descriptor is left");
    else if (!(st = mpi_begin(err)) && !(st = place_take(c, err)) && !(st = tnmpi_pieces_make(c, err)) &&
             (st = tnmpi_notes_open(c, err)))
        mpi.broken = st != TN_E_NOMEM;
    mpi.open = mpi.open || !st;
    (void)pthread_mutex_unlock(&mpi.lock);
    c->config.job = NULL;
    if (st)
        communicator_free(c);
    else
        *out = c;
    return st;
}

static void mpi_info(tn_communicator *c, tn_collective_info *out)
{
    out->flags = TN_COLLECTIVE_LAUNCHED;
    out->rank = c->rank;
    out->ranks = c->ranks;
    out->count_max = INT_MAX;
}

/* [locked] */
static void mpi_end(void)
{
    if (mpi.begun && !mpi.ended && !mpi.broken)
        (void)MPI_Finalize();
    mpi.ended = mpi.begun;
}

static bool all_left(const tn_communicator *c)
{
    for (uint32_t i = 0; i < c->ranks; i++)
        if (i != c->rank && !c->peers[i].left)
            return false;
    return true;
}

/* Whether `close` has to wait: notes are on their way, or ranks have not left. After a failure only notes
 * count, for a moment: the rank that one goes to may be gone. */
static bool close_waits(const tn_communicator *c, bool whole, uint64_t gone_ns, uint64_t timeout_ns)
{
    const uint64_t most_ns = whole || timeout_ns < TNMPI_ANSWER_NS ? timeout_ns : TNMPI_ANSWER_NS;

    return (c->sayings || (whole && !all_left(c))) && gone_ns < most_ns;
}

static void mpi_close(tn_communicator *c, uint64_t timeout_ns)
{
    const uint64_t begun_ns = monotonic_ns();
    bool whole = !c->failed;
    uint32_t naps = 0;

    for (const tnmpi_call *call = c->calls; call; call = call->next)
        whole = whole && !call->left;
    if (whole)
        tnmpi_tell(c, TNMPI_BYE, TNMPI_ALL, "");
    else if (!c->failed)
        tnmpi_break(c, TN_E_PEER, true, "it has left before the end of %s", c->calls->name);
    tnmpi_listen(c);
    while (close_waits(c, whole = whole && !c->failed, monotonic_ns() - begun_ns, timeout_ns)) {
        tnmpi_nap(&naps, NAP_NS, -1);
        tnmpi_listen(c);
    }
    whole = whole && !c->sayings && all_left(c);
    (void)pthread_mutex_lock(&mpi.lock);
    tnmpi_notes_close(c, whole);
    mpi.open = false;
    mpi.broken = mpi.broken || !whole;
    if (mpi.provided < MPI_THREAD_SERIALIZED) /* nobody else may end it */
        mpi_end();
    (void)pthread_mutex_unlock(&mpi.lock);
    communicator_free(c);
}

/* ---- calls -------------------------------------------------------------------------------------------- */

/* Those that have ended, or all once it has failed, into `events`. */
static uint32_t ends_take(tn_communicator *c, tn_collective_event *events, uint32_t most)
{
    uint32_t count = 0;

    for (tnmpi_call **at = &c->calls; *at && count < most;) {
        tnmpi_call *call = *at;
        tn_collective_event *e;

        if (call->left && !c->failed) {
            at = &call->next;
            continue;
        }
        e = tn_collective_event_at(events, count++);
        e->status = call->left ? c->failed : TN_OK;
        e->cookie = call->cookie;
        e->text = call->left ? c->why : NULL;
        *at = call->next;
        free(call);
    }
    c->last = &c->calls;
    while (*c->last)
        c->last = &(*c->last)->next;
    return count;
}

/* A rank that has left comes to nothing more. */
static void left_check(tn_communicator *c)
{
    tnmpi_call *call = c->calls;

    while (call && !call->left)
        call = call->next;
    for (uint32_t i = 0; call && i < c->ranks && !c->doubt; i++)
        if (c->peers[i].left && c->peers[i].number < call->number)
            tnmpi_doubt(c, call, MPI_SUCCESS);
}

static tn_status mpi_poll(tn_communicator *c, tn_collective_event *events, uint32_t *count,
                          uint64_t timeout_ns, tn_err *err)
{
    const uint64_t begun_ns = monotonic_ns();
    const uint32_t most = *count;
    uint32_t naps = 0;
    uint64_t rung;

    for (;;) {
        uint64_t gone_ns, nap_ns = c->calls ? NAP_NS : IDLE_NAP_NS;

        tnmpi_listen(c);
        naps = tnmpi_move(c) ? 0 : naps;
        left_check(c);
        tnmpi_judge(c);
        if ((*count = ends_take(c, events, most)))
            return TN_OK;
        if (c->failed)
            return tn_fail(err, TN_E_PEER, c->why);
        gone_ns = monotonic_ns() - begun_ns;
        if (read(c->bell, &rung, sizeof rung) > 0 || gone_ns >= timeout_ns)
            return TN_OK;
        nap_ns = timeout_ns - gone_ns < nap_ns ? timeout_ns - gone_ns : nap_ns;
        naps = c->calls ? naps : YIELDS;
        tnmpi_nap(&naps, nap_ns, c->bell);
    }
}

static void mpi_wake(tn_communicator *c)
{
    const uint64_t one = 1;

    if (write(c->bell, &one, sizeof one) < 0 && errno != EAGAIN)
        return; /* it is rung already */
}

static void mpi_abort(tn_communicator *c, const char *why)
{
    tnmpi_break(c, TN_E_PEER, true, "%.300s", why);
}

/* ---- the plugin --------------------------------------------------------------------------------------- */

static tn_status plugin_init(const tn_host *host, void **plugin, tn_err *err)
{
    (void)host;
    (void)err;
    (void)pthread_mutex_lock(&mpi.lock);
    mpi.users++;
    (void)pthread_mutex_unlock(&mpi.lock);
    *plugin = &mpi;
    return TN_OK;
}

static void plugin_fini(void *plugin)
{
    (void)plugin;
    (void)pthread_mutex_lock(&mpi.lock);
    if (--mpi.users == 0 && mpi.provided >= MPI_THREAD_SERIALIZED)
        mpi_end();
    (void)pthread_mutex_unlock(&mpi.lock);
}

static const tn_collective_ops collective = {
    .head = TN_CAPABILITY(tn_collective_ops, close, TN_KIND_COLLECTIVE, "mpi"),
    .open = mpi_open,
    .info = mpi_info,
    .start = tnmpi_start,
    .poll = mpi_poll,
    .wake = mpi_wake,
    .abort = mpi_abort,
    .close = mpi_close,
};

static const tn_capability *const capabilities[] = {&collective.head, NULL};

TN_PLUGIN_DEFINE("kv-mpi", "0.1.0", "Tenon", "Apache-2.0", "collectives by an installed MPI", "",
                 "collective:mpi", plugin_init, plugin_fini, NULL, capabilities);
