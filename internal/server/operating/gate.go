// Package operating lets operators in: it finds out who asks for what is Godwit's own, and
// whether policies let them.
package operating

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/admin"
	"godwit.dev/godwit/internal/api/operator"
	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/audit"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/console/session"
	"godwit.dev/godwit/internal/policy"
	"godwit.dev/godwit/internal/sigv4"
)

// service is what a request of an operator is signed for.
const service = "godwit"

// maxBody bounds the body of an operator's request, in bytes.
const maxBody = 64 << 10

// The broad rights: one of them covers what policies that name no operation mean.
const (
	read    = "godwit:Read"
	operate = "godwit:Operate"
)

// errNotOperator refuses a caller who is known and no operator.
var errNotOperator = errors.New("only the root user of this server's own account may ask for this, and users of it who are allowed godwit:Read or godwit:Operate")

// Options are what a Gate decides by.
type Options struct {
	Config   config.Config
	Clock    clock.Clock
	Verifier *sigv4.Verifier // nil: nobody is asked who he is
	Policies *authorize.Authorizer
	Trail    *audit.Trail // nil: nothing is recorded
	// Sessions are who is signed in to the console; nil: nobody can be.
	Sessions Sessions
	// Used is called for the use of an access key: by itself, or by a session that it has opened.
	Used func(accessKey, service, region string)
}

// Sessions know who is signed in to the console.
type Sessions interface {
	// Of is whose session a request's cookie is of: nil if it has none.
	Of(r *http.Request) (*caller.Caller, error)
	// Still refuses a request whose session is over since.
	Still(r *http.Request) error
}

// Gate lets operators in.
type Gate struct{ Options }

// New makes a gate.
func New(o Options) *Gate { return &Gate{o} }

// A request's context has who asks under callerKey, and under sessionKey whether he is known
// by a session.
type (
	callerKey  struct{}
	sessionKey struct{}
)

// Operator refuses a caller who may not ask for what is Godwit's own, and notes in the request who
// asks; nil where everybody may. It has read the body, and puts another one in its place.
// What a policy must allow for /_godwit/v1 is Admit's affair.
func (g *Gate) Operator() func(w http.ResponseWriter, r *http.Request) error {
	if g.Verifier == nil {
		return nil
	}
	return func(w http.ResponseWriter, r *http.Request) (err error) {
		var who *caller.Caller
		ours := strings.HasPrefix(r.URL.Path, operator.Prefix)
		defer func() {
			if err != nil || !ours { // else Admit records it, by its name
				g.Trail.Operator(r, who, g.Clock.Now(), g.Config.Region, err)
			}
		}()
		who, err = g.identify(w, r)
		if err != nil {
			return err
		}
		*r = *r.WithContext(context.WithValue(r.Context(), callerKey{}, who))
		switch {
		case who.Account != g.Config.Account:
			return errNotOperator
		case who.Kind == caller.Root || ours:
			return nil
		case !isOperator(who):
			return errNotOperator
		}
		action := operate
		if r.Method == http.MethodGet {
			action = read
		}
		if err := g.may(r, who, action, "", g.pathARN(r)); err != nil {
			return errNotOperator
		}
		return g.former(w, r, who)
	}
}

// unidentified refuses a caller who does not say who he is, or not so that it can be believed.
type unidentified struct{ error }

// Refuse answers with what Operator has refused.
func Refuse(w http.ResponseWriter, r *http.Request, err error) {
	var unknown unidentified
	var large *http.MaxBytesError
	switch {
	case !strings.HasPrefix(r.URL.Path, operator.Prefix):
		admin.Forbid(w, err.Error())
	case errors.As(err, &large):
		rest.WriteProblem(w, http.StatusRequestEntityTooLarge, "TooLarge", err.Error())
	case errors.As(err, &unknown):
		rest.WriteProblem(w, http.StatusUnauthorized, "Unauthenticated", err.Error())
	default:
		Forbid(w, r, err.Error())
	}
}

// Forbid answers 403 for one of Godwit's own paths, below /_godwit/v1 in the form of the operator's
// API.
func Forbid(w http.ResponseWriter, r *http.Request, text string) {
	if strings.HasPrefix(r.URL.Path, operator.Prefix) {
		rest.WriteProblem(w, http.StatusForbidden, "Forbidden", text)
		return
	}
	admin.Forbid(w, text)
}

// identify finds out who asks.
func (g *Gate) identify(w http.ResponseWriter, r *http.Request) (*caller.Caller, error) {
	if g.Sessions != nil {
		switch who, err := g.Sessions.Of(r); {
		case errors.Is(err, session.ErrCSRF): // who asks is known, and has not signed out
			return nil, err
		case err != nil:
			return nil, unidentified{err}
		case who != nil:
			*r = *r.WithContext(context.WithValue(r.Context(), sessionKey{}, true))
			g.Used(who.AccessKey, service, g.Config.Region)
			return who, nil
		}
	}
	return g.signer(w, r)
}

