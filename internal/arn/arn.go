// Package arn parses and builds Amazon Resource Names.
//
// An ARN has six parts, arn:partition:service:region:account:resource; the
// resource may itself hold colons (a subscription's is topic:id).
package arn

import (
	"cmp"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"unique"
)

// Partition is the only partition that Godwit's own resources live in.
const Partition = "aws"

// ErrMalformed reports a string that is no ARN: it has fewer than six parts or
// does not begin with "arn".
var ErrMalformed = errors.New("malformed ARN")

// ARN is a parsed resource name. The zero value names nothing. It is
// comparable, and so can key a map.
type ARN struct {
	Service  string // "sqs", "sns", …
	Region   string
	Account  string // 12 digits
	Resource string // a queue's or topic's name; topic:id for a subscription
}

// maxLength bounds an ARN, in bytes. Source: the pattern of ARNs in IAM's API.
const maxLength = 2048

// Parse reads an ARN of any partition; the partition is not kept. It fails with
// ErrMalformed, also for one of more than 2,048 bytes.
func Parse(s string) (ARN, error) {
	if len(s) > maxLength {
		return ARN{}, ErrMalformed
	}
	var parts [5]string
	for i := range parts {
		var ok bool
		if parts[i], s, ok = strings.Cut(s, ":"); !ok {
			return ARN{}, ErrMalformed
		}
	}
	if parts[0] != "arn" {
		return ARN{}, ErrMalformed
	}
	return ARN{Service: parts[2], Region: parts[3], Account: parts[4], Resource: s}, nil
}

// Compare orders names of one service by account, region and resource, as the keys of records are.
func Compare(a, b ARN) int {
	return cmp.Or(
		strings.Compare(a.Account, b.Account),
		strings.Compare(a.Region, b.Region),
		strings.Compare(a.Resource, b.Resource),
	)
}

// Elements counts the colon-separated parts of s, at most six: what AWS names
// when it refuses an ARN that is too short.
func Elements(s string) int { return min(strings.Count(s, ":")+1, 6) }

// String gives the full name. The zero ARN gives the empty string.
func (a ARN) String() string {
	if a.IsZero() {
		return ""
	}
	return "arn:" + Partition + ":" + a.Service + ":" + a.Region + ":" + a.Account + ":" + a.Resource
}

// Names reports whether s is a's full name, as String gives it. The zero ARN has none.
func (a ARN) Names(s string) bool {
	for _, part := range [...]string{"arn", Partition, a.Service, a.Region, a.Account} {
		rest, ok := strings.CutPrefix(s, part)
		if !ok || rest == "" || rest[0] != ':' {
			return false
		}
		s = rest[1:]
	}
	return s == a.Resource && !a.IsZero()
}

// Own copies the parts of a name that is to be kept: they may be pieces of a
// request, all of which they would keep in memory.
func (a ARN) Own() ARN {
	a.Service, a.Region, a.Account = unique.Make(a.Service).Value(), unique.Make(a.Region).Value(), unique.Make(a.Account).Value() // which many have
	a.Resource = strings.Clone(a.Resource)
	return a
}

// IsZero reports whether a names nothing.
func (a ARN) IsZero() bool { return a == ARN{} }

