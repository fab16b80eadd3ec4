#!/bin/bash
# kvstore.type = mpi under plain mpirun: all ranks have the bits of one process over as many devices; ranks that are
# killed and stopped are named within the deadline; without a launcher it is a job of one. Short form: two runs and
# one drill of each kind. TENON_FULL=1: ten of twelve epochs, and drills at 20 points.
. "$(dirname "$0")/common.bash"

epochs=2 runs=2 points=1
[ "$full" = 1 ] && epochs=12 runs=10 points=20
cd "$work" || exit 1
"$tool" plugins list --exists kv-mpi || { echo "the plugin kv-mpi is not built"; exit 77; }
mpirun --version 2>/dev/null | grep -q 'Open MPI' || { echo "there is no mpirun of Open MPI"; exit 77; }
training=(train zoo:lenet --data digits --set train.batch=32 --seed 42 --json --set run.deterministic=threads)
mpi=(mpirun --oversubscribe --mca btl self,vader -x XDG_CONFIG_HOME)
[ "$(id -u)" = 0 ] && mpi+=(--allow-run-as-root)

hashes() { sed -n 's/.*"event":"done".*"params_sha256":"\([^"]*\)".*/\1/p' "$1" | sort; }

"$tool" "${training[@]}" --epochs $epochs --set kvstore.type=local --set device.default=cpu:0,cpu:1 >one 2>one.err ||
    fail "one process failed: $(tail -n 5 one.err)"
want=$(hashes one)
for ((i = 1; i <= runs; i++)); do
    timeout 300 "${mpi[@]}" -n 2 "$tool" "${training[@]}" --epochs $epochs --set kvstore.type=mpi \
        --set kvstore.deterministic=1 >two 2>two.err || fail "run $i failed: $(tail -n 20 two.err)"
    [ "$(hashes two)" = "$want
$want" ] || fail "run $i: the ranks have $(hashes two), one process $want"
    count=$((count + 1))
done

# Alone: rank 0 of one.
timeout 300 "$tool" "${training[@]}" --epochs 1 --set kvstore.type=mpi >alone 2>alone.err || fail "alone: $(tail -n 5 alone.err)"
count=$((count + 1))

# Contradicting variables are named, before MPI is asked.
RANK=1 WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 "$tool" "${training[@]}" --set kvstore.type=mpi >clash 2>&1 &&
    fail "contradicting variables are taken"
grep -q 'RANK says 1, but OMPI_COMM_WORLD_RANK says 0' clash || fail "contradiction: $(cat clash)"
count=$((count + 1))

# One of two that no launcher has started does not train as if it were alone.
"$tool" "${training[@]}" --set kvstore.type=mpi --set kvstore.workers=2 >others 2>&1 && fail "the other worker is not missed"
grep -q "2 workers are asked for, but MPI's launcher says rank 0 of 1" others || fail "other workers: $(cat others)"
count=$((count + 1))

# drill SIGNAL: rank 1 signals itself once it has trained for a while; rank 0 must name it.
drill() {
    rm -f pid drill.0
    # shellcheck disable=SC2016
    timeout 120 "${mpi[@]}" --mca orte_enable_recovery 1 -n 2 bash -c '
        "$@" >"drill.$OMPI_COMM_WORLD_RANK" 2>&1 &
        [ "$OMPI_COMM_WORLD_RANK" = 0 ] || { echo $! >pid.new; mv pid.new pid; }
        wait $!; code=$?
        [ "$OMPI_COMM_WORLD_RANK" = 0 ] && echo "code $code" >>drill.0 && [ -f pid ] && kill -9 "$(cat pid)" 2>/dev/null
        exit 0' drill "$tool" "${training[@]}" --epochs 1000 --set kvstore.type=mpi --set kvstore.timeout=8s \
        --set kvstore.control_timeout=30s >drill.log 2>&1 &
    local job=$!
    until [ -s pid ] && grep -q '"event":"epoch"' drill.0 2>/dev/null; do
        kill -0 $job 2>/dev/null || fail "the drill's job ended early: $(cat drill.log drill.0)"
        sleep 0.1
    done
    sleep "0.0$((RANDOM % 10))"
    kill "-$1" "$(cat pid)"
    wait $job
    grep -q 'code 1$' drill.0 || fail "drill $1: $(tail -n 3 drill.0)"
    grep -Eq 'rank 1 (is silent|has left|has given up)' drill.0 || fail "drill $1: rank 1 is not named: $(tail -n 5 drill.0)"
    grep -q 'bucket' drill.0 || fail "drill $1: the bucket is not named: $(tail -n 5 drill.0)"
    count=$((count + 1))
}
for ((p = 0; p < points; p++)); do
    drill KILL
    drill STOP
done
finish
