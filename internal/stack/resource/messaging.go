package resource

// fifoSuffix is the suffix of the names of FIFO queues and topics.
func fifoSuffix(property string) func(properties map[string]any) string {
	return func(properties map[string]any) string {
		if on, _ := properties[property].(bool); on {
			return ".fifo"
		}
		return ""
	}
}

var sqsTypes = []Type{
	{
		Name: "AWS::SQS::Queue", NameProperty: "QueueName", MaxName: 80, Suffix: fifoSuffix("FifoQueue"), Tags: "Tags",
		Attributes: []string{"Arn", "QueueName", "QueueUrl"},
		Properties: map[string]Property{
			"ContentBasedDeduplication": prop(Boolean), "DeduplicationScope": prop(String), "DelaySeconds": prop(Integer),
			"FifoQueue": prop(Boolean, replaces), "FifoThroughputLimit": prop(String), "KmsDataKeyReusePeriodSeconds": prop(Integer),
			"KmsMasterKeyId": prop(String), "MaximumMessageSize": prop(Integer), "MessageRetentionPeriod": prop(Integer),
			"QueueName": prop(String, replaces), "ReceiveMessageWaitTimeSeconds": prop(Integer), "RedriveAllowPolicy": prop(Document),
			"RedrivePolicy": prop(Document), "SqsManagedSseEnabled": prop(Boolean), "Tags": prop(List), "VisibilityTimeout": prop(Integer),
		},
	},
	{
		Name: "AWS::SQS::QueuePolicy", Attributes: []string{"Id"},
		Properties: map[string]Property{"PolicyDocument": prop(Document, required), "Queues": prop(Strings, required)},
	},
	{
		Name:       "AWS::SQS::QueueInlinePolicy",
		Properties: map[string]Property{"PolicyDocument": prop(Document, required), "Queue": prop(String, required|replaces)},
	},
}

var snsTypes = []Type{
	{
		Name: "AWS::SNS::Topic", NameProperty: "TopicName", MaxName: 256, Suffix: fifoSuffix("FifoTopic"), Tags: "Tags",
		Attributes: []string{"TopicArn", "TopicName"},
		Properties: map[string]Property{
			"ArchivePolicy": prop(Document), "ContentBasedDeduplication": prop(Boolean), "DataProtectionPolicy": prop(Document),
			"DeliveryStatusLogging": prop(List), "DisplayName": prop(String), "FifoThroughputScope": prop(String),
			"FifoTopic": prop(Boolean, replaces), "KmsMasterKeyId": prop(String), "SignatureVersion": prop(String), "Subscription": prop(List),
			"Tags": prop(List), "TopicName": prop(String, replaces), "TracingConfig": prop(String),
		},
	},
	{
		Name: "AWS::SNS::TopicPolicy", Attributes: []string{"Id"},
		Properties: map[string]Property{"PolicyDocument": prop(Document, required), "Topics": prop(Strings, required)},
	},
	{
		Name:       "AWS::SNS::TopicInlinePolicy",
		Properties: map[string]Property{"PolicyDocument": prop(Document, required), "TopicArn": prop(String, required|replaces)},
	},
	{
		Name: "AWS::SNS::Subscription", Attributes: []string{"Arn"},
		Properties: map[string]Property{
			"DeliveryPolicy": prop(Document), "Endpoint": prop(String, replaces), "FilterPolicy": prop(Document), "FilterPolicyScope": prop(String),
			"Protocol": prop(String, required|replaces), "RawMessageDelivery": prop(Boolean), "RedrivePolicy": prop(Document), "Region": prop(String),
			"ReplayPolicy": prop(Document), "SubscriptionRoleArn": prop(String), "TopicArn": prop(String, required|replaces),
		},
	},
}
