// Package rest serves operations that are declared once: a Go type for what a request
// says, one for the answer, and what is said of them in the document. The same
// declaration decodes requests, checks their bounds and makes the OpenAPI document, so
// that the three cannot differ.
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

// MaxBody is the most that the body of a request may have, in bytes.
const MaxBody = 64 << 10

// Call is what is known of a request beside its input.
type Call struct {
	Caller *caller.Caller // nil where nobody is asked who he is
	// May refuses an action on a resource that the operation finds to be needed beside its
	// own, such as decrypting; nil where everybody may.
	May func(ctx context.Context, action, resource string) error
	// Still refuses a caller who may not continue with what was begun, since the access key is not good any
	// more, or no policy lets it; nil where everybody may.
	Still  func(ctx context.Context) error
	Writer http.ResponseWriter // for streams
	// Ended is called with the operation's error, nil if it succeeded, before the answer;
	// of a stream, that it begins. Nil: nobody wants to know.
	Ended func(err error)
}

// Operation is one method of one path.
type Operation struct {
	Method, Path string
	Name         string // "ListQueues": the action is godwit:ListQueues
	Summary      string // one sentence
	// Peeks says that the answer shows messages: the right to read does not cover it, and
	// what a policy has to allow is godwit:PeekMessages.
	Peeks bool
	// Right is what a policy has to allow, if that is not the operation's own name, and no
	// broad right covers it: "Backup" for godwit:Backup.
	Right string
	// Open says that nothing has to be allowed.
	Open bool
	// Harmless says of a POST that it changes nothing: the right to read covers it.
	Harmless bool
	Statuses []int // of refusals, beside 400, 403 and 500
	Stream   bool  // the answer is text/event-stream, and out is the data of an event
	Binary   bool  // the answer is bytes, which the operation writes itself
	Long     bool  // the answer may take longer than any request should

	in, out  reflect.Type
	serve    func(ctx context.Context, c *Call, in any) (any, error)
	accepted bool // success is 202
}

// Peeking is what a policy has to allow to whom messages are shown.
const Peeking = "godwit:PeekMessages"

// Action is what a policy has to allow.
func (o *Operation) Action() string {
	if o.Peeks {
		return Peeking
	}
	if o.Right != "" {
		return "godwit:" + o.Right
	}
	return "godwit:" + o.Name
}

// NeedsOwnRight reports that no broad right covers the operation.
func (o *Operation) NeedsOwnRight() bool { return o.Peeks || o.Right != "" }

// Reads reports that the operation changes nothing.
func (o *Operation) Reads() bool { return o.Method == http.MethodGet || o.Harmless }

// About is implemented by inputs that are about one resource: its ARN, or "" if none is
// named.
type About interface{ About() string }

// Define declares an operation. In is a struct whose fields have the tags query (of a GET)
// or json (of a POST's body) and, as needed, doc, min, max, default, enum and required; Out
// is what is answered as JSON.
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

// Accepts is the operation with the answer 202: what it began continues.
func (o Operation) Accepts() Operation {
	o.accepted = true
	return o
}

// Refusal is an answer that is no success.
type Refusal struct {
	Status int
	Code   string // one word, for programs
	Text   string // for people
}

func (r *Refusal) Error() string { return r.Text }

// The refusals by their statuses.
func refuse(status int, code string) func(text string) error {
	return func(text string) error { return &Refusal{status, code, text} }
}

// What operations refuse with.
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

// WriteProblem answers with a refusal.
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
	_ = encoder.Encode(v) // a caller that is gone needs no answer
}

// refused answers with what err says.
func refused(w http.ResponseWriter, err error) {
	r := RefusalOf(err)
	WriteProblem(w, r.Status, r.Code, r.Text)
}

// RefusalOf is what err is answered with. Internal errors are not disclosed.
func RefusalOf(err error) *Refusal {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r
	}
	status := StatusOf(err)
	if status == http.StatusInternalServerError {
		return &Refusal{status, codes[status], "internal error"}
	}
	return &Refusal{status, codes[status], refusal.Text(err)}
}

// Text is the sentence that a caller sees for an error of the state.
func Text(err error) string {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r.Text
	}
	return refusal.Text(err)
}

// StatusOf is the status of an error of the state.
func StatusOf(err error) int {
	switch fault.KindOf(err) {
	case fault.NotFound, fault.ResourceNotFound, fault.QueueDoesNotExist:
		return http.StatusNotFound
	case fault.InvalidParameter, fault.InvalidAttributeValue, fault.LimitExceeded:
		return http.StatusBadRequest
	case fault.AccessDenied, fault.KMSAccessDenied:
		return http.StatusForbidden
	case fault.ResourceInUse, fault.InvalidState:
		return http.StatusConflict
	case fault.Unavailable, fault.Throttled:
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}

// Options are what the operations are served with.
type Options struct {
	// Admit refuses a caller who may not do an operation on a resource, which is empty if it is
	// about none, and says who calls; nil: everybody may do everything.
	Admit func(r *http.Request, o *Operation, resource string) (*Call, error)
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
		call.Writer = w
		if op.Stream || op.Long {
			lift(w)
		}
		out, err := carryOut(r.Context(), op, call, in)
		switch {
		case err != nil:
			refused(w, err)
		case op.Stream, op.Binary: // it has been answered
		case op.accepted:
			write(w, http.StatusAccepted, out)
		default:
			write(w, http.StatusOK, out)
		}
	})
}

// carryOut does what is asked for, and reports what came of it.
func carryOut(ctx context.Context, op *Operation, call *Call, in any) (out any, err error) {
	switch {
	case call.Ended == nil:
	case op.Stream: // its end may be long after it has shown something
		call.Ended(nil)
	default:
		err = errUnfinished // which stays if it panics
		defer func() { call.Ended(err) }()
	}
	return op.serve(ctx, call, in)
}

var errUnfinished = errors.New("the operation did not end")

// lift lets an answer take as long as it takes.
func lift(w http.ResponseWriter) {
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Time{}) // a connection without deadlines needs none lifted
	_ = control.SetReadDeadline(time.Time{})
}
