package sdk_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/iam"
)

// A trust policy is measured as it is given, not with the unique ids of those it names.
func TestTrustPolicyIsMeasuredAsGiven(t *testing.T) {
	endpoint, ctx := start(t), t.Context()
	c := iamClient(endpoint)
	path := "/" + strings.Repeat("p", 300) + "/"
	var names []string
	for i := range 6 {
		name := fmt.Sprintf("user-%d", i)
		names = append(names, `"`+*must(c.CreateUser(ctx, &iam.CreateUserInput{UserName: &name, Path: &path}))(t).User.Arn+`"`)
	}
	trust := func(n int) *string {
		return new(`{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"AWS": [` + strings.Join(names[:n], ",") + `]}, "Action": "sts:AssumeRole"}]}` + strings.Repeat(" ", 1000))
	}
	_, err := c.CreateRole(ctx, &iam.CreateRoleInput{RoleName: new("r"), AssumeRolePolicyDocument: trust(6)})
	refused(t, err, "LimitExceeded", http.StatusConflict, "Cannot exceed quota for ACLSizePerRole: 2048")
	must(c.CreateRole(ctx, &iam.CreateRoleInput{RoleName: new("r"), AssumeRolePolicyDocument: trust(5)}))(t)
	_, err = c.UpdateAssumeRolePolicy(ctx, &iam.UpdateAssumeRolePolicyInput{RoleName: new("r"), PolicyDocument: trust(6)})
	refused(t, err, "LimitExceeded", http.StatusConflict, "Cannot exceed quota for ACLSizePerRole: 2048")
}
