// Package audit writes an audit log of requests and their results, as JSON lines in the form
// of CloudTrail's records.
//
// A record never has a body, a secret or a signature: of the parameters it has only the names
// of resources, by a list of members (names.go).
package audit

import (
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/caller"
)

// Sink stores records, as lines without a line end. It is called concurrently.
type Sink interface {
	Write(at time.Time, line []byte) error
}

// Options are the dependencies and settings of a Trail. Sinks, Logger and NewID are required.
type Options struct {
	Sinks []Sink
	// Data also records data events: operations on messages, invocations, events and metrics.
	Data   bool
	Logger *slog.Logger
	NewID  func() string // returns a UUID
	// Current is the caller of a stored record as it is now; nil: as it was stored.
	Current func(*caller.Caller) *caller.Caller
}

// Trail writes records. It is safe for concurrent use.
type Trail struct {
	Options
	failure atomic.Pointer[error] // of the latest record; nil: none
}

// New makes a trail.
func New(o Options) *Trail { return &Trail{Options: o} }

// Outcome is the result of a call.
type Outcome struct {
	Status int    // HTTP
	Code   string // of the error, in the Query protocol; empty for success
	// Message is the error's message, if the caller was denied.
	Message string
}

// version is the version of the record format.
const version = "1.11"

type record struct {
	EventVersion  string   `json:"eventVersion"`
	UserIdentity  identity `json:"userIdentity"`
	EventTime     string   `json:"eventTime"`
	EventSource   string   `json:"eventSource"`
	EventName     string   `json:"eventName"`
	Region        string   `json:"awsRegion"`
	SourceAddress string   `json:"sourceIPAddress"`
	UserAgent     string   `json:"userAgent,omitempty"`
	ErrorCode     string   `json:"errorCode,omitempty"`
	ErrorMessage  string   `json:"errorMessage,omitempty"`
	Parameters    any      `json:"requestParameters"`
	Response      any      `json:"responseElements"` // null, as it may have secrets
	RequestID     string   `json:"requestID,omitempty"`
	EventID       string   `json:"eventID"`
	ReadOnly      bool     `json:"readOnly"`
	EventType     string   `json:"eventType"`
	Management    bool     `json:"managementEvent"`
	Recipient     string   `json:"recipientAccountId,omitempty"`
	Category      string   `json:"eventCategory"`
}

type identity struct {
	Type      string   `json:"type"`
	Principal string   `json:"principalId,omitempty"`
	ARN       string   `json:"arn,omitempty"`
	Account   string   `json:"accountId,omitempty"`
	AccessKey string   `json:"accessKeyId,omitempty"`
	UserName  string   `json:"userName,omitempty"`
	Session   *session `json:"sessionContext,omitempty"`
	InvokedBy string   `json:"invokedBy,omitempty"`
}

type session struct {
	Issuer struct {
		Type      string `json:"type"`
		Principal string `json:"principalId,omitempty"`
		ARN       string `json:"arn,omitempty"`
		Account   string `json:"accountId,omitempty"`
	} `json:"sessionIssuer"`
	Attributes struct {
		Created string `json:"creationDate,omitempty"`
	} `json:"attributes"`
	Federation *federation `json:"webIdFederationData,omitempty"`
}

// federation is who an identity provider says that a session is of, as the session's name may be
// any.
type federation struct {
	Provider   string            `json:"federatedProvider"`
	Attributes map[string]string `json:"attributes"`
}

var kinds = map[caller.Kind]string{
	caller.Anonymous: "Unknown", caller.Root: "Root", caller.User: "IAMUser", caller.Session: "AssumedRole",
	caller.Federated: "FederatedUser", caller.Service: "AWSService",
}

// identityOf is the caller; for an unverified call only the claimed one.
func identityOf(who *caller.Caller, accessKey string) identity {
	if who == nil {
		return identity{Type: "Unknown", AccessKey: bounded(accessKey)}
	}
	i := identity{Type: kinds[who.Kind], Principal: who.ID, ARN: who.ARN, Account: who.Account, AccessKey: who.AccessKey}
	switch who.Kind {
	case caller.User:
		i.UserName = who.Name
	case caller.Session:
		s := &session{}
		s.Issuer.Type, s.Issuer.Principal, s.Issuer.ARN, s.Issuer.Account = "Role", who.RoleID, who.Role, who.Account
		if !who.Issued.IsZero() {
			s.Attributes.Created = stamp(who.Issued)
		}
		if who.Provider != "" {
			f := &federation{Provider: bounded(who.Provider), Attributes: map[string]string{}}
			for key, values := range who.Claims {
				if claim := key[strings.LastIndexByte(key, ':')+1:]; len(values) > 0 && (claim == "sub" || claim == "aud") {
					f.Attributes[key] = bounded(values[0])
				}
			}
			s.Federation = f
		}
		i.Session = s
	case caller.Service:
		if len(who.Services) > 0 {
			i.InvokedBy = who.Services[0]
		}
	default:
	}
	return i
}

