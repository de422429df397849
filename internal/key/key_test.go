package key

import (
	"errors"
	"testing"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
)

// Nothing is taken in, to be kept in clear, under a key that does not exist; what is refused
// is named by its whole ARN, however it was written.
func TestFind(t *testing.T) {
	const here, elsewhere = "arn:aws:kms:eu-west-1:111111111111:", "arn:aws:kms:eu-west-1:222222222222:"
	of := arn.Queue("eu-west-1", "111111111111", "q")
	for _, c := range []struct {
		name string
		rule *fault.Rule
		arn  string
	}{
		{"", nil, ""},
		{"alias/aws/sqs", nil, ""},
		{here + "alias/aws/sqs", nil, ""},
		{"alias/aws/sns", ErrNoAlias, here + "alias/aws/sns"}, // of another service
		{elsewhere + "alias/aws/sqs", ErrNoKey, elsewhere + "alias/aws/sqs"},
		{"alias/mine", ErrNoAlias, here + "alias/mine"},
		{here + "alias/mine", ErrNoAlias, here + "alias/mine"},
		{"k-1", ErrNoKey, here + "key/k-1"},
		{here + "key/k-1", ErrNoKey, here + "key/k-1"},
	} {
		err := Find(of, c.name)
		if c.rule == nil {
			if err != nil {
				t.Errorf("%q: %v", c.name, err)
			}
			continue
		}
		refused, ok := errors.AsType[*fault.Refusal](err)
		if !ok || refused.Rule != c.rule || len(refused.Fields) != 1 || refused.Fields[0] != c.arn {
			t.Errorf("%q: %v, want %v of %s", c.name, err, c.rule, c.arn)
		}
	}
}
