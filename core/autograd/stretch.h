/* The backward of a stretch of recorded operators. Used by pass.c only. */
#ifndef TN_AUTOGRAD_STRETCH_H
#define TN_AUTOGRAD_STRETCH_H

#include "autograd/pass.h"

typedef struct tni_stretch_spec {
    const tni_tape_walk *walk;
    uint32_t first, count; /* tape nodes */
    tni_device *device;
    tni_forward_tables *tables;
    const uint8_t *arrives; /* per slot: a gradient comes from outside */
    /* Whether gradient `target`, if it is reached, is added to what it holds. */
    uint8_t (*adds)(void *arg, uint32_t target);
    /* What is done to gradient `target`, which is reached. Asked once for each. */
    uint8_t (*mode)(void *arg, uint32_t target);
    void *arg;
} tni_stretch_spec;
tn_status tni_stretch_build(const tni_stretch_spec *spec, tni_stage *stage);

#endif
