package platforms_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/apitest"
	"godwit.dev/godwit/internal/api/sns/platforms"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/shard"
)

const (
	account = "000000000000"
	app     = "arn:aws:sns:us-east-1:000000000000:app/GCM/mine"
	device  = "arn:aws:sns:us-east-1:000000000000:endpoint/GCM/mine/00000000-0000-4000-8000-000000000001"
)

// engine notes what it is asked, and lists n applications and endpoints.
type engine struct {
	did []string
	n   int
}

func (e *engine) note(what string, name arn.ARN, more ...any) {
	e.did = append(e.did, strings.TrimSpace(fmt.Sprint(what, " ", name, " ", fmt.Sprint(more...))))
}

func (e *engine) CreateApplication(_ context.Context, name arn.ARN, attributes map[string]string) error {
	e.note("create", name, attributes)
	return nil
}

func (e *engine) DeleteApplication(_ context.Context, name arn.ARN) error {
	e.note("delete", name)
	return nil
}

func (e *engine) ApplicationAttributes(context.Context, arn.ARN) (map[string]string, error) {
	return map[string]string{"Enabled": "true"}, nil
}

func (e *engine) SetApplicationAttributes(_ context.Context, name arn.ARN, attributes map[string]string) error {
	e.note("set", name, attributes)
	return nil
}

func (e *engine) ListApplications(_ context.Context, region, of, after string, limit int) (page []shard.PlatformApplication, more bool, err error) {
	for i := range e.n {
		if name := fmt.Sprintf("a%04d", i); "GCM/"+name > after {
			if len(page) == limit {
				return page, true, nil
			}
			page = append(page, shard.PlatformApplication{ARN: arn.PlatformApplication(region, of, "GCM", name)})
		}
	}
	return page, false, nil
}

func (e *engine) CreateEndpoint(_ context.Context, application arn.ARN, token string, userData *string, attributes map[string]string) (arn.ARN, error) {
	e.note("create endpoint", application, token, " ", api.Deref(userData), " ", attributes)
	return arn.Parse(device)
}

func (e *engine) DeleteEndpoint(_ context.Context, name arn.ARN) error {
	e.note("delete", name)
	return nil
}

func (e *engine) EndpointAttributes(context.Context, arn.ARN) (map[string]string, error) {
	return map[string]string{"Token": "t"}, nil
}

func (e *engine) SetEndpointAttributes(_ context.Context, name arn.ARN, attributes map[string]string) error {
	e.note("set", name, attributes)
	return nil
}

func (e *engine) ListEndpoints(_ context.Context, application arn.ARN, after string, limit int) (page []shard.PlatformEndpoint, more bool, err error) {
	for i := range e.n {
		if id := fmt.Sprintf("e%04d", i); id > after {
			if len(page) == limit {
				return page, true, nil
			}
			page = append(page, shard.PlatformEndpoint{ID: id, ARN: application})
		}
	}
	return page, false, nil
}

func newAsker(t *testing.T, e *engine) *apitest.Asker {
	return apitest.New(t, platforms.Operations(e), func(operation string) *api.Call {
		return &api.Call{Operation: operation, Region: "us-east-1", Account: account, AccessKey: "k"}
	})
}

// TestOperations: each does its one thing to what it names.
func TestOperations(t *testing.T) {
	e := &engine{}
	a := newAsker(t, e)
	for _, c := range []struct{ operation, in, want, did string }{
		{"CreatePlatformApplication", `{"Name":"mine","Platform":"GCM","Attributes":{"PlatformCredential":"s"}}`, `{"PlatformApplicationArn":"` + app + `"}`, "create " + app + " map[PlatformCredential:s]"},
		{"GetPlatformApplicationAttributes", `{"PlatformApplicationArn":"` + app + `"}`, `{"Attributes":{"Enabled":"true"}}`, ""},
		{"SetPlatformApplicationAttributes", `{"PlatformApplicationArn":"` + app + `","Attributes":{"Enabled":"false"}}`, "{}", "set " + app + " map[Enabled:false]"},
		{"DeletePlatformApplication", `{"PlatformApplicationArn":"` + app + `"}`, "{}", "delete " + app},
		{"CreatePlatformEndpoint", `{"PlatformApplicationArn":"` + app + `","Token":"t","CustomUserData":"d"}`, `{"EndpointArn":"` + device + `"}`, "create endpoint " + app + " t d map[]"},
		{"GetEndpointAttributes", `{"EndpointArn":"` + device + `"}`, `{"Attributes":{"Token":"t"}}`, ""},
		{"SetEndpointAttributes", `{"EndpointArn":"` + device + `","Attributes":{"Enabled":"true"}}`, "{}", "set " + device + " map[Enabled:true]"},
		{"DeleteEndpoint", `{"EndpointArn":"` + device + `"}`, "{}", "delete " + device},
	} {
		e.did = nil
		a.Check(c.operation, c.in, apitest.Answered, c.want)
		if got := strings.Join(e.did, "; "); got != c.did {
			t.Errorf("%s did %q, want %q", c.operation, got, c.did)
		}
	}
}

