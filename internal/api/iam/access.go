package iam

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/iam"
)

// named are the members that name the resource of an operation, with its kind. The first one
// that a request has is the resource; the later ones name what is added to it.
var named = []struct {
	member string
	kind   iam.Kind
	making string // the operation that creates the entity; others require it
}{
	{"InstanceProfileName", iam.Profile, "CreateInstanceProfile"},
	{"GroupName", iam.Group, "CreateGroup"},
	{"RoleName", iam.Role, "CreateRole"},
	{"UserName", iam.User, "CreateUser"},
	{"PolicyName", iam.Policy, "CreatePolicy"},
}

// byARN are the members with the ARN of the resource.
var byARN = []string{"PolicyArn", "OpenIDConnectProviderArn", "PolicySourceArn"}

// listing are the operations on the entities of a kind below a path, whose resource is the ARN of
// that path, as "arn:aws:iam::000000000000:role/". Source: AWS's refusals.
var listing = map[string]iam.Kind{"ListUsers": iam.User, "ListGroups": iam.Group, "ListRoles": iam.Role, "ListInstanceProfiles": iam.Profile}

// lastUsed is the operation whose resource is the user of an access key.
const lastUsed = "GetAccessKeyLastUsed"

// guarded adds the required permissions to operations: the action of their name, on the
// resource that their members name, or on *. Source: actions, resources and condition keys
// for IAM, in the service authorization reference.
func (s *Service) guarded(operations []api.Operation) []api.Operation {
	access := make(map[string]api.Access, len(operations))
	for _, op := range operations {
		access[op.Name] = func(_ context.Context, call *api.Call, in any) ([]authorize.Need, error) {
			return s.needs(call, op.Name, reflect.ValueOf(in).Elem()), nil
		}
	}
	return api.Guarded(access, operations)
}

func (s *Service) needs(call *api.Call, operation string, in reflect.Value) []authorize.Need {
	n := authorize.Need{Action: "iam:" + operation, Resource: s.about(call, operation, in)}
	if a, err := arn.Parse(n.Resource); err == nil && a.Account != "aws" {
		n.Account = a.Account
	}
	if id, ok := member(in, "AccessKeyId"); ok && operation == lastUsed {
		n.Named = "access key " + id // whose it is, is not for everybody
	}
	if policy, ok := member(in, "PolicyArn"); ok && policy != n.Resource {
		n.Keys = append(n.Keys, authorize.Key{Name: "iam:policyarn", Values: []string{policy}})
	}
	if boundary, ok := member(in, "PermissionsBoundary"); ok {
		n.Keys = append(n.Keys, authorize.Key{Name: "iam:permissionsboundary", Values: []string{boundary}})
	}
	if boundary := s.boundaryOf(call, operation, in); boundary != "" {
		n.Keys = append(n.Keys, authorize.Key{Name: "iam:permissionsboundary", Values: []string{boundary}})
	}
	if tags := in.FieldByName("Tags"); tags.IsValid() && tags.Type() == reflect.TypeFor[[]Tag]() && tags.Len() > 0 {
		n.Tags = map[string]string{}
		for _, t := range tags.Interface().([]Tag) {
			if _, twice := n.Tags[api.Deref(t.Key)]; !twice {
				n.TagKeys = append(n.TagKeys, api.Deref(t.Key))
			}
			n.Tags[api.Deref(t.Key)] = api.Deref(t.Value)
		}
	}
	if keys := in.FieldByName("TagKeys"); keys.IsValid() {
		n.TagKeys, _ = reflect.TypeAssert[[]string](keys)
	}
	needs := []authorize.Need{n}
	if to := s.renamed(call, operation, in); to != "" {
		also := n
		also.Resource = to
		needs = append(needs, also)
	}
	if len(n.Tags) > 0 && strings.HasPrefix(operation, "Create") {
		n.Action = "iam:Tag" + strings.TrimPrefix(operation, "Create")
		needs = append(needs, n)
	}
	return needs
}

// capped are the operations whose permission can depend on the boundary of the user or role.
var capped = []string{
	"AttachUserPolicy", "DetachUserPolicy", "PutUserPolicy", "DeleteUserPolicy", "DeleteUserPermissionsBoundary",
	"AttachRolePolicy", "DetachRolePolicy", "PutRolePolicy", "DeleteRolePolicy", "DeleteRolePermissionsBoundary",
}

