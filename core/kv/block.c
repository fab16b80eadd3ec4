/* Memory of values and sums: what a message holds is not written. */
#include <string.h>

#include "kv/server.h"

tni_kv_block *tni_kv_block_of(void *bytes)
{
    return (tni_kv_block *)(void *)((char *)bytes - offsetof(tni_kv_block, bytes));
}

static void block_free(tni_kv_hold *hold)
{
    tni_free(hold);
}

void *tni_kv_block_make(uint64_t bytes)
{
    tni_kv_block *b = tni_alloc(sizeof *b + bytes);

    if (!b)
        return NULL;
    b->hold = (tni_kv_hold){.free = block_free};
    return b->bytes;
}

void tni_kv_block_drop(void *bytes)
{
    tni_kv_block *b = bytes ? tni_kv_block_of(bytes) : NULL;

    if (!b)
        return;
    b->hold.ended = true;
    if (!b->hold.count)
        block_free(&b->hold);
}

tn_status tni_kv_block_own(void **bytes, uint64_t count, bool keeps)
{
    void *made;

    if (!tni_kv_block_of(*bytes)->hold.count)
        return TN_OK;
    if (!(made = tni_kv_block_make(count)))
        return TN_E_NOMEM;
    if (keeps)
        memcpy(made, *bytes, count);
    tni_kv_block_drop(*bytes);
    *bytes = made;
    return TN_OK;
}
