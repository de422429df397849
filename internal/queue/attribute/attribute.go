// Package attribute is the table of the attributes of an SQS queue: their
// names, ranges, defaults and canonical forms, and the rules between them.
//
// A queue's attributes are kept as a map of canonical values that holds only
// what its owner has set; Config turns such a map, gaps and all, into what the
// state machine goes by. Everything here is a pure function.
package attribute

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"godwit.dev/godwit/internal/queue"
)

// The attributes that an owner sets.
const (
	DelaySeconds                  = "DelaySeconds"
	MaximumMessageSize            = "MaximumMessageSize"
	MessageRetentionPeriod        = "MessageRetentionPeriod"
	ReceiveMessageWaitTimeSeconds = "ReceiveMessageWaitTimeSeconds"
	VisibilityTimeout             = "VisibilityTimeout"
	RedrivePolicy                 = "RedrivePolicy"
	RedriveAllowPolicy            = "RedriveAllowPolicy"
	Policy                        = "Policy"
	KmsMasterKeyID                = "KmsMasterKeyId"
	KmsDataKeyReusePeriodSeconds  = "KmsDataKeyReusePeriodSeconds"
	SqsManagedSseEnabled          = "SqsManagedSseEnabled"
	FifoQueue                     = "FifoQueue"
	ContentBasedDeduplication     = "ContentBasedDeduplication"
	DeduplicationScope            = "DeduplicationScope"
	FifoThroughputLimit           = "FifoThroughputLimit"
)

// The attributes that are computed and cannot be set.
const (
	QueueArn                              = "QueueArn"
	CreatedTimestamp                      = "CreatedTimestamp"
	LastModifiedTimestamp                 = "LastModifiedTimestamp"
	ApproximateNumberOfMessages           = "ApproximateNumberOfMessages"
	ApproximateNumberOfMessagesNotVisible = "ApproximateNumberOfMessagesNotVisible"
	ApproximateNumberOfMessagesDelayed    = "ApproximateNumberOfMessagesDelayed"
)

// All asks for every attribute, in place of a name.
const All = "All"

const (
	trueText       = "true"
	falseText      = "false"
	scopeQueue     = "queue"
	scopeGroup     = "messageGroup"
	limitPerQueue  = "perQueue"
	limitPerGroup  = "perMessageGroupId"
	maxKeyIDBytes  = 2048
	maxSources     = 10
	maxReceives    = 1000
	longestInteger = 10 // digits; more is out of every range
)

// rule says what an attribute may be.
type rule struct {
	fifo     fifoRule
	min, max int                                  // of an integer, when parse is nil and values is empty
	values   []string                             // of an enumeration
	boolean  bool                                 // true or false, in any case
	parse    func(name, v string) (string, error) // gives the canonical form
	def      string                               // "" when there is no default
	readOnly bool
}

// fifoRule says how a standard queue refuses an attribute.
type fifoRule uint8

const (
	anyQueue  fifoRule = iota
	fifoKnown          // "You can specify the … only when FifoQueue is set to true."
	fifoOnly           // "Unknown Attribute …."
)

var table = map[string]rule{
	DelaySeconds:                  {min: 0, max: 900, def: "0"},
	MaximumMessageSize:            {min: 1024, max: queue.MaxMessageBytes, def: "1048576"},
	MessageRetentionPeriod:        {min: 60, max: 1209600, def: "345600"},
	ReceiveMessageWaitTimeSeconds: {min: 0, max: 20, def: "0"},
	VisibilityTimeout:             {min: 0, max: 43200, def: "30"},
	RedrivePolicy:                 {parse: canonicalRedrive},
	RedriveAllowPolicy:            {parse: canonicalRedriveAllow},
	Policy:                        {parse: canonicalPolicy},
	KmsMasterKeyID:                {parse: canonicalKeyID},
	KmsDataKeyReusePeriodSeconds:  {min: 60, max: 86400, def: "300"},
	SqsManagedSseEnabled:          {boolean: true, def: trueText},
	FifoQueue:                     {fifo: fifoOnly, parse: canonicalKind, def: falseText},
	ContentBasedDeduplication:     {fifo: fifoOnly, boolean: true, def: falseText},
	DeduplicationScope:            {fifo: fifoKnown, values: []string{scopeQueue, scopeGroup}, def: scopeQueue},
	FifoThroughputLimit:           {fifo: fifoKnown, values: []string{limitPerQueue, limitPerGroup}, def: limitPerQueue},

	QueueArn:                              {readOnly: true},
	CreatedTimestamp:                      {readOnly: true},
	LastModifiedTimestamp:                 {readOnly: true},
	ApproximateNumberOfMessages:           {readOnly: true},
	ApproximateNumberOfMessagesNotVisible: {readOnly: true},
	ApproximateNumberOfMessagesDelayed:    {readOnly: true},
}

