package envelope

import (
	"crypto/sha1" //nolint:gosec // signature version 1 is RSA over SHA-1
	"crypto/sha256"
	"hash"
	"strings"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/queue/message"
)

// SignatureSize is the length of a Signature in an envelope: base64 of the 256 bytes of a
// signature with a 2,048-bit key.
const SignatureSize = 344

// placeholder takes the place of the signature in an envelope.
var placeholder = strings.Repeat("A", SignatureSize)

// digest hashes the members of an envelope that are signed: their decoded names and values,
// ordered by name, each followed by a line feed. Source: the SNS developer guide, "Verifying
// the signatures of Amazon SNS messages".
//
// It is the same for all subscribers of a topic that receive the same text, so that they
// share one signature.
func digest(m *message.Message, o Issuer) []byte {
	n := m.Notice
	var h hash.Hash
	if n.SignatureVersion == 1 {
		h = sha1.New() //nolint:gosec // see the import
	} else {
		h = sha256.New()
	}
	// The Write of a hash never fails.
	_, _ = h.Write([]byte("Message\n"))
	_, _ = h.Write(m.Body)
	rest := make([]byte, 0, 512)
	rest = append(rest, "\nMessageId\n"...)
	rest = append(rest, uuid.UUID(m.ID).String()...)
	if n.Kind == message.Notification {
		if n.Subject != "" {
			rest = append(append(rest, "\nSubject\n"...), n.Subject...)
		}
	} else {
		rest = append(append(rest, "\nSubscribeURL\n"...), subscribeURL(n, o)...)
	}
	rest = append(rest, "\nTimestamp\n"...)
	rest = appendTime(rest, m)
	if n.Kind != message.Notification {
		rest = append(append(rest, "\nToken\n"...), n.Token...)
	}
	rest = append(append(rest, "\nTopicArn\n"...), n.Topic...)
	rest = append(append(rest, "\nType\n"...), Type(n.Kind)...)
	rest = append(rest, '\n')
	_, _ = h.Write(rest)
	return h.Sum(nil)
}
