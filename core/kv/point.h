/*
 * The points of the protocol at which a process is killed or stopped by tests (reliability.md 4.2): 12 of the
 * scheduler, 18 of a server, 14 of a worker. In the test build each is a failpoint, and the simulator hangs
 * itself in; other builds have none of it.
 *
 * X(role, name, failpoint, what, remark): the failpoint is what a real process is stopped by; a remark says
 * what stands for a step that this design does not have.
 */
#ifndef TN_KV_POINT_H
#define TN_KV_POINT_H

#define TNI_KV_POINTS_OF_SCHEDULER(X)                                                                        \
    X(SCHEDULER, bound, "kv.bound", "bound", "")                                                             \
    X(SCHEDULER, peer_known, "kv.peer_known", "peer authenticated", "its token came back")                   \
    X(SCHEDULER, recorded, "kv.recorded", "registration recorded", "in memory: the journal has views")       \
    X(SCHEDULER, assigned, "kv.assigned", "ranks assigned, unsent", "")                                      \
    X(SCHEDULER, assigned_half, "kv.assigned_half", "assignment half sent", "")                              \
    X(SCHEDULER, barrier_short, "kv.barrier_short", "barrier k-1 of k", "")                                  \
    X(SCHEDULER, release_half, "kv.release_half", "barrier release half sent", "")                           \
    X(SCHEDULER, node_dead, "kv.node_dead", "node declared dead", "")                                        \
    X(SCHEDULER, view_written, "kv.view_written", "epoch written, unsynced", "a view's record")              \
    X(SCHEDULER, view_synced, "kv.view_synced", "epoch synced, unannounced", "a view's record")              \
    X(SCHEDULER, plan_sent, "kv.plan_sent", "recovery plan sent", "the view with the step to go on from")    \
    X(SCHEDULER, shutdown_half, "kv.shutdown_half", "shutdown half sent", "the view that says so")
#define TNI_KV_POINTS_OF_SERVER(X)                                                                           \
    X(SERVER, registered, "kv.registered", "registered", "")                                                 \
    X(SERVER, init_in, "kv.init_in", "init received", "")                                                    \
    X(SERVER, init_stored, "kv.init_stored", "init stored, unacked", "")                                     \
    X(SERVER, push_header, "kv.push_header", "push header in", "the body is there, not looked at")           \
    X(SERVER, push_half, "kv.push_half", "push body half in", "machines get whole parts: one of several")    \
    X(SERVER, some_in, "kv.some_in", "k of n pushes buffered", "")                                           \
    X(SERVER, all_in, "kv.all_in", "all n in, unreduced", "the last one; the others are summed up")          \
    X(SERVER, reduced, "kv.reduced", "reduced, not applied", "")                                             \
    X(SERVER, update_half, "kv.update_half", "update half applied", "real: in front of the operator's call") \
    X(SERVER, applied, "kv.applied", "applied, not logged", "unanswered: there is no log of pushes")         \
    X(SERVER, logged, "kv.logged", "logged, unsynced", "no such log: a snapshot's text is made")             \
    X(SERVER, log_synced, "kv.log_synced", "synced, unacked", "no such log: a snapshot's answer is unsent")  \
    X(SERVER, acks_half, "kv.acks_half", "acks half sent", "")                                               \
    X(SERVER, pull_half, "kv.pull_half", "pull reply half sent", "one of several parts")                     \
    X(SERVER, temp_written, "writer_sync", "snapshot temp written", "")                                      \
    X(SERVER, synced, "writer_rename", "snapshot synced, not renamed", "")                                   \
    X(SERVER, renamed, "writer_renamed", "renamed, folder unsynced", "")                                     \
    X(SERVER, trimmed, "kv.trimmed", "log trimmed", "no such log: the third snapshot is removed")
#define TNI_KV_POINTS_OF_WORKER(X)                                                                           \
    X(WORKER, joined, "kv.joined", "registered", "")                                                         \
    X(WORKER, init_pushed, "kv.init_pushed", "init pushed", "")                                              \
    X(WORKER, in_barrier, "kv.in_barrier", "in barrier", "")                                                 \
    X(WORKER, forward, "kv.forward", "forward done", "by the program")                                       \
    X(WORKER, backward, "kv.backward", "backward done", "by the program")                                    \
    X(WORKER, push_part, "kv.push_part", "push i of m sent", "")                                             \
    X(WORKER, all_sent, "kv.all_sent", "all sent, none acked", "")                                           \
    X(WORKER, half_acked, "kv.half_acked", "half acked", "")                                                 \
    X(WORKER, pull_asked, "kv.pull_asked", "pull asked", "")                                                 \
    X(WORKER, pull_in_half, "kv.pull_in_half", "pull half in", "")                                           \
    X(WORKER, installed, "kv.installed", "weights installed, step not counted", "")                          \
    X(WORKER, save_asked, "kv.save_asked", "checkpoint temp", "servers write it: asked for")                 \
    X(WORKER, save_half, "kv.save_half", "checkpoint renamed, manifest old", "one server has it, one not")   \
    X(WORKER, leave_sent, "kv.leave_sent", "leave sent", "")
#define TNI_KV_POINTS(X) TNI_KV_POINTS_OF_SCHEDULER(X) TNI_KV_POINTS_OF_SERVER(X) TNI_KV_POINTS_OF_WORKER(X)

#define TNI_KV_POINT_NAME(role, name, failpoint, what, remark) TNI_KV_AT_##name,
typedef enum tni_kv_at { TNI_KV_AT_NONE, TNI_KV_POINTS(TNI_KV_POINT_NAME) TNI_KV_AT_END } tni_kv_at;

#ifdef TN_TEST_SWITCHES
extern void (*tni_kv_point)(tni_kv_at at);  /* at first the failpoint of that name */
extern _Thread_local tni_kv_at tni_kv_half; /* where a call is whose answers go to several nodes */
#define TNI_KV_POINT_IF(condition, name)                                                                     \
    do {                                                                                                     \
        if (condition)                                                                                       \
            tni_kv_point(TNI_KV_AT_##name);                                                                  \
    } while (0)
#define TNI_KV_POINT_HALF(name) ((void)(tni_kv_half = TNI_KV_AT_##name))
#else
#define TNI_KV_POINT_IF(condition, name) ((void)(0 && (condition)))
#define TNI_KV_POINT_HALF(name) ((void)0)
#endif
#define TNI_KV_POINT(name) TNI_KV_POINT_IF(true, name)

#endif
