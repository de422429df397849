package sdk_test

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"godwit.dev/godwit/test/gateways"
)

// push is a message of the outbox.
type push struct {
	At        string
	MessageID string `json:"messageId"`
	Endpoint  string
	Platform  string
	Token     string
	Headers   map[string]string
	Payload   json.RawMessage
}

// pushes are the messages to an endpoint that were kept and not sent, the oldest first.
func pushes(t *testing.T, endpoint, to string) (all []push) {
	t.Helper()
	page := visit(t, endpoint+"/_godwit/outbox/push?limit=1000&endpoint="+url.QueryEscape(to))
	equal(t, "status of the outbox", http.StatusOK, page.Status)
	var list struct{ Pushes []push }
	if err := json.Unmarshal([]byte(page.Body), &list); err != nil {
		t.Fatalf("%v: %s", err, page.Body)
	}
	for _, p := range list.Pushes {
		all = append([]push{p}, all...)
	}
	return all
}

func payloads(all []push) (texts []string) {
	for _, p := range all {
		texts = append(texts, string(p.Payload))
	}
	return texts
}

func createApplication(t *testing.T, c *sns.Client, of, name string, attributes ...string) string {
	t.Helper()
	in := &sns.CreatePlatformApplicationInput{Name: &name, Platform: &of, Attributes: map[string]string{"PlatformCredential": "credential-" + name}}
	if of != "GCM" {
		in.Attributes["PlatformPrincipal"] = "principal-" + name
	}
	for i := 0; i < len(attributes); i += 2 {
		in.Attributes[attributes[i]] = attributes[i+1]
	}
	return *must(c.CreatePlatformApplication(t.Context(), in))(t).PlatformApplicationArn
}

func createEndpoint(t *testing.T, c *sns.Client, application, token string) string {
	t.Helper()
	return *must(c.CreatePlatformEndpoint(t.Context(), &sns.CreatePlatformEndpointInput{PlatformApplicationArn: &application, Token: &token}))(t).EndpointArn
}

func endpointAttributes(t *testing.T, c *sns.Client, name string) map[string]string {
	t.Helper()
	return must(c.GetEndpointAttributes(t.Context(), &sns.GetEndpointAttributesInput{EndpointArn: &name}))(t).Attributes
}

func pushTo(t *testing.T, c *sns.Client, target, message string, more ...string) {
	t.Helper()
	in := &sns.PublishInput{TargetArn: &target, Message: &message}
	for i := 0; i < len(more); i += 2 {
		if more[i] == "MessageStructure" {
			in.MessageStructure = &more[i+1]
			continue
		}
		if in.MessageAttributes == nil {
			in.MessageAttributes = map[string]types.MessageAttributeValue{}
		}
		in.MessageAttributes[more[i]] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &more[i+1]}
	}
	must(c.Publish(t.Context(), in))(t)
}

const (
	unknownApp      = "arn:aws:sns:us-east-1:000000000000:app/GCM/nobody"
	unknownEndpoint = "arn:aws:sns:us-east-1:000000000000:endpoint/GCM/nobody/6d6b8f6e-0000-4000-8000-000000000001"
	lackOfAttrs     = "1 validation error detected: Value null at 'attributes' failed to satisfy constraint: Member must not be null"
)

