/*
 * The memory of a link: a sealed file without a name, and the rings in it.
 *
 * The file is sealed against any change of its size, so no access can fault; it is memory of tmpfs and
 * nothing else, and goes with the last mapping. Our index of a ring is kept here and only published there;
 * the peer's is read once, and has to lie between what it was and what our own allows.
 */
#include "kv_shm.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

static uint64_t area_bytes(uint64_t ring_bytes)
{
    return TNSHM_AREA_BYTES + 2 * (TNSHM_URGENT_BYTES + ring_bytes);
}

static void pipe_init(tnshm_pipe *p, tnshm_area *a, unsigned side, unsigned class, uint64_t ring_bytes)
{
    uint8_t *const from = (uint8_t *)a + TNSHM_AREA_BYTES + side * (TNSHM_URGENT_BYTES + 2 * ring_bytes);

    *p = (tnshm_pipe){.ring = &a->ring[side][class],
                      .data = from + (class == RING_BULK ? TNSHM_URGENT_BYTES : 0),
                      .size = class == RING_BULK ? ring_bytes : TNSHM_URGENT_BYTES};
}

static bool area_map(tn_link *l, int fd, uint64_t ring_bytes)
{
    const uint64_t half = TNSHM_URGENT_BYTES + ring_bytes, first = TNSHM_AREA_BYTES + half;
    const struct {
        uint64_t to, from, bytes;
    } pieces[] = {{0, 0, first},
                  {first, TNSHM_AREA_BYTES + TNSHM_URGENT_BYTES, ring_bytes},
                  {first + ring_bytes, first, half},
                  {first + ring_bytes + half, first + TNSHM_URGENT_BYTES, ring_bytes}};
    const unsigned side = !l->called;
    tnshm_map *map = malloc(sizeof *map);
    uint8_t *at = MAP_FAILED;
    bool mapped;

    l->area_bytes = area_bytes(ring_bytes);
    if (map) {
        *map = (tnshm_map){.bytes = l->area_bytes + 2 * ring_bytes, .uses = 1};
        map->at = at = mmap(NULL, map->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    }
    mapped = at != MAP_FAILED;
    for (size_t i = 0; mapped && i < sizeof pieces / sizeof *pieces; i++)
        mapped = mmap(at + pieces[i].to, pieces[i].bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
                      (off_t)pieces[i].from) != MAP_FAILED;
    if (!mapped) {
        if (at != MAP_FAILED)
            (void)munmap(at, map->bytes);
        free(map);
        return false;
    }
    (void)madvise(at, map->bytes, MADV_DONTFORK);
    l->map = map;
    l->area = (tnshm_area *)(void *)at;
    for (unsigned class = 0; class < RING_CLASSES; class ++) {
        pipe_init(&l->out[class].pipe, l->area, side, class, ring_bytes);
        pipe_init(&l->in[class].pipe, l->area, !side, class, ring_bytes);
    }
    return true;
}

tn_status tnshm_area_create(tn_link *l, uint64_t ring_bytes, int *out, tn_err *err)
{
    const int fd = memfd_create("tenon-kv-shm", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0 || ftruncate(fd, (off_t)area_bytes(ring_bytes)) ||
        fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_SEAL) || !area_map(l, fd, ring_bytes)) {
        const tn_status st = fail_system(err, "memory for a link");

        if (fd >= 0)
            (void)close(fd);
        return st;
    }
    memcpy(l->area->token, l->token, sizeof l->token);
    *out = fd;
    return TN_OK;
}

const char *tnshm_area_take(tn_link *l, int fd, uint64_t ring_bytes)
{
    const int seals = fcntl(fd, F_GET_SEALS);
    uint8_t token[PROOF_BYTES];
    struct statfs system;
    struct stat file;

    if (ring_bytes < TNSHM_RING_MIN || ring_bytes > TNSHM_RING_MAX || ring_bytes & (ring_bytes - 1))
        return "the peer offers a ring of a size that cannot be";
    if (seals < 0 || (seals & SEALS) != SEALS)
        return "the peer's memory is not sealed";
    if (fstatfs(fd, &system) || system.f_type != TMPFS_MAGIC || fstat(fd, &file) || !S_ISREG(file.st_mode))
        return "the peer's memory is of another kind";
    if ((uint64_t)file.st_size != area_bytes(ring_bytes))
        return "the peer's memory has another size than it says";
    if (!area_map(l, fd, ring_bytes))
        return "the peer's memory cannot be mapped";
    memcpy(token, l->area->token, sizeof token);
    return proof_equal(token, l->token) ? NULL : "the peer's memory has another token than it says";
}

void tnshm_map_drop(tnshm_map *m)
{
    if (!m || --m->uses)
        return;
    (void)munmap(m->at, m->bytes);
    free(m);
}

void tnshm_area_drop(tn_link *l)
{
    tnshm_map_drop(l->map);
    l->map = NULL;
    l->area = NULL;
}

/* ---- rings -------------------------------------------------------------------------------------------- */

uint64_t tnshm_pipe_room(tnshm_pipe *p)
{
    const uint64_t head = atomic_load_explicit(&p->ring->head, memory_order_acquire);

    if (head - p->seen > p->own - p->seen)
        return UINT64_MAX;
    p->seen = head;
    return p->size - (p->own - head);
}

uint64_t tnshm_pipe_filled(tnshm_pipe *p)
{
    const uint64_t tail = atomic_load_explicit(&p->ring->tail, memory_order_acquire);

    if (tail - p->own > p->size || tail - p->own < p->seen - p->own)
        return UINT64_MAX;
    p->seen = tail;
    return tail - p->own;
}

void tnshm_pipe_write(tnshm_pipe *p, const void *data, uint64_t bytes)
{
    const uint64_t at = p->own & (p->size - 1), first = bytes < p->size - at ? bytes : p->size - at;

    memcpy(p->data + at, data, first);
    memcpy(p->data, (const uint8_t *)data + first, bytes - first);
    p->own += bytes;
}

void tnshm_pipe_read(tnshm_pipe *p, void *data, uint64_t bytes)
{
    const uint64_t at = p->own & (p->size - 1), first = bytes < p->size - at ? bytes : p->size - at;

    memcpy(data, p->data + at, first);
    memcpy((uint8_t *)data + first, p->data, bytes - first);
    p->own += bytes;
}
