# B: kernel surface. Numbers are those of x86_64.

probe_B01() { denied "425 8 0" "426 -1 0 0 0 0 0" "427 -1 0 0 0"; }                    # io_uring
probe_B02() { denied "323 1"; }                              # userfaultfd, UFFD_USER_MODE_ONLY
probe_B03() { denied "321 0 0 0"; }                                                         # bpf
probe_B04() { denied "298 0 0 -1 -1 0"; }                                       # perf_event_open
probe_B05() { denied "250 0 -3 0" "248 0 0 0 0 0" "249 0 0 0 0"; }  # keyctl add_key request_key

# init_module finit_module delete_module kexec_file_load reboot swapon swapoff. Not kexec_load:
# with zero segments it unloads the image when it is allowed.
probe_B06() {
  denied "175 0 0 0" "313 -1 0 0" "176 0 0" "320 -1 -1 0 0 0xdead" "169 0 0 0" "167 0 0" "168 0"
}

# clock_settime with an invalid clock: EINVAL means that it got through.
probe_B07() { denied "227 -1 0" "164 0 0"; }
probe_B08() { denied "172 3" "173 0 1 1"; }      # iopl ioperm
probe_B09() { denied "163 1"; }                  # acct, a bad pointer: null would switch it off
probe_B10() { denied "179 0 0 0 0" "443 -1 0 0 0"; }  # quotactl quotactl_fd
probe_B11() { denied "103 10 0 0"; }             # syslog, size of the buffer
probe_B12() { denied "300 0 0"; }                # fanotify_init
probe_B13() { denied "438 -1 0 0"; }             # pidfd_getfd, CVE-2026-46333
probe_B14() { denied "312 1 1 0 0 0"; }          # kcmp
probe_B15() { denied "279 0 0 0 0 0 0" "256 0 0 0 0" "237 0 0 0 0 0 0" "238 99 0 0"; }  # NUMA
probe_B16() { denied "134 0" "136 0 0" "139 1 0"; }  # uselib ustat sysfs
probe_B17() { denied "154 0 0 0"; }              # modify_ldt

# getpid through int 0x80. A kernel without the 32-bit ABI kills the child.
probe_B18() {
  python3 -c '
import ctypes, mmap, os
reader, writer = os.pipe()
if os.fork() == 0:
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
    function = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    os.write(writer, b"%d" % function())
    os._exit(0)
os.close(writer)
result = int(os.read(reader, 32) or b"-38")
os.wait()
if result != -38: print("getpid through int 0x80 gave", result)
'
}

probe_B19() { not_implemented "$((0x40000000 | 39))"; }  # getpid of the x32 ABI
probe_B20() { not_implemented 600 9999 4294967295; }

# ALG=38 (Copy Fail), RXRPC=33 (Dirty Frag), RDS=21 (PinTheft), PACKET=17, VSOCK=40, KEY=15, XDP=44
probe_B21() {
  local family calls=()
  for family in 3 4 5 9 15 17 21 26 29 30 31 32 33 35 37 38 39 40 41 42 43 44 45; do
    calls+=("$family 1 0" "$family 2 0" "$family 3 0" "$family 5 0")
  done
  no_socket "${calls[@]}"
}

# Netlink: only ROUTE, and that one must work (ip, getifaddrs).
probe_B22() {
  local protocol calls=()
  for protocol in 2 4 5 6 9 10 12 15 16 19 20 21; do calls+=("16 3 $protocol"); done
  no_socket "${calls[@]}"
  python3 -c 'import socket; socket.socket(16, 3, 0)' || echo "NETLINK_ROUTE is refused"
}

# MPTCP=262, UDPLITE=136, SCTP=132, raw and ping sockets.
probe_B23() {
  no_socket "2 1 262" "10 1 262" "2 2 136" "10 2 136" "2 1 132" "2 5 132" "2 3 1" "2 3 255" \
    "10 3 58" "2 2 1" "10 2 58"
}

