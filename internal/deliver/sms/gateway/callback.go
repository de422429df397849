package gateway

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	smssender "godwit.dev/godwit/internal/deliver/sms"
	"godwit.dev/godwit/internal/sms"
)

// Callback configures how a preset's provider reports receipts and messages from phones.
type Callback struct {
	// Token is the secret end of the callback's path: 16 to 128 letters, digits, - and _.
	Token string `json:"token"`
	// SignatureSecret is the secret of Vonage's signatures, by SignatureMethod: sha256, the
	// default, or sha512. Twilio signs with Secret.
	SignatureSecret string `json:"signatureSecret"`
	SignatureMethod string `json:"signatureMethod"`
}

// callbackPath is the prefix of the callback's path.
const callbackPath = "/sms-callback/"

// maxCallback bounds the body of a callback, in bytes.
const maxCallback = 16 << 10

var errCallback = errors.New("callback: want a token of 16 to 128 letters, digits, - and _, and for vonage a signatureSecret with the signatureMethod sha256 or sha512")

func (t *Template) checkCallback() error {
	c := t.Callback
	if c == nil {
		return nil
	}
	const characters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	c.SignatureMethod = cmp.Or(c.SignatureMethod, "sha256")
	switch {
	case t.Preset == "":
		return errors.New("callback: only the presets have one")
	case len(c.Token) < 16 || len(c.Token) > 128 || strings.Trim(c.Token, characters) != "",
		t.Preset == "vonage" && (c.SignatureSecret == "" || hashes[c.SignatureMethod] == nil):
		return errCallback
	}
	return nil
}

var hashes = map[string]func() hash.Hash{"sha256": sha256.New, "sha512": sha512.New}

// report is the content of a provider's callback.
type report struct {
	receipt    smssender.Receipt
	state      string // DELIVRD, …, as in SMPP; empty: not a final state
	optedOut   string // the recipient, if it has opted out
	from, text string // a message from a phone
}

// Path is the callback's path; empty: there is none.
func (g *Gateway) Path() string {
	if g.template.Callback == nil {
		return ""
	}
	return callbackPath + g.template.Callback.Token
}

// Called reports whether a path is the callback's. It takes constant time.
func (g *Gateway) Called(path string) bool {
	return g.Path() != "" && subtle.ConstantTimeCompare([]byte(path), []byte(g.Path())) == 1
}

// ServeHTTP handles a callback. Without a valid signature it changes nothing (403).
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "a provider of text messages posts", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCallback))
	if err != nil {
		http.Error(w, "too long, or broken off", http.StatusRequestEntityTooLarge)
		return
	}
	fields, err := fieldsOf(r.Header.Get("Content-Type"), body)
	if err != nil {
		http.Error(w, "neither a form nor an object of JSON", http.StatusBadRequest)
		return
	}
	var got report
	switch g.template.Preset {
	case "twilio":
		if !twilioSigned(g.callback, g.template.Secret, r.Header.Get("X-Twilio-Signature"), fields) {
			http.Error(w, "not signed by the provider", http.StatusForbidden)
			return
		}
		got = twilioReport(fields)
		w.Header().Set("Content-Type", "text/xml")
	case "vonage":
		c := g.template.Callback
		if !vonageSigned(c.SignatureSecret, hashes[c.SignatureMethod], fields) {
			http.Error(w, "not signed by the provider", http.StatusForbidden)
			return
		}
		got = vonageReport(fields)
		w.Header().Set("Content-Type", "text/plain")
	}
	if got.state != "" && g.receipt != nil {
		g.receipt(got.receipt, got.state)
	}
	// These are durable on return, and so before the answer.
	if got.optedOut != "" && g.received != nil {
		g.received(got.optedOut, stop)
	}
	if got.from != "" && g.received != nil {
		g.received(got.from, got.text)
	}
	w.WriteHeader(http.StatusOK)
	if g.template.Preset == "twilio" {
		_, _ = io.WriteString(w, "<Response/>") // no reply to the phone
	}
}

const stop = "STOP"

