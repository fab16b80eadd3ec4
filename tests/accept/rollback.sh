#!/bin/bash
# A server of a job that is killed comes back (`tenon launch --on-fail restart`), with its newest snapshot or none: the
# job goes on by itself and ends with the bits of one process. Short form: server 0 is killed at 4 of its named points
# and once before there is a snapshot; TENON_FULL=1: at all of them. Of dist_async, which sends no gradient again, it is
# killed in the first period: the training goes on from what was written before the first gradient, or, before that is
# written, from the first values and the optimizer, which worker 0 gives again. Only builds with failpoints can.
. "$(dirname "$0")/common.bash"

dev=$(dirname "$build")/build-dev/bin/tenon
[ -x "$dev" ] || { echo "no debug build: no server is killed at a point"; exit 77; }
tool=$dev
cd "$work" || exit 1
"$tool" plugins list --exists kv-zmq || { echo "the plugin kv-zmq is not built"; exit 77; }
training=(train zoo:lenet --data digits --epochs 2 --set train.batch=32 --seed 42 --json --set run.deterministic=threads)

hashes() { sed -n 's/.*"event":"done".*"params_sha256":"\([^"]*\)".*/\1/p' "$1" | sort; }

# job POINT EVERY TYPE [SETTING]...: server 0 ends at the point, in its first life
job() {
    rm -rf state
    "$tool" launch -n 2 -s 2 --launcher local --on-fail restart --all-roles -- sh -c '
        [ "$DMLC_ROLE$DMLC_SERVER_ID$DMLC_NUM_ATTEMPT" = server00 ] && export TENON_FAILPOINT="$1=kill"
        tool=$0 every=$2
        shift 2
        case $DMLC_ROLE in
        server) set -- kv serve ;;
        scheduler) set -- kv schedule ;;
        esac
        exec "$tool" "$@" --set kvstore.state_folder=state --set kvstore.part_bytes=16384 --set kvstore.durability=snapshot:$every' \
        "$tool" "$1" "$2" "${training[@]}" --set kvstore.type="$3" "${@:4}" >job 2>job.err
}

"$tool" "${training[@]}" --set kvstore.type=local --set device.default=cpu:0,cpu:1 >one 2>one.err ||
    fail "one process failed: $(tail -n 5 one.err)"
want=$(hashes one)
points=(kv.push_header:150/7 kv.reduced:90/7 kv.update_half:200/7 writer_renamed:5/7 kv.reduced:30/1000)
[ "$full" = 1 ] && points+=(kv.registered:1/7 kv.init_in:3/7 kv.init_stored:5/7 kv.push_half:2/7 kv.some_in:60/7 kv.all_in:77/7
    kv.applied:123/7 kv.logged:3/7 kv.log_synced:2/7 kv.acks_half:44/7 kv.pull_half:1/7 writer_sync:4/7 writer_rename:6/7
    kv.trimmed:2/7 kv.push_header:400/7 kv.reduced:300/7)
for point in "${points[@]}"; do
    job "${point%/*}" "${point#*/}" dist_sync || fail "$point: the job ended with $?: $(tail -n 20 job.err)"
    grep -q 'server 0 failed.*signal 9' job.err ||
        fail "$point: server 0 was not killed: $(tail -n 5 job.err)"
    [ "$(hashes job)" = "$want
$want" ] || fail "$point: the workers have $(hashes job), one process $want"
    count=$((count + 1))
done
for point in kv.log_synced:1 kv.logged:1; do
    job $point 1000000 dist_async --set train.lr=0.002 || fail "dist_async: the job ended with $?: $(tail -n 20 job.err)"
    grep -q 'server 0 failed.*signal 9' job.err || fail "dist_async: server 0 was not killed: $(tail -n 5 job.err)"
    [ "$(hashes job | wc -l)" = 2 ] || fail "dist_async: not both workers came to the end: $(tail -n 5 job)"
    count=$((count + 1))
done
finish
