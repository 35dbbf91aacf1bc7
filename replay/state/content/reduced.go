package content

import (
	"github.com/cespare/xxhash/v2"

	"github.com/retrial-io/retrial/replay/state/graph"
	"github.com/retrial-io/retrial/replay/state/instant"
	"github.com/retrial-io/retrial/replay/state/kept"
)

// parseReduced reads an object of a reduced kind, pods and credentials excepted.
func (in *Interner) parseReduced(res kept.Resource, raw []byte) (*Content, error) {
	o, err := kept.ReadObject(res, raw)
	if err != nil {
		return nil, err
	}
	c := &Content{Created: instant.Of(o.Metadata.Created()), Deletion: instant.Of(o.Metadata.Deletion()),
		Deleting: o.Metadata.DeletionTimestamp != "", Digest: xxhash.Sum64(raw)}
	f := o.Reduced
	switch res {
	case kept.ResVolume, kept.ResAttachment, kept.ResSlice, kept.ResPodCertificate:
		if g := f.Graph(); g != nil {
			g.Node, g.Refs = in.Str(g.Node), graph.Refs(in.Str(string(g.Refs)))
			c.Object = g
		}
	case kept.ResSecret:
		if !f.Bare {
			c.Object = &kept.Secret{
				Type: in.Str(f.Type), ServiceAccount: in.Str(f.Account), ServiceAccountUID: f.AccountUID,
				LastUsed: f.LastUsed, InvalidSince: f.InvalidSince, Bootstrap: f.Bootstrap.Token(),
			}
		}
	case kept.ResSigning:
		c.Object = f
	}
	return c, nil
}

// Signing returns the facts of a certificate signing request, nil for other contents.
func (c *Content) Signing() *kept.Facts {
	if c == nil {
		return nil
	}
	f, _ := c.Object.(*kept.Facts)
	return f
}
