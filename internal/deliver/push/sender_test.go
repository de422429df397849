package pushsender_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/deliver"
	pushsender "godwit.dev/godwit/internal/deliver/push"
	"godwit.dev/godwit/internal/deliver/sendertest"
	"godwit.dev/godwit/internal/platform"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/test/gateways"
)

const (
	team   = "TEAM123456"
	keyID  = "KEY1234567"
	bundle = "dev.godwit.App"
	device = "00fc13adff785122b4ad28809a3420982341241421348097878e577c991de8f0"
)

// endpoints is one endpoint.
type endpoints struct {
	mu       sync.Mutex
	target   shard.PushTarget
	disabled []string // tokens
	told     []string // bodies, for topics
	outage   error
}

func (e *endpoints) PushTarget(arn.ARN) (shard.PushTarget, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.target, nil
}

func (e *endpoints) DisableEndpoint(_ context.Context, _ arn.ARN, token string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.disabled = append(e.disabled, token)
	return nil
}

func (e *endpoints) Injected(arn.ARN) error { return e.outage }

func (e *endpoints) Publish(_ context.Context, _ arn.ARN, all ...shard.Publication) ([]shard.SendResult, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range all {
		e.told = append(e.told, string(p.Body))
	}
	return nil, nil
}

func (e *endpoints) dead() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.disabled...)
}

func targetOf(of, token, principal, credential string) shard.PushTarget {
	return shard.PushTarget{
		Application: arn.PlatformApplication("us-east-1", "000000000000", of, "app"), Platform: of, Token: token, Enabled: true, Sending: true,
		Team: team, Bundle: bundle, Credentials: &shard.PushCredentials{Principal: principal, Credential: credential},
	}
}

// apns is a fake of APNs with a sender to it.
func apns(t *testing.T) (*gateways.APNs, *endpoints, *pushsender.Sender) {
	fake := gateways.NewAPNs(t)
	key, text := gateways.NewECKey()
	fake.Know(team, keyID, &key.PublicKey)
	e := &endpoints{target: targetOf(platform.APNs, device, keyID, text)}
	gateway := pushsender.NewAPNs(fake.URL, pushsender.Connections{AllowPrivate: true, TLS: fake.Trust()})
	t.Cleanup(gateway.Close)
	return fake, e, pushsender.New(pushsender.Options{Endpoints: e, Gateways: map[string]pushsender.Gateway{platform.APNs: gateway}})
}

func fcm(t *testing.T) (*gateways.FCM, *endpoints, *pushsender.Sender) {
	fake := gateways.NewFCM(t)
	e := &endpoints{target: targetOf(platform.FCM, "token-1", "", fake.Account())}
	gateway := pushsender.NewFCM(fake.URL, pushsender.Connections{AllowPrivate: true, TLS: fake.Trust()})
	t.Cleanup(gateway.Close)
	return fake, e, pushsender.New(pushsender.Options{Endpoints: e, Gateways: map[string]pushsender.Gateway{platform.FCM: gateway}})
}

func endpointOf(of string) string {
	return "arn:aws:sns:us-east-1:000000000000:endpoint/" + of + "/app/6d6b8f6e-0000-4000-8000-000000000001"
}

func behaves(b sendertest.Behaviour, fails, refuses gateways.Answer) func(int, string) *gateways.Answer {
	return func(int, string) *gateways.Answer {
		switch b {
		case sendertest.Fails:
			return &fails
		case sendertest.Refuses:
			return &refuses
		case sendertest.Hangs:
			return &gateways.Answer{Hang: true}
		default:
			return nil
		}
	}
}

func bodies(all []gateways.Received) (texts [][]byte) {
	for _, r := range all {
		texts = append(texts, r.Body)
	}
	return texts
}

