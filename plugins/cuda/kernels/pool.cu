/* Kernels of the family pool, for both compute types of floating point. */
#include "window.h"

#define BODY "pool.inc"
#include "both.h"
#undef BODY

#define BODY "pool_plane.inc"
#include "both.h"

#define N f32
#define WIDE 4
#define LOWEST_BITS 0xff800000u
#include "pool_last.inc"

#define N f16
#define WIDE 8
#define LOWEST_BITS 0xfc00fc00u
#define LOW(word) tnb_half_float((uint16_t)(word))
#define HIGH(word) tnb_half_float((uint16_t)((word) >> 16))
#define PAIR element_pair_f16
#include "pool_last.inc"

#define N bf16
#define WIDE 8
#define LOWEST_BITS 0xff80ff80u
#define LOW(word) tnb_bits_float((word) << 16)
#define HIGH(word) tnb_bits_float((word)&0xffff0000u)
#define PAIR element_pair_bf16
#include "pool_last.inc"
