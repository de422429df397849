package resources

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// What a server tells and nobody sets.
var (
	ofQueues = []string{
		"QueueArn", "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed", "CreatedTimestamp", "LastModifiedTimestamp",
	}
	ofTopics = []string{
		"TopicArn", "Owner", "SubscriptionsConfirmed", "SubscriptionsPending", "SubscriptionsDeleted", "EffectiveDeliveryPolicy", "BeginningArchiveTime",
	}
	ofSubscriptions = []string{
		"SubscriptionArn", "TopicArn", "Owner", "PendingConfirmation", "ConfirmationWasAuthenticated", "EffectiveDeliveryPolicy", "SubscriptionPrincipal", "Endpoint", "Protocol",
	}
	ofAlarms = []string{
		"AlarmArn", "AlarmConfigurationUpdatedTimestamp", "StateValue", "StateReason", "StateReasonData", "StateUpdatedTimestamp", "StateTransitionedTimestamp", "EvaluationState",
		"ActionsSuppressedBy", "ActionsSuppressedReason",
	}
)

// maxPages bounds a list that does not end.
const maxPages = 100_000

// Home tells whose a server's ARNs are.
func (s *Server) Home(ctx context.Context) (account, region string, err error) {
	if found, err := s.query(ctx, "sts", "GetCallerIdentity", nil); err == nil {
		if account := found.text("Account"); account != "" {
			return account, s.Region, nil
		}
	}
	// Not every server has STS. A queue's ARN has both; where there is none, a topic's.
	queues, err := s.queues(ctx)
	if err != nil {
		return "", "", err
	}
	arns := []string{}
	for _, link := range queues[:min(1, len(queues))] {
		attributes, err := s.queueAttributes(ctx, link)
		if err != nil {
			return "", "", err
		}
		arns = append(arns, attributes["QueueArn"])
	}
	if len(arns) == 0 {
		if arns, err = s.topics(ctx); err != nil {
			return "", "", err
		}
	}
	if len(arns) == 0 {
		return "", "", nil
	}
	parts := strings.SplitN(arns[0], ":", 6)
	if len(parts) < 6 {
		return "", "", fmt.Errorf("the server has an ARN %q", arns[0])
	}
	return parts[4], parts[3], nil
}

// queues are the URLs of all queues.
func (s *Server) queues(ctx context.Context) (links []string, err error) {
	return s.pages(ctx, "sqs", "ListQueues", "QueueUrl", url.Values{"MaxResults": {"1000"}})
}

// topics are the ARNs of all topics.
func (s *Server) topics(ctx context.Context) (arns []string, err error) {
	return s.pages(ctx, "sns", "ListTopics", "TopicArn", nil)
}

