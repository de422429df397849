package cloudformation_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/cloudformation"
)

// Policies can ask for what AWS lets them: the role, the URLs and the change set that a request
// names, on the stack that it is about. Objects at URLs have to be readable for the caller.
func TestConditionKeys(t *testing.T) {
	const template, first, second = "https://s3.amazonaws.com/b/t.yaml", "https://s3.amazonaws.com/b/p.json", "https://s3.amazonaws.com/b/q.json"
	role := new("arn:aws:iam::111122223333:role/r")
	for _, tt := range []struct {
		operation string
		in        any
		want      string
	}{
		{
			"CreateStack", &cloudformation.CreateStackInput{StackName: "s", TemplateURL: new(template), StackPolicyURL: new(first), RoleARN: role},
			"cloudformation:CreateStack rolearn=" + *role + " stackpolicyurl=" + first + " templateurl=" + template + "; iam:PassRole; s3:GetObject; s3:GetObject",
		},
		{
			"UpdateStack", &cloudformation.UpdateStackInput{StackName: "s", StackPolicyURL: new(first), StackPolicyDuringUpdateURL: new(second)},
			"cloudformation:UpdateStack stackpolicyurl=" + first + "," + second + "; cloudformation:SetStackPolicy stackpolicyurl=" + first + "," + second + "; s3:GetObject; s3:GetObject",
		},
		{"SetStackPolicy", &cloudformation.SetStackPolicyInput{StackName: "s", StackPolicyURL: new(first)}, "cloudformation:SetStackPolicy stackpolicyurl=" + first + "; s3:GetObject"},
		{
			"CreateChangeSet", &cloudformation.CreateChangeSetInput{StackName: "s", ChangeSetName: "c", TemplateURL: new(template)},
			"cloudformation:CreateChangeSet changesetname=c templateurl=" + template + "; s3:GetObject",
		},
		{"DeleteStack", &cloudformation.DeleteStackInput{StackName: "s", RoleARN: role}, "cloudformation:DeleteStack rolearn=" + *role + "; iam:PassRole"},
		{"ValidateTemplate", &cloudformation.ValidateTemplateInput{TemplateURL: new(template)}, "cloudformation:ValidateTemplate; s3:GetObject"},
	} {
		operations := cloudformation.New(cloudformation.Options{}).Operations()
		op := operations[slices.IndexFunc(operations, func(o api.Operation) bool { return o.Name == tt.operation })]
		needs, err := op.Access(t.Context(), &api.Call{Service: "cloudformation", Account: "111122223333", Region: "us-east-1"}, tt.in)
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		for _, n := range needs {
			keys := map[string]string{}
			for _, k := range n.Keys {
				if name, ok := strings.CutPrefix(k.Name, "cloudformation:"); ok {
					keys[name] = strings.Join(k.Values, ",")
				}
			}
			text := n.Action
			for _, name := range slices.Sorted(maps.Keys(keys)) {
				text += " " + name + "=" + keys[name]
			}
			told = append(told, text)
		}
		if got := strings.Join(told, "; "); got != tt.want {
			t.Errorf("%s needs\n%s, not\n%s", tt.operation, got, tt.want)
		}
	}
}
