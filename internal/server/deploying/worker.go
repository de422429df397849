// Package deploying takes the steps of stacks: it calls the server's own operations within the
// process, as whoever deploys, so that permissions, limits and the audit are those of any request.
//
// Every step may be taken twice. What is made has the name that the step brings, or is found
// again by what it is.
package deploying

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/api/operator/sources"
	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/server/deploying/fit"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/stack"
	"godwit.dev/godwit/internal/stack/resource"
)

// Options are what a Worker needs.
type Options struct {
	// Within carries out an operation as package wire does.
	Within func(ctx context.Context, call *api.Call, in any) (any, error)
	// Acting is who CloudFormation is in a role, for a stack; nil: the account's root.
	Acting func(stack arn.ARN, role string) (*caller.Caller, error)
	// URL is what queues' URLs begin with.
	URL string
	// Sources makes sources of posts.
	Sources *sources.Sources
	// Operating lets who acts have an operation of the operator API carried out, on a resource.
	Operating func(ctx context.Context, who *caller.Caller, op *rest.Operation, resource string) (*rest.Call, error)
	// Holds reports that another resource has the name of the parameter that a step is to make.
	Holds func(t *stacks.Task) bool
	// Giving and Taking are the claims of other resources on an inline policy that a step gives or takes
	// away.
	Giving, Taking func(t *stacks.Task, p stacks.Inline) stacks.Claims
	// Creates reports that a token is of another resource's creation in a step's stack.
	Creates func(t *stacks.Task, token string) bool
	// May refuses what who acts may not do where there is no operation; nil: everybody may.
	May func(who *caller.Caller, via, region string, need *authorize.Need) error
	// Stacks has the stacks that are nested in others.
	Stacks Stacks
}

// Worker implements stacks.Worker.
type Worker struct{ Options }

var _ stacks.Worker = (*Worker)(nil)

// made is what there is of a resource.
type made struct {
	physical   string
	attributes map[string]any
}

// handler takes the steps of a type of resources. create gives what there is even if it
// fails, unless that is nothing.
type handler struct {
	create func(ctx context.Context, w *work) (made, error)
	update func(ctx context.Context, w *work) (made, error)
	remove func(ctx context.Context, w *work) error
}

var handlers = map[string]handler{
	"AWS::SQS::Queue":             {createQueue, updateQueue, deleteQueue},
	"AWS::SQS::QueuePolicy":       {putQueuePolicy, putQueuePolicy, deleteQueuePolicy},
	"AWS::SQS::QueueInlinePolicy": {putQueuePolicy, putQueuePolicy, deleteQueuePolicy},
	"AWS::SNS::Topic":             {createTopic, updateTopic, deleteTopic},
	"AWS::SNS::TopicPolicy":       {putTopicPolicy, putTopicPolicy, deleteTopicPolicy},
	"AWS::SNS::TopicInlinePolicy": {putTopicPolicy, putTopicPolicy, deleteTopicPolicy},
	"AWS::SNS::Subscription":      {createSubscription, updateSubscription, deleteSubscription},
	"AWS::CloudWatch::Alarm":      {createAlarm, updateAlarm, deleteAlarm},
	"AWS::Logs::LogGroup":         {createLogGroup, updateLogGroup, deleteLogGroup},
	"AWS::Logs::LogStream":        {createLogStream, keep, deleteLogStream},
	"AWS::CloudFormation::Stack":  {createNested, updateNested, deleteNested},
	"AWS::CDK::Metadata":          {keep, keep, nothing},
	"AWS::IAM::Role":              {createRole, updateRole, deleteRole},
	"AWS::IAM::Group":             {createGroup, updateGroup, deleteGroup},
	"AWS::IAM::User":              {createUser, updateUser, deleteUser},
	"AWS::IAM::Policy":            {putPolicy, putPolicy, deletePolicy},
	"AWS::IAM::ManagedPolicy":     {createManaged, updateManaged, deleteManaged},
	"AWS::IAM::AccessKey":         {createAccessKey, updateAccessKey, deleteAccessKey},
	"AWS::IAM::InstanceProfile":   {createProfile, updateProfile, deleteProfile},

	"AWS::SSM::Parameter":                      {putParameter, putParameter, deleteParameter},
	"AWS::CloudFormation::WaitConditionHandle": {keep, keep, nothing},
	"AWS::KinesisFirehose::DeliveryStream":     {createStream, updateStream, deleteStream},
	"Godwit::Ingest::Source":                   {createSource, writeSource, deleteSource},

	"AWS::KMS::Key":                   {createKey, updateKey, deleteKey},
	"AWS::KMS::Alias":                 {createKeyAlias, updateKeyAlias, deleteKeyAlias},
	"AWS::Lambda::Function":           {createFunction, updateFunction, deleteFunction},
	"AWS::Lambda::Version":            {createVersion, updateVersion, deleteVersion},
	"AWS::Lambda::Alias":              {createAlias, updateAlias, deleteAlias},
	"AWS::Lambda::Permission":         {createPermission, keep, deletePermission},
	"AWS::Lambda::EventSourceMapping": {createMapping, updateMapping, deleteMapping},
	"AWS::Lambda::EventInvokeConfig":  {createEventInvoke, putEventInvoke, deleteEventInvoke},
}

