package queuepolicy

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/arn"
)

// Adding a permission to a policy and removing it leaves the policy as it was,
// whatever else is in it.
func FuzzPolicyEdits(f *testing.F) {
	for _, doc := range []string{
		``, `{}`, `{"Statement":[]}`, `{"Statement":{"Sid":"own","Principal":{"AWS":["a","b"]}}}`, `{"Statement":7}`,
		`{"Version":"2012-10-17","Id":"x","Statement":[{"Sid":"own","Effect":"Deny"},null,{"Sid":7}],"More":{"<":">"}}`,
	} {
		f.Add(doc)
	}
	f.Fuzz(func(t *testing.T, doc string) {
		var before map[string]any
		if doc != "" && (json.Unmarshal([]byte(doc), &before) != nil || before == nil || before["Statement"] == nil) {
			return
		}
		p := Permission{Label: "fuzzed", Accounts: []string{"111111111111"}, Actions: []string{"SendMessage"}}
		added, err := Add(doc, arn.Queue("us-east-1", "000000000000", "q"), p)
		if err != nil {
			return // taken, or too large
		}
		if _, err := Add(added, arn.Queue("us-east-1", "000000000000", "q"), p); err == nil {
			t.Errorf("%s: the label was given twice", doc)
		}
		removed, err := Remove(added, "fuzzed")
		if err != nil {
			t.Fatalf("%s: %v", added, err)
		}
		if removed == "" { // nothing else was in it
			if list, ok := before["Statement"].([]any); doc != "" && (!ok || len(list) > 0) {
				t.Errorf("%s is gone", doc)
			}
			return
		}
		var after map[string]any
		if err := json.Unmarshal([]byte(removed), &after); err != nil {
			t.Fatalf("%s: %v", removed, err)
		}
		if _, ok := before["Statement"].([]any); !ok {
			before["Statement"] = []any{before["Statement"]}
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("%s (-before +after):\n%s", doc, diff)
		}
	})
}
