package platform_test

import (
	"errors"
	"testing"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/platform"
)

func TestTTL(t *testing.T) {
	const legacy = `{"time_to_live":7}`
	for _, tt := range []struct {
		of, attribute, body string
		want                time.Duration
		set                 bool
	}{
		{platform.FCM, "", "", platform.DefaultTTL, false},
		{platform.FCM, "60", "", time.Minute, true},
		{platform.FCM, "0", "", 0, true},
		{platform.FCM, "-1", "", platform.DefaultTTL, false},
		{platform.FCM, "99999999", "", platform.DefaultTTL, false},
		{platform.FCM, "soon", "", platform.DefaultTTL, false},
		{platform.FCM, "", legacy, 7 * time.Second, true},
		{platform.FCM, "60", legacy, time.Minute, true},
		{platform.FCM, "", `{"fcmV1Message":{"message":{"android":{"ttl":"9s"}}}}`, 9 * time.Second, true},
		{platform.FCM, "", `{`, platform.DefaultTTL, false},
		{platform.APNs, "", legacy, platform.DefaultTTL, false},
	} {
		var body []byte
		if tt.body != "" {
			body = []byte(tt.body)
		}
		if ttl, set := platform.TTL(tt.of, tt.attribute, body); ttl != tt.want || set != tt.set {
			t.Errorf("%+v: %s, %v", tt, ttl, set)
		}
	}
}

func TestRecords(t *testing.T) {
	data := "data"
	e := &platform.Endpoint{Token: "t", UserData: &data, Disabled: true}
	again, err := platform.DecodeEndpoint(e.Encode())
	if err != nil || !again.Same(e) {
		t.Errorf("%+v: %v", again, err)
	}
	for _, bad := range [][]byte{nil, {2}, {1, '['}} {
		if _, err := platform.DecodeEndpoint(bad); !errors.Is(err, platform.ErrRecord) {
			t.Errorf("%q: %v", bad, err)
		}
		if _, err := platform.DecodeApplication(bad); !errors.Is(err, platform.ErrRecord) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestSame(t *testing.T) {
	data, empty := "d", ""
	first := platform.Endpoint{Token: "t"}
	for _, other := range []platform.Endpoint{{Token: "u"}, {Token: "t", Disabled: true}, {Token: "t", UserData: &data}, {Token: "t", UserData: &empty}} {
		if first.Same(&other) {
			t.Errorf("%+v", other)
		}
	}
	if !first.Same(&platform.Endpoint{Token: "t"}) {
		t.Error("the same is another")
	}
}

func TestEvents(t *testing.T) {
	app := arn.PlatformApplication("eu-west-1", "000000000000", "GCM", "a")
	e := platform.NewEvent(platform.EventFailed, app, app.PlatformEndpoint("id"), time.Unix(0, 5e6))
	text := string(e.Failed("m", 3, "client-side error: "+platform.SaidInvalidToken+" (UNREGISTERED)").Text())
	if want := `{"DeliveryAttempts":3,"EndpointArn":"arn:aws:sns:eu-west-1:000000000000:endpoint/GCM/a/id","EventType":"DeliveryFailure",` +
		`"FailureMessage":"Platform token associated with the endpoint is not valid (UNREGISTERED)","FailureType":"InvalidPlatformToken","MessageId":"m",` +
		`"Resource":"arn:aws:sns:eu-west-1:000000000000:app/GCM/a","Service":"SNS","Time":"1970-01-01T00:00:00.005Z"}`; text != want {
		t.Errorf("%s\nwant\n%s", text, want)
	}
}