// work is a step under way.
type work struct {
	*stacks.Task

	worker *Worker
	by     *caller.Caller
	failed *api.Call // of the operation that was refused last
}

// How often and how long a step is put off that cannot be taken now.
const (
	maxTries = 20
	maxWait  = 5 * time.Second

	maxLook = 500 * time.Millisecond // how often it is looked at a nested stack, at least
)

// Do implements stacks.Worker.
func (v *Worker) Do(ctx context.Context, t *stacks.Task) (o stack.Outcome, later time.Duration) {
	h, ok := handlers[t.Target.Type]
	if !ok { // a later version has begun it
		return stack.Outcome{Physical: t.Target.Physical, Reason: "Unrecognized resource type: " + t.Target.Type}, 0
	}
	w := &work{Task: t, worker: v}
	err := w.identify()
	var is made
	switch {
	case err == nil:
		switch t.Action {
		case stack.Create:
			is, err = h.create(ctx, w)
		case stack.Update:
			is, err = h.update(ctx, w)
		case stack.Delete:
			err = h.remove(ctx, w)
		}
	case t.Action == stack.Create && t.Again && t.Target.Type == "AWS::IAM::Policy":
		is.physical = t.Target.Physical // an earlier process may have given it
	}
	if err == errUnderWay { //nolint:errorlint // it is not wrapped
		return o, min(10*time.Millisecond<<min(t.Try, 8), maxLook)
	}
	if err != nil && t.Try < maxTries && passes(err) {
		return o, min(50*time.Millisecond<<min(t.Try, 8), maxWait)
	}
	o = stack.Outcome{Physical: is.physical, Attributes: is.attributes}
	if err != nil {
		o.Reason = w.reason(err)
	}
	return o, 0
}

// passes reports that what is refused now may be taken later.
func passes(err error) bool {
	switch fault.KindOf(err) {
	case fault.Throttled, fault.Unavailable, fault.QueueDeletedRecently, fault.Conflict, fault.ResourceInUse:
		return true
	default:
		return false
	}
}

// identify finds out who acts.
func (w *work) identify() error {
	w.by = w.By
	if w.Role != "" && w.worker.Acting != nil {
		source, err := arn.Parse(w.Stack)
		if err != nil {
			return err
		}
		if w.by, err = w.worker.Acting(source, w.Role); err != nil {
			return fault.New(fault.AccessDenied, "Role "+w.Role+" is invalid or cannot be assumed")
		}
	}
	if w.by == nil {
		w.by = authorize.RootOf(w.Account)
	}
	return nil
}

// ask calls an operation, whose answer is an *Out.
func ask[Out any](ctx context.Context, w *work, service, operation, region string, in any) (*Out, error) {
	return carry[Out](ctx, w, &api.Call{Service: service, Operation: operation, Region: region}, in)
}

// create calls an operation that makes something without a name of its own: the same one
// whenever the step is taken again.
func create[Out any](ctx context.Context, w *work, service, operation string, in any) (*Out, error) {
	return carry[Out](ctx, w, &api.Call{Service: service, Operation: operation, Region: w.Region, Once: w.Token}, in)
}

func carry[Out any](ctx context.Context, w *work, call *api.Call, in any) (*Out, error) {
	call.Protocol, call.Account, call.Caller = "query", w.Account, w.by
	call.RemoteAddr, call.Host, call.Via = authorize.CloudFormation, secure(w.worker.URL), w.via()
	out, err := w.worker.Within(ctx, call, in)
	if err != nil {
		w.failed = call
		return nil, err
	}
	return out.(*Out), nil
}

// via is the service that asks for who acts. In a role it asks for itself.
func (w *work) via() string {
	if w.Role != "" {
		return ""
	}
	return authorize.CloudFormation
}

