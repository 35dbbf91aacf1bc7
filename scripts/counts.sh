#!/bin/sh
# Prints the counts of a run; gotestsum calls it.
echo "$((TESTS_TOTAL - TESTS_FAILED - TESTS_SKIPPED)) passed, $((TESTS_FAILED + TESTS_ERRORS)) failed, $TESTS_SKIPPED skipped"
