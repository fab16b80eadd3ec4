#!/bin/bash
# What scripts/demo says while it works, with a build and a tool that are scripts here: its stages, the tenths of the build, whether
# kernels for GPUs are built and how to have them, the log of a build that fails. All of stderr is a file, as in CI.
#
# usage: demo.sh ROOT
set -eu
root=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/scripts" "$work/bin" "$work/run"
cp "$root/scripts/demo" "$root/scripts/lib.sh" "$work/scripts"
for file in model-symbol.json model-0000.params run.json curves.svg metrics.jsonl; do echo x >"$work/run/$file"; done
printf '#!/bin/sh\n' >"$work/scripts/setup"
cat >"$work/bin/cmake" <<END
#!/bin/bash
echo "\$*" >>"$work/cmake.said"
mkdir -p "$work/build-release/bin"
cp "$work/bin/tool" "$work/build-release/bin/tenon"
[ "\$1" = --build ] || exit 0
for i in {1..25}; do echo "[\$i/25] Building C object x\$i.o"; done
[ ! -e "$work/broken" ] || { echo "x.c:1: error: planted"; exit 1; }
END
cat >"$work/bin/tool" <<END
#!/bin/sh
echo '{"event":"done","folder":"$work/run","accuracy":0.99,"writer_disjoint_accuracy":0.97}'
END
printf '#!/bin/sh\n' >"$work/bin/nvcc"
chmod +x "$work/scripts/setup" "$work"/bin/*
export PATH="$work/bin:$PATH"

fail() { echo "demo.sh: $*" >&2; cat "$work/out" "$work/err" >&2; exit 1; }
demo() { "$work/scripts/demo" "$@" >"$work/out" 2>"$work/err"; }
says() { grep -q -e "$1" "$work/err" || fail "not said: $1"; }

demo || fail "ended with $?"
for n in 1 2 3; do says "^demo: stage $n of 3, .*: about "; done
for n in 1 2 3 4 5 6 7 8 9 10; do says "^demo: ${n}0 % built after [0-9]* s$"; done
[ "$(grep -c '% built' "$work/err")" = 10 ] || fail "not ten tenths"
[ "$(wc -l <"$work/build-release/build.log")" = 25 ] || fail "the log is not whole"
grep -q '^export PATH=' "$work/out" || fail "the last line is missing"
if [ -e /dev/nvidiactl ] || [ -e /dev/nvidia0 ] || [ -e /dev/dxg ]; then
    grep -q -e '--preset release -DTN_CUDA_KERNELS=ON$' "$work/cmake.said" || fail "no kernels for the GPU of this machine"
else
    says "bin/nvcc is here, but no NVIDIA GPU .*scripts/demo --cuda builds them$"
    grep -q -e '--preset release -DTN_CUDA_KERNELS=OFF$' "$work/cmake.said" || fail "kernels are built without a GPU"
fi

: >"$work/cmake.said"
demo --cuda || fail "--cuda ended with $?"
grep -q -e '--preset release -DTN_CUDA_KERNELS=ON$' "$work/cmake.said" || fail "--cuda builds no kernels"
! grep -q nvcc "$work/err" || fail "--cuda: kernels are said to be left out"

: >"$work/broken"
! demo || fail "a build that fails ends with 0"
says "x.c:1: error: planted"
says "the build failed"
! demo --cuda now || fail "two words end with 0"
! demo --curda || fail "an unknown option ends with 0"
"$work/scripts/demo" --help | grep -q -e --cuda || fail "--help is silent about --cuda"
echo "what scripts/demo says is true"
