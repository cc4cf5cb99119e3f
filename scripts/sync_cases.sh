#!/usr/bin/env bash
# Takes over cases that were added elsewhere: scripts/sync_cases.sh FOLDER, where FOLDER has score.py and the folders of
# cases. Cases that are here and not there stay.
set -euo pipefail
[ -f "${1:-}/score.py" ] || { echo "usage: $0 FOLDER, a folder with score.py and cases in it" >&2; exit 2; }
here=$(cd "$(dirname "$0")/.." && pwd)/tests/cases
cp "$1/score.py" "$here/"
for folder in mechanism original public; do cp "$1/$folder"/*.py "$here/$folder/"; done
chmod -R u+w "$here"
git -C "$here" status --short .
