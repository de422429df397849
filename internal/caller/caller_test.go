package caller_test

import (
	"testing"

	"godwit.dev/godwit/internal/caller"
)

// Policies know a session by its role, and everybody else by his own ARN.
func TestPolicyARN(t *testing.T) {
	const role, session = "arn:aws:iam::111122223333:role/clerk", "arn:aws:sts::111122223333:assumed-role/clerk/anna"
	for want, c := range map[string]caller.Caller{
		role:                                  {Kind: caller.Session, ARN: session, Role: role},
		"arn:aws:iam::111122223333:user/anna": {Kind: caller.User, ARN: "arn:aws:iam::111122223333:user/anna"},
		"arn:aws:sts::111122223333:federated-user/anna": {Kind: caller.Federated, ARN: "arn:aws:sts::111122223333:federated-user/anna"},
		"": {},
	} {
		if got := c.PolicyARN(); got != want {
			t.Errorf("%+v is %q to policies", c, got)
		}
	}
}
