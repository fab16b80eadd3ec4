#!/bin/bash
# What is installed works from a folder with a space in its name: pkg-config, find_package, a program, a plugin; the
# tool and the libraries are found without settings; stripped sizes stay within their budgets.
# usage: install.sh BUILD
set -u
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:?usage: install.sh BUILD}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix="$work/a prefix"
failed=0 checked=0

check() { # check WHAT COMMAND...: one check, its output shown only when it fails
    local what=$1 out
    shift
    checked=$((checked + 1))
    if ! out=$("$@" 2>&1); then
        printf 'install: %s\n%s\n' "$what" "$out" | head -20
        failed=$((failed + 1))
    fi
}

small() { # small FILE BYTES: the stripped file is smaller
    local size
    strip -o "$work/stripped" "$1" && size=$(stat -c %s "$work/stripped") && echo "$size bytes" && [ "$size" -lt "$2" ]
}

by_pkg_config() {
    local flags
    flags=$(pkg-config --cflags --libs tenon) || return 1
    eval "cc -std=c11 -Wall -Werror \"$source_dir/tests/gates/consumer/program.c\" -o \"$work/by-pc\" $flags" &&
        LD_LIBRARY_PATH="$libdir" "$work/by-pc"
}

plugin_by_pkg_config() {
    eval "cc -std=c11 -Wall -Werror $(pkg-config --cflags tenon-plugin) \"$source_dir/tests/gates/consumer/plugin.c\"" \
        "-o \"$work/acme.so\" $(pkg-config --variable=ldflags tenon-plugin)" &&
        [ "$(nm -D --defined-only "$work/acme.so" | awk '{print $3}')" = tn_plugin_v1 ]
}

readme_by_pkg_config() {
    local flags
    flags=$(pkg-config --cflags --libs tenon-nn) || return 1
    LD_LIBRARY_PATH="$libdir" eval "python3 \"$source_dir/tests/docs/readme.py\" \"$source_dir\" cc $flags"
}

plugindir_by_pkg_config() {
    eval "[ $(pkg-config --variable=plugindir tenon-plugin) -ef \"$plugins\" ]"
}

if ! ls "$build"/lib/libtenon.so >/dev/null 2>&1; then
    echo "install: nothing is built in $build"
    exit 77
fi
check "cmake --install" cmake --install "$build" --prefix "$prefix"
libdir=$(dirname "$(find "$prefix" -name libtenon.so)")
export PKG_CONFIG_PATH="$libdir/pkgconfig" LC_ALL=C
unset LD_LIBRARY_PATH
plugins="$libdir/tenon/plugins-1"
check "a program by pkg-config" by_pkg_config
check "a plugin by pkg-config" plugin_by_pkg_config
check "plugindir of tenon-plugin.pc" plugindir_by_pkg_config
check "tenon-plugin.pc has no Libs" test -z "$(pkg-config --libs tenon-plugin)"
check "abi_major of tenon-plugin.pc" test "$(pkg-config --variable=abi_major tenon-plugin)" = 1
if [ -f "$libdir/libtenon-nn.so" ]; then
    check "the programs of README.md" readme_by_pkg_config
fi
check "find_package: configure" cmake -S "$source_dir/tests/gates/consumer" -B "$work/consumer" -DCMAKE_PREFIX_PATH="$prefix"
check "find_package: build" cmake --build "$work/consumer"
check "find_package: run" "$work/consumer/program"
check "find_package: the plugin exports one symbol" \
    test "$(nm -D --defined-only "$work/consumer/acme.so" | awk '{print $3}')" = tn_plugin_v1
check "the shipped data" test -f "$prefix/share/tenon/data/digits/train-images-idx3-ubyte"
if [ -x "$prefix/bin/tenon" ]; then
    check "the tool runs" "$prefix/bin/tenon" version
    check "the tool lists plugins" "$prefix/bin/tenon" plugins list
fi
check "libtenon.so under 1 MB" small "$libdir/libtenon.so" 1000000
for plugin in "$plugins"/*.so; do
    [ -f "$plugin" ] && check "$(basename "$plugin") under 400 KB" small "$plugin" 400000
done
[ $failed = 0 ] && echo "install: green, $checked checked" || echo "install: red, $failed of $checked failed"
[ $failed = 0 ]
