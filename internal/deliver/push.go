package deliver

import (
	"strings"
	"time"

	"godwit.dev/godwit/internal/platform"
	"godwit.dev/godwit/internal/queue/message"
)

// PushAttribute is what a message's attributes say for a push platform, as of TTL; empty:
// nothing.
func PushAttribute(m *message.Message, of, name string) string {
	for i := range m.Attributes {
		if rest, ok := strings.CutPrefix(m.Attributes[i].Name, platform.AttributePrefix); ok && rest == of+"."+name {
			return string(m.Attributes[i].Value)
		}
	}
	return ""
}

// PushTTL is for how long after its publish a message is worth sending to a push platform;
// set says that the message has it.
func PushTTL(m *message.Message, of string) (ttl time.Duration, set bool) {
	var body []byte
	if m.Notice != nil && m.Notice.Own {
		body = m.Body
	}
	attribute := PushAttribute(m, of, "TTL")
	if attribute == "" && of == platform.FCM {
		attribute = PushAttribute(m, "FCM", "TTL") // as AWS calls it by now
	}
	return platform.TTL(of, attribute, body)
}