// secure is an address with TLS: what stays within the process is as safe as that.
func secure(url string) string {
	if host, ok := strings.CutPrefix(url, "http://"); ok {
		return "https://" + host
	}
	return url
}

// exists reports that what is to be made is there.
func exists(err error) bool {
	switch fault.KindOf(err) {
	case fault.ResourceAlreadyExists, fault.EntityAlreadyExists, fault.QueueNameExists, fault.ResourceConflict:
		return true
	default:
		return false
	}
}

// handlerError is a refusal of a handler itself, with AWS's code for it.
type handlerError struct{ text, code string }

func (e *handlerError) Error() string { return e.text }

// fill is [fit.Into], with the error that AWS's handlers have.
func fill(properties map[string]any, in any) error {
	if err := fit.Into(properties, in); err != nil {
		return &handlerError{"Model validation failed (" + err.Error() + ")", "InvalidRequest"}
	}
	return nil
}

// taken refuses a name that something else has.
func (w *work) taken(name string) error {
	return &handlerError{fmt.Sprintf("Resource of type '%s' with identifier '%s' already exists.", w.Target.Type, name), "AlreadyExists"}
}

// missing refuses what can't be found any more.
func (w *work) missing() error {
	return &handlerError{fmt.Sprintf("Resource of type '%s' with identifier '%s' was not found.", w.Target.Type, w.Target.Physical), "NotFound"}
}

// services are the names that AWS's handlers know services by.
var services = map[string]string{
	"sqs": "Sqs", "sns": "Sns", "lambda": "Lambda", "iam": "Iam", "kms": "Kms", "monitoring": "CloudWatch", "logs": "CloudWatchLogs", "firehose": "Firehose",
	"cloudformation": "AmazonCloudFormation",
}

// reason is what AWS's events say of a failure.
func (w *work) reason(err error) string {
	var text string
	code := "InvalidRequest"
	if own, ok := err.(*handlerError); ok { //nolint:errorlint // it is not wrapped
		if own.code == "" { // of no service
			return own.text
		}
		text, code = own.text, own.code
	} else {
		kind := fault.KindOf(err)
		status := 400
		switch {
		case stacks.IsGone(err):
			code, status = "NotFound", 404
		case kind == fault.AccessDenied || kind == fault.KMSAccessDenied:
			code, status = "AccessDenied", 403
		case kind == fault.Throttled:
			code = "Throttling"
		case exists(err):
			code, status = "AlreadyExists", 409
		case kind == fault.LimitExceeded || kind == fault.TopicLimitExceeded || kind == fault.SubscriptionLimitExceeded || kind == fault.FilterPolicyLimitExceeded:
			code = "ServiceLimitExceeded"
		case kind == fault.Internal:
			code, status = "GeneralServiceException", 500
		}
		if kind == fault.Internal {
			text = "Internal error"
		} else {
			text = refusal.Text(err)
		}
		if w.failed != nil {
			if _, described, _ := w.failed.Describe(err); described != "" {
				text = described
			}
			text += fmt.Sprintf(" (Service: %s, Status Code: %d, Request ID: %s)", services[w.failed.Service], status, w.failed.RequestID)
		}
	}
	return fmt.Sprintf("Resource handler returned message: %q (RequestToken: %s, HandlerErrorCode: %s)", text, w.Token, code)
}

// text is what an attribute is set to for a property.
func text(value any) string {
	if s, ok := resource.Scalar(value); ok {
		return s
	}
	if value == nil {
		return ""
	}
	out, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(out)
}

// list are the texts of a property that is a list of them.
func list(value any) (texts []string) {
	items, _ := value.([]any)
	for _, item := range items {
		texts = append(texts, text(item))
	}
	return texts
}

// tags are those of a property.
func tags(value any) map[string]string {
	items, _ := value.([]any)
	found := map[string]string{}
	for _, item := range items {
		if tag, ok := item.(map[string]any); ok {
			found[text(tag["Key"])] = text(tag["Value"])
		}
	}
	return found
}

// retagged says which tags to set and which to take away.
func retagged(was, now any) (set map[string]string, gone []string) {
	old, all := tags(was), tags(now)
	set = map[string]string{}
	for key, value := range all {
		if before, ok := old[key]; !ok || before != value {
			set[key] = value
		}
	}
	for key := range old {
		if _, ok := all[key]; !ok {
			gone = append(gone, key)
		}
	}
	return set, gone
}
