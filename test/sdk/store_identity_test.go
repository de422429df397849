package sdk_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// identityAsked and keysAsked are what the random history asks of IAM and of KMS: an
// operation and its parameters, of which {u}, {g}, {r}, {p} are one of a few users, groups, roles
// and policies, {k} is a key, {a} an access key, and {l} an alias. Much of it is refused, since what it names is not
// there, is there already, or has something left; some of it is done, and all of it may be.
var (
	identityAsked = []string{
		"CreateUser UserName={u}", "CreateUser UserName={u} Path=/team/", "UpdateUser UserName={u} NewUserName={u}", "DeleteUser UserName={u}",
		"TagUser UserName={u} Tags.member.1.Key=a Tags.member.1.Value={p}", "UntagUser UserName={u} TagKeys.member.1=a",
		"CreateAccessKey UserName={u}", "UpdateAccessKey UserName={u} AccessKeyId={a} Status=Inactive", "DeleteAccessKey UserName={u} AccessKeyId={a}",
		"PutUserPolicy UserName={u} PolicyName={p} PolicyDocument=DOC", "DeleteUserPolicy UserName={u} PolicyName={p}",
		"AttachUserPolicy UserName={u} PolicyArn=ARN/{p}", "DetachUserPolicy UserName={u} PolicyArn=ARN/{p}",
		"PutUserPermissionsBoundary UserName={u} PermissionsBoundary=ARN/{p}", "DeleteUserPermissionsBoundary UserName={u}",
		"CreateGroup GroupName={g}", "UpdateGroup GroupName={g} NewGroupName={g}", "DeleteGroup GroupName={g}",
		"AddUserToGroup GroupName={g} UserName={u}", "RemoveUserFromGroup GroupName={g} UserName={u}",
		"PutGroupPolicy GroupName={g} PolicyName={p} PolicyDocument=DOC", "AttachGroupPolicy GroupName={g} PolicyArn=ARN/{p}", "DetachGroupPolicy GroupName={g} PolicyArn=ARN/{p}",
		"CreateRole RoleName={r} AssumeRolePolicyDocument=TRUST", "UpdateAssumeRolePolicy RoleName={r} PolicyDocument=TRUST", "DeleteRole RoleName={r}",
		"UpdateRole RoleName={r} Description={u} MaxSessionDuration=7200", "PutRolePolicy RoleName={r} PolicyName={p} PolicyDocument=DOC", "DeleteRolePolicy RoleName={r} PolicyName={p}",
		"AttachRolePolicy RoleName={r} PolicyArn=ARN/{p}", "DetachRolePolicy RoleName={r} PolicyArn=ARN/{p}", "PutRolePermissionsBoundary RoleName={r} PermissionsBoundary=ARN/{p}",
		"CreatePolicy PolicyName={p} PolicyDocument=DOC", "CreatePolicyVersion PolicyArn=ARN/{p} PolicyDocument=DOC SetAsDefault=true", "CreatePolicyVersion PolicyArn=ARN/{p} PolicyDocument=DOC",
		"SetDefaultPolicyVersion PolicyArn=ARN/{p} VersionId=v1", "DeletePolicyVersion PolicyArn=ARN/{p} VersionId=v2", "DeletePolicy PolicyArn=ARN/{p}",
		"CreateOpenIDConnectProvider Url=https://{p}.example.com ClientIDList.member.1=ci ThumbprintList.member.1=0123456789012345678901234567890123456789",
		"AddClientIDToOpenIDConnectProvider OpenIDConnectProviderArn=OIDC/{p}.example.com ClientID={u}", "DeleteOpenIDConnectProvider OpenIDConnectProviderArn=OIDC/{p}.example.com",
		"CreateInstanceProfile InstanceProfileName={p}", "AddRoleToInstanceProfile InstanceProfileName={p} RoleName={r}",
		"RemoveRoleFromInstanceProfile InstanceProfileName={p} RoleName={r}", "DeleteInstanceProfile InstanceProfileName={p}",
		"CreateAccountAlias AccountAlias=firm-{u}", "DeleteAccountAlias AccountAlias=firm-{u}",
		"AssumeRole RoleArn=ROLE/{r} RoleSessionName=run", "GetSessionToken DurationSeconds=900",
	}
	keysAsked = []string{
		`CreateKey {"Description":"{u}"}`, `CreateKey {"KeySpec":"HMAC_256","KeyUsage":"GENERATE_VERIFY_MAC"}`, `CreateKey {"KeySpec":"ECC_NIST_P256","KeyUsage":"SIGN_VERIFY"}`,
		`UpdateKeyDescription {"KeyId":"{k}","Description":"{u}"}`, `EnableKey {"KeyId":"{k}"}`, `DisableKey {"KeyId":"{k}"}`,
		`CreateAlias {"AliasName":"alias/{l}","TargetKeyId":"{k}"}`, `UpdateAlias {"AliasName":"alias/{l}","TargetKeyId":"{k}"}`, `DeleteAlias {"AliasName":"alias/{l}"}`,
		`CreateGrant {"KeyId":"{k}","GranteePrincipal":"ROLE/{r}","Operations":["Decrypt"],"Name":"{u}"}`,
		`RevokeGrant {"KeyId":"{k}","GrantId":"GRANT"}`, `RetireGrant {"KeyId":"{k}","GrantId":"GRANT"}`,
		`PutKeyPolicy {"KeyId":"{k}","Policy":"KEYPOLICY"}`, `TagResource {"KeyId":"{k}","Tags":[{"TagKey":"a","TagValue":"{u}"}]}`, `UntagResource {"KeyId":"{k}","TagKeys":["a"]}`,
		`EnableKeyRotation {"KeyId":"{k}","RotationPeriodInDays":90}`, `DisableKeyRotation {"KeyId":"{k}"}`, `RotateKeyOnDemand {"KeyId":"{k}"}`,
		`ScheduleKeyDeletion {"KeyId":"{k}","PendingWindowInDays":7}`, `CancelKeyDeletion {"KeyId":"{k}"}`,
		`Encrypt {"KeyId":"{k}","Plaintext":"c2VjcmV0"}`, `GenerateDataKey {"KeyId":"alias/{l}","KeySpec":"AES_256"}`, `DescribeKey {"KeyId":"alias/aws/sqs"}`,
	}
)

