package sqs

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/queue/attribute"
	"godwit.dev/godwit/internal/shard"
)

const (
	maxTagKey   = 128  // characters
	maxTagValue = 256  // characters
	maxListed   = 1000 // queues in a page of ListQueues
)

// checkCreation refuses a request without a name, for which AWS has a text of its own.
func checkCreation(in any) error {
	if in.(*CreateQueueInput).QueueName == nil {
		return fault.New(fault.InvalidParameter, "Value for parameter QueueName is invalid. Reason: Must specify a queue name.")
	}
	return nil
}

// checkChange refuses a change of no attributes, as AWS does: by what a form lacks, in JSON too.
func checkChange(in any) error {
	if set := in.(*SetQueueAttributesInput); set.QueueUrl != "" && len(set.Attributes) == 0 {
		return fault.Newf(fault.MissingParameter, missing, "Attribute.Name")
	}
	return nil
}

// checked is an operation whose input is checked before its caller's permissions.
func checked(op api.Operation, check func(in any) error) api.Operation {
	op.Check = check
	return op
}

// CreateQueue creates a queue, or returns the existing one with the same attributes.
func (s *Service) CreateQueue(ctx context.Context, call *api.Call, in *CreateQueueInput) (*CreateQueueOutput, error) {
	full, fifo := *in.QueueName, attribute.IsTrue(in.Attributes[attribute.FifoQueue])
	if fifo {
		name, ok := strings.CutSuffix(full, fifoSuffix)
		if !ok || len(full) > maxNameBytes || !isQueueName(name) {
			return nil, fault.New(fault.InvalidParameter, "The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end with .fifo suffix and be 1 to 80 in length.")
		}
	} else if !isQueueName(full) {
		return nil, fault.New(fault.InvalidParameter, "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length")
	}
	if err := checkTags(full, in.Tags); err != nil {
		return nil, err
	}
	self := arn.Queue(call.Region, call.Account, full)
	attrs, err := attribute.Normalize(in.Attributes, fifo)
	if err != nil {
		return nil, err
	}
	if err := attribute.Check(self, attrs); err != nil {
		return nil, err
	}
	if err := s.checkDeadLetter(ctx, self, attrs); err != nil {
		return nil, err
	}
	if err := s.bind(attrs); err != nil {
		return nil, err
	}
	// An empty value removes an attribute; a new queue has none.
	maps.DeleteFunc(attrs, func(_, v string) bool { return v == "" })
	if err := s.engine.CreateQueue(ctx, shard.QueueSpec{ARN: self, Attributes: attrs, Tags: in.Tags}); err != nil {
		return nil, err
	}
	return &CreateQueueOutput{QueueUrl: s.queueURL(call, call.Account, full)}, nil
}

// bind replaces the users and roles in the Policy attribute by their unique ids, and refuses
// a policy with an unknown one.
func (s *Service) bind(attrs map[string]string) error {
	doc := attrs[attribute.Policy]
	if doc == "" {
		return nil
	}
	bound, unknown := s.principals.BindPolicy(doc)
	if unknown != "" {
		return attribute.ErrValue.With(attribute.Policy)
	}
	attrs[attribute.Policy] = bound
	return nil
}

// checkDeadLetter applies the rules of a RedrivePolicy that involve another
// queue: the target exists and its RedriveAllowPolicy admits self.
func (s *Service) checkDeadLetter(ctx context.Context, self arn.ARN, attrs map[string]string) error {
	doc := attrs[attribute.RedrivePolicy]
	if doc == "" {
		return nil
	}
	refuse := func(reason string) error {
		return fault.Newf(fault.InvalidParameter, "Value %s for parameter RedrivePolicy is invalid. Reason: %s", doc, reason)
	}
	r, err := attribute.ParseRedrive(doc)
	if err != nil {
		return err
	}
	info, err := s.engine.QueueInfo(ctx, r.DeadLetter)
	if fault.KindOf(err) == fault.QueueDoesNotExist {
		return refuse("Dead letter target does not exist.")
	}
	if err != nil {
		return err
	}
	if !attribute.AllowsRedrive(info.Attributes[attribute.RedriveAllowPolicy], self) {
		return refuse("The RedriveAllowPolicy of the dead-letter queue does not permit this source queue.")
	}
	return nil
}

// GetQueueUrl finds a queue by name.
func (s *Service) GetQueueUrl(ctx context.Context, call *api.Call, in *GetQueueUrlInput) (*GetQueueUrlOutput, error) {
	account := call.Account
	if owner := in.QueueOwnerAWSAccountId; owner != nil && *owner != "" {
		account = *owner
	}
	if _, err := s.engine.QueueConfig(ctx, arn.Queue(call.Region, account, in.QueueName)); err != nil {
		return nil, err
	}
	return &GetQueueUrlOutput{QueueUrl: s.queueURL(call, account, in.QueueName)}, nil
}

