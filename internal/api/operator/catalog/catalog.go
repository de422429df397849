// Package catalog lists what there is, with counts and rates: queues, topics,
// subscriptions, deliveries and functions, each alone, and how they hang together.
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

// Server is what the overview shows of the server itself.
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

// Options are what the catalog works with.
type Options struct {
	Engine *shard.Engine
	Totals *monitor.Queues
	Live   *live.Live
	// Server reports the server. Now is by its clock.
	Server func() Server
	// Problems are what health finds to be wrong, by the name of the check.
	Problems func(ctx context.Context) map[string]string
	// Alarms are the names of alarms that are in alarm, and since when; nil: there are none.
	Alarms func(most int) []Alarming
	// Closed are sources that take no posts; nil: there are none.
	Closed func(most int) []Closed
}

// Closed is a source that takes no posts.
type Closed struct {
	Name    string
	Problem string // empty: somebody has paused it
}

// Alarming is an alarm that is in alarm.
type Alarming struct {
	ARN, Name, Reason string
	Since             time.Time
}

// Catalog answers what there is.
type Catalog struct {
	Options

	mu       sync.Mutex // held while an overview is made
	overview *Overview  // of a snapshot
	of       *live.Snapshot
}

// New makes a catalog.
func New(o Options) *Catalog { return &Catalog{Options: o} }

// in is the region and account that are meant.
func (c *Catalog) in(region, account string) (string, string) {
	server := c.Server()
	return cmp.Or(region, server.Region), cmp.Or(account, server.Account)
}

// examined bounds how many names one call looks at for a page.
const examined = 20_000

// begin reads where a list by names continues, and looks at the server as it is now.
func (c *Catalog) begin(ctx context.Context, cursor string) (from string, now *live.Snapshot, err error) {
	if from, err = rest.After(cursor); err != nil {
		return "", nil, err
	}
	now, err = c.Live.Now(ctx)
	return from, now, err
}

// seconds is a time of at least nothing, in seconds.
func seconds(d time.Duration) *float64 {
	s := max(d, 0).Round(time.Millisecond).Seconds()
	return &s
}

// injected reports that a resource fails on purpose; what is known of it is still shown.
func injected(err error) *string {
	switch fault.KindOf(err) {
	case fault.Unavailable, fault.Throttled:
		name := "it fails on purpose"
		return &name
	default:
		return nil
	}
}

// namesSplit are the parts of an ARN that lists show.
func namesSplit(a arn.ARN) (name, region, account string) { return a.Resource, a.Region, a.Account }

// mappings are the event-source mappings by what f picks of them.
func (c *Catalog) mappings(ctx context.Context) ([]mapping.Mapping, error) {
	return c.Engine.Mappings(ctx)
}

// number reads a count that an attribute has.
func number(attribute string) int {
	n, _ := strconv.Atoi(attribute)
	return n
}
