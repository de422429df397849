package sdk_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/kms"
)

// A key's policy has to let the caller, or its account, put another one, unless the check is
// waived.
func TestKeyPolicyLockout(t *testing.T) {
	endpoint := start(t)
	root := newKMS(t, endpoint, account)
	eve := kmsAs(endpoint, makeUser(t, endpoint, "eve", statement("Allow", `"kms:*"`, "*")))
	makeUser(t, endpoint, "bob")
	mine := makeKey(t, eve, &kms.CreateKeyInput{})
	user := func(name string) string { return `"arn:aws:iam::` + account + `:user/` + name + `"` }
	statement := func(effect, principal, actions, more string) string {
		return `{"Effect":"` + effect + `","Principal":{"AWS":` + principal + `},"Action":` + actions + `,"Resource":"*"` + more + `}`
	}
	everything, ofRoot := `"kms:*"`, `"`+account+`"`
	for name, tt := range map[string]struct {
		policy string
		ok     bool
	}{
		"the caller":                 {statement("Allow", user("eve"), everything, ""), true},
		"the account":                {statement("Allow", ofRoot, `["kms:PutKeyPolicy","kms:Get*"]`, ""), true},
		"everybody":                  {statement("Allow", `"*"`, everything, ""), true},
		"somebody else":              {statement("Allow", user("bob"), everything, ""), false},
		"another account":            {statement("Allow", `"111122223333"`, everything, ""), false},
		"the caller, but for this":   {statement("Allow", user("eve"), `["kms:Encrypt","kms:Get*"]`, ""), false},
		"a service":                  {strings.Replace(statement("Allow", `"sns.amazonaws.com"`, everything, ""), `"AWS"`, `"Service"`, 1), false},
		"nobody":                     {statement("Deny", user("bob"), everything, ""), false},
		"who is denied":              {statement("Allow", ofRoot, everything, "") + "," + statement("Deny", user("eve"), `"kms:Put*"`, ""), false},
		"by a condition that holds":  {statement("Allow", user("eve"), everything, `,"Condition":{"IpAddress":{"aws:SourceIp":"127.0.0.0/8"}}`), true},
		"by one that does not":       {statement("Allow", user("eve"), everything, `,"Condition":{"IpAddress":{"aws:SourceIp":"192.0.2.0/24"}}`), false},
		"by a service that asks":     {statement("Allow", user("eve"), everything, `,"Condition":{"StringEquals":{"kms:ViaService":"sqs.us-east-1.amazonaws.com"}}`), false},
		"of the caller's account":    {statement("Allow", user("eve"), everything, `,"Condition":{"StringEquals":{"kms:CallerAccount":"`+account+`"}}`), true},
		"everything but this action": {strings.Replace(statement("Allow", ofRoot, `"kms:PutKeyPolicy"`, ""), `"Action"`, `"NotAction"`, 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			document := policyOf(tt.policy)
			const locked = "The new key policy will not allow you to update the key policy in the future."
			_, created := eve.CreateKey(t.Context(), &kms.CreateKeyInput{Policy: &document})
			before := *ask(t, root.GetKeyPolicy, &kms.GetKeyPolicyInput{KeyId: mine.KeyId}).Policy
			_, put := eve.PutKeyPolicy(t.Context(), &kms.PutKeyPolicyInput{KeyId: mine.KeyId, Policy: &document})
			for what, err := range map[string]error{"CreateKey": created, "PutKeyPolicy": put} {
				if tt.ok && err != nil {
					t.Errorf("%s: %v", what, err)
				} else if !tt.ok {
					refusedWith(t, err, "MalformedPolicyDocumentException", locked)
				}
			}
			if !tt.ok {
				equal(t, "the policy that stays", before, *ask(t, root.GetKeyPolicy, &kms.GetKeyPolicyInput{KeyId: mine.KeyId}).Policy)
			}
			ask(t, eve.CreateKey, &kms.CreateKeyInput{Policy: &document, BypassPolicyLockoutSafetyCheck: true})
			mine = makeKey(t, eve, &kms.CreateKeyInput{}) // the next one finds a key that it may change
		})
	}
}
