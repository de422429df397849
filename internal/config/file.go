package config

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"go.yaml.in/yaml/v3"
)

// File is a settings file: a YAML mapping from the names of flags, without
// their dashes, to single values, or to lists of them where a flag takes several.
//
//	listen: 0.0.0.0:4566
//	jitter: 0.2
//	allowed-hosts: [godwit.example.com, queues.example.com]
type File struct {
	settings map[string]setting
}

type setting struct {
	value string
	list  []string // instead of value
	many  bool
	line  int
}

// ParseFile parses a settings file. It refuses, with the line, anything but one mapping of
// distinct names to single values and lists of them. An empty file sets nothing.
func ParseFile(r io.Reader) (*File, error) {
	f := &File{settings: map[string]setting{}}
	dec := yaml.NewDecoder(r)
	var doc yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		return f, nil
	} else if err != nil {
		return nil, fmt.Errorf("settings file: %w", err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("settings file: more than one YAML document")
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return f, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, lineError(root.Line, "want settings as name: value")
	}
	for pair := range slices.Chunk(root.Content, 2) {
		name, value := pair[0], pair[1]
		switch before, twice := f.settings[name.Value]; {
		case name.Kind != yaml.ScalarNode:
			return nil, lineError(name.Line, "want settings as name: value")
		case twice:
			return nil, lineError(name.Line, "%s is set already in line %d", name.Value, before.line)
		case value.Kind == yaml.SequenceNode:
			s := setting{many: true, line: name.Line}
			for _, one := range value.Content {
				if !single(one) {
					return nil, lineError(one.Line, "%s: want a list of single values", name.Value)
				}
				s.list = append(s.list, one.Value)
			}
			f.settings[name.Value] = s
			continue
		case !single(value):
			return nil, lineError(name.Line, "%s: want a single value", name.Value)
		}
		f.settings[name.Value] = setting{value: value.Value, line: name.Line}
	}
	return f, nil
}

func single(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag != "!!null" }

// Value returns the text of the setting name; ok is false for a list, too.
func (f *File) Value(name string) (value string, ok bool) {
	s, ok := f.settings[name]
	return s.value, ok && !s.many
}

// List returns the texts of the setting name, if it is a list.
func (f *File) List(name string) (values []string, ok bool) {
	s := f.settings[name]
	return s.list, s.many
}

// CheckSingle refuses, with the line, a setting that is a list.
func (f *File) CheckSingle(name string) error {
	if s := f.settings[name]; s.many {
		return lineError(s.line, "%s: want a single value", name)
	}
	return nil
}

// Check refuses, with the line, the first unknown setting, and suggests a similar name.
func (f *File) Check(known []string) error {
	first, bad := "", setting{}
	for name, s := range f.settings {
		if !slices.Contains(known, name) && (first == "" || s.line < bad.line) {
			first, bad = name, s
		}
	}
	if first != "" {
		if meant := Nearest(first, known); meant != "" {
			return lineError(bad.line, "there is no setting %q: is %q meant?", first, meant)
		}
		return lineError(bad.line, "there is no setting %q", first)
	}
	return nil
}

func lineError(line int, format string, args ...any) error {
	return fmt.Errorf("settings file, line %d: %s", line, fmt.Sprintf(format, args...))
}
