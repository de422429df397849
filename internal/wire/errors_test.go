package wire

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/wire/awsjson"
)

// Every kind of fault has an error in every service, complete and plausible.
func TestEveryKindHasAnError(t *testing.T) {
	for _, s := range []*Service{SQS(), SNS(), CloudWatch(), Logs(), Lambda(), KMS()} {
		for _, kind := range fault.Kinds() {
			shape, ok := s.errors[kind]
			switch {
			case !ok:
				t.Errorf("%s has no error for kind %d", s.Name, kind)
			case shape.Code == "" || shape.Text == "" || !strings.Contains(shape.Type, "#") && !s.json11:
				t.Errorf("%s: kind %d: %+v is incomplete", s.Name, kind, shape)
			case shape.Server != (shape.Status >= 500) || shape.Status < 400:
				t.Errorf("%s: kind %d: %+v blames the wrong side", s.Name, kind, shape)
			}
		}
	}
}

// The alert on the server's own errors knows the codes of all of them, and none of
// what is no mistake of the server.
func TestAlertKnowsServerErrors(t *testing.T) {
	rules, err := os.ReadFile("../../deploy/prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`godwit_requests_total\{code=~"([^"]+)"\}`).FindSubmatch(rules)
	if found == nil {
		t.Fatal("there is no such rule")
	}
	codes := regexp.MustCompile("^(?:" + string(found[1]) + ")$")
	for _, s := range []*Service{SQS(), SNS(), CloudWatch(), Logs(), Lambda(), KMS()} {
		for kind, shape := range s.errors {
			// What Lambda answers with 502 is the function's.
			if ours := shape.Server && shape.Status != http.StatusBadGateway; ours != codes.MatchString(shape.Code) {
				t.Errorf("%s: kind %d, %d %s: %v", s.Name, kind, shape.Status, shape.Code, !ours)
			}
		}
	}
	if codes.MatchString(Canceled) || codes.MatchString("") {
		t.Error("it knows codes that are no errors")
	}
}

func TestSQSErrors(t *testing.T) {
	const prefix = "AWS.SimpleQueueService."
	for kind, want := range map[fault.Kind]string{
		fault.QueueDoesNotExist:            "com.amazonaws.sqs#QueueDoesNotExist " + prefix + "NonExistentQueue 400",
		fault.QueueNameExists:              "com.amazonaws.sqs#QueueNameExists QueueAlreadyExists 400",
		fault.InvalidParameter:             "com.amazon.coral.service#InvalidParameterValueException InvalidParameterValue 400",
		fault.MissingParameter:             "com.amazon.coral.service#MissingRequiredParameterException MissingParameter 400",
		fault.BatchEntryIdsNotDistinct:     "com.amazonaws.sqs#BatchEntryIdsNotDistinct " + prefix + "BatchEntryIdsNotDistinct 400",
		fault.BatchRequestTooLong:          "com.amazonaws.sqs#BatchRequestTooLong " + prefix + "BatchRequestTooLong 400",
		fault.EmptyBatchRequest:            "com.amazonaws.sqs#EmptyBatchRequest " + prefix + "EmptyBatchRequest 400",
		fault.InvalidBatchEntryID:          "com.amazonaws.sqs#InvalidBatchEntryId " + prefix + "InvalidBatchEntryId 400",
		fault.MessageNotInflight:           "com.amazonaws.sqs#MessageNotInflight " + prefix + "MessageNotInflight 400",
		fault.PurgeQueueInProgress:         "com.amazonaws.sqs#PurgeQueueInProgress " + prefix + "PurgeQueueInProgress 403",
		fault.QueueDeletedRecently:         "com.amazonaws.sqs#QueueDeletedRecently " + prefix + "QueueDeletedRecently 400",
		fault.TooManyEntriesInBatchRequest: "com.amazonaws.sqs#TooManyEntriesInBatchRequest " + prefix + "TooManyEntriesInBatchRequest 400",
		fault.UnsupportedOperation:         "com.amazonaws.sqs#UnsupportedOperation " + prefix + "UnsupportedOperation 400",
		fault.InvalidAttributeName:         "com.amazonaws.sqs#InvalidAttributeName InvalidAttributeName 400",
		fault.InvalidAttributeValue:        "com.amazonaws.sqs#InvalidAttributeValue InvalidAttributeValue 400",
		fault.InvalidMessageContents:       "com.amazonaws.sqs#InvalidMessageContents InvalidMessageContents 400",
		fault.ReceiptHandleIsInvalid:       "com.amazonaws.sqs#ReceiptHandleIsInvalid ReceiptHandleIsInvalid 400",
		fault.OverLimit:                    "com.amazonaws.sqs#OverLimit OverLimit 403",
		fault.InvalidAddress:               "com.amazonaws.sqs#InvalidAddress InvalidAddress 400",
		fault.InvalidSecurity:              "com.amazonaws.sqs#InvalidSecurity InvalidSecurity 400",
		fault.KMSNotFound:                  "com.amazonaws.sqs#KmsNotFound KMS.NotFoundException 400",
		fault.ResourceNotFound:             "com.amazonaws.sqs#ResourceNotFoundException ResourceNotFoundException 404",
		fault.Throttled:                    "com.amazonaws.sqs#RequestThrottled RequestThrottled 400",
		fault.MalformedInput:               "com.amazon.coral.service#SerializationException MalformedInput 400",
		fault.InvalidAction:                "com.amazon.coral.service#UnknownOperationException InvalidAction 400",
		fault.Unavailable:                  "com.amazon.coral.service#ServiceUnavailableException ServiceUnavailable 503",
		fault.InsufficientStorage:          "com.amazon.coral.service#InsufficientStorageException InsufficientStorage 507",
		fault.RequestTooLarge:              "com.amazon.coral.service#RequestEntityTooLargeException RequestEntityTooLarge 413",
		fault.RequestTimeout:               "com.amazon.coral.service#RequestTimeoutException RequestTimeout 408",
	} {
		shape := sqsErrors[kind]
		if got := fmt.Sprint(shape.Type, " ", shape.Code, " ", shape.Status); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestSNSErrors(t *testing.T) {
	for kind, want := range map[fault.Kind]string{
		fault.NotFound:                  "NotFound 404",
		fault.AccessDenied:              "AuthorizationError 403",
		fault.InvalidParameter:          "InvalidParameter 400",
		fault.ParameterValueInvalid:     "ParameterValueInvalid 400",
		fault.Internal:                  "InternalError 500",
		fault.Throttled:                 "Throttled 429",
		fault.SubscriptionLimitExceeded: "SubscriptionLimitExceeded 403",
		fault.TopicLimitExceeded:        "TopicLimitExceeded 403",
		fault.FilterPolicyLimitExceeded: "FilterPolicyLimitExceeded 403",
		fault.EndpointDisabled:          "EndpointDisabled 400",

		fault.PlatformApplicationDisabled: "PlatformApplicationDisabled 400",
		fault.InvalidSecurity:             "InvalidSecurity 403",
		fault.ResourceNotFound:            "ResourceNotFound 404",
		fault.BatchEntryIdsNotDistinct:    "BatchEntryIdsNotDistinct 400",
		fault.Unavailable:                 "ServiceUnavailable 503",
	} {
		if got := fmt.Sprint(snsErrors[kind].Code, " ", snsErrors[kind].Status); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestReport(t *testing.T) {
	s := SQS()
	for _, test := range []struct {
		err            error
		protocol, want string
		wantStatus     int
	}{
		{fault.New(fault.QueueDoesNotExist, ""), protocolJSON, "The specified queue does not exist.", 400},
		{fault.New(fault.QueueDoesNotExist, "q"), protocolQuery, "The specified queue does not exist for this wsdl version.", 400},
		{fault.New(fault.InvalidParameter, "x"), protocolQuery, "x", 400},
		{fmt.Errorf("while reading: %w", fault.New(fault.OverLimit, "x")), protocolJSON, "x", 403},
		{fault.New(fault.OverLimit, ""), protocolJSON, "A limit has been reached.", 403},
		{fault.New(fault.Internal, "secret"), protocolJSON, internalText, 500},
		{errors.New("secret"), protocolQuery, internalText, 500},
		{fault.New(fault.Kind(255), "secret"), protocolQuery, internalText, 500},
	} {
		shape, text := s.report(test.err, test.protocol)
		if text != test.want || shape.Status != test.wantStatus {
			t.Errorf("%v in %s: %d %q, want %d %q", test.err, test.protocol, shape.Status, text, test.wantStatus, test.want)
		}
	}
}

// An empty text is not absent: its operation refuses it, as far as the service's model does.
func TestEmptyIsGiven(t *testing.T) {
	type input struct {
		Group  string `json:"group" wire:"required"`
		Stream string `json:"stream" wire:"required"`
		Day    *int   `json:"day" wire:"required"`
	}
	ask := api.Op("Ask", func(context.Context, *api.Call, *input) (*struct{}, error) { return nil, nil })
	s := Logs(ask)
	for body, want := range map[string]string{
		``:                                  "group stream day",
		`{"group":"","stream":"","day":1}`:  "",
		`{"group":"","stream":null}`:        "stream day",
		`{"Group":"","stream":"s","day":1}`: "group",
	} {
		in := new(input)
		if err := awsjson.Decode([]byte(body), in); err != nil {
			t.Fatal(err)
		}
		text := ""
		if err := s.check(s.operations["Ask"], in, []byte(body)); err != nil {
			text = err.Error()
		}
		missing := []string{}
		for _, name := range []string{"group", "stream", "day"} {
			if strings.Contains(text, "Value null at '"+name+"'") {
				missing = append(missing, name)
			}
		}
		if got := strings.Join(missing, " "); got != want || (text == "") != (want == "") {
			t.Errorf("%s: %q", body, text)
		}
	}
	for _, other := range []*Service{CloudWatch(ask), Firehose(ask)} {
		if err := other.check(other.operations["Ask"], &input{Stream: "s", Day: new(1)}, []byte(`{"group":""}`)); err == nil {
			t.Errorf("%s takes an empty text", other.Name)
		}
	}
}

func TestHostParts(t *testing.T) {
	for host, want := range map[string]string{
		"localhost:4566": " ", "127.0.0.1:4566": "127 ", "sqs.eu-west-1.localhost:4566": "sqs eu-west-1", "sns.us-gov-west-1.amazonaws.com": "sns us-gov-west-1",
		"eu-west-1.queue.amazonaws.com": "sqs eu-west-1", "queue.amazonaws.com": "sqs ", "sqs.localhost": "sqs ", "": " ",
		"my-queue-x.queue.example": "my-queue-x ", "sqs.my-host-name.example": "sqs ",
	} {
		if service, region := api.HostParts(host); service+" "+region != want {
			t.Errorf("%s: %q %q, want %q", host, service, region, want)
		}
	}
}

func TestOptionsAreRequired(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("an empty Options made a handler")
		}
	}()
	var _ http.Handler = NewHandler(Options{})
}
