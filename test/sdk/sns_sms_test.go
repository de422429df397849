package sdk_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	snstypes "github.com/aws/aws-sdk-go-v2/service/sns/types"

	"godwit.dev/godwit/internal/config"
)

// sent is a text message that the outbox has.
type sent struct {
	To, From, Text, Alphabet, Type, Message string
	Parts                                   []string
}

// textsTo are the text messages to a number, the oldest first.
func textsTo(t *testing.T, endpoint, to string) []sent {
	t.Helper()
	page := visit(t, endpoint+"/_godwit/outbox/sms?limit=1000&to="+url.QueryEscape(to))
	equal(t, "status of the outbox", http.StatusOK, page.Status)
	var list struct{ Texts []sent }
	if err := json.Unmarshal([]byte(page.Body), &list); err != nil {
		t.Fatalf("%v: %s", err, page.Body)
	}
	slices.Reverse(list.Texts)
	return list.Texts
}

// directTo is what stands in the place of a subscription where there is no topic.
func directTo() string { return "arn:aws:sns:" + region + ":" + account + ":direct/sms" }

func publishText(t *testing.T, c *sns.Client, number, text string, attributes ...string) string {
	t.Helper()
	in := &sns.PublishInput{PhoneNumber: &number, Message: &text, MessageAttributes: map[string]snstypes.MessageAttributeValue{}}
	for i := 0; i < len(attributes); i += 2 {
		in.MessageAttributes[attributes[i]] = snstypes.MessageAttributeValue{DataType: aws.String("String"), StringValue: &attributes[i+1]}
	}
	return *must(c.Publish(t.Context(), in))(t).MessageId
}

func setTexts(t *testing.T, c *sns.Client, pairs ...string) {
	t.Helper()
	in := &sns.SetSMSAttributesInput{Attributes: map[string]string{}}
	for i := 0; i < len(pairs); i += 2 {
		in.Attributes[pairs[i]] = pairs[i+1]
	}
	must(c.SetSMSAttributes(t.Context(), in))(t)
}

// What is published to a phone comes as a text message, cut where words end.
func TestTexts(t *testing.T) {
	endpoint := start(t)
	c := topicsClient(endpoint)
	const phone = "+4917012345678"
	publishText(t, c, "+49.170/1234-5678", "hello")
	long := strings.Repeat("a word ", 30)
	publishText(t, c, phone, long, "AWS.SNS.SMS.SenderID", "Godwit", "AWS.SNS.SMS.SMSType", "Transactional")
	publishText(t, c, phone, "Grüße 🙂", "AWS.MM.SMS.OriginationNumber", "12345", "AWS.SNS.SMS.SenderID", "Godwit")
	structured := `{"default":"d","sms":"for phones"}`
	must(c.Publish(t.Context(), &sns.PublishInput{PhoneNumber: aws.String(phone), Message: &structured, MessageStructure: aws.String("json")}))(t)
	advance(t, endpoint, "1s")
	got := textsTo(t, endpoint, phone)
	equal(t, "texts", 4, len(got))
	for i := range got {
		if got[i].Message == "" {
			t.Error("a text without an id")
		}
		got[i].Message = ""
	}
	slices.SortFunc(got, func(a, b sent) int { return cmp.Compare(a.Text, b.Text) }) // numbers have no order
	equal(t, "texts", []sent{
		{To: phone, From: "12345", Text: "Grüße 🙂", Alphabet: "UCS2", Type: "Promotional", Parts: []string{"Grüße 🙂"}},
		{To: phone, From: "Godwit", Text: long, Alphabet: "GSM7", Type: "Transactional", Parts: []string{long[:149], long[149:]}},
		{To: phone, Text: "for phones", Alphabet: "GSM7", Type: "Promotional", Parts: []string{"for phones"}},
		{To: phone, Text: "hello", Alphabet: "GSM7", Type: "Promotional", Parts: []string{"hello"}},
	}, got)

	for _, bad := range []string{"+1a234", "NAA+15551234567", "+15--551234567", "+15551234567.", "/+15551234567", "invalid-number", ""} {
		_, err := c.Publish(t.Context(), &sns.PublishInput{PhoneNumber: &bad, Message: aws.String("m")})
		refused(t, err, "InvalidParameter", 400, "Invalid parameter: PhoneNumber Reason: "+bad+" is not valid to publish to")
	}
	_, err := c.Publish(t.Context(), &sns.PublishInput{PhoneNumber: aws.String(phone), Message: aws.String(strings.Repeat("ä", 1601))})
	refused(t, err, "InvalidParameter", 400, "Invalid parameter: Message too long")
	for name, value := range map[string]string{
		"AWS.SNS.SMS.SenderID": "much too long a name", "AWS.SNS.SMS.MaxPrice": "cheap", "AWS.SNS.SMS.SMSType": "Friendly", "AWS.MM.SMS.OriginationNumber": "me",
	} {
		_, err := c.Publish(t.Context(), &sns.PublishInput{
			PhoneNumber: aws.String(phone), Message: aws.String("m"),
			MessageAttributes: map[string]snstypes.MessageAttributeValue{name: {DataType: aws.String("String"), StringValue: &value}},
		})
		refused(t, err, "InvalidParameter", 400, "Invalid parameter: MessageAttributes Reason: the value of "+name+" is not valid")
	}
}

