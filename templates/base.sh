#!/usr/bin/env bash
# The recipe of the default template: a small Debian root filesystem with the tools an agent
# reaches for first. Run it as root on a Debian machine where apt works:
#
#   templates/base.sh OUTPUT.tar.zst
#
# Packages come from the mirrors, proxies and keys that the machine's own apt uses. The output
# appears whole or not at all; where it exists already, nothing is done.
set -euo pipefail
umask 022

packages=(
  ca-certificates curl git jq less nano nodejs procps python3 python3-pip python3-venv ripgrep
  unzip xz-utils zstd
)
unwanted_files=(
  '/usr/share/doc/*' '/usr/share/info/*' '/usr/share/man/*' '/usr/share/locale/*'
  '/usr/share/lintian/*' '/usr/share/bug/*'
)
wanted_files=('/usr/share/doc/*/copyright' '/usr/share/locale/locale.alias')

die() {
  echo "templates/base.sh: $*" >&2
  exit 1
}

# Asks apt for its Debian repositories, in the given format of apt's variables. apt-get itself reads
# the sources here, so one-line and deb822 files are the same to us.
debian_sources() {
  # shellcheck disable=SC2016  # these are apt's variables
  apt-get indextargets --no-release-info --format '$(REPO_URI) $(RELEASE) '"$1" \
    'Created-By: Packages' |
    awk -v suite="$suite" '$1 ~ /^https?:/ && index($2, suite) == 1 && !seen[$0]++'
}

# The keyrings named by the files that Debian's repositories come from.
named_keyrings() {
  # shellcheck disable=SC2016
  debian_sources '$(SOURCESENTRY)' | sed -E 's/^[^ ]+ [^ ]+ //; s/:[0-9]+$//' | sort -u |
    xargs -r -d '\n' grep -hoiE 'signed-by[=:] *[^] ]+' |
    sed -E 's/^[^=:]*[=:] *//' | tr ',' '\n' | grep '^/' | sort -u || true
}

copy_keyrings() {
  local keyring
  while read -r keyring; do
    cp "$keyring" "$1/"
  done
}

# How this machine reaches its mirrors: proxies, certificates, retries.
host_apt_options() {
  apt-config dump |
    grep -E '^Acquire::(http|https|Retries|ForceIPv|Check-Valid-Until|Max-FutureTime)' || true
}

