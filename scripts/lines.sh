#!/usr/bin/env bash
# Counts the production lines of the main module, a room a line, of a commit or of two beside each other:
#
#   scripts/lines.sh [COMMIT [COMMIT]]    HEAD alone by default
#
# Counted is what is left when comments are filled to 140 columns and lines of code are broken there (a tab is four), empty
# lines included. Apart are tests, test kits, benchmarks, nested modules, and files that a program wrote.
set -euo pipefail
cd "$(dirname "$0")/.."

count() {
  local dir
  dir=$(mktemp -d)
  git archive "$1" | tar -x -C "$dir" --wildcards '*.go' '*go.mod'
  (
    cd "$dir"
    nested=$(find . -mindepth 2 -name go.mod -printf '%h/\n')
    find . -name '*.go' ! -name '*_test.go' ! -path '*/testdata/*' ! -path './test/*' ! -path './tools/*' -printf '%P\n' |
      grep -vE '(^|/)[a-z]+test/|^internal/(kafkatest|chserver|testfile|testreport|perevent|recording|recorded|workload|policyshape|faults|linearscan)/' |
      grep -vE '^cmd/retrial-bench/|^cmd/retrial/bench[a-z_]+\.go$' |
      while read -r f; do
        skip=
        for n in $nested; do case "./$f" in "$n"*) skip=1 ;; esac; done
        [ -n "$skip" ] || grep -qE '^// Code generated .* DO NOT EDIT\.$' "$f" || echo "$f"
      done | sort >files
    while read -r f; do awk -v file="$f" '
      function columns(s,  n) { n = length(s); return n + 3 * gsub(/\t/, "\t", s) }
      function flush() { if (text > 0) lines += int((text - 1) / (140 - indent)) + 1; text = 0 }
      {
        line = $0
        if (line ~ /^\t*\/\/( |$)/) {                       # prose: a paragraph is filled
          body = line; sub(/^\t*\/\/ ?/, "", body)
          indent = columns(line) - length(body)
          if (body ~ /^[ \t*#|-]/ || body == "") { flush(); lines++ } else text += length(body) + (text > 0)
          next
        }
        flush(); n = columns(line); lines += n > 140 ? int((n - 1) / 140) + 1 : 1
      }
      END { flush(); n = split(file, part, "/"); room = n > 2 ? part[1] "/" part[2] : part[1]; print room, lines }' "$f"; done <files |
      awk '{ sum[$1] += $2; all += $2 } END { for (r in sum) print r, sum[r]; print "~all", all }' | LC_ALL=C sort
  )
  rm -rf "$dir"
}

if [ $# -lt 2 ]; then
  count "${1:-HEAD}" | awk '{ printf "%-24s %7d\n", $1, $2 }'
else
  join -a1 -a2 -e0 -o 0,1.2,2.2 <(count "$1") <(count "$2") | awk '{ printf "%-24s %7d %7d %+7d\n", $1, $2, $3, $3 - $2 }'
fi
