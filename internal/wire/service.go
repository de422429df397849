package wire

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/check"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/wire/restjson"
	"godwit.dev/godwit/internal/wire/shape"
)

// Service is the wire form of an AWS service: how its requests are recognised, its operations
// and its errors. Make one with SQS, SNS, CloudWatch, Logs, Lambda, KMS, IAM, STS, Firehose or
// CloudFormation, for one Handler.
type Service struct {
	Name         string // "sqs": in credential scopes and host names
	TargetPrefix string // of X-Amz-Target; empty if the service speaks no JSON
	Version      string // of the Query API; empty if the service does not speak it
	Namespace    string // of its XML

	declaration bool // XML answers begin with <?xml …?>, and errors have <Detail/>
	json11      bool // JSON 1.1, which has no header with Query's codes
	queryMode   bool // the header with Query's codes is sent on request only

	rest   bool // requests are recognised by their methods and paths: routes
	routes restjson.Routes[*operation]
	// pathMember is the input member that a request's path stands for when it
	// is not the root; empty if there is none.
	pathMember string

	badMethod fault.Kind // refuses an HTTP method that the protocol does not have
	// missing is the error of a request that lacks required members, one or more.
	missing    func(operation string, members []string) error
	emptyGiven bool // an empty text in JSON is given: its operation says what is wrong with it
	errors     map[fault.Kind]errorShape
	describe   func(err error) (code, text string, sender bool) // for api.Call

	operations map[string]*operation
	observer   Observer // of requests whose operation is not known
}

// operation is an operation with what its answers need of its name.
type operation struct {
	api.Operation
	input      *shape.Type
	path       *shape.Field // the input's field that the service's pathMember names, or nil
	void       bool         // the answer has no members
	openTags   string       // <XResponse xmlns="…"><XResult>
	resultEnd  string       // </XResult>
	closeTags  string       // behind the metadata
	jsonPrefix string       // {"XResponse":{"XResult":
	observer   Observer     // of its requests; nil: none
}

// SQS is Amazon SQS, which answers JSON and Query.
func SQS(operations ...api.Operation) *Service {
	return newService(Service{
		Name:         "sqs",
		TargetPrefix: "AmazonSQS",
		Version:      "2012-11-05",
		Namespace:    "http://queue.amazonaws.com/doc/2012-11-05/",
		declaration:  true,
		pathMember:   "QueueUrl",
		badMethod:    fault.UnsupportedOperation,
		missing: func(_ string, members []string) error { // one is enough
			return fault.New(fault.MissingParameter, "The request must contain the parameter "+members[0]+".")
		},
		errors: sqsErrors,
	}, operations)
}

// SNS is Amazon SNS, which answers Query.
func SNS(operations ...api.Operation) *Service {
	return newService(Service{
		Name:      "sns",
		Version:   "2010-03-31",
		Namespace: "http://sns.amazonaws.com/doc/2010-03-31/",
		badMethod: fault.InvalidAction,
		missing:   snsMissing,
		errors:    snsErrors,
	}, operations)
}

// snsMissing misses the ARN that callers are authorised by before anything else, and in words of its
// own: SNS reads it before the model is asked. ConfirmSubscription goes by its token.
func snsMissing(operation string, members []string) error {
	for _, member := range members {
		switch member {
		case "TopicArn", "SubscriptionArn", "PlatformApplicationArn", "EndpointArn":
			if operation != "ConfirmSubscription" {
				return fault.Newf(fault.InvalidParameter, "Invalid parameter: %s Reason: no value for required parameter", member)
			}
		}
	}
	return mustNotBeNull(fault.MissingParameter)(operation, members)
}

// CloudWatch is Amazon CloudWatch, which answers CBOR, JSON and Query.
func CloudWatch(operations ...api.Operation) *Service {
	return newService(Service{
		Name:         "monitoring",
		TargetPrefix: "GraniteServiceVersion20100801",
		Version:      "2010-08-01",
		Namespace:    "http://monitoring.amazonaws.com/doc/2010-08-01/",
		badMethod:    fault.InvalidAction,
		missing:      mustNotBeNull(fault.ValidationFailed),
		queryMode:    true,
		errors:       cloudwatchErrors,
	}, operations)
}

// Logs is Amazon CloudWatch Logs, which answers JSON 1.1.
func Logs(operations ...api.Operation) *Service {
	return newService(Service{
		Name:         "logs",
		TargetPrefix: "Logs_20140328",
		badMethod:    fault.InvalidAction,
		missing:      mustNotBeNull(fault.MissingParameter),
		emptyGiven:   true,
		json11:       true,
		errors:       logsErrors,
	}, operations)
}

// KMS is AWS KMS, which answers JSON 1.1.
func KMS(operations ...api.Operation) *Service {
	return newService(Service{
		Name:         "kms",
		TargetPrefix: "TrentService",
		badMethod:    fault.InvalidAction,
		missing:      mustNotBeNull(fault.ValidationFailed),
		json11:       true,
		errors:       kmsErrors,
	}, operations)
}

