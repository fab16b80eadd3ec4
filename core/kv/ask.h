/* Questions to a job by a process that is no member of it (ask.c). */
#ifndef TN_KV_ASK_H
#define TN_KV_ASK_H

#include "kv/post.h"

/* Asks the scheduler (of the setup's job; 0: of any), and through it all members, and writes what they say as
 * one JSON object. Members that have not answered within `timeout_ns` are told as such.
 * TN_E_TIMEOUT: the scheduler has not answered · TN_E_FORMAT: it says what no scheduler says */
tn_status tni_kv_ask_with(tni_kv_setup *setup, uint64_t timeout_ns, tni_str *out);

#endif
