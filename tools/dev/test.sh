# Part of ./dev: the tests.

# What only ./dev test --full needs. Without llvm-16's symbolizer a sanitizer's report has no names.
readonly full_test_packages=(llvm-16 python3-venv)

readonly schemathesis_version=4.32.5

# The tests that were skipped and are not expected to be.
unexpected_skips() {
  local junit=$1
  comm -23 \
    <(sed -n 's/.*<testcase name="\([^"]*\)".*status="notrun".*/\1/p' "$junit" | sort -u) \
    <(sed 's/ *#.*//; /^$/d' tests/expected_skips.txt | sort -u)
}

# The tests that failed at first and passed when they were repeated: worth a look, not hidden.
passed_late() {
  sed -nE 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: ([^ ]+) \.+ *\*\*\*(Failed|Timeout|Exception).*/\1/p' "$1" | sort -u |
    while read -r name; do
      ! grep -qE "Test +#[0-9]+: $name \.+ +Passed" "$1" || echo "$name"
    done
}

# ctest's summary must be the last thing printed, so a complaint goes before a repeated one. A shared
# machine can stall any test for longer than it waits: one that fails gets a second chance.
run_ctest() {
  local preset=$1 status=0 skips late
  local log=$PWD/$logs/test-$1.log junit=$PWD/build/$1/junit.xml
  shift
  mkdir -p "$logs"
  rm -f "$junit"
  echo "==> Testing $preset"
  as_root env ATOLL_TEMPLATE_ARCHIVE="$(template_archive)" ATOLL_CACHE="$cache_dir" \
    ATOLL_CLIENTS="${clients#=}" ctest --test-dir "build/$preset" --output-on-failure --no-tests=error --repeat until-pass:2 \
    --output-junit "$junit" "$@" 2>&1 | tee "$log" || status=1
  [[ -f $junit ]] || return 1
  late=$(passed_late "$log")
  if [[ -n $late ]]; then
    printf '\ndev: passed only when repeated:\n%s\n' "$late"
    sed -n '/tests passed/,$p' "$log"
  fi
  skips=$(unexpected_skips "$junit")
  [[ -n $skips ]] || return "$status"
  printf '\ndev: skipped, but not listed in tests/expected_skips.txt:\n%s\n' "$skips"
  sed -n '/tests passed/,$p' "$log"
  return 1
}

install_schemathesis() {
  python3 -m venv build/venv
  build/venv/bin/pip install --disable-pip-version-check "schemathesis==$schemathesis_version"
}

# Makes up requests from docs/api/openapi.yaml. From PyPI, so only the full tests ask for it; CMake looks
# for it when it configures.
ensure_schemathesis() {
  [[ ! -x build/venv/bin/schemathesis ]] || return 0
  step "Installing schemathesis" schemathesis "It comes from PyPI: check that 'pip download' works." \
    install_schemathesis
  rm -f build/{release,asan,tsan}/build.ninja
}

cmd_test() {
  local preset status=0 presets=(release) which=(--label-exclude clients) clients=""
  if [[ ${1:-} == --clients || ${1:-} == --clients=newest ]]; then
    clients=${1#--clients}
    shift
    which=(--label-regex clients)
    command -v npm >/dev/null || ensure_packages npm
    ensure_packages python3-venv
    ensure_python_data
  elif [[ ${1:-} == --full ]]; then
    presets+=(asan tsan)
    shift
    ensure_packages "${full_test_packages[@]}"
    ensure_schemathesis
  fi
  ensure_packages
  ensure_account
  ensure_template_archive
  ensure_registry
  ensure_postgres
  ensure_criu
  for preset in "${presets[@]}"; do build "$preset"; done
  for preset in "${presets[@]}"; do
    run_ctest "$preset" "${which[@]}" "$@" || status=1
  done
  return "$status"
}
