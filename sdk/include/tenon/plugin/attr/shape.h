/** Where kernels of the families shape, slice, join, index and matrix find their attributes. */
#ifndef TENON_PLUGIN_ATTR_SHAPE_H
#define TENON_PLUGIN_ATTR_SHAPE_H

/* Reshape */
#define TN_RESHAPE_SHAPE 0
#define TN_RESHAPE_REVERSE 1
#define TN_RESHAPE_TARGET_SHAPE 2
#define TN_RESHAPE_KEEP_HIGHEST 3

/* expand_dims, squeeze, reverse */
#define TN_EXPAND_DIMS_AXIS 0
#define TN_SQUEEZE_AXIS 0
#define TN_REVERSE_AXIS 0

/* transpose, SwapAxis */
#define TN_TRANSPOSE_AXES 0
#define TN_SWAPAXIS_DIM1 0
#define TN_SWAPAXIS_DIM2 1

/* slice, slice_axis, slice_like and their backward operators */
#define TN_SLICE_BEGIN 0
#define TN_SLICE_END 1
#define TN_SLICE_STEP 2
#define TN_SLICE_AXIS_AXIS 0
#define TN_SLICE_AXIS_BEGIN 1
#define TN_SLICE_AXIS_END 2
#define TN_SLICE_LIKE_AXES 0

/* Concat, _backward_Concat: num_args, dim; stack: axis, num_args; SliceChannel */
#define TN_CONCAT_NUM_ARGS 0
#define TN_CONCAT_DIM 1
#define TN_STACK_AXIS 0
#define TN_STACK_NUM_ARGS 1
#define TN_SLICECHANNEL_NUM_OUTPUTS 0
#define TN_SLICECHANNEL_AXIS 1
#define TN_SLICECHANNEL_SQUEEZE_AXIS 2

/* take, _backward_take */
#define TN_TAKE_AXIS 0
#define TN_TAKE_MODE 1
#define TN_TAKE_MODES "clip|raise|wrap"
#define TN_TAKE_CLIP 0
#define TN_TAKE_RAISE 1
#define TN_TAKE_WRAP 2

/* Embedding, _backward_Embedding */
#define TN_EMBEDDING_INPUT_DIM 0
#define TN_EMBEDDING_OUTPUT_DIM 1
#define TN_EMBEDDING_DTYPE 2
#define TN_EMBEDDING_SPARSE_GRAD 3

/* one_hot */
#define TN_ONE_HOT_DEPTH 0
#define TN_ONE_HOT_ON_VALUE 1
#define TN_ONE_HOT_OFF_VALUE 2
#define TN_ONE_HOT_DTYPE 3

/* pick, _backward_pick */
#define TN_PICK_AXIS 0
#define TN_PICK_KEEPDIMS 1
#define TN_PICK_MODE 2
#define TN_PICK_MODES "clip|wrap"
#define TN_PICK_WRAP 1

/* tile, repeat and their backward operators */
#define TN_TILE_REPS 0
#define TN_REPEAT_REPEATS 0
#define TN_REPEAT_AXIS 1

/* dot, batch_dot */
#define TN_DOT_TRANSPOSE_A 0
#define TN_DOT_TRANSPOSE_B 1
#define TN_DOT_FORWARD_STYPE 2

#endif
