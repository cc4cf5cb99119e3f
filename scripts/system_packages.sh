#!/usr/bin/env bash
# Sees to the packages that come from the system and not from pip: system_packages.sh PYTHON WHAT..., where WHAT is
# build (a compiler, Python's headers, venv), test (GoogleTest, Graphviz, valgrind, Chromium) or bench (google benchmark).
# Installs what is missing where it may (root, apt-get), else says in one sentence how to.
set -euo pipefail

python=$1
shift
missing=()

need() { # need PACKAGE COMMAND...: PACKAGE is missing where COMMAND fails
  local package=$1
  shift
  "$@" >/dev/null 2>&1 || missing+=("$package")
}
have_header() { echo "#include <$1>" | "${CXX:-c++}" -std=c++20 -x c++ -fsyntax-only -; }
have_any() { for name in "$@"; do command -v "$name" && return; done; return 1; }

if ! command -v "$python" >/dev/null; then
  echo "sherlorch needs CPython 3.11 and there is no '$python': run make PYTHON=/path/to/python3.11" >&2
  exit 1
fi
if ! "$python" -c 'import sys; sys.exit(sys.implementation.name != "cpython" or sys.version_info[:2] != (3, 11))'; then
  echo "sherlorch needs CPython 3.11 and '$python' is $("$python" --version 2>&1): run make PYTHON=/path/to/python3.11" >&2
  exit 1
fi
for what in "$@"; do
  case $what in
    build)
      need g++ have_any "${CXX:-c++}"
      need python3.11-venv "$python" -c 'import ensurepip, venv'
      need python3.11-dev "$python" -c 'import os, sysconfig; os.stat(sysconfig.get_path("include") + "/Python.h")'
      ;;
    test)
      need libgtest-dev have_header gtest/gtest.h
      need libgmock-dev have_header gmock/gmock.h
      need graphviz have_any dot
      need valgrind have_any valgrind
      need chromium have_any chromium chromium-browser google-chrome
      ;;
    bench) need libbenchmark-dev have_header benchmark/benchmark.h ;;
    *) echo "system_packages.sh: no such set: $what" >&2; exit 2 ;;
  esac
done

[ ${#missing[@]} -eq 0 ] && exit 0
if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
else
  echo "sherlorch's build needs packages that are not installed: run sudo apt-get install ${missing[*]}" >&2
  exit 1
fi
