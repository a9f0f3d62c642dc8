#!/bin/sh
# Starts Millrace with the runtime and the native libraries of this folder.
home=$(dirname -- "$(dirname -- "$(readlink -f -- "$0")")")
exec "$home/runtime/bin/java" -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \
  --enable-native-access=dev.millrace "-Dmillrace.natives=$home/natives" \
  -m dev.millrace/dev.millrace.cli.Main "$@"
