#!/bin/bash
# Resident memory over many epochs is flat: at most 1 % or 1 MiB more after nine tenths of the samples than after the first
# fifth. The last tenth may have what is written once, at the end of a training.
# Short form: 60 epochs; TENON_FULL=1: 1,000. Where that is over before there are samples enough, or
# seems to grow, four times as many.
. "$(dirname "$0")/common.bash"
command -v pgrep >/dev/null || { echo "pgrep is not installed"; exit 77; }

soak() { # soak EPOCHS: trains, and writes down the resident memory ten times a second
    local shell child
    train run --epochs "$1" &
    shell=$!
    : >"$work/rss"
    while kill -0 $shell 2>/dev/null; do
        child=$(pgrep -P $shell -x tenon | head -n 1)
        [ -n "$child" ] && sed -n 's/^VmRSS:[[:space:]]*\([0-9]*\) kB/\1/p' "/proc/$child/status" >>"$work/rss" 2>/dev/null
        sleep 0.1
    done
    wait $shell || fail "tenon train ended with $?: $(tail -n 3 "$work/run.err")"
    count=$1
}

epochs=60
[ "$full" = 1 ] && epochs=1000
soak $epochs
for ((more = 0; more < 5 && $(wc -l <"$work/rss") < 10; more++)); do
    epochs=$((epochs * 4))
    soak $epochs
done
flat() { # what the allocator keeps for threads that wait comes once; a leak comes with every epoch
    awk '{kb[NR] = $1} END {
        for (i = int(NR / 5); i <= int(NR / 5) + 4; i++) if (kb[i] > early) early = kb[i]
        for (i = int(NR * 9 / 10) - 4; i <= int(NR * 9 / 10); i++) if (kb[i] > late) late = kb[i]
        printf "%d kB after a fifth, %d kB near the end, %d samples\n", early, late, NR
        exit !(NR >= 10 && late - early <= (early / 100 > 1024 ? early / 100 : 1024))}' "$work/rss"
}
if ! flat; then
    soak $((epochs * 4)) # of a leak there is four times as much then
    flat || fail "memory grew, or too few samples"
fi
finish
