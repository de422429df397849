// Package rest serves operations that are declared once: Go types for the request and the
// answer, and their descriptions for the document. The same declaration decodes requests,
// checks their bounds and generates the OpenAPI document, so that the three cannot differ.
package rest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"time"

	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/fault"
)

// MaxBody bounds the body of a request, in bytes.
const MaxBody = 64 << 10

// Call has the data of a request besides its input.
type Call struct {
	Caller *caller.Caller // nil: callers are not authenticated
	// May checks the caller's permission for a further action on a resource, such as
	// decrypting; nil: everything is allowed.
	May func(ctx context.Context, action, resource string) error
	// Still refuses to continue a stream if the access key is no longer valid, or if policies
	// do not allow it any more; nil: everything is allowed.
	Still  func(ctx context.Context) error
	Writer http.ResponseWriter // for streams
	// Last is the id of the last event that a client of a stream had before it asked again; empty:
	// it had none.
	Last string
	// Ended is called with the operation's error, nil for success, before the answer; for a
	// stream, when it begins. May be nil.
	Ended func(err error)
}

// Operation is one method of one path.
type Operation struct {
	Method, Path string
	Name         string // "ListQueues": the action is godwit:ListQueues
	Summary      string // one sentence
	// Peeks says that the answer shows messages: the permission to read does not include it;
	// it requires godwit:PeekMessages.
	Peeks bool
	// Right is the required permission, if it is not the operation's name and no broad
	// permission includes it: "Backup" for godwit:Backup.
	Right string
	// Open says that no permission is required.
	Open bool
	// Harmless says that a POST changes nothing: the permission to read includes it.
	Harmless bool
	Statuses []int // of errors, besides 400, 403 and 500
	Stream   bool  // the answer is text/event-stream, and out is the data of an event
	Binary   bool  // the answer is bytes, which the operation itself writes
	Long     bool  // without the deadlines of requests

	in, out  reflect.Type
	serve    func(ctx context.Context, c *Call, in any) (any, error)
	accepted bool // success is 202
}

// Peeking is the permission to see messages.
const Peeking = "godwit:PeekMessages"

// Action is the required permission.
func (o *Operation) Action() string {
	if o.Peeks {
		return Peeking
	}
	if o.Right != "" {
		return "godwit:" + o.Right
	}
	return "godwit:" + o.Name
}

// NeedsOwnRight reports whether no broad permission includes the operation.
func (o *Operation) NeedsOwnRight() bool { return o.Peeks || o.Right != "" }

// Reads reports whether the operation changes nothing.
func (o *Operation) Reads() bool { return o.Method == http.MethodGet || o.Harmless }

// About is implemented by inputs with one resource: its ARN, or "" if the request has none.
type About interface{ About() string }

// Define declares an operation. In is a struct whose fields have the tags query (of a GET) or
// json (of a POST's body) and, as needed, doc, min, max, default, enum and required; Out is
// the JSON answer.
func Define[In, Out any](o Operation, f func(ctx context.Context, c *Call, in *In) (*Out, error)) Operation {
	o.in, o.out = reflect.TypeFor[In](), reflect.TypeFor[Out]()
	o.serve = func(ctx context.Context, c *Call, in any) (any, error) {
		out, err := f(ctx, c, in.(*In))
		if err != nil || out == nil {
			return nil, err
		}
		return out, nil
	}
	return o
}

// Accepts is the operation with the status 202: its work continues after the answer.
func (o Operation) Accepts() Operation {
	o.accepted = true
	return o
}

// Refusal is an error answer.
type Refusal struct {
	Status int
	Code   string // one word, for programs
	Text   string // for people
}

func (r *Refusal) Error() string { return r.Text }

// refuse returns a constructor of refusals with a status.
func refuse(status int, code string) func(text string) error {
	return func(text string) error { return &Refusal{status, code, text} }
}

// The refusals of operations.
var (
	BadRequest  = refuse(http.StatusBadRequest, "BadRequest")
	Forbidden   = refuse(http.StatusForbidden, "Forbidden")
	NotFound    = refuse(http.StatusNotFound, "NotFound")
	Conflict    = refuse(http.StatusConflict, "Conflict")
	Unavailable = refuse(http.StatusServiceUnavailable, "Unavailable")
)

