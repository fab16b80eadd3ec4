#!/bin/bash
# usage: same.sh COMMAND OF THE TOOL...
# TENON_RUNS jobs over rdma of two workers and two servers have the bits TENON_WANT, which another machine has found.
. "$(dirname "$0")/common.bash"
[ -f "$plugins/kv-rdma.so" ] || { echo "the plugin kv-rdma is not built"; exit 77; }
launch=(--env-server TENON_KVSTORE__RDMA_DEV=rxe1 --env-worker TENON_KVSTORE__RDMA_DEV=rxe0)
training=("$@")
want=$TENON_WANT
one() { :; } # it is known

while [ $count -lt "${TENON_RUNS:-10}" ]; do
    job kvstore.transport=rdma
    count=$((count + 1))
done
echo "count $count"
