/*
 * What the files of the plugin kv-mpi share.
 *
 * A communicator has three of MPI's: `first` and `second` carry the two halves of pieces of calls, each in
 * the order of the pieces, whichever half of which piece is ready first; `control` carries notes. Nothing of
 * MPI works in the host's memory: a collective cannot be cancelled, so what it uses is given up if it never
 * ends.
 */
#ifndef TNMPI_KV_MPI_H
#define TNMPI_KV_MPI_H

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "../common/system.h"
#include "tenon/plugin/collective.h"

#define TNMPI_NAME_BYTES 120 /* of a call, with its end */
#define TNMPI_TEXT_BYTES 400 /* of a failure, with its end */
#define TNMPI_PIECES 4u      /* under way at a time */
#define TNMPI_ANSWER_NS 500000000u

typedef struct tnmpi_call {
    struct tnmpi_call *next;
    uint64_t number, cookie, deadline_ns, timeout_ns, count; /* count: elements of all parts */
    uint64_t begun, left; /* elements whose pieces have begun; pieces that have not ended */
    uint32_t flags, kind, root, part_count;
    int32_t dtype;
    bool lost; /* no end comes from MPI */
    char name[TNMPI_NAME_BYTES];
    tn_collective_part parts[];
} tnmpi_call;

/* A range of a call's elements on its way. Its buffers lie where they are as long as its communicator. */
typedef struct tnmpi_piece {
    tnmpi_call *call; /* NULL: it has ended */
    uint64_t first, count;
    bool halves, second; /* it has two halves; the first is over */
    MPI_Request request;
    uint8_t *data, *shares; /* shares: of halves, this rank's share from each other one */
    int *counts;            /* of halves: counts and places of both, 4 lists of `ranks` */
} tnmpi_piece;

typedef enum tnmpi_kind { TNMPI_HELLO = 1, TNMPI_ABORT, TNMPI_ASK, TNMPI_ANSWER, TNMPI_BYE } tnmpi_kind;

/* What ranks tell each other beside the calls. */
typedef struct tnmpi_note {
    uint32_t kind, reserved;
    uint64_t number; /* HELLO: the job's; else how many calls the sender has started */
    char text[TNMPI_TEXT_BYTES];
} tnmpi_note;

typedef struct tnmpi_saying { /* a note on its way */
    struct tnmpi_saying *next;
    tnmpi_note note;
    MPI_Request requests[]; /* to each rank */
} tnmpi_saying;

typedef struct tnmpi_peer { /* what is known of a rank */
    bool here, answered, left;
    uint64_t number; /* of calls that it had started */
} tnmpi_peer;

struct tn_communicator {
    tn_collective_config config;
    uint32_t rank, ranks;
    MPI_Comm first, second, control;
    MPI_Request listening; /* for the next note */
    tnmpi_note heard;
    tnmpi_saying *sayings; /* under way */
    tnmpi_peer *peers;
    tnmpi_call *calls, **last; /* under way, and ended ones whose end was not handed out, in order */
    tnmpi_call *next;          /* the first whose pieces have not all begun */
    uint64_t started;
    tnmpi_piece pieces[TNMPI_PIECES]; /* piece n in place n % TNMPI_PIECES: those from `oldest` to `newest` */
    uint64_t oldest, newest, piece_bytes;
    const tnmpi_call *doubt; /* whose deadline is over, or that MPI failed: the others are asked */
    uint64_t doubt_ns;       /* when they were */
    char fault[MPI_MAX_ERROR_STRING + 1];
    tn_status failed; /* TN_OK: it works */
    char why[TNMPI_TEXT_BYTES];
    int bell;        /* eventfd */
    bool duplicates; /* MPI may still write to one of its communicators: this block stays */
};

/* Waits a moment, longer after more of them; `bell` (or -1) ends it. */
void tnmpi_nap(uint32_t *naps, uint64_t most_ns, int bell);
/* The text of MPI's error. */
tn_status tnmpi_fail(tn_err *err, tn_status st, const char *what, int error);

/* ---- control.c ---- */
tn_status tnmpi_notes_open(tn_communicator *c, tn_err *err); /* all ranks have come; `control` and others */
void tnmpi_notes_close(tn_communicator *c, bool whole); /* whole: all ranks do */
/* Tells rank `to`, or with TNMPI_ALL all others. Where no memory is left nobody hears it: deadlines stay. */
void tnmpi_tell(tn_communicator *c, tnmpi_kind kind, int to, const char *text);
#define TNMPI_ALL (-1)
void tnmpi_listen(tn_communicator *c); /* what has come, and what has gone out */
/* It has failed. `mine`: the others hear it from here. */
void tnmpi_break(tn_communicator *c, tn_status st, bool mine, const char *format, ...)
    __attribute__((__format__(__printf__, 4, 5)));
/* A call is late or at fault (`error` of MPI, or MPI_SUCCESS): the others are asked. */
void tnmpi_doubt(tn_communicator *c, tnmpi_call *call, int error);
void tnmpi_judge(tn_communicator *c);

/* ---- call.c ---- */
tn_status tnmpi_pieces_make(tn_communicator *c, tn_err *err);
bool tnmpi_pieces_free(tn_communicator *c); /* false: MPI may still use some, which stay */
tn_status tnmpi_start(tn_communicator *c, const tn_collective_call *call, tn_err *err);
bool tnmpi_move(tn_communicator *c); /* all calls, as far as they go; true: one has moved */

#endif
