package lambda

import (
	"context"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
)

// The longest names, in characters: of a function, and of it with all that may
// stand before and behind.
const (
	maxName      = 64
	maxShortName = 140
	maxLongName  = 256
)

// named is a function as a request names it.
type named struct {
	function  arn.ARN
	qualifier string // empty: none
}

// ARN is the function with the qualifier, if there is one.
func (n named) ARN() arn.ARN { return n.function.Qualify(n.qualifier) }

// read reads how a request names a function: by its name, an ARN, or the part of
// one behind the account's number, each perhaps with a qualifier behind it; and a
// qualifier beside it. most bounds the text, in characters. It fails with
// ValidationFailed; InvalidParameter if there are two qualifiers; ResourceNotFound
// for another region.
func read(call *api.Call, text string, qualifier *string, most int) (n named, err error) {
	if qualifier == nil && plain(text) { // as most requests have it
		return named{function: arn.Function(call.Region, call.Account, text)}, nil
	}
	var c constraints
	c.length("functionName", &text, 1, most)
	c.pattern("functionName", &text, namespacedFunctionPattern)
	c.length("qualifier", qualifier, 1, 128)
	c.pattern("qualifier", qualifier, qualifierPattern)
	if err := c.err(); err != nil {
		return named{}, err
	}
	name, region, account := text, call.Region, call.Account
	if rest, ok := strings.CutPrefix(text, "arn:"); ok {
		parts := strings.SplitN(rest, ":", 5) // partition, lambda, region, account, …
		if len(parts) != 5 {
			return named{}, badName(text)
		}
		region, account, name = parts[2], parts[3], parts[4]
	} else if first, rest, found := strings.Cut(text, ":"); found && accountPattern.MatchString(first) {
		account, name = first, rest
	}
	name = strings.TrimPrefix(name, "function:")
	name, n.qualifier, _ = strings.Cut(name, ":")
	if name == "" || strings.Contains(n.qualifier, ":") || !accountPattern.MatchString(account) {
		return named{}, badName(text)
	}
	if q := api.Deref(qualifier); q != "" {
		if n.qualifier != "" && n.qualifier != q {
			return named{}, invalid("The derived qualifier from the function name does not match the specified qualifier.")
		}
		n.qualifier = q
	}
	n.function = arn.Function(region, account, name)
	if region != call.Region {
		return named{}, fault.Newf(fault.ResourceNotFound, "Functions from '%s' are not reachable in this region ('%s')", region, call.Region)
	}
	return n, nil
}

// Named is the function, version or alias that a request names.
func Named(call *api.Call, text string, qualifier *string) (arn.ARN, error) {
	n, err := read(call, text, qualifier, maxLongName)
	return n.ARN(), err
}

// Shared reports whether a function's policy can let other accounts do an operation.
func Shared(operation string) bool { return slices.Contains(shared, operation) }

// parse is read, and AccessDenied for another account's function whose policy does
// not let the caller do what it asks for.
func (s *Service) parse(ctx context.Context, call *api.Call, text string, qualifier *string, most int) (named, error) {
	n, err := read(call, text, qualifier, most)
	if err != nil {
		return named{}, err
	}
	return n, s.admit(ctx, call, n.ARN())
}

// plain reports whether text is a function's name, with nothing else around it.
func plain(text string) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return text != "" && len(text) <= maxName
}

func badName(text string) error {
	var c constraints
	c.add("functionName", text, "Member must satisfy regular expression pattern: %s", namespacedFunctionPattern.text)
	return c.err()
}

// parseWhole is parse for operations on a function as a whole, which a qualifier
// in its name does not fit.
func (s *Service) parseWhole(ctx context.Context, call *api.Call, text string) (arn.ARN, error) {
	n, err := s.parse(ctx, call, text, nil, maxShortName)
	if err == nil && n.qualifier != "" {
		return arn.ARN{}, invalid("This operation does not support versioned or aliased function names: %s", shorten(text))
	}
	return n.function, err
}

// parseNew is parseWhole for a function that is to be made, whose name may be
// maxName characters long.
func (s *Service) parseNew(ctx context.Context, call *api.Call, text string) (arn.ARN, error) {
	var c constraints
	c.pattern("functionName", &text, functionPattern)
	if err := c.err(); err != nil {
		return arn.ARN{}, err
	}
	fn, err := s.parseWhole(ctx, call, text)
	if err != nil {
		return arn.ARN{}, err
	}
	name := fn.FunctionName()
	if c.length("functionName", &name, 1, maxName); len(c.broken) > 0 {
		return arn.ARN{}, invalid("%s", c.err())
	}
	return fn, nil
}

// shared are the operations on a function that its policy can let other accounts do.
// Source: the Lambda developer guide, "Granting function access to other accounts".
var shared = []string{
	"CreateAlias", "DeleteAlias", "DeleteFunction", "DeleteFunctionConcurrency", "DeleteFunctionEventInvokeConfig", "GetAlias", "GetFunction",
	"GetFunctionConcurrency", "GetFunctionConfiguration", "GetFunctionEventInvokeConfig", "GetPolicy", "Invoke", "ListAliases",
	"ListFunctionEventInvokeConfigs", "ListTags", "ListVersionsByFunction", "PublishVersion", "PutFunctionConcurrency",
	"PutFunctionEventInvokeConfig", "TagResource", "UntagResource", "UpdateAlias", "UpdateFunctionCode", "UpdateFunctionEventInvokeConfig",
}

func action(call *api.Call) string { return ActionOf(call.Operation) }

// ActionOf is the action in policies of an operation.
func ActionOf(operation string) string {
	if operation == "Invoke" {
		operation = "InvokeFunction"
	}
	return "lambda:" + operation
}

// admit refuses what another account may not do with a function. It fails with
// AccessDenied.
func (s *Service) admit(ctx context.Context, call *api.Call, fn arn.ARN) error {
	err := owned(call, fn)
	if err != nil && Shared(call.Operation) && s.engine.AdmitsCaller(ctx, fn, call.Account, action(call), call.RemoteAddr) {
		return nil
	}
	return err
}

// owned refuses what belongs to another account.
func owned(call *api.Call, a arn.ARN) error { return api.Owned(call, a, action(call)) }
