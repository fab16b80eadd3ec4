/**
 * The parameter store: values under keys, summed over devices and processes, and updated there.
 *
 * A step pushes gradients, one array per device; the store sums them in the order in which they are listed,
 * so the bits do not depend on which came first. With an optimizer or updater it changes the stored value by
 * the sum; else the sum becomes the value. A pull copies the value into the arrays of all devices. All of it
 * is queued: arrays can be used in further calls at once, only waits block.
 *
 * Types: `local` sums on the host, `device` where the first array of a list lies. `nccl` and those whose
 * names begin with dist_ need plugins; `dist_sync`, `dist_async`, and with _device the sum within a process
 * on its devices. A process alone has rank 0 of one worker, and no servers.
 *
 * Type `mpi`: each worker has all values, and sums go over the processes that mpirun or srun started, in
 * the order of ranks (kvstore.deterministic) or as MPI likes; there are no servers. All workers make all
 * calls alike. Worker 0's values of init and assign count. A worker that is lost, or whose gradient fails,
 * ends the job on all: their values have failed, with a text that names it. Type `nccl` is the same for GPUs:
 * a process sums over its own like `device`, and NCCL over processes; kvstore.rank and kvstore.workers, or a
 * launcher, say which one this is, and where nobody does it is alone.
 *
 * Dist types: values lie on servers, and several workers run the same program. `dist_sync` goes in rounds:
 * the pushes of all workers are summed in the order of ranks, and update the value once; under `dist_async`
 * each push does. Of a key all workers make the same calls in the same order, and so they do of init, assign,
 * set_optimizer, set_compression, load_states, set_state and barrier, where worker 0's values and numbers
 * count; in rounds its set_param does, too. A gradient leaves when it is there, and each key moves by whole
 * rounds: when a gradient fails, its key and those not pushed yet keep their values on all workers, whose
 * calls give TN_E_STATE with key and round until all assign. A gradient of rows travels as a whole array.
 */
#ifndef TENON_KV_H
#define TENON_KV_H

#include "array.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_kv tn_kv;

/* What a call does with one key. A list names a key once; keys of a store are all texts or all numbers. */
typedef struct tn_kv_item {
    const char *name; /* the key; NULL: it is `number` */
    int64_t number;
    int32_t priority; /* of its work: the highest goes first. Trainers take minus the layer's number */
    uint32_t value_count, out_count;
    uint32_t reserved;
    tn_array *const *values; /* that go in, in the order of devices */
    tn_array *const *outs;   /* that are written */
} tn_kv_item;

/**
 * Opens a store.
 *
 * @param type `local`, `device`, `nccl`, `mpi`, `dist_sync`, `dist_async`, `dist_sync_device`,
 *             `dist_async_device`; NULL: the option kvstore.type
 * @return TN_E_KEY: no such type; the text lists them · TN_E_UNSUPPORTED: a type whose plugin is not
 *         installed; the text names it · TN_E_TIMEOUT, TN_E_PEER: the others of the job do not answer
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_kv_create(tn_ctx *ctx, const char *type, tn_kv **out);

/** Closes it. Work that is queued goes on; servers stop when all workers have closed. NULL is fine.
 * @threads owner @since 0.1 */
TN_API void tn_kv_destroy(tn_kv *kv);

/* ---- values -------------------------------------------------------------------------------------- */

/**
 * Gives each key its first value: values[0], copied; of dist types, that of rank 0, and then all wait for
 * each other. Its shape, type and storage are those of the key from here on.
 *
 * @param items one value each, no outs; of dist types the same keys for all workers, in any order
 * @return TN_E_KEY, TN_E_SHAPE: another worker gives another key, shape or type; the text has both ·
 *         TN_E_KEY: a key that has a value already, or is listed twice; a number among texts, or a text among
 *         numbers · TN_E_UNSUPPORTED: a csr array. None of the list has a value then.
 * @threads owner
 * @since 0.1
 */
TN_API tn_status tn_kv_init(tn_kv *kv, uint32_t count, const tn_kv_item *items);

/**
 * Overwrites the values of keys that have one, as tn_kv_init does: after a file was loaded, and after a
 * failure, which is forgotten by this alone. States of the optimizer stay.
 *
 * @return TN_E_KEY: no such key; listed twice · TN_E_SHAPE, TN_E_DTYPE: a value that does not fit
 * @threads owner
 * @since 0.1
 */
TN_API tn_status tn_kv_assign(tn_kv *kv, uint32_t count, const tn_kv_item *items);

