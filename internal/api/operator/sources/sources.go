// Package sources manages sources: HTTP endpoints for clients without an AWS SDK.
package sources

import (
	"context"
	"errors"
	"time"

	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/ingest"
	"godwit.dev/godwit/internal/shard/sources"
)

// Options are the dependencies and settings of Sources.
type Options struct {
	Module  *sources.Module
	Account string // the owner of the sources
	// Current is who has made a source as he is now, who may have another name; nil: as he was.
	Current func(*caller.Caller) *caller.Caller
	// Exists reports whether a queue or topic exists; nil: nobody is told that a target does not.
	Exists func(context.Context, arn.ARN) bool
}

// Sources answers the operations on sources.
type Sources struct{ Options }

// New makes Sources.
func New(o Options) *Sources { return &Sources{o} }

// Verification says how posts are verified.
type Verification struct {
	Kind            string   `json:"kind" enum:"standard-webhooks,github,stripe,slack,shopify,sns,hmac,basic,api-key" doc:"Who posts, or how that is verified."`
	Tolerance       int      `json:"tolerance" min:"0" max:"86400" doc:"How far the time that was signed may be from now, in seconds; 0: 300, of sns any."`
	Header          string   `json:"header" max:"128" doc:"Of hmac: which header has the signature. Of api-key: which has the key, by default X-Api-Key."`
	Algorithm       string   `json:"algorithm" max:"16" doc:"Of hmac: sha1, sha256, sha384 or sha512, by default sha256."`
	Encoding        string   `json:"encoding" max:"16" doc:"Of hmac: hex or base64, by default hex."`
	Prefix          string   `json:"prefix" max:"64" doc:"Of hmac: what stands before the signature, as sha256=."`
	TimestampHeader string   `json:"timestampHeader" max:"128" doc:"Of hmac: which header has the time, in epoch seconds. Then that, a dot and the body are signed."`
	IDHeader        string   `json:"idHeader" max:"128" doc:"Of hmac, basic and api-key: which header has the id of the event."`
	Topics          []string `json:"topics" max:"100" doc:"Of sns: ARNs of the topics that may post."`
	Origins         []string `json:"origins" max:"100" doc:"Of sns: where certificates may be beside AWS's own hosts, as https://sns.example.com."`
}

// Mapping says how a post becomes a message.
type Mapping struct {
	Message         string            `json:"message" max:"1024" doc:"JSON pointer; empty: the whole body, as it came (of sns its Message)."`
	Subject         string            `json:"subject" max:"1024" doc:"Of topics, a JSON pointer; empty: none."`
	Attributes      map[string]string `json:"attributes" doc:"Message attributes by name: a JSON pointer, header:NAME, or id for the provider's id of the event. What a post does not have is left out."`
	GroupID         string            `json:"groupId" max:"1024" doc:"Of FIFO targets, and of queues that are fair: a JSON pointer. Empty: of FIFO targets the source's name."`
	DeduplicationID string            `json:"deduplicationId" max:"1024" doc:"Of FIFO targets: a JSON pointer. Empty: the provider's id of the event, or else the body's SHA-256."`
}

// Limits are the limits of a source.
type Limits struct {
	Bytes      int `json:"bytes" min:"0" max:"1048576" doc:"Of a post; 0: 262144."`
	PerSecond  int `json:"perSecond" min:"0" max:"100000" doc:"Posts a second; 0: any number."`
	Concurrent int `json:"concurrent" min:"0" max:"10000" doc:"Posts that are published at once; 0: 64."`
}

// PutSource is the request to create or replace a source.
type PutSource struct {
	Name         string       `json:"name" required:"true" max:"64" doc:"Letters, digits, hyphens and underscores: the source is at /in/NAME."`
	Target       string       `json:"target" required:"true" max:"2048" doc:"ARN of a topic or a queue."`
	Verification Verification `json:"verification"`
	Secrets      []string     `json:"secrets" doc:"Each is good: two while they are rotated. Absent: those that the source has stay. Of basic USER:PASSWORD."`
	Mapping      Mapping      `json:"mapping"`
	Limits       Limits       `json:"limits"`
	Paused       bool         `json:"paused"`
}

