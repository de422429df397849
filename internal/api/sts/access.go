package sts

import (
	"cmp"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/check"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
)

// access has the permissions that each operation requires. Source: actions, resources and
// condition keys for STS, in the service authorization reference, and the operations' pages,
// which say which require no permission.
var access = map[string]api.Access{
	"AssumeRole":                api.Needs(assuming),
	"AssumeRoleWithWebIdentity": api.Inside("sts:AssumeRoleWithWebIdentity"), // by the token's claims
	"GetCallerIdentity":         api.Free,
	"GetSessionToken":           api.Free,
	"GetFederationToken": api.Needs(func(call *api.Call, in *GetFederationTokenInput) ([]authorize.Need, error) {
		n := authorize.Need{Action: "sts:GetFederationToken", Resource: "arn:aws:sts::" + call.Account + ":federated-user/" + api.Deref(in.Name), Account: call.Account}
		if len(in.Tags) == 0 {
			return []authorize.Need{n}, nil
		}
		tag(&n, in.Tags)
		tagging := n
		tagging.Action = "sts:TagSession"
		return []authorize.Need{n, tagging}, nil
	}),
	"GetAccessKeyInfo": api.Anywhere("sts:GetAccessKeyInfo"),
}

// assuming also needs the permissions to pass on what a session inherits from the caller's:
// transitive tags and the source identity. Source: the IAM user guide, on chaining roles with
// session tags, and on source identity with role chaining.
func assuming(call *api.Call, in *AssumeRoleInput) ([]authorize.Need, error) {
	role := api.Deref(in.RoleArn)
	if !isARN(role) {
		return nil, check.Invalid("%s is invalid", role)
	}
	a, _ := arn.Parse(role) // an invalid role has no trust policy, and nobody may assume it
	n := authorize.Need{Action: "sts:AssumeRole", Resource: role, Account: a.Account, Shared: true, Must: true}
	source := cmp.Or(api.Deref(in.SourceIdentity), call.Caller.SourceIdentity)
	for name, value := range map[string]string{"sts:externalid": api.Deref(in.ExternalId), "sts:rolesessionname": api.Deref(in.RoleSessionName), "sts:sourceidentity": source} {
		if value != "" {
			n.Keys = append(n.Keys, authorize.Key{Name: name, Values: []string{value}})
		}
	}
	if len(in.TransitiveTagKeys) > 0 {
		n.Keys = append(n.Keys, authorize.Key{Name: "sts:transitivetagkeys", Values: in.TransitiveTagKeys})
	}
	needs := []authorize.Need{n}
	also := func(action string) {
		needs = append(needs, needs[0])
		needs[len(needs)-1].Action = action
	}
	tag(&needs[0], in.Tags)
	if len(in.Tags)+len(call.Caller.Transitive) > 0 {
		also("sts:TagSession")
	}
	if source != "" {
		also("sts:SetSourceIdentity")
	}
	return needs, nil
}

// tag sets the condition keys of the tags in a request.
func tag(n *authorize.Need, tags []Tag) {
	if len(tags) == 0 {
		return
	}
	n.Tags = map[string]string{}
	for _, t := range tags {
		n.TagKeys = append(n.TagKeys, api.Deref(t.Key))
		n.Tags[api.Deref(t.Key)] = api.Deref(t.Value)
	}
}
