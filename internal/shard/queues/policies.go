package queues

import (
	"net/netip"
	"strconv"
	"strings"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/key"
	"godwit.dev/godwit/internal/policy"
	"godwit.dev/godwit/internal/queue/attribute"
)

// A queue's policy says which topics may send to it. It is parsed when it is
// set and when it is loaded, and evaluated for each delivery: by the commit that
// publishes, and by every transfer out of a subscription's backlog. A change
// therefore holds for deliveries that wait. Requests of clients are not held
// against it: requests are not authenticated yet.

// SnsService is how a topic's deliveries introduce themselves.
const SnsService = "sns.amazonaws.com"

// sendMessage is what a delivery does to a queue.
const sendMessage = "sqs:SendMessage"

// DenyAll stands for a stored policy that cannot be read.
var DenyAll = &policy.Policy{}

// ParseQueuePolicy compiles the attribute Policy of a queue; nil for none.
// Errors: InvalidAttributeValue for what is no policy, and for one about
// actions of another service.
func ParseQueuePolicy(doc string) (*policy.Policy, error) {
	if doc == "" {
		return nil, nil
	}
	p, err := policy.ParseLoose(doc)
	if err != nil {
		return nil, errQueuePolicy
	}
	for _, s := range p.Statements() {
		for _, action := range s.Actions {
			if prefix, _, named := strings.Cut(action, ":"); named && !strings.EqualFold(prefix, "sqs") {
				return nil, errQueuePolicy
			}
		}
	}
	return p, nil
}

var errQueuePolicy = attribute.ErrValue.With(attribute.Policy)

// loadPolicy compiles a stored policy. One that is not understood, which an
// older version let in, admits no one.
func (qs *Queue) loadPolicy(e *Queues) {
	p, err := ParseQueuePolicy(qs.Record.Attributes[attribute.Policy])
	if err != nil {
		e.Logger.Warn("a queue's policy cannot be read; it denies all deliveries of topics until it is set anew", "queue", qs.ARN.String())
		p = DenyAll
	}
	qs.Policy = p
}

// Admits refuses deliveries of a topic that may not send to the queue: one that
// the queue's policy does not allow, or one of another account if there is no
// policy, or any if they were to be encrypted under a key that does not exist.
// Errors: AccessDenied, KMSNotFound.
func (qs *Queue) Admits(topic arn.ARN, now int64) error {
	if err := key.Find(qs.ARN, qs.Record.Attributes[attribute.KmsMasterKeyID]); err != nil {
		return err
	}
	if qs.Policy == nil {
		if topic.Account == qs.ARN.Account {
			return nil
		}
		return ErrForbidden
	}
	r := policy.Request{
		Principal: policy.Principal{Services: []string{SnsService, "sns." + topic.Region + ".amazonaws.com"}},
		Action:    sendMessage, Resource: qs.ARN.String(), Context: &delivering{topic: topic, queue: qs.ARN, now: now},
	}
	if qs.Policy.Evaluate(&r) != policy.Allow {
		return ErrForbidden
	}
	return nil
}

// delivering is what a policy can ask about a delivery.
type delivering struct {
	topic, queue arn.ARN
	now          int64 // epoch milliseconds
}

// Values implements policy.Context.
func (d *delivering) Values(key string) []string {
	switch key {
	case "aws:sourcearn":
		return []string{d.topic.String()}
	case "aws:sourceaccount":
		return []string{d.topic.Account}
	case "aws:principalservicename":
		return []string{SnsService}
	case "aws:principalservicenameslist":
		return []string{SnsService, "sns." + d.topic.Region + ".amazonaws.com"}
	case "aws:principalisawsservice", "aws:securetransport":
		return []string{"true"}
	case "aws:viaawsservice":
		return []string{"false"}
	default:
		return CommonValues(key, d.queue, d.now)
	}
}

// CommonValues are those of the keys that every request has.
func CommonValues(key string, resource arn.ARN, now int64) []string {
	switch key {
	case "aws:resourceaccount":
		return []string{resource.Account}
	case "aws:requestedregion":
		return []string{resource.Region}
	case "aws:currenttime":
		return []string{clock.Time(now).Format("2006-01-02T15:04:05Z")}
	case "aws:epochtime":
		return []string{strconv.FormatInt(now/1000, 10)}
	default:
		return nil
	}
}

// RootOf is the ARN of an account's root, as policies name an account.
func RootOf(account string) string { return "arn:" + arn.Partition + ":iam::" + account + ":root" }

// Calling is what a policy can ask about a client's request.
type Calling struct {
	Resource arn.ARN
	Account  string // the caller's
	Address  string // host:port
	Now      int64  // epoch milliseconds
}

// Values implements policy.Context.
func (c *Calling) Values(key string) []string {
	switch key {
	case "aws:principalaccount", "aws:sourceowner":
		return []string{c.Account}
	case "aws:principalarn":
		return []string{RootOf(c.Account)}
	case "aws:principaltype":
		return []string{"Account"}
	case "aws:principalisawsservice", "aws:viaawsservice":
		return []string{"false"}
	case "aws:sourceip":
		host, err := netip.ParseAddrPort(c.Address)
		if err != nil {
			return nil
		}
		return []string{host.Addr().Unmap().WithZone("").String()}
	default:
		return CommonValues(key, c.Resource, c.Now)
	}
}
