package cloudformation

import (
	"maps"
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
)

// access has the permissions that each operation requires. Source: actions, resources and
// condition keys for CloudFormation, in the service authorization reference.
var access = map[string]api.Access{
	"CreateStack": api.Needs(func(call *api.Call, in *CreateStackInput) ([]authorize.Need, error) {
		needs := passing(tagged(of(call, "CreateStack", in.StackName), in.Tags), in.RoleARN)
		return reading(call, by(needs, in.TemplateURL, in.StackPolicyURL), in.TemplateURL, in.StackPolicyURL), nil
	}),
	"UpdateStack": api.Needs(func(call *api.Call, in *UpdateStackInput) ([]authorize.Need, error) {
		needs := passing(tagged(of(call, "UpdateStack", in.StackName), in.Tags), in.RoleARN)
		if in.StackPolicyBody != nil || in.StackPolicyURL != nil || in.StackPolicyDuringUpdateBody != nil || in.StackPolicyDuringUpdateURL != nil {
			needs = append(needs, of(call, "SetStackPolicy", in.StackName)...)
		}
		policies := []*string{in.StackPolicyURL, in.StackPolicyDuringUpdateURL}
		return reading(call, by(needs, in.TemplateURL, policies...), append(policies, in.TemplateURL)...), nil
	}),
	"DeleteStack": api.Needs(func(call *api.Call, in *DeleteStackInput) ([]authorize.Need, error) {
		return passing(of(call, "DeleteStack", in.StackName), in.RoleARN), nil
	}),
	"RollbackStack": api.Needs(func(call *api.Call, in *RollbackStackInput) ([]authorize.Need, error) {
		return passing(of(call, "RollbackStack", in.StackName), in.RoleARN), nil
	}),
	"ContinueUpdateRollback": api.Needs(func(call *api.Call, in *ContinueUpdateRollbackInput) ([]authorize.Need, error) {
		return passing(of(call, "ContinueUpdateRollback", in.StackName), in.RoleARN), nil
	}),
	"CancelUpdateStack":           on("CancelUpdateStack", func(in *CancelUpdateStackInput) string { return in.StackName }),
	"UpdateTerminationProtection": on("UpdateTerminationProtection", func(in *UpdateTerminationProtectionInput) string { return in.StackName }),
	"SetStackPolicy": api.Needs(func(call *api.Call, in *SetStackPolicyInput) ([]authorize.Need, error) {
		return reading(call, by(of(call, "SetStackPolicy", in.StackName), nil, in.StackPolicyURL), in.StackPolicyURL), nil
	}),
	"GetStackPolicy": on("GetStackPolicy", func(in *GetStackPolicyInput) string { return in.StackName }),
	"DescribeStacks": api.Needs(func(call *api.Call, in *DescribeStacksInput) ([]authorize.Need, error) {
		if api.Deref(in.StackName) == "" { // all stacks
			return []authorize.Need{{Action: "cloudformation:DescribeStacks", Resource: home(call, "*"), Account: call.Account}}, nil
		}
		return of(call, "DescribeStacks", *in.StackName), nil
	}),
	"ListStacks":            api.Anywhere("cloudformation:ListStacks"),
	"DescribeStackEvents":   on("DescribeStackEvents", func(in *DescribeStackEventsInput) string { return in.StackName }),
	"DescribeStackResource": on("DescribeStackResource", func(in *DescribeStackResourceInput) string { return in.StackName }),
	"ListStackResources":    on("ListStackResources", func(in *ListStackResourcesInput) string { return in.StackName }),
	"GetTemplateSummary": api.Needs(func(call *api.Call, in *GetTemplateSummaryInput) ([]authorize.Need, error) {
		if api.Deref(in.StackName) == "" {
			return reading(call, api.Any("cloudformation:GetTemplateSummary"), in.TemplateURL), nil
		}
		return reading(call, of(call, "GetTemplateSummary", *in.StackName), in.TemplateURL), nil
	}),
	"ValidateTemplate": api.Needs(func(call *api.Call, in *ValidateTemplateInput) ([]authorize.Need, error) {
		return reading(call, api.Any("cloudformation:ValidateTemplate"), in.TemplateURL), nil
	}),
	"ListExports":                       api.Anywhere("cloudformation:ListExports"),
	"ListImports":                       api.Anywhere("cloudformation:ListImports"),
	"DetectStackDrift":                  on("DetectStackDrift", func(in *DetectStackDriftInput) string { return in.StackName }),
	"DescribeStackDriftDetectionStatus": api.Anywhere("cloudformation:DescribeStackDriftDetectionStatus"),
	"DetectStackResourceDrift":          on("DetectStackResourceDrift", func(in *DetectStackResourceDriftInput) string { return in.StackName }),
	"DescribeStackResourceDrifts":       on("DescribeStackResourceDrifts", func(in *DescribeStackResourceDriftsInput) string { return in.StackName }),
	"CreateChangeSet": api.Needs(func(call *api.Call, in *CreateChangeSetInput) ([]authorize.Need, error) {
		needs := passing(tagged(named(of(call, "CreateChangeSet", in.StackName), in.ChangeSetName), in.Tags), in.RoleARN)
		return reading(call, by(needs, in.TemplateURL), in.TemplateURL), nil
	}),
	"ListChangeSets": on("ListChangeSets", func(in *ListChangeSetsInput) string { return in.StackName }),
}

// on requires an action on a stack.
func on[In any](action string, name func(*In) string) api.Access {
	return api.Needs(func(call *api.Call, in *In) ([]authorize.Need, error) { return of(call, action, name(in)), nil })
}

