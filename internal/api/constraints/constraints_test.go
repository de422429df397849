package constraints_test

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/constraints"
)

type tag struct{ Key, Value *string }

type input struct {
	RoleName, RoleSessionName, ExternalId, Url, VersionId, KeyId, KeySpec *string
	Path                                                                  *string
	AliasName                                                             string
	MaxItems, DurationSeconds, NumberOfBytes                              *int
	Tags                                                                  []tag
	TagKeys, ClientIDList, ThumbprintList, Operations                     []string
	Plaintext                                                             []byte
	AssumeRolePolicyDocument, RoleArn                                     *string
	TargetKeyId                                                           string
}

// What AWS's validation has been seen to say, by service and operation.
func TestTexts(t *testing.T) {
	long := strings.Repeat("s", 65)
	tags := `Member must satisfy constraint: [Member must have length less than or equal to 128, Member must have length greater than or equal to 1, ` +
		`Member must satisfy regular expression pattern: [\p{L}\p{Z}\p{N}_.:/=+\-@]+, Member must not be null]`
	for _, c := range []struct {
		service, operation string
		in                 input
		text               string // empty: it is taken
	}{
		{"iam", "GetRole", input{}, "1 validation error detected: Value null at 'roleName' failed to satisfy constraint: Member must not be null"},
		{"iam", "GetRole", input{RoleName: &long}, "1 validation error detected: Value at 'roleName' failed to satisfy constraint: Member must have length less than or equal to 64"},
		{"iam", "GetRole", input{RoleName: new("")}, "1 validation error detected: Value at 'roleName' failed to satisfy constraint: Member must have length greater than or equal to 1"},
		{"iam", "GetRole", input{RoleName: new("a b")}, "The specified value for roleName is invalid. It must contain only alphanumeric characters and/or the following: +=,.@_-"},
		{"iam", "GetRole", input{RoleName: new("a_b+=,.@-")}, ""},
		{"iam", "CreateInstanceProfile", input{Path: new("a")}, "The specified value for path is invalid. It must begin and end with / and contain only alphanumeric characters and/or / characters."},
		{
			"iam", "CreateOpenIDConnectProvider",
			input{ClientIDList: []string{strings.Repeat("x", 256)}, ThumbprintList: []string{"short"}, Url: new(strings.Repeat("u", 256))},
			"3 validation errors detected: Value at 'clientIDList' failed to satisfy constraint: Member must satisfy constraint: " +
				"[Member must have length less than or equal to 255, Member must have length greater than or equal to 1]; " +
				"Value at 'thumbprintList' failed to satisfy constraint: Member must satisfy constraint: " +
				"[Member must have length less than or equal to 40, Member must have length greater than or equal to 40]; " +
				"Value at 'url' failed to satisfy constraint: Member must have length less than or equal to 255",
		},
		{"iam", "UntagRole", input{RoleName: new("r"), TagKeys: []string{"a", strings.Repeat("x", 129)}}, "1 validation error detected: Value at 'tagKeys' failed to satisfy constraint: " + tags},
		{"iam", "UntagRole", input{RoleName: new("r"), TagKeys: []string{"in?valid"}}, "1 validation error detected: Value at 'tagKeys' failed to satisfy constraint: " + tags},
		{"iam", "UntagRole", input{RoleName: new("r"), TagKeys: make([]string, 51)}, "2 validation errors detected: Value at 'tagKeys' failed to satisfy constraint: Member must have length less than or equal to 50; " +
			"Value at 'tagKeys' failed to satisfy constraint: " + tags},
		{"iam", "TagRole", input{RoleName: new("r"), Tags: []tag{{new(strings.Repeat("x", 129)), new("")}}}, "1 validation error detected: Value at 'tags.1.member.key' failed to satisfy constraint: Member must have length less than or equal to 128"},
		{"iam", "TagRole", input{RoleName: new("r"), Tags: []tag{{new("k"), new(strings.Repeat("x", 257))}}}, "1 validation error detected: Value at 'tags.1.member.value' failed to satisfy constraint: Member must have length less than or equal to 256"},
		{"iam", "TagRole", input{RoleName: new("r"), Tags: []tag{{new("in?valid"), new("v")}}}, `1 validation error detected: Value at 'tags.1.member.key' failed to satisfy constraint: Member must satisfy regular expression pattern: [\p{L}\p{Z}\p{N}_.:/=+\-@]+`},
		{"iam", "TagRole", input{RoleName: new("r"), Tags: []tag{{new("ä: 1_@"), new("")}}}, ""},
		{"iam", "TagRole", input{RoleName: new("r"), Tags: []tag{{}}}, "2 validation errors detected: Value null at 'tags.1.member.key' failed to satisfy constraint: Member must not be null; " +
			"Value null at 'tags.1.member.value' failed to satisfy constraint: Member must not be null"},
		{"iam", "ListUsers", input{MaxItems: new(0)}, "1 validation error detected: Value at 'maxItems' failed to satisfy constraint: Member must have value greater than or equal to 1"},
		{"iam", "ListUsers", input{MaxItems: new(1001)}, "1 validation error detected: Value at 'maxItems' failed to satisfy constraint: Member must have value less than or equal to 1000"},

		{"sts", "AssumeRole", input{RoleArn: new("arn:aws:iam::000000000000:role/r"), RoleSessionName: &long}, "1 validation error detected: Value '" + long + "' at 'roleSessionName' failed to satisfy constraint: Member must have length less than or equal to 64"},
		{"sts", "AssumeRole", input{RoleArn: new("arn:aws:iam::000000000000:role/r"), RoleSessionName: new("Session1:2")}, `1 validation error detected: Value 'Session1:2' at 'roleSessionName' failed to satisfy constraint: Member must satisfy regular expression pattern: [\w+=,.@-]*`},
		{"sts", "GetSessionToken", input{DurationSeconds: new(899)}, "1 validation error detected: Value '899' at 'durationSeconds' failed to satisfy constraint: Member must have value greater than or equal to 900"},

		{"kms", "GenerateRandom", input{NumberOfBytes: new(0)}, "1 validation error detected: Value '0' at 'numberOfBytes' failed to satisfy constraint: Member must have value greater than or equal to 1"},
		{"kms", "GenerateRandom", input{NumberOfBytes: new(1025)}, "1 validation error detected: Value '1025' at 'numberOfBytes' failed to satisfy constraint: Member must have value less than or equal to 1024"},
		{"kms", "Encrypt", input{KeyId: new("k"), Plaintext: make([]byte, 4097)}, "1 validation error detected: Value at 'plaintext' failed to satisfy constraint: Member must have length less than or equal to 4096"},
		{"kms", "DescribeKey", input{KeyId: new("")}, "1 validation error detected: Value '' at 'keyId' failed to satisfy constraint: Member must have length greater than or equal to 1"},
		// What is required and has no pointer is empty, not absent: so clients send it.
		{"kms", "CreateAlias", input{TargetKeyId: "k"}, "1 validation error detected: Value '' at 'aliasName' failed to satisfy constraint: Member must have length greater than or equal to 1"},
		{"kms", "CreateAlias", input{TargetKeyId: "k", AliasName: "alias/a.b"}, ""}, // for which KMS has a sentence of its own
	} {
		op := constraints.Guard(c.service, []api.Operation{api.Op(c.operation, func(context.Context, *api.Call, *input) (*struct{}, error) { return nil, nil })})[0] //nolint:nilnil // it is not called
		text := ""
		if err := op.Check(&c.in); err != nil {
			text = err.Error()
		}
		if text != c.text {
			t.Errorf("%s %s:\ngot  %s\nwant %s", c.service, c.operation, text, c.text)
		}
	}
}

// Sets of values are reported in full.
func TestSets(t *testing.T) {
	op := constraints.Guard("kms", []api.Operation{api.Op("CreateKey", func(context.Context, *api.Call, *input) (*struct{}, error) { return nil, nil })})[0] //nolint:nilnil // it is not called
	err := op.Check(&input{KeySpec: new("HMAC_random")})
	want := regexp.MustCompile(`^1 validation error detected: Value 'HMAC_random' at 'keySpec' failed to satisfy constraint: Member must satisfy enum value set: \[([A-Z0-9_]+, )*HMAC_256(, [A-Z0-9_]+)*\]$`)
	if err == nil || !want.MatchString(err.Error()) {
		t.Errorf("%v", err)
	}
	mac := constraints.Of("kms").Shapes["MacAlgorithmSpec"]
	if !slices.Equal(mac.Enum, []string{"HMAC_SHA_384", "HMAC_SHA_256", "HMAC_SHA_224", "HMAC_SHA_512"}) {
		t.Errorf("not as AWS lists them: %v", mac.Enum)
	}
}
