#include "support/heard.h"

#include <stdio.h>
#include <string.h>

void heard_take(void *arg, int32_t level, const char *line)
{
    heard *h = arg;
    size_t used;

    if (level > h->level)
        return;
    pthread_mutex_lock(&h->lock);
    used = strlen(h->text);
    (void)snprintf(h->text + used, sizeof h->text - used, "%d %s\n", level, line);
    h->count++;
    pthread_mutex_unlock(&h->lock);
}

size_t heard_lines(heard *h)
{
    size_t count;

    pthread_mutex_lock(&h->lock);
    count = h->count;
    pthread_mutex_unlock(&h->lock);
    return count;
}

size_t heard_times(heard *h, const char *part)
{
    size_t times = 0;

    pthread_mutex_lock(&h->lock);
    for (const char *at = h->text; (at = strstr(at, part)) != NULL; at++)
        times++;
    pthread_mutex_unlock(&h->lock);
    return times;
}

void heard_clear(heard *h)
{
    pthread_mutex_lock(&h->lock);
    h->count = 0;
    h->text[0] = '\0';
    pthread_mutex_unlock(&h->lock);
}