// A phone is a subscriber as others are: it needs no confirmation, and has filters, pauses
// and dead letters.
func TestTextSubscriptions(t *testing.T) {
	endpoint := start(t)
	c, queues := topicsClient(endpoint), client(endpoint)
	topic := createTopic(t, c, "alarms")
	must(c.SetTopicAttributes(t.Context(), &sns.SetTopicAttributesInput{TopicArn: &topic, AttributeName: aws.String("DisplayName"), AttributeValue: aws.String("Night shift")}))(t)
	dead := createQueue(t, queues, "dead")
	const phone = "+12/34-567.890"
	sub := subscribe(t, c, topic, "sms", phone, "FilterPolicy", `{"kind":["alarm"]}`, "RedrivePolicy", `{"deadLetterTargetArn":"`+queueARN("dead")+`"}`)
	equal(t, "attributes", map[string]string{
		"SubscriptionArn": sub, "TopicArn": topic, "Owner": account, "Protocol": "sms", "Endpoint": phone, "ConfirmationWasAuthenticated": "true",
		"PendingConfirmation": "false", "RawMessageDelivery": "false",
	}, without(subscriptionAttributes(t, c, sub), "FilterPolicy", "FilterPolicyScope", "RedrivePolicy", "SubscriptionPrincipal"))
	publish := func(kind string) {
		callTopics(t, endpoint, "Publish", "TopicArn", topic, "Message", kind,
			"MessageAttributes.entry.1.Name", "kind", "MessageAttributes.entry.1.Value.DataType", "String", "MessageAttributes.entry.1.Value.StringValue", kind)
	}
	publish("alarm")
	publish("news")
	advance(t, endpoint, "1s")
	got := textsTo(t, endpoint, "+1234567890")
	if len(got) != 1 || got[0].Text != "Night shif> alarm" {
		t.Errorf("%+v", got)
	}

	post(t, endpoint+"/_godwit/subscriptions/pause", `{"subscription":"`+sub+`"}`)
	publish("alarm")
	advance(t, endpoint, "1h")
	equal(t, "texts while it is paused", 1, len(textsTo(t, endpoint, "+1234567890")))
	post(t, endpoint+"/_godwit/subscriptions/resume", `{"subscription":"`+sub+`"}`)
	advance(t, endpoint, "1s")
	equal(t, "texts", 2, len(textsTo(t, endpoint, "+1234567890")))

	// A number that is none, such as one without its +, is reported and not taken for one that keeps its messages.
	if answer := post(t, endpoint+"/_godwit/sms/receive", `{"from":"1234567890","text":"STOP"}`); answer.Status != http.StatusBadRequest || !strings.Contains(answer.Body, "from: want a phone number") {
		t.Errorf("a number without a +: %d %s", answer.Status, answer.Body)
	}
	answer := post(t, endpoint+"/_godwit/sms/receive", `{"from":"+1234567890","text":" stop "}`)
	equal(t, "opting out", `{"optedOut":true}`, strings.TrimSpace(answer.Body))
	publish("alarm")
	advance(t, endpoint, "1s")
	equal(t, "texts to who has opted out", 2, len(textsTo(t, endpoint, "+1234567890")))
	letter := takeMessage(t, queues, dead)
	if !strings.Contains(*letter.Body, `"Message" : "alarm"`) {
		t.Errorf("the dead letter is %s", *letter.Body)
	}

	for _, bad := range []string{"+15--551234567", "NAA+15551234567", "+15551234567.", "/+15551234567", "invalid-number"} {
		_, err := c.Subscribe(t.Context(), &sns.SubscribeInput{TopicArn: &topic, Protocol: aws.String("sms"), Endpoint: &bad})
		refused(t, err, "InvalidParameter", 400, "Invalid SMS endpoint: "+bad)
	}
	_, err := c.SetSubscriptionAttributes(t.Context(), &sns.SetSubscriptionAttributesInput{SubscriptionArn: &sub, AttributeName: aws.String("RawMessageDelivery"), AttributeValue: aws.String("true")})
	refused(t, err, "InvalidParameter", 400, "Invalid parameter: Delivery protocol [sms] does not support raw message delivery.")
}

