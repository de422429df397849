package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"godwit.dev/godwit/internal/api/constraints"
)

// constrained are the services whose requests are held against the models' constraints.
var constrained = []string{"cloudformation", "iam", "kms", "sts"}

// constrainedShape is what a model says of the values of a shape.
type constrainedShape struct {
	Type      string               `json:"type"`
	Min       *float64             `json:"min"`
	Max       *float64             `json:"max"`
	Pattern   string               `json:"pattern"`
	Enum      []string             `json:"enum"`
	Required  []string             `json:"required"`
	Sensitive bool                 `json:"sensitive"`
	Members   map[string]reference `json:"members"`
	Member    reference            `json:"member"`
}

// recordedEnums are sets of values in the order in which AWS has been seen to list them.
var recordedEnums = map[string][]string{
	"MacAlgorithmSpec": {"HMAC_SHA_384", "HMAC_SHA_256", "HMAC_SHA_224", "HMAC_SHA_512"},
}

// constraining makes the table of a service.
type constraining struct {
	shapes map[string]constrainedShape
	out    *constraints.Table
}

func generateConstraints(service, from, to string) error {
	document, err := os.ReadFile(filepath.Join(from, service+".json"))
	if err != nil {
		return err
	}
	var in struct {
		Operations map[string]struct {
			Input *reference `json:"input"`
		} `json:"operations"`
		Shapes map[string]constrainedShape `json:"shapes"`
	}
	if err := json.Unmarshal(document, &in); err != nil {
		return fmt.Errorf("%s: %w", service, err)
	}
	c := constraining{in.Shapes, &constraints.Table{Shapes: map[string]*constraints.Shape{}, Operations: map[string]map[string]string{}}}
	for name, operation := range in.Operations {
		if operation.Input == nil {
			continue
		}
		if members := c.members(in.Shapes[operation.Input.Shape]); len(members) > 0 {
			c.out.Operations[name] = members
		}
	}
	var b bytes.Buffer
	b.WriteString(`{"Shapes": {`)
	if err := lines(&b, c.out.Shapes); err != nil {
		return err
	}
	b.WriteString("\n},\n\"Operations\": {")
	if err := lines(&b, c.out.Operations); err != nil {
		return err
	}
	b.WriteString("\n}}\n")
	return os.WriteFile(filepath.Join(to, service+".json"), b.Bytes(), 0o644)
}

// lines writes an entry a line, in order.
func lines[T any](b *bytes.Buffer, all map[string]T) error {
	for n, name := range slices.Sorted(maps.Keys(all)) {
		line, err := json.Marshal(all[name])
		if err != nil {
			return err
		}
		if n > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(b, "\n%q: %s", name, line)
	}
	return nil
}

func (c *constraining) members(s constrainedShape) map[string]string {
	members := map[string]string{}
	for name, member := range s.Members {
		of := c.shape(member.Shape)
		if slices.Contains(s.Required, name) {
			of += "!"
		}
		if of != "" {
			members[name] = of
		}
	}
	return members
}

// shape adds a shape to the table and gives its name; empty if it has no constraints.
func (c *constraining) shape(name string) string {
	if c.out.Shapes[name] != nil {
		return name
	}
	in := c.shapes[name]
	out := &constraints.Shape{Pattern: in.Pattern, Enum: in.Enum, Hidden: in.Sensitive || in.Type == "blob"}
	if recorded := recordedEnums[name]; recorded != nil {
		out.Enum = recorded
	}
	for from, to := range map[*float64]**int{in.Min: &out.Min, in.Max: &out.Max} {
		if from != nil {
			n := int(*from)
			*to = &n
		}
	}
	if out.Min != nil && *out.Min == 0 && in.Type != "integer" {
		out.Min = nil // nothing is shorter
	}
	switch in.Type {
	case "list":
		out.Of = c.shape(in.Member.Shape)
	case "structure":
		out.Members = c.members(in)
	}
	if out.Min == nil && out.Max == nil && out.Pattern == "" && len(out.Enum) == 0 && out.Of == "" && len(out.Members) == 0 {
		return ""
	}
	c.out.Shapes[name] = out
	return name
}
