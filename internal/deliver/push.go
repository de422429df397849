package deliver

import (
	"strings"
	"time"

	"godwit.dev/godwit/internal/platform"
	"godwit.dev/godwit/internal/queue/message"
)

// PushAttribute is the value of a message attribute for a push platform, for example TTL;
// empty: there is none.
func PushAttribute(m *message.Message, of, name string) string {
	for i := range m.Attributes {
		if rest, ok := strings.CutPrefix(m.Attributes[i].Name, platform.AttributePrefix); ok && rest == of+"."+name {
			return string(m.Attributes[i].Value)
		}
	}
	return ""
}

// PushTTL is the time to live of a message on a push platform, from its publish; set says
// that the message has the attribute.
func PushTTL(m *message.Message, of string) (ttl time.Duration, set bool) {
	var body []byte
	if m.Notice != nil && m.Notice.Own {
		body = m.Body
	}
	attribute := PushAttribute(m, of, "TTL")
	if attribute == "" && of == platform.FCM {
		attribute = PushAttribute(m, "FCM", "TTL") // AWS's current name
	}
	return platform.TTL(of, attribute, body)
}
