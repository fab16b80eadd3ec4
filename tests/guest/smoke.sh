#!/bin/bash
# Five cases in the emulated machine, in little time: the cable between its devices, and transports on a bad network.
. "$(dirname "$0")/common.bash"

pingpong() { # pingpong 4|6: from one device to the other
    local from to
    from=$(gid_of rxe0 "$1") to=$(gid_of rxe1 "$1") || fail "no GID of IPv$1"
    ibv_rc_pingpong -d rxe0 -g "$from" -e -n 50 -s 4096 >server 2>&1 &
    until ss -ltn | grep -q ':18515 '; do kill -0 $! || fail "$(cat server)"; sleep 0.1; done
    timeout 60 ibv_rc_pingpong -d rxe1 -g "$to" -e -n 50 -s 4096 localhost || fail "IPv$1: $(cat server)"
    wait $!
}

# What goes from device to device crosses the cable, also a bad one.
case_cable() {
    local before
    cable loss 2%
    for family in 4 6; do
        before=$(packets veth0)
        pingpong $family
        [ $(($(packets veth0) - before)) -ge 200 ] || fail "IPv$family: $(($(packets veth0) - before)) packets on the cable"
    done
    echo "$(packets veth0) packets"
}

case_zmq() {
    loopback loss 1% duplicate 2% reorder 10% delay 1ms
    kit kv-zmq messages order
}

case_shm() { kit kv-shm messages killed; }

case_rdma() {
    [ -f "$plugins/kv-rdma.so" ] || { echo "the plugin kv-rdma is not built"; exit 77; }
    cable loss 1% duplicate 2% corrupt 1%
    kit kv-rdma messages
}

case_train() { # bits do not depend on the network
    loopback loss 1%
    "$tool" "${training[@]}" --set kvstore.type=local >one || return 1
    "$tool" launch -n 1 -s 1 --launcher local -- "$tool" "${training[@]}" --set kvstore.type=dist_sync \
        --set kvstore.transport=zmq >two || return 1
    [ -n "$(hashes one)" ] && [ "$(hashes one)" = "$(hashes two)" ] || fail "$(hashes one) and $(hashes two)"
}

cases cable zmq shm rdma train