// A message to a phone is tried for six hours, and an operator can pause it, have it tried
// again, and drop it.
func TestTextsAreRetried(t *testing.T) {
	endpoint := start(t)
	c := topicsClient(endpoint)
	const phone = "+15551234567"
	fault := func(name string) {
		r := post(t, endpoint+"/_godwit/faults", `{"arn":"`+directTo()+`","fault":"`+name+`"}`)
		equal(t, "setting a fault", http.StatusOK, r.Status)
	}
	fault("unavailable")
	publishText(t, c, phone, "one")
	advance(t, endpoint, "5h")
	fault("none")
	equal(t, "texts during the outage", 0, len(textsTo(t, endpoint, phone)))
	post(t, endpoint+"/_godwit/deliveries/retry", `{"subscription":"`+directTo()+`","all":true}`)
	advance(t, endpoint, "1s")
	equal(t, "texts", 1, len(textsTo(t, endpoint, phone)))

	fault("unavailable")
	publishText(t, c, phone, "two")
	advance(t, endpoint, "24089s") // the ladder takes 24,089.6 s
	equal(t, "texts during the outage", 1, len(textsTo(t, endpoint, phone)))
	advance(t, endpoint, "1s")
	var list struct {
		Deliveries []struct {
			State, Reason string
			Attempt       int
		}
	}
	page := visit(t, endpoint+"/_godwit/deliveries?subscription="+url.QueryEscape(directTo()))
	if err := json.Unmarshal([]byte(page.Body), &list); err != nil || len(list.Deliveries) == 0 {
		t.Fatalf("%v: %s", err, page.Body)
	}
	equal(t, "attempts", 51, list.Deliveries[0].Attempt)
	equal(t, "what became of it", "dropped", list.Deliveries[0].State)
	fault("none")

	post(t, endpoint+"/_godwit/subscriptions/pause", `{"subscription":"`+directTo()+`"}`)
	publishText(t, c, phone, "three")
	advance(t, endpoint, "1h")
	equal(t, "texts while it is paused", 1, len(textsTo(t, endpoint, phone)))
	post(t, endpoint+"/_godwit/deliveries/drop", `{"subscription":"`+directTo()+`","all":true}`)
	publishText(t, c, phone, "four")
	post(t, endpoint+"/_godwit/subscriptions/resume", `{"subscription":"`+directTo()+`"}`)
	advance(t, endpoint, "1s")
	got := textsTo(t, endpoint, phone)
	if len(got) != 2 || got[1].Text != "four" {
		t.Errorf("%+v", got)
	}
}