/**
 * Sums the values of each key, and updates what is stored by the sum.
 *
 * A failure on the way (of a gradient, a peer) leaves the values of all keys of the call as they were: none
 * moves by half a step. It comes out at what pulls write from then on, until tn_kv_assign. Of dist types all
 * workers get it, with key and round.
 *
 * @param items at least one value each, of the key's shape and type; no outs
 * @return TN_E_KEY: no such key; listed twice · TN_E_SHAPE, TN_E_DTYPE: a value that does not fit ·
 *         TN_E_UNSUPPORTED: a sparse value for a dense key; compression of what is not dense and float32 ·
 *         TN_E_DEVICE: sparse values that do not lie on cpu:0. No value moves then.
 * @threads owner
 * @since 0.1
 */
TN_API tn_status tn_kv_push(tn_kv *kv, uint32_t count, const tn_kv_item *items);

#define TN_KV_SPARSE 1u /* of row_sparse keys, too; without it they are passed over */

/**
 * Copies the value of each key into `outs`: any devices, any types (cast). It is the value behind this
 * worker's earlier pushes of the key.
 *
 * @param flags 0 or TN_KV_SPARSE
 * @param items at least one out each, dense, of the key's shape; no values
 * @return TN_E_KEY: no such key · TN_E_SHAPE · TN_E_ARG: an unknown flag. Nothing was queued then.
 * @threads owner
 * @since 0.1
 */
TN_API tn_status tn_kv_pull(tn_kv *kv, uint32_t flags, uint32_t count, const tn_kv_item *items);

/**
 * Goes on where a lost worker was, in whose place this one is (type dist_sync, kvstore.on_worker_loss = wait,
 * an optimizer in the store): brings the values as they were behind the last step that all keys have made.
 * The next push of each key is the step behind it; servers drop it where the lost worker has pushed it.
 * Waits.
 *
 * Call it once, with all keys that are pushed in a step, when they have their first values and the store its
 * optimizer. A worker that has called it and leaves without a push or tn_kv_end is lost, as the one before
 * it: the others do not go on without it, unless kvstore.on_worker_loss says so. It does nothing where this
 * worker took nobody's place, and of other types.
 *
 * @param items as of tn_kv_pull
 * @param steps how many steps those were; 0: begin with the first one
 * @return statuses of tn_kv_pull · TN_E_UNSUPPORTED: no optimizer in the store, so parameters are lost with
 *         the worker · TN_E_STATE: a value was assigned since · TN_E_TIMEOUT, TN_E_PEER
 * @threads owner
 * @since 0.1
 */
TN_API tn_status tn_kv_rejoin(tn_kv *kv, uint32_t count, const tn_kv_item *items, uint64_t *steps);

/** A push, then a pull of the same keys: of dist types in one round trip. Statuses of both. @threads owner
 * @since 0.1 */
TN_API tn_status tn_kv_pushpull(tn_kv *kv, uint32_t count, const tn_kv_item *items);

/** tn_kv_init of `values`, then a pull into `outs`. Statuses of both. @threads owner @since 0.1 */
TN_API tn_status tn_kv_broadcast(tn_kv *kv, uint32_t count, const tn_kv_item *items);

/**
 * Rows of row_sparse keys: for each array of ids a row_sparse array that holds the rows it names, each once,
 * in rising order. A row of zeros is held, too.
 *
 * @param items `values` are the ids: dense vectors of any type, which are waited for; no outs
 * @param out   one for each array of ids of all items; new, on cpu:0, yours
 * @return TN_E_ARG: an id that is out of range · TN_E_UNSUPPORTED: the key is not row_sparse, ids that are no
 *         dense vector · TN_E_KEY · TN_E_NOMEM
 * @threads owner
 * @since 0.1
 */
TN_API tn_status tn_kv_row_sparse_pull(tn_kv *kv, uint32_t count, const tn_kv_item *items, tn_array **out);

/* ---- updates ------------------------------------------------------------------------------------- */

/**
 * The store updates values by this optimizer from the next push on: its states and factors begin anew. Its
 * name and numbers, no code, go to servers; there the same operators run.
 *
 * @param name   sgd nag adam signum rmsprop ftrl adagrad adadelta adamax nadam ftml dcasgd lamb lars; NULL:
 *               none, sums are stored
 * @param params pairs of name and number, NULL-ended: lr, wd, rescale_grad, clip_gradient, multi_precision
 *               (1: of each value of float16 or bfloat16 a float32 copy is updated, and is its last state;
 *               others are updated as they are), and those of the optimizer by MXNet's names: momentum,
 *               beta1, epsilon, gamma1, … NULL: MXNet's defaults
 * @return TN_E_UNSUPPORTED: lamb or lars, and an array of a dist type that is cut over servers · TN_E_KEY:
 *         no such optimizer; the text lists them · TN_E_ATTR: a parameter that it does not have, or out of
 *         range · TN_E_STATE: there is an updater
 * @threads owner
 * @since 0.1
 */
