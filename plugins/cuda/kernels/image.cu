/* Images as arrays: ../../common/colours.h and taps.h have the arithmetic of a pixel. */
#include "../../common/colours.h"
#include "../../common/taps.h"
#include "block.h"
#include "tenon/plugin/random.h"

TNCUDA_INLINE tn_draw image_draw(const tncuda_image_args *call)
{
    tn_draw draw;

    draw.key = call->draw.key;
    draw.number = call->draw.step ? *call->draw.step + call->draw.step_add : 0; /* NULL: nothing is drawn */
    return draw;
}

/* f[0]: below it the image is turned round, 1: in any case. */
TNCUDA_KERNEL(image_flip, FREE, tncuda_image_args)
{
    const tn_draw draw = image_draw(call);
    const int32_t flip = call->f[0] >= 1 || tn_draw_unit(&draw, 0) < call->f[0]; /* at random: 0.5 */

    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const int64_t c = i % call->channels, k = i / call->channels % call->size,
                      o = i / call->channels / call->size;

        element_move(call->to.data, i, call->from.data,
                     (o * call->size + (flip ? call->size - 1 - k : k)) * call->channels + c, call->bytes);
    }
}

/* (v - mean) / std of planes of `inner` elements, of `size` channels; f: means, then stds; n: of each 1 or
 * one for each channel; n[2]: back, without the mean. */
TNCUDA_KERNEL(image_normalize, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const int64_t c = i / call->inner % call->size;
        const double mean = call->n[2] ? 0 : call->f[call->n[0] > 1 ? c : 0];

        NUMBER_OUT(0, i, (NUMBER_IN(0, i) - mean) / call->f[call->n[0] + (call->n[1] > 1 ? c : 0)]);
    }
}

/* (outer, h w, channels) becomes (outer, channels, h w), of 255; n: back. size: h w, inner: channels. */
TNCUDA_KERNEL(image_to_tensor, FREE, tncuda_call_args)
{
    const int64_t each = call->size * call->inner;

    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const int64_t last =
            i / each * each + i % call->size * call->inner + i % each / call->size; /* channels last */

        if (call->n[0])
            NUMBER_OUT(0, last, NUMBER_IN(0, i) / 255);
        else
            NUMBER_OUT(0, i, (double)((float)NUMBER_IN(0, last) / 255.0f));
    }
}

/* ---- colours ------------------------------------------------------------------------------------------- */

#define CHANGES ((tnb_change *)call->room)

TNCUDA_INLINE double image_between(const tn_draw *draw, uint64_t k, double low, double high)
{
    return low + (high - low) * tn_draw_unit(draw, k);
}

/* All four changes in a random order, each by a number of its own; f: how far each may go, not above 0:
 * not at all. */
TNCUDA_INLINE void image_jitter(const tncuda_image_args *call, const tn_draw *draw)
{
    int32_t order[4], to = 0;

    for (int32_t k = 0; k < 4; k++)
        order[k] = k;
    for (int32_t k = 3; k > 0; k--) {
        const int32_t other = (int32_t)tnb_whole(image_between(draw, (uint64_t)k, 0, k + 1), 0, k),
                      kept = order[k];

        order[k] = order[other];
        order[other] = kept;
    }
    for (int32_t k = 0; k < 4; k++) {
        const double far = call->f[order[k]];

        if (!(far > 0))
            continue;
        CHANGES[to].kind = order[k];
        CHANGES[to++].alpha =
            image_between(draw, (uint64_t)(4 + k), -far, far) + (order[k] == TNB_HUE ? 0 : 1);
    }
    if (!to) {
        CHANGES[0].kind = TNB_BRIGHTNESS;
        CHANGES[0].alpha = 1;
    }
}

/* One thread: what changes. f: ends of a factor, alphas of lighting, or its deviation. */
TNCUDA_KERNEL(image_changes, FREE, tncuda_image_args)
{
    const tn_draw draw = image_draw(call);
    double alpha[3];

    if (TNCUDA_FIRST != 0)
        return;
    CHANGES[0].kind = call->kind;
    CHANGES[0].alpha = 0;
    if (call->kind == TNCUDA_IMAGE_JITTER) {
        image_jitter(call, &draw);
        return;
    }
    if (call->kind < TNB_LIGHTING) {
        CHANGES[0].alpha = image_between(&draw, 0, call->f[0], call->f[1]);
        return;
    }
    CHANGES[0].kind = TNB_LIGHTING;
    for (int32_t k = 0; k < 3; k++) {
        uint32_t w[4];

        alpha[k] = call->f[k];
        if (call->kind == TNCUDA_IMAGE_LIGHT) {
            tn_draw_words(&draw, (uint64_t)k, w);
            alpha[k] = tnb_light_normal(call->f[0], tn_unit(w[0], w[1]), tn_unit(w[2], w[3]));
        }
    }
    tnb_light(alpha, CHANGES[0].add);
}

#define GET_FROM(i) element_number(call->from.data, call->from.dtype, i)
#define BODY "image.inc"
#include "both.h"

/* ---- resize -------------------------------------------------------------------------------------------- */

/* n: height, width and channels of the input, those of the output, way, bytes, halves, whole numbers */
TNCUDA_KERNEL(image_resize, FREE, tncuda_call_args)
{
    const int64_t *in = call->n, *out = call->n + 3, channels = in[2];
    const int32_t way = (int32_t)call->n[6], bytes = (int32_t)call->n[7];

    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const int64_t c = i % channels, image = i / channels / out[1] / out[0] * in[0];
        const tnb_taps v = tnb_taps_of(i / channels / out[1] % out[0], in[0], out[0], way),
                       h = tnb_taps_of(i / channels % out[1], in[1], out[1], way);
        double sum = 0;

        for (int64_t k = 0; k < v.count; k++) {
            const int64_t y = v.first + k < 0 ? 0 : v.first + k < in[0] ? v.first + k : in[0] - 1;
            double row = 0;

            for (int64_t l = 0; l < h.count; l++) {
                const int64_t x = h.first + l < 0 ? 0 : h.first + l < in[1] ? h.first + l : in[1] - 1;

                row = tnb_sum_of(row, tnb_tap_weight(&h, l, way, bytes),
                                 NUMBER_IN(0, ((image + y) * in[1] + x) * channels + c), way);
            }
            sum = tnb_rows_sum(sum, tnb_tap_weight(&v, k, way, bytes), row, way, bytes);
        }
        NUMBER_OUT(0, i, tnb_pixel_of(sum, way, (int32_t)call->n[9], bytes, (int32_t)call->n[8]));
    }
}
