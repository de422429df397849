package cloudformation_test

import (
	"fmt"
	"slices"
	"testing"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/cloudformation"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/stack"
)

// lists is an Engine that only lists: 250 of each thing, less what is gone.
type lists struct {
	cloudformation.Engine

	gone string
}

const listed = 250

func named(i int) string { return fmt.Sprintf("n%03d", i) }

// all makes the things that are left, in the order of their names.
func all[T any](l *lists, one func(i int) T) (left []T) {
	for i := range listed {
		if named(i) != l.gone {
			left = append(left, one(i))
		}
	}
	return left
}

// List has three stacks a millisecond, the latest first.
func (l *lists) List(string, string) []stack.Stack {
	return all(l, func(i int) stack.Stack {
		return stack.Stack{ID: named(i), Name: named(i), Created: int64(1_000_000 - i/3), Status: stack.CreateComplete}
	})
}

func (l *lists) Get(string, string, string) (v stacks.View, err error) {
	v.Resources = all(l, func(i int) stack.Resource {
		return stack.Resource{Logical: named(i), Version: stack.Version{Physical: named(i)}, Drift: &stack.Drift{}}
	})
	return v, nil
}

func (l *lists) Exports(string, string) ([]stack.Output, map[string]string) {
	return all(l, func(i int) stack.Output { return stack.Output{Export: named(i)} }), nil
}

func (l *lists) Importers(string, string, string) []string { return all(l, named) }

func (l *lists) ChangeSets(string, string, string) ([]stacks.ChangeSet, error) {
	return all(l, func(i int) stacks.ChangeSet { return stacks.ChangeSet{Name: named(i), Created: int64(1_000_000 + i/3)} }), nil
}

// What was the last of a page may be gone when the next page is asked for, which has what comes
// behind it all the same: every thing is listed once.
func TestPagesGoOnBehindWhatIsGone(t *testing.T) {
	const s = "s"
	names := func(n int, name func(i int) string) (shown []string) {
		for i := range n {
			shown = append(shown, name(i))
		}
		return shown
	}
	for operation, list := range map[string]struct {
		in   func(token *string) any
		read func(out any) (shown []string, next string)
	}{
		"DescribeStacks": {
			func(token *string) any { return &cloudformation.DescribeStacksInput{NextToken: token} },
			func(out any) ([]string, string) {
				o := out.(*cloudformation.DescribeStacksOutput)
				return names(len(o.Stacks), func(i int) string { return o.Stacks[i].StackName }), o.NextToken
			},
		},
		"ListStacks": {
			func(token *string) any { return &cloudformation.ListStacksInput{NextToken: token} },
			func(out any) ([]string, string) {
				o := out.(*cloudformation.ListStacksOutput)
				return names(len(o.StackSummaries), func(i int) string { return o.StackSummaries[i].StackName }), o.NextToken
			},
		},
		"ListStackResources": {
			func(token *string) any {
				return &cloudformation.ListStackResourcesInput{StackName: s, NextToken: token}
			},
			func(out any) ([]string, string) {
				o := out.(*cloudformation.ListStackResourcesOutput)
				return names(len(o.StackResourceSummaries), func(i int) string { return o.StackResourceSummaries[i].LogicalResourceId }), o.NextToken
			},
		},
		"DescribeStackResourceDrifts": {
			func(token *string) any {
				return &cloudformation.DescribeStackResourceDriftsInput{StackName: s, NextToken: token}
			},
			func(out any) ([]string, string) {
				o := out.(*cloudformation.DescribeStackResourceDriftsOutput)
				return names(len(o.StackResourceDrifts), func(i int) string { return o.StackResourceDrifts[i].LogicalResourceId }), o.NextToken
			},
		},
		"ListExports": {
			func(token *string) any { return &cloudformation.ListExportsInput{NextToken: token} },
			func(out any) ([]string, string) {
				o := out.(*cloudformation.ListExportsOutput)
				return names(len(o.Exports), func(i int) string { return o.Exports[i].Name }), o.NextToken
			},
		},
		"ListImports": {
			func(token *string) any { return &cloudformation.ListImportsInput{ExportName: "e", NextToken: token} },
			func(out any) ([]string, string) {
				o := out.(*cloudformation.ListImportsOutput)
				return o.Imports, o.NextToken
			},
		},
		"ListChangeSets": {
			func(token *string) any { return &cloudformation.ListChangeSetsInput{StackName: s, NextToken: token} },
			func(out any) ([]string, string) {
				o := out.(*cloudformation.ListChangeSetsOutput)
				return names(len(o.Summaries), func(i int) string { return o.Summaries[i].ChangeSetName }), o.NextToken
			},
		},
	} {
		t.Run(operation, func(t *testing.T) {
			engine := &lists{}
			operations := cloudformation.New(cloudformation.Options{Engine: engine}).Operations()
			op := operations[slices.IndexFunc(operations, func(o api.Operation) bool { return o.Name == operation })]
			var shown []string
			var token *string
			for range listed {
				out, err := op.Invoke(t.Context(), &api.Call{Service: "cloudformation", Account: "111122223333", Region: "us-east-1"}, list.in(token))
				if err != nil {
					t.Fatal(err)
				}
				some, next := list.read(out)
				if shown = append(shown, some...); next == "" {
					break
				}
				token, engine.gone = &next, some[len(some)-1]
			}
			if want := names(listed, named); !slices.Equal(shown, want) {
				t.Errorf("%d are listed, want %d:\n%v", len(shown), listed, shown)
			}
		})
	}
}
