#!/bin/bash
# The SDK as a third party has it: from an installation alone, in a path with a blank. `tenon plugins new` makes a
# plugin of each kind; Makefile and CMake, gcc and clang build it; its test passes, and fails for a planted fault; it
# is installed and found. What TN_ABI_MIN and TN_ABI_TARGET promise holds.
. "$(dirname "$0")/common.bash"

prefix="$work/a prefix"
flock "$build" cmake --install "$build" --prefix "$prefix" >"$work/install.log" 2>&1 || fail "cmake --install: $(tail -n 3 "$work/install.log")"
libdir=$(dirname "$(find "$prefix" -name libtenon.so)")
export PKG_CONFIG_PATH="$libdir/pkgconfig" LC_ALL=C
unset LD_LIBRARY_PATH CMAKE_C_COMPILER_LAUNCHER CFLAGS LDFLAGS MAKEFLAGS
tenon=$prefix/bin/tenon
compilers=$(for cc in gcc clang; do command -v $cc >/dev/null && echo $cc; done)

run() { # run WHAT COMMAND...
    local what=$1
    shift
    "$@" >"$work/log" 2>&1 || { tail -n 20 "$work/log"; fail "$what"; }
    count=$((count + 1))
}

refuse() { # refuse WHAT WANTED COMMAND...: fails, and says so
    local what=$1 wanted=$2
    shift 2
    if "$@" >"$work/log" 2>&1 || ! grep -q -- "$wanted" "$work/log"; then
        tail -n 20 "$work/log"
        fail "$what: expected a failure that says \"$wanted\""
    fi
    count=$((count + 1))
}

new() { # new NAME KIND: a fresh folder of this name
    rm -rf "${work:?}/$1"
    "$tenon" plugins new "$1" --kind "$2" --dir "$work" >/dev/null 2>"$work/log" || fail "plugins new: $(cat "$work/log")"
}

by_cmake() { # by_cmake NAME KIND COMPILER
    new "$1" "$2"
    run "$2, CMake, $3: configure" cmake -S "$work/$1" -B "$work/$1/build" -DCMAKE_PREFIX_PATH="$prefix" \
        -DCMAKE_C_COMPILER="$3" -DCMAKE_C_FLAGS="-Wall -Wextra -Werror" -DCMAKE_INSTALL_PREFIX="$work/by-cmake"
    run "$2, CMake, $3: build" cmake --build "$work/$1/build"
    run "$2, CMake, $3: test" ctest --test-dir "$work/$1/build" --output-on-failure -R "${4:-.}"
}

# ---- where the umask gives the group write access, what is made may be loaded all the same
umask 002
new shared operator
run "make test with umask 002" make -C "$work/shared" test
umask 022

[ "$(wc -l <"$work/shared/shared.c")" -le 60 ] || fail "the operator has $(wc -l <"$work/shared/shared.c") lines, more than 60"

# ---- each kind, each compiler, both ways
for cc in $compilers; do
    for kind in operator kernel device device-async pool transport collective; do
        new "my-$kind" $kind
        run "$kind, make, $cc" make -C "$work/my-$kind" CC="$cc" CFLAGS=-Werror
        [ "$(nm -D --defined-only "$work/my-$kind/my-$kind.so" | awk '{print $3}')" = tn_plugin_v1 ] ||
            fail "$kind, make, $cc: it exports more than tn_plugin_v1"
        if [ "$cc" = gcc ]; then
            run "$kind, make test, $cc" make -C "$work/my-$kind" test CC="$cc" CFLAGS=-Werror
        else
            run "$kind, test program, $cc" make -C "$work/my-$kind" "test_my_${kind//-/_}" CC="$cc" CFLAGS=-Werror
            run "$kind, values, $cc" "$work/my-$kind/test_my_${kind//-/_}" "$work/my-$kind/my-$kind.so"
        fi
    done
    by_cmake "our-operator" operator "$cc" "$([ "$cc" = gcc ] || echo values)"
done
by_cmake our-kernel kernel gcc values
by_cmake our-pool pool gcc values
by_cmake our-device device gcc values
by_cmake our-transport transport gcc values
by_cmake our-collective collective gcc values
run "cmake --install" cmake --install "$work/our-pool/build"
find "$prefix" -name our-pool.so | grep -q plugins-1 || fail "cmake --install put the plugin elsewhere"

# ---- what `make test` is for: a wrong gradient
new wrong operator
sed -i 's/attrs, SCALE), 0)/attrs, SCALE) * 1.001, 0)/' "$work/wrong/wrong.c"
refuse "a wrong gradient" "the gradient of input 0" make -C "$work/wrong" test
refuse "a wrong gradient, by the kit" "G-values: gradient of input data" "$prefix/bin/tenon" plugins check "$work/wrong/wrong.so"

# ---- make install; the tool finds it and says what it gives
run "make install" make -C "$work/my-operator" install
run "it is found" "$tenon" plugins list
grep -q '^my-operator .*op:my_operator' "$work/log" || fail "plugins list does not show the installed plugin: $(cat "$work/log")"
run "the DESTDIR" make -C "$work/my-pool" install DESTDIR="$work/stage"
find "$work/stage" -name my-pool.so | grep -q plugins-1 || fail "DESTDIR is not in front of the plugin folder"

