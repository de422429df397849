package sam

import (
	"slices"

	"godwit.dev/godwit/internal/stack/document"
)

// events makes the resources for the function's events.
func (f *function) events() error {
	for _, m := range members(f.properties.Get("Events")) {
		typ, properties := m.Value.Get("Type"), m.Value.Get("Properties")
		if typ == nil {
			return f.invalid(ErrEvent.With(m.Name, ErrEventNoType))
		}
		var err error
		switch typ.Text {
		case "SQS":
			err = f.queueEvent(m.Name, properties)
		case "SNS":
			err = f.topicEvent(m.Name, properties)
		default:
			err = f.invalid(ErrEvent.With(m.Name, ErrEventType.With(typ.Text)))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mapped are the properties of an event source mapping that have the same name in an event.
var mapped = []string{
	"BatchSize", "Enabled", "FilterCriteria", "FunctionResponseTypes", "KmsKeyArn", "MaximumBatchingWindowInSeconds", "MetricsConfig",
	"ProvisionedPollerConfig", "ScalingConfig",
}

const pollQueues = "service-role/AWSLambdaSQSQueueExecutionRole"

func (f *function) queueEvent(event string, properties *node) error {
	queue := properties.Get("Queue")
	if queue == nil {
		return f.invalid(ErrEvent.With(event, ErrNoQueue))
	}
	for _, m := range properties.Members {
		if m.Name != "Queue" && !slices.Contains(mapped, m.Name) {
			return f.invalid(ErrEvent.With(event, ErrProperty.With(m.Name, "SQS")))
		}
	}
	return f.mapping(event, queue, properties)
}

// mapping makes an event source mapping from a queue.
func (f *function) mapping(suffix string, queue, properties *node) error {
	pairs := []any{"EventSourceArn", queue, "FunctionName", f.target}
	for _, m := range members(properties) {
		if slices.Contains(mapped, m.Name) {
			pairs = append(pairs, m.Name, m.Value)
		}
	}
	if !slices.Contains(f.managed, pollQueues) {
		f.managed = append(f.managed, pollQueues)
	}
	_, err := f.add(suffix, "AWS::Lambda::EventSourceMapping", f.object(pairs...))
	return err
}

func (f *function) topicEvent(event string, properties *node) error {
	topic := properties.Get("Topic")
	if topic == nil {
		return f.invalid(ErrEvent.With(event, ErrNoTopic))
	}
	for _, m := range properties.Members {
		if !slices.Contains([]string{"Topic", "FilterPolicy", "FilterPolicyScope", "RedrivePolicy", "Region", "SqsSubscription"}, m.Name) {
			return f.invalid(ErrEvent.With(event, ErrProperty.With(m.Name, "SNS")))
		}
	}
	through := properties.Get("SqsSubscription")
	switch {
	case through != nil && through.Kind == document.Map:
		return f.throughQueue(event, topic, properties, through)
	case through != nil && through.Text == "true":
		queue, err := f.add(event+"Queue", "AWS::SQS::Queue", nil)
		if err != nil {
			return err
		}
		return f.throughQueue(event, topic, properties, f.object("QueueArn", f.getAtt(queue, "Arn"), "QueueUrl", f.ref(queue)))
	}
	if err := f.subscription(event, "lambda", f.endpoint(), topic, properties); err != nil {
		return err
	}
	_, err := f.add(event+"Permission", "AWS::Lambda::Permission", f.object("Action", "lambda:InvokeFunction", "FunctionName", f.target,
		"Principal", "sns.amazonaws.com", "SourceArn", topic))
	return err
}

// endpoint is the ARN that events invoke.
func (f *function) endpoint() *node {
	if f.qualifier() != nil {
		return f.target // an alias's Ref is its ARN
	}
	return f.getAtt(f.id, "Arn")
}

func (f *function) subscription(event, protocol string, endpoint, topic, properties *node) error {
	_, err := f.add(event, "AWS::SNS::Subscription", f.object("Endpoint", endpoint, "Protocol", protocol, "TopicArn", topic,
		"Region", properties.Get("Region"), "FilterPolicy", properties.Get("FilterPolicy"),
		"FilterPolicyScope", properties.Get("FilterPolicyScope"), "RedrivePolicy", properties.Get("RedrivePolicy")))
	return err
}

// throughQueue subscribes a queue to a topic, lets the topic send to it, and maps it to the function.
func (f *function) throughQueue(event string, topic, properties, queue *node) error {
	address, url := queue.Get("QueueArn"), queue.Get("QueueUrl")
	if address == nil || url == nil {
		return f.invalid(ErrEvent.With(event, ErrNoQueueURL))
	}
	if err := f.subscription(event, "sqs", address, topic, properties); err != nil {
		return err
	}
	policy := f.id + event + "QueuePolicy"
	if id := queue.Get("QueuePolicyLogicalId"); id != nil {
		policy = id.Text
	}
	statement := f.object("Action", "sqs:SendMessage", "Effect", "Allow", "Principal", f.object("Service", "sns.amazonaws.com"), "Resource", address,
		"Condition", f.object("ArnEquals", f.object("aws:SourceArn", topic)))
	properties = f.object("PolicyDocument", f.policy(statement), "Queues", f.list(url.Clone()))
	if err := f.x.add(f.node, f.id, policy, f.resource(f.node, "AWS::SQS::QueuePolicy", properties)); err != nil {
		return err
	}
	batch := queue.Get("BatchSize")
	if batch == nil {
		batch = document.NewString("10", queue.Line)
	}
	return f.mapping(event+"EventSourceMapping", address, f.object("BatchSize", batch, "Enabled", queue.Get("Enabled")))
}