// fieldsOf parses a form, or a flat JSON object.
func fieldsOf(contentType string, body []byte) (url.Values, error) {
	if kind, _, err := mime.ParseMediaType(contentType); err != nil || kind != "application/json" {
		return url.ParseQuery(string(body))
	}
	var object map[string]any
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if err := dec.Decode(&object); err != nil {
		return nil, err
	}
	fields := url.Values{}
	for name, v := range object {
		switch v := v.(type) {
		case string:
			fields.Set(name, v)
		case json.Number:
			fields.Set(name, v.String())
		}
	}
	return fields, nil
}

// twilioSigned verifies a request of Twilio. Source: "Security" in Twilio's documentation of
// its usage.
func twilioSigned(address, secret, signature string, fields url.Values) bool {
	mac := hmac.New(sha1.New, []byte(secret))
	_, _ = io.WriteString(mac, address)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		values := slices.Clone(fields[name])
		slices.Sort(values)
		for _, value := range slices.Compact(values) {
			_, _ = io.WriteString(mac, name+value)
		}
	}
	given, err := base64.StdEncoding.DecodeString(signature)
	return err == nil && hmac.Equal(given, mac.Sum(nil))
}

// vonageSigned verifies a request of Vonage. Source: "Signing messages" in Vonage's
// documentation of its SMS API.
func vonageSigned(secret string, by func() hash.Hash, fields url.Values) bool {
	mac := hmac.New(by, []byte(secret))
	plain := strings.NewReplacer("&", "_", "=", "_")
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if name != "sig" {
			_, _ = io.WriteString(mac, "&"+name+"="+plain.Replace(fields.Get(name)))
		}
	}
	given, err := hex.DecodeString(fields.Get("sig"))
	return err == nil && hmac.Equal(given, mac.Sum(nil))
}

// Responses in a delivery status log that only providers report.
const (
	spam       = "Blocked as spam by phone carrier"
	phoneBlock = "Phone has blocked SMS"
	noCarrier  = "Phone carrier is currently unreachable/unavailable"
)

// twilioErrors are the known causes of failures. Source: Twilio's error dictionary.
var twilioErrors = map[string]string{
	"21610": string(sms.OptedOutRefusal), "30003": smssender.PhoneUnreachable, "30004": phoneBlock, "30005": string(sms.BadNumberRefusal),
	"30006": noCarrier, "30007": spam,
}

func twilioReport(f url.Values) (got report) {
	got.receipt.ID = f.Get("MessageSid")
	switch cmp.Or(f.Get("MessageStatus"), f.Get("SmsStatus")) {
	case "delivered", "read":
		got.state, got.receipt.Delivered = "DELIVRD", true
	case "undelivered", "failed":
		got.state, got.receipt.Response = "UNDELIV", twilioErrors[f.Get("ErrorCode")]
		if f.Get("ErrorCode") == "21610" {
			got.optedOut = f.Get("To")
		}
	case "received":
		got.from, got.text = f.Get("From"), f.Get("Body")
		if f.Get("OptOutType") == stop { // independent of the text's language
			got.text = stop
		}
	}
	return got
}

// vonageErrors are the known causes of failures. Source: the codes of delivery receipts in
// Vonage's documentation of its SMS API.
var vonageErrors = map[string]string{
	"2": smssender.PhoneUnreachable, "3": smssender.PhoneUnreachable, "4": phoneBlock, "5": noCarrier, "6": spam, "7": smssender.PhoneUnreachable,
	"8": noCarrier, "9": string(sms.BadNumberRefusal), "10": string(sms.TooLongRefusal), "11": noCarrier, "12": smssender.PhoneUnreachable,
	"13": smssender.CarrierBlocked,
}

// vonageStates are the final states of a message.
var vonageStates = map[string]string{"delivered": "DELIVRD", "expired": "EXPIRED", "failed": "UNDELIV", "rejected": "REJECTD"}

func vonageReport(f url.Values) (got report) {
	if f.Get("status") == "" { // it is a message from a phone
		if f.Get("msisdn") != "" {
			got.from, got.text = "+"+strings.TrimPrefix(f.Get("msisdn"), "+"), f.Get("text")
		}
		return got
	}
	got.receipt.ID, got.state = f.Get("messageId"), vonageStates[f.Get("status")]
	got.receipt.Delivered, got.receipt.Response = got.state == "DELIVRD", vonageErrors[f.Get("err-code")]
	return got
}
