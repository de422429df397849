package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"godwit.dev/godwit/test/checklist"
)

// walked are the services whose answers are held against the models.
var walked = []string{"cloudformation", "cloudwatch", "firehose", "iam", "kms", "lambda", "logs", "sns", "sqs", "sts"}

type reference struct {
	Shape        string `json:"shape"`
	Location     string `json:"location"`     // of what is in a header or the status
	LocationName string `json:"locationName"` // on the wire, in place of the name
}

type modelShape struct {
	Type     string               `json:"type"`
	Enum     []string             `json:"enum"`
	Payload  string               `json:"payload"` // the member that is the whole body
	Required []string             `json:"required"`
	Members  map[string]reference `json:"members"`
	Member   reference            `json:"member"`
	Value    reference            `json:"value"`
}

// generateShapes writes what the walked actions of a service take and answer.
func generateShapes(service, from, to string) error {
	document, err := os.ReadFile(filepath.Join(from, service+".json"))
	if err != nil {
		return err
	}
	var in struct {
		Metadata struct {
			Protocol string `json:"protocol"`
		} `json:"metadata"`
		Operations map[string]struct {
			Input  *reference `json:"input"`
			Output *reference `json:"output"`
		} `json:"operations"`
		Shapes map[string]modelShape `json:"shapes"`
	}
	if err := json.Unmarshal(document, &in); err != nil {
		return fmt.Errorf("%s: %w", service, err)
	}
	unbuilt, err := unbuilt(service)
	if err != nil {
		return err
	}
	renamed := in.Metadata.Protocol == "rest-json"
	out := map[string]checklist.Exchange{}
	for action, operation := range in.Operations {
		if slices.Contains(unbuilt, action) || operation.Output != nil && in.Shapes[operation.Output.Shape].Payload != "" {
			continue
		}
		exchange := checklist.Exchange{Input: resolve(in.Shapes, renamed, operation.Input), Output: resolve(in.Shapes, renamed, operation.Output)}
		forget(&exchange.Input) // what requests lack is the server's to refuse
		out[action] = exchange
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

// unbuilt are the actions that are exempt as a whole.
func unbuilt(service string) (all []string, err error) {
	exemptions, err := checklist.Exemptions(service)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range exemptions {
		if len(e.Errors)+len(e.Protocols) == 0 {
			all = append(all, e.Actions...)
		}
	}
	return all, err
}

// resolve replaces names by what they name; what names itself within itself ends there.
func resolve(shapes map[string]modelShape, renamed bool, r *reference, above ...string) checklist.Shape {
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
		for model, member := range s.Members {
			name := model
			if member.Location != "" {
				continue
			}
			if renamed && member.LocationName != "" {
				name = member.LocationName
			}
			out.Members[name] = resolve(shapes, renamed, &member, above...)
			if slices.Contains(s.Required, model) {
				out.Always = append(out.Always, name)
			}
		}
		slices.Sort(out.Always)
	case "list":
		of := resolve(shapes, renamed, &s.Member, above...)
		out.Of = &of
	case "map":
		of := resolve(shapes, renamed, &s.Value, above...)
		out.Of = &of
	}
	return out
}

// forget leaves out what a shape cannot lack.
func forget(s *checklist.Shape) {
	s.Always = nil
	if s.Of != nil {
		forget(s.Of)
	}
	for name, member := range s.Members {
		forget(&member)
		s.Members[name] = member
	}
}
