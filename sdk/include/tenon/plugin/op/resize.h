/** Attributes of the operators of the family resize. */
#ifndef TENON_PLUGIN_OP_RESIZE_H
#define TENON_PLUGIN_OP_RESIZE_H

#include "../attr.h"

#define TN_UpSampling_sample_type_CHOICES(C, op, name) C(op, name, bilinear) C(op, name, nearest)
#define TN_UpSampling_multi_input_mode_CHOICES(C, op, name) C(op, name, concat) C(op, name, sum)
#define TN_UpSampling_ATTRS(X)                                                                               \
    X(UpSampling, INT, scale, TN_REQUIRED, TN_IN(1, 1e6), "how much larger the output is")                   \
    X(UpSampling, INT, num_filter, "0", TN_IN(0, 1e9), "channels, of sample_type bilinear")                  \
    X(UpSampling, CHOICE, sample_type, TN_REQUIRED, TN_ANY, "nearest, or a Deconvolution with a weight")     \
    X(UpSampling, CHOICE, multi_input_mode, "concat", TN_ANY, "what is made of several inputs")              \
    X(UpSampling, COUNT, num_args, TN_REQUIRED, TN_IN(1, 4096), "number of inputs")                          \
    X(UpSampling, INT, workspace, "512", TN_IN(0, 1e9), "MiB a library may use; advice only")
TN_ATTRS(UpSampling);
TN_CHOICES(UpSampling, sample_type);
TN_CHOICES(UpSampling, multi_input_mode);

#define TN_Crop_ATTRS(X)                                                                                     \
    X(Crop, COUNT, num_args, TN_REQUIRED, TN_IN(1, 2), "2: the second input says the size")                  \
    X(Crop, TUPLE, offset, "[0,0]", TN_IN(0, 1e9), "of the window: (y, x)")                                  \
    X(Crop, TUPLE, h_w, "[0,0]", TN_IN(0, 1e9), "size of the window, of one input")                          \
    X(Crop, BOOL, center_crop, "0", TN_ANY, "the window lies in the middle")
TN_ATTRS(Crop);

#define TN_contrib_BilinearResize2D_mode_CHOICES(C, op, name)                                                \
    C(op, name, like)                                                                                        \
    C(op, name, odd_scale)                                                                                   \
    C(op, name, size)                                                                                        \
    C(op, name, to_even_down) C(op, name, to_even_up) C(op, name, to_odd_down) C(op, name, to_odd_up)
#define TN_contrib_BilinearResize2D_ATTRS(X)                                                                 \
    X(contrib_BilinearResize2D, INT, height, "1", TN_IN(1, 1e9), "of the output, of mode size")              \
    X(contrib_BilinearResize2D, INT, width, "1", TN_IN(1, 1e9), "of the output, of mode size")               \
    X(contrib_BilinearResize2D, OPT_FLOAT, scale_height, "None", TN_ANY, "of modes size and odd_scale")      \
    X(contrib_BilinearResize2D, OPT_FLOAT, scale_width, "None", TN_ANY, "of modes size and odd_scale")       \
    X(contrib_BilinearResize2D, CHOICE, mode, "size", TN_ANY, "where the output's size comes from")          \
    X(contrib_BilinearResize2D, BOOL, align_corners, "1", TN_ANY, "corners stay where they are")
TN_ATTRS(contrib_BilinearResize2D);
TN_CHOICES(contrib_BilinearResize2D, mode);

#define TN_contrib_AdaptiveAvgPooling2D_ATTRS(X)                                                             \
    X(contrib_AdaptiveAvgPooling2D, TUPLE, output_size, "[]", TN_IN(1, 1e9), "(h, w), or one for both; 1")
TN_ATTRS(contrib_AdaptiveAvgPooling2D);

#endif
