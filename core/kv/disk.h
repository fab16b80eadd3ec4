/*
 * What a server or scheduler keeps in the folder of kvstore.state_folder: files
 * JOB-server-RANK-STEP.snapshot and JOB-scheduler.journal, the job's number in 16 hexadecimal digits. Who
 * opens them owns them from then on: a process that had them before writes, renames and removes nothing any
 * more (TN_E_PEER), whatever it was about to do.
 */
#ifndef TN_KV_DISK_H
#define TN_KV_DISK_H

#include "kv/protocol.h"

typedef struct tni_kv_disk tni_kv_disk;

/* Makes the folder, and finds the newest two snapshots of this rank that are whole; `steps`: theirs, newest
 * first. Older and damaged ones stay until a new one is written. */
tn_status tni_kv_disk_snapshots(const char *folder, uint64_t job, uint32_t rank, const tni_log *log,
                                uint64_t steps[2], tni_kv_disk **out);
tni_kv_snapshots tni_kv_disk_table(tni_kv_disk *d);
/* The journal with its text, from which what a crash left at its end is cut. Borrowed until closed. */
tn_status tni_kv_disk_journal(const char *folder, uint64_t job, tni_kv_journal *out, const void **text,
                              uint64_t *bytes, tni_kv_disk **disk);
void tni_kv_disk_close(tni_kv_disk *d); /* NULL is fine */

#endif
