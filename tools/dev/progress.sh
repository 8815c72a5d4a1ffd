# Part of ./dev: messages, root, and long steps that show how far they are.

die() {
  echo "dev: $*" >&2
  exit 1
}

# In front of a command that needs root.
root_prefix=()
if [[ $EUID -ne 0 ]]; then root_prefix=(sudo --); fi

as_root() {
  if [[ $EUID -ne 0 ]] && ! command -v sudo >/dev/null; then
    die "this needs root: run ./dev as root, or install sudo ($*)"
  fi
  "${root_prefix[@]}" "$@"
}

milliseconds_since() {
  echo $(((${EPOCHREALTIME/./} - ${1/./}) / 1000))
}

seconds_since() {
  local tenths=$(($(milliseconds_since "$1") / 100))
  echo "$((tenths / 10)).$((tenths % 10))"
}

# Prints now and then where a command that writes to a log has got to.
report_progress() {
  local log=$1 begin=$2
  while sleep 15; do
    printf '    %s s: %s\n' "$(seconds_since "$begin")" "$(tail -n 1 "$log" | cut -c1-100)"
  done
}

# step TITLE LOG HINT COMMAND...: runs one long command. In a terminal its output streams by;
# elsewhere only the log has all of it. Not for use in conditions, where bash ignores errors.
step() {
  local title=$1 log=$logs/$2.log hint=$3 begin=$EPOCHREALTIME status progress
  shift 3
  mkdir -p "$logs"
  : >"$log"
  echo "==> $title"
  set +e
  if [[ -t 1 ]]; then
    (set -e && "$@") 2>&1 | tee "$log"
    status=${PIPESTATUS[0]}
  else
    report_progress "$log" "$begin" &
    progress=$!
    (set -e && "$@") >"$log" 2>&1
    status=$?
    kill "$progress"
    wait "$progress" 2>/dev/null
  fi
  set -e
  if [[ $status -ne 0 ]]; then
    [[ -t 1 ]] || tail -n 40 "$log" >&2
    die "failed after $(seconds_since "$begin") s: $title
     All of its output is in $log. $hint"
  fi
  echo "    done in $(seconds_since "$begin") s"
}
