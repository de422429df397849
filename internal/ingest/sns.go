package ingest

import (
	"bytes"
	"crypto"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // SignatureVersion 1 of SNS
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The types of SNS's posts.
const (
	notification   = "Notification"
	confirmation   = "SubscriptionConfirmation"
	unsubscription = "UnsubscribeConfirmation"
)

// FromSNS is a post of SNS, with its signed members.
type FromSNS struct {
	Type             string
	MessageID        string
	TopicARN         string
	Subject          *string
	Message          string
	Timestamp        string
	Token            string
	SubscribeURL     string
	SignatureVersion string
	Signature        string
	SigningCertURL   string
}

// IsNotification reports whether it is a message, not about the subscription.
func (n *FromSNS) IsNotification() bool { return n.Type == notification }

// IsConfirmation reports whether it is a request to confirm the subscription.
func (n *FromSNS) IsConfirmation() bool { return n.Type == confirmation }

// ofAWS matches the hosts of AWS's certificates, in all partitions.
var ofAWS = regexp.MustCompile(`^sns\.[a-z0-9-]+\.amazonaws\.com(\.cn)?$`)

// namesOfAWS matches the names in AWS's certificates, which differ by region. Source: the
// SDK for Java 2, SnsHostProvider.
var namesOfAWS = regexp.MustCompile(`^sns(-signing)?([.-][a-z0-9-]+)?\.amazonaws\.com(\.cn)?$`)

// certificatePath matches the path of a certificate, of AWS and of Godwit. Other pages of the
// same hosts can have text of strangers.
var certificatePath = regexp.MustCompile(`^/SimpleNotificationService(-[A-Za-z0-9]+)?\.pem$`)

// ReadSNS parses a post of SNS, and refuses one of another topic, or with a certificate from
// a foreign host. Errors: *Refusal.
func (c *Compiled) ReadSNS(body []byte) (*FromSNS, error) {
	var n FromSNS
	if !n.read(body) || n.Signature == "" {
		return nil, &Refusal{Unsigned, ErrNoSNS}
	}
	if n.Type != notification && n.Type != confirmation && n.Type != unsubscription {
		return nil, unsigned("Type")
	}
	if !slices.Contains(c.Verification.Topics, n.TopicARN) {
		return nil, &Refusal{Forged, ErrTopic}
	}
	if !c.allowedCertificate(n.SigningCertURL) {
		return nil, &Refusal{Forged, ErrCertificateAddress}
	}
	if n.Type == confirmation && !c.allowedConfirmation(&n) {
		return nil, &Refusal{Forged, ErrConfirmationAddress}
	}
	return &n, nil
}

// read reads the members by their exact names, as Map does. It refuses a body in which one of
// them occurs twice, or in another case too: parsers differ in which of them they take.
func (n *FromSNS) read(body []byte) bool {
	fields := map[string]any{
		"Type": &n.Type, "MessageId": &n.MessageID, "TopicArn": &n.TopicARN, "Subject": &n.Subject, "Message": &n.Message,
		"Timestamp": &n.Timestamp, "Token": &n.Token, "SubscribeURL": &n.SubscribeURL,
		"SignatureVersion": &n.SignatureVersion, "Signature": &n.Signature, "SigningCertURL": &n.SigningCertURL,
	}
	members, ok := membersOf(body)
	if !ok {
		return false
	}
	seen := make(map[string]bool, len(fields))
	for _, m := range members {
		for name, field := range fields {
			if !strings.EqualFold(m.name, name) {
				continue
			}
			if m.name != name || seen[name] || json.Unmarshal(m.value, field) != nil {
				return false
			}
			seen[name] = true
		}
	}
	return true
}

// allowed reports whether an address is of a host of SNS.
func (c *Compiled) allowed(u *url.URL) bool {
	return u.Scheme == "https" && ofAWS.MatchString(u.Host) || slices.Contains(c.Verification.Origins, u.Scheme+"://"+u.Host)
}

// allowedCertificate reports whether an address is one of SNS's certificates: of nothing but
// scheme, host and path.
func (c *Compiled) allowedCertificate(address string) bool {
	u, err := url.Parse(address)
	return err == nil && c.allowed(u) && certificatePath.MatchString(u.Path) && u.Scheme+"://"+u.Host+u.Path == address
}

// allowedConfirmation reports whether the address to fetch does nothing but confirm the
// subscription.
func (c *Compiled) allowedConfirmation(n *FromSNS) bool {
	u, err := url.Parse(n.SubscribeURL)
	if err != nil || !c.allowed(u) || u.User != nil || u.Fragment != "" || u.Path != "" && u.Path != "/" {
		return false
	}
	query, err := url.ParseQuery(u.RawQuery)
	return err == nil && n.Token != "" && maps.EqualFunc(query,
		map[string]string{"Action": "ConfirmSubscription", "TopicArn": n.TopicARN, "Token": n.Token},
		func(given []string, want string) bool { return len(given) == 1 && given[0] == want })
}

// ParseCertificate parses what is at a SigningCertURL: a certificate in PEM form, and nothing
// else.
func ParseCertificate(text []byte) (*x509.Certificate, error) {
	text = bytes.TrimSpace(text)
	block, rest := pem.Decode(text)
	// Decode skips what precedes the block.
	if block == nil || block.Type != "CERTIFICATE" || len(rest) > 0 || !bytes.HasPrefix(text, []byte("-----BEGIN ")) ||
		bytes.Count(text, []byte("-----BEGIN ")) != 1 {
		return nil, &Refusal{Uncertified, ErrNoCertificate}
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, &Refusal{Uncertified, ErrCertificate}
	}
	return cert, nil
}

// issued reports whether a certificate is what its host has. AWS's are of AWS: its files lack the
// intermediate certificate, so that a chain cannot be verified without fetching that too, and
// what vouches for the content is TLS to AWS's host. Others sign their certificates themselves.
func (c *Compiled) issued(n *FromSNS, cert *x509.Certificate) bool {
	u, err := url.Parse(n.SigningCertURL)
	if err != nil {
		return false
	}
	if slices.Contains(c.Verification.Origins, u.Scheme+"://"+u.Host) {
		return true
	}
	names := cert.DNSNames
	if len(names) == 0 {
		names = []string{cert.Subject.CommonName}
	}
	return slices.ContainsFunc(names, namesOfAWS.MatchString)
}

// VerifySNS verifies a result of ReadSNS with the certificate of SigningCertURL. Source: the
// SNS developer guide, "Verifying the signatures of Amazon SNS messages". Errors: *Refusal.
func (c *Compiled) VerifySNS(now time.Time, n *FromSNS, cert *x509.Certificate) error {
	key, ok := cert.PublicKey.(*rsa.PublicKey)
	if !ok || now.Before(cert.NotBefore) || now.After(cert.NotAfter) {
		return &Refusal{Uncertified, ErrCertificateTime}
	}
	if !c.issued(n, cert) {
		return &Refusal{Uncertified, ErrCertificateName}
	}
	given, ok := decoded(n.Signature, inBase64)
	if !ok {
		return unsigned("Signature")
	}
	signed := n.signed()
	var err error
	switch n.SignatureVersion {
	case "1":
		sum := sha1.Sum([]byte(signed)) //nolint:gosec // what version 1 is
		err = rsa.VerifyPKCS1v15(key, crypto.SHA1, sum[:], given)
	case "2":
		sum := sha256.Sum256([]byte(signed))
		err = rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], given)
	default:
		return unsigned("SignatureVersion")
	}
	if err != nil {
		return errForged
	}
	if tolerance := c.Verification.Tolerance; tolerance > 0 {
		at, err := time.Parse(time.RFC3339, n.Timestamp)
		if err != nil {
			return unsigned("Timestamp")
		}
		if now.Sub(at).Abs() > time.Duration(tolerance)*time.Second {
			return &Refusal{Untimely, ErrOld.With(tolerance)}
		}
	}
	return nil
}

// signed is the text that SNS signs.
func (n *FromSNS) signed() string {
	var b strings.Builder
	line := func(name, value string) { b.WriteString(name + "\n" + value + "\n") }
	line("Message", n.Message)
	line("MessageId", n.MessageID)
	if n.Type == notification {
		if n.Subject != nil {
			line("Subject", *n.Subject)
		}
	} else {
		line("SubscribeURL", n.SubscribeURL)
	}
	line("Timestamp", n.Timestamp)
	if n.Type != notification {
		line("Token", n.Token)
	}
	line("TopicArn", n.TopicARN)
	line("Type", n.Type)
	return b.String()
}
