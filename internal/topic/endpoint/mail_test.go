package endpoint

import (
	"strings"
	"testing"
)

func TestCheckMail(t *testing.T) {
	for _, good := range []string{
		"a@example.com", "a.b+c@sub.example.co.uk", "!#$%&'*+-/=?^_`{|}~@example.com", "A@EXAMPLE.COM", "1@1.example", "a@x-y.example",
		strings.Repeat("a", 64) + "@example.com",
	} {
		if err := checkMail(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{
		"", "a", "a@", "@example.com", "a@b", "a@@example.com", "a b@example.com", "a@exa mple.com", "a@example.com,b@example.com", "<a@example.com>",
		"a@[127.0.0.1]", "a@127.0.0.1", "a@example.com\n", "a\r\nBcc: x@example.com", "\x00@example.com", ".a@example.com", "a.@example.com",
		"a..b@example.com", `"a"@example.com`, "ü@example.com", "a@exämple.com", "a@-x.com", "a@x-.com", "a@example..com", "a@.com", "a@example.com.",
		strings.Repeat("a", 65) + "@example.com", "a@" + strings.Repeat("x", 64) + ".com", "a@" + strings.Repeat("example.", 40) + "com",
	} {
		if err := checkMail(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func FuzzCheckMail(f *testing.F) {
	f.Add("a@example.com")
	f.Fuzz(func(t *testing.T, address string) {
		if checkMail(address) == nil && (strings.ContainsAny(address, " \t\r\n<>\"(),:;\\[]\x00") || strings.Count(address, "@") != 1) {
			t.Errorf("%q is taken", address)
		}
	})
}
