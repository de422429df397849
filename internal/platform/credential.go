package platform

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"strings"
	"time"
)

// The attributes of an application's credentials that are shown and cannot be set. Source:
// GetPlatformApplicationAttributes in SNS's API.
const (
	attrExpiry = "AppleCertificateExpiryDate"
	attrMethod = "AuthenticationMethod"
)

// OfCredentials are the attributes for the kind of an application's credentials, and the expiry
// of a certificate. Credentials of an unknown form have none.
func OfCredentials(platform, principal, credential string) map[string]string {
	all := map[string]string{}
	switch {
	case platform == FCM:
		var account struct{ Type string }
		if json.Unmarshal([]byte(credential), &account) == nil && account.Type == "service_account" {
			all[attrMethod] = "token"
		}
	case !apple(platform):
	case strings.Contains(principal, "-----BEGIN"):
		all[attrMethod] = "certificate"
		block, _ := pem.Decode([]byte(principal))
		if block == nil {
			break
		}
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
			all[attrExpiry] = certificate.NotAfter.UTC().Format(time.RFC3339)
		}
	case principal != "":
		all[attrMethod] = "token"
	}
	return all
}

// apple reports that a platform is one of Apple's.
func apple(platform string) bool {
	return strings.HasPrefix(platform, APNs) || strings.HasPrefix(platform, "MACOS")
}
