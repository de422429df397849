package variables

import (
	"errors"
	"maps"
	"testing"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/kms"
	"godwit.dev/godwit/internal/shard/keys"
)

// box encrypts by writing down the key; it refuses what fail says, by operation.
type box struct {
	fail     map[string]error
	admitted []string
}

func (b *box) Seal(_ keys.Access, _ arn.ARN, key string, variables map[string]string) ([]byte, error) {
	return []byte(key + " " + variables["A"]), b.fail["Seal"]
}

func (b *box) Open(_ keys.Access, _ arn.ARN, sealed []byte) (map[string]string, error) {
	if err := b.fail["Open"]; err != nil {
		return nil, err
	}
	return map[string]string{"A": string(sealed[len(sealed)-1:])}, nil
}

func (b *box) Admit(_ keys.Access, _ arn.ARN, key, role string) (undo func(), err error) {
	if err := b.fail["Admit"]; err != nil {
		return nil, err
	}
	b.admitted = append(b.admitted, key+" "+role)
	return func() { b.admitted = b.admitted[:len(b.admitted)-1] }, nil
}

func (b *box) Release(arn.ARN, []keys.Use) {}

var (
	fn   = arn.Function("us-east-1", "000000000000", "f")
	call = &api.Call{Caller: authorize.RootOf("000000000000"), Host: "http://localhost"}
)

// What a request makes of the key and the variables, from each state that they can be in.
func TestChange(t *testing.T) {
	clear := function.Config{Environment: map[string]string{"A": "1"}, Role: "r"}
	sealed := function.Config{KMSKey: "k", Cipher: []byte("k 1"), Role: "r"}
	for name, tc := range map[string]struct {
		before   function.Config
		after    func(c *function.Config)
		replaced bool
		key      *string
		want     function.Config
		admitted []string
	}{
		"a key": {clear, func(*function.Config) {}, false, new("k"), sealed, []string{"k r"}},
		"a key and variables": {
			clear, func(c *function.Config) { c.Environment = map[string]string{"A": "2"} }, true, new("k"),
			function.Config{KMSKey: "k", Cipher: []byte("k 2")},
			[]string{"k r"},
		},
		"the same key":    {sealed, func(*function.Config) {}, false, new("k"), sealed, []string{"k r"}},
		"another key":     {sealed, func(*function.Config) {}, false, new("l"), function.Config{KMSKey: "l", Cipher: []byte("l 1")}, []string{"l r"}},
		"no key any more": {sealed, func(*function.Config) {}, false, new(""), function.Config{Environment: map[string]string{"A": "1"}}, nil},
		"other variables": {sealed, func(c *function.Config) { c.Environment = map[string]string{"A": "3"} }, true, nil, function.Config{KMSKey: "k", Cipher: []byte("k 3")}, []string{"k r"}},
		"no variables":    {sealed, func(c *function.Config) { c.Environment = map[string]string{} }, true, nil, function.Config{KMSKey: "k", Environment: map[string]string{}}, nil},
		"another role":    {sealed, func(c *function.Config) { c.Role = "s" }, false, nil, sealed, []string{"k s"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := &box{}
			after := tc.before
			tc.after(&after)
			put, undo, err := Change(b, call, fn, Update{Before: tc.before, After: after, Replaced: tc.replaced, Key: tc.key})
			if err != nil {
				t.Fatal(err)
			}
			got := tc.before
			if err := put(&got); err != nil {
				t.Fatal(err)
			}
			if got.KMSKey != tc.want.KMSKey || string(got.Cipher) != string(tc.want.Cipher) || !maps.Equal(got.Environment, tc.want.Environment) {
				t.Errorf("got %q %q %v", got.KMSKey, got.Cipher, got.Environment)
			}
			if len(b.admitted) != len(tc.admitted) || len(b.admitted) > 0 && b.admitted[0] != tc.admitted[0] {
				t.Errorf("admitted %q, want %q", b.admitted, tc.admitted)
			}
			if undo(); len(b.admitted) > 0 {
				t.Errorf("still admitted: %q", b.admitted)
			}
			other := tc.before
			other.Environment, other.Cipher = map[string]string{"A": "meanwhile"}, nil
			if err := put(&other); fault.KindOf(err) != fault.ResourceConflict {
				t.Errorf("what was changed meanwhile: %v", err)
			}
		})
	}
}

// What KMS refuses is reported by Lambda's sentences.
func TestSentences(t *testing.T) {
	denied := fault.New(fault.KMSAccessDenied, "DENIED")
	disabled := kms.ErrDisabled.With("ARN")
	text := func(err error) string { return refusal.Text(err) }
	for _, tc := range []struct{ got, want string }{
		{text(Unreadable(denied)), "Lambda was unable to decrypt the environment variables because KMS access was denied. Please check the function's KMS key settings. KMS Exception: AccessDeniedExceptionKMS Message: DENIED"},
		{text(Unreadable(disabled)), "Lambda was unable to decrypt the environment variables because the KMS key used is disabled. Please check the function's KMS key settings. KMS Exception: DisabledExceptionKMS Message: ARN is disabled."},
		{text(Unreadable(kms.ErrNoKey.With("K"))), "Lambda was unable to decrypt the environment variables because the KMS key was not found. Please check the function's KMS key settings. KMS Exception: NotFoundExceptionKMS Message: Key 'K' does not exist"},
		{text(refused("encrypt", denied)), "Lambda was unable to encrypt your environment variables because the KMS access was denied. Please check your KMS permissions. KMS Exception: AccessDeniedException KMS Message: DENIED"},
		{text(refused("configure access to", denied)), "Lambda was unable to configure access to your environment variables because the KMS key is invalid for CreateGrant. Please check your KMS key settings. KMS Exception: AccessDeniedException KMS Message: DENIED"},
	} {
		if tc.got != tc.want {
			t.Errorf("got  %s\nwant %s", tc.got, tc.want)
		}
	}
	if fault.KindOf(Unreadable(disabled)) != fault.KMSDisabled || fault.KindOf(refused("decrypt", disabled)) != fault.InvalidParameter {
		t.Error("the kinds are lost")
	}
	broken := errors.New("broken")
	if !errors.Is(Unreadable(broken), broken) || !errors.Is(refused("decrypt", broken), broken) {
		t.Error("a failure that is not KMS's refusal is hidden")
	}
	all, failure := Show(&box{fail: map[string]error{"Open": denied}}, call, fn, nil)
	if all != nil || failure == nil || failure.ErrorCode != "AccessDeniedException" {
		t.Errorf("%v, %+v", all, failure)
	}
}
