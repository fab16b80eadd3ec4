/*
 * A transport within the test process, with a clock that stands still until the test lets it run. Each
 * process of a job is a thread; the test's thread asks without waiting, and `loop_until` lets time pass only
 * while all others have nothing to do. So no real time decides what happens.
 *
 * Payloads that are not copied are read when the receiver takes them, and given back then.
 */
#ifndef TN_TESTS_KV_LOOP_H
#define TN_TESTS_KV_LOOP_H

#include "kv/post.h"

#define LOOP_ROOM 4u /* messages that wait on one link, before it has no room */

extern const tn_transport_ops loop_ops;
extern const tn_plugin loop_plugin; /* kv-loop: the transport for a context */

void loop_begin(void); /* time 0, nothing open */
void loop_end(void);   /* fails the test if something is open or not released */
uint64_t loop_clock(void);
void loop_busy(
    int32_t change); /* 1, then -1: a thread works that does not poll; until then the clock stands */
/* Lets time pass until `is(arg)`; false: not within `seconds`. */
bool loop_until(bool (*is)(void *arg), void *arg, double seconds);
void loop_wait_open(uint32_t count); /* until so many were opened since loop_begin */
/* By the order of opening: its poll fails, and its peers lose their links, as if the process was killed. */
void loop_watch(tn_transport *t); /* the test's own, which nobody polls: time passes without it */
void loop_kill(uint32_t index);
void loop_cut(uint32_t index, bool on); /* nothing reaches it and nothing leaves it, silently */
void loop_links_down(uint32_t index);   /* its links are lost; it lives */
void loop_address_end(const char *end); /* what listeners say behind their addresses; it lives on */
void loop_lose(uint32_t per_mille);     /* messages, by a fixed series of numbers */
typedef struct loop_count {
    uint64_t messages, refused, lost; /* refused: for want of room */
} loop_count;
loop_count loop_counts(void);

#endif
