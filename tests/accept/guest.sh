#!/bin/bash
# The emulated machine with RDMA devices (scripts/rdma-guest): what it says of bad arguments, output, status and time
# limit of a command, and five cases in it. TENON_FULL=1: all cases of tests/guest. Skipped where QEMU is missing.
. "$(dirname "$0")/common.bash"
build=$(cd "$build" && pwd)
source=$(cd "$(dirname "$0")/../.." && pwd)
guest=$source/scripts/rdma-guest

refused() { # refused ARGUMENT...
    "$guest" "$@" >"$work/refused" 2>&1
    [ $? = 2 ] || [ $? = 1 ] || fail "rdma-guest $* ends with $?"
    [ -s "$work/refused" ] || fail "rdma-guest $* says nothing"
    count=$((count + 1))
}
refused
refused --seconds 0 true
refused --seconds 1x true
refused --seconds
refused --seconds 99999999 true
refused --build "$work/none" true
refused --wrong true
"$guest" --help | grep -q '^usage' || fail "--help shows no usage"
count=$((count + 1))

"$guest" --prepare >"$work/prepare" 2>&1
code=$?
[ $code = 77 ] && { sed 's/.*skipped: //' "$work/prepare" | tail -n 1; exit 77; }
[ $code = 0 ] || fail "--prepare ends with $code: $(cat "$work/prepare")"

"$guest" --build "$build" --seconds 1200 bash "$source/tests/guest/smoke.sh" >"$work/smoke" 2>"$work/smoke.err"
code=$?
cat "$work/smoke"
[ $code = 0 ] || fail "the smoke ends with $code: $(tail -n 3 "$work/smoke.err")"
count=$((count + $(sed -n 's/^count //p' "$work/smoke")))
[ "$full" = 1 ] || finish

# Both streams, the status, arguments as they were given; then a command that never ends.
# shellcheck disable=SC2016
"$guest" --json sh -c 'printf "%s|" "$@"; echo bad >&2; exit 5' sh 'a b' '$c' '"d' >"$work/out" 2>"$work/err"
[ $? = 5 ] || fail "the status is $?, 5 was meant"
head -n 1 "$work/out" | grep -qF 'a b|$c|"d|' || fail "arguments come as $(cat "$work/out")"
tail -n 1 "$work/out" | grep -q '"status":5' || fail "--json says $(tail -n 1 "$work/out")"
grep -qx bad "$work/err" || fail "the other stream is $(cat "$work/err")"
count=$((count + 1))
start=$SECONDS
"$guest" --seconds 20 sleep 1000 >"$work/out" 2>&1
[ $? = 124 ] || fail "a command that never ends: $?"
[ $((SECONDS - start)) -lt 60 ] || fail "it took $((SECONDS - start)) s to end after 20"
count=$((count + 1))
for script in "$source"/tests/guest/*.sh; do
    case $(basename "$script") in smoke.sh | same.sh) continue ;; esac
    clock=
    [ "$(basename "$script")" = goodput.sh ] && clock=--counted
    "$guest" --build "$build" $clock --seconds 7200 bash "$script" >"$work/out" 2>&1 || fail "$(basename "$script"): $(tail -n 40 "$work/out")"
    cat "$work/out"
    count=$((count + $(sed -n 's/^count //p' "$work/out")))
done
finish
