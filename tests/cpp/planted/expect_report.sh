#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# expect_report.sh <text> <command>...: the command must fail and print the text.
text=$1
shift
output=$("$@" 2>&1)
status=$?
echo "$output"
if [ "$status" = 0 ]; then
  echo "error: the command ended well; a planted fault went unnoticed"
  exit 1
fi
case $output in
*"$text"*) exit 0 ;;
*)
  echo "error: status $status without '$text'"
  exit 1
  ;;
esac
