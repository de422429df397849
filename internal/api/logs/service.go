package logs

import (
	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/monitor/logs"
	"godwit.dev/godwit/internal/monitor/logs/subscription"
)

// Store has the log groups; *logs.Logs implements it. Its errors are of package fault, with
// the message for the caller.
type Store interface {
	CreateGroup(n logs.NewGroup) error
	DeleteGroup(group arn.ARN) error
	Groups(f logs.GroupFilter, p logs.Page) (found []logs.Group, next string, err error)
	Retain(group arn.ARN, days int) error
	Protect(group arn.ARN, on bool) error
	Tag(group arn.ARN, tags map[string]string) error
	Untag(group arn.ARN, keys []string) error
	Tags(group arn.ARN) (map[string]string, error)

	PutFilter(group arn.ARN, f logs.MetricFilter) error
	DeleteFilter(group arn.ARN, name string) error
	Filters(group arn.ARN) ([]logs.MetricFilter, error)

	PutSubscription(group arn.ARN, f subscription.Filter) error
	DeleteSubscription(group arn.ARN, name string) error
	Subscriptions(group arn.ARN) ([]subscription.Filter, error)

	CreateStream(group arn.ARN, name string) error
	DeleteStream(group arn.ARN, name string) error
	Streams(group arn.ARN, o logs.StreamOrder, p logs.Page) (found []logs.Stream, next string, err error)

	Put(group arn.ARN, stream string, events []logs.Event) (logs.Rejected, error)
	Events(q logs.EventsQuery) (logs.EventsPage, error)
	Filter(q logs.FilterQuery) (found []logs.Found, next string, err error)
}

// Service answers the operations of CloudWatch Logs.
type Service struct {
	store        Store
	destinations Destinations
}

// New makes a Service.
func New(store Store, destinations Destinations) *Service { return &Service{store, destinations} }

// Operations are the operations that are implemented, and those that are implemented in part.
func (s *Service) Operations() []api.Operation {
	return api.Guarded(access, append(s.unbuilt(),
		api.Op("CreateLogGroup", s.createLogGroup),
		api.Op("DeleteLogGroup", s.deleteLogGroup),
		api.Op("DescribeLogGroups", s.describeLogGroups),
		api.Op("ListLogGroups", s.listLogGroups),
		api.Op("PutRetentionPolicy", s.putRetentionPolicy),
		api.Op("DeleteRetentionPolicy", s.deleteRetentionPolicy),
		api.Op("PutLogGroupDeletionProtection", s.putLogGroupDeletionProtection),
		api.Op("TagResource", s.tagResource),
		api.Op("UntagResource", s.untagResource),
		api.Op("ListTagsForResource", s.listTagsForResource),
		api.Op("TagLogGroup", s.tagLogGroup),
		api.Op("UntagLogGroup", s.untagLogGroup),
		api.Op("ListTagsLogGroup", s.listTagsLogGroup),
		api.Op("PutMetricFilter", s.putMetricFilter),
		api.Op("DescribeMetricFilters", s.describeMetricFilters),
		api.Op("DeleteMetricFilter", s.deleteMetricFilter),
		api.Op("PutSubscriptionFilter", s.putSubscriptionFilter),
		api.Op("DescribeSubscriptionFilters", s.describeSubscriptionFilters),
		api.Op("DeleteSubscriptionFilter", s.deleteSubscriptionFilter),
		api.Op("CreateLogStream", s.createLogStream),
		api.Op("DeleteLogStream", s.deleteLogStream),
		api.Op("DescribeLogStreams", s.describeLogStreams),
		api.Op("PutLogEvents", s.putLogEvents),
		api.Op("GetLogEvents", s.getLogEvents).Holding(4<<20),
		api.Op("FilterLogEvents", s.filterLogEvents).Holding(4<<20),
	))
}
