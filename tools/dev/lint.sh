# Part of ./dev: what is checked without running anything.

our_sources() {
  local dir dirs=()
  for dir in src include tests bench fuzz; do [[ ! -d $dir ]] || dirs+=("$dir"); done
  find "${dirs[@]}" \( -name '*.cpp' -o -name '*.h' \) -print | sort
}

check_format() {
  our_sources | xargs clang-format-16 --dry-run --Werror
}

check_scripts() {
  shellcheck .ci/run templates/*.sh
  # One script in parts: what one sets, another uses.
  shellcheck --shell=bash --exclude=SC2034,SC2154 dev tools/dev/*.sh
}

# Functions are found by their shape under clang-format: an opening line at column 0 or 2 that ends
# in "{", and a "}" at the same column.
check_sizes() {
  # shellcheck disable=SC2016  # awk expands these
  our_sources | xargs awk '
    function report(fail_at, size, what) {
      printf("%s: %s: %d lines\n", (size > fail_at) ? "error" : "warning", what, size)
      if (size > fail_at) failed = 1
    }
    function end_file() { if (lines > 500) report(800, lines, name) }
    FNR == 1 { end_file(); name = FILENAME; begin = 0 }
    { lines = FNR }
    begin && $0 ~ ("^" indent "}") {
      if (FNR - begin >= 60) report(100, FNR - begin + 1, name ":" begin)
      begin = 0
    }
    /^(  )?[A-Za-z~\[].*\{$/ && !/^ *(namespace|class|struct|enum|union|extern|public|private)[ {]/ {
      if (!begin) { begin = FNR; indent = ($0 ~ /^  /) ? "  " : "" }
    }
    END { end_file(); exit failed }'
}

tidy_one() {
  local stamp=build/lint/$1.ok
  mkdir -p "$(dirname "$stamp")"
  echo "clang-tidy $1"
  clang-tidy-16 -p build/release --quiet "$1" 2>&1 |
    { grep -vE '^[0-9]+ warnings? generated|^Suppressed|^Use -header' || true; }
  : >"$stamp"
}
export -f tidy_one

# Only sources that are newer than their last clean run, or all when a header or a rule is.
stale_sources() {
  local newest source
  newest=$(find src include .clang-tidy \( -name '*.h' -o -name .clang-tidy \) -printf '%T@ %p\n' |
    sort -rn | sed -n '1s/^[^ ]* //p')
  sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' build/release/compile_commands.json |
    sed -n "s#^$PWD/\(src/.*\.cpp\)\$#\1#p" | sort -u |
    while read -r source; do
      [[ build/lint/$source.ok -nt $source && build/lint/$source.ok -nt $newest ]] || echo "$source"
    done
}

check_tidy() {
  configure release
  # shellcheck disable=SC2016  # the inner shell expands this
  stale_sources | xargs -r -P "$(nproc)" -I '{}' bash -c 'set -euo pipefail; tidy_one "$1"' tidy '{}'
}

cmd_lint() {
  ensure_packages shellcheck
  step "Checking formatting" lint-format "./dev fmt puts it right." check_format
  step "Checking sizes" lint-sizes "Split what is too long." check_sizes
  grep '^warning' "$logs/lint-sizes.log" || true
  step "Checking scripts" lint-scripts "" check_scripts
  step "Running clang-tidy" lint-tidy "" check_tidy
}

cmd_fmt() {
  ensure_packages
  our_sources | xargs clang-format-16 -i
}
