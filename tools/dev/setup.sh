# Part of ./dev: what has to be there before anything is built.

# Debian 12. Never libboost-dev: that is Boost 1.74, which excludes 1.81.
readonly packages=(
  ninja-build ccache mold pkg-config cmake git ca-certificates
  clang-16 clang-tidy-16 clang-format-16 clang-tools-16 libclang-rt-16-dev libstdc++-12-dev musl-dev
  libboost1.81-dev libboost-json1.81-dev libssl-dev libsqlite3-dev libre2-dev libfmt-dev libexpected-dev
  libarchive-dev libacl1-dev nettle-dev libbz2-dev liblzma-dev libzstd-dev zlib1g-dev
  libseccomp-dev libcap-dev libcli11-dev libtomlplusplus-dev
  libgtest-dev libgmock-dev libbenchmark-dev linux-libc-dev
  iproute2 mmdebstrap bubblewrap runc python3 python3-yaml nodejs tmux patch btrfs-progs util-linux xz-utils zstd
)

# What the tests of image imports pull from; unpacked beside the templates for the same reason.
readonly registry_dir=$cache_dir/registry
# What the tests run inside sandboxes: with what the default template has, enough for a server.
readonly postgres_dir=$cache_dir/postgres
readonly postgres_packages=(postgresql-15 postgresql-client-15 libpq5 libxml2)
# For memory checkpoints: unpacked beside the templates, because Debian 12 has one that is too old.
readonly criu_dir=$cache_dir/criu
# What strips the types of TypeScript in code kernels, from npm; the build takes it in.
readonly sucrase_version=3.35.1
readonly sucrase_dir=$cache_dir/sucrase-$sucrase_version
# What the tests of code kernels show: unpacked, and copied into a sandbox.
readonly python_data_dir=$cache_dir/python-data
readonly python_data_packages=(
  python3-pandas python3-pandas-lib python3-numpy python3-matplotlib python-matplotlib-data python3-dateutil
  python3-tz tzdata python3-six python3-packaging python3-pyparsing python3-cycler python3-kiwisolver python3-fonttools
  python3-pil python3-contourpy python3-pkg-resources libblas3 liblapack3 libgfortran5 libquadmath0 libgomp1 libjpeg62-turbo
  libtiff6 libwebp7 libwebpmux3 libwebpdemux2 liblcms2-2 libopenjp2-7 libimagequant0 libraqm0 libfribidi0
  libharfbuzz0b libgraphite2-3 libglib2.0-0 libfreetype6 libpng16-16 libbrotli1 libqhull-r8.0 libdeflate0 libjbig0
  liblerc4 libxcb1 libxau6 libxdmcp6 libbsd0 fonts-dejavu-core fonts-lyx
)

missing_packages() {
  local installed package
  # Fails when it has never heard of a package; that one is then missing from the answer.
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true)
  for package in "$@"; do
    [[ $'\n'$installed$'\n' == *$'\n'"installed $package"$'\n'* ]] || echo "$package"
  done
}

install_packages() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get update
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
}

ensure_packages() {
  local missing
  command -v dpkg-query >/dev/null || die "this is not Debian: Atoll is built on Debian 12"
  missing=$(missing_packages "${packages[@]}" "$@")
  [[ -n $missing ]] || return 0
  mapfile -t missing <<<"$missing"
  if dpkg-query -W -f '${db:Status-Status}' libboost1.74-dev 2>/dev/null | grep -qx installed; then
    die "libboost1.74-dev excludes libboost1.81-dev: remove it first (apt-get remove libboost1.74-dev)"
  fi
  step "Installing ${#missing[@]} packages" packages \
    "Check that 'apt-get update' works and that this is Debian 12." \
    install_packages "${missing[@]}"
}

ensure_account() {
  getent passwd atoll >/dev/null && return
  step "Creating the system account 'atoll'" account "Create it by hand and try again." \
    as_root useradd --system --user-group --no-create-home --home-dir /nonexistent \
    --shell /usr/sbin/nologin atoll
}

# The default template's archive: named by its recipe, so that a changed recipe is built anew.
template_archive() {
  local hash
  # shellcheck source=/dev/null
  hash=$({
    cat templates/base.sh
    dpkg --print-architecture
    . /etc/os-release && echo "${VERSION_CODENAME:-}"
  } | sha256sum | cut -c1-16)
  echo "$cache_dir/template-base-$hash.tar.zst"
}

ensure_template_archive() {
  local archive
  archive=$(template_archive)
  [[ ! -s $archive ]] || return 0
  step "Building the default template (about a minute)" template \
    "It downloads Debian packages: check that 'apt-get update' works." \
    as_root templates/base.sh "$archive"
}

# unpack_packages DIRECTORY PROGRAM PACKAGE...: chained, because it may run in a condition.
unpack_packages() {
  local target=$1 program=$2 new=$1.new
  shift 2
  as_root rm -rf "$new" &&
    as_root mkdir -p "$new/packages" &&
    as_root apt-get update &&
    as_root env -C "$new/packages" apt-get download "$@" &&
    as_root find "$new/packages" -name '*.deb' -exec dpkg-deb --extract '{}' "$new" ';' &&
    as_root rm -r "$new/packages" &&
    [[ -x $new/$program ]] &&
    as_root mv -T "$new" "$target"
}

ensure_registry() {
  ! command -v docker-registry >/dev/null && [[ ! -d $registry_dir ]] || return 0
  step "Unpacking a registry, for the tests" registry \
    "It downloads a Debian package: check that 'apt-get update' works." \
    unpack_packages "$registry_dir" usr/bin/docker-registry docker-registry
}

ensure_postgres() {
  [[ ! -d $postgres_dir ]] || return 0
  step "Unpacking PostgreSQL, for the tests" postgres \
    "It downloads Debian packages: check that 'apt-get update' works." \
    unpack_packages "$postgres_dir" usr/lib/postgresql/15/bin/postgres "${postgres_packages[@]}"
}

install_sucrase() {
  as_root mkdir -p "$sucrase_dir" &&
    as_root npm install --silent --no-audit --no-fund --no-save --prefix "$sucrase_dir" "sucrase@$sucrase_version" &&
    [[ -f $sucrase_dir/node_modules/sucrase/dist/index.js ]]
}

# CMake looks for it when it configures.
ensure_sucrase() {
  [[ ! -f $sucrase_dir/node_modules/sucrase/dist/index.js ]] || return 0
  command -v npm >/dev/null || ensure_packages npm
  step "Installing sucrase, for TypeScript in code kernels" sucrase "It comes from npm: check that 'npm ping' works." \
    install_sucrase
  rm -f build/{release,debug,asan,tsan}/build.ninja
}

ensure_python_data() {
  [[ ! -d $python_data_dir ]] || return 0
  step "Unpacking pandas and matplotlib, for the tests" python-data \
    "It downloads Debian packages: check that 'apt-get update' works." \
    unpack_packages "$python_data_dir" usr/lib/python3/dist-packages/pandas "${python_data_packages[@]}"
}

ensure_criu() {
  [[ ! -x $criu_dir/lib/loader ]] || return 0
  step "Unpacking CRIU, for memory checkpoints" criu \
    "It downloads packages of Debian testing: check that 'apt-get update' works." \
    as_root packaging/fetch-criu "$criu_dir"
}

cmd_setup() {
  ensure_packages
  ensure_account
  ensure_template_archive
  ensure_criu
  ensure_registry
  ensure_postgres
  ensure_sucrase
  if [[ -x $atoll ]]; then import_template; fi
}
