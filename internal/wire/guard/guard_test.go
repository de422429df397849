package guard

import (
	"net/http"
	"testing"
)

// facts are those of a GET without any header of a browser, from the same machine.
// The headers are pairs of name and value.
func facts(method, query string, header ...string) *Facts {
	f := &Facts{Method: method, Query: query, Host: "localhost:4566", Peer: "127.0.0.1:50000", Header: http.Header{}}
	for i := 0; i < len(header); i += 2 {
		f.Header.Add(header[i], header[i+1])
	}
	return f
}

func (f *Facts) with(change func(*Facts)) *Facts {
	change(f)
	return f
}

var (
	remote   = func(f *Facts) { f.Peer, f.Host = "192.0.2.1:50000", "192.0.2.7:4566" }
	signed   = func(f *Facts) { f.Verified = true }
	own      = func(f *Facts) { f.Surface = Own }
	profiles = func(f *Facts) { f.Surface = Profiles }
	overTLS  = func(f *Facts) { f.TLS = true }
)

const (
	evil    = "http://evil.example"
	remove  = "Action=DeleteQueue&QueueUrl=x"
	confirm = "Action=ConfirmSubscription&TopicArn=t&Token=s"
	leave   = "Action=Unsubscribe&SubscriptionArn=s"
)

func TestDecide(t *testing.T) {
	rules := NewRules(Settings{
		PublicURL: "https://Public.example:8443/aws/", CORSOrigins: []string{"https://App.example:443", "chrome-extension://abcdef"},
	})
	navigation := []string{headerSite, "cross-site", headerMode, "navigate", headerDest, "document"}
	image := []string{headerSite, "cross-site", headerMode, "no-cors", headerDest, "image"}
	for _, tt := range []struct {
		name string
		f    *Facts
		want Decision
	}{
		// What programs send.
		{"an SDK", facts("POST", ""), Decision{}},
		{"an SDK elsewhere", facts("POST", "").with(remote), Decision{}},
		{"an SDK with a query", facts("DELETE", "Qualifier=1").with(remote), Decision{}},
		{"a read", facts("GET", ""), Decision{}},
		{"a read elsewhere", facts("GET", "Marker=x&MaxItems=3").with(remote), Decision{}},
		{"HEAD", facts("HEAD", "").with(remote), Decision{}},
		{"a read whose name is encoded", facts("GET", "a=%41ction").with(remote), Decision{}},
		{"curl", facts("GET", remove), Decision{}},
		{"curl at IPv6", facts("GET", remove).with(func(f *Facts) { f.Peer, f.Host = "[::1]:1", "[::1]:4566" }), Decision{}},
		{"curl from a mapped address", facts("GET", remove).with(func(f *Facts) { f.Peer = "[::ffff:127.0.0.1]:1" }), Decision{}},
		{"curl at a subdomain", facts("GET", remove).with(func(f *Facts) { f.Host = "sqs.us-east-1.localhost" }), Decision{}},

		// GETs behind which a page may be that hides.
		{"a GET elsewhere", facts("GET", remove).with(remote), Decision{Refused: UnsignedGet}},
		{"a HEAD elsewhere", facts("HEAD", remove).with(remote), Decision{Refused: UnsignedGet}},
		{"a GET elsewhere, signed", facts("GET", remove).with(remote).with(signed), Decision{}},
		{"a GET elsewhere, in disguise", facts("GET", "%41ction=DeleteQueue").with(remote), Decision{Refused: UnsignedGet}},
		{"a GET elsewhere, in another disguise", facts("GET", "A=1&%61=2&").with(remote), Decision{Refused: UnsignedGet}},
		{"a GET elsewhere that only reads", facts("GET", "Action=ListQueues").with(remote), Decision{Refused: UnsignedGet}},
		{"a GET at a name, where browsers send no Sec-Fetch-Site", facts("GET", remove).with(func(f *Facts) { f.Host = "laptop:4566" }), Decision{Refused: UnsignedGet}},
		{"a GET at a mapped address", facts("GET", remove).with(func(f *Facts) { f.Host = "[::ffff:127.0.0.1]:4566" }), Decision{Refused: UnsignedGet}},
		{"a GET to localhost from elsewhere", facts("GET", remove).with(func(f *Facts) { f.Peer = "172.17.0.1:1" }), Decision{Refused: UnsignedGet}},
		{"a GET through a proxy", facts("GET", remove, "X-Forwarded-For", "192.0.2.1"), Decision{Refused: UnsignedGet}},
		{"a GET through another proxy", facts("GET", remove, "Forwarded", "for=192.0.2.1"), Decision{Refused: UnsignedGet}},
		{"a GET from nowhere", facts("GET", remove).with(func(f *Facts) { f.Peer = "" }), Decision{Refused: UnsignedGet}},
		{"a GET with an empty Referer", facts("GET", remove, headerReferer, "").with(remote), Decision{Refused: UnsignedGet}},

		// Origin.
		{"a page of the server", facts("POST", "", headerOrigin, "http://localhost:4566"), Decision{}},
		{"in other case", facts("POST", "", headerOrigin, "http://LOCALHOST:4566"), Decision{}},
		{"another site", facts("POST", "", headerOrigin, evil), Decision{Refused: ForeignOrigin}},
		{"another site, signed", facts("POST", "", headerOrigin, evil).with(signed), Decision{Refused: ForeignOrigin}},
		{"another site, a read", facts("GET", "", headerOrigin, evil), Decision{Refused: ForeignOrigin}},
		{"another site, OPTIONS", facts("OPTIONS", "", headerOrigin, evil, headerMethod, "POST"), Decision{Refused: ForeignOrigin}},
		{"another site, the admin API", facts("POST", "", headerOrigin, evil).with(own), Decision{Refused: ForeignOrigin}},
		{"null", facts("POST", "", headerOrigin, "null"), Decision{Refused: ForeignOrigin}},
		{"empty", facts("POST", "", headerOrigin, ""), Decision{Refused: ForeignOrigin}},
		{"another port", facts("POST", "", headerOrigin, "http://localhost:3000"), Decision{Refused: ForeignOrigin}},
		{"no port", facts("POST", "", headerOrigin, "http://localhost"), Decision{Refused: ForeignOrigin}},
		{"another scheme", facts("POST", "", headerOrigin, "ftp://localhost:4566"), Decision{Refused: ForeignOrigin}},
		{"a longer name", facts("POST", "", headerOrigin, "http://localhost:4566.evil.example"), Decision{Refused: ForeignOrigin}},
		{"a user's name", facts("POST", "", headerOrigin, "http://localhost:4566@evil.example"), Decision{Refused: ForeignOrigin}},
		{"with a path", facts("POST", "", headerOrigin, "http://localhost:4566/"), Decision{Refused: ForeignOrigin}},
		{"no scheme", facts("POST", "", headerOrigin, "localhost:4566"), Decision{Refused: ForeignOrigin}},
		{"two, of which one is the server's", facts("POST", "", headerOrigin, "http://localhost:4566", headerOrigin, evil), Decision{Refused: ForeignOrigin}},
		{"the same machine by another name", facts("POST", "", headerOrigin, "http://127.0.0.1:4566"), Decision{Refused: ForeignOrigin}},
		{"the default port of http", facts("POST", "", headerOrigin, "http://localhost").with(func(f *Facts) { f.Host = "localhost:80" }), Decision{}},
		{"the default port of https behind a proxy", facts("POST", "", headerOrigin, "https://godwit").with(func(f *Facts) { f.Host = "godwit" }), Decision{}},
		{"https over TLS", facts("POST", "", headerOrigin, "https://localhost:4566").with(overTLS), Decision{}},
		{"http over TLS", facts("POST", "", headerOrigin, "http://localhost:4566").with(overTLS), Decision{Refused: ForeignOrigin}},
		{"the public URL, behind a proxy that changes Host", facts("POST", "", headerOrigin, "https://public.example:8443"), Decision{}},
		{"the public URL at another port", facts("POST", "", headerOrigin, "https://public.example"), Decision{Refused: ForeignOrigin}},
		{"the public URL without TLS", facts("POST", "", headerOrigin, "http://public.example:8443"), Decision{Refused: ForeignOrigin}},
		{"below the public URL", facts("POST", "", headerOrigin, "https://evil.public.example:8443"), Decision{Refused: ForeignOrigin}},

		// Sec-Fetch-Site.
		{"same-origin", facts("POST", "", headerSite, "same-origin"), Decision{}},
		{"none", facts("GET", remove, headerSite, "none").with(remote), Decision{}},
		{"cross-site", facts("POST", "", headerSite, "cross-site"), Decision{Refused: ForeignSite}},
		{"same-site", facts("POST", "", headerSite, "same-site"), Decision{Refused: ForeignSite}},
		{"an unknown site", facts("POST", "", headerSite, "Same-Origin"), Decision{Refused: ForeignSite}},
		{"an empty site", facts("POST", "", headerSite, ""), Decision{Refused: ForeignSite}},
		{"two sites", facts("POST", "", headerSite, "same-origin", headerSite, "cross-site"), Decision{Refused: ForeignSite}},
		{"a site that its Origin belies", facts("POST", "", headerSite, "same-origin", headerOrigin, evil), Decision{Refused: ForeignOrigin}},
		{"cross-site, signed", facts("GET", remove, image...).with(signed), Decision{Refused: ForeignSite}},
		{"a form that is sent by another site", facts("POST", "", navigation...), Decision{Refused: ForeignSite}},
		{"an image", facts("GET", remove, image...), Decision{Refused: ForeignSite}},
		{"a link that acts", facts("GET", remove, navigation...), Decision{Refused: ForeignSite}},
		{"a script that is read", facts("GET", "", image...), Decision{Refused: ForeignSite}},
		{"a link that reads", facts("GET", "", navigation...), Decision{}},
		{"a link to the console", facts("GET", "tab=1", append(navigation, headerReferer, evil)...).with(own), Decision{}},
		{"a link to a profile", facts("GET", "seconds=30", navigation...).with(profiles), Decision{Refused: ForeignSite}},
		{"a profile by hand", facts("GET", "seconds=30").with(remote).with(profiles), Decision{}},

		// Referer.
		{"its own page", facts("GET", remove, headerReferer, "http://localhost:4566/_godwit/ui/?x=http://a"), Decision{}},
		{"its own page, elsewhere", facts("GET", remove, headerReferer, "http://192.0.2.7:4566/").with(remote), Decision{}},
		{"another page", facts("GET", remove, headerReferer, evil+"/"), Decision{Refused: ForeignPage}},
		{"another page, signed", facts("GET", remove, headerReferer, evil+"/").with(signed), Decision{Refused: ForeignPage}},
		{"another page, a form", facts("POST", "", headerReferer, evil), Decision{Refused: ForeignPage}},
		{"another page, a read", facts("GET", "", headerReferer, evil), Decision{}},
		{"a page that poses", facts("GET", remove, headerReferer, evil+"/http://localhost:4566/"), Decision{Refused: ForeignPage}},
		{"a page of a user that poses", facts("GET", remove, headerReferer, "http://localhost:4566@evil.example/"), Decision{Refused: ForeignPage}},
		{"an app", facts("GET", remove, headerReferer, "android-app://com.mail"), Decision{Refused: ForeignPage}},

		// Links in messages.
		{"a confirmation", facts("GET", confirm, headerSite, "cross-site", headerReferer, evil).with(remote), Decision{}},
		{"a confirmation, by a page", facts("GET", confirm, headerOrigin, evil), Decision{}},
		{"a confirmation without a token", facts("GET", "Action=ConfirmSubscription&TopicArn=t&Token=").with(remote), Decision{Refused: UnsignedGet}},
		{"a confirmation by POST", facts("POST", confirm, headerOrigin, evil), Decision{Refused: ForeignOrigin}},
		{"a confirmation with two actions", facts("GET", remove+"&"+confirm).with(remote), Decision{Refused: UnsignedGet}},
		{"a confirmation with two actions, turned", facts("GET", confirm+"&"+remove).with(remote), Decision{Refused: UnsignedGet}},
		{"a confirmation with a hidden action", facts("GET", "%41ction=DeleteQueue&"+confirm).with(remote), Decision{Refused: UnsignedGet}},
		{"a confirmation with an action in small letters", facts("GET", "action=DeleteQueue&"+confirm).with(remote), Decision{Refused: UnsignedGet}},
		{"a confirmation in small letters", facts("GET", "action=ConfirmSubscription&Token=x").with(remote), Decision{Refused: UnsignedGet}},
		{"a confirmation at a name that is not known", facts("GET", confirm).with(func(f *Facts) { f.Host = "evil.example" }), Decision{Refused: UnknownHost}},
		{"a profile that poses as a confirmation", facts("GET", confirm, image...).with(profiles), Decision{Refused: ForeignSite}},
		{"leaving", facts("GET", leave).with(remote), Decision{}},
		{"leaving, from web mail", facts("GET", leave, append(navigation, headerReferer, "https://mail.example/")...).with(remote), Decision{}},
		{"leaving nothing", facts("GET", "Action=Unsubscribe&SubscriptionArn=").with(remote), Decision{Refused: UnsignedGet}},
		{"a profile that poses as leaving", facts("GET", leave, navigation...).with(profiles), Decision{Refused: ForeignSite}},
		{"leaving, in a frame", facts("GET", leave, headerSite, "cross-site", headerMode, "navigate", headerDest, "iframe"), Decision{Refused: ForeignSite}},
		{"leaving, as an image", facts("GET", leave, image...), Decision{Refused: ForeignSite}},
		{"leaving, by a page", facts("GET", leave, headerReferer, evil), Decision{Refused: ForeignPage}},
		{"leaving, by a script", facts("GET", leave, headerOrigin, evil), Decision{Refused: ForeignOrigin}},
		{"leaving, with another action", facts("GET", leave+"&Action=DeleteTopic", navigation...), Decision{Refused: ForeignSite}},

		// CORS.
		{"a listed origin", facts("POST", "", headerOrigin, "https://app.example", headerSite, "cross-site", headerReferer, "https://app.example/"), Decision{Origin: "https://app.example"}},
		{"a listed origin, a read", facts("GET", "", headerOrigin, "https://app.example").with(own), Decision{Origin: "https://app.example"}},
		{"a listed extension", facts("POST", "", headerOrigin, "chrome-extension://abcdef"), Decision{Origin: "chrome-extension://abcdef"}},
		{"a preflight", facts("OPTIONS", "", headerOrigin, "https://app.example", headerMethod, "POST"), Decision{Origin: "https://app.example", Preflight: true}},
		{"OPTIONS that is no preflight", facts("OPTIONS", "", headerOrigin, "https://app.example"), Decision{Origin: "https://app.example"}},
		{"a POST that looks like a preflight", facts("POST", "", headerOrigin, "https://app.example", headerMethod, "POST"), Decision{Origin: "https://app.example"}},
		{"a listed origin at a name that is not known", facts("POST", "", headerOrigin, "https://app.example").with(func(f *Facts) { f.Host = "evil.example" }), Decision{Refused: UnknownHost}},
		{"a listed origin and another", facts("POST", "", headerOrigin, "https://app.example", headerOrigin, evil), Decision{Refused: ForeignOrigin}},
		{"a listed origin without TLS", facts("POST", "", headerOrigin, "http://app.example"), Decision{Refused: ForeignOrigin}},
		{"a listed origin's image", facts("GET", remove, headerSite, "cross-site", headerReferer, "https://app.example/"), Decision{Refused: ForeignSite}},
		{"a listed origin and profiles", facts("GET", "", headerOrigin, "https://app.example").with(profiles), Decision{Refused: ForeignOrigin}},

		// Host, and what stands in for it.
		{"a name that is not known", facts("POST", "").with(func(f *Facts) { f.Host = "evil.example" }), Decision{Refused: UnknownHost}},
		{"rebound", facts("POST", "", headerOrigin, evil, headerSite, "same-origin").with(func(f *Facts) { f.Host = "evil.example" }).with(own), Decision{Refused: UnknownHost}},
		{"the public name", facts("POST", "").with(func(f *Facts) { f.Host = "sqs.eu-west-1.public.example" }), Decision{}},
		{"a signed name", facts("POST", "").with(signed).with(func(f *Facts) { f.Host = "evil.example" }), Decision{}},
		{"a signed name and the admin API", facts("POST", "").with(signed).with(own).with(func(f *Facts) { f.Host = "evil.example" }), Decision{Refused: UnknownHost}},
		{"a signed name of another site", facts("POST", "", headerOrigin, "http://other.example").with(signed).with(func(f *Facts) { f.Host = "evil.example" }), Decision{Refused: ForeignOrigin}},
		{"no Host", facts("POST", "").with(func(f *Facts) { f.Host = "" }), Decision{Refused: UnknownHost}},
		{"no Host, a probe", facts("GET", "").with(func(f *Facts) { f.Host, f.Surface = "", Probe }), Decision{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := rules.Decide(tt.f); got != tt.want {
				t.Errorf("%+v\ngot  %+v\nwant %+v", *tt.f, got, tt.want)
			}
		})
	}
}