// signer finds out who has signed a request.
func (g *Gate) signer(w http.ResponseWriter, r *http.Request) (*caller.Caller, error) {
	request := sigv4.Of(r)
	request.Service = service
	if err := g.Verifier.Examine(&request); err != nil { // else unauthenticated clients could have their bodies held in memory
		return nil, unknown(err)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return nil, fmt.Errorf("the body cannot be read: %w", err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	request.Payload, request.Exact = sha256.Sum256(body), true
	who, err := g.Verifier.Verify(&request)
	if err != nil {
		return who, unknown(err)
	}
	g.Used(who.AccessKey, service, g.Config.Region)
	return who, nil
}

// unknown says what to do about a signature that is not good.
func unknown(err error) error {
	return unidentified{fmt.Errorf("%w (sign for the service %s, as the root user or as a user whom a policy lets; or ask at --admin-listen)", err, service)}
}

// pathARN names what a request is for that names no resource.
func (g *Gate) pathARN(r *http.Request) string {
	return "arn:" + arn.Partition + ":godwit:" + g.Config.Region + ":" + g.Config.Account + ":" + strings.TrimPrefix(r.URL.Path, "/")
}

func (g *Gate) decide(ctx context.Context, who *caller.Caller, action, resource string, known authorize.Context) (policy.Result, error) {
	need := authorize.Need{Action: action, Account: g.Config.Account, Resource: resource}
	known.Caller, known.Region, known.Now = who, g.Config.Region, g.Clock.Now().UnixMilli()
	return g.Policies.Decide(ctx, &need, &known)
}

// Admit refuses a caller who may not do an operation of /_godwit/v1 on a resource, and records it.
func (g *Gate) Admit(r *http.Request, op *rest.Operation, resource string) (call *rest.Call, err error) {
	who, _ := r.Context().Value(callerKey{}).(*caller.Caller)
	call = &rest.Call{Caller: who}
	asked, about := g.Clock.Now(), audit.Operation{Name: op.Name, Resource: resource, Reads: op.Reads()}
	record := func(err error) { g.Trail.Operation(r, who, asked, g.Config.Region, about, outcome(err)) }
	if !op.Reads() || op.NeedsOwnRight() || who != nil {
		call.Ended = record
	}
	defer func() {
		if err != nil {
			record(err)
		}
	}()
	if g.Verifier == nil || g.Config.AdminListen != "" {
		return call, nil
	}
	if who == nil {
		return nil, rest.Forbidden("nobody says who asks")
	}
	call.May = func(_ context.Context, action, resource string) error {
		return g.may(r, who, action, broadOf(action), cmp.Or(resource, g.pathARN(r)))
	}
	if who.Kind == caller.Root {
		call.Still = func(context.Context) error { return g.stillGood(r, who) }
		return call, nil
	}
	if !isOperator(who) {
		return nil, rest.Forbidden("only the root user of this server's own account may ask for this, and users of it whom a policy lets")
	}
	broad := operate
	if op.Reads() {
		broad = read
	}
	if op.NeedsOwnRight() {
		broad = ""
	}
	if resource == "" {
		resource = g.pathARN(r)
	}
	call.Still = func(context.Context) error {
		if err := g.stillGood(r, who); err != nil {
			return err
		}
		return g.may(r, who, op.Action(), broad, resource)
	}
	return call, g.may(r, who, op.Action(), broad, resource)
}

// Malformed records a request of an operation that cannot be read.
func (g *Gate) Malformed(r *http.Request, op *rest.Operation, err error) {
	g.unserved(r, audit.Operation{Name: op.Name, Reads: op.Reads()}, op.NeedsOwnRight(), err)
}

// Missed records a request of an operation that does not exist.
func (g *Gate) Missed(r *http.Request) {
	if strings.HasPrefix(r.URL.Path, operator.Prefix) { // else Operator has
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead
		g.unserved(r, audit.Operation{Name: r.Method + " " + r.URL.Path, Reads: reads}, false, rest.NotFound("there is no such operation"))
	}
}

// unserved records what never comes to Admit, which would record it.
func (g *Gate) unserved(r *http.Request, about audit.Operation, always bool, err error) {
	who, _ := r.Context().Value(callerKey{}).(*caller.Caller)
	if !about.Reads || always || who != nil {
		g.Trail.Operation(r, who, g.Clock.Now(), g.Config.Region, about, outcome(err))
	}
}

// broadOf is the broad right that covers an action; empty: none does.
func broadOf(action string) string {
	switch {
	case strings.HasPrefix(action, "godwit:Get"), strings.HasPrefix(action, "godwit:List"):
		return read
	case strings.HasPrefix(action, "godwit:") && action != rest.Peeking:
		return operate
	}
	return ""
}

// stillAllowed refuses what its requester may not do any more: it continues without a request,
// and so no policy knows an address. Nil: nobody was asked who he is.
func (g *Gate) stillAllowed(ctx context.Context, who *caller.Caller, action, resource string) error {
	if g.Verifier == nil || who == nil {
		return nil
	}
	return g.allowed(ctx, who, action, broadOf(action), resource, authorize.Context{})
}

// outcome is what is recorded of an operation that ended with err.
func outcome(err error) audit.Outcome {
	if err == nil {
		return audit.Outcome{Status: http.StatusOK}
	}
	refusal := rest.RefusalOf(err)
	o := audit.Outcome{Status: refusal.Status, Code: refusal.Code, Message: refusal.Text}
	if o.Status == http.StatusForbidden {
		o.Code = "AccessDenied"
	}
	return o
}

// Within lets who acts for a stack have an operation of /_godwit/v1 carried out on a resource, and
// records it. No policy knows an address of it.
func (g *Gate) Within(ctx context.Context, who *caller.Caller, op *rest.Operation, resource string) (call *rest.Call, err error) {
	asked, about := g.Clock.Now(), audit.Operation{Name: op.Name, Resource: resource, Reads: op.Reads()}
	call = &rest.Call{Ended: func(err error) {
		from := &http.Request{RemoteAddr: authorize.CloudFormation, Header: http.Header{}}
		g.Trail.Operation(from, who, asked, g.Config.Region, about, outcome(err))
	}}
	if g.Verifier == nil {
		return call, nil
	}
	call.Caller = who
	call.May = func(ctx context.Context, action, resource string) error {
		return g.allowed(ctx, who, action, broadOf(action), resource, authorize.Context{Via: authorize.CloudFormation}) // who is no role: those may nothing here
	}
	switch {
	case who.Account != g.Config.Account:
		err = rest.Forbidden(errNotOperator.Error())
	case who.Kind != caller.Root:
		on := cmp.Or(resource, "arn:"+arn.Partition+":godwit:"+g.Config.Region+":"+g.Config.Account+":"+strings.TrimPrefix(op.Path, "/"))
		err = call.May(ctx, op.Action(), on)
	}
	if err != nil {
		call.Ended(err)
	}
	return call, err
}

// stillGood refuses whose session is over, or whose access key is not good any more.
func (g *Gate) stillGood(r *http.Request, who *caller.Caller) error {
	if signedIn, _ := r.Context().Value(sessionKey{}).(bool); signedIn {
		return g.Sessions.Still(r)
	}
	const token = "X-Amz-Security-Token"
	credential, err := g.Verifier.Keys(who.AccessKey, cmp.Or(r.Header.Get(token), r.URL.Query().Get(token)))
	if err != nil || !credential.Expires.IsZero() && !g.Verifier.Now().Before(credential.Expires) {
		return rest.Forbidden("the access key is not good any more")
	}
	return nil
}

// may refuses what no policy allows, neither the action nor the broad right that covers it,
// and what a policy denies, either of them, by any name that the resource has.
func (g *Gate) may(r *http.Request, who *caller.Caller, action, broad, resource string) error {
	return g.allowed(r.Context(), who, action, broad, resource, transport(r))
}

// transport is how a request came.
func transport(r *http.Request) authorize.Context {
	known := authorize.Context{Address: r.RemoteAddr, Transport: authorize.Plain}
	if r.TLS != nil {
		known.Transport = authorize.TLS
	}
	return known
}

func (g *Gate) allowed(ctx context.Context, who *caller.Caller, action, broad, resource string, known authorize.Context) error {
	if g.Policies.Current != nil {
		who = g.Policies.Current(who) // a refusal names him as he is now
	}
	actions := []string{action}
	if broad != "" {
		actions = append(actions, broad)
	}
	allowed := false
	var first error // why not
	for _, name := range namesOf(resource) {
		for _, one := range actions {
			result, err := g.decide(ctx, who, one, name, known)
			if err != nil {
				return err
			}
			if allowed = allowed || result.Allowed(); result.Allowed() {
				continue
			}
			refusal := rest.Forbidden(api.Denial(who, &authorize.Need{Action: one, Resource: name, Account: g.Config.Account}, &result))
			if result.Decision == policy.ExplicitDeny {
				return refusal
			}
			first = cmp.Or(first, refusal)
		}
	}
	if allowed {
		return nil
	}
	return first
}

// namesOf are the ARNs that policies know a resource by: a log group has two.
func namesOf(resource string) []string {
	a, err := arn.Parse(resource)
	name, ok := a.LogGroupName()
	if err != nil || !ok {
		return []string{resource}
	}
	group := arn.LogGroup(a.Region, a.Account, name).String()
	return []string{group, group + ":*"}
}
