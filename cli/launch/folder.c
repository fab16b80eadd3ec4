/*
 * The folder of a job: its secret and the address of its scheduler, for this user alone. A keeper, one more
 * process, removes it when the launcher ends, whatever it ends of.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch.h"

#define SECRET_BYTES 32
#define NUMBER_BYTES 8

bool launch_random(char *hexadecimal, size_t bytes)
{
    unsigned char random[SECRET_BYTES];

    if (bytes > sizeof random || getrandom(random, bytes, 0) != (ssize_t)bytes) {
        cli_error("no random numbers can be had: %s", strerror(errno));
        return false;
    }
    for (size_t i = 0; i < bytes; i++)
        (void)snprintf(hexadecimal + 2 * i, 3, "%02x", random[i]);
    return true;
}

bool launch_secret_write(const char *path, const char *secret)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    const ssize_t bytes = (ssize_t)strlen(secret);
    bool ok = fd >= 0 && write(fd, secret, (size_t)bytes) == bytes && write(fd, "\n", 1) == 1;

    if (fd >= 0)
        ok = !close(fd) && ok;
    if (!ok)
        cli_error("%s: %s", path, strerror(errno));
    return ok;
}

static void folder_remove(const launch_job *job)
{
    DIR *all = opendir(job->folder);

    for (const struct dirent *entry; all && (entry = readdir(all));)
        (void)unlinkat(dirfd(all), entry->d_name, 0);
    if (all)
        (void)closedir(all);
    (void)rmdir(job->folder);
}

static void keep(const launch_job *job, int end, int other)
{
    sigset_t all;
    char byte;

    (void)close(other);
    (void)setpgid(0, 0);
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    for (int fd = 0; fd < 3; fd++)
        (void)close(fd); /* they may be pipes, whose readers wait for the end */
    while (read(end, &byte, 1) < 0 && errno == EINTR)
        ;
    folder_remove(job);
    _exit(0);
}

/* Where a job's processes are on other hosts by means that bring no files there, the folder has to be one
 * that they share: the current one. */
static const char *folder_above(const launch_job *job)
{
    const char *temporary = getenv("TMPDIR");

    if (job->how != LAUNCH_LOCAL && job->how != LAUNCH_SSH)
        return ".";
    return temporary && *temporary == '/' ? temporary : "/tmp";
}

int launch_folder_open(launch_job *job, int *keeper)
{
    char *name = cli_format("%s/tenon-job-XXXXXX", folder_above(job));
    int pipe[2];
    pid_t pid;

    if (!name || !mkdtemp(name)) {
        if (name)
            cli_error("%s: %s", name, strerror(errno));
        free(name);
        return name ? CLI_EXIT_FAILED : CLI_EXIT_MEMORY;
    }
    job->folder = realpath(name, NULL);
    free(name);
    job->secret_file = job->folder ? cli_path(job->folder, "secret") : NULL;
    job->address_file = job->folder ? cli_path(job->folder, "address") : NULL;
    if (!job->secret_file || !job->address_file)
        return CLI_EXIT_MEMORY;
    if (pipe2(pipe, O_CLOEXEC))
        return CLI_EXIT_FAILED;
    pid = fork();
    if (!pid)
        keep(job, pipe[0], pipe[1]);
    (void)close(pipe[0]);
    *keeper = pipe[1];
    if (pid < 0) {
        cli_error("cannot start a process: %s", strerror(errno));
        return CLI_EXIT_FAILED;
    }
    return launch_secret_write(job->secret_file, job->secret) ? 0 : CLI_EXIT_FAILED;
}

void launch_folder_close(launch_job *job, int keeper)
{
    if (keeper >= 0)
        (void)close(keeper);
    if (job->folder)
        folder_remove(job);
    free(job->folder);
    free(job->secret_file);
    free(job->address_file);
    job->folder = job->secret_file = job->address_file = NULL;
}

bool launch_folder_address(launch_job *job)
{
    FILE *file = fopen(job->address_file, "re");
    char line[128] = "", *colon;
    bool whole;

    if (!file)
        return false;
    whole = fgets(line, sizeof line, file) && strchr(line, '\n');
    (void)fclose(file);
    colon = whole ? strrchr(line, ':') : NULL;
    if (colon)
        job->port = (int)strtol(colon + 1, NULL, 10);
    return job->port > 0 && job->port < 65536;
}