// home is the ARN of the stacks with a name, without their id.
func home(call *api.Call, name string) string {
	return arn.ARN{Service: "cloudformation", Region: call.Region, Account: call.Account, Resource: "stack/" + name + "/*"}.String()
}

// of requires an action on a stack, given by name or ARN. As with AWS, the resource of a name
// is an ARN without the stack's id.
func of(call *api.Call, action, name string) []authorize.Need {
	need := authorize.Need{Action: "cloudformation:" + action, Resource: name, Account: call.Account}
	if a, err := arn.Parse(name); err != nil {
		need.Resource = home(call, name)
	} else {
		need.Account = a.Account
	}
	return []authorize.Need{need}
}

// named adds the change set's name to the condition keys.
func named(needs []authorize.Need, set string) []authorize.Need {
	if a, err := arn.Parse(set); err == nil {
		set, _, _ = strings.Cut(strings.TrimPrefix(a.Resource, "changeSet/"), "/")
	}
	needs[0].Keys = []authorize.Key{{Name: "cloudformation:changesetname", Values: []string{set}}}
	return needs
}

// access is the map access, with the operations whose stack must be looked up by a change set
// or a resource.
func (s *Service) access() map[string]api.Access {
	all := maps.Clone(access)
	all["DescribeChangeSet"] = api.Needs(func(call *api.Call, in *DescribeChangeSetInput) ([]authorize.Need, error) {
		return s.ofSet(call, "DescribeChangeSet", in.StackName, in.ChangeSetName), nil
	})
	all["ExecuteChangeSet"] = api.Needs(func(call *api.Call, in *ExecuteChangeSetInput) ([]authorize.Need, error) {
		return s.ofSet(call, "ExecuteChangeSet", in.StackName, in.ChangeSetName), nil
	})
	all["DeleteChangeSet"] = api.Needs(func(call *api.Call, in *DeleteChangeSetInput) ([]authorize.Need, error) {
		return s.ofSet(call, "DeleteChangeSet", in.StackName, in.ChangeSetName), nil
	})
	all["GetTemplate"] = api.Needs(func(call *api.Call, in *GetTemplateInput) ([]authorize.Need, error) {
		if set := api.Deref(in.ChangeSetName); set != "" {
			return s.ofSet(call, "GetTemplate", in.StackName, set), nil
		}
		return of(call, "GetTemplate", api.Deref(in.StackName)), nil
	})
	all["DescribeStackResources"] = api.Needs(func(call *api.Call, in *DescribeStackResourcesInput) ([]authorize.Need, error) {
		name := api.Deref(in.StackName)
		if physical := api.Deref(in.PhysicalResourceId); name == "" && physical != "" && s.Engine != nil {
			if v, err := s.owner(call, physical); err == nil {
				name = v.ID
			}
		}
		if name == "" {
			name = "*"
		}
		needs := of(call, "DescribeStackResources", name)
		if api.Deref(in.StackName) == "" {
			needs[0].Named = home(call, "*")
		}
		return needs, nil
	})
	return all
}

// ofSet requires an action on the stack of a change set. If there is no such change set, the
// resource is its own ARN.
func (s *Service) ofSet(call *api.Call, action string, stack *string, set string) []authorize.Need {
	name := api.Deref(stack)
	if name == "" && s.Engine != nil {
		if found, err := s.Engine.ChangeSet(call.Account, call.Region, "", set); err == nil {
			name = found.Stack
		}
	}
	needs := of(call, action, set)
	if name != "" {
		found := of(call, action, name)
		if api.Deref(stack) == "" {
			found[0].Named = needs[0].Resource
		}
		needs = found
	}
	return named(needs, set)
}

func tagged(needs []authorize.Need, tags []Tag) []authorize.Need {
	if len(tags) == 0 {
		return needs
	}
	needs[0].Tags = map[string]string{}
	for _, t := range tags {
		needs[0].Tags[t.Key] = t.Value
		needs[0].TagKeys = append(needs[0].TagKeys, t.Key)
	}
	return needs
}

// passing requires iam:PassRole for a role.
func passing(needs []authorize.Need, role *string) []authorize.Need {
	if api.Deref(role) == "" {
		return needs
	}
	needs[0].Keys = append(needs[0].Keys, authorize.Key{Name: "cloudformation:rolearn", Values: []string{*role}})
	return append(needs, api.Passing(*role, "cloudformation.amazonaws.com"))
}

// by adds the URLs of templates and stack policies to the condition keys.
func by(needs []authorize.Need, template *string, policies ...*string) []authorize.Need {
	var keys []authorize.Key
	if template != nil {
		keys = append(keys, authorize.Key{Name: "cloudformation:templateurl", Values: []string{*template}})
	}
	policy := authorize.Key{Name: "cloudformation:stackpolicyurl"}
	for _, url := range policies {
		if url != nil {
			policy.Values = append(policy.Values, *url)
		}
	}
	if len(policy.Values) > 0 {
		keys = append(keys, policy)
	}
	for i := range needs {
		if strings.HasPrefix(needs[i].Action, "cloudformation:") {
			needs[i].Keys = append(needs[i].Keys, keys...)
		}
	}
	return needs
}

// reading requires s3:GetObject for the objects of URLs: the server reads them with its own
// key.
func reading(call *api.Call, needs []authorize.Need, urls ...*string) []authorize.Need {
	for _, url := range urls {
		if url == nil {
			continue
		}
		if bucket, key, _, ok := objectOf(*url); ok { // other URLs are refused
			needs = append(needs, api.ReadsObject(call, bucket, key))
		}
	}
	return needs
}