// The settings of an account's text messages, and what AWS says of wrong ones.
func TestTextSettings(t *testing.T) {
	endpoint := start(t)
	c := topicsClient(endpoint)
	get := func(names ...string) map[string]string {
		return must(c.GetSMSAttributes(t.Context(), &sns.GetSMSAttributesInput{Attributes: names}))(t).Attributes
	}
	equal(t, "untouched", map[string]string{"MonthlySpendLimit": "1"}, get())
	setTexts(t, c, "DeliveryStatusSuccessSamplingRate", "100", "DefaultSenderID", "LSTest", "DefaultSMSType", "Promotional")
	equal(t, "all", map[string]string{
		"MonthlySpendLimit": "1", "DeliveryStatusSuccessSamplingRate": "100", "DefaultSenderID": "LSTest", "DefaultSMSType": "Promotional",
	}, get())
	equal(t, "two", map[string]string{"DefaultSenderID": "LSTest", "DefaultSMSType": "Promotional"}, get("DefaultSenderID", "DefaultSMSType"))
	equal(t, "another region", map[string]string{"MonthlySpendLimit": "1"},
		must(topicsClientOf(endpoint, "eu-west-1", "test").GetSMSAttributes(t.Context(), &sns.GetSMSAttributesInput{}))(t).Attributes)
	for _, tt := range [][3]string{
		{"InvalidAttribute", "x", "InvalidAttribute is not a valid attribute"},
		{"DefaultSendID", "x", "DefaultSendID is not a valid attribute"},
		{"DefaultSMSType", "invalid", "DefaultSMSType is invalid"},
		{"MonthlySpendLimit", "-1", "MonthlySpendLimit is invalid"},
		{"DeliveryStatusSuccessSamplingRate", "101", "DeliveryStatusSuccessSamplingRate is invalid"},
		{"DefaultSenderID", "no", "DefaultSenderID is invalid"},
		{"DeliveryStatusIAMRole", "x", "DeliveryStatusIAMRole is invalid"},
		{"UsageReportS3Bucket", "A_B", "UsageReportS3Bucket is invalid"},
	} {
		_, err := c.SetSMSAttributes(t.Context(), &sns.SetSMSAttributesInput{Attributes: map[string]string{"DefaultSenderID": "Other", tt[0]: tt[1]}})
		refused(t, err, "InvalidParameter", 400, tt[2])
	}
	_, err := c.GetSMSAttributes(t.Context(), &sns.GetSMSAttributesInput{Attributes: []string{"DefaultSendID"}})
	refused(t, err, "InvalidParameter", 400, "DefaultSendID is not a valid attribute")
	equal(t, "after refusals", "LSTest", get()["DefaultSenderID"])
	publishText(t, c, "+15551234567", "m")
	advance(t, endpoint, "1s")
	defer func() { // what Terraform's aws_sns_sms_preferences does at its end
		setTexts(t, c, "DefaultSMSType", "", "DefaultSenderID", "", "DeliveryStatusIAMRole", "", "DeliveryStatusSuccessSamplingRate", "", "MonthlySpendLimit", "", "UsageReportS3Bucket", "")
		equal(t, "after the reset", map[string]string{"MonthlySpendLimit": "1"}, get())
	}()
	equal(t, "whom it is from", "LSTest", textsTo(t, endpoint, "+15551234567")[0].From)
}

