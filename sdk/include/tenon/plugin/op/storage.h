/** Attributes of the operators of the family storage. */
#ifndef TENON_PLUGIN_OP_STORAGE_H
#define TENON_PLUGIN_OP_STORAGE_H

#include "../attr.h"

/* numbered as TN_STORAGE_… */
#define TN_cast_storage_stype_CHOICES(C, op, name)                                                           \
    C(op, name, default) C(op, name, row_sparse) C(op, name, csr)
#define TN_cast_storage_ATTRS(X)                                                                             \
    X(cast_storage, CHOICE, stype, TN_REQUIRED, TN_ANY, "the storage type that is wanted")
TN_ATTRS(cast_storage);
TN_CHOICES(cast_storage, stype);

#define TN_embedding_rows_ATTRS(X)                                                                           \
    X(embedding_rows, INT, input_dim, TN_REQUIRED, TN_IN(0, 9e15), "rows of the weight")
TN_ATTRS(embedding_rows);

#endif
