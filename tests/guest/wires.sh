#!/bin/bash
# The transports zmq and shm in the emulated machine: the conformance kit, peers that are killed and stopped at 20
# points, 1,000 links that come and go, trainings of equal bits on a network with faults, a cable that is cut.
. "$(dirname "$0")/common.bash"

case_kit_zmq() { kit kv-zmq; }
case_kit_shm() { kit kv-shm; }

case_kit_zmq_faults() {
    local fault
    for fault in "${faults[@]}"; do
        # shellcheck disable=SC2086  # words are meant
        loopback $fault
        kit kv-zmq messages order long credit
    done
}

case_points() { TENON_FULL=1 test_program kv/test_wire_points; }
case_links_zmq() { TENON_RUNS=1000 test_program kv_zmq/test_links; }
case_links_shm() { TENON_RUNS=1000 test_program kv_shm/test_links; }

case_train_zmq() {
    local fault
    job kvstore.transport=zmq
    for fault in "${faults[@]}"; do
        # shellcheck disable=SC2086
        loopback $fault
        job kvstore.transport=zmq
    done
}

case_train_shm() { job kvstore.transport=shm; }
case_train_auto() { job kvstore.transport=auto; }

# The network is gone in the midst: all end within the deadline, and a peer is named.
case_cut() {
    local start
    local -x TENON_KVSTORE__SUSPECT=5s TENON_KVSTORE__DEAD=15s TENON_KVSTORE__CONTROL_TIMEOUT=30s
    timeout 300 "$tool" launch -n 2 -s 1 --launcher local -- "$tool" "${training[@]}" --set train.epochs=1000 --set kvstore.type=dist_sync \
        --set kvstore.transport=zmq >cut 2>&1 &
    until grep -q '"event":"epoch"' cut; do kill -0 $! 2>/dev/null || fail "$(tail -n 5 cut)"; sleep 0.2; done
    loopback loss 100%
    start=$SECONDS
    wait $!
    case $? in 0 | 124) fail "the job ends with $?: $(tail -n 5 cut)" ;; esac
    loopback
    grep -Eq '(scheduler|server|worker) ?[0-9]*' <(grep -E '^error|error\[' cut) || fail "nobody is named: $(tail -n 5 cut)"
    echo "told after $((SECONDS - start)) s: $(grep -E 'error' cut | head -n 1)"
}

cases kit_zmq kit_shm kit_zmq_faults points links_zmq links_shm train_zmq train_shm train_auto cut
