package banner

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/config"
)

func TestWrite(t *testing.T) {
	const url = "http://127.0.0.1:4567"
	development := config.Config{Data: "./godwit-data", Region: "eu-west-1", Account: "123456789012", Clock: config.SystemClock, Store: config.PebbleStore}
	enforcing := development
	enforcing.Enforce, enforcing.Drawn = true, true
	enforcing.Root.AccessKeyID, enforcing.Root.Secret = "AKIAEXAMPLE", "drawn"
	production := enforcing
	production.Drawn, production.RootKey = false, "/etc/godwit/root.key"
	virtual := development
	virtual.Clock, virtual.Store = config.VirtualClock, config.MemoryStore
	apart := development
	apart.AdminListen = "127.0.0.1:4568"
	for name, tt := range map[string]struct {
		facts      Facts
		want, none []string
	}{
		"development": {
			Facts{Config: development, Took: 12*time.Millisecond + 345},
			[]string{
				"ready on " + url + " (12ms)", "/internal/server/banner/godwit-data (sealed with dev-root.key in it, which protects nothing)\n",
				"export AWS_ENDPOINT_URL=" + url + " AWS_DEFAULT_REGION=eu-west-1 AWS_ACCESS_KEY_ID=test",
				"Console: " + url + "/_godwit/ui/\n", "aws --endpoint-url " + url + " sqs create-queue --queue-name hello\n", "--queue-url " + url + "/123456789012/hello",
			},
			[]string{"Note:", "Clock:", "Callers:"},
		},
		"a key that was drawn": {Facts{Config: enforcing}, []string{"access key is AKIAEXAMPLE\n", "AWS_SECRET_ACCESS_KEY=drawn\n"}, []string{"Try:"}},
		"production":           {Facts{Config: production}, []string{"access key is AKIAEXAMPLE\n"}, []string{"drawn", "protects nothing", "Try:"}},
		"a console elsewhere":  {Facts{Config: apart}, nil, []string{"Console:"}},
		"what else there is to say": {
			Facts{Config: virtual, Warning: "few files", Notices: []string{"one", "two"}},
			[]string{"in memory, gone", "Note:    few files\n", "Clock:   stands still", url + "/_godwit/v1/clock", "\none\ntwo\n"},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			tt.facts.Address = "0.0.0.0:4567"
			var b bytes.Buffer
			Write(&b, tt.facts)
			for _, part := range tt.want {
				if !strings.Contains(b.String(), part) {
					t.Errorf("it lacks %q:\n%s", part, b.String())
				}
			}
			for _, part := range tt.none {
				if strings.Contains(b.String(), part) {
					t.Errorf("it has %q:\n%s", part, b.String())
				}
			}
			if lines := strings.Count(b.String(), "\n"); lines > 9+len(tt.facts.Notices) {
				t.Errorf("%d lines are too many", lines)
			}
		})
	}
}

func TestReachable(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1:4566": "http://127.0.0.1:4566", "0.0.0.0:80": "http://127.0.0.1:80",
		"[::]:80": "http://127.0.0.1:80", "[::1]:80": "http://[::1]:80", "192.0.2.7:1": "http://192.0.2.7:1",
	} {
		if got := Reachable(false, address); got != want {
			t.Errorf("Reachable(%q) = %q, want %q", address, got, want)
		}
	}
}