# ---- a Debian package of it
if command -v dpkg-buildpackage >/dev/null; then
    new packed operator
    run "dpkg-buildpackage" env -C "$work/packed" dpkg-buildpackage -b -us -uc -d
    deb=$(ls "$work"/tenon-plugin-packed_1.0.0_*.deb) || fail "no package was made"
    dpkg-deb -c "$deb" | grep -q 'tenon/plugins-1/packed.so$' || fail "the package does not hold the plugin"
    dpkg-deb -f "$deb" Depends | grep -q 'tenon-plugin-abi-1 (= 1.0~draft[0-9]*)' ||
        fail "the package depends on $(dpkg-deb -f "$deb" Depends)"
    [ "$(dpkg-deb -c "$deb" | grep -c '^-')" = 2 ] || fail "the package holds more than the plugin and its copyright"
else
    echo "no dpkg-buildpackage: the Debian folder was not tried"
fi

# ---- TN_ABI_MIN and TN_ABI_TARGET, with headers of a later minor: one more member in tn_host
cp -r "$prefix/include" "$work/later"
sed -i -e 's/^#define TN_ABI_MINOR 0/#define TN_ABI_MINOR 1/' -e '/(\*service)(const tn_host \*host, const char \*id);/a\
#if TN_ABI_TARGET >= 1\
    const char *later;\
#endif' "$work/later/tenon/plugin/plugin.h"
grep -q 'const char \*later' "$work/later/tenon/plugin/plugin.h" || fail "nowhere to plant a later member"
mkdir "$work/abi"
cat >"$work/abi/plugin.c" <<C
#include <tenon/plugin/plugin.h>
#include <stdio.h>
#if defined(EARLY)
__attribute__((constructor)) static void early(void)
{
    fclose(fopen("$work/abi/marker", "w"));
}
#endif
static const char *said = "none";
static tn_status init(const tn_host *host, void **plugin, tn_err *err)
{
    (void)err;
#if defined(USE_LATER)
    if (TN_HAS(host, tn_host, later))
        said = host->later;
#endif
    *plugin = (void *)(uintptr_t)said;
    (void)host;
    return TN_OK;
}
static const tn_capability *const capabilities[] = {NULL};
TN_PLUGIN_DEFINE("minor", "1.0.0", "Acme", "Apache-2.0", "of a later minor", "", "", init, NULL, NULL, capabilities);
C
cat >"$work/abi/load.c" <<'C'
#include <stdio.h>
#include <tenon/tenon.h>
int main(int argc, char **argv)
{
    const char *settings[] = {argv[argc - 1], NULL};
    const tn_open_options options = {.struct_size = TN_SIZE(tn_open_options), .settings = settings};
    tn_ctx *ctx = NULL;
    tn_status st = tn_open(&options, &ctx);
    st = st ? st : tn_plugin_load(ctx, "minor");
    fprintf(stderr, "%s: %s\n", tn_status_name(st), tn_error_text());
    return tn_close(ctx) || st;
}
C
plugin() { # plugin INCLUDES FLAG...
    local include=$1
    shift
    eval "gcc -std=c11 -Wall -Wextra -Werror -I\"$include\" -fPIC -fvisibility=hidden $* \"$work/abi/plugin.c\"" \
        "-o \"$work/abi/minor.so\" $(pkg-config --variable=ldflags tenon-plugin)"
}
run "the loader" eval "gcc -std=c11 \"$work/abi/load.c\" -o \"$work/abi/load\" $(pkg-config --cflags --libs tenon)"
load() { LD_LIBRARY_PATH=$libdir "$work/abi/load" "plugins.path=$work/abi"; }
refuse "a target above the headers" "newer than these headers" plugin "$prefix/include" -DTN_ABI_TARGET=1
refuse "a minimum above the headers" "newer than these headers" plugin "$prefix/include" -DTN_ABI_MIN=1
refuse "a target below the minimum" "below TN_ABI_MIN" plugin "$work/later" -DTN_ABI_MIN=1 -DTN_ABI_TARGET=0
refuse "a later member without the target" "later" plugin "$work/later" -DUSE_LATER
run "a later member within the target" plugin "$work/later" -DUSE_LATER -DTN_ABI_TARGET=1
run "a plugin with a later target loads" load
run "a plugin with a constructor, for this host" plugin "$work/later" -DEARLY
refuse "a plugin with a constructor" "L19" load
[ ! -f "$work/abi/marker" ] || fail "the constructor of a refused plugin ran"
run "a program that is given its file" env LD_PRELOAD="$work/abi/minor.so" true
[ -f "$work/abi/marker" ] || fail "the constructor did not run where it should"
rm "$work/abi/marker"
run "a plugin that needs a later minor" plugin "$work/later" -DEARLY -DUSE_LATER -DTN_ABI_MIN=1
refuse "a host that is too old" "L06" load
refuse "the sentence says both minors" "1.1.*1.0" load
run "plugins list" "$tenon" plugins list --set "plugins.path=$work/abi"
grep -q 'L06' "$work/log" || fail "plugins list does not say L06: $(cat "$work/log")"
[ ! -f "$work/abi/marker" ] || fail "code of a refused plugin ran"
finish
