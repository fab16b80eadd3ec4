/*
 * What a server or scheduler keeps in the folder of kvstore.state_folder: files
 * JOB-server-RANK-STEP.snapshot and JOB-scheduler.journal, the job's number in 16 hexadecimal digits. A
 * server owns its snapshots once it has claimed them, a scheduler the journal once it has opened it: what
 * writes as a process that had them before fails with TN_E_PEER. disk.c says what that does not cover.
 */
#ifndef TN_KV_DISK_H
#define TN_KV_DISK_H

#include "kv/protocol.h"

typedef struct tni_kv_disk tni_kv_disk;

/* Makes the folder, and finds the newest two snapshots of this rank that are whole; `steps`: theirs, newest
 * first. Nothing is written or removed before the table's `claim`, and older and damaged ones stay until a
 * new one is written. TN_E_IO, TN_E_NOMEM. */
tn_status tni_kv_disk_snapshots(const char *folder, uint64_t job, uint32_t rank, const tni_log *log,
                                uint64_t steps[2], tni_kv_disk **out);
tni_kv_snapshots tni_kv_disk_table(tni_kv_disk *d);
/* Claims the journal. `text`: what is in it, without what a crash left half written at its end; borrowed
 * until closed. TN_E_IO, TN_E_NOMEM, TN_E_FORMAT: it is too long; TN_E_STATE: a scheduler of this machine has
 * it, nothing was changed. A lock that cannot be had otherwise is a warning in `log`. */
tn_status tni_kv_disk_journal(const char *folder, uint64_t job, const tni_log *log, tni_kv_journal *out,
                              const void **text, uint64_t *bytes, tni_kv_disk **disk);
void tni_kv_disk_close(tni_kv_disk *d); /* NULL is fine */

#endif
