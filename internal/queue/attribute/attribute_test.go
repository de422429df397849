package attribute_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/attribute"
)

const (
	dlq     = "arn:aws:sqs:us-east-1:000000000000:dlq"
	longDoc = `{"Statement":"` + "%s" + `"}`
)

func statements(all ...string) string { return `{"Statement":[` + strings.Join(all, ",") + `]}` }

// list is a JSON list of n strings.
func list(n int, value string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(`"`+value+`",`, n), ",") + "]"
}

func actions(n int) string    { return `{"Action":` + list(n, "sqs:SendMessage") + `}` }
func principals(n int) string { return `{"Principal":{"AWS":` + list(n, "111111111111") + `}}` }

func TestCanonicalAccepts(t *testing.T) {
	for _, tt := range []struct {
		name, value string
		fifo        bool
		want        string
	}{
		{"DelaySeconds", "0", false, "0"},
		{"DelaySeconds", "900", false, "900"},
		{"DelaySeconds", "007", false, "7"},
		{"MaximumMessageSize", "1024", false, "1024"},
		{"MaximumMessageSize", "1048576", false, "1048576"},
		{"MessageRetentionPeriod", "60", false, "60"},
		{"MessageRetentionPeriod", "1209600", false, "1209600"},
		{"ReceiveMessageWaitTimeSeconds", "0", false, "0"},
		{"ReceiveMessageWaitTimeSeconds", "20", false, "20"},
		{"VisibilityTimeout", "0", false, "0"},
		{"VisibilityTimeout", "43200", false, "43200"},
		{"KmsDataKeyReusePeriodSeconds", "60", false, "60"},
		{"KmsDataKeyReusePeriodSeconds", "86400", false, "86400"},
		{"KmsMasterKeyId", "alias/aws/sqs", false, "alias/aws/sqs"},
		{"KmsMasterKeyId", "", false, ""},
		{"SqsManagedSseEnabled", "true", false, "true"},
		{"SqsManagedSseEnabled", "false", false, "false"},
		{"Policy", "", false, ""},
		{"Policy", "{ \"Version\": \"2012-10-17\",\n\"Statement\": [] }", false, `{"Version":"2012-10-17","Statement":[]}`},
		{"Policy", statements(actions(7), actions(7), principals(49), `{"Principal":{"AWS":"111111111111"}}`, `{"Principal":"*","Action":"*"}`), false, statements(actions(7), actions(7), principals(49), `{"Principal":{"AWS":"111111111111"}}`, `{"Principal":"*","Action":"*"}`)},
		{"RedrivePolicy", "", false, ""},
		{"RedrivePolicy", `{"deadLetterTargetArn":"` + dlq + `","maxReceiveCount":3}`, false, `{"deadLetterTargetArn":"` + dlq + `","maxReceiveCount":3}`},
		{"RedrivePolicy", ` { "maxReceiveCount" : "1000", "deadLetterTargetArn":"` + dlq + `"}`, false, `{"deadLetterTargetArn":"` + dlq + `","maxReceiveCount":1000}`},
		{"RedriveAllowPolicy", "", false, ""},
		{"RedriveAllowPolicy", `{ "redrivePermission": "allowAll" }`, false, `{"redrivePermission":"allowAll"}`},
		{"RedriveAllowPolicy", `{"redrivePermission":"denyAll","sourceQueueArns":[]}`, false, `{"redrivePermission":"denyAll"}`},
		{"RedriveAllowPolicy", `{"sourceQueueArns":["` + dlq + `","` + dlq + `2"],"redrivePermission":"byQueue"}`, false, `{"redrivePermission":"byQueue","sourceQueueArns":["` + dlq + `","` + dlq + `2"]}`},
		{"FifoQueue", "true", true, "true"},
		{"FifoQueue", "True", true, "true"},
		{"ContentBasedDeduplication", "FALSE", true, "false"},
		{"ContentBasedDeduplication", "true", true, "true"},
		{"ContentBasedDeduplication", "false", true, "false"},
		{"DeduplicationScope", "queue", true, "queue"},
		{"DeduplicationScope", "messageGroup", true, "messageGroup"},
		{"FifoThroughputLimit", "perQueue", true, "perQueue"},
		{"FifoThroughputLimit", "perMessageGroupId", true, "perMessageGroupId"},
	} {
		got, err := attribute.Canonical(tt.name, tt.value, tt.fifo)
		if err != nil || got != tt.want {
			t.Errorf("Canonical(%s, %q, %t) = %q, %v; want %q", tt.name, tt.value, tt.fifo, got, err, tt.want)
			continue
		}
		if again, err := attribute.Canonical(tt.name, got, tt.fifo); err != nil || again != got {
			t.Errorf("Canonical(%s, %q) is not its own canonical form: %q, %v", tt.name, got, again, err)
		}
	}
}

