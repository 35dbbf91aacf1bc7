package config

import (
	"encoding/json"
	"fmt"
	"strings"
)

// word is one word of a command line with its line.
type word struct {
	text string
	line int // 0: none
}

// wordsOf extracts a kube-apiserver's command line from the forms people have it in:
// arguments separated by NUL (/proc/PID/cmdline), a JSON list (docker inspect), one flag a
// line, with or without a shell's quotes and continued lines, a command line within a unit
// file, a variable assignment or a log line.
func wordsOf(data []byte) ([]word, error) {
	text := string(data)
	if strings.ContainsRune(text, 0) {
		var words []word
		for arg := range strings.SplitSeq(strings.TrimRight(text, "\x00\n"), "\x00") {
			words = append(words, word{text: arg})
		}
		return words, nil
	}
	if rest, ok := strings.CutPrefix(strings.TrimSpace(text), "["); ok && strings.HasPrefix(strings.TrimSpace(rest), `"`) {
		var list []string
		if err := json.Unmarshal(data, &list); err != nil {
			return nil, fmt.Errorf("it begins like a JSON list of arguments but is not one: %w", err)
		}
		words := make([]word, len(list))
		for i, arg := range list {
			words[i] = word{text: arg}
		}
		return words, nil
	}
	return shellWords(text)
}

// shellWords splits text as a shell would; what is not a flag or its value (a command, a
// key of a unit file) stays a separate word, which flagWords drops.
func shellWords(text string) ([]word, error) {
	var words []word
	lines := strings.Split(text, "\n")
	for n := 0; n < len(lines); n++ {
		first := n + 1
		line := strings.TrimSpace(lines[n])
		for strings.HasSuffix(line, `\`) && n+1 < len(lines) {
			n++
			line = strings.TrimSpace(strings.TrimSuffix(line, `\`)) + " " + strings.TrimSpace(lines[n])
		}
		line = commandOf(strings.TrimSpace(strings.TrimSuffix(line, `\`)))
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		split, err := splitQuoted(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", first, err)
		}
		for _, w := range split {
			words = append(words, word{w, first})
		}
	}
	return words, nil
}

// commandOf extracts a command line from an assignment (KUBE_API_ARGS="--a --b"), a unit
// file's ExecStart=, or a log line that reports what is run.
func commandOf(line string) string {
	if line == "" || strings.ContainsRune("-#'\"", rune(line[0])) {
		return line
	}
	if i := strings.Index(line, "kube-apiserver --"); i >= 0 {
		line = line[i+len("kube-apiserver "):]
		// Of msg="Running kube-apiserver --…" the opening quote is cut off.
		if strings.HasSuffix(line, `"`) && strings.Count(line, `"`)%2 == 1 {
			line = strings.TrimSuffix(line, `"`)
		}
		return line
	}
	name, value, ok := strings.Cut(line, "=")
	if !ok || strings.ContainsAny(name, " /") && !strings.HasPrefix(name, "export ") {
		return line
	}
	value = strings.TrimSpace(value)
	if len(value) >= 2 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0] {
		value = value[1 : len(value)-1]
	}
	if !strings.HasPrefix(value, "-") && !strings.Contains(value, " -") {
		return "" // a setting that is not a command line
	}
	return value
}

func splitQuoted(line string) ([]string, error) {
	var words []string
	var b strings.Builder
	var quote rune
	in, escaped := false, false
	for _, r := range line {
		switch {
		case escaped:
			b.WriteRune(r)
			escaped = false
		case quote != 0 && r == quote:
			quote = 0
		case r == '\\' && quote != '\'':
			escaped, in = true, true
		case quote != 0:
			b.WriteRune(r)
		case r == '"' || r == '\'':
			quote, in = r, true
		case r == ' ' || r == '\t':
			if in {
				words = append(words, b.String())
				b.Reset()
				in = false
			}
		case r == '#' && !in:
			return words, nil
		default:
			b.WriteRune(r)
			in = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("the quote %c is not closed", quote)
	}
	if in {
		words = append(words, b.String())
	}
	return words, nil
}
