#!/bin/bash
# What a job says on the wire: every packet on the loopback of a network namespace of its own, while two workers train.
# Under kvstore.security=curve none of it is a parameter of the model that was trained; under none all of them are found,
# which shows that the search finds what is there. Needs root, for the namespace and the raw socket.
. "$(dirname "$0")/common.bash"

"$tool" plugins list --exists kv-zmq || { echo "the plugin kv-zmq is not built"; exit 77; }
command -v python3 >/dev/null && command -v ip >/dev/null || { echo "python3 or ip is missing"; exit 77; }
unshare -n true 2>/dev/null || { echo "no network namespace can be made: this needs root"; exit 77; }
cd "$work" || exit 1

# capture OUT COMMAND...: runs it, and writes what all packets of the namespace held, as they came
cat >capture.py <<'PY'
import socket, struct, subprocess, sys, threading
RCVBUFFORCE, ALL, PACKET, STATISTICS = 33, 3, 263, 6
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL))
s.setsockopt(socket.SOL_SOCKET, RCVBUFFORCE, 1 << 30)
s.bind(("lo", 0))
s.settimeout(0.2)
ended = threading.Event()

def take(out):
    while True:
        try:
            packet, where = s.recvfrom(1 << 17)
        except socket.timeout:
            if ended.is_set():
                return
            continue
        if where[2] != socket.PACKET_OUTGOING:  # on a loopback each is seen twice
            out.write(packet)

with open(sys.argv[1], "wb") as out:
    thread = threading.Thread(target=take, args=(out,))
    thread.start()
    try:
        code = subprocess.run(sys.argv[2:]).returncode
    finally:
        ended.set()
    thread.join()
packets, lost = struct.unpack("II", s.getsockopt(PACKET, STATISTICS, 8))
if lost:
    sys.exit("%d of %d packets were not captured" % (lost, packets))
sys.exit(code)
PY

# found CAPTURE PARAMS: of 200 pieces of 32 bytes all over the file, how many the capture has
cat >found.py <<'PY'
import sys
wire, model = (open(name, "rb").read() for name in sys.argv[1:3])
step = len(model) // 210
pieces = [model[at:at + 32] for at in range(step, 201 * step, step)]
pieces = [piece for piece in pieces if len(set(piece)) >= 16]  # no zeros, no names
print(sum(piece in wire for piece in pieces), len(pieces), len(wire))
PY

for security in none curve; do
    set=(--set kvstore.transport=zmq --set kvstore.security=$security)
    # shellcheck disable=SC2016
    unshare -n sh -c 'ip link set lo up && exec "$@"' shell python3 capture.py "$security" \
        "$tool" launch -n 2 -s 2 --launcher local "${set[@]}" -- "$tool" train zoo:lenet --data digits --epochs 1 \
        --set train.batch=256 --seed 42 --json --out "run-$security" --set kvstore.type=dist_sync "${set[@]}" \
        >"$security.out" 2>"$security.err" || fail "$security: $(tail -n 5 "$security.err")"
    read -r hits pieces bytes < <(python3 found.py "$security" "run-$security/model-0000.params")
    echo "$security: $hits of $pieces pieces of the model in $bytes bytes"
    [ "$pieces" -ge 150 ] && [ "$bytes" -gt 1000000 ] || fail "$security: too little was captured, or looked for"
    case $security in
    none) [ "$hits" -ge $((pieces * 9 / 10)) ] || fail "the search finds $hits of $pieces pieces in what is plain" ;;
    curve) [ "$hits" = 0 ] || fail "$hits of $pieces pieces of the model are on the wire" ;;
    esac
    count=$((count + 1))
done
finish
