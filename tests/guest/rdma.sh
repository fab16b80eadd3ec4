#!/bin/bash
# The transport rdma in the emulated machine, its packets on a cable: the conformance kit, peers that are killed and
# stopped, trainings with the bits of zmq, shm and one process, by configuration also on the fake device with the pool
# `round` and on an emulated GPU, a matrix of faults of the cable, 1,000 links that come and go. Devices hold afterwards
# what they held before.
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

# By configuration alone: another device, the pool `round` for its memory, the transport rdma.
case_train_fake() { # it runs the plain kernels
    kernels=cpu
    job kvstore.transport=rdma device.default=fake:0 memory.fake.pool=round
}

case_train_cuda() { # the plugin cuda on the emulated driver
    local -x LD_LIBRARY_PATH=$build/tests/cuda/driver TNEMU_DELAY_US=0
    [ -e "$LD_LIBRARY_PATH/libcuda.so.1" ] && [ -f "$plugins/cuda.so" ] || { echo "the plugin cuda and the emulator are not built"; exit 77; }
    devices=cuda:0,cuda:1
    job kvstore.transport=rdma device.default=cuda:0 memory.cuda.pool=round
}

# Each fault ends with equal bits, or with an error that names a peer within its deadline.
case_matrix() {
    local fault
    for fault in "${faults[@]}"; do
        # shellcheck disable=SC2086
        cable $fault
        job_or_named "$fault" kvstore.transport=rdma | tee -a matrix
        [ "${PIPESTATUS[0]}" = 0 ] || exit 1
    done
    cable
    cut_job rdma cable loss 100% | tee -a matrix
    [ "${PIPESTATUS[0]}" = 0 ] || exit 1
    echo $(tr '\n' ';' <matrix)
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
cases ${TENON_CASES:-kit points links train train_fake train_cuda matrix auto}
