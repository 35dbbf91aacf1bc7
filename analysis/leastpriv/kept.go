package leastpriv

import (
	"maps"

	"github.com/retrial-io/retrial/rbacindex"
)

// keptOf has why roles keep what nobody used, by the role that is written.
type keptOf map[rbacindex.Key]map[pair]string

// add takes in the reasons of a role.
func (k keptOf) add(role rbacindex.Key, reasons map[pair]string) {
	if k[role] == nil {
		k[role] = map[pair]string{}
	}
	maps.Copy(k[role], reasons)
}
