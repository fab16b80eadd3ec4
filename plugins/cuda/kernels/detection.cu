/* Kernels of the family detection; those that read and write floating point are in detection.inc. */
#include "block.h"
#include "order.h"

#define ENTRIES ((order_entry *)call->room)

/* in[0]: matrices (outer, size), their numbers as keys: by f[0], 1 or -1, the largest or the least first. */
TNCUDA_KERNEL(boxes_pairs, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        ENTRIES[i].key = order_best_key(call->f[0] * NUMBER_IN(0, i));
        ENTRIES[i].index = i % call->size;
    }
}

/*
 * Pairs of rows and columns, the best first; each row and each column once. A thread makes those of a matrix:
 * in[1]: entries; room: for each row its column, for each column its row, -1: none. n: rows, columns, most
 * pairs; f: sign, threshold.
 */
TNCUDA_KERNEL(boxes_match, FREE, tncuda_call_args)
{
    const int64_t rows = call->n[0], columns = call->n[1];

    for (int64_t m = TNCUDA_FIRST; m < call->count; m += TNCUDA_STEP) {
        const order_entry *entry = (const order_entry *)call->in[1].data + m * call->size;
        int64_t *row = (int64_t *)call->room + m * (rows + columns), *column = row + rows, found = 0;

        for (int64_t i = 0; i < rows + columns; i++)
            row[i] = -1;
        for (int64_t i = 0; i < call->size && (call->n[2] < 1 || found <= call->n[2]); i++) {
            const int64_t r = entry[i].index / columns, c = entry[i].index % columns;

            if (row[r] != -1 || column[c] != -1)
                continue;
            if (!(call->f[0] * NUMBER_IN(0, m * call->size + entry[i].index) > call->f[0] * call->f[1]))
                break;
            row[r] = c;
            column[c] = r;
            found++;
        }
    }
}

/* out[0] from the room of boxes_match: n: elements of each matrix there, the first of them, those between. */
TNCUDA_KERNEL(boxes_matches, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const int64_t *from = (const int64_t *)call->room + call->n[1];

        NUMBER_OUT(0, i, call->room ? (double)from[i / call->n[0] * call->n[2] + i % call->n[0]] : -1.0);
    }
}

/* in[1]: where each row of dy came from, -1: from none. */
TNCUDA_KERNEL(boxes_records, FREE, tncuda_call_args)
{
    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const int64_t from = ELEMENT_AT(int64_t, call->in[1].data, i);

        ENTRIES[i].key = from >= 0 && from < call->count ? (uint64_t)from : ORDER_OUT;
        ENTRIES[i].index = i;
    }
}

/* in[0]: dy (rows, size), in[1]: sorted records; dx, which is 0, takes the last row that came from each of
 * its own. n: bytes of an element. */
TNCUDA_KERNEL(boxes_nms_back, FREE, tncuda_call_args)
{
    const order_entry *entry = (const order_entry *)call->in[1].data;

    for (int64_t i = TNCUDA_FIRST; i < call->count; i += TNCUDA_STEP) {
        const int64_t k = i / call->size, last = call->count / call->size - 1;

        if (entry[k].key != ORDER_OUT && (k == last || entry[k + 1].key != entry[k].key))
            element_move(call->out[0].data, (int64_t)entry[k].key * call->size + i % call->size,
                         call->in[0].data, entry[k].index * call->size + i % call->size, call->n[0]);
    }
}

#define BODY "detection.inc"
#include "both.h"