// TestRefused: what a request may not name or leave out never reaches the state.
func TestRefused(t *testing.T) {
	e := &engine{}
	a := newAsker(t, e)
	for _, name := range []struct {
		arn  string
		kind fault.Kind
		text string
	}{
		{"x", fault.InvalidParameter, "Reason: An ARN must have at least 6 elements, not 1"},
		{"arn:aws:sns:us-east-1:000000000000:t", fault.InvalidParameter, "Wrong number of slashes in relative portion of the ARN."},
		{strings.Replace(app, "sns", "sqs", 1), fault.InvalidParameter, "Invalid parameter: PlatformApplicationArn"},
		{strings.Replace(app, "us-east-1", "eu-west-1", 1), fault.InvalidParameter, "Invalid parameter: PlatformApplicationArn"},
		{strings.Replace(app, account, "111111111111", 1), fault.AccessDenied, "is not authorized to perform: SNS:"},
	} {
		for _, operation := range []string{
			"GetPlatformApplicationAttributes", "SetPlatformApplicationAttributes", "DeletePlatformApplication", "CreatePlatformEndpoint",
			"ListEndpointsByPlatformApplication",
		} {
			a.Check(operation, `{"PlatformApplicationArn":"`+name.arn+`"}`, name.kind, name.text)
		}
	}
	for _, operation := range []string{"GetEndpointAttributes", "SetEndpointAttributes", "DeleteEndpoint"} {
		a.Check(operation, `{"EndpointArn":"`+app+`"}`, fault.InvalidParameter, "EndpointArn Reason: Wrong number of slashes")
		a.Check(operation, `{"EndpointArn":"`+strings.Replace(device, account, "111111111111", 1)+`"}`, fault.AccessDenied, "SNS:"+operation)
	}
	a.Check("SetEndpointAttributes", `{"EndpointArn":"`+device+`"}`, fault.MissingParameter, "Value null at 'attributes'")
	a.Check("SetPlatformApplicationAttributes", `{"PlatformApplicationArn":"`+app+`"}`, fault.MissingParameter, "Value null at 'attributes'")
	a.Check("CreatePlatformApplication", `{"Name":"mine","Platform":"GCM","Attributes":{}}`, fault.MissingParameter, "Value null at 'attributes'")
	a.Check("CreatePlatformApplication", `{"Name":"no name","Platform":"GCM","Attributes":{"a":"b"}}`, fault.InvalidParameter, "")
	a.Check("CreatePlatformApplication", `{"Name":"mine","Platform":"none","Attributes":{"a":"b"}}`, fault.InvalidParameter, "")
	if len(e.did) > 0 {
		t.Errorf("done: %q", e.did)
	}
}

// TestPages: lists continue where the last page has ended, each in its own.
func TestPages(t *testing.T) {
	a := newAsker(t, &engine{n: 250})
	var tokens []string
	for _, c := range []struct{ operation, in, each string }{
		{"ListPlatformApplications", "", `"PlatformApplicationArn":`},
		{"ListEndpointsByPlatformApplication", `"PlatformApplicationArn":"` + app + `",`, `"EndpointArn":`},
	} {
		var pages []int
		token := "null"
		for range 5 {
			out, err := a.Ask(c.operation, `{`+c.in+`"NextToken":`+token+`}`)
			if err != nil {
				t.Fatal(err)
			}
			pages = append(pages, strings.Count(out, c.each))
			_, rest, _ := strings.Cut(out, `"NextToken":"`)
			next, _, _ := strings.Cut(rest, `"`)
			if next == "" {
				break
			}
			token = `"` + next + `"`
			tokens = append(tokens, token)
		}
		if !slices.Equal(pages, []int{100, 100, 50}) {
			t.Errorf("%s: pages of %d", c.operation, pages)
		}
	}
	a.Check("ListPlatformApplications", `{"NextToken":`+tokens[len(tokens)-1]+`}`, fault.InvalidParameter, "NextToken")
	a.Check("ListEndpointsByPlatformApplication", `{"PlatformApplicationArn":"`+app+`","NextToken":`+tokens[0]+`}`, fault.InvalidParameter, "NextToken")
}

// TestTarget: an endpoint that is published to may be anybody's.
func TestTarget(t *testing.T) {
	theirs := strings.Replace(device, account, "111111111111", 1)
	call := &api.Call{Region: "us-east-1", Account: account, AccessKey: "k"}
	got, of, err := platforms.ParseTarget(call, "TargetArn", theirs)
	if err != nil || got.String() != theirs || of != "GCM" {
		t.Errorf("%s, %s, %v", got, of, err)
	}
	for value, is := range map[string]bool{device: true, app: false, "endpoint/GCM": false, "arn:aws:sns:us-east-1:000000000000:endpoint/x": true} {
		if platforms.IsEndpoint(value) != is {
			t.Errorf("%s is an endpoint: %v", value, !is)
		}
	}
}
