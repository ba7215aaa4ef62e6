#!/bin/bash
# Runs run.mjs as a container runtime with its default rules would: as an ordinary user without capabilities, with
# no_new_privs and the default system call filter (filter.py), and with Node.js and uv in /usr/local. This requires root.
#
#   test/servers/container.sh ROPEWALK [OPTIONS OF run.mjs]
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
dir=$(mktemp -d /var/tmp/box-XXXXXX)
trap 'rm -rf "$dir"' EXIT
export here dir
chmod 755 "$dir"
mkdir -p "$dir"/{local,test,tmp/ropewalk}
chmod 1777 "$dir/tmp"
chown 65532:65532 "$dir/tmp/ropewalk"
install -m 755 "$1" "$dir/ropewalk"
shift
cp -r "$here"/{servers,pasted} "$dir/test"
cat /etc/passwd - > "$dir/passwd" <<< "ropewalk:x:65532:65532::/tmp/ropewalk:/bin/sh"
npm install --silent --global --prefix "$dir/local" node@22 npm@10
/usr/bin/python3 -m pip install -q --root-user-action=ignore --break-system-packages --target "$dir/uv" uv
ln "$dir/uv/bin/uv" "$dir/uv/bin/uvx" "$dir/local/bin/"

# This part does the work of the container runtime, which needs root. At its end, it executes run.mjs as an ordinary
# user.
inside='
mount --make-rprivate /
mount -t proc proc /proc
for part in bus fs irq sys; do mount --bind "/proc/$part" "/proc/$part"; mount -o remount,bind,ro "/proc/$part"; done
mount -t tmpfs -o size=64m,mode=1777 none /dev/shm
mount --bind /sys /sys; mount -o remount,bind,ro /sys
mount --bind "$dir/local" /usr/local
mount --bind "$dir/passwd" /etc/passwd
mount --bind "$dir/tmp" /tmp
cd /tmp
mapfile -t kept < <(env | grep -iE "^(NPM_CONFIG_|PIP_|UV_|SSL_CERT_|NODE_EXTRA_CA_CERTS=|[A-Z]+_PROXY=)")
exec env -i PATH=/usr/local/bin:/usr/bin:/bin HOME=/tmp/ropewalk LANG=C.UTF-8 "${kept[@]}" \
  setpriv --reuid 65532 --regid 65532 --clear-groups --inh-caps=-all --bounding-set=-all --no-new-privs \
  /usr/bin/python3 "$dir/test/servers/filter.py" node "$dir/test/servers/run.mjs" "$dir/ropewalk" "$@"
'
unshare --mount --pid --fork --kill-child --cgroup --ipc --uts bash -euc "$inside" sh "$@"
