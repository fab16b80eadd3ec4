/*
 * Random calls of every operator by name, in several ways that must agree: see driver.h for what may be asked
 * of this program.
 */
#include "driver.h"

/* Operators that no call is ever accepted for, each with the reason. */
static const fuzz_exception exceptions[] = {
    {"_contrib_getnnz", "calls have no csr arrays"},
    {NULL, NULL},
};

int main(int argc, char **argv)
{
    static const fuzz_program p = {.name = "fuzz-ops",
                                   .unit = "calls",
                                   .make = fuzz_make_op,
                                   .runs = 125000, /* 200 for each operator: some accept 1 in 100 */
                                   .block = 2500,
                                   .reaches_all = true,
                                   .exceptions = exceptions};

    return fuzz_main(&p, argc, argv);
}
