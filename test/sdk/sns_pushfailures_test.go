package sdk_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/test/gateways"
)

// startPushing runs a server that sends push messages to stand-ins of both services.
func startPushing(t *testing.T) (endpoint string, apns *gateways.APNs, fcm *gateways.FCM) {
	apns, fcm = gateways.NewAPNs(t), gateways.NewFCM(t)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, append(apns.CA(), fcm.CA()...), 0o600); err != nil {
		t.Fatal(err)
	}
	endpoint = startWith(t, func(c *config.Config) {
		c.PushAPNsURL, c.PushFCMURL, c.EndpointCA = apns.URL, fcm.URL, ca
	})
	return endpoint, apns, fcm
}

// eventsOf subscribes a queue to a topic of events and gives what it has got since.
func eventsOf(t *testing.T, endpoint string) (topic string, take func() []map[string]any) {
	t.Helper()
	c, q := topicsClient(endpoint), client(endpoint)
	topic = createTopic(t, c, "events")
	url := createQueue(t, q, "events")
	subscribe(t, c, topic, "sqs", "arn:aws:sqs:us-east-1:000000000000:events", "RawMessageDelivery", "true")
	return topic, func() (all []map[string]any) {
		t.Helper()
		for {
			got := must(q.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10}))(t).Messages
			if len(got) == 0 {
				return all
			}
			for _, m := range got {
				all = append(all, decode(t, *m.Body))
				must(q.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: m.ReceiptHandle}))(t)
			}
		}
	}
}

func eventTypes(all []map[string]any) (types []string) {
	for _, e := range all {
		types = append(types, e["EventType"].(string))
	}
	slices.Sort(types)
	return types
}

func deliveriesOf(t *testing.T, endpoint, name string) (all []map[string]any) {
	t.Helper()
	for _, d := range admin(t, endpoint+"/_godwit/deliveries?subscription="+name, "")["deliveries"].([]any) {
		all = append(all, d.(map[string]any))
	}
	return all
}