func TestPlatformApplications(t *testing.T) {
	endpoint := start(t)
	c := topicsClient(endpoint)
	app := createApplication(t, c, "GCM", "shop")
	equal(t, "its ARN", "arn:aws:sns:us-east-1:000000000000:app/GCM/shop", app)
	equal(t, "the same again", app, createApplication(t, c, "GCM", "shop"))
	attributes := func() map[string]string {
		return must(c.GetPlatformApplicationAttributes(t.Context(), &sns.GetPlatformApplicationAttributesInput{PlatformApplicationArn: &app}))(t).Attributes
	}
	equal(t, "its attributes", map[string]string{"Enabled": "true"}, attributes())
	set := func(attributes map[string]string) error {
		_, err := c.SetPlatformApplicationAttributes(t.Context(), &sns.SetPlatformApplicationAttributesInput{PlatformApplicationArn: &app, Attributes: attributes})
		return err
	}
	for _, change := range []map[string]string{{"SuccessFeedbackSampleRate": "50"}, {"PlatformCredential": "another"}, {"Enabled": "False"}} {
		if err := set(change); err != nil {
			t.Errorf("%v: %v", change, err)
		}
	}
	equal(t, "its attributes now", map[string]string{"Enabled": "false", "SuccessFeedbackSampleRate": "50"}, attributes())
	if err := set(map[string]string{"SuccessFeedbackSampleRate": "", "Enabled": "true"}); err != nil {
		t.Error(err)
	}
	equal(t, "its attributes then", map[string]string{"Enabled": "true"}, attributes())

	for want, wrong := range map[string]map[string]string{
		"Attributes Reason: PlatformPrincipal attribute provided without PlatformCredential":                                    {"PlatformPrincipal": "x"},
		"Attributes Reason: Invalid attribute name: Nonsense":                                                                   {"Nonsense": "x"},
		"Attributes Reason: Invalid value for attribute: Enabled: must be true or false":                                        {"Enabled": "x"},
		"Attributes Reason: SuccessFeedbackSampleRate: 101 value provided is not an integer between 0-100":                      {"SuccessFeedbackSampleRate": "101"},
		"Attributes Reason: SuccessFeedbackRoleArn: [x] is not the ARN of a role":                                               {"SuccessFeedbackRoleArn": "x"},
		"Attributes Reason: Invalid value for attribute: ApplePlatformTeamID: must be at most 256 bytes long in UTF-8 encoding": {"ApplePlatformTeamID": strings.Repeat("x", 257)},
		"Attributes Reason: Invalid value for attribute: EventEndpointCreated: must be the ARN of a standard topic of the application's account and region": {
			"EventEndpointCreated": "arn:aws:sns:us-east-1:111111111111:t",
		},
	} {
		refused(t, set(wrong), "InvalidParameter", 400, "Invalid parameter: "+want)
	}
	long := strings.Repeat("n", 257)
	for _, tt := range []struct {
		platform, name string
		attributes     map[string]string
		code, want     string
	}{
		{"GCM", "x", map[string]string{}, "ValidationError", lackOfAttrs},
		{"ADM", "x", map[string]string{"PlatformPrincipal": "p"}, "InvalidParameter", "Invalid parameter: Attributes Reason: PlatformPrincipal attribute provided without PlatformCredential"},
		{"ADM", "x", map[string]string{"PlatformCredential": "p"}, "InvalidParameter", "Invalid parameter: Attributes Reason: PlatformCredential attribute provided without PlatformPrincipal"},
		{"GCM", "x", map[string]string{"Enabled": "true"}, "InvalidParameter", "Invalid parameter: Attributes Reason: PlatformCredential attribute not provided"},
		{"GCM", long, map[string]string{"PlatformCredential": "p"}, "InvalidParameter", "Invalid parameter: " + long + " Reason: must be at most 256 characters long"},
		{"GCM", "", map[string]string{"PlatformCredential": "p"}, "InvalidParameter", "Invalid parameter:  Reason: cannot be empty"},
		{"GCM", "@name", map[string]string{"PlatformCredential": "p"}, "InvalidParameter", "Invalid parameter: @name Reason: must contain only characters 'a'-'z', 'A'-'Z', '0'-'9', '_', '-', and '.'"},
		{"AAA", "x", map[string]string{"PlatformCredential": "p"}, "InvalidParameter", "Invalid parameter: Platform Reason: AAA is not supported"},
		{"GCM", "shop", map[string]string{"PlatformCredential": "p"}, "InvalidParameter", "Invalid parameter: Attributes Reason: An application with the same name but different properties already exists"},
	} {
		_, err := c.CreatePlatformApplication(t.Context(), &sns.CreatePlatformApplicationInput{Name: &tt.name, Platform: &tt.platform, Attributes: tt.attributes})
		refused(t, err, tt.code, 400, tt.want)
	}

	// The order of faults: the ARN's form, then what is missing, then existence.
	for _, tt := range []struct {
		arn        string
		attributes map[string]string
		code       string
		status     int
		want       string
	}{
		{"invalid-arn", map[string]string{}, "InvalidParameter", 400, "Invalid parameter: PlatformApplicationArn Reason: An ARN must have at least 6 elements, not 1"},
		{unknownApp, map[string]string{}, "ValidationError", 400, lackOfAttrs},
		{unknownApp, map[string]string{"PlatformPrincipal": "dummy"}, "NotFound", 404, "PlatformApplication does not exist"},
		{strings.Replace(unknownApp, "us-east-1", "eu-west-1", 1), map[string]string{"Enabled": "true"}, "InvalidParameter", 400, "Invalid parameter: PlatformApplicationArn"},
		{unknownApp + "/more", map[string]string{"Enabled": "true"}, "InvalidParameter", 400, "Invalid parameter: PlatformApplicationArn Reason: Wrong number of slashes in relative portion of the ARN."},
	} {
		_, err := c.SetPlatformApplicationAttributes(t.Context(), &sns.SetPlatformApplicationAttributesInput{PlatformApplicationArn: &tt.arn, Attributes: tt.attributes})
		refused(t, err, tt.code, tt.status, tt.want)
	}
	_, err := c.GetPlatformApplicationAttributes(t.Context(), &sns.GetPlatformApplicationAttributesInput{PlatformApplicationArn: aws.String("invalid-arn")})
	refused(t, err, "InvalidParameter", 400, "Invalid parameter: PlatformApplicationArn Reason: An ARN must have at least 6 elements, not 1")
	_, err = c.GetPlatformApplicationAttributes(t.Context(), &sns.GetPlatformApplicationAttributesInput{PlatformApplicationArn: aws.String(unknownApp)})
	refused(t, err, "NotFound", 404, "PlatformApplication does not exist")
	_, err = c.ListPlatformApplications(t.Context(), &sns.ListPlatformApplicationsInput{NextToken: aws.String("x")})
	refused(t, err, "InvalidParameter", 400, "Invalid parameter: NextToken")

	for i := range 101 {
		createApplication(t, c, "ADM", "many-"+string(rune('a'+i/26))+string(rune('a'+i%26)))
	}
	first := must(c.ListPlatformApplications(t.Context(), &sns.ListPlatformApplicationsInput{}))(t)
	second := must(c.ListPlatformApplications(t.Context(), &sns.ListPlatformApplicationsInput{NextToken: first.NextToken}))(t)
	equal(t, "pages", []int{100, 2}, []int{len(first.PlatformApplications), len(second.PlatformApplications)})
	equal(t, "a further page", (*string)(nil), second.NextToken)
	equal(t, "the last", app, *second.PlatformApplications[1].PlatformApplicationArn)
	equal(t, "its attributes", map[string]string{"Enabled": "true"}, second.PlatformApplications[1].Attributes)
}

