package sdk_test

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base64"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"

	"godwit.dev/godwit/internal/config"
)

// provider takes text messages by HTTP, as Twilio does, and keeps the forms.
type provider struct {
	mu    sync.Mutex
	forms []url.Values
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	form, _ := url.ParseQuery(string(body))
	p.mu.Lock()
	p.forms = append(p.forms, form)
	n := len(p.forms)
	p.mu.Unlock()
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, `{"sid":"SM`+string(rune('0'+n))+`","status":"queued"}`)
}

func (p *provider) taken() []url.Values {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.forms)
}

// What a provider reports of a message that it had taken is an entry of the delivery status
// log, and counts; a phone that answers STOP is opted out. Who does not sign changes nothing.
func TestTextReceipts(t *testing.T) {
	twilio := &provider{}
	there := httptest.NewServer(twilio)
	t.Cleanup(there.Close)
	file := filepath.Join(t.TempDir(), "sms.json")
	if err := os.WriteFile(file, []byte(`{"preset":"twilio","account":"AC1","secret":"s3cr3t","url":"`+there.URL+`","callback":{"token":"0123456789abcdef"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	endpoint := startWith(t, func(c *config.Config) { c.SMS.HTTP = file })
	c := topicsClient(endpoint)
	const phone, away = "+15551234567", "+15557654321"
	setTexts(t, c, "DeliveryStatusIAMRole", feedbackRole(t, endpoint), "DeliveryStatusSuccessSamplingRate", "100")
	nextMinute(t, endpoint)
	has, hasNot := publishText(t, c, phone, "hello"), publishText(t, c, away, "hello")
	advance(t, endpoint, "5s")
	forms := twilio.taken()
	equal(t, "messages", 2, len(forms))
	address := forms[0].Get("StatusCallback")
	path, ok := strings.CutPrefix(address, endpoint)
	if !ok || path != "/sms-callback/0123456789abcdef" {
		t.Fatalf("the provider is to call %q", address)
	}
	call := func(secret string, fields map[string]string) int {
		t.Helper()
		form, mac := url.Values{}, hmac.New(sha1.New, []byte(secret))
		_, _ = io.WriteString(mac, address)
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			form.Set(name, fields[name])
			_, _ = io.WriteString(mac, name+fields[name])
		}
		r := must(http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(form.Encode())))(t)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("X-Twilio-Signature", base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		answer := must(http.DefaultClient.Do(r))(t)
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	// The order of both messages is not fixed.
	ids := map[string]string{forms[0].Get("To"): "SM1", forms[1].Get("To"): "SM2"}
	equal(t, "a receipt", http.StatusOK, call("s3cr3t", map[string]string{"MessageSid": ids[phone], "MessageStatus": "delivered"}))
	equal(t, "another", http.StatusOK, call("s3cr3t", map[string]string{"MessageSid": ids[away], "MessageStatus": "undelivered", "ErrorCode": "30003"}))
	stop := map[string]string{"MessageSid": "SM9", "SmsStatus": "received", "From": phone, "Body": "Stop"}
	equal(t, "a forged message", http.StatusForbidden, call("another", stop))
	optedOut := func() bool {
		return must(c.CheckIfPhoneNumberIsOptedOut(t.Context(), &sns.CheckIfPhoneNumberIsOptedOutInput{PhoneNumber: aws.String(phone)}))(t).IsOptedOut
	}
	equal(t, "opted out by a forgery", false, optedOut())
	equal(t, "a message", http.StatusOK, call("s3cr3t", stop))
	equal(t, "opted out", true, optedOut())
	equal(t, "another path", http.StatusOK, visit(t, endpoint+"/_godwit/health").Status)
	advance(t, endpoint, "1m")

	said := func(group string) (all []string) {
		for _, e := range statusEntries(t, endpoint, group) {
			d := e["delivery"].(map[string]any)
			ack := ""
			if d["dwellTimeMsUntilDeviceAck"] != nil {
				ack = ", acknowledged"
			}
			all = append(all, e["notification"].(map[string]any)["messageId"].(string)+" "+d["destination"].(string)+" "+d["providerResponse"].(string)+ack)
		}
		slices.Sort(all)
		return all
	}
	const group = "sns/" + region + "/" + account + "/DirectPublishToPhoneNumber"
	want := []string{
		has + " " + phone + " Message has been accepted by phone carrier", has + " " + phone + " Message has been accepted by phone, acknowledged",
		hasNot + " " + away + " Message has been accepted by phone carrier",
	}
	slices.Sort(want)
	equal(t, "the log", want, said(group))
	equal(t, "of failures", []string{hasNot + " " + away + " Phone is currently unreachable/unavailable, acknowledged"}, said(group+"/Failure"))
	equal(t, "failures", 1.0, total(t, endpoint, "AWS/SNS", "NumberOfNotificationsFailed", "PhoneNumber", "Direct"))
}
