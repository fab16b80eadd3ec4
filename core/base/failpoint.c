/*
 * Named points where tests stop, kill or fail the process: TENON_FAILPOINT=name[:nth]=kill|error|stop,
 * several divided by commas; a stopped process goes on at SIGCONT. Read once. Builds without TN_FAILPOINTS
 * hold none of it.
 */
#include "base/base.h"

#if defined(TN_FAILPOINTS)

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FAILPOINTS_MAX 16

typedef struct failpoint {
    char name[48], action[32];
    uint64_t nth; /* 0: each time */
    atomic_ullong hits;
} failpoint;

static failpoint points[FAILPOINTS_MAX];
static size_t point_count;
static pthread_once_t points_once = PTHREAD_ONCE_INIT;

static void points_read(void)
{
    const char *text = getenv("TENON_FAILPOINT");
    char copy[1024];
    char *state = NULL;

    snprintf(copy, sizeof copy, "%s", text ? text : "");
    for (char *item = strtok_r(copy, ",", &state); item && point_count < FAILPOINTS_MAX;
         item = strtok_r(NULL, ",", &state)) {
        failpoint *p = &points[point_count];
        char *action = strchr(item, '=');
        char *nth;

        if (!action)
            continue;
        *action++ = '\0';
        nth = strchr(item, ':');
        if (nth)
            *nth++ = '\0';
        if (nth && !tni_parse_u64(nth, &p->nth))
            continue;
        snprintf(p->name, sizeof p->name, "%s", item);
        snprintf(p->action, sizeof p->action, "%s", action);
        point_count++;
    }
}

tn_status tni_failpoint(const char *name)
{
    pthread_once(&points_once, points_read);
    for (size_t i = 0; i < point_count; i++) {
        failpoint *p = &points[i];

        if (strcmp(p->name, name) != 0)
            continue;
        if (atomic_fetch_add(&p->hits, 1) + 1 != p->nth && p->nth)
            continue;
        if (strcmp(p->action, "kill") == 0)
            kill(getpid(), SIGKILL);
        else if (strcmp(p->action, "stop") == 0)
            raise(SIGSTOP);
        else
            return tni_error(TN_E_IO, "failpoint %s", name);
    }
    return TN_OK;
}

#else

tn_status tni_failpoint(const char *name)
{
    (void)name;
    return TN_OK;
}

#endif
