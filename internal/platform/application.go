package platform

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/keyspace"
)

// The supported platforms.
const (
	APNs        = "APNS"
	APNsSandbox = "APNS_SANDBOX"
	FCM         = "GCM"
)

// platforms are the platforms of applications, and whether they need a principal in addition to
// the credential. Source: CreatePlatformApplication in SNS's API.
var platforms = map[string]bool{
	APNs: true, APNsSandbox: true, FCM: false, "ADM": true, "BAIDU": true, "MPNS": true, "WNS": true, "MACOS": true, "MACOS_SANDBOX": true,
	"APNS_VOIP": true, "APNS_VOIP_SANDBOX": true, "APNS_COMPLICATION": true, "APNS_COMPLICATION_SANDBOX": true,
}

// Sent reports that this server supports sending to a platform.
func Sent(platform string) bool {
	return platform == APNs || platform == APNsSandbox || platform == FCM
}

// The attributes of an application.
const (
	AttrPrincipal  = "PlatformPrincipal"
	AttrCredential = "PlatformCredential"
	AttrEnabled    = "Enabled"
	AttrTeam       = "ApplePlatformTeamID"
	AttrBundle     = "ApplePlatformBundleID"
	attrSuccess    = "SuccessFeedbackRoleArn"
	attrFailure    = "FailureFeedbackRoleArn"
	attrRate       = "SuccessFeedbackSampleRate"
)

// The events that an application may have published to a topic; each is also the attribute that
// names the topic.
const (
	EventCreated = "EventEndpointCreated"
	EventUpdated = "EventEndpointUpdated"
	EventDeleted = "EventEndpointDeleted"
	EventFailed  = "EventDeliveryFailure"
)

// The maximum lengths.
const (
	maxName       = 256   // characters
	maxCredential = 32768 // bytes, of each secret
	maxIdentifier = 256   // bytes, of Apple's names
	maxUserData   = 2048  // bytes
	maxToken      = 4096  // bytes
)

// Application is an application of a push platform. Its secrets are sealed.
type Application struct {
	Created     int64             `json:"created"` // epoch milliseconds
	Incarnation uint64            `json:"incarnation"`
	Attributes  map[string]string `json:"attributes,omitempty"` // without secrets
	Principal   []byte            `json:"principal,omitempty"`
	Credential  []byte            `json:"credential,omitempty"`
	Paused      int64             `json:"paused,omitempty"`  // epoch milliseconds; 0: not paused
	Resumed     int64             `json:"resumed,omitempty"` // epoch milliseconds
}

const version = 1

// ErrRecord reports a record that this version did not write.
var ErrRecord = errors.New("platform: unreadable record")

// Encode encodes the record of an application.
func (a *Application) Encode() []byte { return encode(a) }

func encode(v any) []byte { return keyspace.EncodeJSON(version, v) }

func decode[T any](value []byte) (*T, error) {
	v := new(T)
	if keyspace.DecodeJSON(version, value, v) != nil {
		return nil, ErrRecord
	}
	return v, nil
}

// DecodeApplication decodes the record. Errors: ErrRecord.
func DecodeApplication(value []byte) (*Application, error) { return decode[Application](value) }

// Enabled reports that messages are sent to its endpoints.
func (a *Application) Enabled() bool { return a.Attributes[AttrEnabled] != "false" }

// Shown are the attributes as GetPlatformApplicationAttributes shows them: no secrets.
func (a *Application) Shown() map[string]string {
	all := map[string]string{AttrEnabled: "true"}
	maps.Copy(all, a.Attributes)
	return all
}

// Feedback is the configuration of the delivery status log of the application, as of a topic.
func (a *Application) Feedback() map[string]string {
	all := map[string]string{}
	for _, name := range [...]string{attrSuccess, attrFailure, attrRate} {
		if value, ok := a.Attributes[name]; ok {
			all["Application"+name] = value
		}
	}
	return all
}

// CheckName refuses invalid names and platforms of applications. Errors: InvalidParameter.
func CheckName(platform, name string) error {
	switch {
	case name == "":
		return ErrNameEmpty
	case utf8.RuneCountInString(name) > maxName:
		return ErrNameTooLong.With(name, maxName)
	case strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") != "" || strings.ContainsFunc(name, outside):
		return ErrName.With(name)
	}
	if _, ok := platforms[platform]; !ok {
		return ErrPlatform.With(platform)
	}
	return nil
}

func outside(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-' && c != '.'
}

// Check refuses invalid attributes of an application. With created all required ones must be
// present, else each secret with the other one. Errors: InvalidParameter.
func Check(name arn.ARN, attributes map[string]string, created bool) error {
	for _, attribute := range slices.Sorted(maps.Keys(attributes)) {
		if err := check(name, attribute, attributes[attribute]); err != nil {
			return err
		}
	}
	platform, _, _ := name.SplitApplication()
	_, principal := attributes[AttrPrincipal]
	_, credential := attributes[AttrCredential]
	switch {
	case principal && !credential:
		return ErrNoCredential
	case created && !credential:
		return ErrCredentialMissing
	case credential && !principal && platforms[platform]:
		return ErrNoPrincipal
	}
	return nil
}

func check(name arn.ARN, attribute, value string) error {
	if !utf8.ValidString(value) {
		return ErrUTF8.With(attribute)
	}
	most := maxIdentifier
	switch attribute {
	case AttrPrincipal, AttrCredential:
		most = maxCredential
	case AttrEnabled:
		if _, err := boolean(attribute, value); err != nil {
			return err
		}
	case AttrTeam, AttrBundle:
	case EventCreated, EventUpdated, EventDeleted, EventFailed:
		most = 2048
		if t, err := arn.Parse(value); value != "" && (err != nil || t.Service != "sns" || t.Account != name.Account || t.Region != name.Region ||
			t.Resource == "" || strings.ContainsAny(t.Resource, ":/") || t.FIFO()) {
			return ErrTopic.With(attribute)
		}
	case attrSuccess, attrFailure:
		most = 2048
		if role, err := arn.Parse(value); value != "" && (err != nil || !role.IsRole()) {
			return ErrRole.With(attribute, value)
		}
	case attrRate:
		if rate, err := strconv.Atoi(value); value != "" && (err != nil || rate < 0 || rate > 100) {
			return ErrRate.With(attribute, value)
		}
	default:
		return ErrAttributeName.With(attribute)
	}
	if len(value) > most {
		return ErrTooLong.With(attribute, most)
	}
	return nil
}

// boolean parses true or false in any case.
func boolean(attribute, value string) (string, error) {
	value = strings.ToLower(value)
	if value != "true" && value != "false" {
		return "", ErrBool.With(attribute)
	}
	return value, nil
}

// With is the application with attributes changed, which Check must have accepted; the empty
// string removes one. Secrets stay as they are.
func (a *Application) With(attributes map[string]string) *Application {
	next := *a
	next.Attributes = maps.Clone(a.Attributes)
	if next.Attributes == nil {
		next.Attributes = map[string]string{}
	}
	for name, value := range attributes {
		switch {
		case name == AttrPrincipal || name == AttrCredential:
		case value == "":
			delete(next.Attributes, name)
		case name == AttrEnabled:
			next.Attributes[name] = strings.ToLower(value)
		default:
			next.Attributes[name] = strings.Clone(value)
		}
	}
	return &next
}