// Who has opted out gets nothing until he is opted in, which is once in 30 days.
func TestOptOuts(t *testing.T) {
	endpoint := start(t)
	c := topicsClient(endpoint)
	out := func(number string) bool {
		return must(c.CheckIfPhoneNumberIsOptedOut(t.Context(), &sns.CheckIfPhoneNumberIsOptedOutInput{PhoneNumber: &number}))(t).IsOptedOut
	}
	in := func(number string) error {
		_, err := c.OptInPhoneNumber(t.Context(), &sns.OptInPhoneNumberInput{PhoneNumber: &number})
		return err
	}
	const phone = "+4411111111"
	if err := in(phone); err != nil {
		t.Error(err)
	}
	publishText(t, c, phone, "m") // so that the account is known
	advance(t, endpoint, "1s")
	stop := func(n string) { post(t, endpoint+"/_godwit/sms/receive", `{"from":"`+n+`","text":"Stop"}`) }
	equal(t, "opted out", false, out(phone))
	stop(phone)
	equal(t, "opted out", true, out(phone))
	if err := in(phone); err != nil {
		t.Error(err)
	}
	equal(t, "opted out", false, out(phone))
	stop(phone)
	refused(t, in(phone), "InvalidParameter", 400, "Invalid parameter: PhoneNumber Reason: a phone number can be opted in once in 30 days")
	advance(t, endpoint, "720h")
	if err := in(phone); err != nil {
		t.Error(err)
	}
	refused(t, in("invalid"), "InvalidParameter", 400, "Invalid parameter: PhoneNumber Reason: input incorrectly formatted")
	_, err := c.CheckIfPhoneNumberIsOptedOut(t.Context(), &sns.CheckIfPhoneNumberIsOptedOutInput{PhoneNumber: aws.String("invalid")})
	refused(t, err, "InvalidParameter", 400, "Invalid parameter: PhoneNumber Reason: input incorrectly formatted")

	var want []string
	for i := range 101 {
		want = append(want, fmt.Sprintf("+1555123%04d", i))
		stop(want[i])
	}
	first := must(c.ListPhoneNumbersOptedOut(t.Context(), &sns.ListPhoneNumbersOptedOutInput{}))(t)
	second := must(c.ListPhoneNumbersOptedOut(t.Context(), &sns.ListPhoneNumbersOptedOutInput{NextToken: first.NextToken}))(t)
	equal(t, "the first page", want[:100], first.PhoneNumbers)
	equal(t, "the second page", want[100:], second.PhoneNumbers)
	if second.NextToken != nil {
		t.Error("the last page has a token")
	}
	_, err = c.ListPhoneNumbersOptedOut(t.Context(), &sns.ListPhoneNumbersOptedOutInput{NextToken: aws.String("x")})
	refused(t, err, "InvalidParameter", 400, "Invalid parameter: NextToken")
}

// Beyond the month's limit, and above a message's own price, nothing is sent.
func TestSpending(t *testing.T) {
	endpoint := startWith(t, func(c *config.Config) { c.SMS.Price = "0.30" })
	c := topicsClient(endpoint)
	const phone = "+15551234567"
	count := func(want int) {
		t.Helper()
		advance(t, endpoint, "1s")
		equal(t, "texts", want, len(textsTo(t, endpoint, phone)))
	}
	for range 4 {
		publishText(t, c, phone, "m")
	}
	count(3)
	setTexts(t, c, "MonthlySpendLimit", "1.50")
	publishText(t, c, phone, strings.Repeat("long ", 40))
	count(4)
	publishText(t, c, phone, "m")
	count(4)
	advance(t, endpoint, "744h")
	publishText(t, c, phone, "m", "AWS.SNS.SMS.MaxPrice", "0.29")
	count(4)
	publishText(t, c, phone, "m", "AWS.SNS.SMS.MaxPrice", "0.30")
	count(5)
}

