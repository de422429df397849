package sdk_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// hops is a server with what Lambda does for functions, and who defines it.
type hops struct {
	endpoint   string
	functions  *lambda.Client
	identities *iam.Client
	queues     *sqs.Client
}

func newHops(t *testing.T) *hops {
	t.Helper()
	endpoint := start(t)
	return &hops{endpoint, functionsClient(endpoint), iamClientOf(endpoint, "test", secretOf("test"), ""), client(endpoint)}
}

var polling = []string{"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"}

// result is what a mapping reports of its latest try.
func (h *hops) result(t *testing.T, id *string) string {
	t.Helper()
	return aws.ToString(must(h.functions.GetEventSourceMapping(t.Context(), &lambda.GetEventSourceMappingInput{UUID: id}))(t).LastProcessingResult)
}

// waiting is how many messages of a queue can be received.
func (h *hops) waiting(t *testing.T, url string) string { return counts(t, h.queues, url)[0] }

// A queue is polled as the function's role: a mapping is refused if that may not, and
// takes nothing from the moment on that it may not any more.
func TestSourceActsAsTheRole(t *testing.T) {
	h := newHops(t)
	q := createQueue(t, h.queues, "q")
	reader := role(t, h.identities, "reader", nothing)
	f := createAnsweredAs(t, h.functions, "f", reader)
	create := func() (*lambda.CreateEventSourceMappingOutput, error) {
		return h.functions.CreateEventSourceMapping(t.Context(), &lambda.CreateEventSourceMappingInput{
			EventSourceArn: aws.String(queueARN("q")), FunctionName: aws.String("f"), Enabled: aws.Bool(false),
		})
	}
	for i, action := range polling {
		without := append(append([]string{}, polling[:i]...), polling[i+1:]...)
		role(t, h.identities, "reader", allow(queueARN("q"), without...))
		_, err := create()
		refused(t, err, "InvalidParameterValueException", http.StatusBadRequest,
			"The function execution role does not have permissions to call "+strings.TrimPrefix(action, "sqs:")+" on SQS")
	}
	role(t, h.identities, "reader", allow(queueARN("q"), polling...))
	made := must(create())(t)
	must(h.functions.UpdateEventSourceMapping(t.Context(), &lambda.UpdateEventSourceMappingInput{UUID: made.UUID, Enabled: aws.Bool(true)}))(t)

	sendAll(t, h.queues, q, "first")
	call := f.next()
	// While the function runs the role loses the right to delete: what it has succeeded
	// with comes again.
	role(t, h.identities, "reader", allow(queueARN("q"), polling[0], polling[2]))
	call.succeed("{}")
	eventually(t, "the mapping fails", func() bool { return h.result(t, made.UUID) != "" })
	equal(t, "why", "PROBLEM: The function execution role does not have permissions to call DeleteMessage on SQS", h.result(t, made.UUID))
	equal(t, "in flight", "1", counts(t, h.queues, q)[1])
	advance(t, h.endpoint, "1h")
	sendAll(t, h.queues, q, "second")
	equal(t, "what nobody takes", "2", h.waiting(t, q))

	role(t, h.identities, "reader", allow(queueARN("q"), polling...))
	again := []string{}
	for len(again) < 2 {
		call := f.next()
		for _, r := range call.records(t) {
			want := "1"
			if r.Body == "first" {
				want = "2"
			}
			equal(t, "how often it was received: "+r.Body, want, r.Attributes["ApproximateReceiveCount"])
			again = append(again, r.Body)
		}
		call.succeed("{}")
	}
	eventually(t, "the queue is empty", func() bool { return counts(t, h.queues, q) == [3]string{"0", "0", "0"} })
	equal(t, "what the mapping tells", "", h.result(t, made.UUID))

	// A poller that waits for a message while its role is taken away takes none.
	must(h.identities.UpdateAssumeRolePolicy(t.Context(), &iam.UpdateAssumeRolePolicyInput{RoleName: aws.String("reader"), PolicyDocument: aws.String(trustRoot)}))(t)
	sendAll(t, h.queues, q, "third")
	eventually(t, "the mapping fails", func() bool { return h.result(t, made.UUID) != "" })
	equal(t, "what stays", [3]string{"1", "0", "0"}, counts(t, h.queues, q))
	got := must(h.queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &q, MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{"ApproximateReceiveCount"}}))(t)
	equal(t, "how often it was received", "1", got.Messages[0].Attributes["ApproximateReceiveCount"])
}

