package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"godwit.dev/godwit/test/checklist"
)

// walked are the actions whose requests and answers are held against the models.
var walked = map[string][]string{
	"logs": {
		"CreateLogGroup", "CreateLogStream", "DeleteLogGroup", "DeleteLogStream", "DeleteRetentionPolicy", "DescribeDestinations", "DescribeLogGroups",
		"DescribeLogStreams", "DescribeMetricFilters", "DescribeQueries", "DescribeResourcePolicies", "DescribeSubscriptionFilters", "FilterLogEvents",
		"GetLogEvents", "ListLogGroups", "ListTagsForResource", "ListTagsLogGroup", "PutLogEvents", "PutLogGroupDeletionProtection", "PutRetentionPolicy",
		"TagLogGroup", "TagResource", "UntagLogGroup", "UntagResource",
	},
}

type reference struct {
	Shape string `json:"shape"`
}

type modelShape struct {
	Type    string               `json:"type"`
	Enum    []string             `json:"enum"`
	Members map[string]reference `json:"members"`
	Member  reference            `json:"member"`
	Value   reference            `json:"value"`
}

// generateShapes writes what the walked actions of a service take and answer.
func generateShapes(service, from, to string) error {
	document, err := os.ReadFile(filepath.Join(from, service+".json"))
	if err != nil {
		return err
	}
	var in struct {
		Operations map[string]struct {
			Input  *reference `json:"input"`
			Output *reference `json:"output"`
		} `json:"operations"`
		Shapes map[string]modelShape `json:"shapes"`
	}
	if err := json.Unmarshal(document, &in); err != nil {
		return fmt.Errorf("%s: %w", service, err)
	}
	out := map[string]checklist.Exchange{}
	for _, action := range walked[service] {
		operation, ok := in.Operations[action]
		if !ok {
			return fmt.Errorf("%s has no %s", service, action)
		}
		out[action] = checklist.Exchange{Input: resolve(in.Shapes, operation.Input), Output: resolve(in.Shapes, operation.Output)}
	}
	var b bytes.Buffer
	b.WriteString("{")
	for n, action := range slices.Sorted(maps.Keys(out)) {
		line, err := json.Marshal(out[action]) // in order: maps are written so
		if err != nil {
			return err
		}
		if n > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, "\n%q: %s", action, line)
	}
	b.WriteString("\n}\n")
	return os.WriteFile(filepath.Join(to, service+".shapes.json"), b.Bytes(), 0o644)
}

// resolve replaces names by what they name; what names itself within itself ends there.
func resolve(shapes map[string]modelShape, r *reference, above ...string) checklist.Shape {
	if r == nil {
		return checklist.Shape{Type: "structure", Members: map[string]checklist.Shape{}}
	}
	s := shapes[r.Shape]
	out := checklist.Shape{Type: s.Type, Enum: s.Enum}
	if slices.Contains(above, r.Shape) {
		return out
	}
	above = append(slices.Clone(above), r.Shape)
	switch s.Type {
	case "structure":
		out.Members = map[string]checklist.Shape{}
		for name, member := range s.Members {
			out.Members[name] = resolve(shapes, &member, above...)
		}
	case "list":
		of := resolve(shapes, &s.Member, above...)
		out.Of = &of
	case "map":
		of := resolve(shapes, &s.Value, above...)
		out.Of = &of
	}
	return out
}
