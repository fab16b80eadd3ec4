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

case_cut() { cut_job zmq loopback loss 100%; }

cases kit_zmq kit_shm kit_zmq_faults points links_zmq links_shm train_zmq train_shm train_auto cut
