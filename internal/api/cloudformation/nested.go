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

// Nesting says that an operation is a step of a parent stack's operation.
type Nesting struct {
	Parent, Root string // ARNs
	Depth        int    // of the stack below the root
	By           *caller.Caller
	Role         string // for the parent's steps
	Secrets      []string
}

type nesting struct{}

// WithNesting returns a context whose operations are steps of a parent stack.
func WithNesting(ctx context.Context, n *Nesting) context.Context {
	return context.WithValue(ctx, nesting{}, n)
}

// maxDepth bounds the nesting of stacks: a template may contain itself.
const maxDepth = 10

// nest marks a request as a step of a parent stack, if the context has one.
func nest(ctx context.Context, req *stack.Request, c *stacks.Creation) error {
	n, ok := ctx.Value(nesting{}).(*Nesting)
	if !ok {
		return nil
	}
	if n.Depth > maxDepth {
		return invalid("Template error: stacks cannot be nested deeper than %d levels", maxDepth)
	}
	req.By, req.Input.Role, req.Nested = n.By, n.Role, true
	req.Input.Conceal(n.Secrets)
	if c != nil {
		c.Parent, c.Root, c.Depth = n.Parent, n.Root, n.Depth
	}
	return nil
}

const maxURL = 5120

// objectOf returns the object of a URL, and the server's host, which is empty for AWS's own
// names.
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
		for i, label := range labels { // BUCKET.s3.REGION; the first and the last may be missing
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

// fetch reads the object of a URL in a member of a request, of at most limit bytes.
func (s *Service) fetch(ctx context.Context, link, member string, limit int64) ([]byte, error) {
	if s.Objects == nil || s.Objects.Host() == "" {
		return nil, invalid("%s must be a supported URL: this server is started without --artifacts-s3-endpoint, and has no objects.", member)
	}
	bucket, key, host, ok := objectOf(link)
	if !ok || host != "" && host != s.Objects.Host() {
		return nil, invalid("%s must be a supported URL: https://s3.amazonaws.com/BUCKET/KEY, https://BUCKET.s3.REGION.amazonaws.com/KEY, or BUCKET/KEY at http[s]://%s.", member, s.Objects.Host())
	}
	body, err := s.Objects.Get(ctx, bucket, key, limit)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, invalid("S3 error: %s. The object is in the bucket %s, with the key %s.", fault.Excerpt(strings.TrimSuffix(err.Error(), "."), 300, "…"), bucket, key)
	}
	return body, nil
}
