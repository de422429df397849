package deliverystream

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"strings"
	"time"

	"godwit.dev/godwit/internal/fault"
)

// The errors of prefixes.
var (
	ErrExpression  = fault.NewRule(fault.InvalidParameter, "deliverystream: an expression of a prefix cannot be read")        // the prefix
	ErrErrorPrefix = fault.NewRule(fault.InvalidParameter, "deliverystream: a prefix with expressions needs one for errors")  // nothing
	ErrErrorType   = fault.NewRule(fault.InvalidParameter, "deliverystream: the prefix of errors does not name their type")   // nothing
	ErrTypeOutside = fault.NewRule(fault.InvalidParameter, "deliverystream: the prefix of what is no error names their type") // nothing
)

// HTTPFailed is the error type in the names of objects with records that an HTTP endpoint did
// not accept.
const HTTPFailed = "http-endpoint-failed"

// usual is the time part of a name, if the prefix has no expressions.
const usual = "yyyy/MM/dd/HH/"

// expression is a part of a prefix: a text, or an expression.
type expression struct{ namespace, value string } // the empty namespace: a text

// Prefix is a compiled prefix of objects' names.
type Prefix struct{ parts []expression }

// ParsePrefix parses a prefix with expressions like !{timestamp:yyyy}.
func ParsePrefix(text string) (p Prefix, err error) {
	whole := text
	for text != "" {
		plain, rest, found := strings.Cut(text, "!{")
		if plain != "" {
			p.parts = append(p.parts, expression{"", plain})
		}
		if !found {
			break
		}
		inner, behind, closed := strings.Cut(rest, "}")
		namespace, value, ok := strings.Cut(inner, ":")
		if !closed || !ok {
			return p, ErrExpression.With(whole)
		}
		switch namespace {
		case "timestamp":
			if _, known := appendTime(nil, value, time.Time{}); !known {
				return p, ErrExpression.With(whole)
			}
		case "firehose":
			if value != randomString && value != errorType {
				return p, ErrExpression.With(whole)
			}
		default:
			return p, ErrExpression.With(whole)
		}
		p.parts = append(p.parts, expression{namespace, value})
		text = behind
	}
	return p, nil
}

const (
	randomString = "random-string"
	errorType    = "error-output-type"
)

// expressions reports whether there are any.
func (p Prefix) expressions() bool {
	for _, part := range p.parts {
		if part.namespace != "" {
			return true
		}
	}
	return false
}

func (p Prefix) has(value string) bool {
	for _, part := range p.parts {
		if part.namespace == "firehose" && part.value == value {
			return true
		}
	}
	return false
}

// CheckPrefixes refuses invalid combinations of prefixes. Source: custom prefixes for S3
// objects in Firehose's developer guide, semantic rules.
func CheckPrefixes(ordinary, failed string) error {
	p, err := ParsePrefix(ordinary)
	if err != nil {
		return err
	}
	f, err := ParsePrefix(failed)
	switch {
	case err != nil:
		return err
	case p.has(errorType):
		return ErrTypeOutside
	case p.expressions() && failed == "":
		return ErrErrorPrefix
	case f.expressions() && !f.has(errorType):
		return ErrErrorType
	}
	return nil
}

// Evaluate is the beginning of a name. at is when the oldest record was put, in the time zone
// of names; failed is the error type, empty for none; seed determines random strings: the same
// gives the same name.
func (p Prefix) Evaluate(at time.Time, failed, seed string) string {
	var name []byte
	for i, part := range p.parts {
		switch {
		case part.namespace == "":
			name = append(name, part.value...)
		case part.namespace == "timestamp":
			name, _ = appendTime(name, part.value, at)
		case part.value == errorType:
			name = append(name, failed...)
		default:
			name = append(name, random(seed, i)...)
		}
	}
	return string(name)
}

// random is a random string, of 11 letters and digits.
func random(seed string, i int) string {
	const alphabet, length = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", 11
	sum := sha256.Sum256([]byte(seed + "\x00" + strconv.Itoa(i)))
	text := make([]byte, length)
	for n := range text {
		text[n] = alphabet[binary.BigEndian.Uint16(sum[2*n:])%uint16(len(alphabet))]
	}
	return string(text)
}

// Object is a batch of records that becomes an object.
type Object struct {
	Stream  *Stream
	Version int       // of the stream, when the batch was begun
	Oldest  time.Time // when the oldest record came, in the time zone of names
	ID      string    // a UUID
	Failed  string    // the type of errors; empty: none
	GZIP    bool
}

// Key is the object's name in its bucket. It is the same each time.
func (o *Object) Key() string {
	to := o.Stream.Objects()
	ordinary, failed := deref(to.Prefix), deref(to.ErrorOutputPrefix)
	p, _ := ParsePrefix(ordinary) // it was checked before
	var name string
	switch {
	case o.Failed == "" && p.expressions():
		name = p.Evaluate(o.Oldest, "", o.ID)
	case o.Failed == "":
		name = ordinary + timed(o.Oldest)
	case failed == "":
		name = ordinary + o.Failed + "/" + timed(o.Oldest)
	default:
		f, _ := ParsePrefix(failed)
		if name = f.Evaluate(o.Oldest, o.Failed, o.ID); !f.expressions() {
			name += o.Failed + "/" + timed(o.Oldest)
		}
	}
	name += o.Stream.Name + "-" + strconv.Itoa(o.Version) + "-" + o.Oldest.Format("2006-01-02-15-04-05") + "-" + o.ID
	switch extension := deref(to.FileExtension); {
	case extension != "":
		name += extension
	case o.GZIP:
		name += ".gz"
	}
	return name
}

func timed(at time.Time) string {
	name, _ := appendTime(nil, usual, at)
	return string(name)
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
