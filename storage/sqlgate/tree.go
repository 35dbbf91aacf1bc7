package sqlgate

import (
	"fmt"
	"strings"
)

// node is one line of the engine's EXPLAIN AST with the lines below it.
type node struct {
	kind string // "Function"
	text string // "sum"; empty for most kinds
	kids []*node
}

// maxNodes bounds the tree: far more than a dashboard's query has.
const maxNodes = 20000

// parseTree parses the lines of EXPLAIN AST: a space of indentation per level, the kind, the
// text, and in brackets at the end the alias and the number of children.
func parseTree(lines []string) (*node, error) {
	if len(lines) == 0 || len(lines) > maxNodes {
		return nil, fmt.Errorf("the syntax tree has %d nodes, too many", len(lines))
	}
	var path []*node // from the root to the node before
	for _, line := range lines {
		rest := strings.TrimLeft(line, " ")
		depth := len(line) - len(rest)
		n := &node{}
		n.kind, n.text, _ = strings.Cut(rest, " ")
		switch {
		case n.kind == "Literal": // keeps what looks like brackets
		case strings.HasPrefix(n.text, "(alias "), strings.HasPrefix(n.text, "(children "):
			n.text = ""
		default:
			n.text, _, _ = strings.Cut(n.text, " (alias ")
			n.text, _, _ = strings.Cut(n.text, " (children ")
		}
		if depth > len(path) || depth == 0 && len(path) > 0 {
			return nil, fmt.Errorf("the syntax tree is malformed")
		}
		path = path[:depth]
		if depth > 0 {
			parent := path[depth-1]
			parent.kids = append(parent.kids, n)
		}
		path = append(path, n)
	}
	return path[0], nil
}