TN_API tn_status tn_kv_set_optimizer(tn_kv *kv, const char *name, const char *const *params);

/**
 * Changes a parameter of the optimizer that may change from step to step: lr, wd, rescale_grad. It counts for
 * pushes from here on, also on servers.
 *
 * @param key one that has a value: only for this key, lr_mult and wd_mult, which are factors, or steps, which
 *            it has had; only its key is looked at. NULL: for all
 * @return TN_E_STATE: no optimizer · TN_E_ATTR: no such parameter, or a value out of range · TN_E_KEY
 * @threads owner
 * @since 0.1
 */
TN_API tn_status tn_kv_set_param(tn_kv *kv, const tn_kv_item *key, const char *param, double value);

/** Changes `stored` by `merged`, the sum of a push: by work that it queues, on the thread of the push. Both
 * are borrowed. Of `key` only the key is set. A status other than TN_OK ends the push and is what it returns:
 * keys of the list before this one are updated, those behind it are not. */
typedef tn_status (*tn_kv_updater_fn)(void *arg, const tn_kv_item *key, tn_array *merged, tn_array *stored);

/** Instead of an optimizer, a function of the program. NULL: none. TN_E_UNSUPPORTED: a dist type, whose
 * servers take no code · TN_E_STATE: there is an optimizer. @threads owner @since 0.1 */
TN_API tn_status tn_kv_set_updater(tn_kv *kv, tn_kv_updater_fn fn, void *arg);

/**
 * Writes the optimizer's states of all keys, and how many steps each had, into a .params file; of dist types
 * those of all servers. Waits.
 *
 * @return TN_E_STATE: no optimizer · the failure of a key · as tn_params_save
 * @threads owner
 * @since 0.1
 */
TN_API tn_status tn_kv_save_states(tn_kv *kv, const char *path);

/** Takes them back: all or none. TN_E_STATE: no optimizer; TN_E_FORMAT: not such a file, or of other keys,
 * shapes or another optimizer. @threads owner @since 0.1 */
TN_API tn_status tn_kv_load_states(tn_kv *kv, const char *path);

/**
 * A state of a key's optimizer, to be read and saved by the caller; yours. Zeros before the first push.
 *
 * @param index 0 to the optimizer's number of states less 1
 * @param steps how many pushes have updated the key; may be NULL
 * @return TN_E_STATE: no optimizer · TN_E_KEY: no such key · TN_E_ARG: index too large. Of dist types it is
 *         what the servers have now; waits.
 * @threads owner
 * @since 0.1
 */
TN_API tn_status tn_kv_state(tn_kv *kv, const tn_kv_item *key, uint32_t index, tn_array **out,
                             uint64_t *steps);

/**
 * Takes states of a key's optimizer back; of dist types all workers call it, and worker 0's count. Waits
 * there.
 *
 * @param key   `values`: its states, as many as the optimizer has, of the key's shape; no outs
 * @param steps how many pushes have updated it
 * @return TN_E_STATE: no optimizer · TN_E_KEY: no such key · TN_E_ARG: another number of states ·
 *         TN_E_SHAPE
 * @threads owner
 * @since 0.1
 */
TN_API tn_status tn_kv_set_state(tn_kv *kv, const tn_kv_item *key, uint64_t steps);

/**
 * Compresses gradients from the next push on, float32 and dense ones only. What is rounded away is kept, and
 * added to the next gradient of the same key and device.
 *
 * @param params pairs, NULL-ended: type `2bit` (each number becomes -threshold, 0 or threshold) or `1bit` (-1
 *               or 1: by whether it is above the threshold); threshold, a number, 0.5 unless given, above 0
 *               for `2bit`
 * @return TN_E_ATTR: no such parameter or type, a threshold out of range · TN_E_UNSUPPORTED: type `local`,
 *         which sums where nothing has to travel · TN_E_STATE: it is set already
 * @threads owner
 * @since 0.1
 */
TN_API tn_status tn_kv_set_compression(tn_kv *kv, const char *const *params);

/* ---- the others ---------------------------------------------------------------------------------- */

typedef struct tn_kv_info {
    uint32_t struct_size; /* set by the caller: TN_SIZE(tn_kv_info) */
    uint32_t rank, workers, servers;
    uint64_t keys;    /* that have a value, of this worker */
    const char *type; /* as in tn_kv_create; constant */
} tn_kv_info;

