# Read by the cases of the emulated machine (scripts/rdma-guest): the tool of the build in PATH, both ends of the
# cable, faults on it. A case is a function case_NAME of a script; `cases NAME...` runs them, prints a line for each and
# ends with 1 if one failed; the last line is `count N`.
[ "${TENON_GUEST:-0}" = 1 ] || { echo "this is run by scripts/rdma-guest"; exit 77; }
set -u
tool=$(command -v tenon) || { echo "the tool is not built"; exit 77; }
build=$(dirname "$(dirname "$tool")")
plugins=$build/lib/tenon/plugins-1
export XDG_CONFIG_HOME=/run/no-config
export TENON_KVSTORE__SUSPECT=60s TENON_KVSTORE__DEAD=300s # all is slow here, and worse on a bad network
work=$(mktemp -d) && cd "$work" || exit 1
count=0 bad=0

fail() {
    echo "$*"
    exit 1
}

# What a process could leave behind: what RDMA devices have but for the kernel's own, files of shared memory.
leftovers() {
    rdma resource show 2>/dev/null | sed 's/^[0-9]*: //'
    find /dev/shm -mindepth 1 | sort
}

# cable FAULT...: netem's words for both directions ("loss 5%", "delay 10ms reorder 25%"); none: a good cable
cable() {
    local end
    for end in veth0 veth1; do
        tc qdisc del dev $end root 2>/dev/null
        [ $# = 0 ] || tc qdisc add dev $end root netem limit 10000 "$@" || fail "netem refuses $*"
    done
}

loopback() { # the same for 127.0.0.1
    tc qdisc del dev lo root 2>/dev/null
    [ $# = 0 ] || tc qdisc add dev lo root netem limit 10000 "$@" || fail "netem refuses $*"
}

gid_of() { # gid_of DEVICE 4|6: index of the GID that is the address of its end
    local number=$((${1#rxe} + 1)) file want
    want=$([ "$2" = 4 ] && echo "ffff:0a4d:000$number" || echo "fd77:0000:0000:0000:0000:0000:0000:000$number")
    file=$(grep -l "$want" "/sys/class/infiniband/$1/ports/1/gids/"* 2>/dev/null | head -n 1)
    [ -n "$file" ] && basename "$file"
}

packets() { cat /sys/class/net/"$1"/statistics/tx_packets; }

# kit PLUGIN [TEST...]: tests of the conformance kit's group transport, default all
kit() {
    local plugin=$1 test
    shift
    for test in "${@:-}"; do
        "$tool" plugins check "$plugins/$plugin.so" --only "transport${test:+/$test}" >kit.log 2>&1 ||
            { grep -v ^PASS kit.log; fail "the kit on $plugin${test:+, $test}"; }
        sed -n 's/^SKIP/skipped/p' kit.log
    done
    tail -n 1 kit.log
}

# Faults of a network, in netem's words.
faults=("loss 1%" "loss 5%" "duplicate 5%" "delay 1ms reorder 25%" "delay 20ms" "corrupt 1%")

training=(train zoo:mlp --data digits --epochs 1 --seed 42 --json --set train.batch=256 --set run.deterministic=threads)

hashes() { sed -n 's/.*"event":"done".*"params_sha256":"\([^"]*\)".*/\1/p' "$@"; }

# one: the bits of one process with two devices, once for all cases, in `want`; of the kernels that `kernels` prefers
kernels=auto devices=cpu:0,cpu:1
one() {
    local prefer=() file=one.$kernels.$devices
    [ $kernels = auto ] || prefer=(--set "kernel.prefer=$kernels")
    [ -s "$file" ] || "$tool" "${training[@]}" --set kvstore.type=local --set device.default="$devices" "${prefer[@]}" \
        >"$file" 2>one.err || fail "one process: $(tail -n 3 one.err)"
    want=$(hashes "$file")
    [ -n "$want" ] || fail "one process has no bits"
}

# job_run SETTING...: two workers and two servers; the status. `launch` may hold options of tenon launch.
launch=()
job_run() {
    local settings=() setting
    for setting in "$@"; do settings+=(--set "$setting"); done
    timeout 600 "$tool" launch -n 2 -s 2 --launcher local "${launch[@]}" -- "$tool" "${training[@]}" \
        --set kvstore.type=dist_sync --set kvstore.deterministic=1 "${settings[@]}" >job 2>job.err
}

same() { # the job that has run has the bits of `one`
    one
    [ "$(hashes job)" = "$want
$want" ] || fail "$*: the workers have $(hashes job), one process $want"
}

job() { # job SETTING...: it ends with the bits of `one`
    job_run "$@" || fail "$*: exit $?: $(tail -n 5 job.err)"
    same "$@"
}

named() { # named FILE: an error that names a peer
    grep -Eq '(scheduler|server|worker) ?[0-9]*' <(grep -E '^error|error\[' "$1") || fail "nobody is named: $(tail -n 5 "$1")"
}

# job_or_named WHAT SETTING...: equal bits, or an error that names a peer, within the deadlines; says which
job_or_named() {
    local what=$1 status start=$SECONDS
    local -x TENON_KVSTORE__SUSPECT=20s TENON_KVSTORE__DEAD=60s TENON_KVSTORE__CONTROL_TIMEOUT=60s TENON_KVSTORE__TIMEOUT=200s
    shift
    job_run "$@"
    status=$?
    case $status in
    0) same "$what $*"; echo "$what: equal bits, $((SECONDS - start)) s" ;;
    124) fail "$what $*: no end within 600 s" ;;
    *) named job.err; echo "$what: exit $status, $((SECONDS - start)) s: $(grep -E 'error' job.err | head -n 1)" ;;
    esac
}

# cut_job TRANSPORT CUT...: a job whose network is gone in its midst ends within the deadline, and a peer is named
cut_job() {
    local transport=$1 start
    local -x TENON_KVSTORE__SUSPECT=5s TENON_KVSTORE__DEAD=15s TENON_KVSTORE__CONTROL_TIMEOUT=30s TENON_KVSTORE__TIMEOUT=60s
    shift
    timeout 300 "$tool" launch -n 2 -s 1 --launcher local "${launch[@]}" -- "$tool" "${training[@]}" --set train.epochs=1000 \
        --set kvstore.type=dist_sync --set kvstore.transport="$transport" >cut 2>&1 &
    until grep -q '"event":"epoch"' cut; do kill -0 $! 2>/dev/null || fail "$(tail -n 5 cut)"; sleep 0.2; done
    "$@"
    start=$SECONDS
    wait $!
    case $? in 0 | 124) fail "the job ends with $?: $(tail -n 5 cut)" ;; esac
    [ $((SECONDS - start)) -le 120 ] || fail "it ends after $((SECONDS - start)) s"
    named cut
    echo "cut: told after $((SECONDS - start)) s: $(grep -E 'error' cut | head -n 1)"
}

# test_program ROOM/NAME: of the build; it says why if it cannot run
test_program() {
    local program=$build/tests/$1
    [ -x "$program" ] || { echo "$1 is not built"; exit 77; }
    TENON_TEST_PLUGINS=$plugins "$program" >test.log 2>&1 || { tail -n 20 test.log; fail "$1"; }
    sed -n 's/^count //p' test.log
}

cases() {
    local name status before after start
    before=$(leftovers)
    for name in "$@"; do
        start=$SECONDS
        ("case_$name") >log 2>&1
        status=$?
        case $status in
        0) echo "PASS  $name $((SECONDS - start)) s: $(tail -n 1 log)"; count=$((count + 1)) ;;
        77) echo "SKIP  $name: $(tail -n 1 log)" ;;
        *) echo "FAIL  $name"; sed 's/^/    /' log | tail -n 40; bad=$((bad + 1)) ;;
        esac
        cable
        loopback
        after=$(leftovers)
        [ "$before" = "$after" ] || {
            echo "FAIL  $name leaves something: before"; echo "$before"; echo "after"; echo "$after"
            bad=$((bad + 1))
            before=$after
        }
    done
    echo "count $count"
    [ $bad = 0 ]
}
