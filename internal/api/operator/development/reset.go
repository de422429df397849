package development

import (
	"cmp"
	"context"
	"errors"

	"godwit.dev/godwit/internal/alarm"
	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/deliverystream"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function/layer"
	"godwit.dev/godwit/internal/monitor/alarms"
	"godwit.dev/godwit/internal/monitor/logs"
	"godwit.dev/godwit/internal/monitor/metrics"
	"godwit.dev/godwit/internal/shard/sources"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/internal/topic/settings"
)

// Reset is the request to delete all resources of an account.
type Reset struct {
	Account string `json:"account" required:"true" min:"12" max:"12" doc:"Whose resources are deleted: it has to be named."`
	Region  string `json:"region" max:"64" doc:"By default the server's."`
}

// ResetCounts are the counts of deleted resources.
type ResetCounts struct {
	Stacks       int `json:"stacks" doc:"With their history; their resources are counted below."`
	Sources      int `json:"sources"`
	Queues       int `json:"queues"`
	Topics       int `json:"topics" doc:"With their subscriptions."`
	Functions    int `json:"functions"`
	Layers       int `json:"layers" doc:"Versions of layers."`
	Mappings     int `json:"mappings"`
	Applications int `json:"applications"`
	Streams      int `json:"streams"`
	Alarms       int `json:"alarms"`
	LogGroups    int `json:"logGroups"`
	Faults       int `json:"faults"`
}

// page is the page size of the lists.
const page = 500

// Reset deletes the resources of an account in a region. Each deletion is durable, but not
// all are atomic: an interrupted reset has deleted some. Keys, identities and metrics stay.
func (d *Development) Reset(ctx context.Context, _ *rest.Call, in *Reset) (*ResetCounts, error) {
	if err := d.refused(); err != nil {
		return nil, err
	}
	out := &ResetCounts{}
	for resource := range d.Engine.FaultsInForce() { // a resource with a fault could not be deleted
		if err := d.Engine.SetFault(resource, "none"); err != nil {
			return nil, err
		}
		out.Faults++
	}
	region, account := cmp.Or(in.Region, d.Region), in.Account
	var err error
	if out.Stacks, err = d.Stacks.Reset(ctx, account, region); err != nil { // otherwise the steps of stacks would create resources again
		return nil, err
	}
	if err := d.resetSources(ctx, region, account, &out.Sources); err != nil {
		return nil, err
	}
	for _, of := range d.deletions(ctx, region, account, out) {
		if err := each(ctx, of.list, of.end, of.count); err != nil {
			return nil, err
		}
	}
	if err := d.Engine.ForgetVersions(ctx, account, region); err != nil {
		return nil, err
	}
	out.Alarms, err = d.resetAlarms(region, account)
	return out, err
}

// deletion is how the resources of one kind are listed, deleted and counted.
type deletion struct {
	list  func() ([]arn.ARN, error)
	end   func(a arn.ARN) error
	count *int
}

// deletions are those of the kinds of resource that have an ARN, in the order in which they are made.
func (d *Development) deletions(ctx context.Context, region, account string, out *ResetCounts) []deletion {
	return []deletion{
		{func() ([]arn.ARN, error) { return d.mappings(ctx, region, account) }, func(a arn.ARN) error {
			_, err := d.Engine.DeleteMapping(ctx, a)
			return err
		}, &out.Mappings},
		{func() (names []arn.ARN, err error) {
			names, _, err = d.Engine.ListTopics(ctx, region, account, "", page)
			return names, err
		}, func(a arn.ARN) error { return d.deleteTopic(ctx, a) }, &out.Topics},
		{func() (all []arn.ARN, err error) {
			names, _, err := d.Engine.ListQueues(ctx, region, account, "", "", page)
			for _, name := range names {
				all = append(all, arn.Queue(region, account, name))
			}
			return all, err
		}, func(a arn.ARN) error { return d.Engine.DeleteQueue(ctx, a) }, &out.Queues},
		{func() (all []arn.ARN, err error) {
			found, _, err := d.Engine.ListFunctions(ctx, region, account, "", page)
			for i := range found {
				all = append(all, found[i].ARN)
			}
			return all, err
		}, func(a arn.ARN) error { return d.Engine.DeleteFunction(ctx, a, "") }, &out.Functions},
		{func() (all []arn.ARN, err error) { // the newest version of each layer, until there are none
			found, _, err := d.Engine.ListLayers(ctx, region, account, "", layer.Filter{}, page)
			for i := range found {
				all = append(all, found[i].Layer.LayerVersion(found[i].Version.Number))
			}
			return all, err
		}, func(a arn.ARN) error {
			name, number, _ := a.SplitLayer()
			return d.Engine.DeleteLayer(ctx, name, number)
		}, &out.Layers},
		{func() (all []arn.ARN, err error) {
			found, _, err := d.Engine.ListApplications(ctx, region, account, "", page)
			for i := range found {
				all = append(all, found[i].ARN)
			}
			return all, err
		}, func(a arn.ARN) error { return d.Engine.DeleteApplication(ctx, a) }, &out.Applications},
		{func() (all []arn.ARN, _ error) {
			names, _ := d.Streams.List(account, region, "", page)
			for _, name := range names {
				all = append(all, deliverystream.Name(region, account, name))
			}
			return all, nil
		}, d.Streams.Delete, &out.Streams},
		{func() ([]arn.ARN, error) { return d.groups(region, account) }, func(a arn.ARN) error {
			if err := d.Logs.Protect(a, false); err != nil {
				return err
			}
			return d.Logs.DeleteGroup(a)
		}, &out.LogGroups},
	}
}

