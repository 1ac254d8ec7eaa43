#!/bin/sh
# Installs what the browser tests need, if it is missing: Chromium, fonts (Latin and Chinese), poppler, and axe-core for the
# tests only (into node_modules, which git ignores). Safe to run again. Needs apt as root or through sudo, and npm.
set -eu
cd "$(dirname "$0")/.."
axe=4.14.1

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; elif command -v sudo >/dev/null 2>&1; then sudo "$@"; else
        echo "browser_setup: root or sudo is needed to install packages: $*" >&2
        exit 1
    fi
}

missing=""
command -v chromium >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1 || missing="$missing chromium"
command -v pdftotext >/dev/null 2>&1 || missing="$missing poppler-utils"
command -v npm >/dev/null 2>&1 || missing="$missing npm"
fc-list 2>/dev/null | grep -qi 'CJK' || missing="$missing fontconfig fonts-noto-cjk"
fc-list 2>/dev/null | grep -q 'Inter' || missing="$missing fonts-inter"
if [ -n "$missing" ]; then
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "browser_setup: install these by hand:$missing" >&2
        exit 1
    fi
    as_root apt-get update -qq
    # shellcheck disable=SC2086 # one word per package is meant
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
fi

if ! grep -q "\"version\": \"$axe\"" node_modules/axe-core/package.json 2>/dev/null; then
    npm install --silent --no-save --no-package-lock --no-audit --no-fund "axe-core@$axe"
fi
