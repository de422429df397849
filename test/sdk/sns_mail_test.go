package sdk_test

import (
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"net/http"
	"net/mail"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
)

// letter is a mail as the standard library reads it.
type letter struct {
	Header mail.Header
	Text   string // decoded
}

// letters are the mails to an address, the oldest first.
func letters(t *testing.T, endpoint, to string) (all []letter) {
	t.Helper()
	page := visit(t, endpoint+"/_godwit/outbox?limit=1000&to="+url.QueryEscape(to))
	equal(t, "status of the outbox", http.StatusOK, page.Status)
	var list struct {
		Mails []struct{ ID, From, To, Subject, Text string }
	}
	if err := json.Unmarshal([]byte(page.Body), &list); err != nil {
		t.Fatalf("%v: %s", err, page.Body)
	}
	for _, m := range list.Mails {
		raw := visit(t, endpoint+"/_godwit/outbox?id="+m.ID)
		equal(t, "type of a mail", "message/rfc822", raw.Header.Get("Content-Type"))
		l := readLetter(t, raw.Body)
		equal(t, "the text as the outbox shows it", l.Text, m.Text)
		equal(t, "whom the outbox shows", true, strings.EqualFold(to, m.To))
		all = append([]letter{l}, all...)
	}
	return all
}

func readLetter(t *testing.T, raw string) letter {
	t.Helper()
	if bare := strings.ReplaceAll(raw, "\r\n", ""); strings.ContainsAny(bare, "\r\n") {
		t.Error("a line of a mail does not end with CR LF")
	}
	for line := range strings.SplitSeq(raw, "\r\n") {
		if len(line) > 998 {
			t.Errorf("a line of %d bytes", len(line))
		}
	}
	m, err := mail.ReadMessage(strings.NewReader(raw))
	if err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	equal(t, "Content-Transfer-Encoding", "quoted-printable", m.Header.Get("Content-Transfer-Encoding"))
	kind, parameters, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || kind != "text/plain" || !strings.EqualFold(parameters["charset"], "utf-8") {
		t.Errorf("Content-Type %q", m.Header.Get("Content-Type"))
	}
	body, err := io.ReadAll(quotedprintable.NewReader(m.Body))
	if err != nil {
		t.Fatal(err)
	}
	return letter{m.Header, strings.ReplaceAll(string(body), "\r\n", "\n")}
}

