package pushsender

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"godwit.dev/godwit/internal/deliver"
	"godwit.dev/godwit/internal/platform"
	"godwit.dev/godwit/internal/queue/message"
)

var errPayload = errors.New("push: no payload")

// render renders a message for its platform.
func (n *Notification) render(m *message.Message, now time.Time) error {
	if n.Platform == platform.FCM {
		return n.renderFCM(m, now)
	}
	return n.renderAPNs(m, now)
}

// The headers of a request to APNs. Source: sending notification requests to APNs, in
// Apple's documentation of User Notifications.
const (
	headerTopic      = "apns-topic"
	headerType       = "apns-push-type"
	headerExpiration = "apns-expiration"
	headerPriority   = "apns-priority"
	headerCollapse   = "apns-collapse-id"
	headerID         = "apns-id"
)

func (n *Notification) renderAPNs(m *message.Message, now time.Time) error {
	n.Payload = m.Body
	kind, priority := "alert", "10"
	if m.Notice.Own {
		var form struct {
			APS map[string]json.RawMessage `json:"aps"`
		}
		if json.Unmarshal(m.Body, &form) != nil || !isObject(m.Body) {
			return errPayload
		}
		if _, silent := form.APS["content-available"]; silent && form.APS["alert"] == nil && form.APS["badge"] == nil && form.APS["sound"] == nil {
			kind, priority = "background", "5"
		}
	} else {
		n.Payload = jsonOf(map[string]any{"aps": map[string]string{"alert": string(m.Body)}})
	}
	seconds, _ := left(n.Platform, m, now)
	n.Header = map[string]string{
		headerID: m.ID.String(), headerType: kind, headerPriority: priority,
		headerExpiration: strconv.FormatInt(now.Unix()+seconds, 10),
	}
	if seconds == 0 {
		n.Header[headerExpiration] = "0" // deliver now or never
	}
	if n.Bundle != "" {
		n.Header[headerTopic] = n.Bundle
	}
	given := map[string]bool{}
	for name, header := range map[string]string{"TOPIC": headerTopic, "PUSH_TYPE": headerType, "PRIORITY": headerPriority, "COLLAPSE_ID": headerCollapse} {
		value := deliver.PushAttribute(m, n.Platform, name)
		if value == "" {
			value = deliver.PushAttribute(m, platform.APNs, name)
		}
		if strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c > '~' }) {
			return errPayload
		}
		if value != "" {
			n.Header[header] = value
			given[name] = true
		}
	}
	if n.Header[headerType] == "background" && !given["PRIORITY"] {
		n.Header[headerPriority] = "5" // APNs refuses others
	}
	return nil
}

// renderFCM makes the body of a request to FCM's HTTP v1 API, from a text, from AWS's form
// for that API (fcmV1Message), or from the legacy form of a message.
func (n *Notification) renderFCM(m *message.Message, now time.Time) error {
	var body, msg map[string]any
	switch {
	case !m.Notice.Own:
		msg = map[string]any{"data": map[string]string{"default": string(m.Body)}}
		body = map[string]any{"message": msg}
	case !isObject(m.Body):
		return errPayload
	default:
		var form map[string]any
		dec := json.NewDecoder(bytes.NewReader(m.Body))
		dec.UseNumber()
		if dec.Decode(&form) != nil {
			return errPayload
		}
		var ok bool
		if v1, is := form["fcmV1Message"]; is {
			if body, ok = v1.(map[string]any); !ok {
				return errPayload
			}
			if msg, ok = body["message"].(map[string]any); !ok {
				return errPayload
			}
		} else if body, msg, ok = ofLegacy(form); !ok {
			return errPayload
		}
	}
	delete(msg, "topic") // the message must go to the endpoint only
	delete(msg, "condition")
	msg["token"] = n.Token
	if seconds, set := left(platform.FCM, m, now); set {
		android, ok := msg["android"].(map[string]any)
		if !ok {
			android = map[string]any{}
			msg["android"] = android
		}
		android["ttl"] = strconv.FormatInt(seconds, 10) + "s"
	}
	n.Payload = jsonOf(body)
	return nil
}

// ofLegacy converts a message of FCM's legacy API into one of the v1 API. Source: migrate
// from legacy FCM APIs to HTTP v1, in Firebase's documentation.
func ofLegacy(form map[string]any) (body, msg map[string]any, ok bool) {
	body, msg, android := map[string]any{}, map[string]any{}, map[string]any{}
	body["message"] = msg
	if dry, is := form["dry_run"].(bool); is && dry {
		body["validate_only"] = true
	}
	if data, given := form["data"]; given {
		texts, is := textsOf(data)
		if !is {
			return nil, nil, false
		}
		msg["data"] = texts
	}
	if given, is := form["notification"]; is {
		legacy, is := given.(map[string]any)
		if !is {
			return nil, nil, false
		}
		shown, onAndroid := map[string]any{}, map[string]any{}
		for name, value := range legacy {
			switch name {
			case "title", "body", "image":
				shown[name] = value
			case "android_channel_id":
				onAndroid["channel_id"] = value
			case "icon", "color", "sound", "tag", "click_action", "body_loc_key", "body_loc_args", "title_loc_key", "title_loc_args":
				onAndroid[name] = value
			}
		}
		msg["notification"] = shown
		if len(onAndroid) > 0 {
			android["notification"] = onAndroid
		}
	}
	switch form["priority"] {
	case "high":
		android["priority"] = "HIGH"
	case "normal":
		android["priority"] = "NORMAL"
	}
	for _, name := range [...]string{"collapse_key", "restricted_package_name"} {
		if value, given := form[name]; given {
			android[name] = value
		}
	}
	if len(android) > 0 {
		msg["android"] = android
	}
	return body, msg, true
}

// textsOf are the values of an object as texts, the only type that FCM's v1 API accepts.
func textsOf(v any) (map[string]string, bool) {
	object, ok := v.(map[string]any)
	if !ok {
		return nil, false
	}
	texts := make(map[string]string, len(object))
	for name, value := range object {
		if text, is := value.(string); is {
			texts[name] = text
			continue
		}
		texts[name] = string(jsonOf(value))
	}
	return texts, true
}

func isObject(text []byte) bool {
	text = bytes.TrimLeft(text, " \t\r\n")
	return len(text) > 0 && text[0] == '{' && json.Valid(text)
}

// jsonOf marshals a value that can always be marshalled.
func jsonOf(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // it was parsed from JSON, or has only texts
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
