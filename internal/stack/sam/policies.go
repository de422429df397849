package sam

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"godwit.dev/godwit/internal/stack/document"
)

// template is a policy template that functions can use by name.
type template struct {
	parameters []string
	actions    []string
	resources  []string // ARNs after their partition, with {Parameter}; none: all
}

// templates are those of services that exist here, and of objects, which functions may read
// elsewhere.
var templates = map[string]template{
	"SQSPollerPolicy":                      {[]string{"QueueName"}, []string{"sqs:ChangeMessageVisibility", "sqs:ChangeMessageVisibilityBatch", "sqs:DeleteMessage", "sqs:DeleteMessageBatch", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"}, []string{"sqs:#:{QueueName}"}},
	"SQSSendMessagePolicy":                 {[]string{"QueueName"}, []string{"sqs:SendMessage*"}, []string{"sqs:#:{QueueName}"}},
	"SNSPublishMessagePolicy":              {[]string{"TopicName"}, []string{"sns:Publish"}, []string{"sns:#:{TopicName}"}},
	"SNSCrudPolicy":                        {[]string{"TopicName"}, []string{"sns:ListSubscriptionsByTopic", "sns:CreateTopic", "sns:SetTopicAttributes", "sns:Subscribe", "sns:Publish"}, []string{"sns:#:{TopicName}*"}},
	"LambdaInvokePolicy":                   {[]string{"FunctionName"}, []string{"lambda:InvokeFunction"}, []string{"lambda:#:function:{FunctionName}*"}},
	"KMSDecryptPolicy":                     {[]string{"KeyId"}, []string{"kms:Decrypt"}, []string{"kms:#:key/{KeyId}"}},
	"KMSEncryptPolicy":                     {[]string{"KeyId"}, []string{"kms:Encrypt"}, []string{"kms:#:key/{KeyId}"}},
	"FilterLogEventsPolicy":                {[]string{"LogGroupName"}, []string{"logs:FilterLogEvents"}, []string{"logs:#:log-group:{LogGroupName}:log-stream:*"}},
	"FirehoseWritePolicy":                  {[]string{"DeliveryStreamName"}, []string{"firehose:PutRecord", "firehose:PutRecordBatch"}, []string{"firehose:#:deliverystream/{DeliveryStreamName}"}},
	"CloudWatchPutMetricPolicy":            {nil, []string{"cloudwatch:PutMetricData"}, nil},
	"CloudWatchDescribeAlarmHistoryPolicy": {nil, []string{"cloudwatch:DescribeAlarmHistory"}, nil},
	"SSMParameterReadPolicy":               {[]string{"ParameterName"}, []string{"ssm:GetParameters", "ssm:GetParameter", "ssm:GetParametersByPath"}, []string{"ssm:#:parameter/{ParameterName}"}},
	"S3ReadPolicy":                         {[]string{"BucketName"}, []string{"s3:GetObject", "s3:ListBucket", "s3:GetBucketLocation", "s3:GetObjectVersion", "s3:GetLifecycleConfiguration"}, []string{"s3:::{BucketName}", "s3:::{BucketName}/*"}},
	"S3WritePolicy":                        {[]string{"BucketName"}, []string{"s3:PutObject", "s3:PutObjectAcl", "s3:PutLifecycleConfiguration"}, []string{"s3:::{BucketName}", "s3:::{BucketName}/*"}},
}

// role makes the function's role, and returns its ARN.
func (f *function) role() (*node, error) {
	var own []*node
	add := func(document *node) {
		own = append(own, f.object("PolicyName", f.id+"RolePolicy"+strconv.Itoa(len(own)), "PolicyDocument", document))
	}
	var managed []*node
	for _, name := range f.managed {
		managed = append(managed, f.object("Fn::Sub", "arn:${AWS::Partition}:iam::aws:policy/"+name))
	}
	asked := []*node{}
	if policies := f.properties.Get("Policies"); policies != nil {
		asked = []*node{policies}
		if policies.Kind == document.List {
			asked = policies.Items
		}
	}
	for i, policy := range asked {
		name, parameters := policy.Only()
		switch {
		case policy.Kind == document.String && !strings.HasPrefix(policy.Text, "arn:"):
			managed = append(managed, f.object("Fn::Sub", "arn:${AWS::Partition}:iam::aws:policy/"+policy.Text))
		case policy.Kind == document.String, call(policy):
			managed = append(managed, policy.Clone())
		case policy.Get("Statement") != nil:
			add(policy)
		case policy.Kind == document.Map && strings.HasSuffix(name, "Policy"):
			statement, err := f.template(name, parameters)
			if err != nil {
				return nil, err
			}
			add(f.object("Statement", f.list(statement)))
		default:
			return nil, f.invalid(ErrPolicy.With(i))
		}
	}
	for _, statement := range f.statements {
		add(f.policy(statement))
	}
	trust := f.properties.Get("AssumeRolePolicyDocument")
	if trust == nil {
		trust = f.policy(f.object("Effect", "Allow", "Action", f.texts("sts:AssumeRole"), "Principal", f.object("Service", f.texts("lambda.amazonaws.com"))))
	}
	var policies *node
	if own != nil {
		policies = f.list(own...)
	}
	id, err := f.add("Role", "AWS::IAM::Role", f.object(
		"AssumeRolePolicyDocument", trust, "ManagedPolicyArns", f.list(managed...), "Policies", policies,
		"Path", f.properties.Get("RolePath"), "PermissionsBoundary", f.properties.Get("PermissionsBoundary"), "Tags", f.tags()))
	return f.getAtt(id, "Arn"), err
}

// template makes the statement of a policy template.
func (f *function) template(name string, parameters *node) (*node, error) {
	t, ok := templates[name]
	if !ok {
		return nil, f.invalid(ErrPolicyTemplate.With(name, strings.Join(slices.Sorted(maps.Keys(templates)), ", ")))
	}
	var values []any
	for _, p := range t.parameters {
		v := parameters.Get(p)
		if v == nil {
			return nil, f.invalid(ErrPolicyValue.With(name, p))
		}
		values = append(values, p, v)
	}
	if len(members(parameters)) > len(t.parameters) {
		return nil, f.invalid(ErrPolicyValues.With(name))
	}
	if t.resources == nil {
		return f.allow(f.texts(t.actions...), f.text("*")), nil
	}
	var resources []*node
	for _, r := range t.resources {
		r = strings.NewReplacer("{", "${", "#", "${AWS::Region}:${AWS::AccountId}").Replace(r)
		resources = append(resources, f.object("Fn::Sub", f.list(f.text("arn:${AWS::Partition}:"+r), f.object(values...))))
	}
	if len(resources) == 1 {
		return f.allow(f.texts(t.actions...), resources[0]), nil
	}
	return f.allow(f.texts(t.actions...), f.list(resources...)), nil
}
