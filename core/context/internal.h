/* What the files of room context share; nobody else includes this. */
#ifndef TN_CONTEXT_INTERNAL_H
#define TN_CONTEXT_INTERNAL_H

#include "context/context.h"

typedef struct tni_opened {           /* an open context, with what only this room needs of it */
    tni_context context;              /* first: rooms below and the program see its address */
    tni_trace_user trace;             /* of profiler.autostart */
    struct tni_opened *next, *before; /* list of open contexts, for fork */
    bool pinned;                      /* by whoever forks */
} tni_opened;

/* ---- fork.c ------------------------------------------------------------------------------------------ */

void tni_opened_add(tni_opened *o);
void tni_opened_remove(tni_opened *o); /* not in the list: nothing happens; waits for whoever forks */

#endif
