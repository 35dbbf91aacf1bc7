package workload

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
)

var uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// Renumber replaces every UUID by another, the same by the same within one seed: audit IDs,
// uids and token ids are as random as in another cluster, and what belongs together still
// does.
func Renumber(text []byte, seed string) []byte {
	return uuids.ReplaceAllFunc(text, func(id []byte) []byte {
		sum := sha256.Sum256(append([]byte(seed+"/"), id...))
		out := make([]byte, 36)
		hex.Encode(out[:8], sum[:4])
		hex.Encode(out[9:13], sum[4:6])
		hex.Encode(out[14:18], sum[6:8])
		hex.Encode(out[19:23], sum[8:10])
		hex.Encode(out[24:], sum[10:16])
		out[8], out[13], out[18], out[23] = '-', '-', '-', '-'
		return out
	})
}
