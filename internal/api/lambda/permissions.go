package lambda

import (
	"context"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/lambda/request"
	"godwit.dev/godwit/internal/function"
)

// addPermission answers AddPermission.
func (s *Service) addPermission(ctx context.Context, call *api.Call, in *AddPermissionInput) (*AddPermissionOutput, error) {
	var c request.Constraints
	c.Length("statementId", &in.StatementId, 1, 100)
	c.Pattern("statementId", &in.StatementId, statementPattern)
	c.Pattern("action", &in.Action, actionPattern)
	c.Pattern("principal", &in.Principal, principalPattern)
	c.Pattern("sourceArn", in.SourceArn, request.ARNPattern)
	c.Length("sourceAccount", in.SourceAccount, 0, 12)
	c.Pattern("sourceAccount", in.SourceAccount, request.AccountPattern)
	c.Length("eventSourceToken", in.EventSourceToken, 0, 256)
	c.Pattern("eventSourceToken", in.EventSourceToken, tokenPattern)
	c.Length("principalOrgID", in.PrincipalOrgID, 12, 34)
	c.Pattern("principalOrgID", in.PrincipalOrgID, organizationRegexp)
	c.Enum("functionUrlAuthType", in.FunctionUrlAuthType, "NONE", "AWS_IAM")
	if err := c.Err(); err != nil {
		return nil, err
	}
	n, err := s.parse(ctx, call, in.FunctionName, in.Qualifier, request.MaxLongName)
	if err != nil {
		return nil, err
	}
	if !isPrincipal(in.Principal) && n.Qualifier != function.Latest {
		return nil, errPrincipal
	}
	who, known := s.Principals.BindPrincipal(in.Principal)
	if !known {
		return nil, errPrincipal
	}
	p := function.NewPermission(in.StatementId, who, in.Action, n.ARN().String(), conditions(in))
	err = s.engine.PermitFunction(ctx, function.Permit{
		Function: n.Function, Qualifier: n.Qualifier, RevisionID: api.Deref(in.RevisionId), Permission: p, Revision: s.NewRevision(),
	})
	if err != nil {
		return nil, err
	}
	p.Principal = function.Principal(in.Principal)
	return &AddPermissionOutput{Statement: p.String()}, nil
}

var errPrincipal = request.Invalid("The provided principal was invalid. Please check the principal and try again.")

// isPrincipal reports whether a name has the form of a principal: *, an account's number, an
// ARN, or a service's name in one of AWS's domains.
func isPrincipal(name string) bool {
	if name == "*" || request.AccountPattern.MatchString(name) || strings.HasPrefix(name, "arn:") {
		return true
	}
	return slices.ContainsFunc([]string{".amazonaws.com", ".amazonaws.com.cn", ".amazonaws.eu", ".amazon.com", ".aws.internal"}, func(domain string) bool {
		return strings.HasSuffix(name, domain)
	})
}

// conditions are the conditions of the new statement.
func conditions(in *AddPermissionInput) (c function.Conditions) {
	add := func(operator *map[string]string, key string, value *string) {
		if value == nil {
			return
		}
		if *operator == nil {
			*operator = map[string]string{}
		}
		(*operator)[key] = *value
	}
	add(&c.ArnLike, "AWS:SourceArn", in.SourceArn)
	add(&c.StringEquals, "AWS:SourceAccount", in.SourceAccount)
	add(&c.StringEquals, "lambda:EventSourceToken", in.EventSourceToken)
	add(&c.StringEquals, "aws:PrincipalOrgID", in.PrincipalOrgID)
	add(&c.StringEquals, "lambda:FunctionUrlAuthType", in.FunctionUrlAuthType)
	if api.Deref(in.InvokedViaFunctionUrl) {
		add(&c.Bool, "lambda:InvokedViaFunctionUrl", new("true"))
	}
	return c
}

// removePermission answers RemovePermission.
func (s *Service) removePermission(ctx context.Context, call *api.Call, in *RemovePermissionInput) (*Empty, error) {
	var c request.Constraints
	c.Length("statementId", &in.StatementId, 1, 100)
	c.Pattern("statementId", &in.StatementId, namespacedPattern)
	if err := c.Err(); err != nil {
		return nil, err
	}
	n, err := s.parse(ctx, call, in.FunctionName, in.Qualifier, request.MaxLongName)
	if err != nil {
		return nil, err
	}
	return nil, s.engine.ForbidFunction(ctx, function.Forbid{
		Function: n.Function, Qualifier: n.Qualifier, RevisionID: api.Deref(in.RevisionId), Sid: in.StatementId, Revision: s.NewRevision(),
	})
}

// getPolicy answers GetPolicy.
func (s *Service) getPolicy(ctx context.Context, call *api.Call, in *FunctionInput) (*GetPolicyOutput, error) {
	n, err := s.parse(ctx, call, in.FunctionName, in.Qualifier, request.MaxLongName)
	if err != nil {
		return nil, err
	}
	doc, revision, err := s.engine.FunctionPolicy(ctx, n.Function, n.Qualifier)
	if err != nil {
		return nil, err
	}
	return &GetPolicyOutput{Policy: s.Principals.ShowPolicy(doc), RevisionId: revision}, nil
}
