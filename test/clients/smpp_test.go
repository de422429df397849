package clients_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSMPP: an SMSC that others have written is bound to, sent texts of one part and of
// several, in both alphabets, throttles, and opts a phone out.
func TestSMPP(t *testing.T) {
	t.Parallel()
	dir := nodeDir(t, nodeModules(t, "smpp"), "smsc.js")
	center := exec.CommandContext(t.Context(), "node", "smsc.js")
	center.Dir, center.Stderr = dir, os.Stderr
	in, err := center.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := center.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := center.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = in.Close()
		_ = center.Wait()
	}()
	lines := bufio.NewScanner(out)
	next := func() map[string]any {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("the SMSC has ended: %v", lines.Err())
		}
		var event map[string]any
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		return event
	}
	password := filepath.Join(dir, "password")
	if err := os.WriteFile(password, []byte("s3cr3t\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	smsc := fmt.Sprintf("smpp://godwit@127.0.0.1:%v", next()["port"])
	to, stop, err := startServer(filepath.Join(dir, "data"), "--clock", "virtual", "--jitter", "0", "--sms-smsc", smsc, "--sms-password-file", password, "--sms-from", "Godwit")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if logged := stop(); t.Failed() || strings.Contains(logged, "s3cr3t") {
			t.Errorf("the server logged:\n%s", logged)
		}
	}()
	post := func(path, kind, body string) string {
		t.Helper()
		answer, err := http.Post(to.String()+path, kind, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %s %v", path, answer.StatusCode, text, err)
		}
		return string(text)
	}
	ask := func(action string, pairs ...string) string {
		t.Helper()
		form := url.Values{"Action": {action}, "Version": {"2010-03-31"}}
		for i := 0; i < len(pairs); i += 2 {
			form.Set(pairs[i], pairs[i+1])
		}
		return post("/", "application/x-www-form-urlencoded", form.Encode())
	}
	const phone, other = "+4917012345678", "+4917087654321"
	submitted := func(to, text, header string, coding float64) map[string]any {
		return map[string]any{
			"event": "submit", "from": "Godwit", "to": strings.TrimPrefix(to, "+"), "ton": 1.0, "coding": coding, "receipt": 1.0, "text": text, "header": header,
		}
	}
	same := func(want map[string]any) {
		t.Helper()
		if d := cmp.Diff(want, next()); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
	ask("Publish", "PhoneNumber", phone, "Message", "hello {€}")
	same(map[string]any{"event": "bind", "known": true, "version": 52.0})
	same(map[string]any{"event": "throttled"})
	post("/_godwit/clock", "application/json", `{"advance":"10s"}`)
	same(submitted(phone, "hello {€}", "", 0))
	ask("Publish", "PhoneNumber", phone, "Message", "Привет")
	same(submitted(phone, "Привет", "", 8))

	long := strings.Repeat("a word ", 30)
	ask("Publish", "PhoneNumber", phone, "Message", long)
	whole := map[string]string{}
	for range 2 {
		part := next()
		header, _ := part["header"].(string)
		whole[header[len(header)-4:]], _ = part["text"].(string)
	}
	if whole["0201"]+whole["0202"] != long {
		t.Errorf("the parts are %q", whole)
	}

	ask("Publish", "PhoneNumber", other, "Message", "receipt, please")
	same(submitted(other, "receipt, please", "", 0))
	same(map[string]any{"event": "receipted", "status": 0.0})
	counted, err := http.Get(to.String() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer counted.Body.Close()
	if text, err := io.ReadAll(counted.Body); err != nil || !strings.Contains(string(text), `sms_receipts_total{state="DELIVRD"} 1`) {
		t.Errorf("the receipt is not counted: %v", err)
	}

	if _, err := fmt.Fprintln(in, strings.TrimPrefix(phone, "+")); err != nil {
		t.Fatal(err)
	}
	same(map[string]any{"event": "delivered", "status": 0.0})
	if answer := ask("CheckIfPhoneNumberIsOptedOut", "phoneNumber", phone); !strings.Contains(answer, "<isOptedOut>true</isOptedOut>") {
		t.Errorf("it is not opted out: %s", answer)
	}
	ask("Publish", "PhoneNumber", phone, "Message", "for nobody")
	ask("Publish", "PhoneNumber", other, "Message", "for another")
	same(submitted(other, "for another", "", 0))
}