// ListQueues lists the caller's queues in the region, by name.
func (s *Service) ListQueues(ctx context.Context, call *api.Call, in *ListQueuesInput) (*ListQueuesOutput, error) {
	var prefix string
	if in.QueueNamePrefix != nil {
		prefix = *in.QueueNamePrefix
	}
	limit, after, err := page(call, prefix, in.MaxResults, in.NextToken)
	if err != nil {
		return nil, err
	}
	names, more, err := s.engine.ListQueues(ctx, call.Region, call.Account, prefix, after, limit)
	if err != nil {
		return nil, err
	}
	out := &ListQueuesOutput{}
	for _, name := range names {
		out.QueueUrls = append(out.QueueUrls, s.queueURL(call, call.Account, name))
	}
	if more && in.MaxResults != nil && len(names) > 0 {
		out.NextToken = sealToken(call, prefix, names[len(names)-1])
	}
	return out, nil
}

// page reads the pagination parameters of a list: the page size, and the name that the
// previous page ended with. what identifies the list.
func page(call *api.Call, what string, maxResults *int, token *string) (limit int, after string, err error) {
	limit, err = optional(maxResults, maxListed, 1, maxListed, "MaxResults", "Must be between 1 and 1000, if provided.")
	if err != nil {
		return 0, "", err
	}
	if token != nil && *token != "" {
		var ok bool
		if after, ok = openToken(call, what, *token); !ok {
			return 0, "", fault.New(fault.InvalidParameter, "Invalid or expired next token.")
		}
	}
	return limit, after, nil
}

// ListDeadLetterSourceQueues lists the queues that have the queue as their
// dead-letter queue, by name.
func (s *Service) ListDeadLetterSourceQueues(ctx context.Context, call *api.Call, in *ListDeadLetterSourceQueuesInput) (*ListDeadLetterSourceQueuesOutput, error) {
	q, err := s.existing(ctx, call, in.QueueUrl)
	if err != nil {
		return nil, err
	}
	what := q.String() // cannot be confused with a prefix of ListQueues
	limit, after, err := page(call, what, in.MaxResults, in.NextToken)
	if err != nil {
		return nil, err
	}
	names, more, err := s.engine.DeadLetterSources(ctx, q, after, limit)
	if err != nil {
		return nil, err
	}
	out := &ListDeadLetterSourceQueuesOutput{QueueUrls: make([]string, 0, len(names))}
	for _, name := range names {
		out.QueueUrls = append(out.QueueUrls, s.queueURL(call, q.Account, name))
	}
	if more && in.MaxResults != nil && len(names) > 0 {
		out.NextToken = sealToken(call, what, names[len(names)-1])
	}
	return out, nil
}

// A token is the last name of the previous page, prefixed by a digest of that name and of the
// list's parameters, so that it is only valid for the same list. The digest is no protection:
// a forged token lists what the caller may list anyway.
const tokenDigest = 12

func tokenSum(call *api.Call, prefix, after string) []byte {
	sum := sha256.Sum256([]byte(call.Region + "\x00" + call.Account + "\x00" + prefix + "\x00" + after))
	return sum[:tokenDigest]
}

func sealToken(call *api.Call, prefix, after string) string {
	return base64.StdEncoding.EncodeToString(append(tokenSum(call, prefix, after), after...))
}

func openToken(call *api.Call, prefix, token string) (after string, ok bool) {
	p, err := base64.StdEncoding.DecodeString(token)
	if err != nil || len(p) <= tokenDigest {
		return "", false
	}
	after = string(p[tokenDigest:])
	return after, string(p[:tokenDigest]) == string(tokenSum(call, prefix, after))
}

// unlessMissing is err if the queue exists, else the error of a queue that does not: AWS
// reports no other fault then. It is only called after another fault; otherwise the engine's
// command finds out.
func (s *Service) unlessMissing(ctx context.Context, q arn.ARN, err error) error {
	if _, missing := s.engine.QueueConfig(ctx, q); missing != nil {
		return missing
	}
	return err
}

// existing finds the queue of a request that AWS checks first, before the other parameters.
func (s *Service) existing(ctx context.Context, call *api.Call, url string) (arn.ARN, error) {
	q, err := queueOf(call, url)
	if err == nil {
		_, err = s.engine.QueueConfig(ctx, q)
	}
	return q, err
}

// PurgeQueue deletes all messages of a queue.
func (s *Service) PurgeQueue(ctx context.Context, call *api.Call, in *PurgeQueueInput) (*PurgeQueueOutput, error) {
	q, err := queueOf(call, in.QueueUrl)
	if err != nil {
		return nil, err
	}
	return nil, s.engine.PurgeQueue(ctx, q)
}