/** What it is. TN_E_ARG: struct_size 0. @threads any @since 0.1 */
TN_API tn_status tn_kv_info_get(tn_kv *kv, tn_kv_info *out);

#define TN_KV_SCHEDULER 1u
#define TN_KV_SERVERS 2u
#define TN_KV_WORKERS 4u

/** How many processes of `groups`, a sum of TN_KV_…, have been silent for `timeout_ms` (0: the option
 * kvstore.dead). TN_E_ARG: another bit. @threads any @since 0.1 */
TN_API tn_status tn_kv_dead_nodes(tn_kv *kv, uint32_t groups, uint32_t timeout_ms, uint32_t *count);

/** Waits until all workers are here; at once where there is one. TN_E_TIMEOUT, TN_E_PEER: the text names who
 * is missing. @threads owner @since 0.1 */
TN_API tn_status tn_kv_barrier(tn_kv *kv);

/**
 * Says that no push of this worker follows, and waits until all workers have said so: the values are those of
 * all from then on. Under kvstore.uneven = join rounds of the others are complete without this worker; under
 * drop there are none behind its last one. At once where there is one worker.
 *
 * @return TN_E_TIMEOUT, TN_E_PEER: the text names who has not
 * @threads owner
 * @since 0.1
 */
TN_API tn_status tn_kv_end(tn_kv *kv);

/**
 * The drift check: compares parameters of all workers, and of the devices of each, bit for bit, in each
 * round that the option kvstore.drift_check divides; does nothing in others, and never where that is 0.
 * Trainers call it. Waits for the arrays; all workers call it with the same round and keys, between the same
 * pushes.
 *
 * @param round of the caller's own count
 * @param items `values`: dense arrays of any type; several are copies on devices. Keys are for the text, so
 *              the store need not have them; no outs
 * @return TN_E_STATE: they differ; the text names the first key that does, the round and the workers. All
 *         workers get it · TN_E_ARG: no array · TN_E_UNSUPPORTED: a sparse one · the failure of an array
 * @threads owner
 * @since 0.1
 */
TN_API tn_status tn_kv_check_drift(tn_kv *kv, uint64_t round, uint32_t count, const tn_kv_item *items);

/** Hands a command of the program to all servers, and waits until they have it; nothing where there are none.
 * @param head 0 to 2147483647 @param body text, at most 65536 bytes. TN_E_ARG. @threads owner @since 0.1 */
TN_API tn_status tn_kv_command(tn_kv *kv, int32_t head, const char *body);

/* Head of what is no command: `body` is "HOST:PORT" of the scheduler, once it listens. */
#define TN_KV_LISTENS (-1)

/** A server's function for commands, and a scheduler's for TN_KV_LISTENS: on a thread of the store. */
typedef void (*tn_kv_command_fn)(void *arg, int32_t head, const char *body);

/**
 * Is what the option kvstore.role (DMLC_ROLE) says, until the job ends: a server or the scheduler. A worker
 * returns at once.
 *
 * @param fn  may be NULL
 * @param ran 1: it was a server or the scheduler, and the job has ended, so the program does; 0: a worker
 * @return TN_E_UNSUPPORTED: the plugin is not installed; the text names it · TN_E_ATTR: options that
 *         contradict each other · TN_E_TIMEOUT, TN_E_PEER: how the job failed · TN_E_IO: the port is
 *         taken, a file cannot be written
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_kv_run_role(tn_ctx *ctx, tn_kv_command_fn fn, void *arg, int32_t *ran);

/**
 * Asks a running job how it is, as a process that is no member of it: its scheduler by the options
 * kvstore.scheduler, scheduler_port, transport and secret_file of the context, and through it all servers and
 * workers, also while they wait for each other.
 *
 * @param timeout_ms longest wait for all answers; 0: 5,000
 * @param json       yours (tn_free): an object with the view (job, view, workers, servers, started, failed,
 *                   failed_by, ...), `about` (type and help of the numbers) and `nodes`, the scheduler
 *                   first. Of each: node, state, heard_ms (ago, by the scheduler), answered, and if so
 *                   `numbers`, `times_us` (count, sum, max, p50, p90, p99 to two digits) and `waits`: for,
 *                   state, key, part, round, at, who, missing, age_ms, heard_ms; at most 64, of the
 *                   `waiting` that there are
 * @return TN_E_TIMEOUT: the scheduler has not answered · TN_E_UNSUPPORTED: no plugin for the transport ·
 *         TN_E_ATTR: options that contradict each other · TN_E_FORMAT: no scheduler speaks there
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_kv_report(tn_ctx *ctx, uint32_t timeout_ms, char **json);

#ifdef __cplusplus
}
#endif

#endif
