/* What the files of room plugin share. */
#ifndef TN_PLUGIN_INTERNAL_H
#define TN_PLUGIN_INTERNAL_H

#include <sys/types.h>

#include "plugin/plugin.h"

#define TNI_ENTRY "tn_plugin_v1"
#define TNI_REFUSAL_BASE 3000u    /* TN number of L01 is 3001 */
#define TNI_CAPABILITIES_MAX 1024 /* tables of one plugin */
#define TNI_OPTION_ROWS_MAX 1024  /* options of one plugin */

/* What this core accepts; tests put other numbers in. */
typedef struct tni_abi_range {
    uint32_t magic, major, minor, floor; /* floor: the lowest minor still supported */
} tni_abi_range;

typedef struct tni_trust {
    uid_t owners[3]; /* root, us, the owner of libtenon.so */
    bool check;      /* plugins.trust = owner */
    bool has_group;
    gid_t group; /* members of it may write */
} tni_trust;

/* refuse.c: an error whose number says which refusal it is. Returns `status`. */
tn_status tni_refuse(uint32_t code, tn_status status, const char *format, ...) TN_PRINTF(3, 4);
uint32_t tni_refusal_code(void); /* of this thread's error; 0: it is none */
const tni_abi_range *tni_abi_of_core(void);
tn_status tni_refuse_note(const tni_note *note, const tni_abi_range *range); /* L04 to L08 */
tn_status tni_refuse_descriptor(const tn_plugin *d, const tni_note *note,
                                const tni_abi_range *range); /* L13 */
/* tables.c: L13 */
tn_status tni_refuse_kernels(const tn_capability *head, const tn_note_body *b);
tn_status tni_refuse_ops(const tn_capability *head, const tn_note_body *b);
tn_status tni_refuse_archive(const tn_capability *head, const tn_note_body *b);
tn_status tni_refuse_transport(const tn_capability *head, const tn_note_body *b);
tn_status tni_refuse_collective(const tn_capability *head, const tn_note_body *b);
tn_status tni_refuse_image(const tn_capability *head, const tn_note_body *b);
/* Copies this thread's error with the advice of its row, as a candidate's reason. */
void tni_refusal_reason(char *out, size_t size);
tn_status tni_note_check_texts(const tn_note_body *body);

/* trust.c: L01, L02 */
tn_status tni_trust_create(const tni_options *options, const char *library, tni_trust *out);
tn_status tni_trust_folder(const tni_trust *trust,
                           const char *folder); /* absolute, resolved; with all its parents */
tn_status tni_trust_file(const tni_trust *trust, const char *path, int fd);

/* services.c */
typedef struct tni_services {
    tni_options *options;
    const tni_log *log;
    const tni_option_def *rows; /* of the plugin's option table */
    size_t row_count;
    char name[TN_NOTE_NAME_BYTES];
    atomic_llong bytes, blocks; /* that the plugin holds */
    atomic_int threads;
    tni_registry *registry;
} tni_services;
void tni_services_host(tni_services *s, tn_host *out);
const tn_service *tni_registry_service(tni_registry *r, const char *id); /* of a room above; NULL: none */

/* What a tni_plugin's `internal` points to. */
typedef struct tni_plugin_internal {
    tni_services services;
    char *path;
    uint64_t device, inode;              /* of the file */
    int64_t size, changed_s, changed_ns; /* of the file when it was checked last */
    tni_option_def *rows;                /* services.rows */
    tni_library *libraries;              /* NULL: not looked at yet */
    size_t library_count;
    bool permitted;         /* by plugins.load */
    const tn_plugin *fixed; /* of tni_registry_add_static */
} tni_plugin_internal;

static inline tni_plugin_internal *tni_plugin_internal_of(const tni_plugin *p)
{
    return p->internal;
}

/* Under the registry's lock, or while nobody else knows `p`; what the state speaks of is written before. */
static inline void tni_plugin_turn(tni_plugin *p, int32_t state)
{
    atomic_store_explicit(&p->state, state, memory_order_release);
}

struct tni_registry {
    tni_options *options;
    tni_log log;
    tni_trust trust;
    tni_mutex lock;
    tni_cond changed;
    uint64_t loading
        TN_GUARDED_BY(lock); /* thread that loads a plugin; 0: none. No lock is held while it does */
    tni_vec plugins TN_GUARDED_BY(lock);  /* tni_plugin *: usable ones by name, then refused ones by path */
    tni_vec loaded TN_GUARDED_BY(lock);   /* tni_plugin *: in the order of loading */
    tni_vec tables TN_GUARDED_BY(lock);   /* tni_table: by plugin name, then in the order of the plugin */
    tni_vec services TN_GUARDED_BY(lock); /* const tn_service * */
    tni_vec folders;                      /* tni_folder: those that were searched; fixed after the scan */
    atomic_ullong generation, choices;
    atomic_uint opened; /* by their files, since the scan: each moved others in the list */
};

typedef struct tni_folder {
    char *path;
    bool opened;
} tni_folder;

typedef struct tni_table {
    const tn_capability *head;
    tni_plugin *plugin;
} tni_table;

/* libraries.c */
void tni_libraries_free(tni_library *list, size_t count);

/* scan.c */
tn_status tni_plugin_create(tni_registry *r, const char *path, tni_plugin **out);
void tni_plugin_destroy(tni_plugin *p);
tn_status tni_registry_scan(tni_registry *r);
void tni_registry_sort(tni_registry *r);
/* require.c: loads what plugins.require names; L17. */
tn_status tni_registry_require(tni_registry *r);
/* Everything that is asked of a file but its folder: on TN_OK `p` has its note, its file's number and whether
 * plugins.load permits it. */
tn_status tni_plugin_check(tni_registry *r, tni_plugin *p);
/* Opens, trusts and reads the file of `p` again: TN_OK if it is still the one that was scanned. */
tn_status tni_plugin_recheck(tni_registry *r, tni_plugin *p);
/* True if the file of `p` is the one that was checked last, unchanged. */
bool tni_plugin_unchanged(const tni_plugin *p);

/* room.c: TN_E_NOMEM (L11) if a library of the plugin would never return from its start, for want of address
 * space. */
tn_status tni_plugin_room(tni_registry *r, tni_plugin *p);
bool tni_registry_permits(const tni_registry *r, const char *name); /* plugins.load */
const char *tni_library_path(char *out, size_t size); /* of libtenon.so, or the program it is linked into */

/* True if a refused candidate is, by its note or its file's name, the plugin `name`. */
bool tni_plugin_may_be(const tni_plugin *p, const char *name);

/* names.c: "; did you mean …?" among the plugins that can be used or that plugins.load leaves out; or "". */
void tni_registry_suggest(const tni_registry *r, const char *name, char *out, size_t size);
/* TN_E_KEY for a section [memory.D] or a key Op@D of a device type that neither options.list nor
 * a note names. */
tn_status tni_registry_check_devices(const tni_registry *r);

/* load.c: everything from dlopen to init, with no lock held. On failure `code` and `reason` of `p` say why if
 * it is the plugin's fault; else the status alone tells. */
tn_status tni_plugin_start(tni_registry *r, tni_plugin *p);

#endif
