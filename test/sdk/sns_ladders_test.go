package sdk_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
)

// reader is a subscriber outside of AWS: a mailbox, a phone, or an app on one.
type reader struct {
	protocol, to string
	outage       string // what a fault is set on
	arrived      func(t *testing.T) int
}

// Each customer-managed protocol has the same ladder, 50 retries over 24,089.6 s, with
// filters, a dead letter at the end, metrics, an outage on purpose, pauses, and retries now.
func TestCustomerManagedLadders(t *testing.T) {
	for _, protocol := range []string{"email", "email-json", "sms", "application"} {
		t.Run(protocol, func(t *testing.T) {
			endpoint := start(t)
			c, queues := topicsClient(endpoint), client(endpoint)
			dead, topic := createQueue(t, queues, "dead"), createTopic(t, c, "orders")
			to := readerOf(t, endpoint, c, protocol)
			attributes := []string{"FilterPolicy", `{"kind":["order"]}`, "RedrivePolicy", `{"deadLetterTargetArn":"` + queueARN("dead") + `"}`}
			var subscription string
			if strings.HasPrefix(protocol, "email") {
				subscription = subscribeMail(t, endpoint, c, topic, protocol, to.to, attributes...)
			} else {
				subscription = subscribe(t, c, topic, protocol, to.to, attributes...)
			}
			nextMinute(t, endpoint)
			before := to.arrived(t)
			publish := func(text, kind string) {
				t.Helper()
				callTopics(t, endpoint, "Publish", "TopicArn", topic, "Message", text,
					"MessageAttributes.entry.1.Name", "kind", "MessageAttributes.entry.1.Value.DataType", "String", "MessageAttributes.entry.1.Value.StringValue", kind)
			}
			operate := func(what, body string) {
				t.Helper()
				equal(t, what, http.StatusOK, post(t, endpoint+"/_godwit/"+what, body).Status)
			}
			latest := func() map[string]any {
				t.Helper()
				page := visit(t, endpoint+"/_godwit/deliveries?subscription="+url.QueryEscape(subscription))
				return decode(t, page.Body)["deliveries"].([]any)[0].(map[string]any)
			}
			sum := func(name string) float64 {
				t.Helper()
				return total(t, endpoint, "AWS/SNS", name, "TopicName", "orders")
			}
			operate("faults", `{"arn":"`+to.outage+`","fault":"unavailable"}`)
			publish("filtered", "news")
			publish("one", "order")
			advance(t, endpoint, "60s")
			equal(t, "what is filtered out", 1.0, sum("NumberOfNotificationsFilteredOut"))
			advance(t, endpoint, "24029s")
			equal(t, "the state", any("pending"), latest()["state"])
			equal(t, "attempts so far", any(50.0), latest()["attempt"])
			advance(t, endpoint, "1s")
			equal(t, "the state at the end", any("dead-letter"), latest()["state"])
			equal(t, "attempts", any(51.0), latest()["attempt"])
			equal(t, "the dead letter", any("one"), decode(t, *takeMessage(t, queues, dead).Body)["Message"])
			advance(t, endpoint, "1m")
			for _, name := range []string{"NumberOfNotificationsFailed", "NumberOfNotificationsRedrivenToDlq"} {
				equal(t, name, 1.0, sum(name))
			}

			publish("two", "order")
			advance(t, endpoint, "1h")
			operate("faults", `{"arn":"`+to.outage+`","fault":"none"}`)
			operate("subscriptions/pause", `{"subscription":"`+subscription+`"}`)
			advance(t, endpoint, "1h")
			equal(t, "what has arrived while it is paused", before, to.arrived(t))
			operate("subscriptions/resume", `{"subscription":"`+subscription+`"}`)
			operate("deliveries/retry", `{"subscription":"`+subscription+`","all":true}`)
			advance(t, endpoint, "1s")
			equal(t, "what has arrived", before+1, to.arrived(t))
			equal(t, "the state then", any("delivered"), latest()["state"])
			advance(t, endpoint, "1m")
			equal(t, "deliveries", 1.0, sum("NumberOfNotificationsDelivered"))
		})
	}
}

func readerOf(t *testing.T, endpoint string, c *sns.Client, protocol string) reader {
	t.Helper()
	const direct = "arn:aws:sns:" + region + ":" + account + ":direct/"
	switch protocol {
	case "sms":
		const phone = "+15551234567"
		return reader{protocol, phone, direct + "sms", func(t *testing.T) int {
			t.Helper()
			return len(textsTo(t, endpoint, phone))
		}}
	case "application":
		app := createApplication(t, c, "GCM", "shop")
		device := createEndpoint(t, c, app, "token-1")
		return reader{protocol, device, app, func(t *testing.T) int {
			t.Helper()
			return len(pushes(t, endpoint, device))
		}}
	default:
		const address = "ops@example.com"
		return reader{protocol, address, direct + "email", func(t *testing.T) int {
			t.Helper()
			return len(letters(t, endpoint, address))
		}}
	}
}

// What is too short for a number of E.164 is none, neither to subscribe nor to publish to.
func TestShortNumbers(t *testing.T) {
	c := topicsClient(start(t))
	topic := createTopic(t, c, "alarms")
	for _, number := range []string{"+1", "+1234567", "+01234567890"} {
		_, err := c.Subscribe(t.Context(), &sns.SubscribeInput{TopicArn: &topic, Protocol: aws.String("sms"), Endpoint: &number})
		refused(t, err, "InvalidParameter", http.StatusBadRequest, "Invalid SMS endpoint: "+number)
		_, err = c.Publish(t.Context(), &sns.PublishInput{PhoneNumber: &number, Message: aws.String("hello")})
		refused(t, err, "InvalidParameter", http.StatusBadRequest, "Invalid parameter: PhoneNumber Reason: "+number+" is not valid to publish to")
		_, err = c.OptInPhoneNumber(t.Context(), &sns.OptInPhoneNumberInput{PhoneNumber: &number})
		refused(t, err, "InvalidParameter", http.StatusBadRequest, "Invalid parameter: PhoneNumber Reason: input incorrectly formatted")
	}
	must(c.Subscribe(t.Context(), &sns.SubscribeInput{TopicArn: &topic, Protocol: aws.String("sms"), Endpoint: aws.String("+12345678")}))(t)
}
