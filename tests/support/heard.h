/* What a log has said: it is called from any thread, several at once. */
#ifndef TN_TEST_SUPPORT_HEARD_H
#define TN_TEST_SUPPORT_HEARD_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

typedef struct heard {
    pthread_mutex_t lock; /* of all below */
    int32_t level;        /* a line of a higher one is left out */
    size_t count;         /* of lines */
    char text[65536];     /* "LEVEL LINE\n" of each, cut where it is full */
} heard;

/* Static or on the stack; TN_LOG_WARNING: errors and warnings. */
#define HEARD(level_)                                                                                        \
    {                                                                                                        \
        .lock = PTHREAD_MUTEX_INITIALIZER, .level = (level_)                                                 \
    }

void heard_take(void *arg, int32_t level, const char *line); /* the log's function; `arg` is a heard */
size_t heard_lines(heard *h);
size_t heard_times(heard *h, const char *part); /* how often it stands there */
void heard_clear(heard *h);

#endif
