# Shared by the scripts; read with `.`. Says where the clone is and holds the lists of packages.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

packages_build="gcc libc6-dev cmake ninja-build pkgconf libjansson-dev libinih-dev zlib1g-dev libmd-dev
    libopenblas-openmp-dev libdnnl-dev libzip-dev libzmq3-dev libibverbs-dev
    libjpeg62-turbo-dev libpng-dev"
packages_test="libcmocka-dev strace clang libclang-rt-14-dev g++ python3 binutils valgrind locales git procps
    dpkg-dev groff-base bsdextrautils file openssh-server rsync openmpi-bin munge slurm-client slurmctld slurmd"
packages_guest="qemu-system-x86 busybox-static cpio kmod iproute2 rdma-core ibverbs-utils perftest"

say() { printf '%s\n' "$*" >&2; }

die() {
    say "$(basename "$0"): $*"
    exit 1
}

# Whatever the processor, measurements and tests use the library's own choice of kernels.
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE

missing_packages() { # missing_packages NAME...: those that are not installed
    local name
    for name in "$@"; do
        case $(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null) in
        installed) ;;
        *) [ "$name" = pkgconf ] && command -v pkg-config >/dev/null || printf '%s ' "$name" ;;
        esac
    done
}

# configure PRESET [OPTION...]: configures build-PRESET, quietly unless it fails.
configure() {
    local preset=$1 log
    shift
    if ! log=$(cd "$root" && cmake --preset "$preset" "$@" 2>&1); then
        say "$log"
        return 1
    fi
}
