#!/bin/bash
# One training, the same params_sha256 from one process with two devices, from two workers and two servers over zmq and
# over shm, and from two ranks under plain mpirun. TENON_FULL=1: ten runs each of more epochs, and ten over rdma in the
# emulated machine. All by the plain kernels: their bits do not depend on the processor, which the emulated one is not.
. "$(dirname "$0")/common.bash"
build=$(cd "$build" && pwd)
tool=$build/bin/tenon
source=$(cd "$(dirname "$0")/../.." && pwd)

runs=1 epochs=1
[ "$full" = 1 ] && runs=10 epochs=3
cd "$work" || exit 1
training=(train zoo:mlp --data digits --epochs $epochs --seed "${TENON_SEED:-42}" --json --set train.batch=64 --set run.deterministic=threads
    --set kvstore.deterministic=1 --set kernel.prefer=cpu)

hashes() { sed -n 's/.*"event":"done".*"params_sha256":"\([^"]*\)".*/\1/p' "$@"; }
"$tool" "${training[@]}" --set kvstore.type=local --set device.default=cpu:0,cpu:1 >one 2>one.err || fail "one process failed: $(tail -n 5 one.err)"
want=$(hashes one)
[ -n "$want" ] || fail "one process has no bits"

runs_of() { # runs_of NAME COMMAND...: each run's two workers have these bits
    local name=$1 run
    shift
    for ((run = 1; run <= runs; run++)); do
        timeout 300 "$@" >two 2>two.err || fail "$name, run $run: exit $?: $(tail -n 5 two.err)"
        [ "$(hashes two)" = "$want
$want" ] || fail "$name, run $run: $(hashes two), one process $want"
        count=$((count + 1))
    done
    echo "same: $name $runs"
}

for transport in zmq shm; do
    "$tool" plugins list --exists kv-$transport || { echo "skipped: the plugin kv-$transport is not built"; continue; }
    runs_of $transport "$tool" launch -n 2 -s 2 --launcher local -- "$tool" "${training[@]}" --set kvstore.type=dist_sync \
        --set kvstore.transport=$transport
done
if ! "$tool" plugins list --exists kv-mpi; then
    echo "skipped: the plugin kv-mpi is not built"
elif ! mpirun --version 2>/dev/null | grep -q 'Open MPI'; then
    echo "skipped: there is no mpirun of Open MPI"
else
    root=()
    [ "$(id -u)" = 0 ] && root=(--allow-run-as-root)
    runs_of mpi mpirun "${root[@]}" --oversubscribe --mca btl self,vader -x XDG_CONFIG_HOME -n 2 "$tool" "${training[@]}" --set kvstore.type=mpi
fi
[ "$full" = 1 ] || finish

TENON_RUNS=$runs TENON_WANT=$want "$source/scripts/rdma-guest" --build "$build" --seconds 3600 \
    bash "$source/tests/guest/same.sh" "${training[@]}" >rdma 2>rdma.err
code=$?
case $code in
0) count=$((count + $(sed -n 's/^count //p' rdma))); echo "same: rdma $(sed -n 's/^count //p' rdma)" ;;
77) echo "skipped: rdma: $(tail -n 1 rdma.err)" ;;
*) fail "rdma: $code: $(tail -n 10 rdma rdma.err)" ;;
esac
finish
