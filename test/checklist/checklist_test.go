package checklist

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What no test provokes is shown by name, with the reason.
func TestExemptions(t *testing.T) {
	for _, service := range []string{"lambda", "sns", "sqs"} {
		exemptions, err := Exemptions(service)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range exemptions {
			if e.Reason == "" || len(e.Actions)+len(e.Errors) == 0 {
				t.Errorf("an exemption of %s is too wide or has no reason: %+v", service, e)
			}
			name := fmt.Sprint(service, e.Actions, e.Errors, e.Protocols)
			t.Run(name, func(t *testing.T) { t.Skip(e.Reason) })
		}
	}
}

func TestCheck(t *testing.T) {
	m := Model{Service: "s", Actions: map[string][]string{"Put": {"Broken", "Gone"}, "Get": {"Gone"}}}
	seen := func(wanted ...Item) func(Item) bool {
		return func(i Item) bool { return slices.Contains(wanted, i) }
	}
	all := []Item{
		{"s", "Put", "Broken", ""},
		{"s", "Put", "Gone", ""},
		{"s", "Get", "Gone", ""},
		{"s", "Put", "", SDK},
		{"s", "Get", "", SDK},
	}
	for _, tc := range []struct {
		name       string
		exemptions []Exemption
		seen       []Item
		want       []string
	}{
		{"everything", nil, all, nil},
		{"an error is missing", nil, all[1:], []string{"no test sees that s.Put answers Broken"}},
		{"a success is missing", nil, all[:4], []string{"no test sees that s.Get succeeds in sdk"}},
		{"another protocol", nil, append([]Item{{"s", "Get", "", Query}}, all[:4]...), []string{"no test sees that s.Get succeeds in sdk"}},
		{"one exempt", []Exemption{{Actions: []string{"Put"}, Errors: []string{"Broken"}, Reason: "r"}}, all[1:], nil},
		{"an action exempt", []Exemption{{Actions: []string{"Put"}, Reason: "r"}}, []Item{all[2], all[4]}, nil},
		{"a protocol exempt", []Exemption{{Actions: []string{"Get"}, Protocols: []string{SDK}, Reason: "r"}}, all[:4], nil},
		{
			"exempt and seen",
			[]Exemption{{Errors: []string{"Gone"}, Reason: "r"}},
			append(all[3:5:5], all[0], all[2]),
			[]string{"s.Get answers Gone is exempt and yet was seen: take it off the exemptions (r)"},
		},
		{
			"exempt and unknown",
			[]Exemption{{Actions: []string{"Get"}, Errors: []string{"Broken"}, Reason: "r"}},
			all,
			[]string{"an exemption of s covers nothing: [Get] [Broken] (r)"},
		},
	} {
		if d := cmp.Diff(tc.want, Check(m, tc.exemptions, []string{SDK}, seen(tc.seen...))); d != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, d)
		}
	}
}

// Lists that answers lack are reported, and so is what is optional for nothing.
func TestMissing(t *testing.T) {
	wrong, useless := Missing([]string{"a.Get.List", "b.Get.Tags", "b.List.Items.Tags"},
		[]Optional{{"no tags, no list", []string{"b.*.Tags", "c.Get.Tags"}}})
	if d := cmp.Diff([]string{"a.Get.List is missing, where AWS has one that is empty"}, wrong); d != "" {
		t.Errorf("wrong (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]string{"no answer lacks c.Get.Tags: take it off what is optional (no tags, no list)"}, useless); d != "" {
		t.Errorf("useless (-want +got):\n%s", d)
	}
	all, err := Optionals()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range all {
		if o.Reason == "" || len(o.Paths) == 0 {
			t.Errorf("%+v says not what, or why", o)
		}
	}
}

func TestRecorder(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("Action") == "" && r.Header.Get("X-Amz-Target") == "" {
			sent, err := io.ReadAll(r.Body)
			if err != nil || len(sent) == 0 {
				t.Errorf("the body did not come: %v", err)
			}
		}
		if status := r.Header.Get("Want-Status"); status != "" {
			w.WriteHeader(http.StatusBadRequest)
		}
		fmt.Fprint(w, r.Header.Get("Want-Body"))
	}))
	defer server.Close()
	models := make([]Model, 0, 2)
	for _, service := range []string{"cloudwatch", "sns", "sqs"} {
		m, err := Load(service)
		if err != nil {
			t.Fatal(err)
		}
		models = append(models, m)
	}
	for _, tc := range []struct {
		name                      string
		query, form, target, user string
		answer                    string // of an error
		want                      Item
	}{
		{"form", "", "Action=Publish&Version=2010-03-31", "", "", "", Item{"sns", "Publish", "", Query}},
		{"form of the SDK", "", "Action=Publish&Version=2010-03-31", "", "aws-sdk-go-v2/1", "", Item{"sns", "Publish", "", SDK}},
		{"GET", "Action=SendMessage", "", "", "", "", Item{"sqs", "SendMessage", "", Query}},
		{"JSON", "", "", "AmazonSQS.SendMessage", "", "", Item{"sqs", "SendMessage", "", JSON}},
		{"JSON of the SDK", "", "", "AmazonSQS.SendMessage", "aws-sdk-go-v2/1", "", Item{"sqs", "SendMessage", "", SDK}},
		{
			"refused in XML", "", "Action=Publish&Version=2010-03-31", "", "", "<Error><Type>Sender</Type><Code>ParameterValueInvalid</Code>",
			Item{"sns", "Publish", "InvalidParameterValueException", ""},
		},
		{
			"refused in JSON", "", "", "AmazonSQS.DeleteQueue", "", `{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"m"}`,
			Item{"sqs", "DeleteQueue", "QueueDoesNotExist", ""},
		},
		{
			"refused in Query of SQS", "Action=DeleteQueue", "", "", "", `<Code>AWS.SimpleQueueService.NonExistentQueue</Code>`,
			Item{"sqs", "DeleteQueue", "QueueDoesNotExist", ""},
		},
		{
			"refused in Query, as JSON", "Action=SendMessageBatch", "", "", "", `{"Error":{"Type":"Sender","Code":"AWS.SimpleQueueService.EmptyBatchRequest"}}`,
			Item{"sqs", "SendMessageBatch", "EmptyBatchRequest", ""},
		},
		{"unknown", "Action=Dance", "", "", "", "", Item{}},
	} {
		r := NewRecorder(http.DefaultTransport, models...)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/?"+tc.query, strings.NewReader(tc.form))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("X-Amz-Target", tc.target)
		req.Header.Set("User-Agent", tc.user)
		req.Header.Set("Want-Body", tc.answer)
		if tc.answer != "" {
			req.Header.Set("Want-Status", "400")
		}
		resp, err := r.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || string(body) != tc.answer {
			t.Errorf("%s: answered %q, %v", tc.name, body, err)
		}
		want := map[Item]bool{tc.want: true}
		if tc.want == (Item{}) {
			want = map[Item]bool{}
		}
		if d := cmp.Diff(want, r.seen); d != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, d)
		}
	}
}

