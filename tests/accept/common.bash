# Read by the acceptance scripts: the tool, a work folder that goes away, trainings and what they said.
# Each script takes the build folder; TENON_FULL=1 asks for the long form, TENON_SEED for other random choices. It
# ends with 0, with 1 and a sentence, or with 77 if it cannot run here; its last line but that is `count N`.
build=${1:?usage: $(basename "$0") BUILD}
tool=$build/bin/tenon
full=${TENON_FULL:-0}
RANDOM=${TENON_SEED:-1}
count=0
[ -x "$tool" ] || { echo "the tool is not built"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE
export XDG_CONFIG_HOME=$work/no-config

fail() {
    echo "$*"
    echo "count $count"
    exit 1
}

finish() {
    echo "count $count"
    exit 0
}

# field NAME FILE: a field of the last JSON line
field() { tail -n 1 "$2" | sed -n "s/.*\"$1\"[ ]*:[ ]*\"\{0,1\}\([^\",}]*\).*/\1/p"; }

# train NAME OPTION...: LeNet, or $net, on the digits in $work/NAME, its events in $work/NAME.json
train() {
    local name=$1
    shift
    rm -rf "${work:?}/$name"
    "$tool" train "${net:-zoo:lenet}" --data digits --seed "${seed:-42}" --json --set run.dir="$work/$name" "$@" \
        >"$work/$name.json" 2>"$work/$name.err"
}

# hash NAME OPTION...: trains and prints params_sha256
hash() {
    train "$@" || { cat "$work/$1.err" >&2; return 1; }
    field params_sha256 "$work/$1.json"
}
