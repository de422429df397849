package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/fault"
)

type (
	greetInput  struct{ Name *string }
	greetOutput struct{ Text string }
)

func greet(_ context.Context, call *api.Call, in *greetInput) (*greetOutput, error) {
	switch {
	case in.Name == nil:
		return nil, fault.New(fault.InvalidParameter, "no name")
	case *in.Name == "":
		return nil, nil
	}
	return &greetOutput{call.Region + " greets " + *in.Name}, nil
}

// TestOp: an operation has the handler's shapes; where the handler answers nothing the
// answer is empty, and a refusal comes without one.
func TestOp(t *testing.T) {
	op := api.Op("Greet", greet).At("POST /greetings/{Name}", 201).Limit(10).Holding(20).WithResult().Anywhere().Opened()
	if op.Name != "Greet" || op.Method != "POST" || op.Path != "/greetings/{Name}" || op.Status != 201 || op.MaxBody != 10 || op.Answer != 20 ||
		!op.Result || !op.Everywhere || !op.Open || op.Input.Name() != "greetInput" || op.Output.Name() != "greetOutput" {
		t.Errorf("%+v", op)
	}
	call := &api.Call{Region: "us-east-1"}
	for name, want := range map[string]string{"Ann": "us-east-1 greets Ann", "": ""} {
		in := op.New().(*greetInput)
		in.Name = &name
		out, err := op.Invoke(t.Context(), call, in)
		if err != nil || out.(*greetOutput).Text != want {
			t.Errorf("%q: %v, %v", name, out, err)
		}
	}
	if out, err := op.Invoke(t.Context(), call, op.New()); out != nil || fault.KindOf(err) != fault.InvalidParameter {
		t.Errorf("%v, %v", out, err)
	}
}

// TestGuarded: no operation is without its rights, and none are left over.
func TestGuarded(t *testing.T) {
	operations := func() []api.Operation { return []api.Operation{api.Op("Greet", greet)} }
	guarded := api.Guarded(map[string]api.Access{"Greet": api.Inside("a:Greet", "a:Wave")}, operations())
	needs, err := guarded[0].Access(t.Context(), nil, nil)
	if err != nil || len(needs) != 2 || needs[1].Action != "a:Wave" || !needs[1].Inside {
		t.Errorf("%+v, %v", needs, err)
	}
	for _, access := range []map[string]api.Access{{}, {"Greet": api.Free, "Wave": api.Free}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%d rights were taken for one operation", len(access))
				}
			}()
			api.Guarded(access, operations())
		}()
	}
	byName := api.Needs(func(call *api.Call, in *greetInput) ([]authorize.Need, error) {
		return api.One("a:Greet", arn.Queue(call.Region, "111122223333", *in.Name)), nil
	})
	name := "q"
	needs, err = byName(t.Context(), &api.Call{Region: "us-east-1"}, &greetInput{&name})
	if err != nil || len(needs) != 1 || needs[0].Resource != "arn:aws:sqs:us-east-1:111122223333:q" || needs[0].Account != "111122223333" {
		t.Errorf("%+v, %v", needs, err)
	}
}

// TestPrincipal: where nobody verifies signatures an access key stands for a user of that
// name, or for the root.
func TestPrincipal(t *testing.T) {
	const account = "111122223333"
	for key, want := range map[string]string{
		"":                       "arn:aws:iam::111122223333:root",
		account:                  "arn:aws:iam::111122223333:root",
		"alice":                  "arn:aws:iam::111122223333:user/alice",
		"no/name":                "arn:aws:iam::111122223333:root",
		strings.Repeat("k", 128): "arn:aws:iam::111122223333:user/" + strings.Repeat("k", 128),
		strings.Repeat("k", 129): "arn:aws:iam::111122223333:root",
	} {
		call := &api.Call{Account: account, AccessKey: key}
		if got := call.Principal(); got != want || call.Unsigned() != (key == "") {
			t.Errorf("%q is %s, unsigned %v", key, got, call.Unsigned())
		}
	}
	call := &api.Call{Account: account, AccessKey: "alice", Caller: &caller.Caller{ARN: "arn:aws:sts::1:assumed-role/r/s"}}
	if got := call.Principal(); got != "arn:aws:sts::1:assumed-role/r/s" {
		t.Errorf("a session is %s", got)
	}
}

