#!/bin/bash
# A full disk: a clear error, and the last good checkpoint is intact: with room again, --resume ends with the bits of
# the unbroken training. Needs to mount a small tmpfs.
. "$(dirname "$0")/common.bash"

options=(--epochs 4 --set run.deterministic=threads)
mkdir "$work/small"
mount -t tmpfs -o size=64m tmpfs "$work/small" 2>/dev/null || { echo "may not mount a tmpfs here"; exit 77; }
trap 'umount "$work/small"; rm -rf "$work"' EXIT
# Where it is to be full later: file systems differ in the room that they take.
want=$(hash small/unbroken "${options[@]}") || fail "the unbroken training failed"
kilobytes=$(du -sk "$work/small/unbroken" | cut -f1)
rm -r "$work/small/unbroken" "$work/small/unbroken.json" "$work/small/unbroken.err"
# Room for about half of what the whole run writes.
mount -o remount,size=$((kilobytes * 6 / 10))k "$work/small" || { echo "may not remount a tmpfs here"; exit 77; }
"$tool" train zoo:lenet --data digits --seed 42 --json --set run.dir="$work/small/run" "${options[@]}" \
    >/dev/null 2>"$work/full.err"
status=$?
count=1
[ $status != 0 ] || fail "no error on a full disk of $((kilobytes * 6 / 10)) kB"
[ $status -lt 128 ] || fail "the tool died of signal $((status - 128))"
grep -qi 'space\|full' "$work/full.err" || fail "the error does not say what is wrong: $(tail -n 1 "$work/full.err")"
mount -o remount,size=64m "$work/small"
"$tool" train --resume "$work/small/run" --json >"$work/resumed.json" 2>"$work/resumed.err"
status=$?
[ $status = 2 ] && grep -q checkpoint "$work/resumed.err" && finish
[ $status = 0 ] || fail "--resume ended with $status: $(tail -n 3 "$work/resumed.err")"
[ "$(field params_sha256 "$work/resumed.json")" = "$want" ] || fail "another params_sha256 after --resume"
count=2
finish
