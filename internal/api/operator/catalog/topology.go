package catalog

import (
	"cmp"
	"context"
	"slices"
	"time"

	"godwit.dev/godwit/internal/api/operator/live"
	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/topic"
)

// Topology is the graph of resources.
type Topology struct {
	Nodes     []Node    `json:"nodes" doc:"Those that hang together with any other."`
	Edges     []Edge    `json:"edges"`
	Truncated bool      `json:"truncated" doc:"There is more than the limit."`
	AsOf      time.Time `json:"asOf" doc:"When what is owed and the rates were looked at."`
}

// Node is a resource, or an external endpoint.
type Node struct {
	ARN      string `json:"arn" doc:"Of an endpoint outside, its address without credentials."`
	Kind     string `json:"kind" enum:"topic,queue,function,stream,application,endpoint"`
	Name     string `json:"name"`
	Messages *int64 `json:"messages" doc:"Of queues and functions."`
}

// Edge is a connection that messages take.
type Edge struct {
	From  string   `json:"from"`
	To    string   `json:"to"`
	Kind  string   `json:"kind" enum:"subscription,dead-letter,event-source,destination"`
	ARN   string   `json:"arn" doc:"Of the subscription, or the id of the mapping; empty for others."`
	State string   `json:"state" enum:"active,paused,pending-confirmation,failing"`
	Owed  *int64   `json:"owed" doc:"Of subscriptions."`
	Rate  *float64 `json:"rate" doc:"Messages that enter here in a second: of a subscription, those that are published to its topic."`
}

// GetTopology asks for the graph.
type GetTopology struct {
	Root    string `query:"root" max:"2048" doc:"Only what hangs together with this resource, by ARN."`
	Region  string `query:"region" max:"64" doc:"By default the server's."`
	Account string `query:"account" min:"12" max:"12" doc:"By default the server's."`
	Limit   int    `query:"limit" min:"1" max:"5000" default:"1000" doc:"How many edges at most."`
}

// About implements rest.About.
func (t *GetTopology) About() string { return t.Root }

// graph collects edges.
type graph struct {
	c     *Catalog
	now   *live.Snapshot
	held  map[arn.ARN]int64
	edges []Edge
	most  int
	more  bool
}

func (g *graph) add(e Edge) bool {
	if e.From == "" || e.To == "" {
		return true
	}
	if len(g.edges) == g.most {
		g.more = true
		return false
	}
	g.edges = append(g.edges, e)
	return true
}

// maxEdges bounds the edges that one call examines.
const maxEdges = 20_000

// GetTopology returns the graph of resources.
func (c *Catalog) GetTopology(ctx context.Context, _ *rest.Call, in *GetTopology) (*Topology, error) {
	if in.Root != "" {
		if _, err := arn.Parse(in.Root); err != nil {
			return nil, rest.BadRequest("root: want an ARN")
		}
	}
	now, err := c.Live.Now(ctx)
	if err != nil {
		return nil, err
	}
	g := &graph{c: c, now: now, held: map[arn.ARN]int64{}, most: maxEdges}
	for _, h := range now.Holdings {
		g.held[h.Name] = h.Counts.Visible + h.Counts.InFlight + h.Counts.Delayed
	}
	region, account := c.in(in.Region, in.Account)
	for _, collect := range []func(ctx context.Context, region, account string) error{g.subscriptions, g.functions, g.deadLetters} {
		if err := collect(ctx, region, account); err != nil {
			return nil, err
		}
	}
	if in.Root != "" {
		g.within(in.Root)
	}
	out := &Topology{Nodes: []Node{}, Edges: g.edges, Truncated: g.more, AsOf: now.At.UTC()}
	if len(out.Edges) > in.Limit {
		out.Edges, out.Truncated = out.Edges[:in.Limit], true
	}
	if out.Edges == nil {
		out.Edges = []Edge{}
	}
	seen := map[string]bool{}
	for _, e := range out.Edges {
		for _, name := range []string{e.From, e.To} {
			if !seen[name] {
				seen[name] = true
				out.Nodes = append(out.Nodes, g.node(name))
			}
		}
	}
	slices.SortFunc(out.Nodes, func(a, b Node) int { return cmp.Compare(a.ARN, b.ARN) })
	return out, nil
}

func (g *graph) node(name string) Node {
	n := Node{ARN: name, Name: name, Kind: "endpoint"}
	a, err := arn.Parse(name)
	if err != nil {
		return n
	}
	n.Name = a.Resource
	switch a.Service {
	case "sqs":
		n.Kind = "queue"
	case "lambda":
		n.Kind, n.Name = "function", a.FunctionName()
	case "firehose":
		n.Kind = "stream"
	case "sns":
		n.Kind = "topic"
		if _, _, ok := a.SplitApplication(); ok {
			n.Kind = "application"
		}
	}
	if n.Kind == "queue" || n.Kind == "function" {
		messages := g.held[a]
		n.Messages = &messages
	}
	return n
}

