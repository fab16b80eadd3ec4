/* Who a peer is: HMAC-SHA256 (RFC 2104) over the numbers of a handshake, and the name of this host. */
#include "kv_shm.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

void tnshm_proof(const tn_link *l, char step, uint8_t out[PROOF_BYTES])
{
    const uint8_t what = (uint8_t)step;
    SHA2_CTX c;

    proof_begin(&c, l->t->key);
    SHA256Update(&c, &what, 1);
    SHA256Update(&c, l->nonce[0], sizeof l->nonce);
    SHA256Update(&c, l->token, sizeof l->token);
    proof_end(&c, l->t->key, out);
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
    uint8_t hash[PROOF_BYTES];
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
