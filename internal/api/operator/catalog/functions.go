package catalog

import (
	"context"
	"maps"
	"slices"
	"time"

	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/shard"
)

// Function is a function in a list.
type Function struct {
	ARN            string    `json:"arn"`
	Name           string    `json:"name"`
	Region         string    `json:"region"`
	Account        string    `json:"account"`
	Runtime        string    `json:"runtime" doc:"Empty for one that runs elsewhere."`
	State          string    `json:"state" enum:"Active,Pending,Updating"`
	MemoryMB       int       `json:"memoryMB"`
	TimeoutSeconds int       `json:"timeoutSeconds"`
	ModifiedAt     time.Time `json:"modifiedAt"`
	Reserved       *int      `json:"reserved" doc:"Concurrent executions that are kept for it."`
	Events         int64     `json:"events" doc:"Asynchronous invocations that wait or are under way: the sum of the three that follow."`
	Due            int64     `json:"due"`
	Waiting        int64     `json:"waiting"`
	InFlight       int64     `json:"inFlight"`
	Mappings       int       `json:"mappings" doc:"How many queues feed it."`
}

// FunctionDetail describes a function in full.
type FunctionDetail struct {
	Function
	OldestAgeSeconds *float64          `json:"oldestAgeSeconds" doc:"Of the oldest event that waits."`
	Handler          string            `json:"handler"`
	Role             string            `json:"role"`
	Description      string            `json:"description"`
	Environment      []string          `json:"environment" doc:"The names of its variables; the values are secrets."`
	Tags             map[string]string `json:"tags"`
	Versions         int               `json:"versions" doc:"Published ones; 1,000 stands for any more."`
	Aliases          []FunctionAlias   `json:"aliases"`
	Sources          []FunctionMapping `json:"sources" doc:"The queues that feed it."`
	DeadLetter       *string           `json:"deadLetter"`
	OnFailure        *string           `json:"onFailure"`
	OnSuccess        *string           `json:"onSuccess"`
	LogGroup         string            `json:"logGroup"`
}

// FunctionAlias is an alias of a function.
type FunctionAlias struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// FunctionMapping is an event-source mapping of a function.
type FunctionMapping struct {
	ID        string `json:"id"`
	Source    string `json:"source"`
	State     string `json:"state"`
	BatchSize int    `json:"batchSize"`
}

// ListFunctions asks for functions.
type ListFunctions struct {
	Search  string `query:"search" max:"140" doc:"Part of the name, whatever its case."`
	Region  string `query:"region" max:"64" doc:"By default the server's."`
	Account string `query:"account" min:"12" max:"12" doc:"By default the server's."`
	Limit   int    `query:"limit" min:"1" max:"1000" default:"100"`
	Cursor  string `query:"cursor" max:"4096" doc:"next of the page before."`
}

// Functions is a page of functions.
type Functions struct {
	Functions []Function `json:"functions"`
	Next      *string    `json:"next"`
}

// OneFunction names a function.
type OneFunction struct {
	ARN string `query:"arn" required:"true" max:"2048" doc:"The function's, without a qualifier."`
}

// About implements rest.About.
func (f *OneFunction) About() string { return f.ARN }

// ListFunctions lists functions by name.
func (c *Catalog) ListFunctions(ctx context.Context, _ *rest.Call, in *ListFunctions) (*Functions, error) {
	from, err := rest.After(in.Cursor)
	if err != nil {
		return nil, err
	}
	feeds, err := c.feeds(ctx)
	if err != nil {
		return nil, err
	}
	out := &Functions{Functions: []Function{}}
	region, account := c.in(in.Region, in.Account)
	for looked := 0; ; {
		infos, more, err := c.Engine.ListFunctions(ctx, region, account, from, min(1000, 2*in.Limit))
		if err != nil {
			return nil, err
		}
		for i := range infos {
			if len(out.Functions) == in.Limit {
				out.Next = rest.Next(from, true)
				return out, nil
			}
			name := infos[i].ARN.FunctionName()
			if from = name; !rest.Matches(name, in.Search) {
				continue
			}
			f := c.function(&infos[i])
			f.Mappings = len(feeds[infos[i].ARN])
			out.Functions = append(out.Functions, f)
		}
		if looked += len(infos); !more || looked >= examined || len(infos) == 0 {
			out.Next = rest.Next(from, more)
			return out, nil
		}
	}
}

