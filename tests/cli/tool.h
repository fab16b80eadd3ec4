/*
 * Running the built tool: its exit code and what it said. Each test program works in a folder of its own,
 * which goes away; commands are lines for the shell in which "$T" is the tool.
 */
#ifndef TN_TEST_CLI_TOOL_H
#define TN_TEST_CLI_TOOL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include <cmocka.h>
#include <jansson.h>

typedef struct tool_said {
    int code; /* exit code; 128 + signal if it died of one */
    char out[65536], err[65536];
} tool_said;

/* Makes the folder and goes there; ends the program with 77 if the tool is not built. */
void tool_setup(void);
void tool_teardown(void);
/* Runs the line; the answer is valid until the next call. */
const tool_said *tool(const char *line);
/* Skips the test that runs where no terminal can be opened: a bare chroot has no /dev/pts. */
void tool_needs_terminal(void);
/* The same on a terminal of so many columns: all it said is in `out`. */
const tool_said *tool_terminal(int columns, const char *line);
/* In a new process: a shell has what it runs in the background ignore SIGINT and SIGQUIT, a suite of tests
 * too, and the tool would keep to that. */
void tool_signals_reset(void);
/* Starts the line's one command (write "exec "), which ends with this process; tool_wait() gives what it
 * said. */
pid_t tool_start(const char *line);
const tool_said *tool_wait(pid_t pid);
/* Until the file has so many lines; false: the process is gone before. */
bool tool_lines(pid_t pid, const char *path, int lines);
/* Until the shell says yes to the line (exit code 0); false: the process is gone, and it still does not. */
bool tool_until(pid_t pid, const char *line);
/* IDX files of `count` images of 8 by 8 in each part; digits that a net can tell apart. */
void tool_data(const char *folder, int count);
/* One of the lines of `out`, from the end (0: the last), as JSON; to be freed. */
json_t *tool_json(const tool_said *said, int from_end);
/* Whether what takes a tenth of a millisecond takes time by the clock. */
bool tool_clock_fine(void);
char *tool_file(const char *path); /* whole; to be freed; "" if there is none */

#define assert_says(text, part)                                                                              \
    do {                                                                                                     \
        if (!strstr(text, part))                                                                             \
            fail_msg("\"%s\" is not in: %s", part, text);                                                    \
    } while (0)

#endif