// codes are the refusals' codes by status.
var codes = map[int]string{
	http.StatusBadRequest: "BadRequest", http.StatusForbidden: "Forbidden", http.StatusNotFound: "NotFound", http.StatusConflict: "Conflict",
	http.StatusServiceUnavailable: "Unavailable", http.StatusInternalServerError: "Internal",
}

// Problem is the body of every refusal.
type Problem struct {
	Error string `json:"error" doc:"What is wrong, for people."`
	Code  string `json:"code" doc:"What is wrong, in one word, for programs."`
}

// WriteProblem writes an error as the answer.
func WriteProblem(w http.ResponseWriter, status int, code, text string) {
	write(w, status, Problem{text, code})
}

func write(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(true)
	_ = encoder.Encode(v) // an error means that the client is gone
}

// refused writes err as the answer.
func refused(w http.ResponseWriter, err error) {
	r := RefusalOf(err)
	WriteProblem(w, r.Status, r.Code, r.Text)
}

// RefusalOf is the answer for err. Internal errors are not disclosed.
func RefusalOf(err error) *Refusal {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r
	}
	status := statusOf(err)
	if status == http.StatusInternalServerError {
		return &Refusal{status, codes[status], "internal error"}
	}
	return &Refusal{status, codes[status], refusal.Text(err)}
}

// Text is the message for an error of the state.
func Text(err error) string {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r.Text
	}
	return refusal.Text(err)
}

// statusOf is the status for an error of the state.
func statusOf(err error) int {
	switch fault.KindOf(err) {
	case fault.NotFound, fault.ResourceNotFound, fault.QueueDoesNotExist:
		return http.StatusNotFound
	case fault.InvalidParameter, fault.InvalidAttributeValue, fault.LimitExceeded:
		return http.StatusBadRequest
	case fault.AccessDenied, fault.KMSAccessDenied:
		return http.StatusForbidden
	case fault.ResourceInUse, fault.InvalidState:
		return http.StatusConflict
	case fault.Unavailable, fault.Throttled, fault.InsufficientStorage:
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}

// Options are the dependencies of Handlers.
type Options struct {
	// Admit authenticates the caller, and checks the permission for an operation on a
	// resource, or on none if it is empty; nil: everything is allowed.
	Admit func(r *http.Request, o *Operation, resource string) (*Call, error)
	// Malformed is called for a request of an operation that cannot be decoded, and so does not
	// reach Admit; may be nil.
	Malformed func(r *http.Request, o *Operation, err error)
}

// Handlers are the operations by their patterns of http.ServeMux.
func Handlers(all []Operation, o Options) map[string]http.Handler {
	handlers := map[string]http.Handler{}
	for i := range all {
		handlers[all[i].Method+" "+all[i].Path] = handler(&all[i], o)
	}
	return handlers
}

func handler(op *Operation, o Options) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in := reflect.New(op.in).Interface()
		if err := decode(w, r, op, in); err != nil {
			if o.Malformed != nil && !op.Open {
				o.Malformed(r, op, err)
			}
			refused(w, err)
			return
		}
		call := &Call{}
		if o.Admit != nil && !op.Open {
			resource := ""
			if about, ok := in.(About); ok {
				resource = about.About()
			}
			var err error
			if call, err = o.Admit(r, op, resource); err != nil {
				refused(w, err)
				return
			}
		}
		call.Writer, call.Last = w, r.Header.Get("Last-Event-ID")
		if op.Stream || op.Long {
			removeDeadlines(w)
		}
		out, err := carryOut(r.Context(), op, call, in)
		switch {
		case err != nil:
			refused(w, err)
		case op.Stream, op.Binary: // it has written the answer
		case op.accepted:
			write(w, http.StatusAccepted, out)
		default:
			write(w, http.StatusOK, out)
		}
	})
}

// carryOut runs an operation, and reports its result to Ended.
func carryOut(ctx context.Context, op *Operation, call *Call, in any) (out any, err error) {
	switch {
	case call.Ended == nil:
	case op.Stream: // it may end long after its first answer
		call.Ended(nil)
	default:
		err = errUnfinished // stays if it panics
		defer func() { call.Ended(err) }()
	}
	return op.serve(ctx, call, in)
}

var errUnfinished = errors.New("the operation did not end")

// removeDeadlines removes the deadlines of an answer.
func removeDeadlines(w http.ResponseWriter) {
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Time{}) // an error means that there are no deadlines
	_ = control.SetReadDeadline(time.Time{})
}
