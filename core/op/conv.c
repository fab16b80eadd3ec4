/*
 * Convolution, 1-D to 3-D: data (N, C, space...) or (N, space..., C), weight (F, C/groups, kernel...) or
 * (F, kernel..., C/groups), bias (F). The data's channels give the weight's and the other way round, so that
 * layers may leave either open. Deconvolution, and im2col and col2im, which the kernels of all of them are
 * made of.
 */
#include <string.h>

#include "op/layers.h"
#include "tenon/plugin/op/conv.h"

static void deconvolution_cost(const tn_infer *i, tn_cost *c)
{
    tni_cost_products(
        c, tn_cost_times(tni_cost_elements(i->in_shape[0], 0), tni_cost_elements(i->in_shape[1], 1)));
}

static void deformable_cost(const tn_infer *i, tn_cost *c)
{
    const uint32_t weight = strstr(i->op->name, "Modulated") ? 3 : 2;

    tni_cost_products(
        c, tn_cost_times(tni_cost_elements(i->out_shape[0], 0), tni_cost_elements(i->in_shape[weight], 1)));
}

#define UNFOLD(name_, attrs_, doc_, shapes_)                                                                 \
    TNI_ROW(name_, .doc = doc_, .attrs = attrs_, .shapes = shapes_, .types = "T:float",                      \
            .gradients = "linear: dy ~data -> data", .cost = tni_cost_each_output)

/* Each tap reads at a place of its own: offsets (y, x) for each group of channels, tap and window. */
#define DEFORMABLE(name_, attrs_, doc_, mask, mask_role)                                                     \
    TNI_ROW(name_, .doc = doc_, .attrs = attrs_,                                                             \
            .shapes =                                                                                        \
                "data:(N,C:channels,S..) offset:(N,num_deformable_group*2*#kernel,window(S..)) " mask        \
                "weight:(num_filter,C/num_group,kernel..) bias?!no_bias:(num_filter)"                        \
                " -> output:(N,num_filter,window(S..)) ; G=num_filter/num_group ; D=C/num_deformable_group", \
            .gradients = "once: dy data offset " mask_role "weight -> data offset " mask_role "weight bias", \
            .types = "T:float", .cost = deformable_cost)

const tn_op *const tni_family_conv[] = {
    TNI_ROW("Convolution", .doc = "Slides `num_filter` windows over 1 to 3 dimensions of space.",
            .aliases = TNI_NAMES("_npx_convolution"), .attrs = TNI_ATTRS(Convolution),
            .shapes = TNI_CONVOLUTION_INPUTS " -> output:" TNI_CONVOLUTION_OUTPUT TNI_CONVOLUTION_CHECK,
            .gradients = "bilinear: dy data weight -> data weight bias", .types = "T:small",
            .cost = tni_cost_filters),
    /* A convolution of the output would have this data as its gradient; weight (C, num_filter/groups,
     * kernel). */
    TNI_ROW("Deconvolution", .doc = "What a Convolution would make the data of: its gradient by its data.",
            .aliases = TNI_NAMES("_npx_deconvolution"), .attrs = TNI_ATTRS(Deconvolution),
            .shapes =
                "data:(N,C:channels,S..)^layout weight:(C,num_filter/num_group,kernel..)^layout "
                "bias?!no_bias:(num_filter) -> output:(N,num_filter,unwindow(S..))^layout ; G=C/num_group",
            .gradients = "bilinear: dy data weight -> data weight bias", .types = "T:float",
            .cost = deconvolution_cost),
    UNFOLD("im2col", TNI_ATTRS(im2col), "The windows of an image as columns: (channel, tap) by place.",
           "data:(N,C:channels,S..) -> output:(N,C*#kernel,#W) ; W..=window(S..)"),
    UNFOLD("col2im", TNI_ATTRS(col2im), "Columns of windows added up to an image.",
           "data:(N,C*#kernel,#W) -> output:(N,C:channels,output_size..) ; W..=window(output_size..)"),
    DEFORMABLE("_contrib_DeformableConvolution", TNI_ATTRS(contrib_DeformableConvolution),
               "Convolution whose taps read at places of their own.", "", ""),
    DEFORMABLE("_contrib_ModulatedDeformableConvolution", TNI_ATTRS(contrib_ModulatedDeformableConvolution),
               "Convolution whose taps read at places of their own and have a factor each.",
               "mask:(N,num_deformable_group*#kernel,window(S..)) ", "mask "),
    NULL,
};
