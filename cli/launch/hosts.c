/*
 * Hosts: the file that lists them, the place of a process, and the address that others reach this one at.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "launch.h"

#define HOSTS_MAX 65536
#define SLOTS_MAX 65536
#define LINE_BYTES 1024
#define ANYWHERE "10.255.255.255" /* nothing is sent there: it stands for every other host */

static const char blanks[] = " \t\r\n";
/* Of names that go to ssh as one word; the first may not be taken for an option. */
static const char name_bytes[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@%";

static bool number_read(const char *text, uint64_t max, uint32_t *number)
{
    uint64_t n = 0;
    const char *c = text;

    for (; *c >= '0' && *c <= '9' && n <= max; c++)
        n = 10 * n + (uint64_t)(*c - '0');
    *number = (uint32_t)n;
    return c != text && !*c && n >= 1 && n <= max;
}

static bool name_good(const char *name)
{
    const char *at = strchr(name, '@');

    return *name && *name != '-' && *name != '@' && !name[strspn(name, name_bytes)] &&
           (!at || (at[1] && at[1] != '-' && !strchr(at + 1, '@')));
}

/* Splits host[:port] or [address]:port; false: it is neither. */
static bool place_split(char *text, char **name, char **port)
{
    char *end = strchr(text, ']'), *colon;
    uint32_t number;

    *port = NULL;
    *name = text;
    if (*text == '[' && end) { /* an address with colons */
        *name = text + 1;
        *end = '\0';
        if (end[1] && end[1] != ':')
            return false;
        *port = end[1] ? end + 2 : NULL;
        return strspn(*name, "0123456789abcdefABCDEF:.%") == strlen(*name) && **name &&
               (!*port || number_read(*port, 65535, &number));
    }
    if ((colon = strchr(text, ':'))) {
        *colon = '\0';
        *port = colon + 1;
    }
    return name_good(*name) && (!*port || number_read(*port, 65535, &number));
}

/* False: no memory, or too many hosts. */
static bool host_add(launch_hosts *hosts, const char *name, const char *port, uint32_t slots)
{
    launch_host *h = NULL;

    for (size_t i = 0; i < hosts->count && !h; i++)
        if (!strcmp(hosts->items[i].name, name) &&
            !strcmp(hosts->items[i].port ? hosts->items[i].port : "", port ? port : ""))
            h = &hosts->items[i];
    if (!h) {
        if (hosts->count >= HOSTS_MAX || !(h = realloc(hosts->items, (hosts->count + 1) * sizeof *h)))
            return false;
        hosts->items = h;
        h += hosts->count;
        *h = (launch_host){strdup(name), port ? strdup(port) : NULL, 0};
        hosts->count++;
        if (!h->name || (port && !h->port))
            return false;
    }
    h->slots += slots;
    hosts->slots += slots;
    return h->slots <= SLOTS_MAX;
}

/* One line without its comment; NULL: it is good, else what is wrong. */
static const char *line_read(launch_hosts *hosts, char *line)
{
    char *rest = NULL, *word = strtok_r(line, blanks, &rest), *name, *port, *more;
    uint32_t slots = 1;

    if (!word)
        return NULL;
    while ((more = strtok_r(NULL, blanks, &rest)))
        if (strncmp(more, "slots=", 6) || !number_read(more + 6, SLOTS_MAX, &slots))
            return "[USER@]HOST[:PORT] [slots=N] is needed";
    if (!place_split(word, &name, &port))
        return "this is no name of a host";
    return host_add(hosts, name, port, slots) ? NULL : "too many hosts or slots";
}

int launch_hosts_read(const char *path, launch_hosts *hosts)
{
    FILE *file = fopen(path, "re");
    char line[LINE_BYTES];
    const char *wrong = NULL;
    unsigned number = 0;

    if (!file) {
        cli_error("--hostfile %s: %s; a file with a host on each line is needed", path, strerror(errno));
        return CLI_EXIT_USAGE;
    }
    errno = 0;
    while (!wrong && fgets(line, sizeof line, file)) {
        number++;
        if (!strchr(line, '\n') && strlen(line) == sizeof line - 1)
            wrong = "the line is too long";
        line[strcspn(line, "#")] = '\0';
        wrong = wrong ? wrong : line_read(hosts, line);
    }
    if (wrong)
        cli_error("%s:%u: %s", path, number, wrong);
    else if (ferror(file))
        cli_error("%s: %s", path, strerror(errno ? errno : EIO));
    else if (!hosts->count)
        cli_error("%s: no host is listed", path);
    wrong = ferror(file) || !hosts->count ? "" : wrong;
    (void)fclose(file);
    return wrong ? CLI_EXIT_USAGE : 0;
}

void launch_hosts_fini(launch_hosts *hosts)
{
    for (size_t i = 0; i < hosts->count; i++) {
        free(hosts->items[i].name);
        free(hosts->items[i].port);
    }
    free(hosts->items);
    *hosts = (launch_hosts){0};
}

const launch_host *launch_hosts_at(const launch_hosts *hosts, uint64_t index)
{
    const launch_host *h = hosts->items;

    if (!hosts->count)
        return NULL;
    for (index %= hosts->slots; index >= h->slots; h++)
        index -= h->slots;
    return h;
}

const char *launch_host_bare(const launch_host *host)
{
    const char *at = strchr(host->name, '@');

    return at ? at + 1 : host->name;
}

/* ---- addresses ---- */

/* Ours on the way to `host`; connecting a UDP socket sends nothing. */
static bool address_towards(const char *host, char text[64])
{
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *found = NULL;
    struct sockaddr_storage own;
    socklen_t bytes = sizeof own;
    bool ok = false;
    int fd = -1;

    if (getaddrinfo(host, "9", &hints, &found))
        return false;
    if (found)
        fd = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && !connect(fd, found->ai_addr, found->ai_addrlen) &&
        !getsockname(fd, (struct sockaddr *)&own, &bytes))
        ok = !getnameinfo((struct sockaddr *)&own, bytes, text, 64, NULL, 0, NI_NUMERICHOST);
    if (fd >= 0)
        (void)close(fd);
    freeaddrinfo(found);
    return ok;
}

void launch_own_address(const launch_hosts *hosts, char text[64])
{
    if (!address_towards(hosts->count ? launch_host_bare(hosts->items) : ANYWHERE, text))
        (void)snprintf(text, 64, "127.0.0.1");
}

int launch_free_port(const char *address)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *found = NULL;
    struct sockaddr_storage own;
    socklen_t bytes = sizeof own;
    char port[16] = "0";
    int fd = -1;

    if (getaddrinfo(address, "0", &hints, &found))
        return 0;
    fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, found->ai_addr, found->ai_addrlen) ||
        getsockname(fd, (struct sockaddr *)&own, &bytes) ||
        getnameinfo((struct sockaddr *)&own, bytes, NULL, 0, port, sizeof port, NI_NUMERICSERV))
        (void)snprintf(port, sizeof port, "0");
    if (fd >= 0)
        (void)close(fd);
    freeaddrinfo(found);
    return (int)strtol(port, NULL, 10);
}
