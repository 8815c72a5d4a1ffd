# A: filesystem, procfs, devices, mount escapes.

# CVE-2019-5736: the agent's binary must be refused for writing by its mount or its owner, not merely
# because it is running (ETXTBSY).
probe_A01() {
  python3 -c '
import errno, glob, os, re
for exe in glob.glob("/proc/[0-9]*/exe") + glob.glob("/*agent*") + glob.glob("/sbin/*init*"):
    try: name = os.path.realpath(exe)
    except OSError: continue
    if not re.search("init|agent|atoll", name): continue
    try: os.close(os.open(exe, os.O_WRONLY | os.O_APPEND))
    except OSError as error:
        if error.errno != errno.ETXTBSY: continue
    print(name, "is writable")
'
}

# Descriptors inherited at exec must not name anything outside the usual places.
probe_A04() {
  ls -l /proc/self/fd | awk '{print $NF}' | grep -E '^/' |
    grep -vE '^/(proc|dev|usr|home|tmp|workspace)(/|$)' | sed 's/^/inherited descriptor on /'
  return 0
}

probe_A05() { read_only /proc/sysrq-trigger; }
probe_A06() { read_only /proc/sys/kernel/core_pattern; }
probe_A07() {
  read_only /proc/sys/kernel/modprobe /proc/sys/kernel/hotplug /proc/sys/vm/overcommit_memory
}

# Every sysctl, message queue limits of the own namespace included.
probe_A08() {
  python3 -c '
import os
for folder, _, names in os.walk("/proc/sys"):
    for name in names:
        path = os.path.join(folder, name)
        try: os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        except OSError: continue
        print(path, "is writable")
'
}

probe_A09() {
  local file
  for file in /proc/kcore /proc/kmem /dev/mem /dev/kmem /dev/port; do
    if [ -e $file ] && [ -n "$(head -c1 $file 2>/dev/null | od -An -tx1)" ]; then
      echo "$file is readable"
    fi
  done
}

# What Docker masks, because it tells about the host.
probe_A10() {
  local path
  for path in /proc/keys /proc/timer_list /proc/sched_debug /proc/interrupts /proc/latency_stats \
    /proc/acpi /proc/scsi /proc/asound /sys/firmware /sys/devices/virtual/powercap; do
    if [ -d $path ] && [ -n "$(ls -A $path 2>/dev/null | head -1)" ]; then echo "$path has content"; fi
    if [ -f $path ] && [ -n "$(head -c1 $path 2>/dev/null | tr '\0' x)" ]; then echo "$path has content"; fi
  done
}

# CVE-2022-0492.
probe_A11() {
  find / -xdev -name release_agent 2>/dev/null | sed 's/$/ exists/'
  local folder
  folder=$(mktemp -d) || return 1
  if mount -t cgroup -o memory none "$folder" 2>/dev/null; then
    echo "mounted cgroupfs"
    umount "$folder"
  fi
  rmdir "$folder"
}

probe_A12() {
  find /sys/fs/cgroup -writable 2>/dev/null | head -3 | sed 's/$/ is writable/'
  return 0
}

# mount umount2 pivot_root open_tree move_mount fsopen fsconfig fsmount fspick mount_setattr
# open_tree_attr
probe_A13() {
  denied "165 0 0 0 0 0" "166 0 0" "155 0 0" "428 -100 0 0" "429 0 0 0 0 0" "430 0 0" \
    "431 0 0 0 0 0" "432 0 0 0" "433 0 0 0" "442 0 0 0 0 0" "467 0 0 0 0 0"
}

# The raw call on purpose: unshare(1) reports EPERM from writing uid_map after the call succeeded.
probe_A14() { denied "272 0x10000000"; }
probe_A15() {
  denied "272 0x20000" "272 0x40000000" "272 0x20000000" "272 0x8000000" "272 0x4000000" \
    "272 0x2000000" "272 0x80"
}

# setns with a bad descriptor: EBADF means that the call got through.
probe_A16() { denied "308 -1 0" "308 -1 0x10000000" "308 -1 0x40000000"; }

probe_A17() {
  local folder
  folder=$(mktemp -d) || return 1
  if mknod "$folder/d" b 8 0 2>/dev/null || mknod "$folder/c" c 1 1 2>/dev/null; then
    echo "made a device node"
  fi
  rm -rf "$folder"
}

probe_A18() {
  ls /dev | grep -vE \
    '^(null|zero|full|random|urandom|tty|pts|ptmx|shm|mqueue|fd|stdin|stdout|stderr|console|core)$' |
    sed 's,^,/dev/,; s/$/ exists/'
  return 0
}

probe_A19() {
  must_not_exist /dev/kvm /dev/fuse /dev/net/tun /dev/loop-control /dev/loop0 /dev/dm-0 \
    /dev/vhost-net /dev/uinput /dev/hpet /dev/vda /dev/sda
}

probe_A20() { grep -q 'NoNewPrivs:[[:space:]]*1' /proc/self/status || echo "no_new_privs is off"; }

# The Shocker exploit's call, and the one that makes its handles.
probe_A22() { denied "304 -100 0 0" "303 -100 0 0 0 0"; }
probe_A23() { denied "161 0"; }

probe_A25() {
  grep -oE '(upper|lower|work)dir=[^, ]+' /proc/self/mountinfo | cut -d= -f2 | tr : '\n' |
    while read -r path; do
      if ls -d "$path" >/dev/null 2>&1; then echo "layer $path is reachable"; fi
    done
  return 0
}

# PID 1 is not dumpable: its memory, environment and descriptors are out of reach even for root.
probe_A28() {
  python3 -c '
import os
def tries(what, action):
    try: action()
    except OSError: return
    print("/proc/1/" + what, "is accessible")
for name in ("mem", "environ", "maps", "auxv"):
    tries(name, lambda: os.read(os.open("/proc/1/" + name, os.O_RDONLY), 1))
tries("fd", lambda: os.listdir("/proc/1/fd"))
tries("root", lambda: os.listdir("/proc/1/root/"))
tries("exe", lambda: os.readlink("/proc/1/exe"))
'
}

# Only processes of the sandbox: PID 1 is the agent, and no kernel thread is in sight.
probe_A29() {
  local count
  count=$(ls /proc | grep -cE '^[0-9]+$')
  if [ "$count" -gt "${ATTACK_MAX_PROCESSES:-40}" ]; then echo "$count processes visible"; fi
  cat /proc/[0-9]*/comm 2>/dev/null | grep -xE 'kthreadd|systemd|sshd|dockerd|containerd|cron' |
    sed 's/$/ is visible/'
  return 0
}

# Code mapped from files that are not in the sandbox's tree.
probe_A30() {
  awk '$6 ~ /^\// {print $6}' /proc/$$/maps | sort -u | while read -r file; do
    if [ ! -e "$file" ]; then echo "mapped from outside: $file"; fi
  done
  return 0
}
