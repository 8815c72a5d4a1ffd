# D: resource abuse that one command can try. The rest needs a view from outside: run_attacks.py.

# Exhausts one kind of object after the other inside one process; the limits must be the process's
# or the sandbox's own, and everything must be free again afterwards.
probe_D12() {
  timeout 30 python3 -c '
import ctypes, os, resource, select, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
makers = {
    "pipe": lambda: os.pipe()[0], "epoll": lambda: select.epoll(), "socket": socket.socket,
    "memfd": lambda: os.memfd_create("x"), "eventfd": lambda: os.eventfd(0),
    "inotify": lambda: libc.inotify_init1(0), "timerfd": lambda: libc.timerfd_create(1, 0),
}
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
if hard > 1 << 20 or hard < 0: print("RLIMIT_NOFILE is", hard)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
for name, make in makers.items():
    child = os.fork()
    if child == 0:
        kept = []
        try:
            for _ in range(100000):
                made = make()
                if made == -1: raise OSError
                kept.append(made)
        except OSError: os._exit(0)
        os._exit(1)
    if os.waitpid(child, 0)[1] != 0: print("no end to", name)
'
}

probe_D20() {
  if chrt -f 99 true 2>/dev/null; then echo "SCHED_FIFO was granted"; fi
  python3 -c '
import os
try: os.setpriority(os.PRIO_PROCESS, 0, -20)
except OSError: pass
else: print("nice -20 was granted")
for name in ("RLIMIT_RTPRIO", "RLIMIT_MEMLOCK"):
    import resource
    hard = resource.getrlimit(getattr(resource, name))[1]
    if name == "RLIMIT_RTPRIO" and hard != 0: print(name, "is", hard)
'
}