// resetAlarms deletes the alarms of an account in a region, and counts them.
func (d *Development) resetAlarms(region, account string) (n int, err error) {
	var ids []alarms.ID
	for _, a := range d.Alarms.List(metrics.Scope{Account: account, Region: region}, func(*alarm.Alarm) bool { return true }) {
		ids = append(ids, alarms.ID{Account: account, Region: region, Name: a.Name})
	}
	if len(ids) == 0 {
		return 0, nil
	}
	return len(ids), d.Alarms.Delete(ids)
}

// resetSources deletes the sources that post to resources of an account in a region.
func (d *Development) resetSources(ctx context.Context, region, account string, count *int) error {
	for after, more := "", true; more; {
		var found []sources.Info
		found, more = d.Sources.List(after, page)
		for i := range found {
			s := &found[i]
			after = s.Name
			target, err := arn.Parse(s.Target)
			if err != nil || s.Account != account || target.Region != region {
				continue
			}
			switch err := d.Sources.Delete(ctx, s.Name); {
			case err == nil:
				*count++
			case !gone[fault.KindOf(err)]:
				return err
			}
		}
	}
	return nil
}

// each deletes the resources of list until there are none, or none can be deleted any more.
// Resources that were deleted in the meantime, or are being deleted, are not counted.
func each(ctx context.Context, list func() ([]arn.ARN, error), end func(a arn.ARN) error, count *int) error {
	for before := -1; *count != before; {
		before = *count
		all, err := list()
		if err != nil {
			return err
		}
		for _, a := range all {
			if err := ctx.Err(); err != nil {
				return err
			}
			err := end(a)
			switch {
			case err == nil:
				*count++
			case !gone[fault.KindOf(err)]:
				return err
			}
		}
	}
	return nil
}

// gone are the errors of resources that do not exist or are being deleted.
var gone = map[fault.Kind]bool{fault.NotFound: true, fault.ResourceNotFound: true, fault.QueueDoesNotExist: true, fault.ResourceInUse: true}

// deleteTopic deletes a topic, with its archive if it keeps one.
func (d *Development) deleteTopic(ctx context.Context, a arn.ARN) error {
	err := d.Engine.DeleteTopic(ctx, a)
	if !errors.Is(err, topic.ErrArchived) {
		return err
	}
	if err := d.Engine.SetTopicAttribute(ctx, a, settings.Archive, "{}"); err != nil {
		return err
	}
	return d.Engine.DeleteTopic(ctx, a)
}

func (d *Development) mappings(ctx context.Context, region, account string) (all []arn.ARN, err error) {
	found, err := d.Engine.Mappings(ctx)
	for i := range found {
		if f := found[i].Function; f.Region == region && f.Account == account {
			all = append(all, found[i].ARN)
		}
	}
	return all, err
}

func (d *Development) groups(region, account string) (all []arn.ARN, err error) {
	found, _, err := d.Logs.Groups(logs.GroupFilter{Region: region, Account: account}, logs.Page{Limit: page})
	for i := range found {
		all = append(all, found[i].ARN)
	}
	return all, err
}
