/*
 * A double of NCCL, for tests: libnccl.so.2 for 2 to 8 ranks on one host, as processes or threads, on the
 * double of the driver (../emulator). Ranks meet in a file of shared memory that ncclUniqueId names; what a
 * stream carries is a host function that waits for the others, as NCCL's kernels do. Never installed.
 *
 * It knows communicators that do not block, and of NCCL 2.28 what plugin kv-nccl calls. What NVIDIA's guide
 * ("NCCL User Guide", 2.28) calls wrong or leaves open is refused, with the rule. Sums are in the order of
 * ranks.
 *
 *     TNNCCL_SEED    how often a state is ncclInProgress, and delays
 *     TNNCCL_FAULT   "hang:1:3,late:2:4:500": what rank 1 does at its third operation, rank 2 at its fourth
 *       hang    the state stays ncclInProgress        late    the kernel begins so many ms later
 *       stuck   the kernel never ends                 error   the state is ncclRemoteError
 *       die     the process ends                      stop    the process stops (SIGSTOP)
 *       abort   ncclCommAbort does not return         init    the communicator is never there
 *     TNNCCL_VERSION number that ncclGetVersion gives
 */
#ifndef TNNCCL_DOUBLE_H
#define TNNCCL_DOUBLE_H

#include <cuda.h>
#include <nccl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define DOUBLE_RANKS 8
#define DOUBLE_CHUNK 65536u /* bytes of a rank that the others read at a time */

typedef enum double_kind { DOUBLE_SUM = 1, DOUBLE_GATHER, DOUBLE_BROADCAST, DOUBLE_EXCHANGE } double_kind;

typedef struct double_op { /* what all ranks have to come with, alike */
    uint64_t number;
    uint32_t kind, dtype, root, reserved;
    uint64_t count; /* elements; of an exchange: bytes to each rank */
} double_op;

typedef struct double_place { /* of a rank, in shared memory */
    atomic_uint joined, finalized;
    atomic_int device; /* -1: none */
    atomic_ullong wrote, read, came;
    double_op op;
    unsigned char chunk[DOUBLE_CHUNK];
} double_place;

typedef struct double_room {
    atomic_uint ranks;
    double_place places[DOUBLE_RANKS];
} double_room;

typedef struct double_work { /* an operation on its way */
    double_op op;
    const void *in[DOUBLE_RANKS]; /* [0] unless it is an exchange */
    void *out[DOUBLE_RANKS];
    uint32_t sends, recvs; /* of an exchange */
    CUstream stream;
    struct ncclComm *comm;
    uint32_t late_ms;
    bool stuck;
} double_work;

struct ncclComm {
    uint32_t magic;
    int rank, ranks, device;
    double_room *room;
    char path[64];
    ncclResult_t state;
    uint32_t polls;       /* that say ncclInProgress still */
    double_work *pending; /* is launched when the state becomes ncclSuccess */
    double_work *work;    /* of the group that is open */
    bool joining, hangs, finalizing;
    uint64_t ops, turns;
    atomic_bool aborted;
    atomic_uint under_way; /* operations of its streams */
};

/* ---- rules.c ---- */
/* Says on stderr what was called wrongly, and by which rule; returns `result`. */
ncclResult_t double_refuse(ncclResult_t result, const char *rule) __attribute__((cold));
const char *double_last(void);

/* ---- work.c ---- */
void double_work_run(void *work); /* a host function of the stream; frees it */
uint64_t double_random(struct ncclComm *c);

#endif