// What credentials lead to is shown, and cannot be set.
func TestWhatCredentialsTell(t *testing.T) {
	c := topicsClient(start(t))
	certificate, key := gateways.NewCertificate("dev.godwit.shop")
	block, _ := pem.Decode([]byte(certificate))
	expires := must(x509.ParseCertificate(block.Bytes))(t).NotAfter.UTC().Format("2006-01-02T15:04:05Z")
	for name, tt := range map[string]struct {
		platform    string
		credentials []string
		want        map[string]string
	}{
		"key":         {"APNS", []string{"PlatformPrincipal", "id", "PlatformCredential", "key"}, map[string]string{"AuthenticationMethod": "token"}},
		"certificate": {"APNS_SANDBOX", []string{"PlatformPrincipal", certificate, "PlatformCredential", key}, map[string]string{"AuthenticationMethod": "certificate", "AppleCertificateExpiryDate": expires}},
		"account":     {"GCM", []string{"PlatformCredential", `{"type":"service_account"}`}, map[string]string{"AuthenticationMethod": "token"}},
		"other":       {"GCM", []string{"PlatformCredential", "anything"}, nil},
		"amazon":      {"ADM", []string{"PlatformPrincipal", "id", "PlatformCredential", "key"}, nil},
	} {
		want := map[string]string{"Enabled": "true"}
		maps.Copy(want, tt.want)
		app := createApplication(t, c, tt.platform, name, tt.credentials...)
		equal(t, name, want, must(c.GetPlatformApplicationAttributes(t.Context(), &sns.GetPlatformApplicationAttributesInput{PlatformApplicationArn: &app}))(t).Attributes)
		for _, one := range must(c.ListPlatformApplications(t.Context(), &sns.ListPlatformApplicationsInput{}))(t).PlatformApplications {
			if *one.PlatformApplicationArn == app {
				equal(t, name+", listed", want, one.Attributes)
			}
		}
		_, err := c.SetPlatformApplicationAttributes(t.Context(), &sns.SetPlatformApplicationAttributesInput{
			PlatformApplicationArn: &app, Attributes: map[string]string{"AppleCertificateExpiryDate": expires},
		})
		refused(t, err, "InvalidParameter", 400, "Invalid parameter: Attributes Reason: Invalid attribute name: AppleCertificateExpiryDate")
	}
}