// firstIdentities are made before anything random, so that there is always something that the
// rest can be about.
var firstIdentities = []string{
	"CreateUser UserName=u0", "CreateUser UserName=u1", "CreateGroup GroupName=g0", "CreateRole RoleName=r0 AssumeRolePolicyDocument=TRUST",
	"CreatePolicy PolicyName=p0 PolicyDocument=DOC", "CreateInstanceProfile InstanceProfileName=p0", "AddRoleToInstanceProfile InstanceProfileName=p0 RoleName=r0",
	"CreateOpenIDConnectProvider Url=https://p0.example.com ClientIDList.member.1=ci ThumbprintList.member.1=0123456789012345678901234567890123456789",
	"CreateAccountAlias AccountAlias=firm-u0",
}

// identified is what the history knows of IAM and KMS.
type identified struct {
	keys, grants, access []string // ids
	done                 map[string]int
}

// drawn writes out what is asked for.
func (e *everything) drawn(asked string) string {
	pick := func(from []string) string {
		if len(from) == 0 {
			return "AKIANONENONENONENONE"
		}
		return from[e.rand.IntN(len(from))]
	}
	// Of keys the latest: those before are disabled or going by then.
	latest := e.known.keys[max(0, len(e.known.keys)-3):]
	few := func(kind string) string { return fmt.Sprint(kind, e.rand.IntN(3)) }
	document := fmt.Sprintf(`{"Version":"2012-10-17","Statement":[{"Sid":"s%d","Effect":"Allow","Action":"sqs:*","Resource":"*"}]}`, e.rand.IntN(1000))
	keyPolicy := `{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"Allow\",\"Principal\":{\"AWS\":\"` + account + `\"},\"Action\":\"kms:*\",\"Resource\":\"*\"}]}`
	return strings.NewReplacer(
		"{u}", few("u"), "{g}", few("g"), "{r}", few("r"), "{p}", few("p"), "{l}", few("l"), "{k}", pick(latest), "{a}", pick(e.known.access), "GRANT", pick(e.known.grants), "KEYPOLICY", keyPolicy, "DOC", document,
		"ARN/", "arn:aws:iam::"+account+":policy/", "ROLE/", "arn:aws:iam::"+account+":role/", "OIDC/", "arn:aws:iam::"+account+":oidc-provider/",
		"TRUST", strings.ReplaceAll(trustRoot, " ", ""),
	).Replace(asked)
}

