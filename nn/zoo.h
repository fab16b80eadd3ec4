/*
 * The zoo within: zoo.c knows names and options, zoo_nets.c the functions of MXNet's nets.
 */
#ifndef TN_NN_ZOO_H
#define TN_NN_ZOO_H

#include "internal.h"

typedef enum tnn_family {
    TNN_ALEXNET,
    TNN_DENSENET,
    TNN_INCEPTION,
    TNN_MOBILENET,
    TNN_MOBILENETV2,
    TNN_RESNET,
    TNN_SQUEEZENET,
    TNN_VGG,
    TNN_LENET,
    TNN_MLP,
} tnn_family;

typedef struct tnn_zoo { /* a net of the zoo with its options; lives as long as the app */
    tnn_object object;
    uint8_t family, variant, numbers[5]; /* as zoo.list has them */
    int64_t classes;
    int32_t bottleneck; /* of a DenseNet: channels within a layer, in multiples of the growth */
    bool thumbnail;     /* a ResNet that begins with one convolution of 3×3 */
    double dropout;     /* rate; a DenseNet has such layers only above 0 */
} tnn_zoo;

/* The function of all nets but the chains; net->arg is the tnn_zoo. */
void tnn_zoo_run(tn_net *net, const tn_x *in, tn_x *out);

#endif
