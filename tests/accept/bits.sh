#!/bin/bash
# The same bits whatever runs the operations: threads, engine, pool, hybridized or not, the fake device.
# Short form: two epochs, one change at a time and 4 random combinations. TENON_FULL=1: twelve epochs, 40 random
# combinations, then all of them.
. "$(dirname "$0")/common.bash"

epochs=2 combinations=4 fake_seeds=2
[ "$full" = 1 ] && epochs=12 combinations=40 fake_seeds=20
common=(--epochs $epochs --set run.deterministic=threads)
threads=(1 2 4) engines=(naive threaded) pools=(none naive round segment) hybridize=(true false)

expect() { # expect WANTED WHAT OPTION...
    local wanted=$1 what=$2 got
    shift 2
    got=$(hash run "${common[@]}" "$@") || fail "$what: the training failed"
    count=$((count + 1))
    [ "$got" = "$wanted" ] || fail "$what: params_sha256 $got, expected $wanted"
}

want=$(hash run "${common[@]}") || fail "the training failed"
[ -n "$want" ] || fail "no params_sha256"
count=1
expect "$want" "a second run"
for n in "${threads[@]}"; do OMP_NUM_THREADS=$n expect "$want" "OMP_NUM_THREADS=$n"; done
for e in "${engines[@]}"; do expect "$want" "engine.type=$e" --set engine.type="$e"; done
for p in "${pools[@]}"; do expect "$want" "memory.cpu.pool=$p" --set memory.cpu.pool="$p"; done
for h in "${hybridize[@]}"; do expect "$want" "train.hybridize=$h" --set train.hybridize="$h"; done
for ((i = 0; i < combinations; i++)); do
    n=${threads[RANDOM % 3]} e=${engines[RANDOM % 2]} p=${pools[RANDOM % 4]} h=${hybridize[RANDOM % 2]}
    OMP_NUM_THREADS=$n expect "$want" "threads $n, engine $e, pool $p, hybridize $h" \
        --set engine.type="$e" --set memory.cpu.pool="$p" --set train.hybridize="$h"
done

# Every combination there is.
product() {
    local n e p h
    for n in "${threads[@]}"; do for e in "${engines[@]}"; do for p in "${pools[@]}"; do for h in "${hybridize[@]}"; do
        OMP_NUM_THREADS=$n expect "$want" "threads $n, engine $e, pool $p, hybridize $h" \
            --set engine.type="$e" --set memory.cpu.pool="$p" --set train.hybridize="$h"
    done; done; done; done
}
[ "$full" = 1 ] && product

plain=$(hash run "${common[@]}" --set kernel.prefer=cpu) || fail "kernel.prefer=cpu: the training failed"
for ((fake = 1; fake <= fake_seeds; fake++)); do
    expect "$plain" "fake:0, seed $fake" --set device.default=fake:0 --set plugin.fake.seed=$fake
done
finish
