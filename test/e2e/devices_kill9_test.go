package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"godwit.dev/godwit/test/gateways"
)

// sightings are what a phone, or an app on one, was sent: how often by each life of the
// server.
type sightings struct {
	mu    sync.Mutex
	times map[string]map[string]int
}

func (s *sightings) note(body, life string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.times[body] == nil {
		s.times[body] = map[string]int{}
	}
	s.times[body][life]++
}

func (s *sightings) has(body string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.times[body]) > 0
}

// check fails where one life has sent anything twice: every request had its answer, so that
// only the end of a life can have lost one. It answers how often that was.
func (s *sightings) check(t *testing.T) (twice int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for body, lives := range s.times {
		for life, n := range lives {
			if n != 1 {
				t.Errorf("%s was sent %d times by the server of %s", body, n, life)
			}
		}
		twice += len(lives) - 1
	}
	return twice
}

// besiege publishes by several clients while the server is killed again and again, and finds
// what was acknowledged. begin starts the server again, on what there is.
func besiege(t *testing.T, seen *sightings, begin func() *process, target func(p *process) params) {
	t.Helper()
	const writers, rounds = 4, 4
	var sent [writers]int
	var mu sync.Mutex
	var kept []string // what was acknowledged
	p := begin()
	to := target(p)
	for range rounds {
		var clients sync.WaitGroup
		before := len(kept)
		ctx, cancel := context.WithCancel(t.Context())
		for w := range writers {
			clients.Go(func() {
				for {
					body := fmt.Sprintf("message %d-%d", w, sent[w])
					sent[w]++
					in := params{"Message": body}
					maps.Copy(in, to)
					if p.sns(ctx, "Publish", in, nil) != nil {
						return
					}
					mu.Lock()
					kept = append(kept, body)
					mu.Unlock()
				}
			})
		}
		pass(ctx, 400*time.Millisecond)
		eventually(t, "messages are acknowledged", func() (bool, error) {
			mu.Lock()
			defer mu.Unlock()
			return len(kept) > before, nil
		})
		p.kill()
		cancel()
		clients.Wait()
		p = begin()
	}
	eventually(t, "all that was acknowledged is sent", func() (bool, error) {
		for _, body := range kept {
			if !seen.has(body) {
				return false, fmt.Errorf("of %d messages that were acknowledged %s is not sent", len(kept), body)
			}
		}
		return true, nil
	})
	t.Logf("%d messages were acknowledged, %d times one was sent again after an answer that was lost", len(kept), seen.check(t))
}

// TestTextsKill9 kills the server while clients publish to a phone. Each life has a header of
// its own in what it sends.
func TestTextsKill9(t *testing.T) {
	t.Parallel()
	seen := &sightings{times: map[string]map[string]int{}}
	provider := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil { // else it was cut off
			seen.note(string(body), r.Header.Get("X-Life"))
		}
	}))
	t.Cleanup(provider.Close)
	addr, dir, life := freeAddress(t), t.TempDir(), 0
	settings := filepath.Join(dir, "sms.json")
	begin := func() *process {
		life++
		text, err := json.Marshal(map[string]any{"url": provider.URL, "body": "{{.Text}}", "headers": map[string]string{"X-Life": fmt.Sprint(life)}})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(settings, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return startAt(t, addr, filepath.Join(dir, "data"), "--sms-http", settings, "--sms-price", "0")
	}
	besiege(t, seen, begin, func(*process) params { return params{"PhoneNumber": "+15551234567"} })
}

// TestPushesKill9 kills the server while clients publish to an app, by APNs. The token that
// a provider makes is another in each life.
func TestPushesKill9(t *testing.T) {
	t.Parallel()
	seen := &sightings{times: map[string]map[string]int{}}
	apns := gateways.NewAPNs(t)
	key, text := gateways.NewECKey()
	apns.Know("TEAM", "KEY", &key.PublicKey)
	addr, dir := freeAddress(t), t.TempDir()
	ca := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(ca, apns.CA(), 0o600); err != nil {
		t.Fatal(err)
	}
	begin := func() *process {
		return startAt(t, addr, filepath.Join(dir, "data"), "--push-apns-url", apns.URL, "--endpoint-ca", ca)
	}
	apns.Observe(func(r gateways.Received) {
		var payload struct{ APS struct{ Alert string } }
		if r.Status == http.StatusOK && json.Unmarshal(r.Body, &payload) == nil { // else it was cut off
			seen.note(payload.APS.Alert, strings.TrimPrefix(r.Header.Get("Authorization"), "bearer "))
		}
	})
	besiege(t, seen, begin, func(p *process) params {
		var app struct {
			ARN string `xml:"CreatePlatformApplicationResult>PlatformApplicationArn"`
		}
		p.mustSNS(t, "CreatePlatformApplication", params{
			"Name": "shop", "Platform": "APNS", "Attributes.entry.1.key": "PlatformPrincipal", "Attributes.entry.1.value": "KEY",
			"Attributes.entry.2.key": "PlatformCredential", "Attributes.entry.2.value": text, "Attributes.entry.3.key": "ApplePlatformTeamID", "Attributes.entry.3.value": "TEAM",
			"Attributes.entry.4.key": "ApplePlatformBundleID", "Attributes.entry.4.value": "dev.godwit.shop",
		}, &app)
		var device struct {
			ARN string `xml:"CreatePlatformEndpointResult>EndpointArn"`
		}
		p.mustSNS(t, "CreatePlatformEndpoint", params{"PlatformApplicationArn": app.ARN, "Token": strings.Repeat("0a", 32)}, &device)
		return params{"TargetArn": device.ARN}
	})
}