func (l letter) subject(t *testing.T) string {
	t.Helper()
	text, err := new(mime.WordDecoder).DecodeHeader(l.Header.Get("Subject"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// from is whom a mail is from.
func (l letter) from(t *testing.T) mail.Address {
	t.Helper()
	all, err := l.Header.AddressList("From")
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	return *all[0]
}

// link is the only one in a mail.
func (l letter) link(t *testing.T) string {
	t.Helper()
	for line := range strings.Lines(l.Text) {
		if strings.HasPrefix(line, "http") {
			return strings.TrimSpace(line)
		}
	}
	t.Fatalf("no link in %q", l.Text)
	return ""
}

// follow asks for the page of a link as a browser does, without a signature.
func follow(t *testing.T, method, link, form string) response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, link, strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	switch method { // of others only programs ask
	case http.MethodGet:
		req.Header.Set("Sec-Fetch-Site", "cross-site")
		req.Header.Set("Sec-Fetch-Mode", "navigate")
		req.Header.Set("Sec-Fetch-Dest", "document")
	case http.MethodPost:
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Sec-Fetch-Site", "same-origin")
		req.Header.Set("Origin", req.URL.Scheme+"://"+req.URL.Host)
		req.Header.Set("Referer", link)
	}
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response{Status: answer.StatusCode, Header: answer.Header, Body: string(body)}
}

const noReply = "\n\nPlease do not reply directly to this email.\n"

// subscribeMail subscribes an address and presses the button that its mail leads to.
func subscribeMail(t *testing.T, endpoint string, c *sns.Client, topic, protocol, address string, attributes ...string) (subscription string) {
	t.Helper()
	subscription = subscribe(t, c, topic, protocol, address, attributes...)
	advance(t, endpoint, "1s")
	asked := letters(t, endpoint, address)
	if len(asked) == 0 {
		t.Fatal("no confirmation")
	}
	last := asked[len(asked)-1]
	var page response
	if protocol == "email" {
		page = follow(t, http.MethodPost, last.link(t), "")
	} else {
		link, _ := decode(t, last.Text)["SubscribeURL"].(string)
		page = visit(t, link)
	}
	equal(t, "confirming", http.StatusOK, page.Status)
	return subscription
}

// A mail asks for a confirmation, which its page's button gives and nothing else; then what
// is published comes by mail, until the page of its link, or one click, ends it.
func TestMail(t *testing.T) {
	endpoint := start(t)
	c := topicsClient(endpoint)
	const address = "ops+alarms@example.com"
	topic := createTopic(t, c, "orders")
	sub := subscribe(t, c, topic, "email", address)
	equal(t, "PendingConfirmation", "true", subscriptionAttributes(t, c, sub)["PendingConfirmation"])
	advance(t, endpoint, "1s")

	asked := letters(t, endpoint, address)
	equal(t, "confirmations", 1, len(asked))
	equal(t, "whom it is from", mail.Address{Name: "AWS Notifications", Address: "no-reply@godwit.localhost"}, asked[0].from(t))
	equal(t, "its subject", "AWS Notification - Subscription Confirmation", asked[0].subject(t))
	link := asked[0].link(t)
	equal(t, "its text", "You have chosen to subscribe to the topic:\n"+topic+"\n\n"+
		"To confirm this subscription, click or visit the link below (If this was in error no action is necessary):\n"+link+noReply, asked[0].Text)
	equal(t, "whom it is to", "<"+address+">", asked[0].Header.Get("To"))
	equal(t, "x-amz-sns-subscription-arn", sub, asked[0].Header.Get("x-amz-sns-subscription-arn"))
	if !strings.HasPrefix(link, endpoint+"/confirmation.html?TopicArn=") {
		t.Errorf("the link is %s", link)
	}

	for _, method := range []string{http.MethodGet, http.MethodHead} {
		page := follow(t, method, link, "")
		equal(t, method+" of the page", http.StatusOK, page.Status)
		if method == http.MethodGet && (!strings.Contains(page.Body, `<form method="post">`) || !strings.Contains(page.Body, topic)) {
			t.Errorf("the page is %s", page.Body)
		}
		equal(t, "PendingConfirmation after "+method, "true", subscriptionAttributes(t, c, sub)["PendingConfirmation"])
	}
	equal(t, "a method that it has not", http.StatusMethodNotAllowed, follow(t, http.MethodPut, link, "").Status)
	equal(t, "a token that is not its own", http.StatusBadRequest, follow(t, http.MethodPost, link[:len(link)-4]+"0000", "").Status)
	equal(t, "half a link", http.StatusBadRequest, follow(t, http.MethodPost, endpoint+"/confirmation.html?Token=x", "").Status)
	page := follow(t, http.MethodPost, link, "")
	if page.Status != http.StatusOK || !strings.Contains(page.Body, sub) {
		t.Fatalf("confirming: %d %s", page.Status, page.Body)
	}
	equal(t, "PendingConfirmation", "false", subscriptionAttributes(t, c, sub)["PendingConfirmation"])

	message := "Grüße,\n.\nfrom a line of a dot\n" + strings.Repeat("long ", 300)
	published := must(c.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: &message, Subject: aws.String("Order: 1")}))(t)
	must(c.SetTopicAttributes(t.Context(), &sns.SetTopicAttributesInput{TopicArn: &topic, AttributeName: aws.String("DisplayName"), AttributeValue: aws.String("Shop, Inc.")}))(t)
	advance(t, endpoint, "1s")
	must(c.Publish(t.Context(), &sns.PublishInput{
		TopicArn: &topic, MessageStructure: aws.String("json"), Message: aws.String(`{"default":"d","email":"for people"}`),
	}))(t)
	advance(t, endpoint, "1s")
	got := letters(t, endpoint, address)[1:]
	equal(t, "notifications", 2, len(got))
	leave := strings.Trim(got[0].Header.Get("List-Unsubscribe"), "<>")
	footer := "\n\n--\nIf you wish to stop receiving notifications from this topic, please click or visit the link below to unsubscribe:\n" + leave + noReply
	equal(t, "the text", message+footer, got[0].Text)
	equal(t, "the other text", "for people"+footer, got[1].Text)
	equal(t, "the subject", "Order: 1", got[0].subject(t))
	equal(t, "the subject of one that has none", "AWS Notification Message", got[1].subject(t))
	equal(t, "x-amz-sns-message-id", *published.MessageId, got[0].Header.Get("x-amz-sns-message-id"))
	equal(t, "x-amz-sns-subscription-arn", sub, got[0].Header.Get("x-amz-sns-subscription-arn"))
	equal(t, "List-Unsubscribe-Post", "List-Unsubscribe=One-Click", got[0].Header.Get("List-Unsubscribe-Post"))
	equal(t, "whom it is from", "Shop, Inc.", got[1].from(t).Name)

	equal(t, "the page to leave", http.StatusOK, follow(t, http.MethodGet, leave, "").Status)
	equal(t, "still subscribed", "false", subscriptionAttributes(t, c, sub)["PendingConfirmation"])
	other := strings.Replace(leave, url.QueryEscape(address), "else%40example.com", 1)
	if page := follow(t, http.MethodPost, other, ""); !strings.Contains(page.Body, "Not subscribed") {
		t.Errorf("another address: %s", page.Body)
	}
	equal(t, "still subscribed", "false", subscriptionAttributes(t, c, sub)["PendingConfirmation"])
	if page := follow(t, http.MethodPost, leave, "List-Unsubscribe=One-Click"); page.Status != http.StatusOK {
		t.Errorf("leaving: %d %s", page.Status, page.Body)
	}
	_, err := c.GetSubscriptionAttributes(t.Context(), &sns.GetSubscriptionAttributesInput{SubscriptionArn: &sub})
	refused(t, err, "NotFound", 404, "Subscription does not exist")
	if page := follow(t, http.MethodPost, leave, ""); page.Status != http.StatusOK || !strings.Contains(page.Body, "Not subscribed") {
		t.Errorf("leaving again: %d %s", page.Status, page.Body)
	}
}

