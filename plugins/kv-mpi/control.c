/*
 * Notes between ranks, beside the calls: who is here, who gives up, who leaves, and the question of a rank
 * whose call is late: each answers with the number of calls that it has started. A rank that does not answer
 * is silent; one that has started fewer has not come to the call. Both are named.
 */
#include "kv_mpi.h"

#include <stdlib.h>
#include <string.h>

#define TAG 0x7e0

void tnmpi_tell(tn_communicator *c, tnmpi_kind kind, int to, const char *text)
{
    tnmpi_saying *s = calloc(1, sizeof *s + c->ranks * sizeof s->requests[0]);

    if (!s)
        return;
    s->note.kind = kind;
    s->note.number = c->started;
    (void)snprintf(s->note.text, sizeof s->note.text, "%s", text);
    for (uint32_t i = 0; i < c->ranks; i++) {
        s->requests[i] = MPI_REQUEST_NULL;
        if (i != c->rank && (to == TNMPI_ALL || to == (int)i))
            (void)MPI_Isend(&s->note, (int)sizeof s->note, MPI_BYTE, (int)i, TAG, c->control,
                            &s->requests[i]);
    }
    s->next = c->sayings;
    c->sayings = s;
}

static void heard(tn_communicator *c, int from)
{
    tnmpi_note *n = &c->heard;
    tnmpi_peer *p = &c->peers[from];

    n->text[sizeof n->text - 1] = '\0';
    p->number = n->number;
    if (n->kind == TNMPI_ASK) {
        tnmpi_tell(c, TNMPI_ANSWER, from, "");
    } else if (n->kind == TNMPI_ANSWER) {
        p->answered = true;
    } else if (n->kind == TNMPI_BYE) {
        p->left = true;
    } else if (n->kind == TNMPI_ABORT) {
        p->left = true;
        tnmpi_break(c, TN_E_PEER, false, "rank %d has given up: %s", from, n->text);
    }
}

void tnmpi_listen(tn_communicator *c)
{
    int flag = 1;

    for (tnmpi_saying **at = &c->sayings; *at;) {
        tnmpi_saying *s = *at;

        if (MPI_Testall((int)c->ranks, s->requests, &flag, MPI_STATUSES_IGNORE) == MPI_SUCCESS && flag) {
            *at = s->next;
            free(s);
        } else {
            at = &s->next;
        }
    }
    for (flag = 1; flag && c->listening != MPI_REQUEST_NULL;) {
        MPI_Status from;

        if (MPI_Test(&c->listening, &flag, &from) != MPI_SUCCESS || !flag)
            return;
        if (from.MPI_SOURCE >= 0 && (uint32_t)from.MPI_SOURCE < c->ranks)
            heard(c, from.MPI_SOURCE);
        if (MPI_Irecv(&c->heard, (int)sizeof c->heard, MPI_BYTE, MPI_ANY_SOURCE, TAG, c->control,
                      &c->listening))
            c->listening = MPI_REQUEST_NULL;
    }
}

void tnmpi_break(tn_communicator *c, tn_status st, bool mine, const char *format, ...)
{
    va_list args;

    if (c->failed)
        return;
    va_start(args, format);
    (void)vsnprintf(c->why, sizeof c->why, format, args);
    va_end(args);
    c->failed = st;
    if (mine)
        tnmpi_tell(c, TNMPI_ABORT, TNMPI_ALL, c->why);
}

void tnmpi_doubt(tn_communicator *c, tnmpi_call *call, int error)
{
    int length = 0;

    call->lost = true;
    if (c->doubt)
        return;
    c->doubt = call;
    c->doubt_ns = monotonic_ns();
    c->fault[0] = '\0';
    if (error)
        (void)MPI_Error_string(error, c->fault, &length);
    for (uint32_t i = 0; i < c->ranks; i++)
        c->peers[i].answered = false;
    tnmpi_tell(c, TNMPI_ASK, TNMPI_ALL, "");
}

/* "rank 1 is silent; rank 2 has not come to it" */
static void missing_list(const tn_communicator *c, char *out, size_t size)
{
    size_t used = 0;

    out[0] = '\0';
    for (uint32_t i = 0; i < c->ranks && used < size; i++) {
        const tnmpi_peer *p = &c->peers[i];
        const char *what = p->left                        ? "has left"
                           : !p->answered                 ? "is silent"
                           : p->number < c->doubt->number ? "has not come to it"
                                                          : NULL;

        if (i != c->rank && what)
            used += (size_t)snprintf(out + used, size - used, "%srank %u %s", used ? "; " : "", i, what);
    }
    if (!used)
        (void)snprintf(out, size, "all ranks have come to it");
}

void tnmpi_judge(tn_communicator *c)
{
    static const char *const kinds[] = {"?", "all-reduce", "broadcast", "barrier"};
    uint32_t answers = 1;
    char missing[200];

    if (!c->doubt || c->failed)
        return;
    for (uint32_t i = 0; i < c->ranks; i++)
        answers += i != c->rank && (c->peers[i].answered || c->peers[i].left);
    if (answers < c->ranks && monotonic_ns() - c->doubt_ns < TNMPI_ANSWER_NS)
        return;
    missing_list(c, missing, sizeof missing);
    if (c->fault[0])
        tnmpi_break(c, TN_E_PEER, true, "%s of %.80s failed: %s (MPI: %.80s)", kinds[c->doubt->kind],
                    c->doubt->name, missing, c->fault);
    else
        tnmpi_break(c, TN_E_TIMEOUT, true, "%s of %.80s did not end within %.3g s: %s", kinds[c->doubt->kind],
                    c->doubt->name, (double)c->doubt->timeout_ns / 1e9, missing);
}

