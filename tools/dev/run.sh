# Part of ./dev: a server to look at.

import_template() {
  step "Importing the default template" import \
    "To have the archive built anew, remove $(template_archive)." \
    as_root "$atoll" template import "$(template_archive)" --name base --data-dir "$data_dir"
}

server_pid=

# The server says "ready" on its standard output, the one descriptor that sudo lets through, so
# nobody has to guess how long it takes.
start_server() {
  local ready_fd answer=
  mkdir -p "$logs"
  echo "==> Starting the server on $listen"
  exec {ready_fd}< <(exec "${root_prefix[@]}" "$atoll" serve --data-dir "$data_dir" --criu "$criu_dir" \
    --run-dir "$run_dir" --listen "$listen" --ready-fd 1 2>"$logs/serve.log")
  server_pid=$!
  trap stop_server EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  read -r -t "$ready_timeout_seconds" -u "$ready_fd" answer || true
  if [[ $answer != ready ]]; then
    tail -n 20 "$logs/serve.log" >&2
    die "the server did not get ready; all it said is in $logs/serve.log. 'atoll doctor' may know more"
  fi
}

# From a session of its own: sudo passes no signal on that comes from its own process group.
stop_server() {
  [[ -n $server_pid ]] || return 0
  trap '' INT TERM
  as_root setsid sh -c "kill -TERM $server_pid" 2>/dev/null || true
  wait "$server_pid" || true
  server_pid=
  echo "==> The server has stopped"
}

show() {
  local begin=$EPOCHREALTIME word
  printf '\n$ atoll run --'
  for word in "$@"; do
    if [[ $word =~ ^[a-z0-9-]+$ ]]; then printf ' %s' "$word"; else printf " '%s'" "$word"; fi
  done
  echo
  as_root env ATOLL_URL="http://$listen" "$atoll" run -- "$@"
  echo "    ($(milliseconds_since "$begin") ms from the command line to a clean end)"
}

# shellcheck disable=SC2016  # the sandboxes expand these
demo() {
  show bash -c 'echo "Hello from $(hostname): $(id -un) on $(. /etc/os-release; echo "$PRETTY_NAME")"'
  show python3 -c 'import platform; print("Python", platform.python_version(), sum(range(10**6)))'
  show node -e 'console.log("Node", process.version)'
  show bash -c 'touch /etc/changed && ls /etc/changed'
  show bash -c 'test -e /etc/changed || echo "What one sandbox changes, the next never sees."'
}

cmd_run() {
  local demo_only=false
  case ${1:-} in
    '') ;;
    --demo) demo_only=true ;;
    *) die "run takes --demo or nothing" ;;
  esac
  ensure_packages
  ensure_account
  ensure_template_archive
  ensure_criu
  build release
  import_template
  start_server
  demo
  if $demo_only; then return; fi
  cat <<END

Serving on http://$listen, log in $logs/serve.log. Ctrl-C stops it. In another terminal, try:
  $atoll run -it -- bash                 a shell in a new sandbox
  $atoll run -- python3 -c 'print(6*7)'
  $atoll --help
END
  wait "$server_pid" || die "the server has died; see $logs/serve.log"
}
