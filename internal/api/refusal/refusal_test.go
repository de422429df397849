package refusal_test

import (
	"errors"
	"fmt"
	"testing"

	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/iam"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/topic/filter"
)

// TestOf puts rules in words, with their fields in place, however they are wrapped.
func TestOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		kind fault.Kind
		text string
	}{
		{iam.ErrSyntax, fault.MalformedPolicyDocument, "Syntax errors in policy."},
		{iam.ErrVendor.With("s q s"), fault.MalformedPolicyDocument, "Vendor s q s is not valid"},
		{fmt.Errorf("sending: %w", queues.ErrHandle.With("h")), fault.ReceiptHandleIsInvalid, `The input receipt handle "h" is not a valid receipt handle.`},
		{filter.ErrDocument.With(filter.ErrAt.With(filter.ErrWord.With("nul"), 4)), fault.InvalidParameter, ""},
		{fault.New(fault.NotFound, "as it is: 100%"), fault.NotFound, "as it is: 100%"},
	} {
		said, ok := refusal.Of(c.err)
		if !ok || said.Kind != c.kind || c.text != "" && said.Message != c.text {
			t.Errorf("%v is %+v, want %q", c.err, said, c.text)
		}
		if refusal.Text(c.err) != said.Message {
			t.Errorf("%v: %q and %q", c.err, refusal.Text(c.err), said.Message)
		}
	}
	if said, ok := refusal.Of(errors.New("a secret")); ok {
		t.Errorf("an error that is no refusal is %v", said)
	}
	if got := refusal.Text(errors.New("plain")); got != "plain" {
		t.Errorf("the text of an error is %q", got)
	}
}
