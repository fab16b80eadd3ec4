/* What the machine is and allows. */
#ifndef TN_CLI_MACHINE_H
#define TN_CLI_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/utsname.h>

/* One line of a small file of the system, without its newline; false: there is none. */
bool cli_machine_line(const char *path, char *text, size_t bytes);
/* The processors that this process may use. */
long cli_machine_processors(void);
/* "x86-64-v3", and in `lacks` the first flag that the next level asks for. */
const char *cli_machine_level(char lacks[32]);
void cli_machine_cpu(char *text, size_t bytes); /* its model */
/* What the control group allows; 0: no limit. */
double cli_machine_group_cpus(void);
long long cli_machine_group_bytes(void);
double cli_machine_memory_all_mib(void); /* also without /proc; 0: not known */
double cli_machine_memory_mib(const char *name); /* a row of /proc/meminfo; 0: not known */
int64_t cli_machine_resident_mib(void);          /* of this process; 0: not known */
void cli_machine_system(struct utsname *out);    /* all empty: not known */

#endif
