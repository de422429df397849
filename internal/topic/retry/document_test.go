package retry

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/fault"
)

const sample = `{"minDelayTarget":1,"maxDelayTarget":60,"numRetries":50,"numNoDelayRetries":3,"numMinDelayRetries":2,"numMaxDelayRetries":35,"backoffFunction":"exponential"}`

func TestRetryTimeLimit(t *testing.T) {
	document := func(delay int) string {
		return fmt.Sprintf(`{"healthyRetryPolicy":{"minDelayTarget":%d,"maxDelayTarget":%[1]d,"numRetries":100}}`, delay)
	}
	if _, err := ParseSubscription(document(36), false); err != nil {
		t.Errorf("100 retries 36 s apart: %v", err)
	}
	if _, err := ParseSubscription(document(37), false); err == nil {
		t.Error("100 retries 37 s apart were taken")
	}
	for most, ok := range map[int]bool{1200: true, 1201: false} { // 3,600 and 3,601.5 s in all
		policy := fmt.Sprintf(`{"healthyRetryPolicy":{"minDelayTarget":1200,"maxDelayTarget":%d,"numRetries":3}}`, most)
		if _, err := ParseSubscription(policy, false); (err == nil) != ok {
			t.Errorf("3 retries 1,200 to %d s apart: %v", most, err)
		}
	}
}

func TestContentTypes(t *testing.T) {
	for _, tt := range []struct {
		header string
		raw    bool
		ok     bool
	}{
		{"application/json", false, true},
		{"text/plain; charset=UTF-8", false, true},
		{"Application/JSON", false, true},
		{"text/csv", false, false},
		{"text/csv", true, true},
		{"application/x-www-form-urlencoded; charset=UTF-8", true, true},
		{"image/png", true, false},
		{"", true, false},
		{"text/plain; a=~" + strings.Repeat("a", 1024-15), false, true},
		{"text/plain; a=~" + strings.Repeat("a", 1024-14), false, false},
	} {
		_, err := ParseSubscription(fmt.Sprintf(`{"requestPolicy":{"headerContentType":%q}}`, tt.header), tt.raw)
		if (err == nil) != tt.ok {
			t.Errorf("%q, raw %v: %v", tt.header, tt.raw, err)
		}
	}
}

func TestDocuments(t *testing.T) {
	const defaultRetry = `{"minDelayTarget":20,"maxDelayTarget":20,"numRetries":3,"numMaxDelayRetries":0,"numNoDelayRetries":0,"numMinDelayRetries":0,"backoffFunction":"linear"}`
	for _, tt := range []struct{ name, in, stored, effective string }{
		{
			"none", ``, ``,
			`{"http":{"defaultHealthyRetryPolicy":` + defaultRetry + `,"disableSubscriptionOverrides":false,"defaultRequestPolicy":{"headerContentType":"text/plain; charset=UTF-8"}}}`,
		},
		{
			"gaps stay in the stored form",
			`{ "http": {"defaultHealthyRetryPolicy": {"numRetries":4, "minDelayTarget":5, "maxDelayTarget":6}}}`,
			`{"http":{"defaultHealthyRetryPolicy":{"minDelayTarget":5,"maxDelayTarget":6,"numRetries":4},"disableSubscriptionOverrides":false}}`,
			`{"http":{"defaultHealthyRetryPolicy":{"minDelayTarget":5,"maxDelayTarget":6,"numRetries":4,"numMaxDelayRetries":0,"numNoDelayRetries":0,"numMinDelayRetries":0,"backoffFunction":"linear"},"disableSubscriptionOverrides":false,"defaultRequestPolicy":{"headerContentType":"text/plain; charset=UTF-8"}}}`,
		},
		{
			"everything",
			`{"http":{"defaultHealthyRetryPolicy":` + sample + `,"disableSubscriptionOverrides":true,"defaultThrottlePolicy":{"maxReceivesPerSecond":7},"defaultRequestPolicy":{"headerContentType":"application/json"}}}`,
			`{"http":{"defaultHealthyRetryPolicy":{"minDelayTarget":1,"maxDelayTarget":60,"numRetries":50,"numMaxDelayRetries":35,"numNoDelayRetries":3,"numMinDelayRetries":2,"backoffFunction":"exponential"},"disableSubscriptionOverrides":true,"defaultThrottlePolicy":{"maxReceivesPerSecond":7},"defaultRequestPolicy":{"headerContentType":"application/json"}}}`,
			`{"http":{"defaultHealthyRetryPolicy":{"minDelayTarget":1,"maxDelayTarget":60,"numRetries":50,"numMaxDelayRetries":35,"numNoDelayRetries":3,"numMinDelayRetries":2,"backoffFunction":"exponential"},"disableSubscriptionOverrides":true,"defaultThrottlePolicy":{"maxReceivesPerSecond":7},"defaultRequestPolicy":{"headerContentType":"application/json"}}}`,
		},
	} {
		p, err := ParseTopic(tt.in)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if diff := cmp.Diff(tt.stored, p.Document()); diff != "" {
			t.Errorf("%s, stored:\n%s", tt.name, diff)
		}
		if diff := cmp.Diff(tt.effective, p.Effective()); diff != "" {
			t.Errorf("%s, effective:\n%s", tt.name, diff)
		}
	}
}

