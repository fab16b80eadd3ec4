#!/bin/bash
# A job of two workers and two servers, started by `tenon launch`: it learns the digits, each line has its rank, all
# workers have the same bits, those of one process with two devices, in each run; and a worker that is killed ends it.
# Short form: two runs of four epochs. TENON_FULL=1: ten of twelve, and then at least 0.98 right.
. "$(dirname "$0")/common.bash"

epochs=4 runs=2
[ "$full" = 1 ] && epochs=12 runs=10
training=(train zoo:lenet --data digits --epochs $epochs --set train.batch=32 --seed 42 --json --set run.deterministic=threads)
launch=("$tool" launch -n 2 -s 2 --launcher local --)
cd "$work" || exit 1
"$tool" plugins list --exists kv-zmq || { echo "the plugin kv-zmq is not built"; exit 77; }

# The hash that each worker told, one a line.
hashes() { sed -n 's/.*"event":"done".*"params_sha256":"\([^"]*\)".*/\1/p' "$1" | sort; }

job() { # job FILE OPTION...
    local file=$1
    shift
    "${launch[@]}" "$tool" "${training[@]}" --set kvstore.type=dist_sync "$@" >"$file" 2>"$file.err"
}

job first
code=$?
if [ $code = 3 ] && grep -q 'a store of type dist_sync needs' first.err; then
    echo "this build has no distributed stores yet"
    exit 77
fi
[ $code = 0 ] || fail "the job failed: $(tail -n 20 first.err)"
"$tool" "${training[@]}" --set kvstore.type=local --set device.default=cpu:0,cpu:1 >one 2>one.err ||
    fail "one process failed: $(tail -n 5 one.err)"
grep -h '"kvstore":{"rounds":' runs/*/metrics.jsonl | grep -q '"late":\[{"rank":' || fail "no epoch has the store's pace"
for rank in 0 1; do
    cat runs/*/run.json | tr -d ' \n' | grep -q "\"shard\":{\"num_parts\":2,\"part_index\":$rank,\"parts\":1,\"samples\":71" ||
        fail "no run.json has the shard of rank $rank"
done
want=$(hashes one)
for rank in 0 1; do
    [ "$(grep -c "\"rank\": \{0,1\}$rank}$" first)" = $((epochs + 2)) ] || fail "rank $rank: not every line has it: $(cat first)"
done
for ((i = 1; i <= runs; i++)); do
    [ $i = 1 ] || job first || fail "run $i failed: $(tail -n 20 first.err)"
    [ "$(hashes first)" = "$want
$want" ] || fail "run $i: the workers have $(hashes first), one process $want"
    count=$((count + 1))
done
accuracy=$(grep '"event":"done"' first | field accuracy /dev/stdin)
awk "BEGIN { exit !($accuracy >= ($epochs == 12 ? 0.98 : 0.9)) }" || fail "accuracy $accuracy"

# A worker that kills itself: the job ends with its signal, it is named, and nothing is left.
"${launch[@]}" sh -c 'test "$DMLC_WORKER_ID" = 0 || { "$0" version; kill -9 $$; }; exec "$0" "$@"' "$tool" "${training[@]}" \
    --set kvstore.type=dist_sync >killed 2>killed.err
[ $? = 137 ] || fail "a killed worker: code $?, $(tail -n 5 killed.err)"
grep -q '^tenon: worker 1 failed: signal 9' killed.err || fail "a killed worker: $(tail -n 5 killed.err)"
count=$((count + 1))
finish
