/** Attributes of the operators of the family sampler. */
#ifndef TENON_PLUGIN_OP_SAMPLER_H
#define TENON_PLUGIN_OP_SAMPLER_H

#include "../attr.h"

#define TN_BilinearSampler_ATTRS(X) X(BilinearSampler, OPT_BOOL, cudnn_off, "None", TN_ANY, "advice to cuDNN")
TN_ATTRS(BilinearSampler);

#define TN_GridGenerator_transform_type_CHOICES(C, op, name) C(op, name, affine) C(op, name, warp)
#define TN_GridGenerator_ATTRS(X)                                                                            \
    X(GridGenerator, CHOICE, transform_type, TN_REQUIRED, TN_ANY, "what data is: matrices, or shifts")       \
    X(GridGenerator, TUPLE, target_shape, "[0,0]", TN_IN(0, 1e9), "size of the grid, of affine: (h, w)")
TN_ATTRS(GridGenerator);
TN_CHOICES(GridGenerator, transform_type);

#define TN_SpatialTransformer_transform_type_CHOICES(C, op, name) C(op, name, affine)
#define TN_SpatialTransformer_sampler_type_CHOICES(C, op, name) C(op, name, bilinear)
#define TN_SpatialTransformer_ATTRS(X)                                                                       \
    X(SpatialTransformer, TUPLE, target_shape, "[0,0]", TN_IN(0, 1e9), "size of the output: (h, w)")         \
    X(SpatialTransformer, CHOICE, transform_type, TN_REQUIRED, TN_ANY, "what loc is: matrices (2, 3)")       \
    X(SpatialTransformer, CHOICE, sampler_type, TN_REQUIRED, TN_ANY, "how pixels are read")                  \
    X(SpatialTransformer, OPT_BOOL, cudnn_off, "None", TN_ANY, "advice to cuDNN")
TN_ATTRS(SpatialTransformer);
TN_CHOICES(SpatialTransformer, transform_type);
TN_CHOICES(SpatialTransformer, sampler_type);

#endif
