package gateways_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/test/gateways"
	"godwit.dev/godwit/test/programs"
)

// TestForeignClients has clients that others wrote for the services speak to the stand-ins:
// what those take and refuse, in which words, is what the clients know of the services.
func TestForeignClients(t *testing.T) {
	programs.Need(t, "node", "npm")
	modules := install(t)
	apns, fcm := gateways.NewAPNs(t), gateways.NewFCM(t)
	key, text := gateways.NewECKey()
	_, otherKey := gateways.NewECKey()
	_, otherRSA := gateways.NewRSAKey()
	certificate, certificateKey := gateways.NewCertificate("dev.godwit.App")
	const device, gone = "00fc13adff785122b4ad28809a3420982341241421348097878e577c991de8f0", "11fc13adff785122b4ad28809a3420982341241421348097878e577c991de8f0"
	apns.Know("TEAM", "KEY", &key.PublicKey)
	apns.Script(func(_ int, token string) *gateways.Answer {
		if token == gone {
			return &gateways.Answer{Status: http.StatusGone, Body: `{"reason":"Unregistered","timestamp":1}`}
		}
		return nil
	})
	fcm.Script(func(_ int, token string) *gateways.Answer {
		switch token {
		case gone:
			return &gateways.Answer{Status: http.StatusNotFound, Body: gateways.FCMError(404, "NOT_FOUND", "UNREGISTERED", "Requested entity was not found.")}
		case "mismatch":
			return &gateways.Answer{Status: http.StatusForbidden, Body: gateways.FCMError(403, "PERMISSION_DENIED", "SENDER_ID_MISMATCH", "SenderId mismatch")}
		}
		return nil
	})
	given, err := json.Marshal(map[string]string{
		"apns": apns.URL, "fcm": fcm.URL, "key": text, "keyId": "KEY", "team": "TEAM", "otherKey": otherKey, "otherRSA": otherRSA,
		"certificate": certificate, "certificateKey": certificateKey, "device": device, "gone": gone, "account": fcm.Account(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, append(apns.CA(), fcm.CA()...), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", "clients.js")
	cmd.Dir = modules
	cmd.Env = append(os.Environ(), "GODWIT_GATEWAYS="+string(given), "NODE_EXTRA_CA_CERTS="+ca)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, stderr.Bytes())
	}
	var told struct{ APNs, FCM map[string]string }
	if err := json.Unmarshal(out, &told); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range []string{"data", "all"} {
		if !strings.HasPrefix(told.FCM[name], "projects/"+gateways.Project+"/messages/") {
			t.Errorf("FCM, %s: %s", name, told.FCM[name])
		}
		delete(told.FCM, name)
	}
	if diff := cmp.Diff(map[string]string{
		"token": "sent", "certificate": "sent", "another key": "403 InvalidProviderToken", "another team": "403 InvalidProviderToken",
		"no device": "400 BadDeviceToken", "unregistered": "410 Unregistered", "no topic": "400 MissingTopic", "too large": "413 PayloadTooLarge",
		"priority": "400 BadPriority",
	}, told.APNs); diff != "" {
		t.Errorf("APNs:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{
		"another key": "invalid_grant", "unregistered": "messaging/registration-token-not-registered", "mismatch": "messaging/mismatched-credential",
		"no token": "messaging/third-party-auth-error",
	}, told.FCM); diff != "" {
		t.Errorf("FCM:\n%s", diff)
	}
}

// install puts the clients where a lock file says, once for each, and the script beside them.
func install(t *testing.T) (dir string) {
	t.Helper()
	lock, err := os.ReadFile(filepath.Join("node", "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	sum := sha256.Sum256(lock)
	dir = filepath.Join(cache, "godwit-test", "gateways-"+hex.EncodeToString(sum[:8]))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"package.json", "package-lock.json", "clients.js"} {
		text, err := os.ReadFile(filepath.Join("node", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "node_modules", ".package-lock.json")); err == nil {
		return dir
	}
	cmd := exec.CommandContext(t.Context(), "npm", "ci", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		programs.Skip(t, "npm cannot install the clients: "+string(out[max(0, len(out)-200):]))
	}
	return dir
}
