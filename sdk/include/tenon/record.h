/**
 * RecordIO, MXNet's packed data: records of bytes one behind the other, an index beside them, and the header
 * that a record with labels begins with.
 *
 * A reader and a writer belong to one thread at a time.
 */
#ifndef TENON_RECORD_H
#define TENON_RECORD_H

#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tn_record_reader tn_record_reader;
typedef struct tn_record_writer tn_record_writer;

/**
 * Opens a .rec file, or a share of it: the records that begin in share number `part` of `parts` equal ones of
 * its bytes. Every record is in one share.
 *
 * @param parts 1: the whole file
 * @return TN_E_IO · TN_E_ARG: `part` is not below `parts`
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_record_open(const char *path, uint32_t part, uint32_t parts, tn_record_reader **out);

/** NULL is fine. @threads owner @since 0.1 */
TN_API void tn_record_close(tn_record_reader *r);

/**
 * The next record.
 *
 * @param data  borrowed until the next call; NULL: there is none
 * @param bytes of it
 * @return TN_E_FORMAT: no record begins here, or the file ends within one, with the offset
 * @threads owner
 * @since 0.1
 */
TN_API tn_status tn_record_next(tn_record_reader *r, const void **data, uint64_t *bytes);

/**
 * Passes over the next record: where it begins, and its first bytes, up to `room`; fewer if the record is
 * shorter, or has the magic number of the format in them.
 *
 * @param offset UINT64_MAX: there is no further record
 * @return as tn_record_next()
 * @threads owner
 * @since 0.1
 */
TN_API tn_status tn_record_peek(tn_record_reader *r, void *out, uint64_t room, uint64_t *bytes,
                                uint64_t *offset);

/** The next record is the one that begins at `offset`, as an index has it. TN_E_ARG: none of the share can.
 * @threads owner @since 0.1 */
TN_API tn_status tn_record_seek(tn_record_reader *r, uint64_t offset);

/** Back to the first record of the share. @threads owner @since 0.1 */
TN_API void tn_record_rewind(tn_record_reader *r);

/**
 * A new .rec file, and its index (lines of key and offset). Both are whole or absent.
 *
 * @param index NULL: none
 * @threads any
 * @since 0.1
 */
TN_API tn_status tn_record_create(const char *path, const char *index, tn_record_writer **out);

/** Appends a record; `key` goes into the index. TN_E_IO. @threads owner @since 0.1 */
TN_API tn_status tn_record_append(tn_record_writer *w, uint64_t key, const void *data, uint64_t bytes);

/** Puts the files in their places and frees the writer, also on failure. @threads owner @since 0.1 */
TN_API tn_status tn_record_finish(tn_record_writer *w);

/** Frees the writer; there are no files then. NULL is fine. @threads owner @since 0.1 */
TN_API void tn_record_abandon(tn_record_writer *w);

/** One line of an index. */
typedef struct tn_record_place {
    uint64_t key, offset;
} tn_record_place;

/** Reads an index: `count` places, yours (tn_free). TN_E_IO · TN_E_FORMAT: with file and line.
 * @threads any @since 0.1 */
TN_API tn_status tn_record_index_load(const char *path, size_t *count, tn_record_place **places);

/** What a record with labels begins with. */
typedef struct tn_record_header {
    uint32_t struct_size; /* TN_SIZE(tn_record_header) */
    uint32_t label_count; /* 0: `label` is the only one */
    const float *labels;  /* `label_count`; when read: borrowed from the record, at any address */
    float label;
    uint32_t reserved;
    uint64_t id, id2;
} tn_record_header;

/** Takes a record apart. `payload`: behind header and labels. TN_E_FORMAT: it is too short. @threads any
 * @since 0.1 */
TN_API tn_status tn_record_unpack(const void *data, uint64_t bytes, tn_record_header *header,
                                  const void **payload, uint64_t *payload_bytes);

/** Header, labels and payload as one record, yours (tn_free). @threads any @since 0.1 */
TN_API tn_status tn_record_pack(const tn_record_header *header, const void *payload, uint64_t payload_bytes,
                                void **data, uint64_t *bytes);

#ifdef __cplusplus
}
#endif

#endif