// What a message wants of a push platform is refused where no platform takes it.
func TestPushAttributesAreChecked(t *testing.T) {
	endpoint := start(t)
	c := topicsClient(endpoint)
	device := createEndpoint(t, c, createApplication(t, c, "APNS", "shop", "PlatformPrincipal", "id", "PlatformCredential", "key"), "device-1")
	publish := func(name, value string) error {
		_, err := c.Publish(t.Context(), &sns.PublishInput{TargetArn: &device, Message: aws.String("hello"), MessageAttributes: map[string]types.MessageAttributeValue{
			name: {DataType: aws.String("String"), StringValue: &value},
		}})
		return err
	}
	for _, attribute := range [][2]string{
		{"APNS.TTL", "0"},
		{"APNS.TTL", "2419200"},
		{"GCM.TTL", "60"},
		{"FCM.TTL", "60"},
		{"APNS.PUSH_TYPE", "background"},
		{"APNS.PUSH_TYPE", "liveactivity"},
		{"APNS.PRIORITY", "5"},
		{"APNS_SANDBOX.PRIORITY", "10"},
		{"APNS.COLLAPSE_ID", "c"},
		{"APNS.TOPIC", "dev.godwit.shop.voip"},
		{"WNS.Type", "wns/toast"},
	} {
		if err := publish("AWS.SNS.MOBILE."+attribute[0], attribute[1]); err != nil {
			t.Errorf("%s=%s: %v", attribute[0], attribute[1], err)
		}
	}
	advance(t, endpoint, "1s") // they are sent behind the answers
	sent := len(pushes(t, endpoint, device))
	for _, attribute := range [][2]string{
		{"APNS.TTL", "-1"},
		{"APNS.TTL", "soon"},
		{"GCM.TTL", "1.5"},
		{"APNS.PUSH_TYPE", "shout"},
		{"APNS.PRIORITY", "7"},
		{"APNS_SANDBOX.PRIORITY", "high"},
		{"APNS.COLLAPSE_ID", strings.Repeat("c", 65)},
		{"APNS.TOPIC", "a\nb"},
	} {
		refused(t, publish("AWS.SNS.MOBILE."+attribute[0], attribute[1]), "InvalidParameter", 400,
			"Invalid parameter: MessageAttributes Reason: the value of AWS.SNS.MOBILE."+attribute[0]+" is not valid")
	}
	advance(t, endpoint, "1s")
	equal(t, "messages that were sent", sent, len(pushes(t, endpoint, device)))
}

