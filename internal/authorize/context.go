package authorize

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
)

// Context has the condition keys of a request. It is used by one decision at a time.
type Context struct {
	Caller *caller.Caller
	// Account is the resource's, Region the request's.
	Account, Region string
	Now             int64  // epoch milliseconds
	Address         string // the caller's host:port; empty: in the server
	Transport       Transport
	// Source is the resource for which a service calls, Owner its account.
	Source, Owner string
	// TagsOf returns the tags of the resource; nil: it has none.
	TagsOf func() map[string]string
	// Need has the condition keys of the action; nil: there are none.
	Need *Need
	// Via is the service that forwards a caller's request, for example "sqs.amazonaws.com";
	// empty: the caller calls directly.
	Via string

	one [1]string // a value that is valid until the next call
}

// CloudFormation is the service that calls for those who deploy.
const CloudFormation = "cloudformation.amazonaws.com"

// Transport is the transport of a request.
type Transport uint8

// The transports.
const (
	NoTransport Transport = iota // not needed, or a call in the server
	Plain
	TLS
)

// Prefixes of condition keys that end in a name.
const (
	principalTag = "aws:principaltag/"
	resourceTag  = "aws:resourcetag/"
	// IAM's own name of the same.
	iamResourceTag = "iam:resourcetag/"
	requestTag     = "aws:requesttag/"
)

// Values implements policy.Context.
func (c *Context) Values(key string) []string {
	if name, ok := strings.CutPrefix(key, principalTag); ok {
		return c.tag(c.Caller.Tags, name)
	}
	name, ofResource := strings.CutPrefix(key, resourceTag)
	if !ofResource {
		name, ofResource = strings.CutPrefix(key, iamResourceTag)
	}
	if ofResource {
		if c.TagsOf == nil {
			return nil
		}
		return c.tag(c.TagsOf(), name)
	}
	if c.Need != nil {
		if name, ok := strings.CutPrefix(key, requestTag); ok {
			return c.tag(c.Need.Tags, name)
		}
		if key == "aws:tagkeys" {
			return c.Need.TagKeys
		}
		for i := range c.Need.Keys {
			if c.Need.Keys[i].Name == key {
				return c.Need.Keys[i].Values
			}
		}
	}
	switch key {
	case "aws:resourceaccount":
		return c.value(c.Account)
	case "aws:requestedregion":
		return c.value(c.Region)
	case "aws:currenttime":
		return c.value(clock.Time(c.Now).Format("2006-01-02T15:04:05Z"))
	case "aws:epochtime":
		return c.value(strconv.FormatInt(c.Now/1000, 10))
	case "aws:securetransport":
		if c.Caller.Kind == caller.Service {
			return c.truth(true)
		}
		if c.Transport != NoTransport {
			return c.truth(c.Transport == TLS)
		}
		return nil
	case "aws:sourceip":
		return c.address()
	case "aws:calledvia", "aws:calledviafirst", "aws:calledvialast":
		return c.value(c.Via)
	case "aws:viaawsservice":
		return c.truth(c.Via != "")
	default:
		return c.identity(key)
	}
}

// identity are the values of condition keys about the caller.
func (c *Context) identity(key string) []string {
	who := c.Caller
	if who.Kind == caller.Service {
		switch key {
		case "aws:sourcearn":
			return c.value(c.Source)
		case "aws:sourceaccount", "aws:sourceowner":
			return c.value(c.Owner)
		case "aws:principalservicename":
			return who.Services[:1]
		case "aws:principalservicenameslist":
			return who.Services
		case "aws:principalisawsservice":
			return c.truth(true)
		}
		return nil
	}
	switch key {
	case "aws:principalisawsservice":
		return c.truth(false)
	case "aws:principalaccount":
		return c.value(who.Account)
	case "aws:principalarn":
		return c.value(who.PolicyARN())
	case "aws:principaltype":
		return c.value(principalTypes[who.Kind])
	case "aws:userid":
		return c.value(who.ID)
	case "aws:username":
		if who.Kind == caller.User {
			return c.value(who.Name)
		}
	case "aws:federatedprovider":
		return c.value(who.Provider)
	case "aws:tokenissuetime":
		if !who.Issued.IsZero() {
			return c.value(who.Issued.UTC().Format("2006-01-02T15:04:05Z"))
		}
	case "aws:sourceidentity":
		return c.value(who.SourceIdentity)
	case "aws:multifactorauthpresent": // absent for long-term keys
		if !who.Issued.IsZero() {
			return c.truth(false)
		}
	case "aws:sourceowner":
		if who.Kind == caller.Root {
			return c.value(who.Account)
		}
	}
	return who.Claims[key]
}

// principalTypes are the values of aws:PrincipalType.
var principalTypes = [...]string{
	caller.Anonymous: "Anonymous", caller.Root: "Account", caller.User: "User", caller.Session: "AssumedRole", caller.Federated: "FederatedUser",
	caller.Service: "",
}

// value is a list of one value, or empty if that is empty.
func (c *Context) value(s string) []string {
	if s == "" {
		return nil
	}
	c.one[0] = s
	return c.one[:]
}

func (c *Context) truth(b bool) []string { return c.value(strconv.FormatBool(b)) }

// tag is the value of a tag, with a case-insensitive key. It may be empty. Of keys that differ
// in case only it is the value of each, in order.
func (c *Context) tag(tags map[string]string, name string) (values []string) {
	for key, value := range tags {
		switch {
		case !strings.EqualFold(key, name):
		case values == nil:
			c.one[0] = value
			values = c.one[:]
		default:
			values = append(values, value) // copies: c.one has no space
		}
	}
	slices.Sort(values)
	return values
}

// address is the value of aws:SourceIp, which is absent from a request that a service
// forwards.
func (c *Context) address() []string {
	if c.Via != "" {
		return nil
	}
	host, err := netip.ParseAddrPort(c.Address)
	if err != nil {
		return nil
	}
	return c.value(host.Addr().Unmap().WithZone("").String())
}

// SNS is SNS of a region, which a policy may name with the region or without.
func SNS(region string) *caller.Caller {
	return ServiceCaller("sns.amazonaws.com", "sns."+region+".amazonaws.com")
}

// ServiceCaller is a service that calls in its own name, by all the names that a policy may have
// for it: for example "lambda.amazonaws.com".
func ServiceCaller(names ...string) *caller.Caller {
	return &caller.Caller{Kind: caller.Service, Services: slices.Clone(names)}
}

// RootOf is the root of an account.
func RootOf(account string) *caller.Caller {
	return &caller.Caller{Kind: caller.Root, Account: account, ARN: arn.Root(account).String(), ID: account}
}