// IsAccount reports whether s is the number of an account: 12 digits.
func IsAccount(s string) bool {
	if len(s) != 12 {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// IsRole reports whether a names a role of IAM.
func (a ARN) IsRole() bool { return a.Service == "iam" && strings.HasPrefix(a.Resource, "role/") }

// Root names an account's root user, as which policies name the account.
func Root(account string) ARN { return ARN{Service: "iam", Account: account, Resource: "root"} }

// Queue names an SQS queue.
func Queue(region, account, name string) ARN {
	return ARN{Service: "sqs", Region: region, Account: account, Resource: name}
}

// Topic names an SNS topic.
func Topic(region, account, name string) ARN {
	return ARN{Service: "sns", Region: region, Account: account, Resource: name}
}

// logGroup begins the resource of a log group's ARN.
const logGroup = "log-group:"

// MaxLogGroupName bounds the name of a log group, which has 1 or more characters that LogGroupPattern
// matches. Source: CreateLogGroup of CloudWatch Logs.
const MaxLogGroupName = 512

// LogGroupPattern is as AWS's models have it, which limit the length beside it.
var LogGroupPattern = regexp.MustCompile(`^[\.\-_/#A-Za-z0-9]*$`)

// ValidLogGroupName reports whether a log group may have a name.
func ValidLogGroupName(name string) bool {
	return name != "" && len(name) <= MaxLogGroupName && LogGroupPattern.MatchString(name)
}

// LogGroup names a log group of CloudWatch Logs.
func LogGroup(region, account, name string) ARN {
	return ARN{Service: "logs", Region: region, Account: account, Resource: logGroup + name}
}

// alarm begins the resource of an alarm's ARN.
const alarm = "alarm:"

// Alarm names an alarm of CloudWatch.
func Alarm(region, account, name string) ARN {
	return ARN{Service: "cloudwatch", Region: region, Account: account, Resource: alarm + name}
}

// AlarmName is the name of an alarm; ok is false when a names none.
func (a ARN) AlarmName() (name string, ok bool) {
	name, ok = strings.CutPrefix(a.Resource, alarm)
	return name, ok && a.Service == "cloudwatch"
}

// Parameter names a parameter of Systems Manager, whose name may begin with a slash.
func Parameter(region, account, name string) ARN {
	return ARN{Service: "ssm", Region: region, Account: account, Resource: "parameter/" + strings.TrimPrefix(name, "/")}
}

// LogGroupName is the name of a log group; ok is false when a names none. The
// :* behind it, which stands for its streams, is not part of the name.
func (a ARN) LogGroupName() (name string, ok bool) {
	name, ok = strings.CutPrefix(a.Resource, logGroup)
	name = strings.TrimSuffix(name, ":*")
	return name, ok && a.Service == "logs" && name != ""
}

// Subscription names a subscription of topic t. The id is a UUID.
func (a ARN) Subscription(id string) ARN {
	a.Resource += ":" + id
	return a
}

// direct begins the resource of a Direct.
const direct = "direct/"

// Direct names what an account publishes in a region to endpoints of a protocol, without a
// topic. No topic can have such a name, as it has a slash.
func Direct(region, account, protocol string) ARN {
	return ARN{Service: "sns", Region: region, Account: account, Resource: direct + protocol}
}

// DirectProtocol is the protocol of a Direct; ok is false when a is none.
func (a ARN) DirectProtocol() (protocol string, ok bool) {
	protocol, ok = strings.CutPrefix(a.Resource, direct)
	return protocol, ok && a.Service == "sns"
}

// SplitSubscription takes a subscription's ARN apart into its topic and id.
// ok is false when a is not shaped as one.
func (a ARN) SplitSubscription() (topic ARN, id string, ok bool) {
	name, id, found := strings.Cut(a.Resource, ":")
	if a.Service != "sns" || !found || name == "" || id == "" || strings.Contains(id, ":") {
		return ARN{}, "", false
	}
	a.Resource = name
	return a, id, true
}

// Function names a Lambda function, without a qualifier.
func Function(region, account, name string) ARN {
	return ARN{Service: "lambda", Region: region, Account: account, Resource: functionType + name}
}

// functionType begins the resource of a function's ARN.
const functionType = "function:"

// Qualify names a version or an alias of function f; the empty qualifier names
// the function itself.
func (a ARN) Qualify(qualifier string) ARN {
	if qualifier != "" {
		a.Resource += ":" + qualifier
	}
	return a
}

// SplitFunction takes the ARN of a function, or of a version or an alias of
// one, apart into the function's and the qualifier, which may be empty. ok is
// false when a is not shaped as one.
func (a ARN) SplitFunction() (function ARN, qualifier string, ok bool) {
	rest, found := strings.CutPrefix(a.Resource, functionType)
	if a.Service != "lambda" || !found {
		return ARN{}, "", false
	}
	name, qualifier, qualified := strings.Cut(rest, ":")
	if name == "" || qualified && qualifier == "" || strings.Contains(qualifier, ":") {
		return ARN{}, "", false
	}
	a.Resource = functionType + name
	return a, qualifier, true
}

// FunctionName is the name of the function that a, a function's ARN without a
// qualifier, names.
func (a ARN) FunctionName() string { return strings.TrimPrefix(a.Resource, functionType) }

// layerType begins the resource of a layer's ARN.
const layerType = "layer:"

// Layer names a layer of Lambda, without a version.
func Layer(region, account, name string) ARN {
	return ARN{Service: "lambda", Region: region, Account: account, Resource: layerType + name}
}

// LayerVersion names a version of the layer a.
func (a ARN) LayerVersion(number uint64) ARN {
	a.Resource += ":" + strconv.FormatUint(number, 10)
	return a
}

// SplitLayer takes the ARN of a layer, or of a version of one, apart into the layer's and the number, which
// is 0 if there is none. ok is false when a is not shaped as one.
func (a ARN) SplitLayer() (layer ARN, number uint64, ok bool) {
	rest, found := strings.CutPrefix(a.Resource, layerType)
	if a.Service != "lambda" || !found {
		return ARN{}, 0, false
	}
	name, digits, numbered := strings.Cut(rest, ":")
	if numbered {
		var err error
		if number, err = strconv.ParseUint(digits, 10, 64); err != nil || number == 0 || digits[0] == '0' {
			return ARN{}, 0, false
		}
	}
	if name == "" {
		return ARN{}, 0, false
	}
	a.Resource = layerType + name
	return a, number, true
}

// LayerName is the name of the layer that a, a layer's ARN without a version, names.
func (a ARN) LayerName() string { return strings.TrimPrefix(a.Resource, layerType) }

// How the resources of push platforms begin.
const (
	applicationType = "app/"
	endpointType    = "endpoint/"
)

// PlatformApplication names an application of a push platform in SNS.
func PlatformApplication(region, account, platform, name string) ARN {
	return Topic(region, account, applicationType+platform+"/"+name)
}

// SplitApplication takes the ARN of a platform application apart. ok is false when a is
// not shaped as one.
func (a ARN) SplitApplication() (platform, name string, ok bool) {
	rest, found := strings.CutPrefix(a.Resource, applicationType)
	platform, name, slash := strings.Cut(rest, "/")
	ok = found && slash && a.Service == "sns" && platform != "" && name != "" && !strings.ContainsAny(name, "/:")
	return platform, name, ok
}

// PlatformEndpoint names an endpoint of platform application a. The id is a UUID.
func (a ARN) PlatformEndpoint(id string) ARN {
	a.Resource = endpointType + strings.TrimPrefix(a.Resource, applicationType) + "/" + id
	return a
}

// SplitEndpoint takes the ARN of a platform endpoint apart into its application and id.
// ok is false when a is not shaped as one.
func (a ARN) SplitEndpoint() (application ARN, id string, ok bool) {
	rest, found := strings.CutPrefix(a.Resource, endpointType)
	end := strings.LastIndexByte(rest, '/')
	if !found || end < 0 || end == len(rest)-1 {
		return ARN{}, "", false
	}
	application = a
	application.Resource = applicationType + rest[:end]
	_, _, ok = application.SplitApplication()
	return application, rest[end+1:], ok
}

// FIFO reports whether the queue or topic is a FIFO one, by its name.
func (a ARN) FIFO() bool { return strings.HasSuffix(a.Resource, ".fifo") }