// In the sandbox only verified numbers get messages.
func TestSandbox(t *testing.T) {
	endpoint := startWith(t, func(c *config.Config) { c.SMS.Sandbox, c.SMS.From = true, "+4930123456" })
	c := topicsClient(endpoint)
	equal(t, "in the sandbox", true, must(c.GetSMSSandboxAccountStatus(t.Context(), &sns.GetSMSSandboxAccountStatusInput{}))(t).IsInSandbox)
	const phone = "+15551234567"
	publishText(t, c, phone, "unverified")
	must(c.CreateSMSSandboxPhoneNumber(t.Context(), &sns.CreateSMSSandboxPhoneNumberInput{PhoneNumber: aws.String(phone), LanguageCode: "de-DE"}))(t)
	advance(t, endpoint, "1s")
	got := textsTo(t, endpoint, phone)
	if len(got) != 1 || got[0].Type != "Transactional" || got[0].From != "+4930123456" {
		t.Fatalf("%+v", got)
	}
	code := got[0].Text[strings.LastIndexByte(got[0].Text, ' ')+1:]
	list := func(most *int32, token *string) *sns.ListSMSSandboxPhoneNumbersOutput {
		return must(c.ListSMSSandboxPhoneNumbers(t.Context(), &sns.ListSMSSandboxPhoneNumbersInput{MaxResults: most, NextToken: token}))(t)
	}
	equal(t, "numbers", []snstypes.SMSSandboxPhoneNumber{{PhoneNumber: aws.String(phone), Status: "Pending"}}, list(nil, nil).PhoneNumbers)
	verify := func(number, code string) error {
		_, err := c.VerifySMSSandboxPhoneNumber(t.Context(), &sns.VerifySMSSandboxPhoneNumberInput{PhoneNumber: &number, OneTimePassword: &code})
		return err
	}
	refused(t, verify(phone, "0000000"), "VerificationException", 400, "The one-time password is not valid")
	refused(t, verify("+15550000000", code), "ResourceNotFound", 404, "The phone number is not in the SMS sandbox")
	refused(t, verify(phone, "x"), "InvalidParameter", 400, "Invalid parameter: OneTimePassword Reason: must be 5 to 8 digits")
	if err := verify(phone, code); err != nil {
		t.Fatal(err)
	}
	publishText(t, c, phone, "verified")
	advance(t, endpoint, "1s")
	equal(t, "texts", 2, len(textsTo(t, endpoint, phone)))
	create := func(number, language string) error {
		_, err := c.CreateSMSSandboxPhoneNumber(t.Context(), &sns.CreateSMSSandboxPhoneNumberInput{PhoneNumber: &number, LanguageCode: snstypes.LanguageCodeString(language)})
		return err
	}
	refused(t, create(phone, ""), "UserError", 400, "The phone number is verified already")
	refused(t, create("12", ""), "InvalidParameter", 400, "Invalid parameter: PhoneNumber Reason: input incorrectly formatted")
	post(t, endpoint+"/_godwit/sms/receive", `{"from":"+15550000001","text":"STOP"}`)
	refused(t, create("+15550000001", ""), "OptedOut", 400, "The phone number is opted out")
	for i := range 9 {
		if err := create(fmt.Sprintf("+1555000001%d", i), "en-US"); err != nil {
			t.Error(err)
		}
	}
	refused(t, create("+15550000020", ""), "UserError", 400, "The sandbox has as many phone numbers as it may have")
	first := list(aws.Int32(4), nil)
	second := list(aws.Int32(100), first.NextToken)
	equal(t, "numbers", []int{4, 6}, []int{len(first.PhoneNumbers), len(second.PhoneNumbers)})
	_, err := c.ListSMSSandboxPhoneNumbers(t.Context(), &sns.ListSMSSandboxPhoneNumbersInput{MaxResults: aws.Int32(101)})
	refused(t, err, "InvalidParameter", 400, "Invalid parameter: MaxResults Reason: must be from 1 to 100")
	remove := func(number string) error {
		_, err := c.DeleteSMSSandboxPhoneNumber(t.Context(), &sns.DeleteSMSSandboxPhoneNumberInput{PhoneNumber: &number})
		return err
	}
	refused(t, remove(phone), "UserError", 400, "A phone number can be deleted 24 hours after it was verified")
	if err := remove("+15550000010"); err != nil {
		t.Error(err)
	}
	refused(t, remove("+15550000010"), "ResourceNotFound", 404, "The phone number is not in the SMS sandbox")
	refused(t, remove("x"), "InvalidParameter", 400, "Invalid parameter: PhoneNumber Reason: input incorrectly formatted")
	advance(t, endpoint, "24h")
	if err := remove(phone); err != nil {
		t.Error(err)
	}
	refused(t, verify("+15550000011", "000000"), "VerificationException", 400, "The one-time password is not valid") // of yesterday

	origins := must(c.ListOriginationNumbers(t.Context(), &sns.ListOriginationNumbersInput{MaxResults: aws.Int32(30)}))(t)
	equal(t, "origins", []snstypes.PhoneNumberInformation{{
		PhoneNumber: aws.String("+4930123456"), Status: aws.String("ACTIVE"), RouteType: "Transactional", NumberCapabilities: []snstypes.NumberCapability{"SMS"},
	}}, origins.PhoneNumbers)
	_, err = c.ListOriginationNumbers(t.Context(), &sns.ListOriginationNumbersInput{MaxResults: aws.Int32(31)})
	refused(t, err, "InvalidParameter", 400, "Invalid parameter: MaxResults Reason: must be from 1 to 30")
}