// Both services are really spoken to, and what they say of a token disables its endpoint, of
// which a topic is told, as of all that becomes of endpoints.
func TestPushFeedback(t *testing.T) {
	endpoint, apns, fcm := startPushing(t)
	c := topicsClient(endpoint)
	topic, events := eventsOf(t, endpoint)
	wanted := []string{"EventEndpointCreated", topic, "EventEndpointUpdated", topic, "EventEndpointDeleted", topic, "EventDeliveryFailure", topic}
	key, text := gateways.NewECKey()
	apns.Know("TEAM", "KEY", &key.PublicKey)
	ios := createApplication(t, c, "APNS", "shop", append(wanted, "PlatformPrincipal", "KEY", "PlatformCredential", text, "ApplePlatformTeamID", "TEAM", "ApplePlatformBundleID", "dev.godwit.Shop")...)
	android := createApplication(t, c, "GCM", "shop", append(wanted, "PlatformCredential", fcm.Account())...)
	attributes := must(c.GetPlatformApplicationAttributes(t.Context(), &sns.GetPlatformApplicationAttributesInput{PlatformApplicationArn: &ios}))(t).Attributes
	equal(t, "what is shown", map[string]string{
		"Enabled": "true", "ApplePlatformTeamID": "TEAM", "ApplePlatformBundleID": "dev.godwit.Shop", "AuthenticationMethod": "token",
		"EventEndpointCreated": topic, "EventEndpointUpdated": topic, "EventEndpointDeleted": topic, "EventDeliveryFailure": topic,
	}, attributes)
	phone, tablet := createEndpoint(t, c, ios, strings.Repeat("0a", 32)), createEndpoint(t, c, android, "token_1")
	pushTo(t, c, phone, "hi")
	pushTo(t, c, tablet, "hi")
	advance(t, endpoint, "1s")
	equal(t, "at APNs", []int{1, http.StatusOK}, []int{len(apns.Received()), apns.Received()[0].Status})
	equal(t, "at FCM", []int{1, http.StatusOK}, []int{len(fcm.Received()), fcm.Received()[0].Status})
	equal(t, "events", []string{"EndpointCreated", "EndpointCreated"}, eventTypes(events()))

	apns.Script(func(int, string) *gateways.Answer {
		return &gateways.Answer{Status: 410, Body: `{"reason":"Unregistered"}`}
	})
	fcm.Script(func(int, string) *gateways.Answer {
		return &gateways.Answer{Status: 404, Body: gateways.FCMError(404, "NOT_FOUND", "UNREGISTERED", "Requested entity was not found.")}
	})
	published := must(c.Publish(t.Context(), &sns.PublishInput{TargetArn: &phone, Message: aws.String("hi")}))(t)
	pushTo(t, c, tablet, "hi")
	advance(t, endpoint, "1s")
	for _, name := range []string{phone, tablet} {
		equal(t, "Enabled", "false", endpointAttributes(t, c, name)["Enabled"])
		_, err := c.Publish(t.Context(), &sns.PublishInput{TargetArn: &name, Message: aws.String("m")})
		refused(t, err, "EndpointDisabled", 400, "Endpoint is disabled")
	}
	told := events()
	equal(t, "events", []string{"DeliveryFailure", "DeliveryFailure", "EndpointUpdated", "EndpointUpdated"}, eventTypes(told))
	for _, e := range told {
		if e["EventType"] != "DeliveryFailure" || e["EndpointArn"] != phone {
			continue
		}
		delete(e, "Time")
		equal(t, "an event", map[string]any{
			"DeliveryAttempts": 1.0, "EndpointArn": phone, "EventType": "DeliveryFailure", "FailureType": "InvalidPlatformToken",
			"FailureMessage": "Platform token associated with the endpoint is not valid (Unregistered)", "MessageId": *published.MessageId, "Resource": ios, "Service": "SNS",
		}, e)
	}
	for _, d := range deliveriesOf(t, endpoint, ios) {
		if d["messageId"] == *published.MessageId {
			equal(t, "the delivery", []any{"dropped", 1.0}, []any{d["state"], d["attempt"]})
		}
	}

	must(c.DeleteEndpoint(t.Context(), &sns.DeleteEndpointInput{EndpointArn: &phone}))(t)
	advance(t, endpoint, "1s")
	equal(t, "events", []string{"EndpointDeleted"}, eventTypes(events()))
}

