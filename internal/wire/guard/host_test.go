package guard

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

func TestHosts(t *testing.T) {
	rules := NewRules(Settings{
		AllowedHosts: []string{"Godwit.example.net", "*.Preview.example.net", "absolute.example."},
		Domains:      []string{"queue.example", "compose"}, PublicURL: "http://public.example",
	})
	for host, want := range map[string]bool{
		// addresses
		"127.0.0.1": true, "127.0.0.1:4566": true, "0.0.0.0:4566": true, "192.0.2.1:": true, "[::1]": true, "[::1]:4566": true,
		"[2001:db8::1]:65535": true, "[::ffff:192.0.2.1]": true, "[fe80::1%eth0]:1": false,
		"::1": false, "[::1": false, "[]": false, "[": false, "[127.0.0.1]": false, "[::1]4566": false, "[::1]:x": false, "[localhost]": false,
		"127.1": false, "256.0.0.1": false, "127.0.0.01": false, "127.0.0.1.evil.example": false, "127.0.0.1.": false,
		// names that nobody else can own
		"localhost": true, "LocalHost:4566": true, "localhost.": true, "a.localhost": true, "sqs.us-east-1.localhost.:4566": true,
		"godwit": true, "my_service_1:4566": true, "localstack-main": true, "internal": true,
		"host.docker.internal": true, "ip-10-0-0-1.ec2.internal.": true, "godwit.ns.svc": true, "godwit.ns.svc.cluster.local": true,
		"godwit.ns.svc.cluster.local.:4566": true,
		// others
		"evil.example": false, "evil.example:4566": false, "localhost.evil.example": false, "evillocalhost.example": false,
		"xlocalhost": true /* a name without a dot */, "x.ylocalhost": false, "cluster.local": false, "evil.local": false, "a.svc.evil.example": false,
		"evil.": false, "evil..": false, "localhost..": false, ".localhost": false, "a..localhost": false, ".": false, "..": false,
		"local host": false, "localhost,evil.example": false, "localhost, localhost": false, "evil.example#.localhost": false, "evil.example/.localhost": false,
		"user@localhost": false, "localhost:4566@evil.example": false, "localhost:4566:4566": false, "localhost:http": false,
		"localhost:-1": false, "localhost:123456": false, ":4566": false, ":": false, "": false, "ⓛocalhost": false, "\u212aube.localhost": false,
		"localhost\x00": false, "*": false, "*.localhost": false, "%6cocalhost": false,
		// the operator's
		"godwit.example.net": true, "GODWIT.example.net.:1": true, "x.godwit.example.net": false, "xgodwit.example.net": false,
		"pr-1.preview.example.net": true, "a.b.preview.example.net": true, "preview.example.net": false, "xpreview.example.net": false,
		"absolute.example": true, "absolute.example.": true,
		"queue.example": true, "sqs.eu-west-1.queue.example": true, "xqueue.example": false, "queue.example.evil.example": false,
		"sqs.compose": true, "public.example": true, "a.public.example": true,
	} {
		if got := rules.knows(&Facts{Host: host}); got != want {
			t.Errorf("%q: %v, want %v", host, got, want)
		}
	}
	long := strings.Repeat("a.", 126) + "localhost"
	if rules.knows(&Facts{Host: long}) {
		t.Errorf("a name of %d bytes", len(long))
	}
}

// A name that is let through is an address, has no dot, or ends as one of the names
// that nobody else can own; however it is written.
func FuzzHost(f *testing.F) {
	for _, seed := range []string{"localhost:4566", "[::1]:80", "127.0.0.1", "a.localhost.", "evil.example", "[fe80::1%25x]", "a_b", "user@h", "h:1:2", "..", "[::ffff:1.2.3.4]:x"} {
		f.Add(seed)
	}
	rules := NewRules(Settings{AllowedHosts: []string{"godwit.example.net"}})
	f.Fuzz(func(t *testing.T, s string) {
		if !rules.knows(&Facts{Host: s}) {
			return
		}
		u, err := url.Parse("http://" + strings.ReplaceAll(s, "%", "%25") + "/")
		if err != nil || u.Host == "" || u.User != nil || u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
			t.Fatalf("%q is let through, and is no host of a URL: %v", s, err)
		}
		name := strings.ToLower(u.Hostname())
		if _, err := netip.ParseAddr(name); err == nil {
			return
		}
		absolute := strings.HasSuffix(name, ".")
		name = strings.TrimSuffix(name, ".")
		if !strings.Contains(name, ".") && (!absolute || name == "localhost") || name == "godwit.example.net" {
			return
		}
		for _, end := range []string{".localhost", ".internal", ".svc", ".cluster.local"} {
			if strings.HasSuffix(name, end) {
				return
			}
		}
		t.Fatalf("%q is let through", s)
	})
}

// What is taken for the server's own origin is it by the rules of URLs, too.
func FuzzOrigin(f *testing.F) {
	for _, seed := range []string{"http://localhost:4566", "http://localhost:4566/x", "http://localhost:4566@evil.example", "http:/localhost:4566", "null", `http://localhost:4566\@evil.example`} {
		f.Add(seed, "localhost:4566")
	}
	rules := NewRules(Settings{})
	f.Fuzz(func(t *testing.T, s, host string) {
		facts := &Facts{Host: host}
		if s == "" || !rules.knows(facts) || !rules.ownPages(facts, []string{s}) {
			return
		}
		u, err := url.Parse(strings.ReplaceAll(s[:min(strings.IndexAny(s+"?", "?#"), len(s))], "%", "%25"))
		if err != nil { // as the path may be; the rest is what counts
			return
		}
		port := map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)]
		if got, want := withPort(u.Host, port), withPort(strings.ReplaceAll(host, "%", "%25"), port); !strings.EqualFold(got, want) {
			t.Fatalf("%q is the server's own at %q: %s, %s", s, host, got, want)
		}
	})
}

func withPort(host, port string) string {
	u := url.URL{Host: host}
	if u.Port() == "" {
		return strings.TrimSuffix(host, ":") + ":" + port
	}
	return host
}
