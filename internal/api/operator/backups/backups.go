// Package backups serves copies of the server's store in parts, and resumes a server that was
// restored from one.
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

// Options are the dependencies and settings of Backups.
type Options struct {
	// Source makes copies of the store; nil: the state is not on disk.
	Source *snapshot.Source
	// Version is the server's version, and Process a unique id of this process.
	Version, Process string
	// RootKey returns the id of the key that encrypts the state.
	RootKey func() string
	Now     func() time.Time // of the machine's clock
	// Hold holds the deliveries of a restored server.
	Hold Hold
}

// Hold holds the deliveries of a server.
type Hold interface {
	Held() bool
	// Release durably releases the deliveries; false if they were not held.
	Release() (bool, error)
}

// Backups answer the operations.
type Backups struct{ Options }

// New makes Backups.
func New(o Options) *Backups { return &Backups{o} }

// Begin is the request of a backup.
type Begin struct{}

// Snapshot lists the files of a backup.
type Snapshot struct {
	ID        string    `json:"id" doc:"Names the snapshot. It is offered until two minutes after a part of it was last asked for."`
	CreatedAt time.Time `json:"createdAt" doc:"The moment of which it is."`
	Version   string    `json:"version" doc:"The server's."`
	Process   string    `json:"process" doc:"Names this run of the server. While it is the same, a table (.sst) or a file of values (.blob) of a name never changes."`
	RootKey   string    `json:"rootKey" doc:"The id of the root key that the state is sealed with. The key is in no backup."`
	Files     []File    `json:"files"`
}

// File is a file of a snapshot.
type File struct {
	Name string `json:"name" doc:"Relative, with slashes."`
	Size int64  `json:"size" doc:"In bytes."`
}

// Begin makes a snapshot of the current state.
func (b *Backups) Begin(context.Context, *rest.Call, *Begin) (*Snapshot, error) {
	if b.Source == nil {
		return nil, rest.Conflict("the state of this server is in memory (--store memory) and has no backup")
	}
	at, rootKey := b.Now(), b.RootKey()
	m, err := b.Source.Begin()
	for err == nil && b.RootKey() != rootKey { // rotated meanwhile: which of the two it needs is unknown
		b.Source.End(m.ID)
		at, rootKey = b.Now(), b.RootKey()
		m, err = b.Source.Begin()
	}
	if errors.Is(err, snapshot.ErrBusy) {
		return nil, rest.Unavailable(err.Error())
	}
	if err != nil {
		return nil, fmt.Errorf("a snapshot cannot be made: %w", err)
	}
	out := &Snapshot{ID: m.ID, CreatedAt: at, Version: b.Version, Process: b.Process, RootKey: rootKey, Files: []File{}}
	for _, f := range m.Files {
		out.Files = append(out.Files, File(f))
	}
	return out, nil
}

// Part is the request of a part of a file.
type Part struct {
	ID     string `query:"id" required:"true" max:"100" doc:"The snapshot."`
	Name   string `query:"name" required:"true" max:"1000" doc:"The file."`
	Offset int64  `query:"offset" default:"0" min:"0" max:"9007199254740991" doc:"Where to begin, in bytes."`
}

// Bytes is the type of an answer that is not JSON.
type Bytes struct{}

// Part answers with up to 4 MiB of a file, with their CRC-32C in a header.
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

// End is the request to release a snapshot.
type End struct {
	ID string `json:"id" required:"true" max:"100" doc:"The snapshot."`
}

// Ended is the answer of End.
type Ended struct {
	ID string `json:"id"`
}

// End releases a snapshot; an unknown one is no error.
func (b *Backups) End(_ context.Context, _ *rest.Call, in *End) (*Ended, error) {
	if b.Source != nil {
		b.Source.End(in.ID)
	}
	return &Ended{strings.Clone(in.ID)}, nil
}

// Deliver is the request to start deliveries.
type Deliver struct{}

// Delivering says whether the server delivers.
type Delivering struct {
	Held    bool `json:"held" doc:"Whether the server delivers nothing, as one that was restored with --paused does until it is told to."`
	Changed bool `json:"changed" doc:"Whether this call has changed that."`
}

// Deliver starts the deliveries of a server that was restored with --paused.
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
