#!/usr/bin/env bash
# Prints the path of a Chromium or Chrome for the browser tests, installing Debian's where there is none.
# Variable: NNSIGHT_LAB_BROWSER, the path of a browser to use.
set -euo pipefail

find_browser() {
    local name
    for name in "${NNSIGHT_LAB_BROWSER:-}" chromium chromium-browser google-chrome google-chrome-stable \
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome" "/Applications/Chromium.app/Contents/MacOS/Chromium"; do
        if [ -n "$name" ] && command -v "$name"; then return 0; fi
    done
    return 1
}

if ! find_browser; then
    if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
        { apt-get update && apt-get install -y --no-install-recommends chromium; } >&2
    else
        echo "browser: the browser tests need Chromium or Chrome; install one, or name it with NNSIGHT_LAB_BROWSER=..." >&2
        exit 1
    fi
    find_browser
fi
