// Package endpoint has the protocols of subscriptions, and checks the addresses of each.
package endpoint

import (
	"net/url"
	"strings"
	"unicode/utf8"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/sms"
)

// The errors, with the fields of each.
var (
	ErrProtocol      = fault.NewRule(fault.InvalidParameter, "topic: no such protocol") // the protocol
	ErrUTF8          = fault.NewRule(fault.InvalidParameter, "topic: the endpoint is not UTF-8")
	ErrQueue         = fault.NewRule(fault.InvalidParameter, "topic: the endpoint is no queue")
	ErrFIFO          = fault.NewRule(fault.InvalidParameter, "topic: the endpoint is a FIFO queue")
	ErrFunction      = fault.NewRule(fault.InvalidParameter, "topic: the endpoint is no function")
	ErrStream        = fault.NewRule(fault.InvalidParameter, "topic: the endpoint is no delivery stream")
	ErrOtherProtocol = fault.NewRule(fault.InvalidParameter, "topic: the endpoint is of another protocol")
	ErrTooLong       = fault.NewRule(fault.InvalidParameter, "topic: the endpoint is too long") // the limit in bytes
	ErrURL           = fault.NewRule(fault.InvalidParameter, "topic: the endpoint is no URL")
	ErrAddress       = fault.NewRule(fault.InvalidParameter, "topic: the endpoint is no mail address")
	ErrPlatform      = fault.NewRule(fault.InvalidParameter, "topic: there is no such endpoint of a push platform") // the endpoint
	ErrNumber        = fault.NewRule(fault.InvalidParameter, "topic: the endpoint is no phone number")              // as given
	ErrPassword      = fault.NewRule(fault.InvalidParameter, "topic: credentials in the endpoint of plain HTTP")
)

// Protocol is the protocol of deliveries to an endpoint.
type Protocol uint8

// The supported protocols.
const (
	SQS Protocol = iota
	HTTP
	HTTPS
	Lambda
	Email
	EmailJSON
	Application
	SMS
	Firehose
)

var names = [...]string{"sqs", "http", "https", "lambda", "email", "email-json", "application", "sms", "firehose"}

// Protocols is how many protocols there are; they are numbered from 0.
const Protocols = len(names)

// String is the protocol's name in requests.
func (p Protocol) String() string { return names[p] }

// Configurable reports whether delivery policies apply.
func (p Protocol) Configurable() bool { return p == HTTP || p == HTTPS }

// Mail reports that deliveries are mails.
func (p Protocol) Mail() bool { return p == Email || p == EmailJSON }

// Device reports that deliveries go to a person's device: as plain text, without an envelope.
func (p Protocol) Device() bool { return p == Application || p == SMS }

// Large reports that endpoints take messages of more than 256 KiB. Source: the developer guide
// of SNS, "Publishing large messages".
func (p Protocol) Large() bool { return p.Within() }

// Within reports that endpoints are resources of this server, named by ARNs.
func (p Protocol) Within() bool { return p == SQS || p == Lambda || p == Firehose }

// ParseProtocol parses the name of a protocol. Errors: ErrProtocol.
func ParseProtocol(name string) (Protocol, error) {
	for p, known := range names {
		if known == name {
			return Protocol(p), nil
		}
	}
	return 0, ErrProtocol.With(name)
}

// deliveryStream is the prefix of the resource in a delivery stream's ARN.
const deliveryStream = "deliverystream/"

// maxURL bounds a URL, in bytes: few servers accept a longer one.
const maxURL = 8192

// Check checks that an address fits its protocol and its topic, and reports whether it needs no
// confirmation: a queue, function or delivery stream of the subscriber's account does not.
func Check(p Protocol, address, owner string, topic arn.ARN) (confirmed bool, err error) {
	if !utf8.ValidString(address) {
		return false, ErrUTF8
	}
	switch p {
	case SQS:
		queue, err := arn.Parse(address)
		if err != nil || queue.Service != "sqs" || queue.Region == "" || !arn.IsAccount(queue.Account) || queue.Resource == "" {
			return false, ErrQueue
		}
		if queue.FIFO() && !topic.FIFO() {
			return false, ErrFIFO
		}
		return queue.Account == owner, nil
	case Lambda:
		function, err := arn.Parse(address)
		if _, _, ok := function.SplitFunction(); err != nil || !ok || function.Region == "" || !arn.IsAccount(function.Account) {
			return false, ErrFunction
		}
		return function.Account == owner, nil
	case Firehose:
		s, err := arn.Parse(address)
		if err != nil || s.Service != "firehose" || s.Region == "" || !arn.IsAccount(s.Account) || len(s.Resource) <= len(deliveryStream) || !strings.HasPrefix(s.Resource, deliveryStream) {
			return false, ErrStream
		}
		return s.Account == owner, nil
	case Email, EmailJSON:
		return false, checkMail(address)
	case Application:
		if a, err := arn.Parse(address); err == nil && a.Account == owner && a.Region == topic.Region {
			if _, _, ok := a.SplitEndpoint(); ok {
				return true, nil
			}
		}
		return false, ErrPlatform.With(address)
	case SMS:
		if _, ok := sms.Number(address); !ok {
			return false, ErrNumber.With(address)
		}
		return true, nil
	default: // HTTP, HTTPS
		return false, checkURL(p, address)
	}
}

func checkURL(p Protocol, address string) error {
	if !strings.HasPrefix(strings.ToLower(address), p.String()+"://") {
		return ErrOtherProtocol
	}
	if len(address) > maxURL {
		return ErrTooLong.With(maxURL)
	}
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return ErrURL
	}
	if u.User != nil && p != HTTPS {
		return ErrPassword
	}
	return nil
}

// IsFIFO reports that an address is that of a FIFO queue.
func IsFIFO(address string) bool {
	queue, err := arn.Parse(address)
	return err == nil && queue.FIFO()
}

// Shown is an address without the credentials inside it.
func Shown(p Protocol, address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok || !p.Configurable() {
		return address
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	at := strings.LastIndexByte(rest[:end], '@')
	if at < 0 {
		return address
	}
	return scheme + "://****:****" + rest[at:]
}
