package link_test

import (
	"encoding/base64"
	"testing"
	"time"

	"godwit.dev/godwit/internal/api/lambda/link"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/seal"
)

// TestToken: a token is for one upload until its time, by the key that made it, and cannot
// be changed.
func TestToken(t *testing.T) {
	tokens := func() link.Tokens {
		keys, _, err := seal.NewKeys(seal.NewRoot())
		if err != nil {
			t.Fatal(err)
		}
		return link.New(keys.Sealer(link.Purpose))
	}
	key, other := tokens(), tokens()
	fn := arn.ARN{Service: "lambda", Region: "us-east-1", Account: "000000000000", Resource: "function:f"}
	until := time.Unix(1_767_225_600, 0)
	token, err := key.Token(fn, 7, until)
	if err != nil {
		t.Fatal(err)
	}
	if got, upload, ok := key.Read(token, until.Add(-time.Second)); !ok || got != fn || upload != 7 {
		t.Errorf("%s, upload %d, %v", got, upload, ok)
	}
	if _, _, ok := key.Read(token, until); ok {
		t.Error("good for longer than it is for")
	}
	if _, _, ok := other.Read(token, until.Add(-time.Second)); ok {
		t.Error("good with another key")
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		t.Fatal(err)
	}
	for i := range raw {
		raw[i] ^= 1
		if _, _, ok := key.Read(base64.RawURLEncoding.EncodeToString(raw), until.Add(-time.Hour)); ok {
			t.Errorf("good with byte %d changed", i)
		}
		raw[i] ^= 1
	}
	for _, wrong := range []string{"", "?", token[:40], token + "A"} {
		if _, _, ok := key.Read(wrong, until.Add(-time.Hour)); ok {
			t.Errorf("%q is a token", wrong)
		}
	}
}
