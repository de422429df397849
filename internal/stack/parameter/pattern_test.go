package parameter_test

import (
	"errors"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/stack/parameter"
)

// Patterns of strangers have as many states as a match has time for, however few letters they are.
func TestPatternsAreBounded(t *testing.T) {
	for text, want := range map[string]error{
		`^[a-zA-Z][-a-zA-Z0-9]{0,127}$`:              nil,
		`^arn:aws[a-z-]*:sns:[^:]+:\d{12}:.{1,256}$`: nil,
		`[\w+=,.@-]{1,1000}`:                         nil,
		strings.Repeat(`(a?){1000}`, 5):              parameter.ErrPattern,
		`((a?){30}){30}(((b|c){9}){9}){9}`:           parameter.ErrPattern,
	} {
		if p, states, err := parameter.Pattern(text); !errors.Is(err, want) || err == nil && (p == nil || states < 1) {
			t.Errorf("%s: %d states, %v", text, states, err)
		}
	}
	if _, _, err := parameter.Pattern(`a(`); err == nil {
		t.Error("what is no pattern is one")
	}
}
