package cloudwatch

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/monitor/metrics"
)

const (
	metricsPage = 500
	// For listed minutes without data a metric is listed, and for recent minutes it is
	// recently active.
	listed = 14 * 24 * 60
	recent = 3 * 60

	maxFilters = 10
	maxOwner   = 255 // characters
)

// listMetrics answers ListMetrics, ordered by namespace, name and dimensions.
func (s *Service) listMetrics(ctx context.Context, call *api.Call, in *ListMetricsInput) (*ListMetricsOutput, error) {
	filter, err := readFilter(call, in)
	if err = cmp.Or(err, checkLength("owningAccount", in.OwningAccount, 1, maxOwner)); err != nil {
		return nil, err
	}
	after, ok := readToken("ListMetrics", in.NextToken)
	if !ok {
		return nil, invalid("Request parameter NextToken is invalid")
	}
	out := &ListMetricsOutput{Metrics: []Metric{}}
	if in.OwningAccount != nil && *in.OwningAccount != call.Account {
		return out, nil
	}
	next, err := s.metrics.List(ctx, filter, []byte(after), func(m metrics.Metric) bool {
		if len(out.Metrics) == metricsPage {
			return false
		}
		out.Metrics = append(out.Metrics, Metric{&m.Namespace, &m.Name, showDimensions(m.Dimensions)})
		if api.Deref(in.IncludeLinkedAccounts) {
			out.OwningAccounts = append(out.OwningAccounts, call.Account)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	if next != nil {
		out.NextToken = nextToken("ListMetrics", string(next))
	}
	return out, nil
}

func readFilter(call *api.Call, in *ListMetricsInput) (f metrics.Filter, err error) {
	f = metrics.Filter{
		Scope: scope(call), Namespace: api.Deref(in.Namespace), Name: api.Deref(in.MetricName),
		Since: metrics.Minute(call.Time) - listed,
	}
	if in.Namespace != nil {
		if err := checkNamespace("Namespace", in.Namespace); err != nil {
			return f, err
		}
	}
	if in.MetricName != nil {
		if err := checkText("MetricName", in.MetricName, maxName); err != nil {
			return f, err
		}
	}
	if in.RecentlyActive != nil {
		if *in.RecentlyActive != "PT3H" {
			return f, notInEnum(*in.RecentlyActive, "recentlyActive", []string{"PT3H"})
		}
		f.Since = metrics.Minute(call.Time) - recent
	}
	if len(in.Dimensions) > maxFilters {
		return f, tooMany("Dimensions", maxFilters)
	}
	for i, d := range in.Dimensions {
		at := fmt.Sprintf("Dimensions.member.%d.", i+1)
		if err := checkText(at+"Name", d.Name, metrics.MaxDimensionName); err != nil {
			return f, err
		}
		if d.Value != nil {
			if err := checkText(at+"Value", d.Value, metrics.MaxDimensionValue); err != nil {
				return f, err
			}
		}
		f.Dimensions = append(f.Dimensions, metrics.Dimension{Name: *d.Name, Value: api.Deref(d.Value)})
	}
	return f, nil
}

// nextToken is the token of the next page. It is only valid for the same list.
func nextToken(list, after string) string {
	return base64.RawURLEncoding.EncodeToString([]byte("1\n" + list + "\n" + after))
}

// readToken returns the position in a token of nextToken; without a token, the beginning.
func readToken(list string, token *string) (after string, ok bool) {
	if api.Deref(token) == "" {
		return "", true
	}
	plain, err := base64.RawURLEncoding.DecodeString(*token)
	if err != nil {
		return "", false
	}
	after, ok = strings.CutPrefix(string(plain), "1\n"+list+"\n")
	return after, ok && after != ""
}
