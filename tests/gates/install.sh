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

variables_by_pkg_config() {
    eval "test -f $(pkg-config --variable=map tenon-plugin)" &&
        eval "test -f $(pkg-config --variable=templatedir tenon-plugin)/operator/Makefile" &&
        eval "test -f $(pkg-config --variable=docdir tenon-plugin)/plugins.md" &&
        eval "test $(pkg-config --variable=tool tenon-plugin) -ef \"$prefix/bin/tenon\"" &&
        pkg-config --variable=ldflags tenon-plugin | grep -q version-script
}

other_version() { # find_package refuses what is not this version's
    sed "s/Tenon 0.1 REQUIRED/Tenon $1 REQUIRED/" "$source_dir/tests/gates/consumer/CMakeLists.txt" >"$work/other/CMakeLists.txt" &&
        ! cmake -S "$work/other" -B "$work/other/build" -DCMAKE_PREFIX_PATH="$prefix" >"$work/other/log" 2>&1 &&
        grep -q "version.*$1" "$work/other/log"
}

# The commands of the pages do not quote the flags, so they get the installation by a path without a blank.
pages() {
    ln -sfn "$prefix" "$work/prefix" &&
        python3 "$source_dir/tests/docs/blocks.py" --install "$work/prefix" "$@"
}

wrong_pages() { # every kind of lie is seen
    local page
    mkdir -p "$work/wrong" && cd "$work/wrong" || return 1
    printf '```sh\necho yes\n```\n```text\nno\n```\n' >text.md
    printf '```console\n$ echo yes\nno\n```\n' >console.md
    printf '```sh\nfalse\ntrue\n```\n' >sh.md
    printf '```sh exit=3\nexit 4\n```\n' >exit.md
    printf '```c\nint main(void) { return 1; }\n```\n' >program.md
    printf '```c\nint x = "text";\n```\n' >code.md
    printf '```ini\n[engine]\ntpye = naive\n```\n' >ini.md
    printf '```json\n{"a":}\n```\n' >json.md
    printf '```text\nnobody prints this\n```\n' >alone.md
    printf '```make\nall:\n```\n' >make.md
    printf '```txt a.txt\none\n```\n```diff\n--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-two\n+three\n```\n' >diff.md
    for page in *.md; do
        pages "$page" && echo "$page was not seen" && return 1
    done
    return 0
}

# Where a group may write what its members make, both builds of a new plugin are such that the host takes the plugin.
plugin_of_a_group() {
    (umask 002 && cd "$work" && "$prefix/bin/tenon" plugins new acme-group --kind operator --quiet && cd acme-group &&
        eval "make test install DESTDIR='$work/a stage'" && find "$work/a stage" -name acme-group.so | grep . &&
        sed 's/Tenon 0.1 REQUIRED/Tenon 0.1 REQUIRED COMPONENTS plugin tenon/' -i CMakeLists.txt &&
        mkdir deeper && printf '%s\n' 'cmake_minimum_required(VERSION 3.25)' 'project(deeper C)' 'enable_testing()' \
        'add_subdirectory(.. below/it)' >deeper/CMakeLists.txt &&
        cmake -S deeper -B build -DCMAKE_PREFIX_PATH="$prefix" && cmake --build build &&
        ctest --test-dir build --output-on-failure)
}

component_absent() { # find_package names what there is not
    sed "s/Tenon 0.1 REQUIRED/Tenon REQUIRED COMPONENTS quantum/" \
        "$source_dir/tests/gates/consumer/CMakeLists.txt" >"$work/other/CMakeLists.txt" &&
        ! cmake -S "$work/other" -B "$work/other/build" -DCMAKE_PREFIX_PATH="$prefix" >"$work/other/log" 2>&1 &&
        grep -q quantum "$work/other/log"
}

plugindir_by_pkg_config() {
    eval "[ $(pkg-config --variable=plugindir tenon-plugin) -ef \"$plugins\" ]"
}

no_tests() { # who asks for no tests gets none: no target of that name, nothing for CTest
    cmake -S "$source_dir" -B "$work/plain" -DTN_OPENMP=OFF && ! cmake --build "$work/plain" --target help | grep -E ' (test|tests)_' &&
        [ ! -e "$work/plain/CTestTestfile.cmake" ]
}

if ! ls "$build"/lib/libtenon.so >/dev/null 2>&1; then
    echo "install: nothing is built in $build"
    exit 77
fi
check "a plain configuration builds no tests" no_tests
check "cmake --install" flock "$build" cmake --install "$build" --prefix "$prefix" # one list of files for all installations
libdir=$(dirname "$(find "$prefix" -name libtenon.so)")
export PKG_CONFIG_PATH="$libdir/pkgconfig" LC_ALL=C
unset LD_LIBRARY_PATH
plugins="$libdir/tenon/plugins-1"
check "a program by pkg-config" by_pkg_config
check "a plugin by pkg-config" plugin_by_pkg_config
check "plugindir of tenon-plugin.pc" plugindir_by_pkg_config
check "tenon-plugin.pc has no Libs" test -z "$(pkg-config --libs tenon-plugin)"
check "abi_major of tenon-plugin.pc" test "$(pkg-config --variable=abi_major tenon-plugin)" = 1
check "abi_minor of tenon-plugin.pc" test "$(pkg-config --variable=abi_minor tenon-plugin)" = 0
check "the other variables of tenon-plugin.pc" variables_by_pkg_config
if [ -f "$libdir/libtenon-nn.so" ]; then
    check "every block of README.md and docs" pages "$source_dir/README.md" "$source_dir"/docs/*.md
    check "a wrong page is seen" wrong_pages
fi
check "find_package: configure" cmake -S "$source_dir/tests/gates/consumer" -B "$work/consumer" -DCMAKE_PREFIX_PATH="$prefix"
mkdir "$work/other" && cp "$source_dir/tests/gates/consumer"/*.c "$work/other"
check "find_package: a later minor is refused" other_version 0.2
check "find_package: another major is refused" other_version 1.0
check "find_package: a component that is not there is refused" component_absent
if [ -x "$prefix/bin/tenon" ]; then
    check "a new plugin where the umask is 002, by make and by CMake" plugin_of_a_group
fi
check "find_package: build" cmake --build "$work/consumer"
check "find_package: run" "$work/consumer/program"
check "find_package: the plugin exports one symbol" \
    test "$(nm -D --defined-only "$work/consumer/acme.so" | awk '{print $3}')" = tn_plugin_v1
check "the shipped data" test -f "$prefix/share/tenon/data/digits/train-images-idx3-ubyte"
if [ -x "$prefix/bin/tenon" ]; then
    check "the tool runs" "$prefix/bin/tenon" version
    check "the tool lists plugins" "$prefix/bin/tenon" plugins list
    check "the conformance kit runs" "$prefix/bin/tenon" plugins check mempool --only load
fi
check "libtenon.so under 1.3 MB" small "$libdir/libtenon.so" 1300000
for plugin in "$plugins"/*.so; do
    case $(basename "$plugin") in
    cpu.so) check "cpu.so under 1.6 MB" small "$plugin" 1600000 ;; # it has the kernels of every operator and type
    cuda.so) check "cuda.so under 1 MB" small "$plugin" 1000000 ;; # what NVRTC compiles is in there as text
    *) [ ! -f "$plugin" ] || check "$(basename "$plugin") under 400 KB" small "$plugin" 400000 ;;
    esac
done
[ $failed = 0 ] && echo "install: green, $checked checked" || echo "install: red, $failed of $checked failed"
[ $failed = 0 ]
