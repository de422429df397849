package fit

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

type input struct {
	KMSKeyArn *string
	Timeout   *int
	Enabled   *bool
	Config    *struct {
		Weight float64
		Names  []string
	}
}

// Members are found in whatever case, scalars are taken in each form that templates have, and what
// nothing in an input is called is refused where it is nested.
func TestInto(t *testing.T) {
	var in input
	if err := Into(map[string]any{
		"KmsKeyArn": "key", "Timeout": "010", "Enabled": "true", "Config": map[string]any{"Weight": "00.5", "Names": []any{true}}, "Other": 1,
	}, &in); err != nil {
		t.Fatal(err)
	}
	want := input{KMSKeyArn: new("key"), Timeout: new(10), Enabled: new(true)}
	want.Config = &struct {
		Weight float64
		Names  []string
	}{0.5, []string{"true"}}
	if d := cmp.Diff(want, in); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	err := Into(map[string]any{"Config": map[string]any{"Wight": 1}}, &in)
	if err == nil || err.Error() != "#/Config: extraneous key [Wight] is not permitted" {
		t.Error(err)
	}
}
