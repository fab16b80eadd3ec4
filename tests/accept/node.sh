#!/bin/bash
# The smallest node: core, cpu.so and the tool alone, with the libraries that they need, in a folder that is its whole
# world. It evaluates a trained LeNet and gets what the build tree gets. Sizes are printed. What grows with the number of
# operators has a limit of its own for each file; all the rest, without libc (and the other files of its package) and
# jansson, has one together (docs/decisions/0036-sizes-of-the-node.md). The conformance kit comes with the headers.
# usage: node.sh BUILD
set -u
. "$(dirname "$0")/common.bash"
limit_core=1300000 limit_cpu=1600000 limit_rest=1500000
build=$(cd "$build" && pwd)
tool=$build/bin/tenon
node=$work/node
[ -f "$build/lib/tenon/plugins-1/cpu.so" ] || { echo "the plugin cpu is not built"; exit 77; }
command -v ldd >/dev/null || { echo "ldd is not installed"; exit 77; }
chmod 755 "$work" # what lies below is checked for who may write it

for component in core nn cli plugin-cpu; do
    flock "$build" cmake --install "$build" --component $component --strip --prefix "$node/usr" >"$work/install.log" 2>&1 ||
        fail "install of $component: $(tail -n 3 "$work/install.log")"
    rm -f "$build/install_manifest_$component.txt" # what `uninstall` would look for
done
rm -rf "$node/usr/share" # manual pages and completion
mapfile -t ours < <(find "$node/usr" -type f | sort)
mapfile -t libraries < <(ldd "${ours[@]}" 2>/dev/null | grep -o '/[^ ]*\.so[^ ]*' | grep -v "^$node" | grep -v ':$' | sort -u)
# glibc opens libgcc_s by itself when a thread of libgomp ends
libc=$(printf '%s\n' "${libraries[@]}" | grep '/libc\.so' | head -n 1)
[ -f "$(dirname "$libc")/libgcc_s.so.1" ] && libraries+=("$(dirname "$libc")/libgcc_s.so.1")
for library in "${libraries[@]}"; do cp --parents -L "$library" "$node" || fail "cannot copy $library"; done

train trained --epochs 2 || fail "training: $(cat "$work/trained.err")"
mkdir -p "$node/model" "$node/digits" "$node/tmp"
cp "$work"/trained/model-symbol.json "$work"/trained/model-0000.params "$node/model"
cp -L "$build"/share/tenon/data/digits/t10k-* "$build"/share/tenon/data/digits/train-* "$node/digits"
# with the same plugins as on the node: OpenBLAS adds up in another order
"$tool" eval "$work/trained/model-symbol.json" "$work/trained/model-0000.params" --data digits:test --json --set plugins.load=cpu \
    >"$work/here.json" || fail "eval in the build tree failed"
count=$((count + 1))

if [ "$(id -u)" = 0 ]; then
    how="in a chroot" at=
    on_node() { env -i "$(PATH=$PATH:/usr/sbin command -v chroot)" "$node" /usr/bin/tenon "$@"; }
else
    how="with its own libraries" at=$node
    on_node() {
        (cd "$node" && env -i "$node"/lib64/ld-linux-x86-64.so.2 --library-path \
            "$(dirname "$(find "$node/usr" -name libtenon.so.0)"):$node/lib/x86_64-linux-gnu:$node/usr/lib/x86_64-linux-gnu" \
            "$node/usr/bin/tenon" "$@")
    }
fi
on_node eval "$at/model/model-symbol.json" "$at/model/model-0000.params" --data "$at/digits:test" --json \
    >"$work/there.json" 2>"$work/there.err" || fail "eval on the node, $how: $(cat "$work/there.err")"
on_node plugins check cpu 2>"$work/kit.err"
[ $? = 3 ] && grep -q 'it comes with the headers for plugins (libtenon-dev)' "$work/kit.err" ||
    fail "plugins check on the node says: $(cat "$work/kit.err")"
count=$((count + 1))
for value in accuracy loss; do
    here=$(field $value "$work/here.json") there=$(field $value "$work/there.json")
    [ -n "$there" ] && [ "$here" = "$there" ] || fail "$value is $there on the node, $here in the build tree"
    count=$((count + 1))
done
echo "eval $how: accuracy $(field accuracy "$work/there.json")"

total=0 own=0 rest=0
at_most() { # at_most BYTES LIMIT WHAT
    echo "  $1  bytes of $3 (at most $2)"
    [ "$1" -le "$2" ] || fail "$1 bytes of $3, at most $2"
    count=$((count + 1))
}
while read -r file; do
    size=$(stat -c %s "$node$file")
    case $file in
    */libc.so.* | */libm.so.* | */ld-linux* | */libdl.so.* | */libpthread.so.* | */librt.so.* | */libjansson.so.*)
        printf '  %9d  %s (not counted)\n' "$size" "$file" ;;
    *)
        printf '  %9d  %s\n' "$size" "$file"
        total=$((total + size))
        case $file in
        */libtenon.so.*) at_most "$size" "$limit_core" "the core" ;;
        */plugins-1/cpu.so) at_most "$size" "$limit_cpu" "the plugin cpu" ;;
        *) rest=$((rest + size)) ;;
        esac
        case " ${ours[*]} " in *" $node$file "*) own=$((own + size)) ;; esac
        ;;
    esac
done < <(cd "$node" && find . -type f -not -path './model/*' -not -path './digits/*' | sed 's/^\.//' | sort)
echo "  $own  bytes of Tenon"
echo "  $total  bytes in all, without libc and jansson"
at_most "$rest" "$limit_rest" "all the rest"
finish