// TestShapes: what is not of a shape is reported, by its path; what is, is seen.
func TestShapes(t *testing.T) {
	var shape Shape
	text := `{"members":{"n":"integer","on":"boolean","at":"timestamp","kind":{"enum":["A","B"]},"all":{"list":{"always":["id"],"members":{"id":"string","name":"string"}}},"tags":{"map":"string"},"Attributes":{"map":"string"}}}`
	if err := json.Unmarshal([]byte(text), &shape); err != nil {
		t.Fatal(err)
	}
	if again, err := json.Marshal(shape); err != nil || !strings.Contains(string(again), `{"list":{"always":["id"],"members":{"id":"string","name":"string"}}}`) {
		t.Errorf("%s, %v", again, err)
	}
	if d := cmp.Diff([]string{"x.Attributes", "x.all", "x.all.id", "x.all.name", "x.at", "x.kind", "x.n", "x.on", "x.tags"}, shape.Paths("x")); d != "" {
		t.Errorf("paths (-want +got):\n%s", d)
	}
	var absent []string
	shape.Walk("x", map[string]any{"all": []any{}, "Attributes": map[string]any{}}, func(path string, there bool) {
		if !there {
			absent = append(absent, path)
		}
	})
	if d := cmp.Diff([]string{"x.tags"}, absent); d != "" {
		t.Errorf("lists and maps that are missing (-want +got):\n%s", d)
	}
	for _, tt := range []struct{ answer, wrong string }{
		{`{"n":1,"on":true,"at":1.5,"kind":"B","all":[{"name":"a","id":"1"},{"id":""}],"tags":{"k":"v"}}`, ""},
		{`{}`, ""},
		{`{"n":1.5}`, "x.n is 1.5, want a whole number"},
		{`{"n":"1"}`, `x.n is "1", want a whole number`},
		{`{"on":"true"}`, `x.on is "true", want true or false`},
		{`{"kind":"b"}`, `x.kind is "b", want a string [A B]`},
		{`{"at":"now"}`, `x.at is "now", want a number`},
		{`{"all":[{"nom":"a"}]}`, "x.all.nom is no member"},
		{`{"all":[{"name":"a"}]}`, "x.all.id is missing"},
		{`{"all":{}}`, "want a list"},
		{`{"tags":{"k":"True"},"Attributes":{"FifoQueue":"true","Name":"Falsetto"}}`, ""},
		{`{"Attributes":{"FifoQueue":"True"}}`, "x.Attributes has FifoQueue, a boolean in capitals: True"},
		{`{"tags":{"k":1}}`, "x.tags is 1, want a string []"},
		{`[]`, "want an object"},
	} {
		var answer any
		if err := json.Unmarshal([]byte(tt.answer), &answer); err != nil {
			t.Fatal(err)
		}
		wrong := strings.Join(shape.Walk("x", answer, func(string, bool) {}), "; ")
		if (wrong == "") != (tt.wrong == "") || !strings.Contains(wrong, tt.wrong) {
			t.Errorf("%s: %q, want %q", tt.answer, wrong, tt.wrong)
		}
	}
}