func TestPlatformEndpoints(t *testing.T) {
	endpoint := start(t)
	c := topicsClient(endpoint)
	app := createApplication(t, c, "GCM", "shop")
	first := createEndpoint(t, c, app, "token_1")
	if !strings.HasPrefix(first, "arn:aws:sns:us-east-1:000000000000:endpoint/GCM/shop/") {
		t.Errorf("its ARN is %s", first)
	}
	equal(t, "its attributes", map[string]string{"Enabled": "true", "Token": "token_1"}, endpointAttributes(t, c, first))
	create := func(token string, data *string, attributes map[string]string) (string, error) {
		out, err := c.CreatePlatformEndpoint(t.Context(), &sns.CreatePlatformEndpointInput{PlatformApplicationArn: &app, Token: &token, CustomUserData: data, Attributes: attributes})
		if err != nil {
			return "", err
		}
		return *out.EndpointArn, nil
	}
	again := func(want, token string, data *string, attributes map[string]string) {
		t.Helper()
		got, err := create(token, data, attributes)
		if err != nil || got != want {
			t.Errorf("%s: %s, %v", token, got, err)
		}
	}
	taken := func(by, token string, data *string, attributes map[string]string) {
		t.Helper()
		_, err := create(token, data, attributes)
		refused(t, err, "InvalidParameter", 400, "Invalid parameter: Token Reason: Endpoint "+by+" already exists with the same Token, but different attributes.")
	}
	again(first, "token_1", nil, nil)
	again(first, "token_1", nil, map[string]string{"Enabled": "true"})
	taken(first, "token_1", nil, map[string]string{"Enabled": "false"})
	taken(first, "token_1", aws.String("x"), nil)
	second := must(create("token_2", aws.String("bar"), map[string]string{"CustomUserData": "foo", "Enabled": "false"}))(t)
	equal(t, "the other's attributes", map[string]string{"Enabled": "false", "Token": "token_2", "CustomUserData": "foo"}, endpointAttributes(t, c, second))
	again(second, "token_2", aws.String("foo"), map[string]string{"Enabled": "false"})
	taken(second, "token_2", aws.String("foo"), nil)
	taken(second, "token_2", nil, map[string]string{"Enabled": "false"})

	set := func(name string, attributes map[string]string) error {
		_, err := c.SetEndpointAttributes(t.Context(), &sns.SetEndpointAttributesInput{EndpointArn: &name, Attributes: attributes})
		return err
	}
	if err := set(first, map[string]string{"Enabled": "false"}); err != nil {
		t.Error(err)
	}
	equal(t, "its attributes now", map[string]string{"Enabled": "false", "Token": "token_1"}, endpointAttributes(t, c, first))
	if err := set(first, map[string]string{"Token": "token_3"}); err != nil {
		t.Error(err)
	}
	again(first, "token_3", nil, map[string]string{"Enabled": "false"})
	refused(t, set(first, map[string]string{"Token": "token_2"}), "InvalidParameter", 400, "Invalid parameter: Token Reason: Endpoint "+second+" already exists with the same Token, but different attributes.")
	refused(t, set(first, map[string]string{}), "ValidationError", 400, lackOfAttrs)
	for want, wrong := range map[string]map[string]string{
		"Attributes Reason: Invalid attribute name: InvalidKey":                                                             {"InvalidKey": "x"},
		"Attributes Reason: Invalid attribute name: PlatformPrincipal":                                                      {"PlatformPrincipal": "x"},
		"Attributes Reason: Invalid value for attribute: CustomUserData: must be at most 2048 bytes long in UTF-8 encoding": {"CustomUserData": strings.Repeat("x", 2050)},
		"Attributes Reason: Invalid value for attribute: Enabled: must be true or false":                                    {"Enabled": "maybe"},
		"Token Reason: cannot be empty":                                                                                     {"Token": ""},
		"Token Reason: must be at most 4096 bytes long in UTF-8 encoding":                                                   {"Token": strings.Repeat("x", 4097)},
	} {
		refused(t, set(first, wrong), "InvalidParameter", 400, "Invalid parameter: "+want)
		token := "token_9"
		if _, own := wrong["Token"]; !own {
			_, err := create(token, nil, wrong)
			refused(t, err, "InvalidParameter", 400, "Invalid parameter: "+want)
		}
	}
	refused(t, set(unknownEndpoint, map[string]string{"Enabled": "true"}), "NotFound", 404, "Endpoint does not exist")
	refused(t, set(unknownApp, map[string]string{"Enabled": "true"}), "InvalidParameter", 400, "Invalid parameter: EndpointArn Reason: Wrong number of slashes in relative portion of the ARN.")
	_, err := c.GetEndpointAttributes(t.Context(), &sns.GetEndpointAttributesInput{EndpointArn: aws.String(unknownEndpoint)})
	refused(t, err, "NotFound", 404, "Endpoint does not exist")
	_, err = c.GetEndpointAttributes(t.Context(), &sns.GetEndpointAttributesInput{EndpointArn: aws.String("x")})
	refused(t, err, "InvalidParameter", 400, "Invalid parameter: EndpointArn Reason: An ARN must have at least 6 elements, not 1")
	_, err = c.CreatePlatformEndpoint(t.Context(), &sns.CreatePlatformEndpointInput{PlatformApplicationArn: aws.String(unknownApp), Token: aws.String("t")})
	refused(t, err, "NotFound", 404, "PlatformApplication does not exist")

	list := func(token *string) *sns.ListEndpointsByPlatformApplicationOutput {
		return must(c.ListEndpointsByPlatformApplication(t.Context(), &sns.ListEndpointsByPlatformApplicationInput{PlatformApplicationArn: &app, NextToken: token}))(t)
	}
	for i := range 99 {
		createEndpoint(t, c, app, "many_"+string(rune('a'+i/26))+string(rune('a'+i%26)))
	}
	page := list(nil)
	rest := list(page.NextToken)
	equal(t, "pages", []int{100, 1}, []int{len(page.Endpoints), len(rest.Endpoints)})
	equal(t, "a further page", (*string)(nil), rest.NextToken)
	found := map[string]bool{}
	for _, e := range append(page.Endpoints, rest.Endpoints...) {
		found[*e.EndpointArn] = true
		if *e.EndpointArn == second {
			equal(t, "the other's attributes", map[string]string{"Enabled": "false", "Token": "token_2", "CustomUserData": "foo"}, e.Attributes)
		}
	}
	equal(t, "endpoints", 101, len(found))
	_, err = c.ListEndpointsByPlatformApplication(t.Context(), &sns.ListEndpointsByPlatformApplicationInput{PlatformApplicationArn: aws.String(unknownApp)})
	refused(t, err, "NotFound", 404, "PlatformApplication does not exist")
	_, err = c.ListEndpointsByPlatformApplication(t.Context(), &sns.ListEndpointsByPlatformApplicationInput{PlatformApplicationArn: &app, NextToken: aws.String("x")})
	refused(t, err, "InvalidParameter", 400, "Invalid parameter: NextToken")

	// Its subscriptions outlive an endpoint, and so does the success of deleting it.
	topic := createTopic(t, c, "news")
	sub := subscribe(t, c, topic, "application", first)
	for range 2 {
		must(c.DeleteEndpoint(t.Context(), &sns.DeleteEndpointInput{EndpointArn: &first}))(t)
	}
	_, err = c.DeleteEndpoint(t.Context(), &sns.DeleteEndpointInput{EndpointArn: aws.String("x")})
	refused(t, err, "InvalidParameter", 400, "Invalid parameter: EndpointArn Reason: An ARN must have at least 6 elements, not 1")
	subs := must(c.ListSubscriptionsByTopic(t.Context(), &sns.ListSubscriptionsByTopicInput{TopicArn: &topic}))(t).Subscriptions
	equal(t, "its subscription", []string{sub, "application", first}, []string{*subs[0].SubscriptionArn, *subs[0].Protocol, *subs[0].Endpoint})
	_, err = c.Subscribe(t.Context(), &sns.SubscribeInput{TopicArn: aws.String(createTopic(t, c, "other")), Protocol: aws.String("application"), Endpoint: &first})
	refused(t, err, "InvalidParameter", 400, "Invalid parameter: Endpoint Reason: Endpoint does not exist for endpoint arn"+first)
	_, err = c.Subscribe(t.Context(), &sns.SubscribeInput{TopicArn: &topic, Protocol: aws.String("application"), Endpoint: aws.String("nonsense")})
	refused(t, err, "InvalidParameter", 400, "Invalid parameter: Endpoint Reason: Endpoint does not exist for endpoint arnnonsense")

	for range 2 {
		must(c.DeletePlatformApplication(t.Context(), &sns.DeletePlatformApplicationInput{PlatformApplicationArn: &app}))(t)
	}
	_, err = c.DeletePlatformApplication(t.Context(), &sns.DeletePlatformApplicationInput{PlatformApplicationArn: aws.String("x")})
	refused(t, err, "InvalidParameter", 400, "Invalid parameter: PlatformApplicationArn Reason: An ARN must have at least 6 elements, not 1")
	_, err = c.GetEndpointAttributes(t.Context(), &sns.GetEndpointAttributesInput{EndpointArn: &second})
	refused(t, err, "NotFound", 404, "Endpoint does not exist")
	must(c.DeleteEndpoint(t.Context(), &sns.DeleteEndpointInput{EndpointArn: &second}))(t)
	createApplication(t, c, "GCM", "shop")
	equal(t, "endpoints of another of the name", 0, len(list(nil).Endpoints))
}

