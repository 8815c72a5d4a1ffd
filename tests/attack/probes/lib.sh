# Helpers of the probes. A probe is a function probe_<ID> that prints one line per violation it
# finds and nothing when all is well. It must be harmless when it succeeds: open without writing,
# pass null pointers, look but not touch. A probe that breaks counts as failed, never as passed.

# Makes raw system calls, each in a child of its own, and prints those that were not refused.
# Arguments: the errno values that count as a refusal, then one "number arg arg ..." per call.
RAW_CALLS='
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
refusals = {int(e) for e in sys.argv[1].split(",")}
for call in sys.argv[2:]:
    numbers = [ctypes.c_long(int(n, 0)) for n in call.split()]
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        parent = os.getpid()
        result = libc.syscall(*numbers)
        if os.getpid() != parent: os._exit(0)  # a clone that was not refused returns twice
        os.write(writer, b"%d %d" % (result, ctypes.get_errno() if result == -1 else 0))
        os._exit(0)
    os.close(writer)
    result, error = (os.read(reader, 64) or b"0 0").decode().split()
    os.close(reader)
    os.waitpid(child, 0)
    if int(result) != -1 or int(error) not in refusals:
        print("syscall %s gave %s, errno %s" % (call, result, error))
'

# EPERM, ENOSYS, EACCES.
denied() { python3 -c "$RAW_CALLS" 1,38,13 "$@" || echo "the probe broke"; }
# ENOSYS only: other answers break programs that would fall back.
not_implemented() { python3 -c "$RAW_CALLS" 38 "$@" || echo "the probe broke"; }

# Opening for append must fail; nothing is written.
read_only() {
  local file
  for file in "$@"; do
    if (exec 3>>"$file") 2>/dev/null; then echo "$file is writable"; fi
  done
}

must_not_exist() {
  local file
  for file in "$@"; do
    if [ -e "$file" ]; then echo "$file exists"; fi
  done
}

# socket(2) must fail for each "family type protocol".
no_socket() {
  python3 -c '
import socket, sys
for arguments in sys.argv[1:]:
    try: socket.socket(*map(int, arguments.split())).close()
    except OSError: continue
    print("socket", arguments, "was created")
' "$@" || echo "the probe broke"
}

# Prints what a peer sent on a fresh connection to each "host port"; silence is a pass.
no_tcp() {
  python3 -c '
import socket, sys
for target in sys.argv[1:]:
    host, port = target.split()
    try:
        with socket.create_connection((host, int(port)), 2) as peer:
            peer.settimeout(2)
            peer.sendall(b"GET / HTTP/1.0\r\n\r\n")
            data = peer.recv(64)
    except OSError: continue
    if data: print("reached", target, data[:20])
' "$@" || echo "the probe broke"
}

# Runs one probe and prints its single line.
run_probe() {
  local id=$1 violations status
  violations=$("probe_$id" 2>/dev/null)
  status=$?
  if [ -n "$violations" ]; then
    echo "FAIL $id $(printf '%s' "$violations" | head -n 3 | tr '\n' ';' | tr -cd '[:print:]')"
  elif [ $status -ne 0 ]; then
    echo "FAIL $id the probe broke with status $status"
  else
    echo "PASS $id"
  fi
}

all_probes() { declare -F | sed -n 's/^declare -f probe_//p' | sort; }
