/* Commands with the double of the driver, whose folder is TENON_TEST_DRIVER, and what they say. */
#ifndef TEST_CUDA_CUDA_H
#define TEST_CUDA_CUDA_H

typedef struct said {
    int code; /* 128 and the signal, if one ended it */
    char out[65536];
} said;

/* Runs a command of the shell in which $T is the tool, with `settings` ("TNEMU_SEED=3") before it. What it
 * writes to both streams comes in `out`. The tests skip if there is no tool. */
const said *cuda_say(const char *settings, const char *command);
/* The same without any driver. */
const said *cuda_say_without(const char *settings, const char *command);
/* Fails the test unless `text` is in what was said. */
void cuda_said(const said *s, const char *text);
void cuda_setup(void); /* ends with 77 where the tool is not built */

#endif
