/* Resizing for the operators: the code that nn has, too. */
#include "../common/pixels.inc"