// A mail that a program reads has the signed envelope, and nothing else.
func TestMailJSON(t *testing.T) {
	endpoint := start(t)
	c := topicsClient(endpoint)
	const address = "robot@example.com"
	topic := createTopic(t, c, "orders")
	sub := subscribeMail(t, endpoint, c, topic, "email-json", address)
	equal(t, "PendingConfirmation", "false", subscriptionAttributes(t, c, sub)["PendingConfirmation"])
	must(c.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("hi ü"), Subject: aws.String("s")}))(t)
	advance(t, endpoint, "1s")
	got := letters(t, endpoint, address)
	equal(t, "mails", 2, len(got))
	verified(t, got[0].Text, "SubscriptionConfirmation", "1")
	envelope := verified(t, got[1].Text, "Notification", "1")
	equal(t, "the message", []any{"hi ü", "s", topic}, []any{envelope["Message"], envelope["Subject"], envelope["TopicArn"]})
	equal(t, "the subject", "s", got[1].subject(t))
}

// Filters, pauses and refusals hold for mails as for others.
func TestMailFiltersAndRefusals(t *testing.T) {
	endpoint := start(t)
	c := topicsClient(endpoint)
	const address = "a@example.com"
	topic := createTopic(t, c, "orders")
	sub := subscribeMail(t, endpoint, c, topic, "email", address, "FilterPolicy", `{"kind":["alarm"]}`)
	for _, kind := range []string{"alarm", "news"} {
		callTopics(t, endpoint, "Publish", "TopicArn", topic, "Message", kind,
			"MessageAttributes.entry.1.Name", "kind", "MessageAttributes.entry.1.Value.DataType", "String", "MessageAttributes.entry.1.Value.StringValue", kind)
	}
	advance(t, endpoint, "1s")
	got := letters(t, endpoint, address)
	if len(got) != 2 || !strings.HasPrefix(got[1].Text, "alarm\n") {
		t.Errorf("%d mails: %v", len(got), got)
	}
	_, err := c.SetSubscriptionAttributes(t.Context(), &sns.SetSubscriptionAttributesInput{SubscriptionArn: &sub, AttributeName: aws.String("RawMessageDelivery"), AttributeValue: aws.String("true")})
	refused(t, err, "InvalidParameter", 400, "Invalid parameter: Delivery protocol [email] does not support raw message delivery.")
	for _, bad := range []string{
		"", "a", "a@b", "@example.com", "a@", "a b@example.com", "a@example.com, b@example.com", "<a@example.com>", "a@[127.0.0.1]", "a@127.0.0.1",
		"a\r\nBcc: x@example.com", "a\x00@example.com", ".a@example.com", "a..b@example.com", `"a b"@example.com`, "ü@example.com", "a@exämple.com",
		"a@-example.com", "a@example..com", strings.Repeat("a", 65) + "@example.com", "a@" + strings.Repeat("example.", 40) + "com",
	} {
		_, err := c.Subscribe(t.Context(), &sns.SubscribeInput{TopicArn: &topic, Protocol: aws.String("email"), Endpoint: aws.String(bad)})
		text := "Invalid parameter: Email address"
		if bad == "" {
			text = "Invalid parameter: Endpoint"
		}
		refused(t, err, "InvalidParameter", 400, text)
	}
}

