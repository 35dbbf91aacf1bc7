package config

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// staticUsers reads a token file (token,user,uid[,"group,…"]) or, with basic, a basic-auth
// file (password,user,uid[,"group,…"]). The first column is compared with the earlier ones
// and discarded: it is in no field of the result and in no message.
//
// As in the apiserver, the last of two rows with the same token wins, and a row without a token is
// ignored; the last of two rows of one user in a basic-auth file wins. In a redacted file all
// tokens look alike: what repeats and is not a token anyone would choose (redacted, ***,
// REDACTED-1, empty) is assumed to be a different token in every row.
func staticUsers(data []byte, basic bool) (users []StaticUser, warnings []string, err error) {
	r := csv.NewReader(bytes.NewReader(data))
	r.FieldsPerRecord = -1
	row := map[uint64]int{} // by token or user, the place of the last row in users
	add := func(key uint64, keyed bool, u StaticUser) (replaced bool) {
		if i, ok := row[key]; keyed && ok {
			users[i].Name = "" // overridden; dropped below
			replaced = true
		}
		if keyed {
			row[key] = len(users)
		}
		users = append(users, u)
		return replaced
	}
	for {
		record, err := r.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, nil, csvError(err)
		}
		line, _ := r.FieldPos(0)
		if len(record) < 3 {
			return nil, nil, fmt.Errorf("line %d has %d columns: want %s, a user name, a uid and optionally groups; write %q in place "+
				"of a removed credential",
				line, len(record), first(basic), "redacted")
		}
		// All fields of a record are cut from one string: without copies it would keep the
		// credential in memory for as long as the user.
		u := StaticUser{Name: strings.Clone(record[1]), UID: strings.Clone(record[2])}
		if len(record) >= 4 {
			u.Groups = strings.Split(strings.Clone(record[3]), ",")
		}
		credential := record[0]
		switch {
		case u.Name == "":
			warnings = append(warnings, fmt.Sprintf("line %d names no user", line))
		case basic:
			if add(xxhash.Sum64String(u.Name), true, u) {
				warnings = append(warnings, fmt.Sprintf("line %d: user %q is also in an earlier row: the last row wins", line, u.Name))
			}
		case redacted(credential):
			add(0, false, u)
		case credential == "":
			warnings = append(warnings, fmt.Sprintf("line %d has no token: the apiserver ignores it", line))
		case add(xxhash.Sum64String(credential), true, u):
			warnings = append(warnings, fmt.Sprintf("line %d has the token of an earlier line: the last row wins", line))
		}
	}
	kept := users[:0]
	for _, u := range users {
		if u.Name != "" {
			kept = append(kept, u)
		}
	}
	return kept, warnings, nil
}

// csvError omits what the reader may quote of the file.
func csvError(err error) error {
	var pe *csv.ParseError
	if errors.As(err, &pe) {
		return fmt.Errorf("line %d, column %d: %w", pe.Line, pe.Column, pe.Err)
	}
	return err
}

func first(basic bool) string {
	if basic {
		return "a password"
	}
	return "a token"
}

// redacted reports whether a credential was removed: it is a known word for that, or nothing but
// filler characters.
func redacted(credential string) bool {
	c := strings.ToLower(strings.Trim(credential, "<>[](){} \t"))
	if c == "" {
		return credential != ""
	}
	if strings.Trim(c, "*x.-_#•") == "" {
		return true
	}
	for _, word := range []string{"redacted", "removed", "hidden", "masked", "secret", "token", "password", "changeme", "omitted"} {
		if rest, ok := strings.CutPrefix(c, word); ok && strings.Trim(rest, "0123456789-_.:#/ ") == "" {
			return true
		}
	}
	return false
}
