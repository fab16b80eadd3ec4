/* Conversions of short floats for the instructions every x86-64 has. */
#define TABLE tncpu_shorts_base
#include "shorts.inc"