// CloudFormation is AWS CloudFormation, which answers Query.
func CloudFormation(operations ...api.Operation) *Service {
	return newService(Service{
		Name:      "cloudformation",
		Version:   "2010-05-15",
		Namespace: "http://cloudformation.amazonaws.com/doc/2010-05-15/",
		badMethod: fault.InvalidAction,
		missing:   mustNotBeNull(fault.ValidationFailed),
		errors:    cloudformationErrors,
	}, operations)
}

// Firehose is Amazon Data Firehose, which answers JSON 1.1.
func Firehose(operations ...api.Operation) *Service {
	return newService(Service{
		Name:         "firehose",
		TargetPrefix: "Firehose_20150804",
		badMethod:    fault.InvalidAction,
		missing:      mustNotBeNull(fault.ValidationFailed),
		json11:       true,
		errors:       firehoseErrors,
	}, operations)
}

// mustNotBeNull names all members that are absent, in an error of a kind.
func mustNotBeNull(kind fault.Kind) func(operation string, members []string) error {
	return func(_ string, members []string) error {
		all := make([]string, len(members))
		for i, name := range members {
			all[i] = check.NotNull(strings.ToLower(name[:1]) + name[1:])
		}
		return fault.New(kind, check.Violations(all))
	}
}

// Lambda is AWS Lambda, which answers REST-JSON.
func Lambda(operations ...api.Operation) *Service {
	return newService(Service{
		Name:       "lambda",
		badMethod:  fault.InvalidAction,
		missing:    mustNotBeNull(fault.ValidationFailed),
		emptyGiven: true,
		rest:       true,
		errors:     lambdaErrors,
	}, operations)
}

// IAM is AWS Identity and Access Management, which answers Query.
func IAM(operations ...api.Operation) *Service {
	return newService(Service{
		Name:      "iam",
		Version:   "2010-05-08",
		Namespace: "https://iam.amazonaws.com/doc/2010-05-08/",
		badMethod: fault.InvalidAction,
		missing:   mustNotBeNull(fault.ValidationFailed),
		errors:    iamErrors,
	}, operations)
}

// STS is AWS Security Token Service, which answers Query.
func STS(operations ...api.Operation) *Service {
	return newService(Service{
		Name:      "sts",
		Version:   "2011-06-15",
		Namespace: "https://sts.amazonaws.com/doc/2011-06-15/",
		badMethod: fault.InvalidAction,
		missing:   mustNotBeNull(fault.ValidationFailed),
		errors:    stsErrors,
	}, operations)
}

func newService(s Service, operations []api.Operation) *Service {
	s.operations = make(map[string]*operation, len(operations))
	for _, declared := range operations {
		if s.operations[declared.Name] != nil {
			panic(fmt.Sprintf("wire: %s.%s is declared twice", s.Name, declared.Name))
		}
		op := &operation{Operation: declared, input: shape.Of(declared.Input)}
		op.void = len(shape.Of(declared.Output).Fields) == 0 && !declared.Result
		if s.pathMember != "" {
			op.path = op.input.Field(s.pathMember)
		}
		name := declared.Name
		op.openTags = "<" + name + `Response xmlns="` + s.Namespace + `">`
		op.closeTags = "</" + name + "Response>"
		op.jsonPrefix = `{"` + name + `Response":{`
		if !op.void {
			op.openTags += "<" + name + "Result>"
			op.resultEnd = "</" + name + "Result>"
			op.jsonPrefix += `"` + name + `Result":`
		}
		s.operations[name] = op
	}
	if s.rest {
		s.addRoutes()
	}
	s.describe = func(err error) (code, text string, sender bool) {
		shape, text := s.report(err, protocolJSON)
		return shape.Code, text, !shape.Server
	}
	return &s
}

// setObservers makes the observers of the operations.
func (s *Service) setObservers(observe func(service, operation string) Observer) {
	s.observer = observe(s.Name, "")
	for name, op := range s.operations {
		op.observer = observe(s.Name, name)
	}
}

// check refuses an input that lacks a required member or violates the model. body is the JSON
// that it was read from, if there is any.
func (s *Service) check(op *operation, in any, body []byte) error {
	if op.Check != nil {
		if err := op.Check(in); err != nil {
			return err
		}
	}
	names := op.input.Missing(reflect.ValueOf(in).Elem())
	if s.emptyGiven && len(names) > 0 {
		names = op.withoutEmpty(names, body)
	}
	if len(names) > 0 {
		return s.missing(op.Name, names)
	}
	return nil
}

// withoutEmpty leaves out the members that body has as an empty text.
func (op *operation) withoutEmpty(names []string, body []byte) []string {
	var given map[string]emptyText
	if json.Unmarshal(body, &given) != nil { // such as none
		return names
	}
	return slices.DeleteFunc(names, func(name string) bool {
		f := op.input.Field(name)
		return f.In == shape.Body && bool(given[f.JSON])
	})
}

// emptyText is whether a value is an empty text, read without a copy of it.
type emptyText bool

func (e *emptyText) UnmarshalJSON(value []byte) error {
	*e = string(value) == `""`
	return nil
}
