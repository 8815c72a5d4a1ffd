# C: what one sandbox can see of the host and of others, as far as one sandbox alone can tell.

# process_vm_readv, process_vm_writev, and PTRACE_SEIZE, which does not stop its target.
probe_C02() { denied "310 1 0 0 0 0 0" "311 1 0 0 0 0 0" "101 0x4206 1 0 0"; }

probe_C04() {
  if [ "$(wc -l </proc/sysvipc/shm)" -gt 1 ]; then echo "foreign shared memory segments"; fi
  if [ "$(wc -l </proc/sysvipc/msg)" -gt 1 ]; then echo "foreign message queues"; fi
  ls -A /dev/shm /dev/mqueue 2>/dev/null | grep -vE '^$|:$' | sed 's/$/ in shared memory/'
  return 0
}

# The server's socket is in no mount, and no other listener of the host is either.
probe_C08() {
  find / -xdev -type s 2>/dev/null | grep -iE 'atoll|docker|containerd|systemd|dbus' |
    sed 's/$/ is reachable/'
  return 0
}

probe_C12() {
  if [ -n "$(head -c1 /proc/keys 2>/dev/null)" ]; then echo "/proc/keys has content"; fi
  denied "250 0 -3 0" "250 0 -5 0"
}

# Only the loopback device, so nothing of the host's network is in sight.
probe_C14() {
  tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' ' | grep -v '^lo$' | sed 's/^/interface /'
  return 0
}