// feeds are the event-source mappings by function.
func (c *Catalog) feeds(ctx context.Context) (map[arn.ARN][]FunctionMapping, error) {
	all, err := c.mappings(ctx)
	if err != nil {
		return nil, err
	}
	by := map[arn.ARN][]FunctionMapping{}
	for i := range all {
		m := &all[i]
		f, _, _ := m.Function.SplitFunction()
		by[f] = append(by[f], FunctionMapping{ID: m.UUID(), Source: m.Queue.String(), State: m.State(), BatchSize: m.BatchSize})
	}
	return by, nil
}

func (c *Catalog) function(info *shard.FunctionInfo) Function {
	f := Function{
		ARN: info.ARN.String(), Name: info.ARN.FunctionName(), Region: info.ARN.Region, Account: info.ARN.Account, Runtime: info.Config.Runtime,
		State: "Active", MemoryMB: info.Config.MemoryMB, TimeoutSeconds: info.Config.TimeoutS, ModifiedAt: info.Modified.UTC(), Reserved: info.Reserved,
	}
	switch {
	case info.Pending:
		f.State = "Pending"
	case info.Updating:
		f.State = "Updating"
	}
	if events, err := c.Engine.SampleEvents(info.ARN); err == nil {
		f.Due, f.Waiting, f.InFlight = events.Due, events.Waiting, events.InFlight
		f.Events = f.Due + f.Waiting + f.InFlight
	}
	return f
}

// GetFunction describes one function.
func (c *Catalog) GetFunction(ctx context.Context, _ *rest.Call, in *OneFunction) (*FunctionDetail, error) {
	a, err := arn.Parse(in.ARN)
	name, qualifier, ok := a.SplitFunction()
	if err != nil || !ok || qualifier != "" {
		return nil, rest.BadRequest("arn: want the ARN of a function, without a qualifier")
	}
	info, err := c.Engine.FunctionInfo(ctx, name, "")
	if err != nil {
		return nil, err
	}
	feeds, err := c.feeds(ctx)
	if err != nil {
		return nil, err
	}
	out := &FunctionDetail{
		Function: c.function(&info), Handler: info.Config.Handler, Role: info.Config.Role, Description: info.Config.Description,
		Environment: slices.Sorted(maps.Keys(info.Config.Environment)), Tags: orEmpty(info.Tags), Aliases: []FunctionAlias{}, Sources: []FunctionMapping{},
		DeadLetter: rest.Optional(info.Config.DeadLetter.String()), LogGroup: info.Config.Logging.Group,
	}
	if out.Environment == nil {
		out.Environment = []string{}
	}
	out.Sources = append(out.Sources, feeds[name]...)
	out.Mappings = len(out.Sources)
	if events, err := c.Engine.Events(ctx, name); err == nil && !events.Oldest.IsZero() {
		out.OldestAgeSeconds = seconds(events.Now.Sub(events.Oldest))
	}
	versions, _, err := c.Engine.ListVersions(ctx, name, "", 1000)
	if err != nil {
		return nil, err
	}
	out.Versions = max(len(versions)-1, 0) // the first is the latest, unpublished one
	aliases, _, err := c.Engine.ListAliases(ctx, name, "", "", 1000)
	if err != nil {
		return nil, err
	}
	for _, alias := range aliases {
		out.Aliases = append(out.Aliases, FunctionAlias{alias.Name, alias.Version})
	}
	config, err := c.Engine.ShowEventInvoke(ctx, name, "")
	switch {
	case err == nil:
		out.OnFailure, out.OnSuccess = rest.Optional(config.OnFailure.String()), rest.Optional(config.OnSuccess.String())
	case fault.KindOf(err) != fault.ResourceNotFound:
		return nil, err
	}
	return out, nil
}