// boundaryOf is the boundary of the user or role before one of these operations; else empty.
func (s *Service) boundaryOf(call *api.Call, operation string, in reflect.Value) (boundary string) {
	if !slices.Contains(capped, operation) {
		return ""
	}
	_ = s.engine.Read(call.Account, func(a *iam.Account) error {
		for _, of := range named {
			if name, ok := member(in, of.member); ok && (of.kind == iam.User || of.kind == iam.Role) {
				if e, err := a.Find(of.kind, name); err == nil {
					boundary = e.Boundary
				}
			}
		}
		return nil
	})
	return boundary
}

// about is the ARN of an operation's resource.
func (s *Service) about(call *api.Call, operation string, in reflect.Value) string {
	for _, by := range named {
		if name, ok := member(in, by.member); ok {
			path, _ := member(in, "Path")
			return s.arnOf(call, by.kind, name, path, operation == by.making)
		}
	}
	if kind, ok := listing[operation]; ok {
		prefix, _ := member(in, "PathPrefix")
		return (&iam.Entity{Kind: kind, Account: call.Account, Path: cmp.Or(prefix, "/")}).ARN()
	}
	for _, name := range byARN {
		if value, ok := member(in, name); ok {
			return value
		}
	}
	if id, ok := member(in, "AccessKeyId"); ok && operation == lastUsed {
		return s.holder(call, id)
	}
	if of := in.FieldByName("UserName"); of.IsValid() && call.Caller.Kind == caller.User { // the caller
		return call.Caller.ARN
	}
	if url, ok := member(in, "Url"); ok {
		return (&iam.Entity{Kind: iam.Provider, Account: call.Account, Name: strings.TrimPrefix(url, "https://")}).ARN()
	}
	return "*"
}

// holder is the ARN of the user that an access key of the account is of; "*" for another key.
func (s *Service) holder(call *api.Call, accessKey string) string {
	of := "*"
	_ = s.engine.Read(call.Account, func(a *iam.Account) error {
		if k := a.Key(accessKey); k != nil {
			if u := a.ByID(k.User); u != nil {
				of = u.ARN()
			}
		}
		return nil
	})
	return of
}

// renamed is the new ARN of a user or group that gets another name or path, for which the
// permission is also required; empty for other operations.
func (s *Service) renamed(call *api.Call, operation string, in reflect.Value) string {
	kind, of := iam.User, "UserName"
	switch operation {
	case "UpdateUser":
	case "UpdateGroup":
		kind, of = iam.Group, "GroupName"
	default:
		return ""
	}
	name, _ := member(in, of)
	e := iam.Entity{Kind: kind, Account: call.Account, Path: "/", Name: name}
	_ = s.engine.Read(call.Account, func(a *iam.Account) error {
		if known, err := a.Find(kind, name); err == nil {
			e.Path, e.Name = known.Path, known.Name
		}
		return nil
	})
	if name, ok := member(in, "New"+of); ok {
		e.Name = name
	}
	if path, ok := member(in, "NewPath"); ok {
		e.Path = path
	}
	return e.ARN()
}

// arnOf is the ARN of an entity, with its path; for an entity to be created, with the path of
// the request.
func (s *Service) arnOf(call *api.Call, kind iam.Kind, name, path string, made bool) string {
	e := &iam.Entity{Kind: kind, Account: call.Account, Path: path, Name: name}
	if e.Path == "" {
		e.Path = "/"
	}
	if !made {
		_ = s.engine.Read(call.Account, func(a *iam.Account) error {
			if known, err := a.Find(kind, name); err == nil {
				e = known
			}
			return nil
		})
	}
	return e.ARN()
}

// member is a text member of a request.
func member(in reflect.Value, name string) (value string, ok bool) {
	switch f := in.FieldByName(name); {
	case !f.IsValid():
		return "", false
	case f.Kind() == reflect.String:
		return f.String(), f.String() != ""
	case f.Type() == reflect.TypeFor[*string]() && !f.IsNil():
		return f.Elem().String(), true
	default:
		return "", false
	}
}
