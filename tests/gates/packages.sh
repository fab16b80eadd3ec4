#!/bin/bash
# Packages: cpack makes them; no file is in two; each says what it needs; they install, run and go away again. The
# tarball runs from a path with blanks; `uninstall` leaves a prefix as it was. Sizes are printed.
# usage: packages.sh BUILD
set -u
build=$(cd "${1:?usage: packages.sh BUILD}" && pwd) || exit 2
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
for program in cpack dpkg-deb dpkg-shlibdeps gzip; do
    command -v $program >/dev/null || { echo "packages: $program is not installed"; exit 77; }
done
[ -x "$build/bin/tenon" ] || { echo "packages: nothing is built in $build"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
export LC_ALL=C XDG_CONFIG_HOME="$work/none" PYTHONDONTWRITEBYTECODE=1
unset LD_LIBRARY_PATH OPENBLAS_CORETYPE OPENBLAS_L2_SIZE DESTDIR
failed=0 checked=0

check() { # check WHAT COMMAND...: one check, its output shown only when it fails
    local what=$1 out
    shift
    checked=$((checked + 1))
    if ! out=$("$@" 2>&1); then
        printf 'packages: %s\n%s\n' "$what" "$out" | head -30
        failed=$((failed + 1))
    fi
}

deb() { echo "$work/packages/$1"_*.deb; }
field() { dpkg-deb -f "$(deb "$1")" "$2"; }
says() { field "$1" "$2" | grep -q -F -- "$3" || { field "$1" "$2"; return 1; }; } # says PACKAGE FIELD TEXT
files() { dpkg-deb -c "$(deb "$1")" | awk '{print $6}' | grep -v '/$'; }
control() { dpkg-deb -I "$(deb "$1")" "$2" | grep -q -F -- "$3"; } # control PACKAGE FILE TEXT
holds() { files "$1" | grep -q -E "^\./usr/$2\$" || { files "$1"; return 1; }; } # holds PACKAGE REGEX

openmp_build() { # libopenblas0 would bring the build with threads of its own
    says tenon-plugin-cpu-openblas Depends libopenblas0-openmp && ! field tenon-plugin-cpu-openblas Depends | grep -w 'libopenblas0[ ,]'
}

alone() { # no file is in two packages
    local twice
    twice=$(for package in $packages; do files "$package"; done | sort | uniq -d)
    echo "$twice"
    [ -z "$twice" ]
}

synopses() { # the first line says what the package is, of no two the same; the text is not cut
    local package text
    for package in $packages; do
        text=$(field "$package" Description)
        echo "$package: $text"
        [ "$(echo "$text" | head -n 1 | wc -c)" -le 80 ] && [ "$(echo "$text" | wc -l)" -ge 3 ] || return 1
        case $text in *.) ;; *) return 1 ;; esac
    done
    [ -z "$(for package in $packages; do field "$package" Description | head -n 1; done | sort | uniq -d)" ]
}

sums() { # every file has its sum, and the sums are right
    rm -rf "$work/sums"
    mkdir -p "$work/sums"
    dpkg-deb -R "$(deb "$1")" "$work/sums" && (cd "$work/sums" && md5sum --quiet -c DEBIAN/md5sums) &&
        [ "$(wc -l <"$work/sums/DEBIAN/md5sums")" = "$(cd "$work/sums" && find usr -type f | wc -l)" ]
}

no_paths() { # nothing tells where it was built
    ! grep -r -l -F -e "$build" -e "$source_dir" "$1"
}

