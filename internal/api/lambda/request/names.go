package request

import (
	"cmp"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
)

// The longest names, in characters: of a function alone, and with the parts that may precede
// and follow it.
const (
	MaxName      = 64
	MaxShortName = 140
	MaxLongName  = 256
)

// Named is a function as a request names it.
type Named struct {
	Function  arn.ARN
	Qualifier string // empty: none
}

// ARN is the ARN of the function, with the qualifier if there is one.
func (n Named) ARN() arn.ARN { return n.Function.Qualify(n.Qualifier) }

// The groups of namespacedFunctionPattern.
const (
	regionPart    = 3
	accountPart   = 9
	namePart      = 11
	qualifierPart = 13
)

// Read parses the name of a function in a request: its name, its ARN, or the end of the ARN
// from the region or the account on, each with an optional qualifier; and a separate qualifier.
// A region or account that is absent is the caller's. limit bounds the text, in characters. It
// fails with ValidationFailed; with InvalidParameter for two qualifiers; with ResourceNotFound
// for another region.
func Read(call *api.Call, text string, qualifier *string, limit int) (n Named, err error) {
	if qualifier == nil && plain(text) { // the common case
		return Named{Function: arn.Function(call.Region, call.Account, text)}, nil
	}
	var c Constraints
	c.Length("functionName", &text, 1, limit)
	c.Pattern("functionName", &text, namespacedFunctionPattern)
	c.Length("qualifier", qualifier, 1, 128)
	c.Pattern("qualifier", qualifier, qualifierPattern)
	if err := c.Err(); err != nil {
		return Named{}, err
	}
	part := namespacedFunctionPattern.FindStringSubmatch(text)
	region := cmp.Or(strings.TrimSuffix(part[regionPart], ":"), call.Region)
	account := cmp.Or(strings.TrimSuffix(part[accountPart], ":"), call.Account)
	n.Qualifier = part[qualifierPart]
	if q := api.Deref(qualifier); q != "" {
		if n.Qualifier != "" && n.Qualifier != q {
			return Named{}, Invalid("The derived qualifier from the function name does not match the specified qualifier.")
		}
		n.Qualifier = q
	}
	n.Function = arn.Function(region, account, part[namePart])
	if region != call.Region {
		return Named{}, fault.Newf(fault.ResourceNotFound, "Functions from '%s' are not reachable in this region ('%s')", region, call.Region)
	}
	return n, nil
}

// Resource is the ARN of a function, version or alias in a request.
func Resource(call *api.Call, text string, qualifier *string) (arn.ARN, error) {
	n, err := Read(call, text, qualifier, MaxLongName)
	return n.ARN(), err
}

// CheckNew validates the name of a new function.
func CheckNew(text string) error {
	var c Constraints
	c.Length("functionName", &text, 1, MaxShortName)
	c.Pattern("functionName", &text, functionPattern)
	return c.Err()
}

// NewResource is Resource for a new function.
func NewResource(call *api.Call, text string) (arn.ARN, error) {
	if err := CheckNew(text); err != nil {
		return arn.ARN{}, err
	}
	return Resource(call, text, nil)
}

// Shared reports whether a function's policy can grant an operation to other accounts.
func Shared(operation string) bool { return slices.Contains(shared, operation) }

// plain reports whether text is only a function's name.
func plain(text string) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return text != "" && len(text) <= MaxName
}

// shared are the operations on a function that its policy can grant to other accounts.
// Source: the Lambda developer guide, "Granting function access to other accounts".
var shared = []string{
	"CreateAlias", "DeleteAlias", "DeleteFunction", "DeleteFunctionConcurrency", "DeleteFunctionEventInvokeConfig", "GetAlias", "GetFunction",
	"GetFunctionConcurrency", "GetFunctionConfiguration", "GetFunctionEventInvokeConfig", "GetPolicy", "Invoke", "ListAliases",
	"ListFunctionEventInvokeConfigs", "ListTags", "ListVersionsByFunction", "PublishVersion", "PutFunctionConcurrency",
	"PutFunctionEventInvokeConfig", "TagResource", "UntagResource", "UpdateAlias", "UpdateFunctionCode", "UpdateFunctionEventInvokeConfig",
}

// ActionOf is the action of an operation in policies.
func ActionOf(operation string) string {
	if operation == "Invoke" {
		operation = "InvokeFunction"
	}
	return "lambda:" + operation
}

// Owned refuses a resource of another account.
func Owned(call *api.Call, a arn.ARN) error { return api.Owned(call, a, ActionOf(call.Operation)) }
