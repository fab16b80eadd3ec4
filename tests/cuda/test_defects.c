/*
 * The emulator finds defects of kernels: it ends the process with a line of its own, an access behind an
 * array faults, or an order of blocks and threads gives other numbers than another one.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "defects.h"
#include "emulator.h"

#define BLOCKS 4u
#define THREADS 256u
#define COUNT ((int64_t)BLOCKS * THREADS - 56) /* the last block is not whole */
#define SEEDS 8u

enum { WELL, ENDS, FAULTS, DIFFERS };

static const struct {
    const char *name;
    int how;
    const char *says;
    int64_t count;
} kernels[] = {
    {"twice", WELL, "", COUNT},
    {"sum", WELL, "", BLOCKS *THREADS},
    {"sum_of_warps", WELL, "", BLOCKS *THREADS},
    {"shuffle_in_a_branch", ENDS, "16 of 32 threads of a warp", 0},
    {"return_before_shuffle", ENDS, "never come to this shuffle", 0},
    {"two_shuffles", ENDS, "threads of a warp of two_shuffles shuffle here", 0},
    {"shuffle_beside_a_barrier", ENDS, "never come to this shuffle", 0},
    {"shuffle_beyond_the_warp", ENDS, "no other thread of a warp", 0},
    {"shuffle_as_barrier", ENDS, "without a barrier between", 0},
    {"shuffle_in_free", ENDS, "a shuffle in a kernel that says FREE", 0},
    {"read_too_early", ENDS, "nobody has written", 0},
    {"write_too_early", ENDS, "without a barrier between", 0},
    {"tree_without_barrier", ENDS, "without a barrier between", 0},
    {"barrier_in_a_branch", ENDS, "never come to this barrier", 0},
    {"return_before_barrier", ENDS, "never come to this barrier", 0},
    {"two_barriers", ENDS, "others at line", 0},
    {"shared_unwritten", ENDS, "nobody has written", 0},
    {"shared_of_another_block", ENDS, "nobody has written", 0},
    {"shared_of_another_size", ENDS, "whose own are of 4", 0},
    {"shared_beyond", ENDS, "element 256 of a shared array of 256", 0},
    {"shared_too_large", ENDS, "shares more than", 0},
    {"barrier_in_free", ENDS, "a barrier in a kernel that says FREE", 0},
    {"beyond_the_end", FAULTS, "", COUNT},
    {"no_bound", FAULTS, "", COUNT},
    {"shift_in_place", DIFFERS, "", COUNT},
    {"sum_over_blocks", DIFFERS, "", COUNT},
    {"blocks_in_order", DIFFERS, "", COUNT},
};

/* `count` numbers whose end is that of a page, and no page behind it. */
static float *array_make(int64_t count)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = (size_t)count * sizeof(float);
    const size_t whole = (bytes + page - 1) / page * page;
    char *at = mmap(NULL, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED || mprotect(at + whole, page, PROT_NONE))
        exit(3);
    return (float *)(void *)(at + whole - bytes);
}

/* In a process of its own: what the kernel makes in several orders; 2: two of them differ. */
static int orders_run(const emu_kernel *k, int64_t count)
{
    const uint32_t grid[] = {BLOCKS, 1, 1}, block[] = {THREADS, 1, 1};
    float *in = array_make(count), *out = array_make(count), *first = array_make(count);
    const defect_args args = {count, in, out};

    for (int64_t i = 0; i < count; i++)
        in[i] = 1 / (float)(i + 3);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        for (int64_t i = 0; i < count; i++)
            out[i] = (float)i;
        emu_kernel_run(k, grid, block, &args, emu_random(seed, 1));
        if (!seed)
            memcpy(first, out, (size_t)count * sizeof *out);
        if (memcmp(first, out, (size_t)count * sizeof *out) != 0)
            return 2;
    }
    return 0;
}

/* Behind the line in which the address sanitizer speaks of fibers, if it comes first. */
static const char *own_words(const char *said)
{
    const char *end = strchr(said, '\n');

    if (strncmp(said, "==", 2) != 0 || !end || !strstr(said, "WARNING: ASan doesn't fully support"))
        return said;
    return end + 1;
}

static void found(const char *name, int how, const char *says, int64_t count)
{
    const emu_kernel *k = emu_kernel_find(name);
    char said[512] = "";
    int pipes[2], status, ended;
    size_t at = 0;
    pid_t child;

    assert_non_null(k);
    assert_int_equal(pipe(pipes), 0);
    (void)fflush(stdout);
    child = fork();
    if (!child) {
        (void)dup2(pipes[1], STDERR_FILENO);
        (void)signal(SIGSEGV, SIG_DFL);
        (void)signal(SIGBUS, SIG_DFL);
        (void)signal(SIGABRT, SIG_DFL);
        _exit(orders_run(k, count ? count : (int64_t)BLOCKS * THREADS));
    }
    (void)close(pipes[1]);
    for (ssize_t got = 1; got > 0 && at<sizeof said - 1; at += got> 0 ? (size_t)got : 0)
        got = read(pipes[0], said + at, sizeof said - 1 - at);
    said[at] = '\0';
    (void)close(pipes[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    ended = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if ((how == WELL && ended) || (how == DIFFERS && ended != 2) ||
        (how >= ENDS && how <= FAULTS && ended < 3) || !strstr(said, says) ||
        (how == ENDS && strncmp(own_words(said), "emulator: ", 10) != 0))
        fail_msg("%s ends with %d and says '%s'", name, ended, said);
}

static void defects(void **state)
{
    uint32_t planted = 0;

    (void)state;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        found(kernels[i].name, kernels[i].how, kernels[i].says, kernels[i].count);
        planted += kernels[i].how != WELL;
    }
    printf("%u planted defects found\n", planted);
    assert_true(planted >= 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(defects)};

    return cmocka_run_group_tests_name("defects", tests, NULL, NULL);
}
