#!/bin/bash
# A training that is killed and resumed ends with the bits of the unbroken one, or says that there is no run.json
# and exits 2. Short form: 4 kills at random moments and 8 while a checkpoint is written; TENON_FULL=1: 20 and 16.
. "$(dirname "$0")/common.bash"

kills=4 epochs=4
[ "$full" = 1 ] && kills=20 epochs=6
options=(--epochs $epochs --set run.deterministic=threads --set train.checkpoint_every=0.5)

start=$(date +%s%N)
want=$(hash unbroken "${options[@]}") || fail "the unbroken training failed"
took_ms=$((($(date +%s%N) - start) / 1000000))
[ $took_ms -gt 0 ] || took_ms=1000 # the clock was set back

resume() { # resume WHAT
    local status
    "$tool" train --resume "$work/killed" --json >"$work/resumed.json" 2>"$work/resumed.err"
    status=$?
    count=$((count + 1))
    if [ $status = 2 ] && [ ! -e "$work/killed/run.json" ]; then
        grep -Eq 'run\.json|is no folder' "$work/resumed.err" || fail "$1: exit 2 without a word about run.json"
        echo "$1: killed before run.json was written"
        return
    fi
    [ $status = 0 ] || fail "$1: --resume ended with $status: $(tail -n 3 "$work/resumed.err")"
    [ "$(field params_sha256 "$work/resumed.json")" = "$want" ] || fail "$1: another params_sha256 after --resume"
}

for ((i = 0; i < kills; i++)); do
    rm -rf "$work/killed"
    "$tool" train zoo:lenet --data digits --seed 42 --json --set run.dir="$work/killed" "${options[@]}" \
        >/dev/null 2>&1 &
    pid=$!
    ms=$((i == 0 ? 10 : RANDOM * 30 % took_ms))
    sleep "$(printf '%d.%03d' $((ms / 1000)) $((ms % 1000)))"
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    resume "killed after $ms ms"
done

# Killed while a checkpoint is written: only builds with failpoints can, so the debug build does where there is one.
points=(checkpoint_begin checkpoint_written checkpoint_synced checkpoint_renamed) nth=(1 2)
[ "$full" = 1 ] && nth=(1 2 5 9)
dev=$(dirname "$build")/build-dev/bin/tenon
if [ ! -x "$dev" ]; then
    echo "no debug build: nothing was killed while a checkpoint was written"
    finish
fi
tool=$dev
[ "$full" = 1 ] || options=(--epochs 2 "${options[@]:2}") # they write four checkpoints
net=zoo:mlp # unoptimized code is slow, and what writes checkpoints does not look at the net
want=$(hash unbroken "${options[@]}") || fail "the unbroken training of the debug build failed"
for point in "${points[@]}"; do
    for n in "${nth[@]}"; do
        rm -rf "$work/killed"
        TENON_FAILPOINT=$point:$n=kill "$tool" train "$net" --data digits --seed 42 --json \
            --set run.dir="$work/killed" "${options[@]}" >/dev/null 2>&1
        status=$?
        [ $status = 137 ] || fail "$point:$n: was not killed, ended with $status"
        resume "killed at $point, time $n"
    done
done
finish
