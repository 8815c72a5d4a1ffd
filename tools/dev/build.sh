# Part of ./dev: building, and running the fuzz targets.

configure() {
  local preset=$1
  # ninja re-runs CMake by itself, except when the presets change.
  [[ build/$preset/build.ninja -nt CMakePresets.json ]] || cmake --preset "$preset"
}

configure_and_build() {
  local preset=$1
  shift
  configure "$preset"
  cmake --build "build/$preset" "$@"
}

build() {
  ensure_sucrase
  step "Building $1" "build-$1" "The first error is the one to look at." configure_and_build "$@"
}

cmd_build() {
  ensure_packages
  build "${1:-release}"
}

cmd_fuzz() {
  local name=${1:-} seconds=${2:-}
  [[ $name =~ ^[a-z0-9_]+$ && $seconds =~ ^[0-9]+$ ]] || die "usage: ./dev fuzz NAME SECONDS"
  ensure_packages
  build fuzz --target "${name}_fuzz"
  # New inputs go to the first directory; the checked-in corpus is only read.
  mkdir -p "fuzz/corpus/$name" "build/fuzz/corpus/$name" build/fuzz/artifacts
  "build/fuzz/fuzz/${name}_fuzz" -max_total_time="$seconds" \
    -artifact_prefix="build/fuzz/artifacts/$name-" "build/fuzz/corpus/$name" "fuzz/corpus/$name"
}