// identityOf is the caller as it is now.
func (t *Trail) identityOf(who *caller.Caller, accessKey string) identity {
	if who != nil && t.Current != nil {
		who = t.Current(who)
	}
	return identityOf(who, accessKey)
}

// Call records a call of the AWS APIs. in is its input, as far as it was decoded; nil: not at
// all.
func (t *Trail) Call(c *api.Call, in any, o Outcome) {
	if t == nil || c.Operation == "" && c.Service == "" {
		return
	}
	data := isData(c.Service, c.Operation)
	if data && !t.Data {
		return
	}
	r := record{
		UserIdentity: t.identityOf(c.Caller, c.AccessKey),
		EventSource:  c.Service + ".amazonaws.com", EventName: c.Operation, Region: c.Region,
		SourceAddress: host(c.RemoteAddr), UserAgent: bounded(c.Header.Get("User-Agent")),
		ErrorCode: o.Code, Parameters: parameters(in), RequestID: c.RequestID, ReadOnly: isReading(c.Operation),
		EventType: "AwsApiCall", Recipient: c.Account,
	}
	if o.Status == http.StatusForbidden || o.Status == http.StatusUnauthorized || strings.Contains(o.Code, "AccessDenied") { // some services answer that with 400
		r.ErrorMessage = bounded(o.Message)
	}
	t.write(c.Time, &r, data)
}

// Operator records an operator's request below /_godwit/, or for metrics.
func (t *Trail) Operator(r *http.Request, who *caller.Caller, at time.Time, region string, refusal error) {
	if t == nil {
		return
	}
	record := record{
		UserIdentity: t.identityOf(who, ""), EventSource: "godwit", EventName: r.Method + " " + bounded(r.URL.Path), Region: region,
		SourceAddress: host(r.RemoteAddr), UserAgent: bounded(r.UserAgent()), ReadOnly: r.Method == http.MethodGet, EventType: "AwsApiCall",
	}
	if refusal != nil {
		record.ErrorCode, record.ErrorMessage = "AccessDenied", bounded(refusal.Error())
	}
	t.write(at, &record, false)
}

// Operation is an operation of the operator's API.
type Operation struct {
	Name     string // as in the API's document
	Resource string // its ARN; empty: none
	Reads    bool   // it changes nothing
}

// Operation records an operation of /_godwit/v1 and its result.
func (t *Trail) Operation(r *http.Request, who *caller.Caller, at time.Time, region string, op Operation, o Outcome) {
	if t == nil {
		return
	}
	record := record{
		UserIdentity: t.identityOf(who, ""), EventSource: "godwit", EventName: bounded(op.Name), Region: region,
		SourceAddress: host(r.RemoteAddr), UserAgent: bounded(r.UserAgent()), ReadOnly: op.Reads, EventType: "AwsApiCall",
	}
	if op.Resource != "" {
		record.Parameters = map[string]string{"resource": bounded(op.Resource)}
	}
	record.ErrorCode = o.Code
	if o.Status == http.StatusForbidden || o.Status == http.StatusUnauthorized {
		record.ErrorMessage = bounded(o.Message)
	}
	t.write(at, &record, false)
}

func (t *Trail) write(at time.Time, r *record, data bool) {
	r.EventVersion, r.EventTime, r.EventID, r.Management, r.Category = version, stamp(at), t.NewID(), !data, "Management"
	if data {
		r.Category = "Data"
	}
	line, err := json.Marshal(r)
	if err != nil {
		panic(err) // the types can always be marshalled
	}
	for _, sink := range t.Sinks {
		if failed := sink.Write(at, line); failed != nil {
			err = failed
		}
	}
	if err == nil {
		t.failure.Store(nil)
	} else if t.failure.Swap(&err) == nil {
		t.Logger.Error("the audit log cannot be written", "error", err)
	}
}

// Failing is why the latest record was not written, or not synced; nil if it was.
func (t *Trail) Failing() error {
	if t == nil {
		return nil
	}
	if err := t.failure.Load(); err != nil {
		return *err
	}
	for _, sink := range t.Sinks {
		if late, ok := sink.(interface{ Failing() error }); ok {
			if err := late.Failing(); err != nil {
				return err
			}
		}
	}
	return nil
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }

func host(address string) string {
	if h, _, err := net.SplitHostPort(address); err == nil {
		return h
	}
	return address
}

// longest bounds the text of an unauthenticated client in a record, in bytes.
const longest = 512

func bounded(s string) string {
	if len(s) > longest {
		s = s[:longest]
	}
	return strings.ToValidUTF8(s, "")
}
