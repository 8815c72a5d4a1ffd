# Part of ./dev: the benchmarks.

readonly docker_dir=$cache_dir/docker
readonly nginx_dir=$cache_dir/nginx
# What only ./dev bench needs, and only where there is no dockerd. Docker's own packages are unpacked
# beside the templates and not installed: installed ones start a daemon, now and at every boot.
readonly bench_packages=(libdevmapper1.02.1)
readonly docker_packages=(docker.io containerd)

unpack_docker() {
  unpack_packages "$docker_dir" usr/sbin/dockerd "${docker_packages[@]}"
}

fetch_docker() {
  ensure_packages "${bench_packages[@]}"
  [[ ! -d $docker_dir ]] || return 0
  step "Unpacking Docker, to compare with" docker \
    "It downloads Debian packages: check that 'apt-get update' works." unpack_docker
}

fetch_nginx() {
  [[ ! -d $nginx_dir ]] || return 0
  step "Unpacking nginx, to compare with" nginx \
    "It downloads Debian packages: check that 'apt-get update' works." \
    unpack_packages "$nginx_dir" usr/sbin/nginx nginx libnginx-mod-stream
}

cmd_bench() {
  local name=${1:-} bench_environment
  [[ $name =~ ^[a-z0-9_]+$ ]] || die "bench takes the name of a benchmark; see bench/"
  shift
  ensure_packages
  ensure_account
  ensure_template_archive
  ensure_criu
  build release
  [[ -x build/release/bench/atoll_bench_$name ]] || die "there is no benchmark '$name'; see bench/"
  bench_environment=(ATOLL_TEMPLATE_ARCHIVE="$(template_archive)")
  # The host's own daemon program, where there is one. Without any the rest is measured all the same.
  if [[ $name == clients ]]; then
    command -v npm >/dev/null || ensure_packages npm
    bench_environment+=(ATOLL_CACHE="$cache_dir")
  elif [[ $name == egress ]]; then
    command -v nginx >/dev/null || (fetch_nginx) && bench_environment+=(ATOLL_NGINX_DIR="$nginx_dir")
  elif ! command -v dockerd >/dev/null && (fetch_docker); then
    bench_environment+=(ATOLL_DOCKER_DIR="$docker_dir")
  fi
  as_root env "${bench_environment[@]}" "build/release/bench/atoll_bench_$name" "$@"
}
