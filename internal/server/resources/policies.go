package resources

import (
	"encoding/json"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/topic"
)

// isDefaultPolicy reports that a policy is the one that a topic has before anybody sets or adds to
// it, which lets its owner do everything.
func isDefaultPolicy(policy, of string) bool {
	a, err := arn.Parse(of)
	if err != nil {
		return false
	}
	p := inOneForm(policy)
	return p != "" && p == inOneForm(topic.DefaultPolicy(a))
}

// inOneForm is a policy with the actions of each statement in one order, and without
// SNS:Receive, which is in the default of some servers and allows nothing.
func inOneForm(policy string) string {
	document := parsed(policy)
	statements, _ := document["Statement"].([]any)
	if len(statements) == 0 {
		return ""
	}
	for _, one := range statements {
		statement, _ := one.(map[string]any)
		actions, ok := statement["Action"].([]any)
		if !ok {
			continue
		}
		var names []string
		for _, action := range actions {
			name, _ := action.(string)
			if name = strings.ToLower(name); name != "sns:receive" {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		statement["Action"] = names
	}
	text, err := json.Marshal(document)
	if err != nil { // it was read just now
		return ""
	}
	return string(text)
}
