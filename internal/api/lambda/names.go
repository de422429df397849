package lambda

import (
	"strings"
	"unicode/utf8"

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

// parse reads how a request names a function: by its name, an ARN, or the part of
// one behind the account's number, each perhaps with a qualifier behind it; and a
// qualifier beside it. most bounds the text, in characters. It fails with
// ValidationFailed; InvalidParameter if there are two qualifiers; ResourceNotFound
// for another region, AccessDenied for another account.
func parse(call *api.Call, text string, qualifier *string, most int) (n named, err error) {
	if qualifier == nil && plain(text) { // as most requests have it
		return named{function: arn.Function(call.Region, call.Account, text)}, nil
	}
	var c constraints
	c.length("functionName", &text, 1, most)
	c.pattern("functionName", &text, functionPattern)
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
	if utf8.RuneCountInString(name) > maxName {
		c.length("functionName", &name, 1, maxName)
		return named{}, c.err()
	}
	if q := deref(qualifier); q != "" {
		if n.qualifier != "" && n.qualifier != q {
			return named{}, invalid("The derived qualifier from the function name does not match the specified qualifier.")
		}
		n.qualifier = q
	}
	n.function = arn.Function(region, account, name)
	if region != call.Region {
		return named{}, fault.Newf(fault.ResourceNotFound, "Functions from '%s' are not reachable in this region ('%s')", region, call.Region)
	}
	return n, owned(call, n.ARN())
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
	c.add("functionName", text, "Member must satisfy regular expression pattern: %s", functionPattern.text)
	return c.err()
}

// parseWhole is parse for operations on a function as a whole, which a qualifier
// in its name does not fit.
func parseWhole(call *api.Call, text string) (arn.ARN, error) {
	n, err := parse(call, text, nil, maxShortName)
	if err == nil && n.qualifier != "" {
		return arn.ARN{}, invalid("This operation does not support versioned or aliased function names: %s", shorten(text))
	}
	return n.function, err
}

// owned refuses what belongs to another account.
func owned(call *api.Call, a arn.ARN) error {
	if call.Unsigned() || a.Account == call.Account {
		return nil
	}
	action := "lambda:" + call.Operation
	return fault.Newf(fault.AccessDenied,
		"User: arn:aws:iam::%s:root is not authorized to perform: %s on resource: %s because no resource-based policy allows the %s action",
		call.Account, action, a, action)
}
