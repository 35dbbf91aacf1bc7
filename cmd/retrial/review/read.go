package review

import (
	"fmt"
	"io"
	"os"
)

// mostDraft bounds the bytes of a draft, which a question of 4 MiB carries.
const mostDraft = 3 << 20

// Read reads the files of a draft, "-" from standard input.
func Read(files []string, stdin io.Reader) (map[string]string, error) {
	draft, size := map[string]string{}, 0
	for _, file := range files {
		if _, twice := draft[file]; twice || file == "" {
			return nil, fmt.Errorf("-f %q is empty, or given twice", file)
		}
		text, err := readFile(file, stdin, mostDraft-size+1)
		if err != nil {
			return nil, fmt.Errorf("read the draft: %w", err)
		}
		if size += len(text); size > mostDraft {
			return nil, fmt.Errorf("the draft has more than %d bytes: ask about parts of it", mostDraft)
		}
		draft[file] = string(text)
	}
	return draft, nil
}

func readFile(file string, stdin io.Reader, most int) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(io.LimitReader(stdin, int64(most)))
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, int64(most)))
}
