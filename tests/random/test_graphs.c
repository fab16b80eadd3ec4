/*
 * Random graphs over all operators, in all ways, on both engines: see driver.h for what may be asked of this
 * program.
 */
#include "driver.h"

int main(int argc, char **argv)
{
    static const fuzz_program p = {.name = "fuzz-graphs",
                                   .unit = "graphs",
                                   .make = fuzz_make_graph,
                                   .runs = 4000,
                                   .block = 250,
                                   .all_ways = true};

    return fuzz_main(&p, argc, argv);
}
