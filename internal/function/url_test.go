package function

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/mutation"
)

// The CORS of all URLs of a function is bounded, as its record has them: that of one URL always has room.
func TestCORSBounded(t *testing.T) {
	s, name, now := New(3), named("f"), begin
	var b mutation.Batch
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, _, err := s.Create(now, Create{ARN: name, Config: config(1), Publish: true, ReadyAt: now}, &b)
	check(err)
	_, err = s.CreateAlias(CreateAlias{Function: name, Name: "live", Version: "1"}, &b)
	check(err)
	most := &CORS{Headers: slices.Repeat([]string{strings.Repeat("𝄞", 1024)}, 100), Expose: slices.Repeat([]string{strings.Repeat("𝄞", 1024)}, 100), Origins: slices.Repeat([]string{strings.Repeat("𝄞", 253)}, 100)}
	_, err = s.CreateURL(now, CreateURL{Function: name, ID: "a", Auth: AuthNone, CORS: most}, &b)
	check(err)
	_, err = s.UpdateURL(now, UpdateURL{Function: name, CORS: most}, &b) // in place of the same
	check(err)
	if _, err := s.CreateURL(now, CreateURL{Function: name, Qualifier: "live", ID: "b", Auth: AuthNone, CORS: most}, &b); !errors.Is(err, ErrURLTooLarge) {
		t.Errorf("another one as large: %v", err)
	}
	_, err = s.CreateURL(now, CreateURL{Function: name, Qualifier: "live", ID: "b", Auth: AuthNone}, &b)
	check(err)
	if _, err := s.UpdateURL(now, UpdateURL{Function: name, Qualifier: "live", Auth: AuthIAM, CORS: most}, &b); !errors.Is(err, ErrURLTooLarge) {
		t.Errorf("a change to one as large: %v", err)
	}
	if u, err := s.ShowURL(name, "live"); err != nil || u.CORS != nil || u.Auth != AuthNone {
		t.Errorf("a refused change leaves %+v, %v", u, err)
	}
	check(s.DeleteURL(name, "", &b))
	_, err = s.UpdateURL(now, UpdateURL{Function: name, Qualifier: "live", CORS: most}, &b)
	check(err)
}
