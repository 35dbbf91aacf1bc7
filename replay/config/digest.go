package config

import (
	"encoding/hex"
	"encoding/json"
	"hash/fnv"
)

// digest returns a short hash of what a configuration means: of every field but the digest
// itself. Field order is fixed and maps are sorted, so it is the same in every process.
func digest(a *APIServer) string {
	plain := *a
	plain.Digest = ""
	text, err := json.Marshal(&plain)
	if err != nil { // strings, numbers, booleans and lists of them
		panic(err)
	}
	h := fnv.New64a()
	_, _ = h.Write(text)
	return hex.EncodeToString(h.Sum(nil))
}
