/*
 * RNN: layers of LSTM, GRU or plain recurrent cells over sequences (T, N, C), in one or both directions.
 *
 * `parameters` is flat: first the weights of each layer and direction (to the gates from the input, from the
 * state, and for an LSTM with a projection from the cell's output to the state), then the biases of each
 * (input, state). Gates are in the order i, f, c, o (LSTM), reset, update, new (GRU). `mask` is the factor
 * of each input of the layers but the first: 0 or 1 / (1 - p) in training, else 1.
 */
#include "tenon/plugin/op/rnn.h"
#include "op/cost.h"
#include "op/infer_help.h"

/* Each weight meets each of T · N rows once. */
static void rnn_cost(const tn_infer *i, tn_cost *c)
{
    static const uint64_t gates[] = {[TN_RNN_mode_gru] = 3,
                                     [TN_RNN_mode_lstm] = 4,
                                     [TN_RNN_mode_rnn_relu] = 1,
                                     [TN_RNN_mode_rnn_tanh] = 1};
    const tn_shape *x = i->in_shape[0];
    const uint64_t parameters = tni_cost_elements(i->in_shape[1], 0),
                   biases = 2 * gates[tni_attr_int(i->attrs, TN_RNN_mode)] *
                            (uint64_t)tni_attr_int(i->attrs, TN_RNN_state_size) *
                            (uint64_t)tni_attr_int(i->attrs, TN_RNN_num_layers) *
                            (tni_attr_bool(i->attrs, TN_RNN_bidirectional) ? 2 : 1);

    tni_cost_products(
        c, tn_cost_times(tn_cost_times((uint64_t)x->dim[0], (uint64_t)x->dim[1]), parameters - biases));
}

const tn_op *const tni_family_rnn[] = {
    TNI_ROW("RNN", .doc = "Recurrent layers over sequences: LSTM, GRU, or cells of one activation.",
            .aliases = TNI_NAMES("_npx_rnn"), .attrs = TNI_ATTRS(RNN), .effects = TN_EFFECT_RANDOM,
            .shapes = "data:(T,N:sequences,I) parameters:(Z*(I+P+2)+(num_layers-1)*Z*(O+P+2)+Q) state:(L,N,P)"
                      " state_cell?mode=lstm:(L,N,state_size) sequence_length?use_sequence_length:(N)"
                      " -> output:(T,N,O) state_out?state_outputs:state"
                      " statecell_out?state_outputs&mode=lstm:state_cell mask~:(if(p,num_layers-1,0),T,N,O)"
                      " ; R=1+bidirectional ; L=R*num_layers ; P=or(projection_size,state_size) ; O=R*P"
                      " ; Z=if(mode=lstm,4,if(mode=gru,3,1))*state_size*R ; Q=projection_size*state_size*L"
                      " ; U=if(mode=lstm,0,0-projection_size)", /* no other cell has one */
            .types = "T:float; sequence_length:or(T)",
            .gradients = "once: dy dy1 dy2 data parameters state state_cell sequence_length mask"
                         " -> data parameters state state_cell",
            .cost = rnn_cost),
    NULL,
};
