package attack_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"godwit.dev/godwit/test/checklist"
	"godwit.dev/godwit/test/soak"
)

// callsOfARound is how many calls a server gets before its state is looked at.
const callsOfARound = 1500

// TestRandomCalls sends calls of all operations, drawn from their types: sensible
// ones, ones beside the limits, damaged ones. Each is answered with success or with an
// error that the service's model or all services have, and in the end the server's
// lists and descriptions agree, also after a restart.
func TestRandomCalls(t *testing.T) {
	all, errors := services(), modelErrors(t)
	soak.Campaign(t, 2, func(t *testing.T, seed uint64) {
		w := newWorld(t, nil)
		w.populate()
		d := newDrawer(soak.Rand(seed, 0))
		a := &assault{world: w, drawer: d, errors: errors}
		begun := w.snapshot()
		for _, what := range sortedKeys(begun) {
			a.learnAll([]byte(begun[what]))
		}
		for n := range callsOfARound {
			if d.chance(40) {
				a.administer()
			} else {
				a.call(d.draw(all))
			}
			if t.Failed() {
				t.Fatalf("call %d", n)
			}
		}
		w.rest()
		before := w.snapshot()
		w.restart()
		compare(t, before, w.snapshot())
		if lines := w.log.Take(); lines != "" {
			t.Errorf("the server logged errors:\n%.3000s", lines)
		}
	})
}

// TestRandomCallsAtOnce has several clients send such calls to one server.
func TestRandomCallsAtOnce(t *testing.T) {
	all, errors := services(), modelErrors(t)
	soak.Campaign(t, 1, func(t *testing.T, seed uint64) {
		w := newWorld(t, nil)
		w.populate()
		begun := w.snapshot()
		var clients sync.WaitGroup
		for i := range 8 {
			a := &assault{world: w, drawer: newDrawer(soak.Rand(seed, uint64(i))), errors: errors}
			for _, what := range sortedKeys(begun) {
				a.learnAll([]byte(begun[what]))
			}
			clients.Go(func() {
				for range callsOfARound / 4 {
					if t.Failed() {
						return
					}
					a.call(a.draw(all))
				}
			})
		}
		clients.Wait()
		w.rest()
		before := w.snapshot()
		w.restart()
		compare(t, before, w.snapshot())
		if lines := w.log.Take(); lines != "" {
			t.Errorf("the server logged errors:\n%.3000s", lines)
		}
	})
}

// assault is a client that sends what its drawer draws.
type assault struct {
	*world
	*drawer
	errors map[string][]string
}

// call sends a request and judges its answer.
func (a *assault) call(r *request) {
	got, err := a.do(r.method, r.path, r.header, r.body)
	if errors.Is(err, errUnsendable) {
		return
	}
	if err != nil {
		a.t.Errorf("%v: %v", r, err)
		return
	}
	if got.status < 300 {
		a.accepted(r, got)
		return
	}
	name := errorName(got)
	switch {
	case got.status >= 500 && !known5xx[name]:
		a.t.Errorf("%v: %d %.1000s\n%s", r, got.status, got.body, a.log.Take())
	case got.header.Get("X-Amz-Function-Error") != "":
	case !slices.Contains(a.errors[r.service.name+"."+r.operation.Name], name) && !common[name] && unmodelled[r.operation.Name] != name:
		a.t.Errorf("%v: an error %q that the model does not have: %d %.1000s", r, name, got.status, got.body)
	}
}

// accepted learns from a request that was answered with success.
func (a *assault) accepted(r *request, got answer) {
	if r.protocol == viaCBOR {
		var v any
		if err := cbor.Unmarshal(got.body, &v); err != nil && len(got.body) > 0 {
			a.t.Errorf("%v: the answer is no CBOR: %v", r, err)
		}
		walk("", v, a.learn)
	} else if r.protocol != viaQuery && len(got.body) > 0 && r.operation.Name != "Invoke" && !json.Valid(got.body) {
		a.t.Errorf("%v: the answer is no JSON: %q", r, got.body)
	}
	a.learnAll(got.body)
	for _, m := range r.input {
		if s, ok := m.value.(string); ok && len(s) < 200 {
			a.learn(m.name, s)
		}
	}
}

