/* Of the scheduler alone: its members (scheduler.c), and who asks how they are (asked.c). */
#ifndef TN_KV_SCHEDULER_H
#define TN_KV_SCHEDULER_H

#include "kv/protocol.h"

typedef struct tni_kv_seat { /* of members[i] */
    uint64_t heard_ns, wait_until_ns;
    uint64_t barrier_sequence, end_sequence, bye_sequence; /* of a request that is held; 0: none */
    uint64_t steps[3], beat;                               /* [2]: left out; beat: number of the last one */
    uint32_t barrier;                                      /* generation at which it arrived */
    uint32_t view, taken;    /* that its last beat named; in which it took another's place, 0: none */
    bool suspected, welcome; /* welcome: waits for its rank */
    bool gives;       /* worker 0, async: has all that a server without a snapshot lacks but gradients */
    uint64_t lost_ns; /* when its link was lost; 0: it was heard since */
} tni_kv_seat;

struct tni_kv_scheduler {
    tni_kv_node node;
    tni_kv_journal journal;
    tni_kv_seat *seats;
    uint32_t count, barrier_messages;
    bool changed; /* the view, since it was announced */
    uint32_t recovering_view;
    uint32_t first_view;          /* of this process */
    uint64_t journal_bytes;       /* that there are; UINT64_MAX: its end may be torn */
    uint64_t tick_ns;             /* the last one */
    uint64_t begun_ns, commit_ns; /* commit: the next one, at the earliest */
    uint64_t told;    /* the last step that all servers hold, since the epoch began; in the journal */
    uint64_t over_ns; /* when the job failed, or the last server left; 0: it has not */
    tn_err error;     /* TN_E_PEER: the journal is another scheduler's, and this one ends */
};

/* Is sent views and questions. */
static inline bool tni_kv_member_speaks(const tni_kv_member *m)
{
    return m->state == TNI_KV_ALIVE || m->state == TNI_KV_ENDED || m->state == TNI_KV_DEAD;
}

/* asked.c */
tn_status tni_kv_asked(tni_kv_scheduler *s, const tni_kv_header *h);
tn_status tni_kv_asked_answer(tni_kv_scheduler *s, const tni_kv_header *h, const uint8_t *payload);

#endif