// Deliveries are logged as the account wants, with AWS's members, and counted; the
// server's own log has no number and no text.
func TestTextsAreLogged(t *testing.T) {
	endpoint := startWith(t, func(c *config.Config) { c.SMS.Price = "0.00645" })
	c := topicsClient(endpoint)
	const phone, away = "+15551234567", "+15557654321"
	setTexts(t, c, "DeliveryStatusIAMRole", feedbackRole(t, endpoint), "DeliveryStatusSuccessSamplingRate", "100", "MonthlySpendLimit", "0.013")
	topic := createTopic(t, c, "alarms")
	subscribe(t, c, topic, "sms", phone)
	nextMinute(t, endpoint)
	id := publishText(t, c, phone, "hello", "AWS.SNS.SMS.SMSType", "Transactional")
	published := must(c.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("hello")}))(t)
	advance(t, endpoint, "1s")
	failed := publishText(t, c, away, "too expensive")
	advance(t, endpoint, "1m")

	entries := func(group string) (all []map[string]any) {
		for _, event := range must(logsClient(endpoint).FilterLogEvents(t.Context(), &cloudwatchlogs.FilterLogEventsInput{LogGroupName: &group}))(t).Events {
			entry := decode(t, *event.Message)
			entry["notification"].(map[string]any)["timestamp"] = ""
			d := entry["delivery"].(map[string]any)
			d["dwellTimeMs"] = 0.0
			all = append(all, entry)
		}
		return all
	}
	const group = "sns/" + region + "/" + account + "/"
	want := func(id, topic, to, kind, response, status string) []map[string]any {
		notification := map[string]any{"messageId": id, "timestamp": ""}
		if topic != "" {
			notification["topicArn"] = topic
		}
		return []map[string]any{{
			"notification": notification, "status": status,
			"delivery": map[string]any{
				"dwellTimeMs": 0.0, "numberOfMessageParts": 1.0, "destination": to, "priceInUSD": 0.00645, "smsType": kind,
				"mcc": 0.0, "mnc": 0.0, "providerResponse": response,
			},
		}}
	}
	const accepted = "Message has been accepted by phone carrier"
	equal(t, "direct", want(id, "", phone, "Transactional", accepted, "SUCCESS"), entries(group+"DirectPublishToPhoneNumber"))
	equal(t, "by the topic", want(*published.MessageId, topic, phone, "Promotional", accepted, "SUCCESS"), entries(group+"alarms"))
	equal(t, "that failed", want(failed, "", away, "Promotional", "This delivery would exceed the monthly spend limit", "FAILURE"),
		entries(group+"DirectPublishToPhoneNumber/Failure"))

	for name, sum := range map[string]float64{"NumberOfNotificationsDelivered": 1, "NumberOfNotificationsFailed": 1} {
		equal(t, name, sum, total(t, endpoint, "AWS/SNS", name, "PhoneNumber", "Direct"))
	}
	equal(t, "of the topic", 1.0, total(t, endpoint, "AWS/SNS", "NumberOfNotificationsDelivered", "TopicName", "alarms"))
}
