#!/bin/bash
# Usage: bash probes.sh all | list | <ID>...   (inside any Linux root with python3)
# Prints exactly one line a probe: "PASS <ID>" or "FAIL <ID> why".
# ATTACK_PROFILE says which profile's capabilities to expect (strict or dev).
# run_attacks.py sends the same files as one script, so this part must come last.
if [ -z "${ATTACK_BUNDLED:-}" ]; then
  here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
  for group in lib a_filesystem b_kernel c_visibility d_resources; do
    # shellcheck source=/dev/null
    . "$here/$group.sh"
  done
fi

case "${1:-all}" in
  all) for id in $(all_probes); do run_probe "$id"; done ;;
  list) all_probes ;;
  *) for id in "$@"; do run_probe "$id"; done ;;
esac