// askIdentity asks IAM or STS for something. It may be refused.
func (e *everything) askIdentity(asked string) {
	e.t.Helper()
	operation, rest, _ := strings.Cut(e.drawn(asked), " ")
	var parameters []string
	for part := range strings.FieldsSeq(rest) {
		name, value, _ := strings.Cut(part, "=")
		parameters = append(parameters, name, value)
	}
	version, service := "2010-05-08", "iam"
	if operation == "AssumeRole" || operation == "GetSessionToken" {
		version, service = "2011-06-15", "sts"
	}
	req := newForm(e.t, e.url, version, operation, parameters...)
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+account+"/20300101/"+region+"/"+service+"/aws4_request, SignedHeaders=host, Signature=00") // nobody verifies it
	e.answered(operation, asked, do(e.t, req))
}

// askKeys asks KMS for something. It may be refused.
func (e *everything) askKeys(asked string) {
	e.t.Helper()
	operation, body, _ := strings.Cut(e.drawn(asked), " ")
	req := newJSON(e.t, e.url, "", body)
	req.Header.Set("Content-Type", "application/x-amz-json-1.1")
	req.Header.Set("X-Amz-Target", "TrentService."+operation)
	e.answered(operation, asked, do(e.t, req))
}

// answered learns from an answer, which is done or a refusal.
func (e *everything) answered(operation, asked string, r response) {
	e.t.Helper()
	switch {
	case r.Status == http.StatusOK:
		e.known.done[operation]++
	case r.Status >= 500, strings.Contains(r.Body, "validation error detected"), strings.Contains(r.Body, "InvalidAction"), strings.Contains(r.Body, "Malformed"):
		e.t.Errorf("%s: %d %s", asked, r.Status, r.Body)
		return
	default:
		return
	}
	switch operation {
	case "CreateKey":
		e.known.keys = append(e.known.keys, decode(e.t, r.Body)["KeyMetadata"].(map[string]any)["KeyId"].(string))
	case "CreateGrant":
		e.known.grants = append(e.known.grants, decode(e.t, r.Body)["GrantId"].(string))
	case "CreateAccessKey":
		_, rest, _ := strings.Cut(r.Body, "<AccessKeyId>")
		id, _, _ := strings.Cut(rest, "<")
		e.known.access = append(e.known.access, id)
	}
}

// identify asks for something of IAM and of KMS at random.
func (e *everything) identify() {
	e.t.Helper()
	for range 6 {
		e.askIdentity(identityAsked[e.rand.IntN(len(identityAsked))])
	}
	for range 3 {
		e.askKeys(keysAsked[e.rand.IntN(len(keysAsked))])
	}
}

// checkIdentified holds the history to having done much: if all that is asked for were refused,
// the store would show nothing.
func (e *everything) checkIdentified() {
	e.t.Helper()
	operations := map[string]bool{}
	for _, asked := range slices.Concat(identityAsked, keysAsked) {
		operation, _, _ := strings.Cut(asked, " ")
		operations[operation] = true
	}
	if len(e.known.done) < len(operations)/2 {
		e.t.Errorf("of %d operations of IAM, STS and KMS the history did %d: %v", len(operations), len(e.known.done), e.known.done)
	}
}