// TestOwned: another account's resource is refused, unless policies were asked.
func TestOwned(t *testing.T) {
	theirs := arn.Queue("us-east-1", "222222222222", "q")
	for _, c := range []struct {
		call    api.Call
		refused bool
	}{
		{api.Call{Account: "111111111111", AccessKey: "k"}, true},
		{api.Call{Account: "111111111111", AccessKey: "k", Authorized: true}, false},
		{api.Call{Account: "111111111111"}, false},
		{api.Call{Account: "222222222222", AccessKey: "k"}, false},
	} {
		err := api.Owned(&c.call, theirs, "sqs:SendMessage")
		if !c.refused {
			if err != nil {
				t.Errorf("%+v: %v", c.call, err)
			}
			continue
		}
		const want = "User: arn:aws:iam::111111111111:root is not authorized to perform: sqs:sendmessage on resource: " +
			"arn:aws:sqs:us-east-1:222222222222:q because no resource-based policy allows the sqs:sendmessage action"
		if fault.KindOf(err) != fault.AccessDenied || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}

// TestHostParts: which service and region a host names.
func TestHostParts(t *testing.T) {
	for host, want := range map[string][2]string{
		"sqs.eu-west-1.example.com":   {"sqs", "eu-west-1"},
		"eu-west-1.queue.example.com": {"sqs", "eu-west-1"},
		"queue.example.com":           {"sqs", ""},
		"sns.example.com":             {"sns", ""},
		"localhost":                   {"", ""},
		"":                            {"", ""},
	} {
		if service, region := api.HostParts(host); service != want[0] || region != want[1] {
			t.Errorf("%q: %q, %q", host, service, region)
		}
	}
}

// TestTokens: a token continues in its own list, and nothing else is one.
func TestTokens(t *testing.T) {
	token := api.NextToken("queues", "a\nb")
	if after, ok := api.ReadToken("queues", &token); !ok || after != "a\nb" {
		t.Errorf("goes on after %q, %v", after, ok)
	}
	empty, nowhere := "", api.NextToken("queues", "")
	for _, start := range []*string{nil, &empty} {
		if after, ok := api.ReadToken("queues", start); !ok || after != "" {
			t.Errorf("begins after %q, %v", after, ok)
		}
	}
	for _, wrong := range []string{api.NextToken("topics", "a"), "?", "abcd", token + "A", nowhere} {
		if after, ok := api.ReadToken("queues", &wrong); ok {
			t.Errorf("%q goes on after %q", wrong, after)
		}
	}
}

// TestTimes reads and writes moments as the protocols have them.
func TestTimes(t *testing.T) {
	moment := api.TimeOf(time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC))
	for _, text := range []string{"2026-01-02T03:04:05.678Z", "2026-01-02T04:04:05.678+01:00", "2026-01-02T03:04:05.678", "1767323045.678"} {
		if got, err := api.ParseTime(text); err != nil || got != moment {
			t.Errorf("%s: %v, %v", text, got.Std(), err)
		}
		var read api.Time
		quoted, _ := json.Marshal(text)
		if err := json.Unmarshal(quoted, &read); err != nil || read != moment {
			t.Errorf("%s: %v, %v", quoted, read.Std(), err)
		}
	}
	for text, want := range map[string]string{"2026-01-02": "2026-01-02T00:00:00Z", "Fri, 02 Jan 2026 03:04:05 GMT": "2026-01-02T03:04:05Z"} {
		if got, err := api.ParseTime(text); err != nil || string(got.AppendISO(nil)) != want {
			t.Errorf("%s: %s, %v", text, got.AppendISO(nil), err)
		}
	}
	for _, text := range []string{"", "tomorrow", "NaN", "1_767_323_045", "0x1p30", "1e300", "-62135596801", "253402300800"} {
		if got, err := api.ParseTime(text); !errors.Is(err, api.ErrTime) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for at, want := range map[api.Time]string{moment: "1767323045.678", moment - 678: "1767323045.0", 0: "0.0", -1500: "-1.5"} {
		text, err := json.Marshal(struct{ T api.Time }{at})
		if err != nil || string(text) != `{"T":`+want+`}` {
			t.Errorf("%d: %s, %v", at, text, err)
		}
		var read struct{ T api.Time }
		if err := json.Unmarshal(text, &read); err != nil || read.T != at {
			t.Errorf("%s: %d, %v", text, read.T, err)
		}
	}
	if got := string(moment.AppendISO(nil)); got != "2026-01-02T03:04:05.678Z" {
		t.Error(got)
	}
}

// TestDouble: what JSON has a text for is read as a number.
func TestDouble(t *testing.T) {
	var d []api.Double
	if err := json.Unmarshal([]byte(`[1.5,"Infinity","-Infinity","NaN"]`), &d); err != nil {
		t.Fatal(err)
	}
	if d[0] != 1.5 || !math.IsInf(float64(d[1]), 1) || !math.IsInf(float64(d[2]), -1) || !math.IsNaN(float64(d[3])) {
		t.Error(d)
	}
	for _, text := range []string{`[null]`, `["1"]`, `[true]`} {
		if err := json.Unmarshal([]byte(text), &d); err == nil {
			t.Errorf("%s is taken for %v", text, d)
		}
	}
}

// TestPairs keeps its order, and finds by name.
func TestPairs(t *testing.T) {
	p := api.Pairs{{"b", "1"}, {"a", "2"}}
	if v, ok := p.Get("a"); !ok || v != "2" {
		t.Error(v, ok)
	}
	if _, ok := p.Get("c"); ok {
		t.Error("there is no c")
	}
	var none *int
	if api.Deref(none) != 0 || api.Deref(new(3)) != 3 {
		t.Error("what a pointer leads to")
	}
}
