package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"time"

	"go.uber.org/zap"
)

const (
	// pageTimeout is how long a page may take to arrive.
	pageTimeout = time.Minute
	// maxPage is the largest page that is read. 500 objects of a megabyte each do not occur,
	// but a listing in one page may be large.
	maxPage = 512 << 20
)

type page struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
		Continue        string `json:"continue"`
	} `json:"metadata"`
	Items []json.RawMessage `json:"items"`
}

type listing struct {
	resourceVersion string
	// The list shows one moment between the two: the first page is read consistently, and
	// later pages have the same version.
	began, ended time.Time
	objects      int
}

// list checks that the cluster is the right one, then lists the kind and sends it page by
// page, with a record of completeness at the end.
func (r *reflector) list(ctx context.Context) (listing, error) {
	if err := r.identify(ctx); err != nil {
		return listing{}, err
	}
	l, err := r.pages(ctx, r.w.cfg.PageSize)
	if reasonOf(err) == reasonGone {
		// The version was compacted between two pages: list again, in one page. What was sent is true of its objects, complete for nothing.
		r.count(reasonGone)
		r.log.Warn("a listing took longer than the cluster keeps versions; listing in one page")
		l, err = r.pages(ctx, 0)
	}
	return l, err
}

// identify passes the namespace kube-system, whose uid identifies the cluster, to Encoder.Check.
func (r *reflector) identify(ctx context.Context) error {
	k := namespaceKind()
	p, err := r.page(ctx, k, url.Values{"fieldSelector": {"metadata.name=kube-system"}})
	if reason := reasonOf(err); err != nil && (reason == reasonForbidden && r.kind.Resource != namespaces) {
		r.log.Warn("namespaces may not be listed: cannot check that this is the right cluster", zap.Error(err))
		return nil
	}
	if err != nil {
		return fmt.Errorf("identify cluster: %w", err)
	}
	objects := make([][]byte, 0, len(p.Items))
	for _, item := range p.Items {
		named, err := k.named(item)
		if err != nil {
			return fmt.Errorf("identify cluster: %w", err)
		}
		objects = append(objects, r.w.redactor.RedactObject(k.Resource, named))
	}
	return r.w.encoder.Check(k.Resource, objects)
}

// pages lists with at most limit objects a page, or in one page if limit is 0.
func (r *reflector) pages(ctx context.Context, limit int) (listing, error) {
	l := listing{began: r.w.cfg.Now()}
	query := url.Values{}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	for {
		p, err := r.page(ctx, r.kind, query)
		if err != nil {
			return listing{}, fmt.Errorf("list %s: %w", r.kind.Resource, err)
		}
		if l.ended.IsZero() {
			l.ended, l.resourceVersion = r.w.cfg.Now(), p.Metadata.ResourceVersion
			if !l.ended.After(l.began) {
				// A gap that starts with the listing must not look as if the listing had ended it,
				// however coarse the clock.
				l.ended = l.began.Add(time.Nanosecond)
			}
		}
		out := make([]outgoing, 0, len(p.Items))
		for _, item := range p.Items {
			o, err := r.item(item, l)
			if err != nil {
				return listing{}, fmt.Errorf("list %s: %w", r.kind.Resource, err)
			}
			out = append(out, o)
		}
		if err := r.send(ctx, out...); err != nil {
			return listing{}, err
		}
		l.objects += len(out)
		if p.Metadata.Continue == "" {
			break
		}
		query.Set("continue", p.Metadata.Continue)
	}
	if err := checkVersion(l.resourceVersion); err != nil {
		return listing{}, fmt.Errorf("list %s: %w", r.kind.Resource, err)
	}
	complete := outgoing{record: r.record(r.w.encoder.Complete(r.kind.Resource, l.began, l.ended))}
	return l, r.send(ctx, complete)
}

func (r *reflector) item(item []byte, l listing) (outgoing, error) {
	named, err := r.kind.named(item)
	if err != nil {
		return outgoing{}, err
	}
	redacted := r.w.redactor.RedactObject(r.kind.Resource, named)
	h, err := headOf(redacted)
	if err != nil {
		return outgoing{}, err
	}
	return r.encode(Object{Resource: r.kind.Resource, JSON: redacted, Listed: true, NotBefore: l.began, NotAfter: l.ended}, h)
}

func (r *reflector) page(ctx context.Context, k Kind, query url.Values) (page, error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	body, err := r.w.get(ctx, k, query)
	if err != nil {
		return page{}, err
	}
	defer body.Close()
	raw, err := io.ReadAll(io.LimitReader(body, maxPage+1))
	if err != nil {
		return page{}, err
	}
	if len(raw) > maxPage {
		return page{}, fmt.Errorf("%w: page of more than %d bytes", errMalformed, maxPage)
	}
	var p page
	if err := json.Unmarshal(raw, &p); err != nil {
		return page{}, errors.Join(errMalformed, err)
	}
	return p, nil
}
