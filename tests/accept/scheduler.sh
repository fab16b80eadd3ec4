#!/bin/bash
# A node that only schedules: the core, the plugin kv-zmq and the tool, which `tenon plugins needs` names and nothing
# else; no cpu.so. It schedules a job whose server and worker are those of the build tree, and ends with it.
# usage: scheduler.sh BUILD
set -u
. "$(dirname "$0")/common.bash"
build=$(cd "$build" && pwd)
tool=$build/bin/tenon
node=$work/node
[ -f "$build/lib/tenon/plugins-1/kv-zmq.so" ] || { echo "the plugin kv-zmq is not built"; exit 77; }
chmod 755 "$work" # what lies below is checked for who may write it

for component in core nn cli plugin-kv-zmq; do
    flock "$build" cmake --install "$build" --component $component --strip --prefix "$node/usr" >"$work/install.log" 2>&1 ||
        fail "install of $component: $(tail -n 3 "$work/install.log")"
    rm -f "$build/install_manifest_$component.txt"
done
[ "$(find "$node" -path '*/plugins-1/*.so')" = "$(find "$node" -name kv-zmq.so)" ] || fail "other plugins: $(find "$node" -name '*.so')"
cd "$work" || exit 1
printf '[kvstore]\nrole = scheduler\n' >node.ini
own=$node/usr/bin/tenon
"$own" plugins needs node.ini >needs 2>needs.err || fail "needs: $(cat needs needs.err)"
[ "$(grep -c kvstore.role needs)" = 1 ] && grep -q '^kv-zmq .* kvstore.role' needs || fail "needs says: $(cat needs)"
grep -q '^cpu ' needs && fail "a scheduler needs cpu: $(cat needs)"
count=$((count + 1))

"$own" kv schedule --port 0 --address-file at --workers 1 --servers 1 >scheduled 2>scheduled.err &
scheduler=$!
trap 'kill $scheduler $(jobs -p) 2>/dev/null; rm -rf "$work"' EXIT
while [ ! -s at ] && kill -0 $scheduler 2>/dev/null; do sleep 0.1; done
[ -s at ] || fail "the scheduler: $(cat scheduled.err)"
export DMLC_PS_ROOT_URI=127.0.0.1 DMLC_PS_ROOT_PORT DMLC_NUM_WORKER=1 DMLC_NUM_SERVER=1
DMLC_PS_ROOT_PORT=$(sed 's/.*://' at)
"$tool" kv serve >served 2>served.err &
server=$!
train trained --epochs 1 --set kvstore.type=dist_sync || fail "training: $(tail -n 5 trained.err)"
wait $scheduler || fail "the scheduler ends with $?: $(cat scheduled.err)"
wait $server || fail "the server: $(cat served.err)"
count=$((count + 1))
finish