// learnAll learns from an answer.
func (a *assault) learnAll(body []byte) {
	found := texts(body)
	for _, name := range sortedKeys(found) {
		for _, text := range found[name] {
			a.learn(name, text)
			if strings.HasPrefix(text, "arn:") {
				a.learn("arn", text)
			}
		}
	}
}

// administer calls what is not AWS's.
func (a *assault) administer() {
	method, path := "GET", "/_godwit/"+pick(a.drawer, "health", "ready", "deliveries", "queue", "events", "backlog", "clock", "none", "../metrics", "")
	var body []byte
	if a.chance(2) {
		method, path = "POST", "/_godwit/"+pick(a.drawer, "clock", "clock", "faults", "subscriptions/pause", "subscriptions/resume", "deliveries/retry", "deliveries/drop")
		body = appendJSON(nil, object{
			{name: "advance", value: pick(a.drawer, "1s", "1m", "10m", "26h", "-1s", "1e3h", "9999999h", "P1D", "")},
			{name: "arn", value: a.text("TopicArn")},
			{name: "fault", value: pick(a.drawer, "unavailable", "throttled", "none", "none", "none", "x")},
			{name: "subscription", value: a.text("SubscriptionArn")},
			{name: "messageId", value: a.text("MessageId")},
		}[a.rand.IntN(2):])
	} else {
		path += "?" + url.Values{"subscription": {a.text("SubscriptionArn")}, "arn": {a.text("QueueArn")}, "limit": {text(a.integer(""))}}.Encode()
	}
	if len(path) > 8000 {
		path = "/metrics"
	}
	got, err := a.do(method, path, http.Header{"Content-Type": {"application/json"}}, body)
	if err != nil && !errors.Is(err, errUnsendable) || got.status >= 500 {
		a.t.Errorf("%s %.2000s %q: %d %q %v", method, path, body, got.status, got.body, err)
	}
}

// errorName is the name of the error that an answer is.
func errorName(a answer) string {
	if name := a.header.Get("X-Amzn-Errortype"); name != "" {
		return name
	}
	found := texts(a.body)
	var v map[string]any
	if cbor.Unmarshal(a.body, &v) == nil {
		walk("", v, func(name, text string) { found[name] = append(found[name], text) })
	}
	name := strings.Join(append(found["__type"], found["Code"]...), "")
	return name[strings.LastIndexByte(name, '#')+1:]
}

// modelErrors are the names and the codes of the errors that a model gives each
// operation.
func modelErrors(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, s := range services() {
		m, err := checklist.Load(s.name)
		if err != nil {
			t.Fatal(err)
		}
		for action, names := range m.Actions {
			for _, name := range names {
				key := s.name + "." + action
				all[key] = append(all[key], name, cmp.Or(m.Codes[name], name), "AWS.SimpleQueueService."+name)
			}
		}
	}
	return all
}

// common are the errors that any operation may answer, as AWS's documents of each
// service list them under Common Errors, and those of the protocols themselves.
var common = map[string]bool{
	"ValidationException": true, "ValidationError": true, "SerializationException": true, "MalformedInput": true, "UnknownOperationException": true, "InvalidAction": true,
	"RequestEntityTooLargeException": true, "RequestEntityTooLarge": true, "MissingParameter": true, "MissingRequiredParameterException": true,
	"InvalidParameterValue": true, "InvalidParameterValueException": true, "InvalidParameterCombination": true, "InvalidParameterCombinationException": true,
	"AccessDenied": true, "AccessDeniedException": true, "MissingAction": true,
}

// unmodelled are errors that AWS answers and its models do not have.
var unmodelled = map[string]string{
	"UntagLogGroup": "InvalidParameterException", "ListTagsLogGroup": "InvalidParameterException",
	"DeleteAlias": "ResourceNotFoundException", "ReceiveMessage": "InvalidAttributeName",
	// What is wrong with a member is told so by all operations of Logs.
	"GetDeliverySource": "InvalidParameterException", "PutDeliverySource": "InvalidParameterException",
	"GetDeliveryDestination": "InvalidParameterException", "DeleteDeliveryDestination": "InvalidParameterException",
}

// known5xx are the errors of the server's side that a call may provoke: AWS has these
// functions fail with status 502.
var known5xx = map[string]bool{"InvalidRuntimeException": true}