root_install() {
    mkdir -p "$root/etc" "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates" "$root/var/lib/dpkg/triggers"
    : >"$root/var/lib/dpkg/status"
    if [ "$(id -u)" = 0 ]; then # dpkg runs ldconfig in there
        cp --parents -L /bin/sh /sbin/ldconfig $(ldd /bin/sh /sbin/ldconfig 2>/dev/null | grep -o '/[^ ]*\.so[^ ]*') "$root"
        dpkg --root="$root" --force-depends --force-not-root --log=/dev/null -i "$work"/packages/*.deb
    else
        for package in "$work"/packages/*.deb; do dpkg-deb -x "$package" "$root" || return 1; done
    fi
}

root_remove() {
    [ "$(id -u)" = 0 ] || return 0
    # shellcheck disable=SC2086
    dpkg --root="$root" --force-depends --log=/dev/null -P $packages && [ -z "$(find "$root/usr" -type f 2>/dev/null)" ]
}

in_root() { (cd "$work" && LD_LIBRARY_PATH="$libs" "$root/usr/bin/tenon" "$@"); }
listed() { in_root plugins list --json | grep -q "\"name\":\"$1\".*\"state\":\"ready\""; }
trains() { # trains TOOL FOLDER: one epoch
    (cd "$work" && "$1" train zoo:lenet --data digits --epochs 1 --seed 1 --out "$2" --quiet --json | tail -n 1) |
        grep -q '"event":"done"'
}
trains_in_root() { LD_LIBRARY_PATH="$libs" trains "$root/usr/bin/tenon" "$work/run-deb"; }

uninstall() ( # a prefix that held something is as it was
    flock 9 # nobody else installs meanwhile: the build has one list of what was installed
    prefix="$work/a prefix"
    mkdir -p "$prefix/bin" "$prefix/share/man/man1" "$prefix/lib"
    echo mine >"$prefix/bin/mine"
    (cd "$prefix" && find . | sort) >"$work/before"
    cmake --install "$build" --prefix "$prefix" && [ -x "$prefix/bin/tenon" ] &&
        cmake --install "$build" --prefix "$prefix" >/dev/null && echo mine >"$prefix/share/tenon/data/mine" &&
        cmake -DBUILD="$build" -P "$source_dir/packaging/uninstall.cmake" || return 1
    [ -f "$prefix/share/tenon/data/mine" ] || return 1
    rm -r "$prefix/share/tenon"
    (cd "$prefix" && find . | sort) | diff "$work/before" -
) 9<"$build"

(cd "$build" && cpack --config CPackConfig.cmake -B "$work/packages") >"$work/log" 2>&1 ||
    { cat "$work/log"; echo "packages: cpack failed"; exit 1; }
packages=$(for file in "$work"/packages/*.deb; do basename "$file" | cut -d_ -f1; done)
installed() { # installed NAME: not those for GPUs of a build without nvcc, which serve the tests alone
    [[ $1 != cuda && $1 != kv-nccl ]] || ! grep -qs "for the emulator" "$build"/lib/tenon/plugins-1/cuda/*.fatbin
}
plugins=$(for file in "$build"/lib/tenon/plugins-1/*.so; do installed "$(basename "$file" .so)" && basename "$file" .so; done)

check "a package for each part" test "$(echo "$packages" | wc -l)" = "$((3 + $(echo "$plugins" | wc -l)))"
check "no file in two packages" alone
check "each package says what it is" synopses
for package in $packages; do
    check "$package: sums" sums "$package"
    check "$package: copyright" holds "$package" "share/doc/$package/copyright"
    check "$package: changes" holds "$package" "share/doc/$package/changelog.Debian.gz"
    check "$package: nothing tells where it was built" no_paths "$work/sums/usr"
    check "$package: maintainer" says "$package" Maintainer "@"
    check "$package: description" test "$(field "$package" Description | wc -l)" -ge 2
done
check "libtenon0: the library" holds libtenon0 'lib/.*libtenon\.so\.[0-9.]+'
check "libtenon0: nets" holds libtenon0 'lib/.*libtenon-nn\.so\.[0-9.]+'
check "libtenon0: needs jansson" says libtenon0 Depends libjansson4
check "libtenon0: has the linker look for it" control libtenon0 triggers ldconfig
check "libtenon0: provides the ABI" says libtenon0 Provides "tenon-plugin-abi-1 (= 1."
check "libtenon0: recommends cpu" says libtenon0 Recommends tenon-plugin-cpu
check "libtenon-dev: headers" holds libtenon-dev 'include/tenon/tenon\.h'
check "libtenon-dev: link" holds libtenon-dev 'lib/.*libtenon\.so'
check "libtenon-dev: pc" holds libtenon-dev 'lib/.*pkgconfig/tenon-plugin\.pc'
check "libtenon-dev: templates" holds libtenon-dev 'share/tenon/template/operator/Makefile'
check "libtenon-dev: the manual" holds libtenon-dev 'share/doc/tenon/docs/plugins\.md'
check "libtenon-dev: its programs" holds libtenon-dev 'share/doc/tenon/examples/own_operator\.c'
check "libtenon-dev: the conformance kit" holds libtenon-dev 'lib/.*tenon/libtenon-check\.so'
check "libtenon-dev: needs its library" says libtenon-dev Depends "libtenon0 (= "
check "tenon: tool" holds tenon bin/tenon
check "tenon: page" holds tenon 'share/man/man1/tenon-train\.1\.gz'
check "tenon: completion" holds tenon share/bash-completion/completions/tenon
check "tenon: data" holds tenon share/tenon/data/digits/train-images-idx3-ubyte
for plugin in $plugins; do
    check "tenon-plugin-$plugin: the plugin" holds "tenon-plugin-$plugin" "lib/.*tenon/plugins-1/$plugin\.so"
    check "tenon-plugin-$plugin: its files alone" test "$(files "tenon-plugin-$plugin" | grep -c -v "share/doc\|plugins-1/$plugin/.*\.fatbin")" = 1
    check "tenon-plugin-$plugin: needs the ABI" says "tenon-plugin-$plugin" Depends tenon-plugin-abi-1
done
echo "$plugins" | grep -q openblas &&
    check "tenon-plugin-cpu-openblas: needs the build with OpenMP" openmp_build
echo "$plugins" | grep -qx cpu-onednn &&
    check "tenon-plugin-cpu-onednn: needs oneDNN" says tenon-plugin-cpu-onednn Depends libdnnl
echo "$plugins" | grep -qx kv-zmq &&
    check "tenon-plugin-kv-zmq: needs libzmq" says tenon-plugin-kv-zmq Depends libzmq5
echo "$plugins" | grep -qx kv-rdma &&
    check "tenon-plugin-kv-rdma: needs libibverbs" says tenon-plugin-kv-rdma Depends libibverbs1
command -v lintian >/dev/null && check "lintian" lintian --fail-on error "$work"/packages/*.deb

root="$work/root"
check "the packages install" root_install
libs=$(dirname "$(find "$root/usr/lib" -name libtenon.so.0)")
check "the library is known to the linker" sh -c "[ $(id -u) != 0 ] || /sbin/ldconfig -r '$root' -p | grep -q libtenon.so.0"
check "the tool runs" in_root version
check "the conformance kit runs" in_root plugins check mempool --only load
for plugin in $plugins; do check "$plugin is found" listed "$plugin"; done
check "a net is trained" trains_in_root
check "doctor finds that every plugin loads" sh -c \
    "LD_LIBRARY_PATH='$libs' '$root/usr/bin/tenon' doctor --json | grep -q 'with all libraries'"
check "the packages go away" root_remove

mkdir -p "$work/with blanks in it"
tar -xzf "$work"/packages/tenon-*.tar.gz -C "$work/with blanks in it"
top=$(echo "$work/with blanks in it"/tenon-*)
check "the tarball holds the licence" test -s "$top/share/doc/tenon/LICENSE"
check "the tarball trains where it lies" trains "$top/bin/tenon" "$work/run-tar"
check "the conformance kit of the tarball runs" "$top/bin/tenon" plugins check mempool --only load
check "the tarball tells not where it was built" no_paths "$top"
check "uninstall" uninstall

echo "sizes in bytes"
for file in "$work"/packages/*.deb "$work"/packages/*.tar.gz; do
    printf '  %9d  %s\n' "$(stat -c %s "$file")" "$(basename "$file")"
done
[ $failed = 0 ] && echo "packages: green, $checked checked" || echo "packages: red, $failed of $checked failed"
[ $failed = 0 ]