func (g *graph) subscriptions(ctx context.Context, region, account string) error {
	for from := ""; ; {
		subs, more, err := g.c.Engine.ListSubscriptions(ctx, region, account, from, 1000)
		if err != nil {
			return err
		}
		for i := range subs {
			if from = subs[i].ARN.String(); !g.subscription(&subs[i]) {
				return nil
			}
		}
		if !more || len(subs) == 0 {
			return nil
		}
	}
}

func (g *graph) subscription(sub *topic.Subscription) bool {
	t, _, _ := sub.ARN.SplitSubscription()
	owed := g.held[sub.ARN]
	e := Edge{From: t.String(), To: sub.ShownEndpoint(), Kind: "subscription", ARN: sub.ARN.String(), State: g.c.stateOf(sub), Owed: &owed}
	if rate, ok := g.now.Topic(t); ok {
		rate = round(rate)
		e.Rate = &rate
	}
	if !g.add(e) {
		return false
	}
	return g.add(Edge{From: t.String(), To: sub.DeadLetters().String(), Kind: "dead-letter", ARN: sub.ARN.String(), State: "active"})
}

func (g *graph) functions(ctx context.Context, region, account string) error {
	mapped, err := g.c.mappings(ctx)
	if err != nil {
		return err
	}
	for i := range mapped {
		m := &mapped[i]
		if m.Queue.Region != region || m.Queue.Account != account {
			continue
		}
		f, _, _ := m.Function.SplitFunction()
		e := Edge{From: m.Queue.String(), To: f.String(), Kind: "event-source", ARN: m.UUID(), State: "active"}
		if !m.Enabled {
			e.State = "paused"
		}
		if r, ok := g.now.Queue(m.Queue); ok {
			rate := round(r.Received)
			e.Rate = &rate
		}
		if !g.add(e) {
			return nil
		}
	}
	for from, looked := "", 0; looked < maxEdges; {
		infos, more, err := g.c.Engine.ListFunctions(ctx, region, account, from, 1000)
		if err != nil {
			return err
		}
		for i := range infos {
			name := infos[i].ARN
			from = name.FunctionName()
			if !g.add(Edge{From: name.String(), To: infos[i].Config.DeadLetter.String(), Kind: "dead-letter", State: "active"}) {
				return nil
			}
			config, err := g.c.Engine.ShowEventInvoke(ctx, name, "")
			if fault.KindOf(err) == fault.ResourceNotFound {
				continue
			}
			if err != nil {
				return err
			}
			if !g.add(Edge{From: name.String(), To: config.OnFailure.String(), Kind: "destination", State: "active"}) ||
				!g.add(Edge{From: name.String(), To: config.OnSuccess.String(), Kind: "destination", State: "active"}) {
				return nil
			}
		}
		if looked += len(infos); !more || len(infos) == 0 {
			return nil
		}
	}
	return nil
}

func (g *graph) deadLetters(ctx context.Context, region, account string) error {
	for _, sh := range g.c.Engine.Queues.Shards {
		if err := ctx.Err(); err != nil {
			return err
		}
		full := false
		sh.View(func() {
			sh.EachSource(func(dlq arn.ARN, names []string) bool {
				full = dlq.Region == region && dlq.Account == account && !g.addSources(dlq, names)
				return !full
			})
		})
		if full {
			return nil
		}
	}
	return nil
}

// addSources adds the edges from queues, in the region and account of their dead-letter queue, to
// that. ok is false once the graph takes no more.
func (g *graph) addSources(dlq arn.ARN, names []string) (ok bool) {
	for _, name := range names {
		from := arn.Queue(dlq.Region, dlq.Account, name)
		if !g.add(Edge{From: from.String(), To: dlq.String(), Kind: "dead-letter", State: "active"}) {
			return false
		}
	}
	return true
}

// within drops the edges that are not connected to a node.
func (g *graph) within(root string) {
	by := map[string][]int{}
	for i, e := range g.edges {
		by[e.From], by[e.To] = append(by[e.From], i), append(by[e.To], i)
	}
	kept, seen := make([]bool, len(g.edges)), map[string]bool{root: true}
	for todo := []string{root}; len(todo) > 0; {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, i := range by[at] {
			kept[i] = true
			for _, name := range []string{g.edges[i].From, g.edges[i].To} {
				if !seen[name] {
					seen[name] = true
					todo = append(todo, name)
				}
			}
		}
	}
	all := g.edges
	g.edges = nil
	for i, e := range all {
		if kept[i] {
			g.edges = append(g.edges, e)
		}
	}
}