func TestUnsignedGetsThatAreAllowed(t *testing.T) {
	rules := NewRules(Settings{AllowUnsignedGet: true})
	if v := rules.Decide(facts("GET", remove).with(remote)); v != (Decision{}) {
		t.Errorf("%+v", v)
	}
	if v := rules.Decide(facts("GET", remove, headerReferer, evil).with(remote)); v.Refused != ForeignPage {
		t.Errorf("another page: %+v", v)
	}
}

// Whatever is listed wrongly lets nobody in.
func TestListsThatMatchNothing(t *testing.T) {
	rules := NewRules(Settings{
		CORSOrigins: []string{"*", "null", "", "http://*", "https://a.example/", "a.example"}, PublicURL: "null",
		AllowedHosts: []string{"*", "", "*.", ".", "*evil.example"}, Domains: []string{"", ".", "10.0.0.1"},
	})
	for _, origin := range []string{"*", "null", "", "http://*", "https://a.example", "https://a.example/", "a.example"} {
		if v := rules.Decide(facts("POST", "", headerOrigin, origin)); v.Refused != ForeignOrigin {
			t.Errorf("%q: %+v", origin, v)
		}
	}
	for _, host := range []string{"evil.example", "*", "*.", ".", "x.10.0.0.1", "x."} {
		if v := rules.Decide(facts("POST", "").with(func(f *Facts) { f.Host = host })); v.Refused != UnknownHost {
			t.Errorf("%q: %+v", host, v)
		}
	}
}

