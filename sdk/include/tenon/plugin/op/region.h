/** Attributes of the operators of the family region. */
#ifndef TENON_PLUGIN_OP_REGION_H
#define TENON_PLUGIN_OP_REGION_H

#include "../attr.h"

#define TN_ROIPooling_ATTRS(X)                                                                               \
    X(ROIPooling, TUPLE, pooled_size, TN_REQUIRED, TN_IN(1, 1e6), "parts of a region: (h, w)")               \
    X(ROIPooling, FLOAT, spatial_scale, TN_REQUIRED, TN_ANY, "pixels of data for one of the regions")
TN_ATTRS(ROIPooling);

/* The first two stand where ROIPooling has them. */
#define TN_contrib_ROIAlign_ATTRS(X)                                                                         \
    X(contrib_ROIAlign, TUPLE, pooled_size, TN_REQUIRED, TN_IN(1, 1e6), "parts of a region: (h, w)")         \
    X(contrib_ROIAlign, FLOAT, spatial_scale, TN_REQUIRED, TN_ANY, "pixels of data for one of the regions")  \
    X(contrib_ROIAlign, INT, sample_ratio, "-1", TN_IN(-1, 1024), "samples of a part each way; -1: by size") \
    X(contrib_ROIAlign, BOOL, position_sensitive, "0", TN_ANY, "each part has channels of its own")          \
    X(contrib_ROIAlign, BOOL, aligned, "0", TN_ANY, "a pixel's place is its middle")
TN_ATTRS(contrib_ROIAlign);

#define TN_contrib_PSROIPooling_ATTRS(X)                                                                     \
    X(contrib_PSROIPooling, FLOAT, spatial_scale, TN_REQUIRED, TN_ANY,                                       \
      "pixels of data for one of the regions")                                                               \
    X(contrib_PSROIPooling, INT, output_dim, TN_REQUIRED, TN_IN(1, 1e9), "channels of the output")           \
    X(contrib_PSROIPooling, INT, pooled_size, TN_REQUIRED, TN_IN(1, 1e6), "parts of a region each way")      \
    X(contrib_PSROIPooling, INT, group_size, "0", TN_IN(0, 1e6),                                             \
      "groups of channels each way; 0: pooled_size")
TN_ATTRS(contrib_PSROIPooling);

#define TN_Correlation_ATTRS(X)                                                                              \
    X(Correlation, INT, kernel_size, "1", TN_IN(1, 1e4), "of the patches, odd")                              \
    X(Correlation, INT, max_displacement, "1", TN_IN(0, 1e4), "of the second patch")                         \
    X(Correlation, INT, stride1, "1", TN_IN(1, 1e4), "of the first patch")                                   \
    X(Correlation, INT, stride2, "1", TN_IN(1, 1e4), "of displacements")                                     \
    X(Correlation, INT, pad_size, "0", TN_IN(0, 1e4), "zeros on all sides")                                  \
    X(Correlation, BOOL, is_multiply, "1", TN_ANY, "products; else absolute differences")
TN_ATTRS(Correlation);

#endif
