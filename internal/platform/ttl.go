package platform

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// DefaultTTL is the lifetime of a message that does not have its own.
const DefaultTTL = 28 * 24 * time.Hour

// AttributePrefix is the prefix of the message attributes for push platforms.
const AttributePrefix = "AWS.SNS.MOBILE."

// TTL is how long after its publish a message may be sent to a platform; set says that the
// message has its own lifetime: in an attribute, whose value is given, or else, for FCM, in its
// body, if that has the platform's form.
func TTL(platform, attribute string, body []byte) (ttl time.Duration, set bool) {
	seconds, err := strconv.ParseInt(attribute, 10, 64)
	if err != nil && platform == FCM && body != nil {
		seconds, err = bodyTTL(body)
	}
	if err != nil || seconds < 0 || seconds > int64(DefaultTTL/time.Second) {
		return DefaultTTL, false
	}
	return time.Duration(seconds) * time.Second, true
}

// bodyTTL is the lifetime in FCM's forms of a message.
func bodyTTL(body []byte) (int64, error) {
	var form struct {
		Legacy *json.Number `json:"time_to_live"`
		V1     struct {
			Message struct {
				Android struct {
					TTL string `json:"ttl"`
				} `json:"android"`
			} `json:"message"`
		} `json:"fcmV1Message"`
	}
	if err := json.Unmarshal(body, &form); err != nil {
		return 0, err
	}
	if form.Legacy != nil {
		return form.Legacy.Int64()
	}
	return strconv.ParseInt(strings.TrimSuffix(form.V1.Message.Android.TTL, "s"), 10, 64)
}