// Nobody is bombed with confirmations: an address that has not answered gets one an hour,
// whoever asks on whatever topic, and no more than a day's of them wait.
func TestMailConfirmationsAreFew(t *testing.T) {
	endpoint := start(t)
	c := topicsClient(endpoint)
	const victim = "victim@example.com"
	first := createTopic(t, c, "t0")
	subscribe(t, c, first, "email", victim)
	advance(t, endpoint, "1s")
	link := letters(t, endpoint, victim)[0].link(t)
	for range 5 { // the same again: the first link stays good
		subscribe(t, c, first, "email", victim)
	}
	for i, spelling := range []string{victim, "Victim@Example.com", "VICTIM@example.com"} {
		subscribe(t, c, createTopic(t, c, fmt.Sprintf("t%d", i+1)), "email", spelling)
	}
	for _, want := range []int{1, 2, 3, 4, 4} {
		equal(t, "mails", want, len(letters(t, endpoint, victim)))
		advance(t, endpoint, "1h")
	}
	if page := follow(t, http.MethodPost, link, ""); page.Status != http.StatusOK {
		t.Errorf("the first link: %d %s", page.Status, page.Body)
	}
	// Who has answered is asked at once.
	subscribe(t, c, createTopic(t, c, "t9"), "email", victim)
	advance(t, endpoint, "1s")
	equal(t, "mails", 5, len(letters(t, endpoint, victim)))

	var err error
	taken := 0
	for ; err == nil && taken < 100; taken++ {
		topic := createTopic(t, c, fmt.Sprintf("many%d", taken))
		_, err = c.Subscribe(t.Context(), &sns.SubscribeInput{TopicArn: &topic, Protocol: aws.String("email"), Endpoint: aws.String("other@example.com")})
	}
	refused(t, err, "Throttled", 429, "Rate exceeded")
	equal(t, "confirmations that wait for a day", 25, taken)
}

// Mails that fail continue by the ladder of customer-managed endpoints: 50 retries over six
// hours, then a dead letter. What waits can be looked at, held and tried now.
func TestMailLadder(t *testing.T) {
	endpoint := start(t)
	c, queues := topicsClient(endpoint), client(endpoint)
	dead := createQueue(t, queues, "dead")
	topic := createTopic(t, c, "orders")
	const to = "ops@example.com"
	subscription := subscribe(t, c, topic, "email", to, "RedrivePolicy", `{"deadLetterTargetArn":"`+queueARN("dead")+`"}`)
	advance(t, endpoint, "1s")
	confirmation := letters(t, endpoint, to)
	equal(t, "mails that ask to confirm", 1, len(confirmation))
	equal(t, "confirming", http.StatusOK, follow(t, http.MethodPost, confirmation[0].link(t), "").Status)
	fault := func(name string) {
		t.Helper()
		equal(t, "the answer", http.StatusOK, post(t, endpoint+"/_godwit/faults", `{"arn":"arn:aws:sns:us-east-1:000000000000:direct/email","fault":"`+name+`"}`).Status)
	}
	waiting := func() map[string]any {
		t.Helper()
		page := visit(t, endpoint+"/_godwit/deliveries?subscription="+url.QueryEscape(subscription))
		all := decode(t, page.Body)["deliveries"].([]any)
		equal(t, "deliveries", 1, len(all))
		return all[0].(map[string]any)
	}
	fault("unavailable")
	must(c.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("an order")}))(t)
	advance(t, endpoint, "24089s") // the ladder takes 24,089.6 s
	equal(t, "the state", any("pending"), waiting()["state"])
	advance(t, endpoint, "1s")
	equal(t, "the state at the end", any("dead-letter"), waiting()["state"])
	equal(t, "attempts", any(51.0), waiting()["attempt"])
	equal(t, "the dead letter", any("an order"), decode(t, *takeMessage(t, queues, dead).Body)["Message"])
	equal(t, "mails", 1, len(letters(t, endpoint, to)))

	must(c.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("another")}))(t)
	advance(t, endpoint, "1h")
	fault("none")
	equal(t, "pausing", http.StatusOK, post(t, endpoint+"/_godwit/subscriptions/pause", `{"subscription":"`+subscription+`"}`).Status)
	advance(t, endpoint, "1h")
	equal(t, "mails while it is paused", 1, len(letters(t, endpoint, to)))
	equal(t, "resuming", http.StatusOK, post(t, endpoint+"/_godwit/subscriptions/resume", `{"subscription":"`+subscription+`"}`).Status)
	equal(t, "the answer to a retry", http.StatusOK, post(t, endpoint+"/_godwit/deliveries/retry", `{"subscription":"`+subscription+`","all":true}`).Status)
	advance(t, endpoint, "1s")
	mails := letters(t, endpoint, to)
	equal(t, "mails after a retry", 2, len(mails))
	equal(t, "its text", true, strings.HasPrefix(mails[1].Text, "another\n"))
}
