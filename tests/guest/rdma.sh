#!/bin/bash
# The transport rdma in the emulated machine, its packets on a cable: the conformance kit, peers that are killed and
# stopped, trainings with the bits of zmq, shm and one process, by configuration also on the fake device with the pool
# `round`, on a cable with faults, 1,000 links that come and go. Devices hold afterwards what they held before.
. "$(dirname "$0")/common.bash"
[ -f "$plugins/kv-rdma.so" ] || { echo "the plugin kv-rdma is not built"; exit 77; }

# Servers have one end of the cable, workers the other.
launch=(--env-server TENON_KVSTORE__RDMA_DEV=rxe1 --env-worker TENON_KVSTORE__RDMA_DEV=rxe0)

case_kit() { kit kv-rdma; }
case_points() { TENON_FULL=1 TENON_TRANSPORT=kv-rdma test_program kv/test_wire_points; }
case_links() { TENON_RUNS=1000 test_program kv_rdma/test_links; }

case_train() {
    local before
    before=$(packets veth0)
    job kvstore.transport=rdma
    [ "$(packets veth0)" -gt $((before + 100)) ] || fail "$(($(packets veth0) - before)) packets on the cable"
    job kvstore.transport=zmq
    job kvstore.transport=shm
}

case_train_fake() { # it runs the plain kernels
    kernels=cpu
    job kvstore.transport=rdma device.default=fake:0 memory.fake.pool=round
}

case_train_faults() {
    local fault
    for fault in "${faults[@]}"; do
        # shellcheck disable=SC2086
        cable $fault
        job kvstore.transport=rdma
    done
}

# auto, of workers without shm, as those of other hosts are: cards where they reach each other, else TCP, with one
# warning of a worker that says why; left out by kvstore.rdma_dev.
case_auto() {
    local before far=(kvstore.transport=auto plugins.load=cpu,cpu-onednn,cpu-openblas,mempool,kv-zmq,kv-rdma)
    before=$(packets veth0)
    job "${far[@]}"
    [ "$(packets veth0)" -gt $((before + 100)) ] || fail "$(($(packets veth0) - before)) packets on the cable"
    ! grep "RDMA is not used" job.err || fail "a warning, and cards reach each other"
    cable loss 100%
    job "${far[@]}"
    [ "$(grep -c "kvstore.transport is auto, and RDMA is not used: .* does not answer" job.err)" = 2 ] ||
        fail "no warning of each worker: $(cat job.err)"
    cable
    before=$(packets veth0)
    launch=(--env-server TENON_KVSTORE__RDMA_DEV=none --env-worker TENON_KVSTORE__RDMA_DEV=rxe0)
    job "${far[@]}"
    [ "$(packets veth0)" -lt $((before + 100)) ] || fail "$(($(packets veth0) - before)) packets on the cable"
    ! grep "RDMA is not used" job.err || fail "a warning, and it was left out"
}

# shellcheck disable=SC2086  # names
cases ${*:-kit points links train train_fake train_faults auto}