// DeleteQueue deletes a queue and its messages.
func (s *Service) DeleteQueue(ctx context.Context, call *api.Call, in *DeleteQueueInput) (*DeleteQueueOutput, error) {
	q, err := queueOf(call, in.QueueUrl)
	if err != nil {
		return nil, err
	}
	return nil, s.engine.DeleteQueue(ctx, q)
}

// GetQueueAttributes returns the named attributes of a queue, or all.
func (s *Service) GetQueueAttributes(ctx context.Context, call *api.Call, in *GetQueueAttributesInput) (*GetQueueAttributesOutput, error) {
	q, err := queueOf(call, in.QueueUrl)
	if err != nil {
		return nil, err
	}
	info, err := s.engine.QueueInfo(ctx, q)
	if err != nil {
		return nil, err
	}
	for _, name := range in.AttributeNames {
		if name != attribute.All && !attribute.Known(name) {
			return nil, fault.Newf(fault.InvalidAttributeName, "Unknown Attribute %s.", name)
		}
	}
	attrs := describe(info)
	if doc, ok := attrs[attribute.Policy]; ok {
		attrs[attribute.Policy] = s.principals.ShowPolicy(doc)
	}
	if !slices.Contains(in.AttributeNames, attribute.All) {
		maps.DeleteFunc(attrs, func(name, _ string) bool { return !slices.Contains(in.AttributeNames, name) })
	}
	if len(attrs) == 0 {
		return nil, nil // AWS omits an empty member
	}
	return &GetQueueAttributesOutput{Attributes: attrs}, nil
}

// alwaysReported are the attributes that a queue reports even if only their defaults apply;
// fifoReported are those of FIFO queues.
var alwaysReported = [...]string{
	attribute.DelaySeconds, attribute.MaximumMessageSize, attribute.MessageRetentionPeriod,
	attribute.ReceiveMessageWaitTimeSeconds, attribute.VisibilityTimeout, attribute.SqsManagedSseEnabled,
}

var fifoReported = [...]string{
	attribute.ContentBasedDeduplication, attribute.DeduplicationScope, attribute.FifoThroughputLimit,
}

// describe returns all attributes of a queue.
func describe(info shard.QueueInfo) map[string]string {
	attrs := make(map[string]string, len(info.Attributes)+16)
	for _, name := range alwaysReported {
		attrs[name], _ = attribute.Default(name)
	}
	if info.ARN.FIFO() {
		for _, name := range fifoReported {
			attrs[name], _ = attribute.Default(name)
		}
	}
	for name, v := range info.Attributes {
		if v != "" {
			attrs[name] = v
		}
	}
	// The reuse period of data keys is only reported for a queue with a key.
	if attrs[attribute.KmsMasterKeyID] == "" {
		delete(attrs, attribute.KmsDataKeyReusePeriodSeconds)
	} else if attrs[attribute.KmsDataKeyReusePeriodSeconds] == "" {
		attrs[attribute.KmsDataKeyReusePeriodSeconds], _ = attribute.Default(attribute.KmsDataKeyReusePeriodSeconds)
	}
	attrs[attribute.QueueArn] = info.ARN.String()
	for name, n := range map[string]int64{
		attribute.CreatedTimestamp:                      info.Created.Unix(),
		attribute.LastModifiedTimestamp:                 info.Modified.Unix(),
		attribute.ApproximateNumberOfMessages:           info.Counts.Visible,
		attribute.ApproximateNumberOfMessagesNotVisible: info.Counts.InFlight,
		attribute.ApproximateNumberOfMessagesDelayed:    info.Counts.Delayed,
	} {
		attrs[name] = strconv.FormatInt(n, 10)
	}
	return attrs
}

// SetQueueAttributes changes all the attributes that the request names, or none.
func (s *Service) SetQueueAttributes(ctx context.Context, call *api.Call, in *SetQueueAttributesInput) (*SetQueueAttributesOutput, error) {
	q, err := queueOf(call, in.QueueUrl)
	if err != nil {
		return nil, err
	}
	if _, err := s.engine.QueueConfig(ctx, q); err != nil {
		return nil, err
	}
	set, err := attribute.Normalize(in.Attributes, q.FIFO())
	if err != nil {
		return nil, err
	}
	// First the target's kind, account and region: for a queue of another account that is the
	// error, whether or not the queue exists.
	if doc := set[attribute.RedrivePolicy]; doc != "" {
		if err := attribute.Check(q, map[string]string{attribute.RedrivePolicy: doc}); err != nil {
			return nil, err
		}
	}
	if err := s.checkDeadLetter(ctx, q, set); err != nil {
		return nil, err
	}
	if err := s.bind(set); err != nil {
		return nil, err
	}
	return nil, s.engine.SetQueueAttributes(ctx, q, set)
}