func TestCanonicalRefuses(t *testing.T) {
	sources := `"` + strings.Repeat(dlq+`","`, 10) + dlq + `"`
	const format = "Amazon SQS can't create the redrive allow policy, as it’s in an unsupported format."
	redrive := func(doc, reason string) string {
		return "Value " + doc + " for parameter RedrivePolicy is invalid. Reason: " + reason
	}
	allow := func(doc, reason string) string {
		return "Value " + doc + " for parameter RedriveAllowPolicy is invalid. Reason: " + reason
	}
	for _, tt := range []struct {
		name, value string
		fifo        bool
		kind        fault.Kind
		text        string // "" means AWS's short form
	}{
		{"DelaySeconds", "901", false, fault.InvalidAttributeValue, ""},
		{"DelaySeconds", "-1", false, fault.InvalidAttributeValue, ""},
		{"DelaySeconds", "", false, fault.InvalidAttributeValue, ""},
		{"DelaySeconds", "1.5", false, fault.InvalidAttributeValue, ""},
		{"DelaySeconds", " 1", false, fault.InvalidAttributeValue, ""},
		{"DelaySeconds", "+1", false, fault.InvalidAttributeValue, ""},
		{"DelaySeconds", "99999999999999999999999999", false, fault.InvalidAttributeValue, ""},
		{"MaximumMessageSize", "1023", false, fault.InvalidAttributeValue, ""},
		{"MaximumMessageSize", "1048577", false, fault.InvalidAttributeValue, ""},
		{"MessageRetentionPeriod", "59", false, fault.InvalidAttributeValue, ""},
		{"MessageRetentionPeriod", "1209601", false, fault.InvalidAttributeValue, ""},
		{"ReceiveMessageWaitTimeSeconds", "21", false, fault.InvalidAttributeValue, ""},
		{"VisibilityTimeout", "43201", false, fault.InvalidAttributeValue, ""},
		{"KmsDataKeyReusePeriodSeconds", "59", false, fault.InvalidAttributeValue, ""},
		{"KmsDataKeyReusePeriodSeconds", "86401", false, fault.InvalidAttributeValue, ""},
		{"KmsMasterKeyId", "a b", false, fault.InvalidAttributeValue, ""},
		{"KmsMasterKeyId", strings.Repeat("k", 2049), false, fault.InvalidAttributeValue, ""},
		{"SqsManagedSseEnabled", "yes", false, fault.InvalidAttributeValue, ""},
		{"SqsManagedSseEnabled", "", false, fault.InvalidAttributeValue, ""},
		{"Policy", "[]", false, fault.InvalidAttributeValue, ""},
		{"Policy", "null", false, fault.InvalidAttributeValue, ""},
		{"Policy", "{", false, fault.InvalidAttributeValue, ""},
		{"Policy", strings.Replace(longDoc, "%s", strings.Repeat("x", 8192), 1), false, fault.OverLimit, "Submitted policy is over max allowed size."},
		{"Policy", strings.Repeat("x", 8193), false, fault.InvalidAttributeValue, ""},
		{"Policy", statements(slices.Repeat([]string{actions(1)}, 21)...), false, fault.OverLimit, "21 statements were found in the submitted policy, max allowed is 20"},
		{"Policy", statements(actions(8)), false, fault.OverLimit, "8 actions were found in a statement from the submitted policy, max allowed is 7"},
		{"Policy", `{"Statement":` + actions(8) + `}`, false, fault.OverLimit, "8 actions were found in a statement from the submitted policy, max allowed is 7"},
		{"Policy", statements(`{"Action":7}`, `null`, `"x"`, principals(1), actions(8)), false, fault.OverLimit, "8 actions were found in a statement from the submitted policy, max allowed is 7"},
		{"Policy", statements(principals(50), `{"Principal":{"AWS":"111111111111"}}`), false, fault.OverLimit, "51 Principals were found, maximum allowed is 50."},
		{"FifoQueue", "maybe", true, fault.InvalidAttributeValue, ""},
		{"FifoQueue", "False", true, fault.InvalidAttributeValue, "Invalid value for the parameter FifoQueue. Reason: Modifying queue type is not supported."},
		{"DeduplicationScope", "group", true, fault.InvalidAttributeValue, ""},
		{"FifoThroughputLimit", "", true, fault.InvalidAttributeValue, ""},

		{"Colour", "red", false, fault.InvalidAttributeName, "Unknown Attribute Colour."},
		{"All", "x", false, fault.InvalidAttributeName, "Unknown Attribute All."},
		{"QueueArn", "x", false, fault.InvalidAttributeName, "Unknown Attribute QueueArn."},
		{"CreatedTimestamp", "1", false, fault.InvalidAttributeName, "Unknown Attribute CreatedTimestamp."},
		{"LastModifiedTimestamp", "1", false, fault.InvalidAttributeName, "Unknown Attribute LastModifiedTimestamp."},
		{"ApproximateNumberOfMessages", "1", false, fault.InvalidAttributeName, "Unknown Attribute ApproximateNumberOfMessages."},
		{"ApproximateNumberOfMessagesDelayed", "1", false, fault.InvalidAttributeName, "Unknown Attribute ApproximateNumberOfMessagesDelayed."},
		{"ApproximateNumberOfMessagesNotVisible", "1", false, fault.InvalidAttributeName, "Unknown Attribute ApproximateNumberOfMessagesNotVisible."},
		{"FifoQueue", "true", false, fault.InvalidAttributeName, "Unknown Attribute FifoQueue."},
		{"FifoQueue", "false", false, fault.InvalidAttributeName, "Unknown Attribute FifoQueue."},
		{"ContentBasedDeduplication", "true", false, fault.InvalidAttributeName, "Unknown Attribute ContentBasedDeduplication."},
		{"DeduplicationScope", "queue", false, fault.InvalidAttributeName, "You can specify the DeduplicationScope only when FifoQueue is set to true."},
		{"FifoThroughputLimit", "perQueue", false, fault.InvalidAttributeName, "You can specify the FifoThroughputLimit only when FifoQueue is set to true."},

		{"RedrivePolicy", "no", false, fault.InvalidParameter, redrive("no", "Redrive policy is not a valid JSON map.")},
		{"RedrivePolicy", `{} {}`, false, fault.InvalidParameter, redrive("{} {}", "Redrive policy is not a valid JSON map.")},
		{"RedrivePolicy", `{}`, false, fault.InvalidParameter, redrive("{}", "Redrive policy does not contain mandatory attribute: maxReceiveCount.")},
		{"RedrivePolicy", `{"maxReceiveCount":1}`, false, fault.InvalidParameter, redrive(`{"maxReceiveCount":1}`, "Redrive policy does not contain mandatory attribute: deadLetterTargetArn.")},
		{"RedrivePolicy", `{"deadLetterTargetArn":"` + dlq + `"}`, false, fault.InvalidParameter, redrive(`{"deadLetterTargetArn":"`+dlq+`"}`, "Redrive policy does not contain mandatory attribute: maxReceiveCount.")},
		{"RedrivePolicy", `{"deadLetterTargetArn":"` + dlq + `","maxReceiveCount":null}`, false, fault.InvalidParameter, redrive(`{"deadLetterTargetArn":"`+dlq+`","maxReceiveCount":null}`, "Redrive policy does not contain mandatory attribute: maxReceiveCount.")},
		{"RedrivePolicy", `{"deadLetterTargetArn":"` + dlq + `","maxReceiveCount":0}`, false, fault.InvalidParameter, redrive(`{"deadLetterTargetArn":"`+dlq+`","maxReceiveCount":0}`, "Invalid value for maxReceiveCount: 0, valid values are from 1 to 1000 both inclusive.")},
		{"RedrivePolicy", `{"deadLetterTargetArn":"` + dlq + `","maxReceiveCount":"1001"}`, false, fault.InvalidParameter, redrive(`{"deadLetterTargetArn":"`+dlq+`","maxReceiveCount":"1001"}`, "Invalid value for maxReceiveCount: 1001, valid values are from 1 to 1000 both inclusive.")},
		{"RedrivePolicy", `{"deadLetterTargetArn":"` + dlq + `","maxReceiveCount":1.5}`, false, fault.InvalidParameter, redrive(`{"deadLetterTargetArn":"`+dlq+`","maxReceiveCount":1.5}`, "Invalid value for maxReceiveCount: 1.5, valid values are from 1 to 1000 both inclusive.")},
		{"RedrivePolicy", `{"deadLetterTargetArn":7,"maxReceiveCount":1}`, false, fault.InvalidParameter, redrive(`{"deadLetterTargetArn":7,"maxReceiveCount":1}`, "Invalid value for deadLetterTargetArn.")},
		{"RedrivePolicy", `{"deadLetterTargetArn":"dlq","maxReceiveCount":1}`, false, fault.InvalidParameter, redrive(`{"deadLetterTargetArn":"dlq","maxReceiveCount":1}`, "Invalid value for deadLetterTargetArn.")},
		{"RedrivePolicy", `{"deadLetterTargetArn":"arn:aws:sns:us-east-1:000000000000:t","maxReceiveCount":1}`, false, fault.InvalidParameter, redrive(`{"deadLetterTargetArn":"arn:aws:sns:us-east-1:000000000000:t","maxReceiveCount":1}`, "Only SQS queues are valid resources for deadLetterTargetArn.")},
		{"RedrivePolicy", `{"DeadLetterTargetArn":"` + dlq + `","maxReceiveCount":1}`, false, fault.InvalidParameter, redrive(`{"DeadLetterTargetArn":"`+dlq+`","maxReceiveCount":1}`, "Redrive policy does not contain mandatory attribute: deadLetterTargetArn.")},
		{"RedrivePolicy", `{"DeadLetterTargetArn":"` + dlq + `","MaxReceiveCount":1}`, false, fault.InvalidParameter, redrive(`{"DeadLetterTargetArn":"`+dlq+`","MaxReceiveCount":1}`, "Redrive policy does not contain mandatory attribute: maxReceiveCount.")},
		{"RedrivePolicy", `{"deadLetterTargetArn":"` + dlq + `","maxReceiveCount":1,"x":1}`, false, fault.InvalidParameter, redrive(`{"deadLetterTargetArn":"`+dlq+`","maxReceiveCount":1,"x":1}`, "Only following attributes are supported: [deadLetterTargetArn, maxReceiveCount].")},

		{"RedriveAllowPolicy", "[]", false, fault.InvalidAttributeValue, allow("[]", format)},
		{"RedriveAllowPolicy", "{}", false, fault.InvalidAttributeValue, allow("{}", format)},
		{"RedriveAllowPolicy", `{"redrivePermission":"maybe"}`, false, fault.InvalidAttributeValue, allow(`{"redrivePermission":"maybe"}`, format)},
		{"RedriveAllowPolicy", `{"redrivePermission":"allowAll","x":1}`, false, fault.InvalidAttributeValue, allow(`{"redrivePermission":"allowAll","x":1}`, format)},
		{"RedriveAllowPolicy", `{"redrivePermission":"byQueue","sourceQueueArns":[null]}`, false, fault.InvalidAttributeValue, allow(`{"redrivePermission":"byQueue","sourceQueueArns":[null]}`, format)},
		{"RedriveAllowPolicy", `{"redrivePermission":"byQueue"}`, false, fault.InvalidAttributeValue, allow(`{"redrivePermission":"byQueue"}`, "Amazon SQS can't create the redrive allow policy. When you specify the byQueue permission type, you must also specify one or more sourceQueueArns values.")},
		{"RedriveAllowPolicy", `{"redrivePermission":"denyAll","sourceQueueArns":["` + dlq + `"]}`, false, fault.InvalidAttributeValue, allow(`{"redrivePermission":"denyAll","sourceQueueArns":["`+dlq+`"]}`, "Amazon SQS can't create the redrive allow policy. To specify one or more source queue ARNs, you must set redrivePermission to byQueue.")},
		{"RedriveAllowPolicy", `{"redrivePermission":"byQueue","sourceQueueArns":[` + sources + `]}`, false, fault.InvalidAttributeValue, allow(`{"redrivePermission":"byQueue","sourceQueueArns":[`+sources+`]}`, "Amazon SQS can't create the redrive allow policy. You can specify up to 10 source queue ARNs.")},
		{"RedriveAllowPolicy", `{"redrivePermission":"byQueue","sourceQueueArns":["q"]}`, false, fault.InvalidAttributeValue, allow(`{"redrivePermission":"byQueue","sourceQueueArns":["q"]}`, "Amazon SQS can't create the redrive allow policy. A sourceQueueArns value is not the ARN of a queue.")},
	} {
		_, err := attribute.Canonical(tt.name, tt.value, tt.fifo)
		text := tt.text
		if text == "" {
			text = "Invalid value for the parameter " + tt.name + "."
		}
		if err == nil || fault.KindOf(err) != tt.kind || refusal.Text(err) != text {
			t.Errorf("Canonical(%s, %q, %t): %v (kind %d)\nwant %s (kind %d)", tt.name, tt.value, tt.fifo, err, fault.KindOf(err), text, tt.kind)
		}
	}
}