// About implements rest.About.
func (p *PutSource) About() string { return p.Target }

// OneSource names a source.
type OneSource struct {
	Name string `query:"name" required:"true" max:"64"`
}

// ChangeSource is the request to change a source.
type ChangeSource struct {
	Name string `json:"name" required:"true" max:"64"`
}

// ListSources asks for sources.
type ListSources struct {
	Limit  int    `query:"limit" min:"1" max:"1000" default:"100"`
	Cursor string `query:"cursor" max:"4096" doc:"next of the page before."`
}

// Source is a source, without its secrets.
type Source struct {
	Name         string       `json:"name"`
	Path         string       `json:"path" doc:"Where it is at --ingest-listen."`
	Target       string       `json:"target"`
	Owner        string       `json:"owner" doc:"ARN of as whom it publishes."`
	Verification Verification `json:"verification"`
	Secrets      int          `json:"secrets" doc:"How many it has."`
	Mapping      Mapping      `json:"mapping"`
	Limits       Limits       `json:"limits"`
	Paused       bool         `json:"paused"`
	Problem      *string      `json:"problem" doc:"Why it takes nothing, if so: its secrets are to be set anew."`
	Warning      *string      `json:"warning" doc:"What makes it refuse posts while it lasts: its target does not exist."`
	CreatedAt    *time.Time   `json:"createdAt"`
	ChangedAt    *time.Time   `json:"changedAt"`
}

// List is a page of sources, by name.
type List struct {
	Sources []Source `json:"sources"`
	Next    *string  `json:"next"`
}

// Deleted says that the source does not exist any more.
type Deleted struct {
	Name string `json:"name"`
}

// missing is the warning of a source whose target does not exist: it may be put before that is
// created. Empty: it does.
func (s *Sources) missing(ctx context.Context, target string) string {
	if a, err := arn.Parse(target); err != nil || s.Exists == nil || s.Exists(ctx, a) {
		return ""
	}
	return "its target does not exist: posts are refused (503) until it does"
}

func (s *Sources) shown(ctx context.Context, i *sources.Info) Source {
	v, m, l := &i.Verification, &i.Mapping, &i.Limits
	out := Source{
		Name: i.Name, Path: "/in/" + i.Name, Target: i.Target, Secrets: i.Secrets, Paused: i.Paused,
		Owner: arn.Root(i.Account).String(),
		Verification: Verification{
			string(v.Kind), v.Tolerance, v.Header, v.Algorithm, v.Encoding, v.Prefix, v.TimestampHeader, v.IDHeader, all(v.Topics), all(v.Origins),
		},
		Mapping:   Mapping{m.Message, m.Subject, m.Attributes, m.GroupID, m.DeduplicationID},
		Limits:    Limits{l.Bytes, l.PerSecond, l.Concurrent},
		CreatedAt: rest.Moment(clock.Time(i.Created)), ChangedAt: rest.Moment(clock.Time(i.Changed)),
	}
	if out.Mapping.Attributes == nil {
		out.Mapping.Attributes = map[string]string{}
	}
	if owner := i.Owner; owner != nil {
		if s.Current != nil {
			owner = s.Current(owner)
		}
		out.Owner = owner.ARN
	}
	if i.Broken != nil {
		out.Problem = rest.Optional(rest.Text(i.Broken))
	}
	out.Warning = rest.Optional(s.missing(ctx, i.Target))
	return out
}

func all(texts []string) []string {
	if texts == nil {
		return []string{}
	}
	return texts
}

