package sts

import (
	"maps"
	"testing"

	"godwit.dev/godwit/internal/shard/identity"
)

// A tag that is passed on keeps its value, however TransitiveTagKeys spells its key.
func TestTransitiveTagInAnotherCase(t *testing.T) {
	key, value := "Team", "sales"
	for name, before := range map[string]*identity.Session{
		"as it is given":      {},
		"as older tokens are": {Tags: map[string]string{key: value}, Transitive: []string{"team"}},
	} {
		if before.Tags == nil {
			if err := setTags(before, []Tag{{&key, &value}}, []string{"team"}); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // through two further roles
			next := &identity.Session{}
			inherit(next, before)
			if want := map[string]string{key: value}; !maps.Equal(next.Tags, want) {
				t.Errorf("%s: a further session has the tags %v, want %v", name, next.Tags, want)
			}
			before = next
		}
	}
}
