#!/bin/bash
# dist_sync without `tenon launch`: plain processes with the variables of torchrun, Slurm, Open MPI and PMIx find each
# other, the first one brings scheduler and servers, and all end with the bits of one process over as many devices.
# Variables that contradict or lead nowhere are refused with their names; two of one rank do not hang.
. "$(dirname "$0")/common.bash"

cd "$work" || exit 1
"$tool" plugins list --exists kv-zmq || { echo "the plugin kv-zmq is not built"; exit 77; }
training=(train zoo:mlp --data digits --epochs 2 --seed 42 --json --set train.batch=256 --set run.deterministic=threads)
for name in $(compgen -v | grep -E '^(SLURM|OMPI|PMI|PMIX|DMLC|MASTER)_|^(RANK|WORLD_SIZE|LOCAL_RANK)$'); do unset "$name"; done

hashes() { sed -n 's/.*"event":"done".*"params_sha256":"\([^"]*\)".*/\1/p' "$@"; }

ranks=2
job() { # job NAME=VALUE...: all ranks with these variables, in which %r is the rank
    local r pids=() variables
    for ((r = 0; r < ranks; r++)); do
        variables=("${@//%r/$r}")
        timeout 120 env "${variables[@]}" "$tool" "${training[@]}" --set kvstore.type=dist_sync "${settings[@]}" >"rank$r" 2>"rank$r.err" &
        pids+=($!)
    done
    for r in "${!pids[@]}"; do
        wait "${pids[r]}" || fail "$*: rank $r ends with $?: $(tail -n 3 "rank$r.err")"
        [ "$(hashes "rank$r")" = "$want" ] || fail "$*: rank $r has $(hashes "rank$r"), one process $want"
    done
    count=$((count + 1))
}

# A port that nobody has just now, from those that systems do not give away.
port() {
    local p
    while p=$((20000 + RANDOM % 10000)); do
        (exec 3<>"/dev/tcp/127.0.0.1/$p") 2>/dev/null || { echo $p; return; }
    done
}

one() { # one DEVICES: the bits of one process
    "$tool" "${training[@]}" --set kvstore.type=local --set device.default="$1" >one 2>one.err || fail "one process failed: $(tail -n 5 one.err)"
    want=$(hashes one)
}

settings=()
one cpu:0,cpu:1
job RANK=%r LOCAL_RANK=%r WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT="$(port)"
job OMPI_COMM_WORLD_RANK=%r OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_RANK=%r PMIX_NAMESPACE=$$
slurm=(SLURM_PROCID=%r SLURM_NTASKS=2 SLURM_STEP_NUM_NODES=1 "SLURM_STEP_NODELIST=n[1-2]" SLURM_STEP_ID=0)
job "${slurm[@]}" SLURM_JOB_ID=$$
settings=(--set kvstore.servers=3 --set kvstore.durability=snapshot:2 --set kvstore.state_folder=state --set kvstore.job=a)
job "${slurm[@]}" SLURM_JOB_ID=$$9 PMI_RANK=%r PMI_SIZE=2
for i in 0 1 2; do # servers know their numbers, by which their files are found
    [ -n "$(find state -name "*-server-$i-2.snapshot")" ] || fail "server $i has no snapshot: $(ls state)"
done
settings=(--set kvstore.workers=2)
job PMIX_RANK=%r PMIX_NAMESPACE=x MASTER_ADDR=127.0.0.1 MASTER_PORT="$(port)"
settings=()
ranks=1
one cpu:0
job RANK=0 WORLD_SIZE=1 # nobody has to be found
if command -v mpirun >/dev/null && mpirun --version 2>/dev/null | grep -q 'Open MPI'; then
    root=()
    [ "$(id -u)" = 0 ] && root=(--allow-run-as-root)
    one cpu:0,cpu:1
    timeout 120 mpirun "${root[@]}" --oversubscribe -x XDG_CONFIG_HOME -n 2 "$tool" "${training[@]}" --set kvstore.type=dist_sync \
        >mpirun 2>mpirun.err || fail "mpirun: $(tail -n 5 mpirun.err)"
    [ "$(hashes mpirun)" = "$want
$want" ] || fail "mpirun: $(hashes mpirun), one process $want"
    count=$((count + 1))
else
    echo "skipped: there is no mpirun of Open MPI"
fi

refused() { # refused WORDS NAME=VALUE...: ends soon, with these words
    local words=$1
    shift
    timeout 60 env "$@" "$tool" "${training[@]}" --set kvstore.type=dist_sync --set kvstore.control_timeout=2s >refused 2>&1
    case $? in 0) fail "$* is taken" ;; 124) fail "$* hangs" ;; esac
    grep -q "$words" refused || fail "$*: $(cat refused)"
    count=$((count + 1))
}
refused 'RANK says rank 2, but WORLD_SIZE says that there are 2' RANK=2 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=9
refused 'MASTER_PORT "0"' RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=0
refused 'MASTER_PORT "65536"' RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=65536
refused 'MASTER_PORT "-1"' RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=-1
refused 'MASTER_PORT "9x"' RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=9x
refused 'MASTER_ADDR is "a*"' RANK=0 WORLD_SIZE=2 MASTER_PORT=9 MASTER_ADDR="$(printf 'a%.0s' {1..300})"
refused 'nothing says where rank 0 is' RANK=0 WORLD_SIZE=2
refused 'nothing says where rank 0 is' RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1
refused 'nothing says where rank 0 is' SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_JOB_ID=7 'SLURM_STEP_NODELIST=n[1'
refused 'nothing says where rank 0 is' SLURM_PROCID=1 SLURM_NTASKS=2 SLURM_JOB_ID=7 'SLURM_STEP_NODELIST='
refused 'there may be 1 to' RANK=0 WORLD_SIZE=2000000000 MASTER_ADDR=127.0.0.1 MASTER_PORT="$(port)"
refused 'kvstore.secret_file is needed' RANK=0 WORLD_SIZE=2 MASTER_ADDR=192.0.2.1 MASTER_PORT=2000
refused '127.0.0.1' RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT="$(port)"       # rank 0 never comes
refused 'worker' RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT="$(port)"          # rank 1 never comes

# Two with rank 0: one cannot listen. Two with rank 1: the later one takes the place, or comes when the job has ended;
# not all end well, and none hangs.
twice() { # twice RANK...
    local at rank pids=() good=0
    at=$(port)
    for rank in "$@"; do
        timeout 60 env RANK="$rank" WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT="$at" "$tool" "${training[@]}" \
            --set kvstore.type=dist_sync --set kvstore.control_timeout=3s --set kvstore.timeout=8s >"twice${#pids[@]}" 2>&1 &
        pids+=($!)
    done
    for rank in "${!pids[@]}"; do
        wait "${pids[rank]}"
        case $? in 0) good=$((good + 1)) ;; 124) fail "ranks $*: process $rank hangs" ;; esac
    done
    [ $good -lt $# ] || fail "ranks $* are all taken"
    grep -q "$words" twice* || fail "ranks $*: $(cat twice*)"
    count=$((count + 1))
}
words='in use' twice 0 0
words='TN-001[12]' twice 0 1 1
finish