func TestConformance(t *testing.T) {
	t.Run("APNs", func(t *testing.T) {
		sendertest.Run(t, func(t *testing.T, b sendertest.Behaviour) sendertest.Target {
			fake, _, sender := apns(t)
			fake.Script(behaves(b, gateways.Answer{Status: 503, Body: `{"reason":"ServiceUnavailable"}`}, gateways.Answer{Status: 400, Body: `{"reason":"BadTopic"}`}))
			return sendertest.Target{
				Sender: sender, Protocol: topic.Application, Endpoint: endpointOf(platform.APNs), Received: func() [][]byte { return bodies(fake.Received()) },
			}
		})
	})
	t.Run("FCM", func(t *testing.T) {
		sendertest.Run(t, func(t *testing.T, b sendertest.Behaviour) sendertest.Target {
			fake, _, sender := fcm(t)
			fake.Script(behaves(b, gateways.Answer{Status: 503}, gateways.Answer{Status: 400, Body: gateways.FCMError(400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", "no")}))
			return sendertest.Target{
				Sender: sender, Protocol: topic.Application, Endpoint: endpointOf(platform.FCM), Received: func() [][]byte { return bodies(fake.Received()) },
			}
		})
	})
}

// send makes an attempt at a message.
func send(t *testing.T, s *pushsender.Sender, of string, m message.Message) deliver.Outcome {
	t.Helper()
	r := sendertest.Request(sendertest.Target{Protocol: topic.Application, Endpoint: endpointOf(of)})
	m.ID = message.ID{0xaa, 15: 1}
	if m.Sent == 0 {
		m.Sent = clock.System.Now().UnixMilli()
	}
	if m.Notice == nil {
		m.Notice = &message.Notice{Kind: message.Notification}
	}
	r.Message = &m
	return s.Send(t.Context(), r)
}

func attribute(name, value string) message.Attribute {
	return message.Attribute{Name: name, Type: "String", Value: []byte(value)}
}

func TestAPNsRequest(t *testing.T) {
	fake, _, s := apns(t)
	own := &message.Notice{Kind: message.Notification, Own: true}
	for _, m := range []message.Message{
		{Body: []byte(`say "hi" <ü>`)},
		{Body: []byte(`{"aps":{"alert":"x","badge":1},"id":7}`), Notice: own, Attributes: []message.Attribute{attribute("AWS.SNS.MOBILE.APNS.TTL", "60")}},
		{Body: []byte(`{"aps":{"content-available":1}}`), Notice: own},
		{Body: []byte(`x`), Attributes: []message.Attribute{
			attribute("AWS.SNS.MOBILE.APNS.PUSH_TYPE", "voip"), attribute("AWS.SNS.MOBILE.APNS.PRIORITY", "5"),
			attribute("AWS.SNS.MOBILE.APNS.TOPIC", "other.voip"), attribute("AWS.SNS.MOBILE.APNS.COLLAPSE_ID", "c"), attribute("AWS.SNS.MOBILE.APNS.TTL", "0"),
		}},
		{Body: []byte(`x`), Attributes: []message.Attribute{attribute("AWS.SNS.MOBILE.APNS.PUSH_TYPE", "background")}},
	} {
		if out := send(t, s, platform.APNs, m); out.Class != deliver.Success || out.Status != 200 || out.Provider.Message == "" {
			t.Errorf("%s: %+v", m.Body, out)
		}
	}
	got := fake.Received()
	remote := map[string]bool{}
	for i, want := range []struct{ body, kind, priority, topic, collapse string }{
		{`{"aps":{"alert":"say \"hi\" <ü>"}}`, "alert", "10", bundle, ""},
		{`{"aps":{"alert":"x","badge":1},"id":7}`, "alert", "10", bundle, ""},
		{`{"aps":{"content-available":1}}`, "background", "5", bundle, ""},
		{`{"aps":{"alert":"x"}}`, "voip", "5", "other.voip", "c"},
		{`{"aps":{"alert":"x"}}`, "background", "5", bundle, ""},
	} {
		h := got[i].Header
		if string(got[i].Body) != want.body || h.Get("apns-push-type") != want.kind || h.Get("apns-priority") != want.priority ||
			h.Get("apns-topic") != want.topic || h.Get("apns-collapse-id") != want.collapse || got[i].Token != device || got[i].Proto != "HTTP/2.0" {
			t.Errorf("%d: %s %v", i, got[i].Body, h)
		}
		if h.Get("apns-id") != "aa000000-0000-0000-0000-000000000001" {
			t.Errorf("%d: apns-id %s", i, h.Get("apns-id"))
		}
		remote[got[i].Remote] = true
	}
	if len(remote) != 1 {
		t.Errorf("%d connections", len(remote))
	}
	if e := got[3].Header.Get("apns-expiration"); e != "0" {
		t.Errorf("expires %s", e)
	}
	if out := send(t, s, platform.APNs, message.Message{Body: []byte(`[1]`), Notice: own}); out.Class != deliver.ClientError {
		t.Errorf("no object: %+v", out)
	}
}

// What each answer of APNs leads to.
func TestAPNsAnswers(t *testing.T) {
	fake, e, s := apns(t)
	for _, tt := range []struct {
		status int
		reason string
		class  deliver.Class
		dead   bool
	}{
		{410, "Unregistered", deliver.ClientError, true},
		{410, "ExpiredToken", deliver.ClientError, true},
		{400, "BadDeviceToken", deliver.ClientError, true},
		{400, "DeviceTokenNotForTopic", deliver.ClientError, true},
		{400, "TopicDisallowed", deliver.ClientError, false},
		{404, "BadPath", deliver.ClientError, false},
		{405, "MethodNotAllowed", deliver.ClientError, false},
		{413, "PayloadTooLarge", deliver.ClientError, false},
		{403, "InvalidProviderToken", deliver.ServerError, false},
		{429, "TooManyRequests", deliver.ServerError, false},
		{500, "InternalServerError", deliver.ServerError, false},
		{503, "Shutdown", deliver.ServerError, false},
		{503, sendertest.Secret + " <b>", deliver.ServerError, false},
		{302, "", deliver.ServerError, false},
	} {
		before := len(e.dead())
		fake.Script(func(int, string) *gateways.Answer {
			text, _ := json.Marshal(map[string]string{"reason": tt.reason})
			return &gateways.Answer{Status: tt.status, Body: string(text), Header: map[string]string{"Retry-After": "77"}}
		})
		out := send(t, s, platform.APNs, message.Message{Body: []byte("x")})
		if out.Class != tt.class || out.Status != tt.status || (len(e.dead()) > before) != tt.dead {
			t.Errorf("%d %s: %+v, disabled %v", tt.status, tt.reason, out, e.dead())
		}
		if (out.RetryAfter == 77*time.Second) != (tt.class == deliver.ServerError) {
			t.Errorf("%d %s: retry after %s", tt.status, tt.reason, out.RetryAfter)
		}
		if strings.Contains(out.Detail, sendertest.Secret) || strings.Contains(out.Detail, device) || tt.dead != strings.Contains(out.Detail, platform.SaidInvalidToken) {
			t.Errorf("%d %s: %q", tt.status, tt.reason, out.Detail)
		}
	}
	fake.Script(func(int, string) *gateways.Answer { return &gateways.Answer{Close: true} })
	if out := send(t, s, platform.APNs, message.Message{Body: []byte("x")}); out.Class != deliver.ServerError || len(e.dead()) != 4 {
		t.Errorf("a connection that is lost: %+v", out)
	}
}

// A provider's token is used until it is old, and one that is too new to be made again is
// not, whatever APNs says.
func TestProviderToken(t *testing.T) {
	fake, _, s := apns(t)
	send(t, s, platform.APNs, message.Message{Body: []byte("x")})
	send(t, s, platform.APNs, message.Message{Body: []byte("x")})
	got := fake.Received()
	token := got[0].Header.Get("Authorization")
	if token == "" || token != got[1].Header.Get("Authorization") {
		t.Errorf("%q and %q", token, got[1].Header.Get("Authorization"))
	}
	fake.Expire(strings.TrimPrefix(token, "bearer "))
	out := send(t, s, platform.APNs, message.Message{Body: []byte("x")})
	if got := fake.Received(); out.Class != deliver.ServerError || out.Provider.Code != "ExpiredProviderToken" || len(got) != 3 {
		t.Errorf("%+v after %d requests", out, len(got))
	}
}

func TestAPNsCertificate(t *testing.T) {
	fake, e, s := apns(t)
	certificate, key := gateways.NewCertificate(bundle)
	e.target.Credentials = &shard.PushCredentials{Principal: certificate, Credential: key}
	if out := send(t, s, platform.APNs, message.Message{Body: []byte("x")}); out.Class != deliver.Success {
		t.Errorf("%+v", out)
	}
	if got := fake.Received(); got[0].Header.Get("Authorization") != "" {
		t.Error("it has a token as well")
	}
	for _, c := range []shard.PushCredentials{{Principal: keyID, Credential: "dummy"}, {Principal: certificate, Credential: "dummy"}, {Principal: "", Credential: key}} {
		e.target.Credentials = &c
		if out := send(t, s, platform.APNs, message.Message{Body: []byte("x")}); out.Class != deliver.ServerError {
			t.Errorf("%+v", out)
		}
	}
}

func TestFCMRequest(t *testing.T) {
	fake, _, s := fcm(t)
	own := &message.Notice{Kind: message.Notification, Own: true}
	ttl, byNewName := []message.Attribute{attribute("AWS.SNS.MOBILE.GCM.TTL", "60")}, []message.Attribute{attribute("AWS.SNS.MOBILE.FCM.TTL", "60")}
	for i, tt := range []struct {
		m    message.Message
		want string
	}{
		{message.Message{Body: []byte(`hi <ü>`)}, `{"message":{"data":{"default":"hi <ü>"},"token":"token-1"}}`},
		{message.Message{Body: []byte(`hi`), Attributes: byNewName}, `{"message":{"android":{"ttl":"60s"},"data":{"default":"hi"},"token":"token-1"}}`},
		{message.Message{Body: []byte(`hi`), Attributes: ttl}, `{"message":{"android":{"ttl":"60s"},"data":{"default":"hi"},"token":"token-1"}}`},
		{
			message.Message{Body: []byte(`{"fcmV1Message":{"validate_only":true,"message":{"topic":"all","notification":{"title":"t","body":"b"},"android":{"priority":"HIGH"}}}}`), Notice: own, Attributes: ttl},
			`{"message":{"android":{"priority":"HIGH","ttl":"60s"},"notification":{"body":"b","title":"t"},"token":"token-1"},"validate_only":true}`,
		},
		{
			message.Message{Body: []byte(`{"notification":{"title":"t","body":"b","icon":"i","android_channel_id":"c"},"data":{"a":1,"b":"x","c":{"d":[2]}},"priority":"high","time_to_live":3600,"collapse_key":"k","dry_run":true}`), Notice: own},
			`{"message":{"android":{"collapse_key":"k","notification":{"channel_id":"c","icon":"i"},"priority":"HIGH","ttl":"3600s"},"data":{"a":"1","b":"x","c":"{\"d\":[2]}"},"notification":{"body":"b","title":"t"},"token":"token-1"},"validate_only":true}`,
		},
	} {
		if out := send(t, s, platform.FCM, tt.m); out.Class != deliver.Success || !strings.HasPrefix(out.Provider.Message, "projects/") {
			t.Errorf("%s: %+v", tt.m.Body, out)
			continue
		}
		if got := fake.Received()[i]; string(got.Body) != tt.want || got.Proto != "HTTP/2.0" {
			t.Errorf("%s\nwant %s", got.Body, tt.want)
		}
	}
	if fake.Asked() != 1 {
		t.Errorf("a token was asked for %d times", fake.Asked())
	}
	for _, bad := range []string{`[]`, `{"fcmV1Message":7}`, `{"fcmV1Message":{"message":7}}`, `{"data":7}`, `{"notification":7}`, `{`} {
		if out := send(t, s, platform.FCM, message.Message{Body: []byte(bad), Notice: own}); out.Class != deliver.ClientError {
			t.Errorf("%s: %+v", bad, out)
		}
	}
}

// What each answer of FCM leads to.
func TestFCMAnswers(t *testing.T) {
	fake, e, s := fcm(t)
	const badToken = "The registration token is not a valid FCM registration token"
	for _, tt := range []struct {
		status           int
		name, code, text string
		class            deliver.Class
		dead             bool
	}{
		{404, "NOT_FOUND", "UNREGISTERED", "Requested entity was not found.", deliver.ClientError, true},
		{404, "NOT_FOUND", "", "Requested entity was not found.", deliver.ClientError, false},
		{403, "PERMISSION_DENIED", "SENDER_ID_MISMATCH", "SenderId mismatch", deliver.ClientError, true},
		{403, "PERMISSION_DENIED", "", "no right", deliver.ServerError, false},
		{400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", badToken, deliver.ClientError, true},
		{400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", "Message too big", deliver.ClientError, false},
		{400, "INVALID_ARGUMENT", "", badToken, deliver.ClientError, false},
		{401, "UNAUTHENTICATED", "THIRD_PARTY_AUTH_ERROR", "", deliver.ServerError, false},
		{429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED", "", deliver.ServerError, false},
		{500, "INTERNAL", "INTERNAL", "", deliver.ServerError, false},
		{503, "UNAVAILABLE", "UNAVAILABLE", "", deliver.ServerError, false},
	} {
		before := len(e.dead())
		fake.Script(func(int, string) *gateways.Answer {
			return &gateways.Answer{Status: tt.status, Body: gateways.FCMError(tt.status, tt.name, tt.code, tt.text), Header: map[string]string{"Retry-After": "77"}}
		})
		out := send(t, s, platform.FCM, message.Message{Body: []byte("x")})
		if out.Class != tt.class || out.Status != tt.status || (len(e.dead()) > before) != tt.dead || (out.RetryAfter == 77*time.Second) != (tt.class == deliver.ServerError) {
			t.Errorf("%d %s %s: %+v, disabled %v", tt.status, tt.code, tt.text, out, e.dead())
		}
	}
}

// A token that is refused is asked for again, and a place that gives none is a failure of the
// server's kind; one that may not be asked is the application's fault.
func TestFCMTokens(t *testing.T) {
	fake, e, s := fcm(t)
	send(t, s, platform.FCM, message.Message{Body: []byte("x")})
	fake.Revoke()
	if out := send(t, s, platform.FCM, message.Message{Body: []byte("x")}); out.Class != deliver.ServerError || out.Status != http.StatusUnauthorized {
		t.Errorf("a token that is refused: %+v", out)
	}
	if out := send(t, s, platform.FCM, message.Message{Body: []byte("x")}); out.Class != deliver.Success || fake.Asked() != 2 {
		t.Errorf("after that: %+v, asked %d times", out, fake.Asked())
	}
	account := e.target.Credentials.Credential
	for _, change := range [][2]string{{"sender-0@", "sender-9@"}, {"service_account", "user"}, {account, "AIzaLegacyKey"}} {
		e.target.Credentials = &shard.PushCredentials{Credential: strings.Replace(account, change[0], change[1], 1)}
		if out := send(t, s, platform.FCM, message.Message{Body: []byte("x")}); out.Class != deliver.ServerError || strings.Contains(out.Detail, "PRIVATE") {
			t.Errorf("%v: %+v", change, out)
		}
	}
	guarded := pushsender.NewFCM("https://fcm.googleapis.com", pushsender.Connections{TLS: fake.Trust()})
	t.Cleanup(guarded.Close)
	e.target.Credentials = &shard.PushCredentials{Credential: account}
	strict := pushsender.New(pushsender.Options{Endpoints: e, Gateways: map[string]pushsender.Gateway{platform.FCM: guarded}})
	asked := fake.Asked()
	if out := send(t, strict, platform.FCM, message.Message{Body: []byte("x")}); out.Class != deliver.ClientError || !strings.Contains(out.Detail, "not public") || fake.Asked() != asked {
		t.Errorf("a private token_uri: %+v", out)
	}
}

// What an attempt finds out before it asks anybody.
func TestTargets(t *testing.T) {
	fake, e, s := apns(t)
	whole := e.target
	for detail, change := range map[string]func(){
		platform.SaidDisabled:                           func() { e.target.Enabled = false },
		"Platform application is disabled":              func() { e.target.Sending = false },
		"this server sends nothing to the platform ADM": func() { e.target.Platform = "ADM" },
	} {
		e.target = whole
		change()
		if out := send(t, s, platform.APNs, message.Message{Body: []byte("x")}); out.Class != deliver.ClientError || out.Detail != detail {
			t.Errorf("%s: %+v", detail, out)
		}
	}
	if n := len(fake.Received()); n != 0 {
		t.Errorf("%d requests", n)
	}
	event := message.Message{Body: []byte("{}"), Notice: &message.Notice{Kind: message.PlatformEvent, Topic: "arn:aws:sns:us-east-1:000000000000:t"}}
	if out := send(t, s, platform.APNs, event); out.Class != deliver.Success || len(e.told) != 1 {
		t.Errorf("%+v: %v", out, e.told)
	}
}
