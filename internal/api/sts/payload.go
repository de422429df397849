package sts

import (
	"encoding/base64"
	"strings"
)

// payloadOf is the payload of a JWT, without a check of its signature.
func payloadOf(token string) ([]byte, bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	return payload, err == nil
}
