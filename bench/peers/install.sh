#!/bin/sh
# install.sh installs the servers that `parley-bench --peers` measures beside the service, each in
# its own directory: npm packages, a Go module, and redis-server if it is on the PATH. It names those
# that cannot be installed here.
set -u
cd "$(dirname "$0")"
missing=0
install() { # NAME COMMAND…
  name=$1; shift
  rm -f "$name/installed"
  if (cd "$name" && "$@") >"$name/install.log" 2>&1; then
    touch "$name/installed" && echo "$name: installed"
  else
    missing=1; echo "$name: not installed; see bench/peers/$name/install.log"
  fi
}
npm_install() { npm install --no-package-lock --no-audit --no-fund --ignore-scripts "$@"; }
with_redis() { redis-server --version && npm_install; }
install nats go build -o nats .
install langgraph npm_install --legacy-peer-deps
install durable-streams npm_install
install resumable-stream with_redis
exit $missing