// pages reads a list to its end.
func (s *Server) pages(ctx context.Context, service, action, member string, form url.Values) (all []string, err error) {
	form = copied(form)
	for range maxPages {
		found, err := s.query(ctx, service, action, form)
		if err != nil {
			return nil, err
		}
		for _, one := range found.all(member) {
			all = append(all, one.Text)
		}
		next := found.text("NextToken")
		if next == "" {
			break
		}
		form.Set("NextToken", next)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

func copied(form url.Values) url.Values {
	out := url.Values{}
	maps.Copy(out, form)
	return out
}

func (s *Server) queueAttributes(ctx context.Context, link string) (Attributes, error) {
	found, err := s.query(ctx, "sqs", "GetQueueAttributes", url.Values{"QueueUrl": {link}, "AttributeName.1": {"All"}})
	if err != nil {
		return nil, err
	}
	return found.pairs("Attribute", "Name", "Value"), nil
}

// without leaves out what nobody sets.
func without(a Attributes, names []string) Attributes {
	for _, name := range names {
		delete(a, name)
	}
	return a
}

// nameOf is the end of a queue's URL or of an ARN.
func nameOf(link string) string { return link[strings.LastIndexAny(link, "/:")+1:] }

// Export reads what a server has. missed says what of it no file takes, and what it refuses to
// tell: some servers have only some actions, and some callers may call only some. It fails if
// the server cannot be asked, or tells neither its queues nor its topics.
func (s *Server) Export(ctx context.Context) (set *Set, missed []string, err error) {
	e := &exporting{Server: s, set: new(Set)}
	if e.set.Account, e.set.Region, err = s.Home(ctx); err != nil && !isRefusal(err) {
		return nil, nil, err
	}
	queues, err := e.queues(ctx)
	if err != nil {
		return nil, nil, err
	}
	topics, err := e.topics(ctx)
	if err != nil {
		return nil, nil, err
	}
	if queues != nil && topics != nil {
		return nil, nil, errors.Join(queues, topics)
	}
	if topics == nil {
		if err := e.subscriptions(ctx); err != nil {
			return nil, nil, err
		}
	}
	if err := e.alarms(ctx); err != nil {
		return nil, nil, err
	}
	if err := e.sources(ctx); err != nil {
		return nil, nil, err
	}
	return e.set, e.missed, nil
}

// exporting is what is read of a server so far.
type exporting struct {
	*Server

	set    *Set
	missed []string
}

// unless notes what a server refuses to tell, and returns any other error.
func (e *exporting) unless(err error, what string) error {
	if err == nil || !isRefusal(err) {
		return err
	}
	e.missed = append(e.missed, fmt.Sprintf("%s: %v", what, err))
	return nil
}

// isUnknown reports that a server does not have an action: there is nothing then that it could
// tell. Those that stand in for AWS answer that in their own ways; a gateway's failure is none.
func isUnknown(err error) bool {
	refused, ok := errors.AsType[*Refusal](err)
	if !ok {
		return false
	}
	switch refused.Status {
	case http.StatusNotImplemented:
		return true
	case http.StatusBadRequest, http.StatusNotFound, http.StatusInternalServerError:
		return refused.Code == "" || refused.Code == "InvalidAction"
	default:
		return false
	}
}

// queues reads the queues. refused is why there is no list of them.
func (e *exporting) queues(ctx context.Context) (refused, err error) {
	links, refused := e.Server.queues(ctx)
	if refused != nil {
		return refused, e.unless(refused, "queues")
	}
	for _, link := range links {
		q := Queue{QueueName: nameOf(link)}
		if q.Attributes, err = e.queueAttributes(ctx, link); e.unless(err, "attributes of queue "+q.QueueName) != nil {
			return nil, err
		}
		q.Attributes = without(q.Attributes, ofQueues)
		if q.Tags, err = e.queueTags(ctx, link); e.unless(err, "tags of queue "+q.QueueName) != nil {
			return nil, err
		}
		e.set.Queues = append(e.set.Queues, q)
	}
	return nil, nil
}

// topics reads the topics. refused is why there is no list of them.
func (e *exporting) topics(ctx context.Context) (refused, err error) {
	arns, refused := e.Server.topics(ctx)
	if refused != nil {
		return refused, e.unless(refused, "topics and subscriptions")
	}
	for _, arn := range arns {
		t := Topic{Name: nameOf(arn)}
		if t.Attributes, err = e.topicAttributes(ctx, arn); e.unless(err, "attributes of topic "+t.Name) != nil {
			return nil, err
		}
		if t.Tags, err = e.topicTags(ctx, arn); e.unless(err, "tags of topic "+t.Name) != nil {
			return nil, err
		}
		if isDefaultPolicy(t.Attributes["Policy"], arn) { // which each topic has
			delete(t.Attributes, "Policy")
		}
		if t.DataProtectionPolicy, err = e.dataProtection(ctx, arn); !isUnknown(err) && e.unless(err, "data protection policy of topic "+t.Name) != nil {
			return nil, err
		}
		e.set.Topics = append(e.set.Topics, t)
	}
	return nil, nil
}

func (e *exporting) subscriptions(ctx context.Context) error {
	all, err := e.Server.subscriptions(ctx, "ListSubscriptions", nil)
	if err != nil {
		return e.unless(err, "subscriptions")
	}
	for _, sub := range all {
		one := Subscription{TopicArn: sub.topic, Protocol: sub.protocol, Endpoint: sub.endpoint}
		what := fmt.Sprintf("attributes of the subscription of %s to %s", one.Endpoint, nameOf(one.TopicArn))
		if !strings.HasPrefix(sub.arn, "arn:") {
			e.missed = append(e.missed, what+": it is not confirmed")
		} else if one.Attributes, err = e.subscriptionAttributes(ctx, sub.arn); e.unless(err, what) != nil {
			return err
		}
		if strings.Contains(one.Endpoint, masked) {
			e.missed = append(e.missed, fmt.Sprintf("user and password of the endpoint %s: they are never shown", one.Endpoint))
		}
		e.set.Subscriptions = append(e.set.Subscriptions, one)
	}
	slices.SortFunc(e.set.Subscriptions, func(a, b Subscription) int {
		return cmp.Or(cmp.Compare(a.TopicArn, b.TopicArn), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Endpoint, b.Endpoint))
	})
	return nil
}

func (s *Server) queueTags(ctx context.Context, link string) (Tags, error) {
	found, err := s.query(ctx, "sqs", "ListQueueTags", url.Values{"QueueUrl": {link}})
	if err != nil {
		return nil, err
	}
	return Tags(found.pairs("Tag", "Key", "Value")).own(), nil
}

func (s *Server) topicAttributes(ctx context.Context, arn string) (Attributes, error) {
	found, err := s.query(ctx, "sns", "GetTopicAttributes", url.Values{"TopicArn": {arn}})
	if err != nil {
		return nil, err
	}
	return without(found.pairs("entry", "key", "value"), ofTopics), nil
}

// dataProtection is the data protection policy of a topic; "": it has none.
func (s *Server) dataProtection(ctx context.Context, arn string) (Document, error) {
	found, err := s.query(ctx, "sns", "GetDataProtectionPolicy", url.Values{"ResourceArn": {arn}})
	if err != nil {
		return "", err
	}
	return Document(found.text("DataProtectionPolicy")), nil
}

func (s *Server) topicTags(ctx context.Context, arn string) (Tags, error) {
	found, err := s.query(ctx, "sns", "ListTagsForResource", url.Values{"ResourceArn": {arn}})
	if err != nil {
		return nil, err
	}
	tags := found.find("Tags")
	if tags == nil {
		return Tags{}, nil
	}
	return Tags(tags.pairs("member", "Key", "Value")).own(), nil
}

// listed is a subscription as a list has it.
type listed struct{ arn, topic, protocol, endpoint string }

func (s *Server) subscriptions(ctx context.Context, action string, form url.Values) (all []listed, err error) {
	form = copied(form)
	for range maxPages {
		found, err := s.query(ctx, "sns", action, form)
		if err != nil {
			return nil, err
		}
		for _, one := range found.all("member") {
			all = append(all, listed{one.text("SubscriptionArn"), one.text("TopicArn"), one.text("Protocol"), one.text("Endpoint")})
		}
		next := found.text("NextToken")
		if next == "" {
			break
		}
		form.Set("NextToken", next)
	}
	return all, nil
}

func (s *Server) subscriptionAttributes(ctx context.Context, arn string) (Attributes, error) {
	found, err := s.query(ctx, "sns", "GetSubscriptionAttributes", url.Values{"SubscriptionArn": {arn}})
	if err != nil {
		return nil, err
	}
	return without(found.pairs("entry", "key", "value"), ofSubscriptions), nil
}
