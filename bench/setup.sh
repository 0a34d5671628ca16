#!/bin/sh
# Installs what the benchmark measures against and probes, as far as it is missing.
# No service is left running: the benchmark starts its own, on free ports of loopback.
set -eu

missing=""
for package in prometheus-blackbox-exporter nginx-light knot; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q "ok installed" ||
        missing="$missing $package"
done
[ -z "$missing" ] && exit 0

as_root=""
[ "$(id -u)" -eq 0 ] || as_root="sudo"

# Debian starts a service on installation unless this program says no.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' | $as_root tee "$policy" >/dev/null
    $as_root chmod 755 "$policy"
    trap '$as_root rm -f "$policy"' EXIT
fi

$as_root apt-get update -qq
# shellcheck disable=SC2086 # a list of words
DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends $missing
