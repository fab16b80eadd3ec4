/* What the files of the plugin image share. */
#ifndef TNIMAGE_IMAGE_H
#define TNIMAGE_IMAGE_H

#include <setjmp.h>
#include <stddef.h>

#include "tenon/plugin/image.h"
#include "tenon/plugin/util.h"

#define TNIMAGE_SIDE_MAX 65500 /* as libjpeg has it */

typedef struct tnimage_plugin { /* options */
    int64_t pixels_max, memory_max;
    int32_t strict;
} tnimage_plugin;

/* A call of a library that reports errors by a jump: guarded() runs `body`, which a failure leaves. */
typedef struct tnimage_call {
    jmp_buf jump;
    tn_status status;
    tn_err *err;
    const tnimage_plugin *plugin;
    const uint8_t *data; /* of a file that is read */
    uint64_t bytes, at;
    tn_image_info *info;       /* what is asked for, */
    const tn_image_part *part; /* or this, */
    const tn_image_output *to; /* or this */
    uint8_t *room;             /* rows; freed by tnimage_guarded */
} tnimage_call;

/* Both give the call's status; room is freed, the library's objects are the caller's. */
tn_status tnimage_guarded(tnimage_call *c, void (*body)(tnimage_call *c));
_Noreturn void tnimage_leave(tnimage_call *c, tn_status st); /* c->err is filled in */
_Noreturn void tnimage_fail(tnimage_call *c, tn_status st, const char *text);
/* Leaves if the image has more pixels than are allowed; */
void tnimage_size_check(tnimage_call *c, int64_t width, int64_t height);
/* or also if the part does not lie in it. */
void tnimage_part_check(tnimage_call *c, int64_t width, int64_t height, int32_t shift_max);
uint8_t *tnimage_room(tnimage_call *c, size_t bytes); /* leaves if there is no memory */
tn_status tnimage_output_check(const tn_image_output *to, int32_t channels_max, int32_t quality_max,
                               tn_err *err);

extern const tn_image_ops tnimage_jpeg, tnimage_png;
extern const tn_op_table tnimage_operators;
extern const tn_kernel_table tnimage_kernels;

#endif
