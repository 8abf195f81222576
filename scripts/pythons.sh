#!/usr/bin/env bash
# pythons.sh VERSIONS TESTS: for each Python that is here a fresh environment (.venv-pyX.Y), every module imported and the
# knowledge base tested with warnings as errors, then TESTS. What is not here is said; a failure is told at the end.
set -uo pipefail
cd "$(dirname "$0")/.."
failed=0
for version in $1; do
  python=""
  for candidate in "$(command -v "python$version")" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$version".*/bin/python; do
    # pyenv's shims are there for every version, and fail for those that are not chosen
    if [ -x "$candidate" ] && "$candidate" -c 'import venv' 2> /dev/null; then python=$candidate; break; fi
  done
  if [ -z "$python" ]; then echo "Python $version: not here"; continue; fi
  home=.venv-py$version
  if [ ! -e "$home/.ready" ] || [ pyproject.toml -nt "$home/.ready" ]; then
    "$python" -m venv --clear "$home" &&
      "$home/bin/python" -m pip install -q --disable-pip-version-check -e '.[dev]' && touch "$home/.ready" ||
      { echo "Python $version: what it needs cannot be installed"; failed=1; continue; }
  fi
  echo "Python $("$home/bin/python" --version | cut -d' ' -f2)"
  PYTHONWARNINGS=error "$home/bin/python" scripts/imports.py &&
    PYTHONWARNINGS=error "$home/bin/python" -m postmortem patterns test &&
    "$home/bin/python" -m pytest -p no:cacheprovider $2 || { echo "Python $version: failed"; failed=1; }
done
exit $failed