// A mapping is not led to a function whose role may not read the queue.
func TestSourceOfAnotherFunction(t *testing.T) {
	h := newHops(t)
	createQueue(t, h.queues, "q")
	createAnswered(t, h.functions, "f")
	createAnsweredAs(t, h.functions, "g", role(t, h.identities, "none", nothing))
	made := must(h.functions.CreateEventSourceMapping(t.Context(), &lambda.CreateEventSourceMappingInput{
		EventSourceArn: aws.String(queueARN("q")), FunctionName: aws.String("f"), Enabled: aws.Bool(false),
	}))(t)
	_, err := h.functions.UpdateEventSourceMapping(t.Context(), &lambda.UpdateEventSourceMappingInput{UUID: made.UUID, FunctionName: aws.String("g")})
	refused(t, err, "InvalidParameterValueException", http.StatusBadRequest, "The function execution role does not have permissions to call ReceiveMessage on SQS")
	got := must(h.functions.GetEventSourceMapping(t.Context(), &lambda.GetEventSourceMappingInput{UUID: made.UUID}))(t)
	equal(t, "the function", functionARN("f"), *got.FunctionArn)
}

// The key of an encrypted queue is used as the function's role, too.
func TestSourceOfAnEncryptedQueue(t *testing.T) {
	h := newHops(t)
	key := makeKey(t, newKMS(t, h.endpoint, account), &kms.CreateKeyInput{})
	q := createQueue(t, h.queues, "q", "KmsMasterKeyId", *key.KeyId)
	f := createAnsweredAs(t, h.functions, "f", role(t, h.identities, "reader", allow(queueARN("q"), polling...)))
	made := must(h.functions.CreateEventSourceMapping(t.Context(), &lambda.CreateEventSourceMappingInput{
		EventSourceArn: aws.String(queueARN("q")), FunctionName: aws.String("f"),
	}))(t)
	sendAll(t, h.queues, q, "sealed")
	eventually(t, "the mapping fails", func() bool { return h.result(t, made.UUID) != "" })
	if result := h.result(t, made.UUID); !strings.Contains(result, "User: arn:aws:sts::000000000000:assumed-role/reader/f is not authorized to perform: kms:Decrypt on resource: "+*key.Arn) {
		t.Error(result)
	}
	must(h.identities.PutRolePolicy(t.Context(), &iam.PutRolePolicyInput{
		RoleName: aws.String("reader"), PolicyName: aws.String("key"), PolicyDocument: aws.String(allow(*key.Arn, "kms:Decrypt")),
	}))(t)
	call := f.next()
	equal(t, "the message", []string{"sealed"}, call.bodies(t))
	call.succeed("{}")
}

// A mapping tells of a key that is disabled, and gets what is under other keys.
func TestSourceOfADisabledKey(t *testing.T) {
	h := newHops(t)
	k := newKMS(t, h.endpoint, account)
	old, current := makeKey(t, k, &kms.CreateKeyInput{}), makeKey(t, k, &kms.CreateKeyInput{})
	q := createQueue(t, h.queues, "q", "KmsMasterKeyId", *old.KeyId)
	sendAll(t, h.queues, q, "sealed")
	must(h.queues.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &q, Attributes: map[string]string{"KmsMasterKeyId": *current.KeyId}}))(t)
	ask(t, k.DisableKey, &kms.DisableKeyInput{KeyId: old.KeyId})
	f := createAnsweredAs(t, h.functions, "f", role(t, h.identities, "reader", allow("*", append([]string{"kms:Decrypt"}, polling...)...)))
	made := must(h.functions.CreateEventSourceMapping(t.Context(), &lambda.CreateEventSourceMappingInput{
		EventSourceArn: aws.String(queueARN("q")), FunctionName: aws.String("f"), BatchSize: aws.Int32(1),
	}))(t)
	eventually(t, "the mapping fails", func() bool { return h.result(t, made.UUID) != "" })
	eventually(t, "the message is hidden", func() bool { return counts(t, h.queues, q)[1] == "1" })
	sendAll(t, h.queues, q, "readable")
	call := f.next()
	equal(t, "the message", []string{"readable"}, call.bodies(t))
	call.succeed("{}")
	eventually(t, "the mapping works", func() bool { return h.result(t, made.UUID) == "" })
}

