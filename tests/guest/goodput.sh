#!/bin/bash
# Goodput of parts of 4 MiB over rdma beside ib_write_bw, in turns: medians, and work requests per part. For a machine
# whose clock counts instructions (rdma-guest --counted), where a busy host does not matter. It has one processor, and
# ib_write_bw looks for completions all the time, so it takes from the device's own work: it runs behind that, too (nice).
. "$(dirname "$0")/common.bash"
[ -f "$plugins/kv-rdma.so" ] || { echo "the plugin kv-rdma is not built"; exit 77; }
parts=8

raw() { # raw NICENESS: MiB/s of ib_write_bw
    local out
    nice -n "$1" ib_write_bw -d rxe1 -x "$(gid_of rxe1 4)" -s 4194304 -n $parts -F >raw.server 2>&1 &
    until ss -ltn | grep -q ':18515 '; do kill -0 $! 2>/dev/null || fail "ib_write_bw: $(cat raw.server)"; sleep 0.1; done
    out=$(nice -n "$1" ib_write_bw -d rxe0 -x "$(gid_of rxe0 4)" -s 4194304 -n $parts -F 127.0.0.1 2>&1) || fail "ib_write_bw: $out"
    wait $!
    awk '$1 == 4194304 {print $4}' <<<"$out"
}

median() { sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }

case_goodput() {
    local program=$build/bench/kv_wire round behind beside ours theirs
    command -v ib_write_bw >/dev/null || { echo "ib_write_bw is missing; scripts/setup --guest installs it"; exit 77; }
    [ -x "$program" ] || { echo "bench/kv_wire is not built"; exit 77; }
    for round in 1 2 3; do
        behind=$(raw 19) || fail "$behind"
        ours=$("$program" --rdma rxe0,rxe1 --rounds 1 --mebibytes $((4 * parts))) || fail "kv_wire: $ours"
        beside=$(raw 0) || fail "$beside"
        echo "round $round: ib_write_bw $behind, not behind $beside; $ours"
        echo "$behind" >>behind
        echo "$beside" >>beside
        sed -n 's/.*: \([0-9.]*\) MiB.*, \([0-9.]*\) requests.*/\1 \2/p' <<<"$ours" >>ours
    done
    theirs=$({ median <behind; median <beside; } | sort -n | tail -n 1)
    ours=$(median <ours)
    echo "kv-rdma $ours MiB/s, ib_write_bw $theirs: $(awk "BEGIN {print $ours / $theirs}"), at most $(awk '{print $2}' ours | sort -n |
        tail -n 1) requests a part"
    awk "{if (\$2 > 2) bad = 1} END {exit bad || !($ours >= 0.9 * $theirs)}" ours
}

cases goodput