# FUTEX_WAIT_REQUEUE_PI and FUTEX_CMP_REQUEUE_PI, plain, private and with junk above bit 31
# (CVE-2026-43499).
probe_B24() { denied "202 0 11 0 0 0 0" "202 0 12 0 0 0 0" "202 0 140 0 0 0 0" "202 0 0x10000000c 0 0 0 0"; }

# Typing into one's own controlling terminal: TIOCSTI, TIOCLINUX, with junk above bit 31 too
# (CVE-2019-10063), TIOCSETD. The terminal is a fresh one, so nothing reads what is typed.
probe_B25() {
  python3 -c '
import ctypes, fcntl, os, pty, sys, termios
libc = ctypes.CDLL(None, use_errno=True)
master, slave = pty.openpty()
reader, writer = os.pipe()
if os.fork() == 0:
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for name, command, value in (("TIOCSTI", 0x5412, b"x"), ("TIOCSTI", 0x100005412, b"x"),
                                 ("TIOCSETD", 0x5423, b"\0\0\0\0"), ("TIOCLINUX", 0x541C, b"\x0c")):
        result = libc.syscall(16, ctypes.c_long(slave), ctypes.c_ulong(command), value)
        error = ctypes.get_errno() if result == -1 else 0
        if error not in (1, 13, 38): os.write(writer, ("%s %#x gave %d, errno %d\n" % (name, command, result, error)).encode())
    os.write(writer, b"done\n")
    os._exit(0)
os.close(writer)
os.wait()
report = os.read(reader, 4096).decode()
if not report.endswith("done\n"): report += "the probe broke"
sys.stdout.write(report.removesuffix("done\n"))
'
}

# clone with namespace flags; clone3 must say ENOSYS, or C libraries do not fall back.
probe_B26() {
  denied "56 0x10000000 0 0 0 0" "56 0x20000 0 0 0 0" "56 0x40000000 0 0 0 0" \
    "56 0x110000000 0 0 0 0"
  not_implemented "435 0 0"
}

probe_B27() {
  grep -q 'NoNewPrivs:[[:space:]]*1' /proc/self/status || echo "no_new_privs is off"
  grep -q 'Seccomp:[[:space:]]*2' /proc/self/status || echo "no seccomp filter"
}

# strict: all five sets empty. dev: at most CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETUID.
probe_B28() {
  local allowed=0
  if [ "${ATTACK_PROFILE:-strict}" = dev ]; then allowed=0xfb; fi
  awk '/^Cap(Inh|Prm|Eff|Bnd|Amb)/ {print $1, $2}' /proc/self/status | while read -r set bits; do
    if [ $((0x$bits & ~allowed)) -ne 0 ]; then echo "$set $bits"; fi
  done
}

# ADDR_NO_RANDOMIZE, READ_IMPLIES_EXEC, and both with junk above bit 31.
probe_B29() { denied "135 0x40000" "135 0x400000" "135 0x100400000"; }

probe_B30() {
  # 52 is PR_GET_SPECULATION_CTRL; without its bit 0 the host has no switch per task to set.
  python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).prctl(52, 0, 0, 0, 0) & 1)' && return 0
  grep -E '^Speculation_Store_Bypass:' /proc/self/status |
    grep -vE 'force mitigated|not vulnerable|globally mitigated'
  return 0
}

# Not among the letters of the reference: prctl(PR_SET_MM), TCP_ULP, ways through the memory of
# other processes that newer kernels added.
probe_B33() {
  denied "157 35 0 0 0 0" "440 -1 0 0 0 0" "447 0" "278 -1 0 0 0" "216 0 0 0 0 0"
  python3 -c '
import socket
try: socket.socket().setsockopt(6, 31, b"tls")
except PermissionError: pass
except OSError as error: print("TCP_ULP gave errno", error.errno)
else: print("TCP_ULP was accepted")
'
}
