package e2e_test

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/smithy-go"

	"godwit.dev/godwit/test/programs"
	"godwit.dev/godwit/test/sdkhttp"
)

func (p *production) sns(s *process) *sns.Client {
	return sns.New(sns.Options{
		Region: region, BaseEndpoint: aws.String(s.base), HTTPClient: sdkhttp.Of(s.http), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider(p.AccessKeyID, p.SecretAccessKey, ""),
	})
}

// Where mails go nowhere, nobody subscribes by mail, and the pages of links answer who has
// no key.
func TestServeNeedsARelayForMails(t *testing.T) {
	p := initialise(t)
	s := p.serve(t, freeAddress(t), nil)
	c := p.sns(s)
	topic, err := c.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: aws.String("t")})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Subscribe(t.Context(), &sns.SubscribeInput{TopicArn: topic.TopicArn, Protocol: aws.String("email"), Endpoint: aws.String("a@example.com")})
	refused, ok := errors.AsType[smithy.APIError](err)
	if !ok || refused.ErrorCode() != "InvalidParameter" || !strings.Contains(refused.ErrorMessage(), "--mail-relay") {
		t.Errorf("%v", err)
	}
	r, err := s.call(t.Context(), http.MethodGet, "/confirmation.html?Token=x&TopicArn="+url.QueryEscape(*topic.TopicArn), nil, nil)
	if err != nil || r.status != http.StatusOK {
		t.Errorf("%d %v", r.status, err)
	}
	if r, err := s.call(t.Context(), http.MethodGet, "/_godwit/outbox", nil, nil); err != nil || r.status != http.StatusForbidden {
		t.Errorf("%d %v", r.status, err)
	}
}

// postfix starts Debian's as a relay that hands every mail to a program, which writes it
// to a file; it returns where it listens.
func postfix(t *testing.T, mails string) (address string) {
	t.Helper()
	programs.Need(t, "postfix", "postconf")
	if os.Geteuid() != 0 {
		programs.Skip(t, "postfix is started by root only")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for up := filepath.Dir(dir); up != "/" && up != os.TempDir(); up = filepath.Dir(up) {
		if err := os.Chmod(up, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	conf, queue, data := filepath.Join(dir, "conf"), filepath.Join(dir, "queue"), filepath.Join(dir, "data")
	for _, d := range []string{conf, queue, data} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("chown", "postfix:", data).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := exec.Command("chown", "nobody:", mails).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	address = freeAddress(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	// A mail is whole when it is there under a name that does not begin with a dot.
	keep := filepath.Join(dir, "keep")
	script := "#!/bin/sh\nf=$(mktemp " + mails + "/.part.XXXXXX)\ncat >\"$f\" && mv \"$f\" " + mails + "/$(basename \"$f\" | tr -d .)\n"
	if err := os.WriteFile(keep, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"main.cf": "compatibility_level = 3.6\nmyhostname = relay.example\nmydestination =\nmynetworks = 127.0.0.0/8\ninet_interfaces = 127.0.0.1\n" +
			"inet_protocols = ipv4\nqueue_directory = " + queue + "\ndata_directory = " + data + "\nmail_owner = postfix\nsetgid_group = postdrop\n" +
			"default_transport = keep\nrelay_transport = keep\nsmtpd_relay_restrictions = permit_mynetworks, reject\nalias_maps =\nlocal_recipient_maps =\n" +
			"maillog_file = " + filepath.Join(dir, "log") + "\nmaillog_file_prefixes = " + dir + "\n",
		"master.cf": "127.0.0.1:" + port + " inet n - n - - smtpd\n" +
			"pickup unix n - n 60 1 pickup\ncleanup unix n - n - 0 cleanup\nqmgr unix n - n 300 1 qmgr\nrewrite unix - - n - - trivial-rewrite\n" +
			"bounce unix - - n - 0 bounce\ndefer unix - - n - 0 bounce\ntrace unix - - n - 0 bounce\nproxymap unix - - n - - proxymap\n" +
			"retry unix - - n - - error\nerror unix - - n - - error\nanvil unix - - n - 1 anvil\nscache unix - - n - 1 scache\n" +
			"postlog unix-dgram n - n - 1 postlogd\ntlsmgr unix - - n 1000? 1 tlsmgr\nshowq unix n - n - - showq\nflush unix n - n 1000? 0 flush\n" +
			"keep unix - n n - - pipe\n  flags=R user=nobody argv=" + keep + "\n",
	} {
		if err := os.WriteFile(filepath.Join(conf, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("postfix", "-c", conf, "start").CombinedOutput(); err != nil {
		log, _ := os.ReadFile(filepath.Join(dir, "log"))
		programs.Skip(t, "postfix does not start here: "+string(out)+string(log))
	}
	t.Cleanup(func() {
		if out, err := exec.Command("postfix", "-c", conf, "stop").CombinedOutput(); err != nil {
			t.Errorf("stopping postfix: %v: %s", err, out)
		}
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(dir, "log"))
			t.Logf("postfix: %s", log)
		}
	})
	return address
}

// A mail comes out of Debian's postfix as it was composed.
func TestMailsByPostfix(t *testing.T) {
	mails := t.TempDir()
	relay := postfix(t, mails)
	p := initialise(t)
	s := p.serve(t, freeAddress(t), nil, "--mail-relay", "smtp://"+relay, "--mail-from", "sns@mail.example.com")
	c := p.sns(s)
	topic, err := c.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: aws.String("orders")})
	if err != nil {
		t.Fatal(err)
	}
	const address = "ops@example.com"
	if _, err := c.Subscribe(t.Context(), &sns.SubscribeInput{TopicArn: topic.TopicArn, Protocol: aws.String("email"), Endpoint: aws.String(address)}); err != nil {
		t.Fatal(err)
	}
	taken := func(n int) (texts []string) {
		eventually(t, "mails have come", func() (bool, error) {
			texts = nil
			entries, err := os.ReadDir(mails)
			for _, e := range entries {
				if text, err := os.ReadFile(filepath.Join(mails, e.Name())); err == nil && !strings.HasPrefix(e.Name(), ".") {
					texts = append(texts, string(text))
				}
			}
			return len(texts) >= n, err
		})
		return texts
	}
	text := strings.ReplaceAll(taken(1)[0], "=\n", "")
	text = strings.ReplaceAll(text, "=3D", "=")
	at := strings.Index(text, s.base+"/confirmation.html?")
	if at < 0 {
		t.Fatalf("no link in %s", text)
	}
	link, _, _ := strings.Cut(text[at:], "\n")
	r, err := s.http.Post(strings.TrimSpace(link), "application/x-www-form-urlencoded", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusOK {
		t.Fatalf("confirming: %s", r.Status)
	}
	if _, err := c.Publish(t.Context(), &sns.PublishInput{TopicArn: topic.TopicArn, Message: aws.String("by postfix"), Subject: aws.String("Hi")}); err != nil {
		t.Fatal(err)
	}
	all := strings.Join(taken(2), "\n---\n")
	for _, want := range []string{"\nby postfix\n", "Subject: Hi\n", `From: "orders" <sns@mail.example.com>`, "To: <ops@example.com>", "List-Unsubscribe-Post: List-Unsubscribe=One-Click"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in %s", want, all)
		}
	}
}
