// Package catalog lists queues, topics, subscriptions, deliveries and functions with counts
// and rates, describes each, and reports the graph of their connections.
package catalog

import (
	"cmp"
	"context"
	"strconv"
	"sync"
	"time"

	"godwit.dev/godwit/internal/api/operator/live"
	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function/mapping"
	"godwit.dev/godwit/internal/monitor"
	"godwit.dev/godwit/internal/shard"
)

// Server describes the server itself in the overview.
type Server struct {
	Version   string    `json:"version"`
	Mode      string    `json:"mode" enum:"dev,serve"`
	Clock     string    `json:"clock" enum:"system,virtual"`
	Now       time.Time `json:"now" doc:"By the server's clock."`
	StartedAt time.Time `json:"startedAt" doc:"By the machine's clock."`
	Region    string    `json:"region"`
	Account   string    `json:"account"`
	Enforced  bool      `json:"enforced" doc:"Whether signatures and policies are checked."`
	Endpoint  string    `json:"endpoint" doc:"The address of the server as its own messages name it."`
}

// Options are the dependencies and settings of a Catalog.
type Options struct {
	Engine *shard.Engine
	Totals *monitor.Queues
	Live   *live.Live
	// Server describes the server. Now is by its clock.
	Server func() Server
	// Problems are the failed health checks, by name.
	Problems func() map[string]string
	// Alarms are the alarms in state ALARM, and since when; nil: there are none.
	Alarms func(limit int) []Alarming
	// Closed are the sources that refuse posts; nil: there are none.
	Closed func(limit int) []Closed
}

// Closed is a source that refuses posts.
type Closed struct {
	Name    string
	Problem string // empty: an operator has paused it
}

// Alarming is an alarm in state ALARM.
type Alarming struct {
	ARN, Name, Reason string
	Since             time.Time
}

// Catalog answers the operations.
type Catalog struct {
	Options

	mu       sync.Mutex // held while an overview is made
	overview *Overview  // of a snapshot
	of       *live.Snapshot
}

// New makes a catalog.
func New(o Options) *Catalog { return &Catalog{Options: o} }

// in is the given region and account, or their defaults.
func (c *Catalog) in(region, account string) (string, string) {
	server := c.Server()
	return cmp.Or(region, server.Region), cmp.Or(account, server.Account)
}

// examined bounds the names that one call examines for a page.
const examined = 20_000

// begin reads the cursor of a list by name, and takes a current snapshot.
func (c *Catalog) begin(ctx context.Context, cursor string) (from string, now *live.Snapshot, err error) {
	if from, err = rest.After(cursor); err != nil {
		return "", nil, err
	}
	now, err = c.Live.Now(ctx)
	return from, now, err
}

// seconds is a duration in seconds, at least 0.
func seconds(d time.Duration) *float64 {
	s := max(d, 0).Round(time.Millisecond).Seconds()
	return &s
}

// injected returns the injected fault, if err is one; the known data is shown with it.
func injected(err error) *string {
	switch fault.KindOf(err) {
	case fault.Unavailable, fault.Throttled:
		name := "it fails on purpose"
		return &name
	default:
		return nil
	}
}

// namesSplit are the parts of an ARN for lists.
func namesSplit(a arn.ARN) (name, region, account string) { return a.Resource, a.Region, a.Account }

// mappings are the event-source mappings.
func (c *Catalog) mappings(ctx context.Context) ([]mapping.Mapping, error) {
	return c.Engine.Mappings(ctx)
}

// number parses an attribute with a count.
func number(attribute string) int {
	n, _ := strconv.Atoi(attribute)
	return n
}
