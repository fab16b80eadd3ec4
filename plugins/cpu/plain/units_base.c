/* Uniform numbers for the instructions every x86-64 has. */
#define UNITS tncpu_units_base
#include "units.inc"
