package sdk_test

import (
	"cmp"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
)

// Who may manage access keys of its own, as a policy of AWS's documentation says, asks when
// they were used, and not when those of others were.
func TestOwnAccessKeys(t *testing.T) {
	endpoint, ctx := start(t), t.Context()
	who := makeUser(t, endpoint, "ann", statement("Allow", `["iam:CreateAccessKey","iam:DeleteAccessKey","iam:GetAccessKeyLastUsed","iam:GetUser","iam:ListAccessKeys","iam:UpdateAccessKey"]`,
		"arn:aws:iam::*:user/${aws:username}"))
	makeUser(t, endpoint, "bob")
	ann := iamAs(endpoint, who)
	theirs := *must(iamClient(endpoint).ListAccessKeys(ctx, &iam.ListAccessKeysInput{UserName: new("bob")}))(t).AccessKeyMetadata[0].AccessKeyId
	mine := must(ann.CreateAccessKey(ctx, &iam.CreateAccessKeyInput{}))(t).AccessKey.AccessKeyId
	if got, err := ann.GetAccessKeyLastUsed(ctx, &iam.GetAccessKeyLastUsedInput{AccessKeyId: mine}); err != nil || *got.UserName != "ann" {
		t.Errorf("%+v, %v", got, err)
	}
	for _, id := range []string{theirs, "AKIAIOSFODNN7EXAMPLE"} {
		_, err := ann.GetAccessKeyLastUsed(ctx, &iam.GetAccessKeyLastUsedInput{AccessKeyId: &id})
		deniedTo(t, id, err)
		if err == nil || strings.Contains(err.Error(), "bob") {
			t.Errorf("%s: %v", id, err)
		}
	}
	must(ann.UpdateAccessKey(ctx, &iam.UpdateAccessKeyInput{AccessKeyId: mine, Status: iamtypes.StatusTypeInactive}))(t)
	must(ann.DeleteAccessKey(ctx, &iam.DeleteAccessKeyInput{AccessKeyId: mine}))(t)
	_, err := ann.DeleteAccessKey(ctx, &iam.DeleteAccessKeyInput{UserName: new("bob"), AccessKeyId: &theirs})
	deniedTo(t, "a key of bob's", err)
}

// What lists users, groups and roles below a path is on that path, as policies may have it.
func TestListsBelowAPath(t *testing.T) {
	endpoint, ctx := start(t), t.Context()
	iamOf := func(name string, statements ...string) *iam.Client {
		return iamAs(endpoint, makeUser(t, endpoint, name, statements...))
	}
	own := "arn:aws:iam::" + account + ":"
	of := map[string]*iam.Client{
		"all":     iamOf("all", statement("Allow", `"iam:List*"`, "*")),
		"kinds":   iamOf("kinds", `{"Effect":"Allow","Action":"iam:List*","Resource":["`+own+`user/*","`+own+`group/*","`+own+`role/*","`+own+`instance-profile/*"]}`),
		"team":    iamOf("team", `{"Effect":"Allow","Action":"iam:List*","Resource":["`+own+`user/team/*","`+own+`group/team/*","`+own+`role/team/*","`+own+`instance-profile/team/*"]}`),
		"nothing": iamOf("nothing", statement("Allow", `"iam:List*"`, "*"), `{"Effect":"Deny","Action":"iam:List*","Resource":["`+own+`user/*","`+own+`group/*","`+own+`role/*","`+own+`instance-profile/*"]}`),
	}
	for word, list := range map[string]func(c *iam.Client, path *string) error{
		"user": func(c *iam.Client, path *string) error {
			_, err := c.ListUsers(ctx, &iam.ListUsersInput{PathPrefix: path})
			return err
		},
		"group": func(c *iam.Client, path *string) error {
			_, err := c.ListGroups(ctx, &iam.ListGroupsInput{PathPrefix: path})
			return err
		},
		"role": func(c *iam.Client, path *string) error {
			_, err := c.ListRoles(ctx, &iam.ListRolesInput{PathPrefix: path})
			return err
		},
		"instance-profile": func(c *iam.Client, path *string) error {
			_, err := c.ListInstanceProfiles(ctx, &iam.ListInstanceProfilesInput{PathPrefix: path})
			return err
		},
	} {
		for _, tt := range []struct {
			who  string
			path *string
			ok   bool
		}{
			{"all", nil, true},
			{"kinds", nil, true},
			{"kinds", new("/team/"), true},
			{"team", new("/team/"), true},
			{"team", new("/team/a/"), true},
			{"team", nil, false},
			{"team", new("/teams/"), false},
			{"nothing", nil, false},
			{"nothing", new("/team/"), false},
		} {
			err := list(of[tt.who], tt.path)
			if path := aws.ToString(tt.path); !tt.ok {
				deniedTo(t, word+" "+tt.who+" "+path, err)
				if on := own + word + cmp.Or(path, "/"); err == nil || !strings.Contains(err.Error(), "on resource: "+on+" ") {
					t.Errorf("%s: %s %s: %v", word, tt.who, path, err)
				}
			} else if err != nil {
				t.Errorf("%s: %s %s: %v", word, tt.who, path, err)
			}
		}
	}
}
