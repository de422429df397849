package cloudformation

import (
	"context"
	"net/url"
	"strings"

	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/stack"
)

// Nesting says that an operation is a step of another stack, which its stack belongs to.
type Nesting struct {
	Parent, Root string // ARNs
	Depth        int    // of the stack below the root
	By           *caller.Caller
	Role         string // that the parent's steps are taken in
}

type nesting struct{}

// WithNesting has operations be steps of another stack.
func WithNesting(ctx context.Context, n *Nesting) context.Context {
	return context.WithValue(ctx, nesting{}, n)
}

// maxDepth is how deep stacks may be nested in each other: a template may name itself.
const maxDepth = 10

// nest makes an order one that is a step of another stack, if it is.
func nest(ctx context.Context, o *stack.Order, c *stacks.Creation) error {
	n, ok := ctx.Value(nesting{}).(*Nesting)
	if !ok {
		return nil
	}
	if n.Depth > maxDepth {
		return invalid("Template error: stacks cannot be nested deeper than %d levels", maxDepth)
	}
	o.By, o.Source.Role, o.Nested = n.By, n.Role, true
	if c != nil {
		c.Parent, c.Root, c.Depth = n.Parent, n.Root, n.Depth
	}
	return nil
}

const maxURL = 5120

// objectOf is the object that a URL names, and the host of the server that has it, which is
// empty for AWS's own names.
func objectOf(link string) (bucket, key, host string, ok bool) {
	u, err := url.Parse(link)
	if err != nil || len(link) > maxURL || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", "", "", false
	}
	path := strings.TrimPrefix(u.Path, "/")
	host = u.Host
	if name, amazon := strings.CutSuffix(u.Hostname(), ".amazonaws.com"); amazon {
		host = ""
		labels := strings.Split(name, ".")
		for i, label := range labels { // BUCKET.s3.REGION, of which the first and the last may be missing
			if label == "s3" || i == 0 && strings.HasPrefix(label, "s3-") {
				bucket = strings.Join(labels[:i], ".")
				break
			}
		}
	}
	if bucket == "" {
		bucket, path, _ = strings.Cut(path, "/")
	}
	return bucket, path, host, bucket != "" && path != ""
}

// fetch reads what a URL names, of a member of a request, of so many bytes at most.
func (s *Service) fetch(ctx context.Context, link, member string, most int64) ([]byte, error) {
	if s.Objects == nil || s.Objects.Host() == "" {
		return nil, invalid("%s must be a supported URL: this server is started without --artifacts-s3-endpoint, and has no objects.", member)
	}
	bucket, key, host, ok := objectOf(link)
	if !ok || host != "" && host != s.Objects.Host() {
		return nil, invalid("%s must be a supported URL: https://s3.amazonaws.com/BUCKET/KEY, https://BUCKET.s3.REGION.amazonaws.com/KEY, or BUCKET/KEY at http[s]://%s.", member, s.Objects.Host())
	}
	body, err := s.Objects.Get(ctx, bucket, key, most)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, invalid("S3 error: %s. The object is in the bucket %s, with the key %s.", fault.Excerpt(strings.TrimSuffix(err.Error(), "."), 300, "…"), bucket, key)
	}
	return body, nil
}
