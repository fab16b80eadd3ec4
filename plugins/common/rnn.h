/* One step of one direction of a recurrent layer, as its cells (rnn_cells.inc) see it. In C and CUDA. */
#ifndef TNB_RNN_H
#define TNB_RNN_H

#include <stdint.h>

#define TNB_RNN_GRU 0 /* TN_RNN_mode_… */
#define TNB_RNN_LSTM 1
#define TNB_RNN_RELU 2
#define TNB_RNN_TANH 3

/* Rows are sequences; `rows` of all steps are (step, sequence). What is NULL is not there. */
typedef struct tnb_rnn_step {
    int64_t batch, units, width, gate_row; /* width: of the state; gate_row: gates of a row */
    double clip_min, clip_max;
    int32_t mode, projected, clips, clip_nan;
    const int64_t *lengths; /* NULL: all sequences are as long as the steps */
    int64_t t, y_row, dy_row;
    void *gates, *cell, *state, *y;
    void *extra; /* the state's part of the gates (GRU), or the input of a projection */
    const void *cell_before, *state_before;
    /* of the backward, rows: gradients of the gates, of the state's part of them (of a GRU, else the same), a
     * projection's input and the gradient of its output, what arrives */
    void *dgates, *dpart, *hidden, *dstate;
    const void *dy;
    void *dh, *dc, *dhidden; /* of one step */
} tnb_rnn_step;

#endif
