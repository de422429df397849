package lambda

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/function"
)

// addPermission answers AddPermission.
func (s *Service) addPermission(ctx context.Context, call *api.Call, in *AddPermissionInput) (*AddPermissionOutput, error) {
	var c constraints
	c.length("statementId", &in.StatementId, 1, 100)
	c.pattern("statementId", &in.StatementId, statementPattern)
	c.pattern("action", &in.Action, actionPattern)
	c.pattern("principal", &in.Principal, principalPattern)
	c.pattern("sourceArn", in.SourceArn, arnPattern)
	c.length("sourceAccount", in.SourceAccount, 0, 12)
	c.pattern("sourceAccount", in.SourceAccount, accountPattern)
	c.length("eventSourceToken", in.EventSourceToken, 0, 256)
	c.pattern("eventSourceToken", in.EventSourceToken, tokenPattern)
	c.length("principalOrgID", in.PrincipalOrgID, 12, 34)
	c.pattern("principalOrgID", in.PrincipalOrgID, organizationRegexp)
	c.enum("functionUrlAuthType", in.FunctionUrlAuthType, "NONE", "AWS_IAM")
	if err := c.err(); err != nil {
		return nil, err
	}
	n, err := s.parse(ctx, call, in.FunctionName, in.Qualifier, maxLongName)
	if err != nil {
		return nil, err
	}
	if !isPrincipal(in.Principal) && n.qualifier != function.Latest {
		return nil, errPrincipal
	}
	p := function.Permission{
		Sid: in.StatementId, Effect: "Allow", Principal: principal(in.Principal), Action: in.Action,
		Resource: n.ARN().String(), Condition: condition(in),
	}
	err = s.engine.PermitFunction(ctx, function.Permit{
		Function: n.function, Qualifier: n.qualifier, RevisionID: api.Deref(in.RevisionId), Permission: p, Revision: s.NewRevision(),
	})
	if err != nil {
		return nil, err
	}
	return &AddPermissionOutput{Statement: p.String()}, nil
}

var errPrincipal = invalid("The provided principal was invalid. Please check the principal and try again.")

// isPrincipal reports whether a name can be somebody's: everybody's, an account's, a
// user's or role's, or a service's, which is in one of AWS's domains.
func isPrincipal(name string) bool {
	if name == "*" || accountPattern.MatchString(name) || strings.HasPrefix(name, "arn:") {
		return true
	}
	return slices.ContainsFunc([]string{".amazonaws.com", ".amazonaws.com.cn", ".amazonaws.eu", ".amazon.com", ".aws.internal"}, func(domain string) bool {
		return strings.HasSuffix(name, domain)
	})
}

// principal is who may call, in the form of IAM: everybody, an account or a part of
// one, or a service.
func principal(name string) json.RawMessage {
	switch {
	case name == "*":
		return text(name)
	case accountPattern.MatchString(name):
		return object("AWS", "arn:aws:iam::"+name+":root")
	case strings.HasPrefix(name, "arn:"):
		return object("AWS", name)
	default:
		return object("Service", name)
	}
}

// condition are those that the request names; nil if there are none.
func condition(in *AddPermissionInput) json.RawMessage {
	operators := map[string]map[string]string{}
	add := func(operator, key string, value *string) {
		if value == nil {
			return
		}
		if operators[operator] == nil {
			operators[operator] = map[string]string{}
		}
		operators[operator][key] = *value
	}
	add("ArnLike", "AWS:SourceArn", in.SourceArn)
	add("StringEquals", "AWS:SourceAccount", in.SourceAccount)
	add("StringEquals", "lambda:EventSourceToken", in.EventSourceToken)
	add("StringEquals", "aws:PrincipalOrgID", in.PrincipalOrgID)
	add("StringEquals", "lambda:FunctionUrlAuthType", in.FunctionUrlAuthType)
	if api.Deref(in.InvokedViaFunctionUrl) {
		add("Bool", "lambda:InvokedViaFunctionUrl", new("true"))
	}
	if len(operators) == 0 {
		return nil
	}
	return marshal(operators)
}

func text(value string) json.RawMessage { return marshal(value) }

func object(name, value string) json.RawMessage { return marshal(map[string]string{name: value}) }

func marshal(value any) json.RawMessage {
	p, err := json.Marshal(value)
	if err != nil {
		panic(err) // texts in maps are fit
	}
	return p
}

// removePermission answers RemovePermission.
func (s *Service) removePermission(ctx context.Context, call *api.Call, in *RemovePermissionInput) (*Empty, error) {
	var c constraints
	c.length("statementId", &in.StatementId, 1, 100)
	c.pattern("statementId", &in.StatementId, namespacedPattern)
	if err := c.err(); err != nil {
		return nil, err
	}
	n, err := s.parse(ctx, call, in.FunctionName, in.Qualifier, maxLongName)
	if err != nil {
		return nil, err
	}
	return nil, s.engine.ForbidFunction(ctx, function.Forbid{
		Function: n.function, Qualifier: n.qualifier, RevisionID: api.Deref(in.RevisionId), Sid: in.StatementId, Revision: s.NewRevision(),
	})
}

// getPolicy answers GetPolicy.
func (s *Service) getPolicy(ctx context.Context, call *api.Call, in *FunctionInput) (*GetPolicyOutput, error) {
	n, err := s.parse(ctx, call, in.FunctionName, in.Qualifier, maxLongName)
	if err != nil {
		return nil, err
	}
	doc, revision, err := s.engine.FunctionPolicy(ctx, n.function, n.qualifier)
	if err != nil {
		return nil, err
	}
	return &GetPolicyOutput{Policy: doc, RevisionId: revision}, nil
}
