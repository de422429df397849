// Package backups gives whoever may make backups a copy of the server's store, in parts,
// and lets a server continue that was restored from one.
package backups

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/cluster/snapshot"
)

// Options are what Backups work with.
type Options struct {
	// Source offers copies of the store; nil: there is nothing on a disk.
	Source *snapshot.Source
	// Version is that of the server, and Process a name of its own for each start.
	Version, Process string
	// RootKey is the id of the key that the state is sealed with.
	RootKey func() string
	Now     func() time.Time // by the machine's clock
	// Hold is what keeps a restored server from delivering.
	Hold Hold
}

// Hold keeps a server from delivering.
type Hold interface {
	Held() bool
	// Release lets it deliver, durably; false if nothing was held.
	Release() (bool, error)
}

// Backups answer the operations.
type Backups struct{ Options }

// New makes them.
func New(o Options) *Backups { return &Backups{o} }

// Begin asks for a backup.
type Begin struct{}

// Snapshot is what a backup consists of.
type Snapshot struct {
	ID        string    `json:"id" doc:"Names the snapshot. It is offered until two minutes after a part of it was last asked for."`
	CreatedAt time.Time `json:"createdAt" doc:"The moment of which it is."`
	Version   string    `json:"version" doc:"The server's."`
	Process   string    `json:"process" doc:"Names this run of the server. While it is the same, a table (.sst) or a file of values (.blob) of a name never changes."`
	RootKey   string    `json:"rootKey" doc:"The id of the root key that the state is sealed with. The key is in no backup."`
	Files     []File    `json:"files"`
}

// File is one of a snapshot's.
type File struct {
	Name string `json:"name" doc:"Relative, with slashes."`
	Size int64  `json:"size" doc:"In bytes."`
}

// Begin makes a snapshot of now.
func (b *Backups) Begin(context.Context, *rest.Call, *Begin) (*Snapshot, error) {
	if b.Source == nil {
		return nil, rest.Conflict("the state of this server is in memory (--store memory) and has no backup")
	}
	at := b.Now()
	m, err := b.Source.Begin()
	if errors.Is(err, snapshot.ErrBusy) {
		return nil, rest.Unavailable(err.Error())
	}
	if err != nil {
		return nil, fmt.Errorf("a snapshot cannot be made: %w", err)
	}
	out := &Snapshot{ID: m.ID, CreatedAt: at, Version: b.Version, Process: b.Process, RootKey: b.RootKey(), Files: []File{}}
	for _, f := range m.Files {
		out.Files = append(out.Files, File(f))
	}
	return out, nil
}

// Part asks for a part of a file.
type Part struct {
	ID     string `query:"id" required:"true" max:"100" doc:"The snapshot."`
	Name   string `query:"name" required:"true" max:"1000" doc:"The file."`
	Offset int64  `query:"offset" default:"0" min:"0" max:"9007199254740991" doc:"Where to begin, in bytes."`
}

// Bytes stand for an answer that is no JSON.
type Bytes struct{}

// Part answers up to 4 MiB of a file, with their CRC-32C in a header.
func (b *Backups) Part(_ context.Context, c *rest.Call, in *Part) (*Bytes, error) {
	if b.Source == nil {
		return nil, rest.NotFound(snapshot.ErrGone.Error())
	}
	p, sum, err := b.Source.Part(in.ID, in.Name, in.Offset)
	switch {
	case errors.Is(err, snapshot.ErrGone):
		return nil, rest.NotFound(err.Error())
	case errors.Is(err, snapshot.ErrOffset):
		return nil, rest.BadRequest("offset: " + err.Error())
	case err != nil:
		return nil, fmt.Errorf("a part of a snapshot cannot be read: %w", err)
	}
	c.Writer.Header().Set("Cache-Control", "no-store")
	c.Writer.Header().Set("X-Content-Type-Options", "nosniff")
	snapshot.WritePart(c.Writer, p, sum)
	return &Bytes{}, nil
}

// End says that a backup is made.
type End struct {
	ID string `json:"id" required:"true" max:"100" doc:"The snapshot."`
}

// Ended is the answer.
type Ended struct {
	ID string `json:"id"`
}

// End withdraws a snapshot, whether it is there or not.
func (b *Backups) End(_ context.Context, _ *rest.Call, in *End) (*Ended, error) {
	if b.Source != nil {
		b.Source.End(in.ID)
	}
	return &Ended{strings.Clone(in.ID)}, nil
}

// Deliver asks for deliveries to begin.
type Deliver struct{}

// Delivering is how deliveries stand.
type Delivering struct {
	Held    bool `json:"held" doc:"Whether the server delivers nothing, as one that was restored with --paused does until it is told to."`
	Changed bool `json:"changed" doc:"Whether this call has changed that."`
}

// Deliver lets a server that was restored with --paused deliver.
func (b *Backups) Deliver(context.Context, *rest.Call, *Deliver) (*Delivering, error) {
	changed, err := b.Hold.Release()
	if err != nil {
		return nil, fmt.Errorf("deliveries cannot be begun: %w", err)
	}
	return &Delivering{Held: b.Hold.Held(), Changed: changed}, nil
}

// Held says whether the server delivers.
func (b *Backups) Held(context.Context, *rest.Call, *Deliver) (*Delivering, error) {
	return &Delivering{Held: b.Hold.Held()}, nil
}
