package gateway_test

import (
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/deliver"
	smssender "godwit.dev/godwit/internal/deliver/sms"
	"godwit.dev/godwit/internal/deliver/sms/gateway"
	"godwit.dev/godwit/internal/publicnet"
)

const callbackToken = "0123456789abcdef"

// caller is a gateway that its provider calls, and what it was told.
type caller struct {
	*gateway.Gateway
	told []string
}

func called(t *testing.T, template map[string]any) *caller {
	t.Helper()
	text, err := json.Marshal(template)
	if err != nil {
		t.Fatal(err)
	}
	read, err := gateway.ReadTemplate(text)
	if err != nil {
		t.Fatal(err)
	}
	c := &caller{}
	c.Gateway, err = gateway.New(gateway.Options{
		Template: read, Guard: publicnet.Guard{AllowPrivate: true}, PublicURL: "https://sms.example.com/",
		Received: func(from, text string) { c.told = append(c.told, "from "+from+": "+text) },
		Receipt: func(r smssender.Receipt, state string) {
			c.told = append(c.told, fmt.Sprint(r.ID, " ", state, " ", r.Delivered, " ", r.Response))
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func (c *caller) call(method, kind, body, signature string) (status int, answer string) {
	r := httptest.NewRequest(method, "https://sms.example.com"+c.Path(), strings.NewReader(body))
	r.Header.Set("Content-Type", kind)
	r.Header.Set("X-Twilio-Signature", signature)
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

const formType = "application/x-www-form-urlencoded"

func bySHA1(secret, text string) string {
	mac := hmac.New(sha1.New, []byte(secret))
	mac.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func bySHA256(secret, text string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil))
}

// The example of Twilio's documentation: an address with a query, and its signature.
func TestTwilioExample(t *testing.T) {
	fields := url.Values{"CallSid": {"CA1234567890ABCDE"}, "Caller": {"+14158675309"}, "Digits": {"1234"}, "From": {"+14158675309"}, "To": {"+18005551212"}}
	const address, secret = "https://mycompany.com/myapp.php?foo=1&bar=2", "12345"
	if !gateway.TwilioSigned(address, secret, "RSOYDt4T1cUTdK1PDd93/VVr8B8=", fields) {
		t.Error("it is not taken")
	}
	fields.Set("Digits", "1235")
	if gateway.TwilioSigned(address, secret, "RSOYDt4T1cUTdK1PDd93/VVr8B8=", fields) {
		t.Error("another is")
	}
}

func TestTwilioCalls(t *testing.T) {
	c := called(t, map[string]any{"preset": "twilio", "account": "AC1", "secret": "s3cr3t", "callback": map[string]any{"token": callbackToken}})
	if !c.Called("/sms-callback/"+callbackToken) || c.Called("/sms-callback/") || c.Called("/") {
		t.Error("the path is another")
	}
	sign := func(pairs ...string) (body, signature string) {
		fields, text := url.Values{}, "https://sms.example.com/sms-callback/"+callbackToken
		for i := 0; i < len(pairs); i += 2 {
			fields.Set(pairs[i], pairs[i+1])
			text += pairs[i] + pairs[i+1]
		}
		return fields.Encode(), bySHA1("s3cr3t", text)
	}
	for _, tt := range []struct {
		pairs []string // in the order of names
		want  []string
	}{
		{[]string{"MessageSid", "SM1", "MessageStatus", "sent"}, nil},
		{[]string{"MessageSid", "SM1", "MessageStatus", "delivered"}, []string{"SM1 DELIVRD true "}},
		{[]string{"ErrorCode", "30003", "MessageSid", "SM1", "MessageStatus", "undelivered"}, []string{"SM1 UNDELIV false Phone is currently unreachable/unavailable"}},
		{[]string{"ErrorCode", "21610", "MessageSid", "SM1", "MessageStatus", "failed", "To", "+15551234567"}, []string{"SM1 UNDELIV false Phone number is opted out", "from +15551234567: STOP"}},
		{[]string{"Body", "stop ", "From", "+15551234567", "MessageSid", "SM2", "SmsStatus", "received"}, []string{"from +15551234567: stop "}},
		{[]string{"Body", "arrêter", "From", "+15551234567", "MessageSid", "SM2", "OptOutType", "STOP", "SmsStatus", "received"}, []string{"from +15551234567: STOP"}},
	} {
		c.told = nil
		body, signature := sign(tt.pairs...)
		if status, answer := c.call(http.MethodPost, formType, body, signature); status != http.StatusOK || answer != "<Response/>" || !slices.Equal(c.told, tt.want) {
			t.Errorf("%q: %d %q, told %q", body, status, answer, c.told)
		}
		c.told = nil
		for name, forged := range map[string]string{"no signature": "", "another secret's": bySHA1("s3cr3", body), "garbage": "%"} {
			if status, _ := c.call(http.MethodPost, formType, body, forged); status != http.StatusForbidden || c.told != nil {
				t.Errorf("%s: %d, told %q", name, status, c.told)
			}
		}
		if status, _ := c.call(http.MethodPost, formType, body+"&From=%2B15550000000", signature); status != http.StatusForbidden || c.told != nil {
			t.Errorf("a field more: %d, told %q", status, c.told)
		}
	}
	if status, _ := c.call(http.MethodGet, formType, "", ""); status != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", status)
	}
	if status, _ := c.call(http.MethodPost, formType, strings.Repeat("x", 1<<20), ""); status != http.StatusRequestEntityTooLarge {
		t.Errorf("too long: %d", status)
	}
	if status, _ := c.call(http.MethodPost, formType, "%", ""); status != http.StatusBadRequest {
		t.Errorf("no form: %d", status)
	}
}

func TestVonageCalls(t *testing.T) {
	c := called(t, map[string]any{
		"preset": "vonage", "account": "key", "secret": "other", "callback": map[string]any{"token": callbackToken, "signatureSecret": "s3cr3t"},
	})
	for _, tt := range []struct {
		pairs  []string // in the order of names
		signed string   // what of them is signed
		want   []string
	}{
		{[]string{"err-code", "0", "messageId", "1", "status", "accepted"}, "&err-code=0&messageId=1&status=accepted", nil},
		{[]string{"err-code", "0", "messageId", "1", "status", "delivered"}, "&err-code=0&messageId=1&status=delivered", []string{"1 DELIVRD true "}},
		{[]string{"err-code", "9", "messageId", "1", "status", "failed"}, "&err-code=9&messageId=1&status=failed", []string{"1 UNDELIV false Invalid phone number"}},
		{[]string{"messageId", "2", "msisdn", "15551234567", "text", "a&b=c"}, "&messageId=2&msisdn=15551234567&text=a_b_c", []string{"from +15551234567: a&b=c"}},
		{[]string{"messageId", "2", "msisdn", "15551234567", "text", "STOP"}, "&messageId=2&msisdn=15551234567&text=STOP", []string{"from +15551234567: STOP"}},
	} {
		fields, object := url.Values{"sig": {bySHA256("s3cr3t", tt.signed)}}, map[string]string{"sig": bySHA256("s3cr3t", tt.signed)}
		for i := 0; i < len(tt.pairs); i += 2 {
			fields.Set(tt.pairs[i], tt.pairs[i+1])
			object[tt.pairs[i]] = tt.pairs[i+1]
		}
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		for kind, body := range map[string]string{formType: fields.Encode(), "application/json; charset=utf-8": string(text)} {
			c.told = nil
			if status, _ := c.call(http.MethodPost, kind, body, ""); status != http.StatusOK || !slices.Equal(c.told, tt.want) {
				t.Errorf("%s: %d, told %q", body, status, c.told)
			}
			c.told = nil
			if status, _ := c.call(http.MethodPost, kind, strings.ReplaceAll(body, "sig", "gis"), ""); status != http.StatusForbidden || c.told != nil {
				t.Errorf("without a signature: %d, told %q", status, c.told)
			}
		}
	}
}

// A request names the address, and an answer's id is the receipt's.
func TestCallbackIsAskedFor(t *testing.T) {
	for preset, tt := range map[string]struct{ answer, id, asked string }{
		"twilio": {`{"sid":"SM1","status":"queued"}`, "SM1", "StatusCallback="},
		"vonage": {`{"messages":[{"status":"0","message-id":"7"}]}`, "7", "status-report-req=1&callback="},
	} {
		p := newProvider(t, http.StatusOK, tt.answer)
		c := called(t, map[string]any{
			"preset": preset, "account": "a", "secret": "b", "url": p.URL, "callback": map[string]any{"token": callbackToken, "signatureSecret": "c"},
		})
		got := c.Deliver(t.Context(), text(t, "hello"))
		if got.Class != deliver.Success || !slices.Equal(got.IDs, []string{tt.id}) {
			t.Errorf("%s: %+v", preset, got)
		}
		if sent := string(p.received()[0]); !strings.Contains(sent, tt.asked+"https://sms.example.com/sms-callback/"+callbackToken) {
			t.Errorf("%s is sent %s", preset, sent)
		}
	}
}

func TestCallbackTemplates(t *testing.T) {
	for name, callback := range map[string]string{
		"a short token":  `{"preset":"twilio","account":"a","secret":"b","callback":{"token":"short"}}`,
		"a path":         `{"preset":"twilio","account":"a","secret":"b","callback":{"token":"0123456789abcdef/.."}}`,
		"no secret":      `{"preset":"vonage","account":"a","secret":"b","callback":{"token":"0123456789abcdef"}}`,
		"another method": `{"preset":"vonage","account":"a","secret":"b","callback":{"token":"0123456789abcdef","signatureSecret":"c","signatureMethod":"md5"}}`,
		"no preset":      `{"url":"https://example.com","callback":{"token":"0123456789abcdef"}}`,
	} {
		if _, err := gateway.ReadTemplate([]byte(callback)); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func FuzzCallback(f *testing.F) {
	c, err := gateway.ReadTemplate([]byte(`{"preset":"vonage","account":"a","secret":"b","callback":{"token":"0123456789abcdef","signatureSecret":"c"}}`))
	if err != nil {
		f.Fatal(err)
	}
	told := 0
	g, err := gateway.New(gateway.Options{Template: c, Received: func(string, string) { told++ }, Receipt: func(smssender.Receipt, string) { told++ }})
	if err != nil {
		f.Fatal(err)
	}
	f.Add("application/json", `{"status":"delivered","messageId":1,"sig":"00"}`)
	f.Add(formType, "status=delivered&sig=00")
	f.Fuzz(func(t *testing.T, kind, body string) {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r.Header.Set("Content-Type", kind)
		w := httptest.NewRecorder()
		g.ServeHTTP(w, r)
		if told > 0 || w.Code == http.StatusOK {
			t.Errorf("%q: %d", body, w.Code)
		}
	})
}
