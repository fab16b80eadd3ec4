#!/bin/sh
# The shipped data are the files that SHA256SUMS lists, no more and no fewer.
root=${1:-$(dirname "$0")/../..}
status=0 count=0
for sums in "$root"/examples/data/*/SHA256SUMS; do
    [ -f "$sums" ] || continue
    folder=$(dirname "$sums")
    (cd "$folder" && sha256sum --quiet --strict -c SHA256SUMS) || status=1
    for file in "$folder"/*; do
        name=$(basename "$file")
        case $name in SHA256SUMS | README.md) continue ;; esac
        count=$((count + 1))
        grep -q "  $name\$" "$sums" || { echo "data: $file is not in SHA256SUMS"; status=1; }
    done
done
[ "$count" -gt 0 ] || { echo "data: no data found"; status=1; }
[ $status = 0 ] && echo "data: green, $count checked"
exit $status
