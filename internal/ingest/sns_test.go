package ingest_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // SignatureVersion 1
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/ingest"
)

// signer is a topic's owner, with a certificate that is valid for a day.
func signer(t *testing.T) (*rsa.PrivateKey, *x509.Certificate) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key, certificate(t, key, "sns.amazonaws.com")
}

func certificate(t *testing.T, key *rsa.PrivateKey, name string) *x509.Certificate {
	t.Helper()
	cert, err := ingest.ParseCertificate(inPEM(t, key, name))
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func inPEM(t *testing.T, key *rsa.PrivateKey, name string) []byte {
	t.Helper()
	template := &x509.Certificate{Subject: pkix.Name{CommonName: name}, SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func notice(t *testing.T, key *rsa.PrivateKey, version string, change func(m map[string]string)) string {
	t.Helper()
	m := map[string]string{
		"Type": "Notification", "MessageId": "m-1", "TopicArn": topic, "Message": "hello", "Subject": "greeting",
		"Timestamp": now.UTC().Format(time.RFC3339), "SignatureVersion": version, "SigningCertURL": "https://sns.us-east-1.amazonaws.com/SimpleNotificationService.pem",
	}
	text := "Message\nhello\nMessageId\nm-1\nSubject\ngreeting\nTimestamp\n" + m["Timestamp"] + "\nTopicArn\n" + topic + "\nType\nNotification\n"
	hash, sum := crypto.SHA256, sha256.Sum256([]byte(text))
	digest := sum[:]
	if version == "1" {
		short := sha1.Sum([]byte(text)) //nolint:gosec // what version 1 is
		hash, digest = crypto.SHA1, short[:]
	}
	signature, err := rsa.SignPKCS1v15(nil, key, hash, digest)
	if err != nil {
		t.Fatal(err)
	}
	m["Signature"] = base64.StdEncoding.EncodeToString(signature)
	change(m)
	body, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// What a topic of SNS has signed is taken, of the topics that the source names, with
// certificates of the places that it allows; and nothing else.
func TestSNS(t *testing.T) {
	key, cert := signer(t)
	s := source(ingest.SNS)
	s.Verification.Tolerance = 3600
	c := compile(t, s)
	verify := func(at time.Time, body string) error {
		n, err := c.ReadSNS([]byte(body))
		if err != nil {
			return err
		}
		return c.VerifySNS(at, n, cert)
	}
	as := func(map[string]string) {}
	for _, version := range []string{"1", "2"} {
		if err := verify(now, notice(t, key, version, as)); err != nil {
			t.Errorf("version %s: %v", version, err)
		}
	}
	e, err := c.Map(http.Header{}, []byte(notice(t, key, "2", as)))
	if err != nil || e.Body != "hello" || e.ID != "m-1" {
		t.Errorf("%+v, %v", e, err)
	}
	set := func(name, value string) func(m map[string]string) {
		return func(m map[string]string) { m[name] = value }
	}
	for name, test := range map[string]struct {
		body string
		want ingest.Reason
	}{
		"another message":           {notice(t, key, "2", set("Message", "hullo")), ingest.Forged},
		"without its subject":       {notice(t, key, "2", func(m map[string]string) { delete(m, "Subject") }), ingest.Forged},
		"another topic":             {notice(t, key, "2", set("TopicArn", topic+"2")), ingest.Forged},
		"a certificate of somebody": {notice(t, key, "2", set("SigningCertURL", "https://sns.us-east-1.amazonaws.com.example.org/a.pem")), ingest.Forged},
		"without TLS":               {notice(t, key, "2", set("SigningCertURL", "http://sns.us-east-1.amazonaws.com/a.pem")), ingest.Forged},
		"with a user":               {notice(t, key, "2", set("SigningCertURL", "https://x@sns.us-east-1.amazonaws.com/a.pem")), ingest.Forged},
		"another version":           {notice(t, key, "2", set("SignatureVersion", "3")), ingest.Unsigned},
		"raw":                       {"hello", ingest.Unsigned},
		"confirmed elsewhere": {notice(t, key, "2", func(m map[string]string) {
			m["Type"], m["SubscribeURL"] = "SubscriptionConfirmation", "https://example.org/"
		}), ingest.Forged},
	} {
		if got := reason(verify(now, test.body)); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	if got := reason(verify(now.Add(2*time.Hour), notice(t, key, "2", as))); got != ingest.Untimely {
		t.Errorf("two hours later: %q", got)
	}
	if got := reason(verify(now.Add(48*time.Hour), notice(t, key, "2", as))); got != ingest.Uncertified {
		t.Errorf("when the certificate is over: %q", got)
	}
	if _, err := ingest.ParseCertificate([]byte(strings.Repeat("x", 100))); reason(err) != ingest.Uncertified {
		t.Error(err)
	}
}

// Pages of SNS's hosts that are not certificates have text of strangers, certificates included.
func TestCertificatesOfSNSAreAtTheirPath(t *testing.T) {
	key, _ := signer(t)
	s := source(ingest.SNS)
	s.Verification.Origins = []string{"http://127.0.0.1:4566"}
	c := compile(t, s)
	const aws = "https://sns.us-east-1.amazonaws.com"
	for address, want := range map[string]ingest.Reason{
		aws + "/SimpleNotificationService.pem":                                                         "",
		aws + "/SimpleNotificationService-0123456789abcdef0123456789abcdef.pem":                        "",
		"http://127.0.0.1:4566/SimpleNotificationService-0123456789abcdef0123456789abcdef.pem":         "",
		aws + "/?Action=GetEndpointAttributes&EndpointArn=x":                                           ingest.Forged,
		"http://127.0.0.1:4566/?Action=GetEndpointAttributes&EndpointArn=x":                            ingest.Forged,
		"http://127.0.0.1:4566/SimpleNotificationService-0.pem?Action=GetEndpointAttributes":           ingest.Forged,
		"http://127.0.0.1:4566/SimpleNotificationService-0.pem?":                                       ingest.Forged,
		"http://127.0.0.1:4566/SimpleNotificationService-0.pem#x":                                      ingest.Forged,
		"http://127.0.0.1:4566/SimpleNotificationService%2D0.pem":                                      ingest.Forged,
		"http://127.0.0.1:4566/a/SimpleNotificationService-0.pem":                                      ingest.Forged,
		"http://127.0.0.1:4566/SimpleNotificationService-0/../../000000000000/x.pem":                   ingest.Forged,
		"http://127.0.0.1:4567/SimpleNotificationService-0123456789abcdef0123456789abcdef.pem":         ingest.Forged,
		"http://x@127.0.0.1:4566/SimpleNotificationService-0123456789abcdef0123456789abcdef.pem":       ingest.Forged,
		"http://127.0.0.1:4566/SimpleNotificationService-0123456789abcdef0123456789abcdef.pem\n/a.pem": ingest.Forged,
	} {
		_, err := c.ReadSNS([]byte(notice(t, key, "2", func(m map[string]string) { m["SigningCertURL"] = address })))
		if got := reason(err); got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}

func TestCertificatesOfSNSStandAlone(t *testing.T) {
	key, _ := signer(t)
	one := string(inPEM(t, key, "sns.amazonaws.com"))
	for name, text := range map[string]string{"as it is": one, "in white space": "\n " + one + "\r\n\n"} {
		if _, err := ingest.ParseCertificate([]byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, text := range map[string]string{
		"in a page": "<CustomUserData>\n" + one + "</CustomUserData>", "after text": "text\n" + one, "before text": one + "text",
		"two": one + one, "after a broken one": "-----BEGIN CERTIFICATE-----\nx\n" + one,
	} {
		if _, err := ingest.ParseCertificate([]byte(text)); reason(err) != ingest.Uncertified {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCertificatesOfAWSHaveItsNames(t *testing.T) {
	key, _ := signer(t)
	s := source(ingest.SNS)
	s.Verification.Origins = []string{"http://127.0.0.1:4566"}
	c := compile(t, s)
	for _, test := range []struct {
		origin, name string
		want         ingest.Reason
	}{
		{"https://sns.us-east-1.amazonaws.com", "sns.amazonaws.com", ""},
		{"https://sns.eu-south-1.amazonaws.com", "sns-signing.eu-south-1.amazonaws.com", ""},
		{"https://sns.eu-west-1.amazonaws.com", "sns.eu-west-1.amazonaws.com", ""},
		{"https://sns.cn-north-1.amazonaws.com.cn", "sns-cn-north-1.amazonaws.com.cn", ""},
		{"https://sns.us-east-1.amazonaws.com", "example.org", ingest.Uncertified},
		{"https://sns.us-east-1.amazonaws.com", "sns.amazonaws.com.example.org", ingest.Uncertified},
		{"https://sns.us-east-1.amazonaws.com", "", ingest.Uncertified},
		{"http://127.0.0.1:4566", "Godwit", ""}, // it signs its own
	} {
		n, err := c.ReadSNS([]byte(notice(t, key, "2", func(m map[string]string) {
			m["SigningCertURL"] = test.origin + "/SimpleNotificationService-0.pem"
		})))
		if err != nil {
			t.Fatal(err)
		}
		if got := reason(c.VerifySNS(now, n, certificate(t, key, test.name))); got != test.want {
			t.Errorf("%q at %s: %q, want %q", test.name, test.origin, got, test.want)
		}
	}
}

func TestConfirmationsOfSNSDoNothingElse(t *testing.T) {
	key, _ := signer(t)
	c := compile(t, source(ingest.SNS))
	const base = "https://sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn=" + topic + "&Token=0a"
	for address, want := range map[string]ingest.Reason{
		base:                                     "",
		strings.Replace(base, "/?", "?", 1):      "",
		base + "b":                               ingest.Forged,
		base + "&Token=0b":                       ingest.Forged,
		base + "&AuthenticateOnUnsubscribe=true": ingest.Forged,
		base + "&x=%zz":                          ingest.Forged,
		strings.Replace(base, "Confirm", "Un", 1):                         ingest.Forged,
		strings.Replace(base, topic, topic+"2", 1):                        ingest.Forged,
		strings.Replace(base, "/?", "/000000000000/q?", 1):                ingest.Forged,
		"https://sns.us-east-1.amazonaws.com/":                            ingest.Forged,
		"https://sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription": ingest.Forged,
	} {
		_, err := c.ReadSNS([]byte(notice(t, key, "2", func(m map[string]string) {
			m["Type"], m["Token"], m["SubscribeURL"] = "SubscriptionConfirmation", "0a", address
		})))
		if got := reason(err); got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}

// What is verified is what becomes the message: names count in their case, and a signed member
// may be there only once.
func TestSignedMembersOfSNSOccurOnce(t *testing.T) {
	key, _ := signer(t)
	c := compile(t, source(ingest.SNS))
	genuine := notice(t, key, "2", func(map[string]string) {})
	if _, err := c.ReadSNS([]byte(genuine)); err != nil {
		t.Fatal(err)
	}
	other := notice(t, key, "2", func(m map[string]string) { m["Extra"] = "x"; m["UnsubscribeURL"] = "x" })
	if _, err := c.ReadSNS([]byte(other)); err != nil {
		t.Error("with other members:", err)
	}
	rest := strings.TrimPrefix(genuine, "{")
	for _, first := range []string{
		`{"Message":"forged",`, `{"message":"forged",`, `{"MESSAGE":null,`, `{"\u004dessage":"forged",`, `{"messageid":"forged",`, `{"ſubject":"forged",`,
		`{"Type":"Notification",`,
	} {
		if _, err := c.ReadSNS([]byte(first + rest)); reason(err) != ingest.Unsigned {
			t.Errorf("%s: %v", first, err)
		}
		last := strings.TrimSuffix(genuine, "}") + "," + strings.Trim(first, "{,") + "}"
		if _, err := c.ReadSNS([]byte(last)); reason(err) != ingest.Unsigned {
			t.Errorf("%s at the end: %v", first, err)
		}
	}
	renamed := strings.Replace(genuine, `"Message"`, `"message"`, 1)
	for name, body := range map[string]string{"another case": renamed, "two values": genuine + "{}", "an array": "[" + genuine + "]"} {
		if _, err := c.ReadSNS([]byte(body)); reason(err) != ingest.Unsigned {
			t.Errorf("%s: %v", name, err)
		}
	}
}
