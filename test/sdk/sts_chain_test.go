package sdk_test

import (
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	ststypes "github.com/aws/aws-sdk-go-v2/service/sts/types"
)

// A role that a session assumes further has to admit the tags and the source identity that it
// inherits, and so has the session's own role.
func TestChainedSessionNeedsWhatItInherits(t *testing.T) {
	endpoint := start(t)
	c, ctx := iamClient(endpoint), t.Context()
	role := func(name, trusted, allowed string) *string {
		must(c.CreateRole(ctx, &iam.CreateRoleInput{RoleName: &name, AssumeRolePolicyDocument: new(
			`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"` + account + `"},"Action":[` + trusted + `]}]}`)}))(t)
		must(c.PutRolePolicy(ctx, &iam.PutRolePolicyInput{RoleName: &name, PolicyName: new("p"), PolicyDocument: new(
			`{"Version":"2012-10-17","Statement":[` + statement("Allow", "["+allowed+"]", "*") + `]}`)}))(t)
		return new("arn:aws:iam::" + account + ":role/" + name)
	}
	const assume, tag, source = `"sts:AssumeRole"`, `"sts:TagSession"`, `"sts:SetSourceIdentity"`
	const all = assume + "," + tag + "," + source
	for name, trusted := range map[string]string{"plain": assume, "tags": assume + "," + tag, "sources": assume + "," + source, "both": all} {
		role(name, trusted, `"sqs:*"`)
	}
	ann := stsAs(endpoint, makeUser(t, endpoint, "ann", statement("Allow", "["+all+"]", "*")))
	team := []ststypes.Tag{{Key: new("team"), Value: new("sales")}}
	for _, tt := range []struct {
		first, allowed string
		change         func(in *sts.AssumeRoleInput)
		admitted       []string
	}{
		{"bare", assume, func(*sts.AssumeRoleInput) {}, []string{"plain", "tags", "sources", "both"}},
		{"tagged", all, func(in *sts.AssumeRoleInput) { in.Tags, in.TransitiveTagKeys = team, []string{"team"} }, []string{"tags", "both"}},
		{"tagged-once", assume, func(in *sts.AssumeRoleInput) { in.Tags = team }, []string{"plain", "tags", "sources", "both"}},
		{"named", all, func(in *sts.AssumeRoleInput) { in.SourceIdentity = new("ann") }, []string{"sources", "both"}},
		{"tagged-without-right", assume, func(in *sts.AssumeRoleInput) { in.Tags, in.TransitiveTagKeys = team, []string{"team"} }, nil},
		{"named-without-right", assume, func(in *sts.AssumeRoleInput) { in.SourceIdentity = new("ann") }, nil},
	} {
		in := &sts.AssumeRoleInput{RoleArn: role(tt.first, all, tt.allowed), RoleSessionName: new("ann")}
		tt.change(in)
		chained := stsAs(endpoint, session(must(ann.AssumeRole(ctx, in))(t).Credentials))
		admitted := map[string]bool{}
		for _, name := range tt.admitted {
			admitted[name] = true
		}
		for _, name := range []string{"plain", "tags", "sources", "both"} {
			_, err := chained.AssumeRole(ctx, &sts.AssumeRoleInput{RoleArn: new("arn:aws:iam::" + account + ":role/" + name), RoleSessionName: new("ann")})
			if !admitted[name] {
				deniedTo(t, tt.first+": "+name, err)
			} else if err != nil {
				t.Errorf("%s: %s: %v", tt.first, name, err)
			}
		}
	}
}

// The account's root assumes no role, however much that trusts it.
func TestRootAssumesNoRole(t *testing.T) {
	endpoint := start(t)
	ctx := t.Context()
	must(iamClient(endpoint).CreateRole(ctx, &iam.CreateRoleInput{RoleName: new("r"), AssumeRolePolicyDocument: new(trustRoot)}))(t)
	root := stsClientOf(endpoint, "test", "secret", "")
	temporary := stsAs(endpoint, session(must(root.GetSessionToken(ctx, &sts.GetSessionTokenInput{}))(t).Credentials))
	for name, c := range map[string]*sts.Client{"its key": root, "a session": temporary} {
		_, err := c.AssumeRole(ctx, &sts.AssumeRoleInput{RoleArn: new("arn:aws:iam::" + account + ":role/r"), RoleSessionName: new("root")})
		t.Log(name)
		refused(t, err, "AccessDenied", http.StatusForbidden, "Roles may not be assumed by root accounts.")
	}
}
