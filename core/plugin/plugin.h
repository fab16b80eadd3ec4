/*
 * The interface of room plugin: find, check, load and list plugins; answer which capabilities there are.
 *
 * Nothing of a file runs before note.c has read its note and refuse.c has passed it. Nothing is ever
 * unloaded.
 */
#ifndef TN_PLUGIN_H
#define TN_PLUGIN_H

#include "base/base.h"
#include "tenon/plugin/transport.h"

/* ---- note.c: the ELF reader. Every offset is checked against the size; `provides` alone is allocated --- */

typedef struct tni_note {
    tn_note_body body;
    char *provides;    /* NULL: the note was not read, or says nothing */
    char build_id[65]; /* hexadecimal, "" if there is none */
    uint32_t flags;    /* TNI_NOTE_… */
} tni_note;
#define TNI_NOTE_STATIC_TLS 1u
tn_status tni_note_read_memory(const void *bytes, uint64_t count, const char *name,
                               tni_note *out); /* L03, L04 … */
tn_status tni_note_read(int fd, const char *name, tni_note *out);
void tni_note_clear(tni_note *note);
/* Parses "kernels@cpu pool:round": true if the list has `kind` and `id` ("kernels", "cpu"). "op:acme_*" has
 * every operator whose name begins so. */
bool tni_note_provides(const tni_note *note, const char *kind, const char *id);

/* ---- registry.c: all candidates of a context ------------------------------------------------- */

#define TNI_PLUGIN_REFUSED 0 /* `code` and `reason` say why */
#define TNI_PLUGIN_READY 1   /* checked, not loaded */
#define TNI_PLUGIN_LOADED 2
#define TNI_PLUGIN_FAILED 3 /* refused after dlopen (L11 to L14) */

/* The state is written last: whoever read it finds what it speaks of complete, never to change again. */
typedef struct tni_plugin {
    const char *path;
    tni_note note;
    atomic_int state;            /* read by tni_plugin_state */
    uint32_t code;               /* REFUSED, FAILED: 5 is L05; 0: none */
    char reason[512];            /* REFUSED, FAILED */
    const tn_plugin *descriptor; /* LOADED; so are all below */
    void *self;                  /* what init gave */
    tn_host host;
    void *internal;
} tni_plugin;

static inline int32_t tni_plugin_state(const tni_plugin *p)
{
    return atomic_load_explicit(&p->state, memory_order_acquire);
}

/* Then code and reason hold. */
static inline bool tni_plugin_unusable(const tni_plugin *p)
{
    const int32_t state = tni_plugin_state(p);

    return state == TNI_PLUGIN_REFUSED || state == TNI_PLUGIN_FAILED;
}

typedef struct tni_registry tni_registry;

/* Scans the folders of plugins.path and <dir of libtenon.so>/tenon/plugins-1; reads notes only. Loads what
 * plugins.require names; an absent one is TN_E_DEVICE with every candidate and its reason. */
tn_status tni_registry_create(tni_options *options, const tni_log *log, tni_registry **out);
/* Calls fini of every loaded plugin, last loaded first. The engine must be gone. */
void tni_registry_destroy(tni_registry *r);
/* A folder that was searched, by index in its order; `files`: candidates in it. False at the end. */
bool tni_registry_folder(const tni_registry *r, size_t index, const char **path, bool *opened, size_t *files);
size_t tni_registry_count(const tni_registry *r);
tni_plugin *tni_registry_at(const tni_registry *r, size_t index); /* sorted by name, refused ones last */
tni_plugin *tni_registry_find(const tni_registry *r, const char *name);
tn_status tni_plugin_load(tni_registry *r, tni_plugin *p); /* loaded already: TN_OK. [load] */
/* One file, by its absolute path, with all checks of a scan: then it is a candidate like the others. It takes
 * the place of one that has its name and was not loaded. Refused: nothing has changed. */
tn_status tni_registry_open(tni_registry *r, const char *path, tni_plugin **out);
/* Loads every permitted plugin whose note provides (kind, id), e.g. ("kernels", "cpu"), ("device", "fake"),
 * ("pool", "round"), ("op", NULL = any). None at all is TN_OK: the caller knows what it misses. */
tn_status tni_registry_load_providers(tni_registry *r, const char *kind, const char *id);
/* Capabilities of loaded plugins: index from 0, false at the end; order: plugin name, then table order. */
bool tni_registry_capability(const tni_registry *r, uint32_t kind, size_t index, const tn_capability **table,
                             tni_plugin **plugin);
/* The transport `id` ("zmq") of a plugin, which is loaded for it. TN_E_UNSUPPORTED with TN-1401: none here
 * has it; the text says why not and which there are. */
tn_status tni_registry_transport(tni_registry *r, const char *id, const tn_transport_ops **ops,
                                 tni_plugin **plugin);
/* The same of any kind whose tables are found by their id: whole, as tni_refuse_… asks of the kind. */
tn_status tni_registry_table(tni_registry *r, uint32_t kind, const char *id, const tn_capability **out,
                             tni_plugin **plugin);
/* A plugin that lives inside the program (tests): runs the same checks of the descriptor, no file. */
tn_status tni_registry_add_static(tni_registry *r, const tn_plugin *descriptor, tni_plugin **out);
/* fork(): calls the plugins' fork functions. */
void tni_registry_fork(tni_registry *r, uint32_t phase);
/* A line of the log, for rooms above that leave out what a plugin brings. */
void tni_registry_warn(const tni_registry *r, const char *text);
/* Changes whenever a plugin was loaded: caches of capabilities compare it. */
uint64_t tni_registry_generation(const tni_registry *r);
/* Changes with plugins that bring operators, kernels, devices or passes: caches of what was chosen compare
 * it. */
uint64_t tni_registry_choices(const tni_registry *r);
/* A room above offers plugins a table of its own; `table` outlives the registry.
 * TN_E_KEY: the id is taken. */
tn_status tni_registry_add_service(tni_registry *r, const tn_service *table);
/* Memory that a plugin took through its host and holds. */
void tni_plugin_memory(const tni_plugin *p, uint64_t *bytes, uint64_t *blocks);

/* ---- names.c: what a configuration calls plugins ------------------------------------------------ */

#define TNI_PLUGIN_WHY_BYTES 400
/* True if no plugin of this name can be used; `why` tells, with names that are near. */
bool tni_registry_lacks(const tni_registry *r, const char *name, char why[TNI_PLUGIN_WHY_BYTES]);
/* Whether a plugin here, refused or not, is for devices of this type; the host's is always. */
bool tni_registry_has_device(const tni_registry *r, const char *type);

/* ---- libraries.c: what a file needs, read from the file ----------------------------------------- */

#define TNI_LIBRARY_BYTES 256 /* name of a library or symbol */
typedef struct tni_library {
    char name[TNI_LIBRARY_BYTES];
    char *path; /* where the linker would find it; NULL: nowhere */
} tni_library;
tn_status tni_plugin_libraries(tni_registry *r, tni_plugin *p, const tni_library **out, size_t *count);
/* Rows of the option table of a loaded plugin, without prefix. */
const tni_option_def *tni_plugin_options(const tni_plugin *p, size_t *count);
int64_t tni_plugin_size(const tni_plugin *p); /* bytes of the file; 0: not known */

/* ---- refuse.c -------------------------------------------------------------------------------- */

bool tni_isa_present(const char *isa);    /* "" or NULL: nothing needed; unknown names: false */
const char *tni_kind_name(uint32_t kind); /* as in `provides`: "kernels"; NULL: unknown */

#endif