bootstrap() {
  local pattern options=()
  for pattern in "${unwanted_files[@]}"; do options+=("--dpkgopt=path-exclude=$pattern"); done
  for pattern in "${wanted_files[@]}"; do options+=("--dpkgopt=path-include=$pattern"); done
  host_apt_options >"$work/apt.conf"
  # shellcheck disable=SC2016
  debian_sources '$(COMPONENT)' | sed 's/^/deb /' >"$work/sources.list"
  mkdir "$work/keys"
  { find /etc/apt/trusted.gpg.d -type f && named_keyrings; } | copy_keyrings "$work/keys"
  [[ -s $work/sources.list ]] ||
    die "apt has no http(s) source for $suite: add one under /etc/apt and run 'apt-get update'"
  # Credentials of the mirrors are needed for the download; finish() takes them out again.
  # shellcheck disable=SC2016  # the hook's $1 is mmdebstrap's
  options+=('--setup-hook=for f in auth.conf auth.conf.d; do
    if [ -e "/etc/apt/$f" ]; then cp -rT "/etc/apt/$f" "$1/etc/apt/$f"; fi; done')
  mmdebstrap --mode=root --variant=apt --format=directory \
    --keyring="$work/keys" --aptopt="$work/apt.conf" "${options[@]}" \
    --include="$(IFS=, && echo "${packages[*]}")" \
    "$suite" "$root" "$work/sources.list"
}

# apt stays usable inside a sandbox, with the same mirrors but none of this machine's proxies or
# passwords: a sandbox has its own way out.
configure_apt() {
  rm -rf "$root"/etc/apt/{auth.conf,auth.conf.d,apt.conf.d/99mmdebstrap}
  mkdir -p "$root/etc/apt/auth.conf.d"
  rm -f "$root"/etc/apt/sources.list.d/*
  sed -E 's#^(deb https?://)[^/@ ]*@#\1#' "$work/sources.list" >"$root/etc/apt/sources.list"
  # Debian's own keyring is in the template already; a private mirror's must come along.
  named_keyrings | { grep -v /debian-archive- || true; } | copy_keyrings "$root/etc/apt/trusted.gpg.d"
  {
    echo 'Acquire::Languages "none";'
    grep -E '^Acquire::Check-Valid-Until' "$work/apt.conf" || true
  } >"$root/etc/apt/apt.conf.d/90atoll"
  mv "$root/etc/dpkg/dpkg.cfg.d/99mmdebstrap" "$root/etc/dpkg/dpkg.cfg.d/90atoll"
  # A sandbox's disk is as durable as its snapshots; an fsync per file only makes installs slow.
  echo force-unsafe-io >>"$root/etc/dpkg/dpkg.cfg.d/90atoll"
  # Packages that bring a service must not try to start it.
  printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
  chmod 0755 "$root/usr/sbin/policy-rc.d"
}

configure_system() {
  echo sandbox >"$root/etc/hostname"
  printf '127.0.0.1\tlocalhost sandbox\n::1\tlocalhost ip6-localhost ip6-loopback\n' \
    >"$root/etc/hosts"
  echo '# Written by Atoll when the sandbox starts.' >"$root/etc/resolv.conf"
  echo 'LANG=C.UTF-8' >"$root/etc/default/locale"
  echo 'export LANG=C.UTF-8' >"$root/etc/profile.d/locale.sh"
  # The whole machine is the environment: pip may install into it.
  printf '[global]\nbreak-system-packages = true\nroot-user-action = ignore\n' \
    >"$root/etc/pip.conf"
  # All of a sandbox belongs to one tenant: git need not mind which of its users owns what.
  printf '[safe]\n\tdirectory = *\n' >"$root/etc/gitconfig"
  chroot "$root" useradd --create-home --uid 1000 --user-group --shell /bin/bash user
  mkdir -p "$root/workspace" "$root/.atoll"
  chown 1000:1000 "$root/workspace"
  chmod 0775 "$root/workspace"
  chmod 0755 "$root/.atoll"
  install -m 0555 /dev/null "$root/.atoll/agent"
}

# Agents run everything in login shells: what these start costs each command milliseconds.
quicken_shells() {
  # shellcheck disable=SC2016  # the sandbox's shells expand these
  sed -i 's/\$(id -u)/${EUID:-&}/' "$root/etc/profile"
  sed -i 's/^mesg n/[ ! -t 0 ] || &/' "$root/root/.profile"
  # shellcheck disable=SC2016
  grep -q '${EUID:-$(id -u)}' "$root/etc/profile" || die "/etc/profile is not what it was"
}

make_devices() {
  local name numbers
  rm -rf "${root:?}/dev"
  mkdir -m 0755 "$root/dev" "$root/dev/pts"
  mkdir -m 1777 "$root/dev/shm"
  while read -r name numbers; do
    # shellcheck disable=SC2086  # major and minor are two words
    mknod -m 0666 "$root/dev/$name" c $numbers
  done <<'END'
null 1 3
zero 1 5
full 1 7
random 1 8
urandom 1 9
tty 5 0
END
  ln -s /proc/self/fd "$root/dev/fd"
  ln -s /proc/self/fd/0 "$root/dev/stdin"
  ln -s /proc/self/fd/1 "$root/dev/stdout"
  ln -s /proc/self/fd/2 "$root/dev/stderr"
  ln -s pts/ptmx "$root/dev/ptmx"
}

drop_caches() {
  rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/* "$root"/var/log/*.log \
    "$root"/var/log/apt "$root"/var/cache/debconf/*-old "$root"/var/lib/dpkg/*-old
  rm -rf "$root"/tmp/* "$root"/run/* "$root"/proc/* "$root"/sys/*
  mkdir -p "$root/var/lib/apt/lists/partial" "$root/var/cache/apt/archives/partial"
  chmod 1777 "$root/tmp"
}

pack() {
  tar --create --numeric-owner --xattrs --xattrs-include='security.*' --xattrs-include='user.*' \
    --sort=name --directory "$root" . | zstd -q -T0 -6 -o "$work/template.tar.zst"
  sync "$work/template.tar.zst"
  mv "$work/template.tar.zst" "$output"
}

main() {
  output=${1:?usage: templates/base.sh OUTPUT.tar.zst}
  [[ $EUID -eq 0 ]] || die "must run as root"
  mkdir -p "$(dirname "$output")"
  exec {lock}>"$output.lock"
  flock "$lock"
  if [[ -s $output ]]; then return; fi

  # shellcheck source=/dev/null
  suite=$(. /etc/os-release && echo "${VERSION_CODENAME:?no Debian codename in /etc/os-release}")
  # Left-overs of a build that was killed; we hold the lock, so nobody is using them.
  rm -rf "$output".work.*
  work=$(mktemp -d "$output.work.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  chmod 0755 "$work"
  root=$work/root
  bootstrap
  configure_apt
  configure_system
  quicken_shells
  make_devices
  drop_caches
  pack
}

main "$@"