// ordinary is a request of an SDK.
func ordinary(host string) *Facts {
	f := facts("POST", "", "Authorization", "AWS4-HMAC-SHA256 …", "Content-Type", "application/x-amz-json-1.0",
		"X-Amz-Target", "AmazonSQS.SendMessage", "X-Amz-Date", "20150830T123600Z", "User-Agent", "aws-sdk-go-v2", "Content-Length", "100")
	f.Host = host
	return f
}

func TestOrdinaryRequestsTakeNoMemory(t *testing.T) {
	rules := NewRules(Settings{AllowedHosts: []string{"godwit.example.com"}, CORSOrigins: []string{"http://localhost:3000"}})
	for _, host := range []string{"127.0.0.1:4566", "localhost:4566", "godwit", "[::1]:4566", "godwit.default.svc.cluster.local:4566", "godwit.example.com"} {
		f := ordinary(host)
		var v Decision
		if n := testing.AllocsPerRun(100, func() { v = rules.Decide(f) }); n != 0 || v != (Decision{}) {
			t.Errorf("%s: %v allocations, %+v", host, n, v)
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	rules := NewRules(Settings{AllowedHosts: []string{"godwit.example.com"}, CORSOrigins: []string{"http://localhost:3000"}})
	for _, host := range []string{"127.0.0.1:4566", "localhost:4566", "godwit.default.svc.cluster.local:4566", "godwit.example.com"} {
		b.Run(host, func(b *testing.B) {
			f := ordinary(host)
			b.ReportAllocs()
			for b.Loop() {
				if v := rules.Decide(f); v.Refused != "" {
					b.Fatal(v)
				}
			}
		})
	}
}
