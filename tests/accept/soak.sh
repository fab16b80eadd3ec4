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
growth() { # kB that came after the first fifth, and the bound; the largest of five samples each
    awk '{kb[NR] = $1} END {
        for (i = int(NR / 5); i <= int(NR / 5) + 4; i++) if (kb[i] > early) early = kb[i]
        for (i = int(NR * 9 / 10) - 4; i <= int(NR * 9 / 10); i++) if (kb[i] > late) late = kb[i]
        printf "%d kB after a fifth, %d kB near the end, %d samples\n", early, late, NR >"/dev/stderr"
        print late - early, int(early / 100 > 1024 ? early / 100 : 1024)}' "$work/rss"
}
[ "$(wc -l <"$work/rss")" -ge 10 ] || fail "too few samples"
read -r first bound <<<"$(growth)"
if [ "$first" -gt "$bound" ]; then
    # A leak comes with every epoch: of four times as many there is four times as much. Memory that the allocator
    # keeps for threads comes once, at any time.
    soak $((epochs * 4))
    read -r second bound <<<"$(growth)"
    [ "$second" -le "$bound" ] || [ "$second" -lt $((first * 2)) ] || fail "memory grew by $first kB, then by $second kB"
fi
finish
