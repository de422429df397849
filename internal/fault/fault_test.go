package fault

import (
	"errors"
	"fmt"
	"io"
	"testing"
)

func TestKindOf(t *testing.T) {
	refusal := Newf(QueueDoesNotExist, "no queue %q", "q")
	rule := NewRule(QueueNameExists, "queues: the name is taken")
	for _, c := range []struct {
		name string
		err  error
		want Kind
	}{
		{"a refusal", refusal, QueueDoesNotExist},
		{"a wrapped one", fmt.Errorf("sending: %w", refusal), QueueDoesNotExist},
		{"one of several", errors.Join(io.EOF, refusal), QueueDoesNotExist},
		{"a rule", rule, QueueNameExists},
		{"a rule with fields", fmt.Errorf("creating: %w", rule.With("q", 3)), QueueNameExists},
		{"any other error is our fault", io.EOF, Internal},
		{"none", nil, Internal},
	} {
		if got := KindOf(c.err); got != c.want {
			t.Errorf("%s: kind %d, want %d", c.name, got, c.want)
		}
		if Is(c.err) != (c.want != Internal) {
			t.Errorf("%s: a refusal: %v", c.name, Is(c.err))
		}
	}
	if refusal.Error() != `no queue "q"` {
		t.Errorf("its text is %s", refusal)
	}
}

func TestIs(t *testing.T) {
	refusal := New(Throttled, "slower")
	if wrapped := fmt.Errorf("sending: %w", refusal); !errors.Is(wrapped, New(Throttled, "another text")) {
		t.Error("two refusals of one kind differ")
	}
	if errors.Is(refusal, New(Unavailable, "slower")) || errors.Is(refusal, io.EOF) {
		t.Error("refusals of two kinds are the same")
	}
}

// A refusal is found by its rule, whatever its fields.
func TestRule(t *testing.T) {
	rule, other := NewRule(OverLimit, "queues: too many"), NewRule(OverLimit, "queues: too many")
	err := fmt.Errorf("sending: %w", rule.With("q", 3))
	if !errors.Is(err, rule) || errors.Is(err, other) {
		t.Error("it is of another rule")
	}
	if got, want := err.Error(), "sending: queues: too many: q 3"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestExcerpt(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"short", "short"},
		{"eight by", "eight by"},
		{"more than eight", "more tha…"},
		{"seven bé", "seven b…"},
		{"a\xffb", "a\uFFFDb"},
		{"\xbf\xbf\xbf\xbf\xbf\xbf\xbf\xbf\xbf\xbf", "…"},
	} {
		if got := Excerpt(tt.text, 8, "…"); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestKinds(t *testing.T) {
	all := Kinds()
	if len(all) != int(kinds) || all[0] != Internal || all[len(all)-1] != kinds-1 {
		t.Errorf("%d kinds", len(all))
	}
	var unclassified Error
	if unclassified.Kind != Internal {
		t.Error("an error without a kind is not our fault")
	}
}