func TestResolve(t *testing.T) {
	topicRetry := `"defaultHealthyRetryPolicy":{"minDelayTarget":1,"maxDelayTarget":1,"numRetries":1}`
	topicAll := `{"http":{` + topicRetry + `,"defaultThrottlePolicy":{"maxReceivesPerSecond":11},"defaultRequestPolicy":{"headerContentType":"text/plain"}`
	subAll := `{"healthyRetryPolicy":{"minDelayTarget":2,"maxDelayTarget":2,"numRetries":2},"throttlePolicy":{"maxReceivesPerSecond":22},"requestPolicy":{"headerContentType":"text/csv"}}`
	one := Policy{NumRetries: 1, MinDelayTarget: time.Second, MaxDelayTarget: time.Second}
	two := Policy{NumRetries: 2, MinDelayTarget: 2 * time.Second, MaxDelayTarget: 2 * time.Second}
	for _, tt := range []struct {
		name, topic, sub string
		raw              bool
		want             Effective
	}{
		{"neither", ``, ``, false, Effective{DefaultHTTP, 0, DefaultContentType}},
		{"topic", topicAll + `}}`, ``, false, Effective{one, 11, "text/plain"}},
		{"subscription over topic", topicAll + `}}`, subAll, true, Effective{two, 22, "text/csv"}},
		{"part by part", topicAll + `}}`, `{"throttlePolicy":{"maxReceivesPerSecond":22}}`, false, Effective{one, 22, "text/plain"}},
		{"overrides disabled", topicAll + `,"disableSubscriptionOverrides":true}}`, subAll, true, Effective{one, 11, "text/plain"}},
		{"overrides disabled, topic silent", `{"http":{"disableSubscriptionOverrides":true}}`, subAll, true, Effective{DefaultHTTP, 0, DefaultContentType}},
		{"not raw", topicAll + `}}`, `{"throttlePolicy":{"maxReceivesPerSecond":1},"requestPolicy":{"headerContentType":"application/json"}}`, false, Effective{one, 1, "application/json"}},
		{"no longer raw", topicAll + `}}`, subAll, false, Effective{two, 22, "text/plain"}},
	} {
		topic, err := ParseTopic(tt.topic)
		if err != nil {
			t.Fatal(err)
		}
		sub, err := ParseSubscription(tt.sub, true)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, Resolve(topic, sub, tt.raw)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestSubscriptionDocuments(t *testing.T) {
	topic, err := ParseTopic(`{"http":{"defaultThrottlePolicy":{"maxReceivesPerSecond":7}}}`)
	if err != nil {
		t.Fatal(err)
	}
	sub, err := ParseSubscription(`{"healthyRetryPolicy":{"minDelayTarget":5,"maxDelayTarget":6,"numRetries":4},"sicklyRetryPolicy":null}`, false)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"healthyRetryPolicy":{"minDelayTarget":5,"maxDelayTarget":6,"numRetries":4},"sicklyRetryPolicy":null,"throttlePolicy":null,"requestPolicy":null,"guaranteed":false}`
	if diff := cmp.Diff(want, sub.Document()); diff != "" {
		t.Errorf("stored:\n%s", diff)
	}
	want = `{"healthyRetryPolicy":{"minDelayTarget":5,"maxDelayTarget":6,"numRetries":4,"numMaxDelayRetries":0,"numNoDelayRetries":0,"numMinDelayRetries":0,"backoffFunction":"linear"},"sicklyRetryPolicy":null,"throttlePolicy":{"maxReceivesPerSecond":7},"requestPolicy":{"headerContentType":"text/plain; charset=UTF-8"},"guaranteed":false}`
	if diff := cmp.Diff(want, EffectiveDocument(topic, sub, false)); diff != "" {
		t.Errorf("effective:\n%s", diff)
	}
	if got := (*SubscriptionPolicy)(nil).Document(); got != "" {
		t.Errorf("no policy is shown as %s", got)
	}
}

// A schedule may take the greatest total time, in whichever of its phases.
func TestGreatestTotal(t *testing.T) {
	for members, taken := range map[string]bool{
		`"minDelayTarget":36,"maxDelayTarget":36,"numRetries":100`:                                                                    true,
		`"minDelayTarget":3600,"maxDelayTarget":3600,"numRetries":1,"numMaxDelayRetries":1`:                                           true,
		`"minDelayTarget":1,"maxDelayTarget":3599,"numRetries":2,"numMinDelayRetries":1,"numMaxDelayRetries":1`:                       true,
		`"minDelayTarget":1,"maxDelayTarget":3600,"numRetries":2,"numMinDelayRetries":1,"numMaxDelayRetries":1`:                       false,
		`"minDelayTarget":1,"maxDelayTarget":3599,"numRetries":3,"numMinDelayRetries":1,"numMaxDelayRetries":1`:                       false,
		`"minDelayTarget":1,"maxDelayTarget":3599,"numRetries":3,"numNoDelayRetries":1,"numMinDelayRetries":1,"numMaxDelayRetries":1`: true,
	} {
		sub, err := ParseSubscription(`{"healthyRetryPolicy":{`+members+`}}`, false)
		if (err == nil) != taken {
			t.Errorf("%s: %v", members, err)
		}
		if taken && err == nil && Resolve(nil, sub, false).Policy.Total() != maxTotal {
			t.Errorf("%s takes %v", members, Resolve(nil, sub, false).Policy.Total())
		}
	}
}

// What is written reads back to the same policy, and what is refused says so
// as InvalidParameter. No policy that is taken breaks its bounds.
func FuzzParse(f *testing.F) {
	f.Add(`{"http":{"defaultHealthyRetryPolicy":`+sample+`,"disableSubscriptionOverrides":true}}`, false)
	f.Add(`{"healthyRetryPolicy":`+sample+`,"throttlePolicy":{"maxReceivesPerSecond":1},"requestPolicy":{"headerContentType":"text/csv; a=\"<&>\""},"guaranteed":true}`, true)
	f.Add(`{"http":null}`, false)
	f.Add(`{"healthyRetryPolicy":{"minDelayTarget":1e2}}`, false)
	f.Add(strings.Repeat(`{"http":`, 20), false)
	f.Fuzz(func(t *testing.T, document string, raw bool) {
		topic, err := ParseTopic(document)
		if err != nil && fault.KindOf(err) != fault.InvalidParameter {
			t.Fatalf("refused as %v", err)
		}
		if err == nil && topic != nil {
			again, err := ParseTopic(topic.Document())
			if err != nil || again.Document() != topic.Document() || Resolve(again, nil, raw) != Resolve(topic, nil, raw) {
				t.Fatalf("%s reads back as %v (%v)", topic.Document(), again, err)
			}
			if _, err := ParseTopic(topic.Effective()); err != nil {
				t.Fatalf("effective %s: %v", topic.Effective(), err)
			}
		}
		sub, err := ParseSubscription(document, raw)
		if err != nil && fault.KindOf(err) != fault.InvalidParameter {
			t.Fatalf("refused as %v", err)
		}
		if err == nil && sub != nil {
			again, err := ParseSubscription(sub.Document(), raw)
			if err != nil || again.Document() != sub.Document() || Resolve(nil, again, raw) != Resolve(nil, sub, raw) {
				t.Fatalf("%s reads back as %v (%v)", sub.Document(), again, err)
			}
			e := Resolve(nil, sub, raw)
			if e.Policy.NumRetries > maxRetries || e.Policy.Total() > maxTotal || e.Policy.backoffRetries() < 0 {
				t.Fatalf("%s breaks its bounds", sub.Document())
			}
		}
	})
}
