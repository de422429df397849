package jobs

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/seal"
)

func sealerOf(t *testing.T, b byte) *seal.Sealer {
	t.Helper()
	s, err := seal.WithKey(bytes.Repeat([]byte{b}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestTextsAreSealed: what of a job may repeat a message is not in its record, and is opened
// with the same key at the same place only.
func TestTextsAreSealed(t *testing.T) {
	job := Job{
		Spec:  Spec{ID: "x", Kind: "delete", Resource: "arn:aws:sqs:us-east-1:000000000000:q", Where: Where{Search: "canary-search", Cause: "canary-cause", IDs: []string{"1"}, Since: 1}},
		State: Running, Matched: 3, Doing: []string{"1"}, Error: "canary-error",
	}
	sealer := sealerOf(t, 1)
	value := encode(&job, sealer)
	if bytes.Contains(value, []byte("canary")) {
		t.Errorf("in clear: %s", value)
	}
	if err := CheckRecord(value); err != nil {
		t.Error(err)
	}
	got, err := open(key("x"), value, sealer)
	if diff := cmp.Diff(job, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	for name, other := range map[string]struct {
		key    string
		sealer *seal.Sealer
	}{"another key": {"x", sealerOf(t, 2)}, "another job": {"y", sealer}, "no key": {"x", nil}} {
		if _, err := open(key(other.key), value, other.sealer); !errors.Is(err, seal.ErrSealed) {
			t.Errorf("with %s: %v", name, err)
		}
	}
	if got, err = open(key("x"), encode(&job, nil), sealer); err != nil || got.Where.Search != "canary-search" {
		t.Errorf("what was stored in clear: %+v, %v", got, err)
	}
}