// What came of an event is handed over as the function's role: what that may not is refused
// when it is set, and lost once it may not any more.
func TestHandOverActsAsTheRole(t *testing.T) {
	h := newHops(t)
	dead, dest := createQueue(t, h.queues, "dead"), createQueue(t, h.queues, "dest")
	topic := createTopic(t, topicsClient(h.endpoint), "told")
	name := role(t, h.identities, "sender", nothing)
	f := startFar(t)
	create := func(deadLetter string) error {
		_, err := h.functions.CreateFunction(t.Context(), &lambda.CreateFunctionInput{
			FunctionName: aws.String("f"), Role: &name, PackageType: types.PackageTypeImage, Code: &types.FunctionCode{ImageUri: &f.URL}, Timeout: aws.Int32(runTime),
			DeadLetterConfig: &types.DeadLetterConfig{TargetArn: &deadLetter},
		})
		return err
	}
	const may = "The provided execution role does not have permissions to call "
	refused(t, create(queueARN("dead")), "InvalidParameterValueException", http.StatusBadRequest, may+"SendMessage on SQS")
	refused(t, create(topic), "InvalidParameterValueException", http.StatusBadRequest, may+"Publish on SNS")
	role(t, h.identities, "sender", allow(queueARN("dead"), "sqs:SendMessage"))
	if err := create(queueARN("dead")); err != nil {
		t.Fatal(err)
	}
	advance(t, h.endpoint, "0s")
	_, err := h.functions.UpdateFunctionConfiguration(t.Context(), &lambda.UpdateFunctionConfigurationInput{
		FunctionName: aws.String("f"), DeadLetterConfig: &types.DeadLetterConfig{TargetArn: &topic},
	})
	refused(t, err, "InvalidParameterValueException", http.StatusBadRequest, may+"Publish on SNS")

	configure := func() error {
		_, err := h.functions.PutFunctionEventInvokeConfig(t.Context(), &lambda.PutFunctionEventInvokeConfigInput{
			FunctionName: aws.String("f"), MaximumRetryAttempts: aws.Int32(0),
			DestinationConfig: &types.DestinationConfig{OnFailure: &types.OnFailure{Destination: aws.String(queueARN("dest"))}},
		})
		return err
	}
	refused(t, configure(), "InvalidParameterValueException", http.StatusBadRequest, "The provided destination config DestinationConfig(onSuccess=null, onFailure=OnFailure(destination="+
		queueARN("dest")+")) is invalid: The function's execution role does not have permissions to call SendMessage on "+queueARN("dest"))
	role(t, h.identities, "sender", allow("*", "sqs:SendMessage"))
	if err := configure(); err != nil {
		t.Fatal(err)
	}
	fail := func(what, wantDead, wantDest string) {
		t.Helper()
		f.fail(1)
		invokeAsync(t, h.functions, "f", `{}`)
		advance(t, h.endpoint, "1ms") // until it has ended
		equal(t, what, [2]string{wantDead, wantDest}, [2]string{h.waiting(t, dead), h.waiting(t, dest)})
	}
	fail("with the right to send", "1", "1")
	role(t, h.identities, "sender", allow(queueARN("dead"), "sqs:SendMessage"))
	fail("with the right to send dead letters", "2", "1")
	role(t, h.identities, "sender", nothing)
	fail("without", "2", "1")

	// Under a key: as the role, too, be it the last that is notified or not.
	key := makeKey(t, newKMS(t, h.endpoint, account), &kms.CreateKeyInput{})
	role(t, h.identities, "sender", allow("*", "sqs:SendMessage"))
	for _, q := range []string{dead, dest} {
		must(h.queues.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &q, Attributes: map[string]string{"KmsMasterKeyId": *key.KeyId}}))(t)
	}
	fail("without the right to the key", "2", "1")
	role(t, h.identities, "sender", allow("*", "sqs:SendMessage", "kms:GenerateDataKey", "kms:Decrypt"))
	fail("with the right to the key", "3", "2")
}