// List lists sources.
func (s *Sources) List(ctx context.Context, _ *rest.Call, in *ListSources) (*List, error) {
	after, err := rest.After(in.Cursor)
	if err != nil {
		return nil, err
	}
	page, more := s.Module.List(after, in.Limit)
	out := &List{Sources: []Source{}}
	for i := range page {
		out.Sources = append(out.Sources, s.shown(ctx, &page[i]))
		after = page[i].Name
	}
	out.Next = rest.Next(after, more)
	return out, nil
}

func (s *Sources) one(ctx context.Context, name string) (*Source, error) {
	found, err := s.Module.Get(name)
	if err != nil {
		return nil, err
	}
	shown := s.shown(ctx, &found)
	return &shown, nil
}

// Get reports a source.
func (s *Sources) Get(ctx context.Context, _ *rest.Call, in *OneSource) (*Source, error) {
	return s.one(ctx, in.Name)
}

// Put creates or replaces a source. It publishes in the name of the requester, who must have
// the permission to publish to the target.
func (s *Sources) Put(ctx context.Context, c *rest.Call, in *PutSource) (*Source, error) {
	v := &in.Verification
	source := ingest.Source{
		Name: in.Name, Account: s.Account, Target: in.Target, Paused: in.Paused,
		Verification: ingest.Verification{
			Kind: ingest.Kind(v.Kind), Tolerance: v.Tolerance, Header: v.Header, Algorithm: v.Algorithm, Encoding: v.Encoding, Prefix: v.Prefix,
			TimestampHeader: v.TimestampHeader, IDHeader: v.IDHeader, Topics: v.Topics, Origins: v.Origins,
		},
		Mapping: ingest.Mapping{
			Message: in.Mapping.Message, Subject: in.Mapping.Subject, Attributes: in.Mapping.Attributes,
			GroupID: in.Mapping.GroupID, DeduplicationID: in.Mapping.DeduplicationID,
		},
		Limits: ingest.Limits{Bytes: in.Limits.Bytes, PerSecond: in.Limits.PerSecond, Concurrent: in.Limits.Concurrent},
	}
	target, err := arn.Parse(in.Target)
	if err != nil {
		return nil, rest.BadRequest("target: it is no ARN")
	}
	if c.May != nil {
		action := "sqs:SendMessage"
		if target.Service == "sns" {
			action = "sns:Publish"
		}
		if err := c.May(ctx, action, in.Target); err != nil {
			return nil, err
		}
	}
	source.Owner = c.Caller.WithoutKey()
	for {
		was, err := s.Module.Get(in.Name)
		if err != nil && !errors.Is(err, sources.ErrNone) {
			return nil, err
		}
		if was.Target != "" && c.May != nil { // otherwise permission for another target would suffice to take over the source with its secrets
			if err := c.May(ctx, "godwit:PutSource", was.Target); err != nil {
				return nil, err
			}
		}
		switch _, err = s.Module.Put(ctx, source, in.Secrets, was.Target); {
		case err == nil:
			return s.one(ctx, in.Name)
		case !errors.Is(err, sources.ErrChanged):
			return nil, err
		}
	}
}

// Pause makes a source refuse posts.
func (s *Sources) Pause(ctx context.Context, _ *rest.Call, in *ChangeSource) (*Source, error) {
	if err := s.Module.SetPaused(ctx, in.Name, true); err != nil {
		return nil, err
	}
	return s.one(ctx, in.Name)
}

// Resume makes it accept posts again.
func (s *Sources) Resume(ctx context.Context, _ *rest.Call, in *ChangeSource) (*Source, error) {
	if err := s.Module.SetPaused(ctx, in.Name, false); err != nil {
		return nil, err
	}
	return s.one(ctx, in.Name)
}

// Delete deletes a source. Posts in flight are still answered.
func (s *Sources) Delete(ctx context.Context, _ *rest.Call, in *ChangeSource) (*Deleted, error) {
	if err := s.Module.Delete(ctx, in.Name); err != nil {
		return nil, err
	}
	return &Deleted{in.Name}, nil
}
