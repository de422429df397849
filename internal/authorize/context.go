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

// Context is what the policies that apply to a request can ask about it. It is used by
// one decision at a time.
type Context struct {
	Caller *caller.Caller
	// Account is the resource's, Region the one that the request goes to.
	Account, Region string
	Now             int64  // epoch milliseconds
	Address         string // the caller's host:port; empty: within the server
	Transport       Transport
	// Source is the resource on behalf of which a service calls, Owner its account.
	Source, Owner string
	// TagsOf gives the tags of the resource; nil: it has none.
	TagsOf func() map[string]string
	// Need brings the keys that depend on the action; nil: there are none.
	Need *Need
	// Via is the service that passes a caller's request on, as "sqs.amazonaws.com";
	// empty: the caller came by itself.
	Via string

	one [1]string // a value that is valid until the next call
}

// CloudFormation is that service where it asks for whoever deploys.
const CloudFormation = "cloudformation.amazonaws.com"

// Transport is how a request came.
type Transport uint8

// The transports.
const (
	NoTransport Transport = iota // nobody asks, or it came from within the server
	Plain
	TLS
)

// Prefixes of keys that end in a name.
const (
	principalTag = "aws:principaltag/"
	resourceTag  = "aws:resourcetag/"
	// IAM's own name for the same.
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

// identity are the values of keys that are about the caller.
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
	case "aws:multifactorauthpresent": // long-term keys do not have it at all
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

// principalTypes are what aws:PrincipalType says.
var principalTypes = [...]string{
	caller.Anonymous: "Anonymous", caller.Root: "Account", caller.User: "User", caller.Session: "AssumedRole", caller.Federated: "FederatedUser",
	caller.Service: "",
}

// value is a list of one value; of none if that is empty.
func (c *Context) value(s string) []string {
	if s == "" {
		return nil
	}
	c.one[0] = s
	return c.one[:]
}

func (c *Context) truth(b bool) []string { return c.value(strconv.FormatBool(b)) }

// tag is the value of a tag, whatever the case of its key. It may be empty.
func (c *Context) tag(tags map[string]string, name string) []string {
	for key, value := range tags {
		if strings.EqualFold(key, name) {
			c.one[0] = value
			return c.one[:]
		}
	}
	return nil
}

// address is the value of aws:SourceIp, which a request that a service passes on has
// not.
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

// ServiceCaller is a service that calls on its own account: as "sns", from a region if
// it is one that has regional names.
func ServiceCaller(names ...string) *caller.Caller {
	return &caller.Caller{Kind: caller.Service, Services: slices.Clone(names)}
}

// RootOf is the root of an account.
func RootOf(account string) *caller.Caller {
	return &caller.Caller{Kind: caller.Root, Account: account, ARN: RootARN(account), ID: account}
}

// RootARN is the ARN of an account's root, as policies name an account.
func RootARN(account string) string { return "arn:" + arn.Partition + ":iam::" + account + ":root" }
