package config

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestFlagsHaveNoSecrets(t *testing.T) {
	c := Config{
		Listen: "127.0.0.1:4566", MailRelay: "smtp://anna:hunter2@relay.example", PushFCMURL: "https://push.example/?token=hunter2",
		CORSOrigins: []string{"https://a.example", "https://anna:hunter2@b.example"}, LambdaIdle: 90 * time.Second,
		Root: Root{AccessKeyID: "AKIA", Secret: "hunter2"}, RootKey: "/etc/godwit/root.key", SMS: SMS{Window: 7},
	}
	values := map[string]string{}
	all := c.Flags()
	for _, f := range all {
		if values[f.Name] != "" {
			t.Errorf("%s is there twice", f.Name)
		}
		if values[f.Name] = f.Value; strings.Contains(f.Value, "hunter2") {
			t.Errorf("%s shows a secret: %s", f.Name, f.Value)
		}
		if strings.Contains(f.Default+f.Help, "${") {
			t.Errorf("%s: %q, %q", f.Name, f.Default, f.Help)
		}
	}
	for name, want := range map[string]string{
		"listen": "127.0.0.1:4566", "lambda-idle": "1m30s", "max-connections-per-address": "0", "sms-window": "7", "root-key": "/etc/godwit/root.key",
		"cors-origins": "https://a.example,https://%2A%2A%2A@b.example",
	} {
		if got, ok := values[name]; !ok || got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if slices.IndexFunc(all, func(f Flag) bool { return f.Name == "root" }) >= 0 {
		t.Error("the root user's key is shown")
	}
}
