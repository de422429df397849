package iam_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/apitest"
	"godwit.dev/godwit/internal/api/iam"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/shard/identity"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/store/memory"
)

const (
	account = "123456789012"
	arns    = "arn:aws:iam::" + account + ":"

	ok    = apitest.Answered
	allow = `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"sqs:*","Resource":"*"}}`
	trust = `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":{"Service":"lambda.amazonaws.com"},"Action":"sts:AssumeRole"}}`
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// asker asks the service, over a real store of identities, as its root or as a user.
type asker struct {
	*apitest.Asker

	user string // who asks; empty: the root
	once string // names what the calls make
}

func newAsker(t *testing.T) *asker {
	t.Helper()
	j := journal.Open(journal.Options{Store: memory.New()})
	t.Cleanup(j.Close)
	k := kernel.New(kernel.Options{Journal: j, Clock: clock.NewVirtual(now), Logger: slog.New(slog.DiscardHandler)})
	m := identity.New(k, identity.Options{})
	if err := k.Load(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	a := &asker{}
	a.Asker = apitest.New(t, iam.New(iam.Options{Engine: m}).Operations(), func(operation string) *api.Call {
		who := &caller.Caller{Kind: caller.Root, Account: account, ARN: arns + "root", ID: account}
		if a.user != "" {
			who = &caller.Caller{Kind: caller.User, Account: account, ARN: arns + "user/" + a.user, Name: a.user}
		}
		return &api.Call{Region: "us-east-1", Account: account, Operation: operation, Time: now, Caller: who, Within: api.Within{Once: a.once}}
	})
	return a
}

// step is one request, and what its answer or its refusal's text must have in it.
type step struct {
	operation, in string
	kind          fault.Kind // ok: it is not refused
	want          string
}

func (a *asker) run(steps ...step) {
	a.T.Helper()
	for _, s := range steps {
		a.Check(s.operation, s.in, s.kind, s.want)
	}
}

// in is a request of members and values.
func in(t *testing.T, pairs ...string) string {
	t.Helper()
	members := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		members[pairs[i]] = pairs[i+1]
	}
	text, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestUsers(t *testing.T) {
	a := newAsker(t)
	a.run(
		step{"GetUser", `{}`, ok, `"Arn":"` + arns + `root"`},
		step{"GetUser", `{"UserName":"ann"}`, fault.NoSuchEntity, "The user with name ann cannot be found."},
		step{"CreateUser", `{"UserName":"ann","Path":"/people/","Tags":[{"Key":"team","Value":"a"}]}`, ok, `"Arn":"` + arns + `user/people/ann"`},
		step{"CreateUser", `{"UserName":"ANN"}`, fault.EntityAlreadyExists, "already exists"},
		step{"CreateUser", `{"UserName":"bob","Tags":[{"Key":"aws:x","Value":"a"}]}`, fault.InvalidInput, "reserved"},
		step{"CreateUser", `{"UserName":"bob"}`, ok, `"UserId":"AIDA`},
		step{"ListUsers", `{"PathPrefix":"/people/"}`, ok, `"UserName":"ann"`},
		step{"ListUsers", `{"MaxItems":1}`, ok, `"IsTruncated":true`},
		step{"TagUser", `{"UserName":"ann","Tags":[{"Key":"TEAM","Value":"b"}]}`, ok, ``},
		step{"ListUserTags", `{"UserName":"ann"}`, ok, `"Value":"b"`},
		step{"UntagUser", `{"UserName":"ann","TagKeys":["team"]}`, ok, ``},
		step{"ListUserTags", `{"UserName":"nobody"}`, fault.NoSuchEntity, "nobody"},
		step{"UpdateUser", `{"UserName":"bob","NewUserName":"ann"}`, fault.EntityAlreadyExists, "ann"},
		step{"UpdateUser", `{"UserName":"bob","NewUserName":"rob","NewPath":"/left/"}`, ok, ``},
		step{"GetUser", `{"UserName":"rob"}`, ok, `"Path":"/left/"`},
		step{"GetUser", `{"UserName":"bob"}`, fault.NoSuchEntity, "bob"},
		step{"GetLoginProfile", `{"UserName":"rob"}`, fault.NoSuchEntity, "Login Profile for User rob cannot be found."},
		step{"ListMFADevices", `{"UserName":"rob"}`, ok, `"MFADevices":[]`},
		step{"ListSSHPublicKeys", `{"UserName":"nobody"}`, fault.NoSuchEntity, "nobody"},
	)
	tags, err := a.Ask("ListUserTags", `{"UserName":"ann"}`)
	if err != nil || strings.Contains(strings.ToLower(tags), `"team"`) {
		t.Errorf("the tag is there yet: %s, %v", tags, err)
	}
	a.user = "rob"
	a.run(step{"GetUser", `{}`, ok, `"UserName":"rob"`})
}

// Two access keys a user at most; their secret is shown once.
func TestAccessKeys(t *testing.T) {
	a := newAsker(t)
	a.run(
		step{"CreateAccessKey", `{}`, fault.ValidationFailed, "userName"},
		step{"CreateAccessKey", `{"UserName":"ann"}`, fault.NoSuchEntity, "ann"},
		step{"CreateUser", `{"UserName":"ann"}`, ok, ``},
	)
	made, err := a.Ask("CreateAccessKey", `{"UserName":"ann"}`)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`"AccessKeyId":"(AKIA[A-Z2-7]{16})","Status":"Active","SecretAccessKey":"([^"]{40})"`).FindStringSubmatch(made)
	if found == nil {
		t.Fatal(made)
	}
	id, secret := found[1], found[2]
	a.user = "ann"
	a.run(
		step{"CreateAccessKey", `{}`, ok, `"UserName":"ann"`},
		step{"CreateAccessKey", `{}`, fault.LimitExceeded, "AccessKeysPerUser: 2"},
		step{"UpdateAccessKey", in(t, "AccessKeyId", id, "Status", "Inactive"), ok, ``},
		step{"ListAccessKeys", `{}`, ok, `"AccessKeyId":"` + id + `","Status":"Inactive"`},
		step{"GetAccessKeyLastUsed", in(t, "AccessKeyId", id), ok, `"ServiceName":"N/A"`},
		step{"GetAccessKeyLastUsed", `{"AccessKeyId":"AKIAAAAAAAAAAAAAAAAA"}`, fault.AccessDenied, "not authorized"},
		step{"UpdateAccessKey", `{"AccessKeyId":"AKIAAAAAAAAAAAAAAAAA","Status":"Active"}`, fault.NoSuchEntity, "AKIAAAAAAAAAAAAAAAAA"},
	)
	if listed, _ := a.Ask("ListAccessKeys", `{}`); strings.Contains(listed, secret) || strings.Count(listed, "AccessKeyId") != 2 {
		t.Errorf("listed: %s", listed)
	}
	a.user = ""
	a.run(
		step{"DeleteUser", `{"UserName":"ann"}`, fault.DeleteConflict, "must delete access keys first"},
		step{"DeleteAccessKey", in(t, "UserName", "ann", "AccessKeyId", id), ok, ``},
		step{"DeleteAccessKey", in(t, "UserName", "ann", "AccessKeyId", id), fault.NoSuchEntity, id},
	)
}

// A key that is made once is the same when it is asked for again, under another secret.
func TestAccessKeyOnce(t *testing.T) {
	a := newAsker(t)
	a.run(step{"CreateUser", `{"UserName":"ann"}`, ok, ``})
	form := regexp.MustCompile(`"AccessKeyId":"(AKIA[A-Z2-7]{16})","Status":"(Active|Inactive)","SecretAccessKey":"([^"]{40})"`)
	made := func(once, status string) (id, secret string) {
		t.Helper()
		a.once = once
		text, err := a.Ask("CreateAccessKey", `{"UserName":"ann"}`)
		found := form.FindStringSubmatch(text)
		if err != nil || found == nil || found[2] != status {
			t.Fatalf("%s, %v", text, err)
		}
		return found[1], found[3]
	}
	id, secret := made("one", "Active")
	a.run(step{"UpdateAccessKey", in(t, "UserName", "ann", "AccessKeyId", id, "Status", "Inactive"), ok, ``})
	again, other := made("one", "Inactive")
	if again != id || other == secret {
		t.Errorf("the key %s is then %s, its secret the same: %t", id, again, other == secret)
	}
	if second, _ := made("two", "Active"); second == id {
		t.Error("two keys have an id")
	}
	a.once = "three"
	a.run(step{"CreateAccessKey", `{"UserName":"ann"}`, fault.LimitExceeded, "AccessKeysPerUser: 2"})
}

func TestGroups(t *testing.T) {
	a := newAsker(t)
	a.run(
		step{"CreateGroup", `{"GroupName":"g"}`, ok, `"Arn":"` + arns + `group/g"`},
		step{"CreateGroup", `{"GroupName":"g"}`, fault.EntityAlreadyExists, "g already exists"},
		step{"AddUserToGroup", `{"GroupName":"g","UserName":"ann"}`, fault.NoSuchEntity, "ann"},
		step{"CreateUser", `{"UserName":"ann"}`, ok, ``},
		step{"AddUserToGroup", `{"GroupName":"h","UserName":"ann"}`, fault.NoSuchEntity, "h cannot be found"},
		step{"AddUserToGroup", `{"GroupName":"g","UserName":"ann"}`, ok, ``},
		step{"GetGroup", `{"GroupName":"g"}`, ok, `"UserName":"ann"`},
		step{"ListGroupsForUser", `{"UserName":"ann"}`, ok, `"GroupName":"g"`},
		step{"DeleteGroup", `{"GroupName":"g"}`, fault.DeleteConflict, "remove users from group first"},
		step{"DeleteUser", `{"UserName":"ann"}`, fault.DeleteConflict, "remove users from group first"},
		step{"UpdateGroup", `{"GroupName":"g","NewGroupName":"h"}`, ok, ``},
		step{"ListGroups", `{}`, ok, `"GroupName":"h"`},
		step{"RemoveUserFromGroup", `{"GroupName":"h","UserName":"ann"}`, ok, ``},
		step{"DeleteGroup", `{"GroupName":"h"}`, ok, ``},
		step{"DeleteUser", `{"UserName":"ann"}`, ok, ``},
	)
	for n := range 11 {
		a.run(step{"CreateGroup", in(t, "GroupName", fmt.Sprint("g", n)), ok, ``})
	}
	a.run(step{"CreateUser", `{"UserName":"ann"}`, ok, ``})
	for n := range 10 {
		a.run(step{"AddUserToGroup", in(t, "UserName", "ann", "GroupName", fmt.Sprint("g", n)), ok, ``})
	}
	a.run(step{"AddUserToGroup", `{"UserName":"ann","GroupName":"g10"}`, fault.LimitExceeded, "GroupsPerUser: 10"})
}

// Documents are answered as URLs have them; what is refused has changed nothing.
func TestRoles(t *testing.T) {
	a := newAsker(t)
	encoded := strings.ReplaceAll(url.QueryEscape(trust), "+", "%20")
	a.run(
		step{"CreateRole", in(t, "RoleName", "r", "AssumeRolePolicyDocument", "{"), fault.MalformedPolicyDocument, ""},
		step{"CreateRole", in(t, "RoleName", "r", "AssumeRolePolicyDocument", allow), fault.MalformedPolicyDocument, ""},
		step{"CreateRole", in(t, "RoleName", "r", "AssumeRolePolicyDocument", strings.Replace(trust, `"Service":"lambda.amazonaws.com"`, `"AWS":"`+arns+`user/nobody"`, 1)), fault.MalformedPolicyDocument, "Invalid principal in policy"},
		step{"GetRole", `{"RoleName":"r"}`, fault.NoSuchEntity, "The role with name r cannot be found."},
		step{"CreateRole", in(t, "RoleName", "r", "AssumeRolePolicyDocument", trust), ok, `"AssumeRolePolicyDocument":"` + encoded + `"`},
		step{"CreateRole", in(t, "RoleName", "r", "AssumeRolePolicyDocument", trust), fault.EntityAlreadyExists, "Role with name r already exists."},
		step{"GetRole", `{"RoleName":"r"}`, ok, `"MaxSessionDuration":3600`},
		step{"UpdateRole", `{"RoleName":"r","Description":"d","MaxSessionDuration":7200}`, ok, ``},
		step{"UpdateRoleDescription", `{"RoleName":"r","Description":"e"}`, ok, `"Description":"e","MaxSessionDuration":7200`},
		step{"UpdateAssumeRolePolicy", in(t, "RoleName", "r", "PolicyDocument", allow), fault.MalformedPolicyDocument, ""},
		step{"GetRole", `{"RoleName":"r"}`, ok, encoded},
		step{"TagRole", `{"RoleName":"r","Tags":[{"Key":"a","Value":"1"},{"Key":"b","Value":""}]}`, ok, ``},
		step{"ListRoleTags", `{"RoleName":"r","MaxItems":1}`, ok, `"IsTruncated":true`},
		step{"UntagRole", `{"RoleName":"r","TagKeys":["a"]}`, ok, ``},
		step{"ListRoles", `{}`, ok, `"RoleName":"r"`},
		step{"PutRolePolicy", in(t, "RoleName", "r", "PolicyName", "p", "PolicyDocument", allow), ok, ``},
		step{"PutRolePolicy", in(t, "RoleName", "r", "PolicyName", "q", "PolicyDocument", trust), fault.MalformedPolicyDocument, ""},
		step{"GetRolePolicy", `{"RoleName":"r","PolicyName":"p"}`, ok, `"PolicyDocument":"` + strings.ReplaceAll(url.QueryEscape(allow), "+", "%20")},
		step{"ListRolePolicies", `{"RoleName":"r"}`, ok, `"PolicyNames":["p"]`},
		step{"DeleteRole", `{"RoleName":"r"}`, fault.DeleteConflict, "Cannot delete entity, must delete policies first."},
		step{"DeleteRolePolicy", `{"RoleName":"r","PolicyName":"q"}`, fault.NoSuchEntity, "q"},
		step{"DeleteRolePolicy", `{"RoleName":"r","PolicyName":"p"}`, ok, ``},
		step{"CreateInstanceProfile", `{"InstanceProfileName":"i"}`, ok, `"Roles":[]`},
		step{"AddRoleToInstanceProfile", `{"InstanceProfileName":"i","RoleName":"r"}`, ok, ``},
		step{"ListInstanceProfilesForRole", `{"RoleName":"r"}`, ok, `"InstanceProfileName":"i"`},
		step{"DeleteRole", `{"RoleName":"r"}`, fault.DeleteConflict, "remove roles from instance profile first"},
		step{"RemoveRoleFromInstanceProfile", `{"InstanceProfileName":"i","RoleName":"r"}`, ok, ``},
		step{"DeleteRole", `{"RoleName":"r"}`, ok, ``},
		step{"DeleteRole", `{"RoleName":"r"}`, fault.NoSuchEntity, "r"},
	)
}

// Managed policies have five versions at most, of which the default one counts.
func TestPolicies(t *testing.T) {
	a := newAsker(t)
	const p = arns + "policy/p"
	version := func(set bool) string {
		text, err := json.Marshal(map[string]any{"PolicyArn": p, "PolicyDocument": allow, "SetAsDefault": set})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	a.run(
		step{"CreatePolicy", in(t, "PolicyName", "p", "PolicyDocument", `{"Version":"2012-10-17"}`), fault.MalformedPolicyDocument, ""},
		step{"CreatePolicyVersion", version(false), fault.NoSuchEntity, "Policy " + p + " was not found."},
		step{"CreatePolicy", in(t, "PolicyName", "p", "PolicyDocument", allow), ok, `"DefaultVersionId":"v1"`},
		step{"CreatePolicy", in(t, "PolicyName", "p", "PolicyDocument", allow), fault.EntityAlreadyExists, "A policy called p already exists."},
		step{"CreatePolicyVersion", version(true), ok, `"VersionId":"v2","IsDefaultVersion":true`},
		step{"CreatePolicyVersion", version(false), ok, `"IsDefaultVersion":false`},
		step{"CreatePolicyVersion", version(false), ok, `v4`},
		step{"CreatePolicyVersion", version(false), ok, `v5`},
		step{"CreatePolicyVersion", version(false), fault.LimitExceeded, "must delete an existing version"},
		step{"DeletePolicyVersion", in(t, "PolicyArn", p, "VersionId", "v2"), fault.DeleteConflict, "Cannot delete the default version of a policy."},
		step{"SetDefaultPolicyVersion", in(t, "PolicyArn", p, "VersionId", "v1"), ok, ``},
		step{"DeletePolicyVersion", in(t, "PolicyArn", p, "VersionId", "v2"), ok, ``},
		step{"GetPolicyVersion", in(t, "PolicyArn", p, "VersionId", "v2"), fault.NoSuchEntity, "v2"},
		step{"GetPolicyVersion", in(t, "PolicyArn", p, "VersionId", "v1"), ok, `%22sqs%3A%2A%22`},
		step{"CreatePolicyVersion", version(false), ok, `v6`}, // numbers are not given twice
		step{"CreateUser", `{"UserName":"ann"}`, ok, ``},
		step{"AttachUserPolicy", in(t, "UserName", "ann", "PolicyArn", p+"x"), fault.NoSuchEntity, "px"},
		step{"AttachUserPolicy", in(t, "UserName", "ann", "PolicyArn", p), ok, ``},
		step{"ListAttachedUserPolicies", `{"UserName":"ann"}`, ok, `"PolicyArn":"` + p + `"`},
		step{"PutUserPermissionsBoundary", in(t, "UserName", "ann", "PermissionsBoundary", p), ok, ``},
		step{"GetPolicy", in(t, "PolicyArn", p), ok, `"AttachmentCount":1,"PermissionsBoundaryUsageCount":1`},
		step{"ListEntitiesForPolicy", in(t, "PolicyArn", p), ok, `"UserName":"ann"`},
		step{"DeletePolicy", in(t, "PolicyArn", p), fault.DeleteConflict, ""},
		step{"DetachUserPolicy", in(t, "UserName", "ann", "PolicyArn", p), ok, ``},
		step{"DetachUserPolicy", in(t, "UserName", "ann", "PolicyArn", p), fault.NoSuchEntity, p},
		step{"DeleteUserPermissionsBoundary", `{"UserName":"ann"}`, ok, ``},
		step{"ListPolicies", `{"Scope":"Local"}`, ok, `"PolicyName":"p"`},
		step{"GetPolicy", `{"PolicyArn":"arn:aws:iam::aws:policy/AdministratorAccess"}`, ok, `"IsAttachable":true`},
	)
	local, err := a.Ask("ListPolicies", `{"Scope":"Local"}`)
	if err != nil || strings.Contains(local, "arn:aws:iam::aws:") {
		t.Errorf("of the account's own: %s, %v", local, err)
	}
	details, err := a.Ask("GetAccountAuthorizationDetails", `{"Filter":["User"]}`)
	if err != nil || !strings.Contains(details, `"UserName":"ann"`) || strings.Contains(details, `"PolicyName":"p"`) {
		t.Errorf("details of users: %s, %v", details, err)
	}
}

// What belongs to another account is not there.
func TestOtherAccounts(t *testing.T) {
	a := newAsker(t)
	const theirs = "arn:aws:iam::999999999999:policy/p"
	a.run(
		step{"CreateUser", `{"UserName":"ann"}`, ok, ``},
		step{"GetPolicy", in(t, "PolicyArn", theirs), fault.NoSuchEntity, theirs},
		step{"AttachUserPolicy", in(t, "UserName", "ann", "PolicyArn", theirs), fault.NoSuchEntity, theirs},
		step{"PutUserPermissionsBoundary", in(t, "UserName", "ann", "PermissionsBoundary", theirs), fault.NoSuchEntity, theirs},
		step{"GetAccountSummary", `{}`, ok, `"Users":1`},
		step{"CreateAccountAlias", `{"AccountAlias":"one"}`, ok, ``},
		step{"CreateAccountAlias", `{"AccountAlias":"two"}`, ok, ``},
		step{"ListAccountAliases", `{}`, ok, `"AccountAliases":["two"]`},
		step{"DeleteAccountAlias", `{"AccountAlias":"one"}`, fault.NoSuchEntity, "one"},
	)
}

// Each operation says what it needs, on what it is about.
func TestOperationsAreDeclared(t *testing.T) {
	for _, op := range iam.New(iam.Options{}).Operations() {
		if op.Access == nil {
			t.Errorf("%s does not say what it needs", op.Name)
		}
	}
}