func TestDefaults(t *testing.T) {
	want := map[string]string{
		"DelaySeconds": "0", "MaximumMessageSize": "1048576", "MessageRetentionPeriod": "345600",
		"ReceiveMessageWaitTimeSeconds": "0", "VisibilityTimeout": "30", "KmsDataKeyReusePeriodSeconds": "300",
		"SqsManagedSseEnabled": "true", "FifoQueue": "false", "ContentBasedDeduplication": "false",
		"DeduplicationScope": "queue", "FifoThroughputLimit": "perQueue",
	}
	none := []string{
		"RedrivePolicy", "RedriveAllowPolicy", "Policy", "KmsMasterKeyId", "QueueArn", "CreatedTimestamp",
		"LastModifiedTimestamp", "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible",
		"ApproximateNumberOfMessagesDelayed",
	}
	for name, value := range want {
		if got, ok := attribute.Default(name); !ok || got != value || !attribute.Known(name) {
			t.Errorf("Default(%s) = %q, %t; want %q", name, got, ok, value)
		}
	}
	for _, name := range none {
		if got, ok := attribute.Default(name); ok || !attribute.Known(name) {
			t.Errorf("Default(%s) = %q; want none, of a known attribute", name, got)
		}
	}
	for _, name := range []string{"All", "Colour", "delaySeconds"} {
		if _, ok := attribute.Default(name); ok || attribute.Known(name) {
			t.Errorf("%s is taken for an attribute", name)
		}
	}
}

