#!/bin/bash
# Plain `srun tenon train` and `torchrun tenon train` by the real programs, as kvstore.rendezvous=auto finds them: ranks
# find each other without `tenon launch` and end with the bits of one process over as many devices. Slurm is one node
# whose daemons this script starts. Each is skipped where its programs are missing. TENON_FULL=1: more ways to start them, three times each.
. "$(dirname "$0")/common.bash"

cd "$work" || exit 1
"$tool" plugins list --exists kv-zmq || { echo "the plugin kv-zmq is not built"; exit 77; }
PATH=$PATH:/usr/sbin:/sbin
training=(train zoo:mlp --data digits --epochs 2 --seed 42 --json --set train.batch=256 --set run.deterministic=threads)
for name in $(compgen -v | grep -E '^(SLURM|OMPI|PMI|PMIX|DMLC|MASTER)_|^(RANK|WORLD_SIZE|LOCAL_RANK)$'); do unset "$name"; done
runs=1
[ "$full" = 1 ] && runs=3
daemons=()
end() {
    local i
    for ((i = ${#daemons[@]} - 1; i >= 0; i--)); do kill "${daemons[i]}" && wait "${daemons[i]}"; done 2>/dev/null
    rm -rf "$work"
}
trap end EXIT

hashes() { sed -n 's/.*"event":"done".*"params_sha256":"\([^"]*\)".*/\1/p' "$@"; }
"$tool" "${training[@]}" --set kvstore.type=local --set device.default=cpu:0,cpu:1 >one 2>one.err || fail "one process failed: $(tail -n 5 one.err)"
want=$(hashes one)

job() { # job COMMAND...: which starts two ranks of what follows it
    local run
    for ((run = 0; run < runs; run++)); do
        timeout 120 "$@" "$tool" "${training[@]}" --set kvstore.type=dist_sync >ranks 2>ranks.err || fail "$1: exit $?: $(tail -n 5 ranks ranks.err)"
        [ "$(hashes ranks)" = "$want
$want" ] || fail "$1: the ranks have $(hashes ranks), one process $want"
        count=$((count + 1))
    done
}

# ---- torchrun ------------------------------------------------------------------------------------------------------

# Of the first 16384 ports above 12288; its agent takes the port, rank 0 the next one.
port_pair() {
    local p
    while p=$((12288 + RANDOM % 16384)); do
        (exec 3<>"/dev/tcp/127.0.0.1/$p") 2>/dev/null || (exec 3<>"/dev/tcp/127.0.0.1/$((p + 1))") 2>/dev/null || { echo $p; return; }
    done
}

# --redirects and --tee: without them torch 1.13 ends under Python 3.11 before it starts anything.
if command -v torchrun >/dev/null; then
    job torchrun --nproc_per_node 2 --redirects 1 --tee 1 --log_dir "$work" --master_port "$(port_pair)" --no_python
    [ "$full" = 0 ] || job torchrun --standalone --nproc_per_node 2 --redirects 1 --tee 1 --log_dir "$work" --no_python
else
    echo "skipped: torchrun is missing (Debian: python3-torch)"
fi

# ---- Slurm ---------------------------------------------------------------------------------------------------------

slurm_missing() { # why Slurm cannot run here
    local row
    for row in srun:slurm-client slurmctld:slurmctld slurmd:slurmd munged:munge; do
        command -v "${row%:*}" >/dev/null || { echo "${row%:*} is missing (Debian: ${row#*:})"; return; }
    done
    [ "$(id -u)" = 0 ] || echo "its daemons need root"
}

slurm_start() {
    local host control node
    host=$(hostname -s)
    control=$(port_pair) node=$((control + 1))
    rm -rf slurm
    mkdir -p slurm/key slurm/state slurm/spool slurm/socket
    chmod 755 . slurm slurm/socket
    chmod 700 slurm/key
    (umask 077 && head -c 1024 /dev/urandom >slurm/key/key)
    cat >slurm/slurm.conf <<END
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$control
SlurmdPort=$node
AuthType=auth/munge
AuthInfo=socket=$work/slurm/socket/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation=$work/slurm/state
SlurmdSpoolDir=$work/slurm/spool
SlurmctldPidFile=$work/slurm/control.pid
SlurmdPidFile=$work/slurm/node.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SlurmdParameters=config_overrides
NodeName=$host NodeAddr=127.0.0.1 CPUs=64 RealMemory=100 State=UNKNOWN
PartitionName=p Nodes=$host Default=YES State=UP
END
    export SLURM_CONF=$work/slurm/slurm.conf
    munged -F --key-file=slurm/key/key --socket=slurm/socket/munge --pid-file=slurm/key/pid --log-file=slurm/key/log \
        --seed-file=slurm/key/seed --num-threads=2 >>slurm.log 2>&1 &
    daemons=($!)
    until [ -S slurm/socket/munge ]; do kill -0 "${daemons[0]}" 2>/dev/null || return 1; sleep 0.1; done
    slurmctld -D -i -c >>slurm.log 2>&1 &
    daemons+=($!)
    until sinfo >sinfo 2>&1; do kill -0 "${daemons[1]}" 2>/dev/null || return 1; sleep 0.1; done
    slurmd -D >>slurm.log 2>&1 &
    daemons+=($!)
    until sinfo -h -o %T 2>/dev/null | grep -q idle; do kill -0 "${daemons[2]}" 2>/dev/null || return 1; sleep 0.1; done
}

missing=$(slurm_missing)
if [ -n "$missing" ]; then
    echo "skipped: Slurm: $missing"
elif slurm_start; then
    job srun --input=none -n 2
    [ "$full" = 0 ] || job srun --input=none -n 2 --mpi=none --label # each line has its rank before it
elif grep -q 'cgroup filesystem not mounted' slurm.log; then
    echo "skipped: slurmd needs a cgroup file system in /sys/fs/cgroup"
else
    fail "Slurm does not start: $(tail -n 5 slurm.log)"
fi
[ $count -gt 0 ] || { echo "neither torchrun nor Slurm can run here"; exit 77; }
finish
