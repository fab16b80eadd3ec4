/*
 * A process of a distributed job: one machine of the protocol (protocol.h), one transport, and the one thread
 * that owns both.
 *
 * The thread waits in the transport's `poll` until a message comes, the machine's next time has come, or
 * another thread has queued a call. Other threads' calls go through a queue, and what they read (rank, view)
 * is copied under a lock. A worker's thread leaves machine and transport to a thread that waits for short
 * values (call.c): one thread has both at any time.
 */
#ifndef TN_KV_PROCESS_H
#define TN_KV_PROCESS_H

#include "kv/kv.h"
#include "kv/protocol.h"

typedef struct tni_kv_process tni_kv_process;

/* What options kvstore.* of the context say. TN_E_ATTR: one that cannot be read, or two that do not go
 * together; the text names them. */
tn_status tni_kv_settings_read(const tni_context *c, bool async, tni_kv_settings *out);

/* ---- a worker ---- */

/* Opens the transport, finds the scheduler and waits until everybody has come.
 * TN_E_UNSUPPORTED: no plugin for the transport · TN_E_TIMEOUT: the scheduler, or the text's nodes, did not
 * come within kvstore.control_timeout · TN_E_PEER, TN_E_STATE: refused, and why */
tn_status tni_kv_process_join(tni_context *c, bool async, tni_kv_process **out);
/* Leaves the job (BYE), waits for what is under way, at most kvstore.control_timeout, and frees it. NULL is
 * fine. The status is that of leaving; the process is gone in any case. */
tn_status tni_kv_process_leave(tni_kv_process *p);
/* The same without a word: for the others it is a worker that was lost. NULL is fine. */
void tni_kv_process_end(tni_kv_process *p);

uint32_t tni_kv_process_rank(const tni_kv_process *p);
const tni_kv_settings *tni_kv_process_settings(const tni_kv_process *p); /* that it was opened with */
uint32_t tni_kv_process_workers(const tni_kv_process *p);                /* of the job */
uint32_t tni_kv_process_servers(const tni_kv_process *p);
uint32_t tni_kv_process_dead(const tni_kv_process *p,
                             uint32_t role); /* nodes of it that are silent or gone */
/* Barriers that the others had passed when this one took another's place; 0: it did not. */
uint32_t tni_kv_process_behind(const tni_kv_process *p);
/* The step from which to go on after a server came back; counts epochs. */
uint64_t tni_kv_process_cut(const tni_kv_process *p, uint32_t *epochs);
tn_status tni_kv_process_status(
    const tni_kv_process *p); /* TN_E_…: out of the job, the thread's error says why */

/* Called on the thread that has the machine; `st` other than TN_OK: that thread's error says why. It may
 * queue further calls, never wait. */
typedef void (*tni_kv_called)(void *arg, tn_status st);

/* [any thread] The machine's functions of these names, in the order of the calls. `called` comes exactly once
 * after TN_OK, also when the process ends (TN_E_CANCELLED); otherwise nothing was queued. */
tn_status tni_kv_process_request(tni_kv_process *p, const tni_kv_request *r, tni_kv_called called, void *arg);
tn_status tni_kv_process_key(tni_kv_process *p, uint32_t key, uint8_t dtype, uint64_t elements,
                             uint64_t element_bytes); /* waits for the machine's answer */
tn_status tni_kv_process_break(tni_kv_process *p, uint32_t round);
/* [any thread] The next round of `key` never comes from this worker: its step, by the key's rounds, is
 * broken. Never waits, takes no memory; calls that are queued behind come behind it. */
void tni_kv_process_fail(tni_kv_process *p, uint32_t key);
tn_status tni_kv_process_resume(tni_kv_process *p);
/* A request, and the wait for its end. */
tn_status tni_kv_process_call(tni_kv_process *p, const tni_kv_request *r);

#endif