// Known reports whether a queue may be asked for the attribute, read-only ones
// included and All excluded.
func Known(name string) bool {
	_, ok := table[name]
	return ok
}

// removable reports whether setting the attribute to the empty string removes
// it; for the others an empty value is a bad one.
func removable(name string) bool {
	switch name {
	case RedrivePolicy, RedriveAllowPolicy, Policy, KmsMasterKeyID:
		return true
	}
	return false
}

// Default is the value of an attribute that its owner has not set. ok is false
// for one that then has none, or that is not settable.
func Default(name string) (value string, ok bool) {
	r := table[name]
	return r.def, r.def != ""
}

// Canonical validates the value of one settable attribute of a FIFO or
// standard queue and gives the form in which it is kept, compared and
// returned. The empty string stays empty for a removable attribute.
//
// Errors: InvalidAttributeName for an attribute that does not exist, is
// read-only, or is not for this kind of queue; InvalidAttributeValue;
// InvalidParameter for a RedrivePolicy; OverLimit for a policy beyond its limits.
func Canonical(name, value string, fifo bool) (string, error) {
	r, ok := table[name]
	if !ok || r.readOnly {
		return "", ErrUnknown.With(name)
	}
	if !fifo {
		switch r.fifo {
		case anyQueue:
		case fifoKnown:
			return "", ErrFIFOOnly.With(name)
		case fifoOnly:
			return "", ErrUnknown.With(name)
		}
	}
	switch {
	case value == "" && removable(name):
		return "", nil
	case r.parse != nil:
		return r.parse(name, value)
	case r.boolean:
		v, ok := boolean(value)
		if !ok {
			return "", ErrValue.With(name)
		}
		return v, nil
	case r.values != nil:
		if !slices.Contains(r.values, value) {
			return "", ErrValue.With(name)
		}
		return value, nil
	}
	n, ok := integer(value)
	if !ok || n < r.min || n > r.max {
		return "", ErrValue.With(name)
	}
	return strconv.Itoa(n), nil
}

// Normalize validates the attributes that a request names, one by one and in
// the order of their names, and gives their canonical values. A key of KMS
// turns the managed encryption off unless the request says otherwise, which
// Check then refuses. Errors are Canonical's.
func Normalize(request map[string]string, fifo bool) (map[string]string, error) {
	set := make(map[string]string, len(request)+1)
	for _, name := range slices.Sorted(maps.Keys(request)) {
		v, err := Canonical(name, request[name], fifo)
		if err != nil {
			return nil, err
		}
		set[name] = v
	}
	if set[KmsMasterKeyID] != "" {
		if _, named := set[SqsManagedSseEnabled]; !named {
			set[SqsManagedSseEnabled] = falseText
		}
	}
	return set, nil
}

// boolean gives the canonical form of a boolean, which may be written in any case.
func boolean(s string) (string, bool) {
	switch {
	case strings.EqualFold(s, trueText):
		return trueText, true
	case strings.EqualFold(s, falseText):
		return falseText, true
	}
	return "", false
}

// IsTrue reports whether the value of a boolean attribute says yes.
func IsTrue(value string) bool { return strings.EqualFold(value, trueText) }

// canonicalKind reads FifoQueue, of a FIFO queue: it stays one.
func canonicalKind(name, value string) (string, error) {
	v, ok := boolean(value)
	switch {
	case !ok:
		return "", ErrValue.With(name)
	case v == falseText:
		return "", ErrKind
	}
	return v, nil
}

// integer reads a number written in decimal digits alone.
func integer(s string) (int, bool) {
	if s == "" || len(s) > longestInteger {
		return 0, false
	}
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n, true
}
