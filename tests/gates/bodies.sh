#!/bin/sh
# plugins/common compiles as CUDA: every row of its lists, for a GPU of the year 2020 on. Needs nvcc; no GPU.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
nvcc=$(command -v nvcc || { [ -x /usr/local/cuda/bin/nvcc ] && echo /usr/local/cuda/bin/nvcc; } || true)
if [ -z "$nvcc" ]; then
    echo "skipped: no nvcc"
    exit 77
fi
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
"$nvcc" -arch=sm_80 -fmad=false -I"${1:-$root}/plugins/common" -ptx -o "$out/bodies.ptx" "$root/tests/gates/bodies.cu"
rows=$(cat "${1:-$root}"/plugins/common/loops*.list "${1:-$root}"/plugins/common/updates.list | grep -Ec '^(LOOP|UPDATE)')
for type in f32 f64 i32 i64; do
    grep -q "entry all_$type" "$out/bodies.ptx" || { echo "no kernel for $type"; exit 1; }
done
for type in f32 f64; do
    grep -q "entry update_ADAM_$type" "$out/bodies.ptx" || { echo "no update for $type"; exit 1; }
done
echo "bodies: $rows rows compiled"