// A service that fails is tried again by the ladder of six hours, as long as the message is
// worth it; an operator can pause it, or have it tried now.
func TestPushLadder(t *testing.T) {
	endpoint, _, fcm := startPushing(t)
	c := topicsClient(endpoint)
	topic, events := eventsOf(t, endpoint)
	role := feedbackRole(t, endpoint)
	app := createApplication(t, c, "GCM", "shop", "PlatformCredential", fcm.Account(), "EventDeliveryFailure", topic,
		"SuccessFeedbackRoleArn", role, "FailureFeedbackRoleArn", role)
	tablet := createEndpoint(t, c, app, "token_1")
	fails := func(int, string) *gateways.Answer { return &gateways.Answer{Status: 503} }
	fcm.Script(fails)
	attempts := func(want int) {
		t.Helper()
		equal(t, "attempts", want, len(fcm.Received()))
	}
	pushTo(t, c, tablet, "never")
	advance(t, endpoint, "10s")
	attempts(2)
	advance(t, endpoint, "7h")
	attempts(51)
	got := events()
	equal(t, "events", []string{"DeliveryFailure"}, eventTypes(got))
	equal(t, "its failure", []any{51.0, "ServerError"}, []any{got[0]["DeliveryAttempts"], got[0]["FailureType"]})

	pushTo(t, c, tablet, "for a minute", "AWS.SNS.MOBILE.GCM.TTL", "15")
	advance(t, endpoint, "7h")
	attempts(53) // the third would have been after 20 s
	got = events()
	equal(t, "its failure", []any{2.0, "TTLExpired"}, []any{got[0]["DeliveryAttempts"], got[0]["FailureType"]})

	// Pause, and retry now.
	admin(t, endpoint+"/_godwit/subscriptions/pause", `{"subscription":"`+app+`"}`)
	pushTo(t, c, tablet, "paused")
	advance(t, endpoint, "1m")
	attempts(53)
	backlog := admin(t, endpoint+"/_godwit/backlog?subscription="+app, "")
	equal(t, "it waits", 1.0, backlog["due"])
	admin(t, endpoint+"/_godwit/subscriptions/resume", `{"subscription":"`+app+`"}`)
	advance(t, endpoint, "1s")
	attempts(54)
	fcm.Script(nil)
	admin(t, endpoint+"/_godwit/deliveries/retry", `{"subscription":"`+app+`","all":true}`)
	advance(t, endpoint, "0s")
	attempts(55)
	equal(t, "the delivery", "delivered", deliveriesOf(t, endpoint, app)[0]["state"])

	// A service that says when to come back is left alone until then; an outage on purpose.
	fcm.Script(func(int, string) *gateways.Answer {
		return &gateways.Answer{Status: 429, Header: map[string]string{"Retry-After": "300"}}
	})
	pushTo(t, c, tablet, "later")
	advance(t, endpoint, "299s")
	attempts(56)
	fcm.Script(nil)
	advance(t, endpoint, "1m")
	attempts(57)
	admin(t, endpoint+"/_godwit/faults", `{"arn":"`+app+`","fault":"unavailable"}`)
	pushTo(t, c, tablet, "outage")
	advance(t, endpoint, "10s")
	attempts(57)
	admin(t, endpoint+"/_godwit/faults", `{"arn":"`+app+`","fault":"none"}`)
	advance(t, endpoint, "1m")
	attempts(58)

	failures := statusEntries(t, endpoint, "sns/us-east-1/000000000000/app/GCM/shop/Failure")
	delivery := failures[0]["delivery"].(map[string]any)
	equal(t, "a failure in the log", []any{tablet, 503.0, 1.0}, []any{delivery["destination"], delivery["statusCode"], delivery["attempts"]})
	successes := statusEntries(t, endpoint, "sns/us-east-1/000000000000/app/GCM/shop")
	response := decode(t, successes[len(successes)-1]["delivery"].(map[string]any)["providerResponse"].(string))
	if name, _ := response["name"].(string); !strings.HasPrefix(name, "projects/") {
		t.Errorf("a success in the log: %v", successes)
	}
	if units := metricUnits(t, endpoint, "AWS/SNS", "Application", "shop"); units["NumberOfMessagesPublished"] != "Count" || units["NumberOfNotificationsFailed"] != "Count" {
		t.Errorf("metrics: %v", units)
	}
}

// A connection that is lost in the middle, and one that the service ends in good order, cost
// a retry at most; nobody else waits for an application whose service hangs.
func TestPushIsolation(t *testing.T) {
	endpoint, apns, fcm := startPushing(t)
	c := topicsClient(endpoint)
	tablet := createEndpoint(t, c, createApplication(t, c, "GCM", "shop", "PlatformCredential", fcm.Account()), "token_1")
	certificate, key := gateways.NewCertificate("dev.godwit.Shop")
	phone := createEndpoint(t, c, createApplication(t, c, "APNS", "shop", "PlatformPrincipal", certificate, "PlatformCredential", key), strings.Repeat("0a", 32))
	fcm.Script(func(n int, _ string) *gateways.Answer {
		if n == 0 {
			return &gateways.Answer{Close: true}
		}
		return nil
	})
	pushTo(t, c, tablet, "one")
	advance(t, endpoint, "10s")
	equal(t, "attempts", 2, len(fcm.Received()))
	apns.CloseClientConnections()
	pushTo(t, c, phone, "two")
	advance(t, endpoint, "10s")
	equal(t, "by certificate", http.StatusOK, apns.Received()[len(apns.Received())-1].Status)
}
