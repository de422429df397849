package platform

import (
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"godwit.dev/godwit/internal/arn"
)

// The attributes of an endpoint.
const (
	attrToken    = "Token"
	attrUserData = "CustomUserData"
)

// Endpoint is a device, or an installation of an application on one.
type Endpoint struct {
	Token    string  `json:"token"`
	UserData *string `json:"userData,omitempty"` // nil: none was given
	Disabled bool    `json:"disabled,omitempty"`
}

// Encode encodes the record of an endpoint.
func (e *Endpoint) Encode() []byte { return encode(e) }

// DecodeEndpoint decodes the record. Errors: ErrRecord.
func DecodeEndpoint(value []byte) (*Endpoint, error) { return decode[Endpoint](value) }

// TokenKey is the key by which the endpoint of a token is found.
func TokenKey(token string) (key [16]byte) {
	sum := sha256.Sum256([]byte(token))
	copy(key[:], sum[:])
	return key
}

// Shown are the attributes as GetEndpointAttributes shows them.
func (e *Endpoint) Shown() map[string]string {
	all := map[string]string{AttrEnabled: "true", attrToken: e.Token}
	if e.Disabled {
		all[AttrEnabled] = "false"
	}
	if e.UserData != nil {
		all[attrUserData] = *e.UserData
	}
	return all
}

// NewEndpoint is an endpoint as requested by CreatePlatformEndpoint: the data in attributes
// override userData. Errors: InvalidParameter.
func NewEndpoint(token string, userData *string, attributes map[string]string) (*Endpoint, error) {
	e := &Endpoint{Token: token, UserData: userData}
	e, err := e.With(attributes)
	if err != nil {
		return nil, err
	}
	return e, nil
}

// With is the endpoint with attributes changed. Errors: InvalidParameter.
func (e *Endpoint) With(attributes map[string]string) (*Endpoint, error) {
	next := *e
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		value := attributes[name]
		if !utf8.ValidString(value) {
			return nil, ErrUTF8.With(name)
		}
		switch name {
		case attrToken:
			next.Token = strings.Clone(value)
		case attrUserData:
			next.UserData = new(strings.Clone(value))
		case AttrEnabled:
			enabled, err := boolean(name, value)
			if err != nil {
				return nil, err
			}
			next.Disabled = enabled == "false"
		default:
			return nil, ErrAttributeName.With(name)
		}
	}
	switch {
	case next.Token == "":
		return nil, ErrTokenEmpty
	case len(next.Token) > maxToken:
		return nil, ErrTokenTooLong.With(maxToken)
	case !utf8.ValidString(next.Token):
		return nil, ErrUTF8.With(attrToken)
	case next.UserData != nil && len(*next.UserData) > maxUserData:
		return nil, ErrTooLong.With(attrUserData, maxUserData)
	case next.UserData != nil && !utf8.ValidString(*next.UserData):
		return nil, ErrUTF8.With(attrUserData)
	}
	return &next, nil
}

// Same reports that two endpoints have the same attributes, including missing ones.
func (e *Endpoint) Same(other *Endpoint) bool {
	return e.Token == other.Token && e.Disabled == other.Disabled && (e.UserData == nil) == (other.UserData == nil) &&
		(e.UserData == nil || *e.UserData == *other.UserData)
}

// Event is an event of an endpoint, as published to its topic.
type Event struct {
	DeliveryAttempts int    `json:",omitempty"`
	EndpointARN      string `json:"EndpointArn"`
	EventType        string
	FailureMessage   string `json:",omitempty"`
	FailureType      string `json:",omitempty"`
	MessageID        string `json:"MessageId,omitempty"`
	Resource         string
	Service          string
	Time             string
}

// NewEvent makes the event of an endpoint for the attribute that names the topic.
func NewEvent(attribute string, application, endpoint arn.ARN, now time.Time) *Event {
	return &Event{
		EventType: strings.TrimPrefix(attribute, "Event"), EndpointARN: endpoint.String(), Resource: application.String(), Service: "SNS",
		Time: now.UTC().Format("2006-01-02T15:04:05.000Z"),
	}
}

// Text is the event as it is published.
func (e *Event) Text() []byte {
	text, err := json.Marshal(e)
	if err != nil {
		panic(err) // texts and a number can always be encoded
	}
	return text
}

// The failures of an attempt that concern the endpoint, in the words of failed deliveries.
const (
	SaidInvalidToken = "Platform token associated with the endpoint is not valid"
	SaidDisabled     = "Endpoint is disabled"
	SaidNoEndpoint   = "Endpoint does not exist"
	SaidExpired      = "expired: the message's time to live is over"
)

// failures are the types of failures, by reason.
var failures = [...]struct{ said, name string }{
	{SaidInvalidToken, "InvalidPlatformToken"},
	{SaidDisabled, "EndpointDisabled"},
	{SaidNoEndpoint, "EndpointNotFound"},
	{SaidExpired, "TTLExpired"},
	{"retry policy exhausted", "ServerError"},
}

// Failed adds the reason of a failed delivery to an event.
func (e *Event) Failed(message string, attempts int, reason string) *Event {
	e.MessageID, e.DeliveryAttempts, e.FailureType, e.FailureMessage = message, attempts, "ClientError", strings.TrimPrefix(reason, "client-side error: ")
	for _, f := range failures {
		if strings.Contains(reason, f.said) {
			e.FailureType = f.name
			break
		}
	}
	return e
}
