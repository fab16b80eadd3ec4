/* Who a peer is: HMAC-SHA256 (RFC 2104) over the numbers of a handshake, and the name of this host. */
#include "kv_shm.h"

#include <errno.h>
#include <fcntl.h>
#include <sha2.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

_Static_assert(TNSHM_HASH_BYTES == SHA256_DIGEST_LENGTH, "a hash");

tn_status tnshm_random(void *out, uint64_t bytes, tn_err *err)
{
    ssize_t got;

    do
        got = getrandom(out, bytes, 0);
    while (got < 0 && errno == EINTR);
    return got == (ssize_t)bytes ? TN_OK : tnshm_fail_system(err, "random numbers");
}

static void hash_begin(SHA2_CTX *c, const uint8_t *key, size_t bytes, uint8_t pad)
{
    uint8_t block[SHA256_BLOCK_LENGTH];

    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (uint8_t)((i < bytes ? key[i] : 0) ^ pad);
    SHA256Init(c);
    SHA256Update(c, block, sizeof block);
}

void tnshm_proof(const tn_link *l, char step, uint8_t out[TNSHM_HASH_BYTES])
{
    const uint8_t what = (uint8_t)step;
    SHA2_CTX c;

    hash_begin(&c, l->t->key, sizeof l->t->key, 0x36);
    SHA256Update(&c, &what, 1);
    SHA256Update(&c, l->nonce[0], sizeof l->nonce);
    SHA256Update(&c, l->token, sizeof l->token);
    SHA256Final(out, &c);
    hash_begin(&c, l->t->key, sizeof l->t->key, 0x5c);
    SHA256Update(&c, out, TNSHM_HASH_BYTES);
    SHA256Final(out, &c);
}

bool tnshm_equal(const uint8_t a[TNSHM_HASH_BYTES], const uint8_t b[TNSHM_HASH_BYTES])
{
    uint8_t differs = 0;

    for (uint32_t i = 0; i < TNSHM_HASH_BYTES; i++)
        differs = (uint8_t)(differs | (a[i] ^ b[i]));
    return !differs;
}

static void file_add(SHA2_CTX *c, const char *path)
{
    uint8_t text[100];
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    const ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof text);

    if (got > 0)
        SHA256Update(c, text, (size_t)got);
    SHA256Update(c, (const uint8_t *)"", 1);
    if (fd >= 0)
        (void)close(fd);
}

void tnshm_host_name(char out[17])
{
    uint8_t hash[TNSHM_HASH_BYTES];
    struct stat net = {0};
    uint64_t inode;
    SHA2_CTX c;

    (void)stat("/proc/self/ns/net", &net);
    inode = net.st_ino;
    SHA256Init(&c);
    file_add(&c, "/etc/machine-id");
    file_add(&c, "/proc/sys/kernel/random/boot_id");
    SHA256Update(&c, (const uint8_t *)&inode, sizeof inode);
    SHA256Final(hash, &c);
    for (uint32_t i = 0; i < 8; i++)
        (void)snprintf(out + 2 * (size_t)i, 3, "%02x", hash[i]);
}
