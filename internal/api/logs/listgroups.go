package logs

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/check"
	"godwit.dev/godwit/internal/monitor/logs"
)

// The limits of ListLogGroups. Source: the API model.
const (
	maxSummaries     = 1000
	defaultSummaries = 50
	maxPattern       = 129
	maxSources       = 5
	maxFieldIndexes  = 20
	maxTagFilters    = 5
	maxTagValues     = 5
)

const summaryRule = `(\^?[\.\-_\/#A-Za-z0-9]{3,24})(\|\^?[\.\-_\/#A-Za-z0-9]{3,24}){0,4}`

var summaryPattern = regexp.MustCompile("^" + summaryRule + "$")

// listLogGroups answers ListLogGroups. No group has data sources or field indexes: filters by
// these match nothing.
func (s *Service) listLogGroups(_ context.Context, call *api.Call, in *ListLogGroupsInput) (*ListLogGroupsOutput, error) {
	own, err := checkSummaries(call, in)
	if err != nil {
		return nil, err
	}
	n := defaultSummaries
	if in.Limit != nil {
		if n, err = limit(in.Limit, maxSummaries); err != nil {
			return nil, err
		}
	}
	tags := make([]string, len(in.LogGroupTags))
	for i, f := range in.LogGroupTags {
		tags[i] = fmt.Sprintf("%q", append([]string{*f.Key}, f.Values...))
	}
	list := fmt.Sprintf("summaries %s %s %s", api.Deref(in.LogGroupNamePattern), api.Deref(in.LogGroupClass), tags)
	after, err := readListToken(list, in.NextToken)
	if err != nil {
		return nil, err
	}
	out := &ListLogGroupsOutput{LogGroups: []LogGroupSummary{}}
	if !own || in.DataSources != nil || in.FieldIndexNames != nil {
		return out, nil
	}
	filter := logs.GroupFilter{Region: call.Region, Account: call.Account, Class: api.Deref(in.LogGroupClass)}
	if in.LogGroupNamePattern != nil {
		parts := strings.Split(*in.LogGroupNamePattern, "|")
		filter.Name = func(name string) bool {
			return slices.ContainsFunc(parts, func(part string) bool {
				prefix, anchored := strings.CutPrefix(part, "^")
				return anchored && strings.HasPrefix(name, prefix) || !anchored && strings.Contains(name, part)
			})
		}
	}
	if in.LogGroupTags != nil {
		filter.Tags = func(tags map[string]string) bool {
			return !slices.ContainsFunc(in.LogGroupTags, func(f TagFilter) bool { return !f.passes(tags) })
		}
	}
	found, next, err := s.store.Groups(filter, logs.Page{After: after, Limit: n})
	if err != nil {
		return nil, err
	}
	for i := range found {
		g := shown(&found[i], true)
		out.LogGroups = append(out.LogGroups, LogGroupSummary{g.LogGroupName, g.LogGroupArn, g.LogGroupClass})
	}
	out.NextToken = listToken(list, next)
	return out, nil
}

// checkSummaries validates the request; own is the result of owning.
func checkSummaries(call *api.Call, in *ListLogGroupsInput) (own bool, err error) {
	if in.LogGroupNamePattern != nil {
		if err := text("logGroupNamePattern", *in.LogGroupNamePattern, 3, maxPattern, summaryPattern, summaryRule); err != nil {
			return false, err
		}
	}
	if err := oneOf("logGroupClass", in.LogGroupClass, "STANDARD", "INFREQUENT_ACCESS", "DELIVERY"); err != nil {
		return false, err
	}
	sources := each(in.DataSources, func(d DataSourceFilter) string {
		return fmt.Sprintf("DataSourceFilter(name=%s, type=%s)", orNull(d.Name), orNull(d.Type))
	})
	tags := each(in.LogGroupTags, func(f TagFilter) string {
		return fmt.Sprintf("TagFilter(key=%s, values=%s)", orNull(f.Key), check.List(f.Values, maxShown))
	})
	if err := cmp.Or(count("dataSources", sources, 1, maxSources), count("fieldIndexNames", in.FieldIndexNames, 1, maxFieldIndexes),
		count("logGroupTags", tags, 1, maxTagFilters)); err != nil {
		return false, err
	}
	for i, f := range in.LogGroupTags {
		at := fmt.Sprintf("logGroupTags.%d.member.", i+1)
		if f.Key == nil {
			return false, null(at + "key")
		}
		if err := cmp.Or(length(at+"key", *f.Key, 1, maxTagKey), count(at+"values", f.Values, 0, maxTagValues)); err != nil {
			return false, err
		}
	}
	return owning(call, in.AccountIdentifiers, in.IncludeLinkedAccounts)
}

// passes reports whether tags match the filter: a key with one of the values, where the
// prefix "!" negates and "*" matches any text.
func (f TagFilter) passes(tags map[string]string) bool {
	has, ok := tags[*f.Key]
	return ok && (len(f.Values) == 0 || slices.ContainsFunc(f.Values, func(want string) bool {
		want, not := strings.CutPrefix(want, "!")
		if !strings.Contains(want, "*") {
			return (has == want) != not
		}
		return like(strings.ToLower(want), strings.ToLower(has)) != not
	}))
}

// like reports whether a text matches a pattern in which "*" matches any text.
func like(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	text, ok := strings.CutPrefix(text, parts[0])
	if len(parts) == 1 {
		return ok && text == ""
	}
	for _, part := range parts[1 : len(parts)-1] {
		_, rest, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = rest
	}
	return ok && strings.HasSuffix(text, parts[len(parts)-1])
}
