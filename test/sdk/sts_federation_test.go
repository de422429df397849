package sdk_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sts"
	ststypes "github.com/aws/aws-sdk-go-v2/service/sts/types"
)

// Who gives a federated user's session tags needs sts:TagSession, which conditions can bound.
func TestTagsOfFederationNeedPermission(t *testing.T) {
	endpoint, ctx := start(t), t.Context()
	get := func(c *sts.Client, team string) error {
		in := &sts.GetFederationTokenInput{Name: new("eve")}
		if team != "" {
			in.Tags = []ststypes.Tag{{Key: new("team"), Value: &team}}
		}
		_, err := c.GetFederationToken(ctx, in)
		return err
	}
	plain := stsAs(endpoint, makeUser(t, endpoint, "plain", statement("Allow", `"sts:GetFederationToken"`, "*")))
	if err := get(plain, ""); err != nil {
		t.Error(err)
	}
	deniedTo(t, "tags without the permission", get(plain, "board"))
	tagging := stsAs(endpoint, makeUser(t, endpoint, "tagging", statement("Allow", `"sts:GetFederationToken"`, "*"),
		`{"Effect":"Allow","Action":"sts:TagSession","Resource":"*","Condition":{"StringEquals":{"aws:RequestTag/team":"sales"}}}`))
	if err := get(tagging, "sales"); err != nil {
		t.Error(err)
	}
	deniedTo(t, "another team", get(tagging, "board"))
}