/* ---- the beginning and the end ------------------------------------------------------------------------ */

static uint64_t job_number(const char *job)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (; *job; job++)
        hash = (hash ^ (uint8_t)*job) * 0x100000001b3u;
    return hash;
}

/* Whose greeting lies here, or who has not come. */
static tn_status hello_check(const tn_communicator *c, const tnmpi_note *notes, tn_err *err)
{
    char list[200] = "";
    size_t used = 0;

    for (uint32_t i = 0; i < c->ranks; i++) {
        if (!c->peers[i].here && used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%u", used ? ", " : "", i);
        else if (i != c->rank && notes[i].number != job_number(c->config.job))
            return tn_failf(err, TN_E_PEER, "rank %u is of another job than \"%.60s\"", i, c->config.job);
    }
    return used ? tn_failf(err, TN_E_TIMEOUT, "of %u ranks these did not come within %.3g s: %s", c->ranks,
                           (double)c->config.timeout_ns / 1e9, list)
                : TN_OK;
}

/* `notes` and requests belong to MPI until all have come; else they are left to it. */
static tn_status hello(tn_communicator *c, tnmpi_note *notes, MPI_Request *requests, uint64_t end_ns,
                       tn_err *err)
{
    const int bytes = (int)sizeof *notes;
    uint32_t naps = 0, left = c->ranks - 1;

    c->peers[c->rank].here = true;
    notes[c->rank].kind = TNMPI_HELLO;
    notes[c->rank].number = job_number(c->config.job);
    for (uint32_t i = 0; i < c->ranks; i++) {
        MPI_Request *r = &requests[2 * i];

        r[0] = r[1] = MPI_REQUEST_NULL;
        if (i != c->rank && (MPI_Irecv(&notes[i], bytes, MPI_BYTE, (int)i, TAG, MPI_COMM_WORLD, &r[0]) ||
                             MPI_Isend(&notes[c->rank], bytes, MPI_BYTE, (int)i, TAG, MPI_COMM_WORLD, &r[1])))
            return tn_failf(err, TN_E_PEER, "MPI cannot reach rank %u", i);
    }
    while (left && monotonic_ns() < end_ns) {
        for (uint32_t i = 0; i < c->ranks; i++) {
            int flag = 0;

            if (!c->peers[i].here && !MPI_Testall(2, &requests[2 * i], &flag, MPI_STATUSES_IGNORE) && flag) {
                c->peers[i].here = true;
                left--;
            }
        }
        if (left)
            tnmpi_nap(&naps, 1000000, -1);
    }
    return hello_check(c, notes, err);
}

static tn_status duplicate(tn_communicator *c, MPI_Comm *out, uint64_t end_ns, tn_err *err)
{
    MPI_Request request;
    uint32_t naps = 0;
    int flag = 0, error = MPI_Comm_idup(MPI_COMM_WORLD, out, &request);

    while (!error && !(error = MPI_Test(&request, &flag, MPI_STATUS_IGNORE)) && !flag &&
           monotonic_ns() < end_ns)
        tnmpi_nap(&naps, 1000000, -1);
    c->duplicates = !flag;
    if (error)
        return tnmpi_fail(err, TN_E_PEER, "MPI_Comm_idup", error);
    if (!flag)
        return tn_fail(err, TN_E_TIMEOUT, "MPI makes no communicator in time: a rank has died or is stopped");
    (void)MPI_Comm_set_errhandler(*out, MPI_ERRORS_RETURN);
    return TN_OK;
}

tn_status tnmpi_notes_open(tn_communicator *c, tn_err *err)
{
    const uint64_t end_ns = monotonic_ns() + c->config.timeout_ns;
    tnmpi_note *notes = calloc(c->ranks, sizeof *notes);
    MPI_Request *requests = calloc(2 * (size_t)c->ranks, sizeof *requests);
    tn_status st = TN_OK;

    c->peers = calloc(c->ranks, sizeof *c->peers);
    if (!notes || !requests || !c->peers) {
        free(notes);
        free((void *)requests);
        return tn_fail(err, TN_E_NOMEM, "out of memory");
    }
    if ((st = hello(c, notes, requests, end_ns, err)))
        return st;
    free(notes);
    free((void *)requests);
    if ((st = duplicate(c, &c->control, end_ns, err)) || (st = duplicate(c, &c->first, end_ns, err)) ||
        (st = duplicate(c, &c->second, end_ns, err)))
        return st;
    if (MPI_Irecv(&c->heard, (int)sizeof c->heard, MPI_BYTE, MPI_ANY_SOURCE, TAG, c->control, &c->listening))
        return tn_fail(err, TN_E_PEER, "MPI cannot receive");
    return TN_OK;
}

void tnmpi_notes_close(tn_communicator *c, bool whole)
{
    if (c->listening != MPI_REQUEST_NULL && !MPI_Cancel(&c->listening))
        (void)MPI_Wait(&c->listening, MPI_STATUS_IGNORE);
    if (!whole)
        return; /* to free a communicator takes all ranks */
    (void)MPI_Comm_free(&c->control);
    (void)MPI_Comm_free(&c->first);
    (void)MPI_Comm_free(&c->second);
}
