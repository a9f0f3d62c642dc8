#!/bin/sh
# Runs the native tests of this folder on this machine's devices; arguments go to Google Test.
set -eu
home=$(dirname -- "$(dirname -- "$(readlink -f -- "$0")")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
gzip -dc "$home/tests/millrace_tests.gz" >"$work/millrace_tests"
chmod +x "$work/millrace_tests"
ln -s "$home/tests/resources" "$work/resources"
# A plug-in is opened from beside the program that asks for it.
for library in "$home"/natives/*; do ln -s "$library" "$work"; done
LD_LIBRARY_PATH=$work "$work/millrace_tests" "$@"