func TestNormalize(t *testing.T) {
	for _, tt := range []struct{ in, want map[string]string }{
		{nil, map[string]string{}},
		{map[string]string{"DelaySeconds": "05", "Policy": ""}, map[string]string{"DelaySeconds": "5", "Policy": ""}},
		{map[string]string{"KmsMasterKeyId": "k"}, map[string]string{"KmsMasterKeyId": "k", "SqsManagedSseEnabled": "false"}},
		{map[string]string{"KmsMasterKeyId": ""}, map[string]string{"KmsMasterKeyId": ""}},
		{map[string]string{"KmsMasterKeyId": "k", "SqsManagedSseEnabled": "true"}, map[string]string{"KmsMasterKeyId": "k", "SqsManagedSseEnabled": "true"}},
	} {
		got, err := attribute.Normalize(tt.in, false)
		if err != nil {
			t.Errorf("Normalize(%v): %v", tt.in, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("Normalize(%v) (-want +got):\n%s", tt.in, diff)
		}
	}
	// Two faults: the first by name is the one reported, every time.
	for range 20 {
		_, err := attribute.Normalize(map[string]string{"VisibilityTimeout": "x", "Colour": "red", "DelaySeconds": "x"}, false)
		if err == nil || refusal.Text(err) != "Unknown Attribute Colour." {
			t.Fatalf("Normalize reports %v", err)
		}
	}
}

func TestCheck(t *testing.T) {
	self := arn.Queue("us-east-1", "000000000000", "q")
	fifo := arn.Queue("us-east-1", "000000000000", "q.fifo")
	policy := func(target string) string {
		return `{"deadLetterTargetArn":"` + target + `","maxReceiveCount":3}`
	}
	refuses := func(target, reason string) string {
		return "Value " + policy(target) + " for parameter RedrivePolicy is invalid. Reason: " + reason
	}
	for _, tt := range []struct {
		self  arn.ARN
		attrs map[string]string
		kind  fault.Kind
		text  string // "" means accepted
	}{
		{self, nil, 0, ""},
		{self, map[string]string{"RedrivePolicy": policy(dlq)}, 0, ""},
		{fifo, map[string]string{"RedrivePolicy": policy(dlq + ".fifo")}, 0, ""},
		{
			self,
			map[string]string{"RedrivePolicy": policy(dlq + ".fifo")},
			fault.InvalidParameter,
			refuses(dlq+".fifo", "Dead-letter queue must be same type of queue as the source."),
		},
		{
			fifo,
			map[string]string{"RedrivePolicy": policy(dlq)},
			fault.InvalidParameter,
			refuses(dlq, "Dead-letter queue must be same type of queue as the source."),
		},
		{
			self,
			map[string]string{"RedrivePolicy": policy("arn:aws:sqs:us-east-1:111111111111:dlq")},
			fault.InvalidParameter,
			refuses("arn:aws:sqs:us-east-1:111111111111:dlq", "Dead-letter target owner should be same as the source."),
		},
		{
			self,
			map[string]string{"RedrivePolicy": policy("arn:aws:sqs:eu-west-1:000000000000:dlq")},
			fault.InvalidParameter,
			refuses("arn:aws:sqs:eu-west-1:000000000000:dlq", "Dead-letter target must be in same region as the source."),
		},
		{self, map[string]string{"KmsMasterKeyId": "k", "SqsManagedSseEnabled": "false"}, 0, ""},
		{
			self,
			map[string]string{"KmsMasterKeyId": "k", "SqsManagedSseEnabled": "true"},
			fault.InvalidAttributeName,
			"You can use one type of server-side encryption (SSE) at one time. You can either enable KMS SSE or SQS SSE.",
		},
		{fifo, map[string]string{"FifoThroughputLimit": "perMessageGroupId", "DeduplicationScope": "messageGroup"}, 0, ""},
		{
			fifo,
			map[string]string{"FifoThroughputLimit": "perMessageGroupId"},
			fault.InvalidAttributeValue,
			"The perMessageGroupId value is allowed only when the value for DeduplicationScope is messageGroup.",
		},
	} {
		err := attribute.Check(tt.self, tt.attrs)
		if tt.text == "" {
			if err != nil {
				t.Errorf("Check(%v): %v", tt.attrs, err)
			}
			continue
		}
		if err == nil || fault.KindOf(err) != tt.kind || refusal.Text(err) != tt.text {
			t.Errorf("Check(%v): %v\nwant %s", tt.attrs, err, tt.text)
		}
	}
}

func TestConfig(t *testing.T) {
	defaults := queue.Config{Visibility: 30 * time.Second, Retention: 96 * time.Hour, MaxMessageSize: 1 << 20, KeyReuse: 5 * time.Minute, Managed: true}
	for _, tt := range []struct {
		attrs map[string]string
		want  queue.Config
	}{
		{nil, defaults},
		{map[string]string{"RedrivePolicy": "", "KmsMasterKeyId": ""}, defaults},
		{
			map[string]string{
				"DelaySeconds": "900", "VisibilityTimeout": "0", "ReceiveMessageWaitTimeSeconds": "20",
				"MessageRetentionPeriod": "60", "MaximumMessageSize": "1024", "KmsMasterKeyId": "k",
				"RedrivePolicy": `{"deadLetterTargetArn":"` + dlq + `","maxReceiveCount":3}`,
			},
			queue.Config{
				Delay: 15 * time.Minute, Wait: 20 * time.Second, Retention: time.Minute, MaxMessageSize: 1024,
				MaxReceives: 3, DeadLetter: arn.Queue("us-east-1", "000000000000", "dlq"), Key: "k",
				KeyReuse: 5 * time.Minute,
			},
		},
	} {
		got, err := attribute.Config(tt.attrs)
		if err != nil {
			t.Errorf("Config(%v): %v", tt.attrs, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("Config(%v) (-want +got):\n%s", tt.attrs, diff)
		}
	}
	for _, attrs := range []map[string]string{{"DelaySeconds": "x"}, {"MaximumMessageSize": "x"}, {"RedrivePolicy": "x"}} {
		if _, err := attribute.Config(attrs); fault.KindOf(err) != fault.InvalidAttributeValue && fault.KindOf(err) != fault.InvalidParameter {
			t.Errorf("Config(%v): %v; want an invalid attribute value", attrs, err)
		}
	}
}

func TestAllowsRedrive(t *testing.T) {
	source := arn.Queue("us-east-1", "000000000000", "q")
	for doc, want := range map[string]bool{
		"":                                 true,
		`{"redrivePermission":"allowAll"}`: true,
		`{"redrivePermission":"denyAll"}`:  false,
		`{"redrivePermission":"nonsense"}`: false,
		`{"redrivePermission":"byQueue","sourceQueueArns":["` + source.String() + `"]}`: true,
		`{"redrivePermission":"byQueue","sourceQueueArns":["` + dlq + `"]}`:             false,
	} {
		if got := attribute.AllowsRedrive(doc, source); got != want {
			t.Errorf("AllowsRedrive(%s) = %t", doc, got)
		}
	}
}

// FuzzDocuments: whatever is accepted has a canonical form that is accepted,
// is its own, and means the same; whatever is not is a refusal by its kind.
func FuzzDocuments(f *testing.F) {
	for _, seed := range []string{
		`{"deadLetterTargetArn":"` + dlq + `","maxReceiveCount":"3"}`,
		`{"deadLetterTargetArn":"arn:x:sqs::\"\u003c:q","maxReceiveCount":3}`,
		`{"redrivePermission":"byQueue","sourceQueueArns":["` + dlq + `"]}`,
		`{"redrivePermission":"denyAll"}`, `{"Statement":[{"a" : 1e9}]}`, `{`, ``, `null`, "{\"\xff\":1}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		for _, name := range []string{attribute.RedrivePolicy, attribute.RedriveAllowPolicy, attribute.Policy} {
			c, err := attribute.Canonical(name, doc, false)
			if err != nil {
				if kind := fault.KindOf(err); kind != fault.InvalidAttributeValue && kind != fault.InvalidParameter && kind != fault.OverLimit {
					t.Fatalf("%s %q: %v", name, doc, err)
				}
				continue
			}
			if again, err := attribute.Canonical(name, c, false); err != nil || again != c {
				t.Fatalf("%s %q gives %q, which gives %q, %v", name, doc, c, again, err)
			}
			if name == attribute.RedrivePolicy && doc != "" {
				a, errA := attribute.ParseRedrive(doc)
				b, errB := attribute.ParseRedrive(c)
				if errA != nil || errB != nil || a != b {
					t.Fatalf("%q and %q differ: %v %v, %v %v", doc, c, a, b, errA, errB)
				}
			}
		}
	})
}
