package attribute

import "encoding/json"

// Limits of a queue's policy. Source: the quotas of SQS policies.
const (
	MaxPolicyActions = 7 // of a statement

	maxPolicyBytes = 8192
	maxStatements  = 20
	maxPrincipals  = 50 // of all statements together
)

// CheckPolicy applies the limits of a policy's size and statements. What is no list of
// statements has none. Errors: OverLimit.
func CheckPolicy(doc string) error {
	if len(doc) > maxPolicyBytes {
		return ErrPolicyTooLong
	}
	var policy struct{ Statement oneOrMany }
	if json.Unmarshal([]byte(doc), &policy) != nil {
		return nil
	}
	if n := len(policy.Statement); n > maxStatements {
		return ErrTooManyStatements.With(n, maxStatements)
	}
	principals := 0
	for _, text := range policy.Statement {
		// Each on its own, so that one that cannot be read hides no other.
		var actions struct{ Action oneOrMany }
		if json.Unmarshal(text, &actions) == nil && len(actions.Action) > MaxPolicyActions {
			return ErrTooManyActions.With(len(actions.Action), MaxPolicyActions)
		}
		var who struct{ Principal struct{ AWS oneOrMany } }
		if json.Unmarshal(text, &who) == nil {
			principals += len(who.Principal.AWS)
		}
	}
	if principals > maxPrincipals {
		return ErrTooManyPrincipals.With(principals, maxPrincipals)
	}
	return nil
}

// oneOrMany is a list in the form of IAM: a single value may stand by itself.
type oneOrMany []json.RawMessage

// UnmarshalJSON reads the list, or its only value.
func (l *oneOrMany) UnmarshalJSON(text []byte) error {
	var many []json.RawMessage
	if json.Unmarshal(text, &many) != nil {
		many = []json.RawMessage{append(json.RawMessage(nil), text...)}
	}
	*l = many
	return nil
}
