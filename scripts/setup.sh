# Sourced by scripts/demo and scripts/test: installs what is missing, then builds one preset.
# Needs Debian 12 or newer, and root or sudo only when something is missing.

cd "$(dirname "${BASH_SOURCE[0]}")/.."

L3C_PACKAGES=(
  g++ cmake ninja-build ccache mold python3
  llvm-22-dev libzstd-dev zlib1g-dev
  libabsl-dev libgmp-dev nlohmann-json3-dev libcli11-dev libhwloc-dev libssl-dev libgtest-dev
  coinor-libcbc-dev pkg-config liburing-dev libpng-dev libjpeg62-turbo-dev
)

say() { printf '\n== %s\n' "$*"; }

install_missing() {
  local missing=()
  for package in "${L3C_PACKAGES[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
      missing+=("$package")
  done
  if ((${#missing[@]} == 0)); then
    say "nothing to install: all ${#L3C_PACKAGES[@]} packages are here"
    return
  fi
  say "installing Debian packages: ${missing[*]}"
  local as_root=()
  if [[ $(id -u) != 0 ]]; then
    command -v sudo >/dev/null || {
      echo "error: installing needs root; run as root, or install sudo" >&2
      exit 1
    }
    as_root=(sudo)
  fi
  "${as_root[@]}" apt-get update -q
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -q --no-install-recommends "${missing[@]}"
}

# build_preset PRESET [ninja targets…]
build_preset() {
  local preset=$1
  shift
  say "building preset '$preset' into build/$preset"
  cmake --preset "$preset" >"/tmp/l3c-configure.$$" 2>&1 || {
    cat "/tmp/l3c-configure.$$"
    exit 1
  }
  rm -f "/tmp/l3c-configure.$$"
  cmake --build "build/$preset" ${1:+--target "$@"}
}