// What is published to an endpoint is kept by the outbox as its platform would get it.
func TestPublishToEndpoint(t *testing.T) {
	endpoint := start(t)
	c := topicsClient(endpoint)
	android := createEndpoint(t, c, createApplication(t, c, "GCM", "shop"), "token_1")
	phone := createEndpoint(t, c, createApplication(t, c, "APNS_SANDBOX", "shop", "ApplePlatformBundleID", "dev.godwit.Shop"), strings.Repeat("0a", 32))
	push := func(target, message string, attributes ...string) { // one after the other: the outbox is in their order
		t.Helper()
		pushTo(t, c, target, message, attributes...)
		advance(t, endpoint, "0s")
	}
	push(android, "hi <ü>")
	push(android, `{"default":"d","APNS":"x","GCM":"{\"data\":{\"n\":1}}"}`, "MessageStructure", "json")
	push(android, `{"GCM":"{\"fcmV1Message\":{\"message\":{\"notification\":{\"title\":\"t\"}}}}"}`, "MessageStructure", "json", "AWS.SNS.MOBILE.GCM.TTL", "60")
	push(android, `{"default":"for all"}`, "MessageStructure", "json")
	push(phone, "hi")
	push(phone, `{"default":"d","APNS_SANDBOX":"{\"aps\":{\"badge\":1}}"}`, "MessageStructure", "json")
	must(c.Publish(t.Context(), &sns.PublishInput{TopicArn: &phone, Message: aws.String("by the other name")}))(t)
	advance(t, endpoint, "1s")
	equal(t, "to the one", []string{
		`{"message":{"data":{"default":"hi <ü>"},"token":"token_1"}}`,
		`{"message":{"data":{"n":"1"},"token":"token_1"}}`,
		`{"message":{"android":{"ttl":"60s"},"notification":{"title":"t"},"token":"token_1"}}`,
		`{"message":{"data":{"default":"for all"},"token":"token_1"}}`,
	}, payloads(pushes(t, endpoint, android)))
	got := pushes(t, endpoint, phone)
	equal(t, "to the other", []string{`{"aps":{"alert":"hi"}}`, `{"aps":{"badge":1}}`, `{"aps":{"alert":"by the other name"}}`}, payloads(got))
	equal(t, "a header", "dev.godwit.Shop", got[0].Headers["apns-topic"])
	equal(t, "whom it was for", []string{phone, "APNS_SANDBOX", strings.Repeat("0a", 32)}, []string{got[0].Endpoint, got[0].Platform, got[0].Token})

	fails := func(target, message, structure, code string, status int, text string) {
		t.Helper()
		in := &sns.PublishInput{TargetArn: &target, Message: &message}
		if structure != "" {
			in.MessageStructure = &structure
		}
		_, err := c.Publish(t.Context(), in)
		refused(t, err, code, status, text)
	}
	fails(unknownEndpoint, "m", "", "InvalidParameter", 400, "Invalid parameter: TargetArn Reason: No endpoint found for the target arn specified")
	fails(android, "", "", "InvalidParameter", 400, "Invalid parameter: Empty message")
	fails(android, "{", "json", "InvalidParameter", 400, "Invalid parameter: Message Structure - JSON message body failed to parse")
	fails(android, `{"APNS":"{}"}`, "json", "InvalidParameter", 400, "Invalid parameter: Message Structure - No default entry in JSON message body")
	kindle := createEndpoint(t, c, createApplication(t, c, "ADM", "shop"), "token_1")
	fails(kindle, "m", "", "InvalidParameter", 400, "Invalid parameter: TargetArn Reason: this server sends no messages to ADM, only to APNS, APNS_SANDBOX and GCM")
	must(c.SetEndpointAttributes(t.Context(), &sns.SetEndpointAttributesInput{EndpointArn: &android, Attributes: map[string]string{"Enabled": "false"}}))(t)
	fails(android, "msg", "json", "EndpointDisabled", 400, "Endpoint is disabled")
	app := "arn:aws:sns:us-east-1:000000000000:app/APNS_SANDBOX/shop"
	must(c.SetPlatformApplicationAttributes(t.Context(), &sns.SetPlatformApplicationAttributesInput{PlatformApplicationArn: &app, Attributes: map[string]string{"Enabled": "false"}}))(t)
	fails(phone, "msg", "json", "PlatformApplicationDisabled", 400, "Platform application is disabled")
}

