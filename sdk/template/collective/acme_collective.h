/* What the files of acme-collective share: frames, ranks, calls. */
#ifndef ACME_COLLECTIVE_H
#define ACME_COLLECTIVE_H

#include <stdbool.h>

#include <tenon/plugin/collective.h>
#include <tenon/plugin/util.h>

#define STAR_MAGIC 0x31617473u /* "sta1" */
#define STAR_RANKS_MAX 64u
#define STAR_BYTES_MAX ((uint64_t)1 << 30) /* of a frame */
#define STAR_COUNT_MAX (STAR_BYTES_MAX / 16)
#define STAR_TEXT 200u
#define STAR_NAME 120u

enum { STAR_CALL = 1, STAR_RESULT, STAR_FAIL, STAR_ASK, STAR_BYE };

typedef struct frame_head {
    uint32_t magic, kind;
    uint64_t number, what, bytes; /* what: kind, type and root of a call; bytes: of the body */
} frame_head;

typedef struct frame {
    struct frame *next;
    uint64_t done; /* bytes of head and body that were sent */
    frame_head head;
    uint8_t body[];
} frame;

typedef struct peer {
    int fd;          /* -1: none, or gone */
    bool left;       /* it said BYE */
    frame *out;      /* to be sent */
    frame *came;     /* calls, or results, that were not taken yet */
    frame_head head; /* of what comes */
    uint64_t got;    /* bytes of it */
    frame *in;       /* its body, once the head is here */
} peer;

typedef struct call {
    struct call *next;
    uint64_t number, what, bytes, cookie, end_ns;
    uint32_t kind, root, part_count;
    int32_t dtype;
    bool over, asked; /* asked: the hub, who is late */
    char name[STAR_NAME];
    frame *data; /* of the hub: its own values, then the result */
    tn_collective_part parts[];
} call;

struct tn_communicator {
    uint32_t rank, ranks, first, end; /* peers[first] to peers[end - 1] are those that it talks to */
    void (*add)(int32_t dtype, uint64_t count, const void *from, void *into);
    int bell;
    peer peers[STAR_RANKS_MAX];
    call *calls;      /* in their order */
    uint64_t started; /* how many */
    tn_status failed; /* TN_OK: it works */
    char text[STAR_TEXT];
};

uint64_t star_now_ns(void);
void star_free(tn_communicator *c);
/* acme_collective_open.c */
tn_status star_open(void *plugin, const tn_collective_config *config, tn_communicator **out, tn_err *err);

#endif