// A subscription of an endpoint needs no confirmation, has no raw delivery, heeds its filter,
// and gets what its platform is to have.
func TestPushSubscription(t *testing.T) {
	endpoint := start(t)
	c, q := topicsClient(endpoint), client(endpoint)
	dead := createQueue(t, q, "dead")
	android := createEndpoint(t, c, createApplication(t, c, "GCM", "shop"), "token_1")
	topic := createTopic(t, c, "news")
	sub := subscribe(t, c, topic, "application", android, "FilterPolicy", `{"kind":["alarm"]}`,
		"RedrivePolicy", `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead"}`)
	attributes := subscriptionAttributes(t, c, sub)
	equal(t, "PendingConfirmation", "false", attributes["PendingConfirmation"])
	_, err := c.SetSubscriptionAttributes(t.Context(), &sns.SetSubscriptionAttributesInput{SubscriptionArn: &sub, AttributeName: aws.String("RawMessageDelivery"), AttributeValue: aws.String("true")})
	refused(t, err, "InvalidParameter", 400, "Invalid parameter: Delivery protocol [application] does not support raw message delivery.")
	alarm := map[string]types.MessageAttributeValue{"kind": {DataType: aws.String("String"), StringValue: aws.String("alarm")}}
	must(c.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("news")}))(t)
	must(c.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("fire"), MessageAttributes: alarm}))(t)
	must(c.Publish(t.Context(), &sns.PublishInput{
		TopicArn: &topic, Message: aws.String(`{"default":"d","GCM":"{\"data\":{\"n\":\"2\"}}"}`), MessageStructure: aws.String("json"), MessageAttributes: alarm,
	}))(t)
	advance(t, endpoint, "1s")
	equal(t, "what it got", []string{`{"message":{"data":{"default":"fire"},"token":"token_1"}}`, `{"message":{"data":{"n":"2"},"token":"token_1"}}`}, payloads(pushes(t, endpoint, android)))

	// A message for an endpoint that is gone is a dead letter, with the envelope of the text.
	must(c.DeleteEndpoint(t.Context(), &sns.DeleteEndpointInput{EndpointArn: &android}))(t)
	must(c.Publish(t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("too late"), MessageAttributes: alarm}))(t)
	advance(t, endpoint, "1s")
	got := must(q.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &dead}))(t).Messages
	if len(got) != 1 || decode(t, *got[0].Body)["Message"] != "too late" {
		t.Errorf("dead letters: %v", got)
	}
}
