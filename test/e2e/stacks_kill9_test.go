package e2e_test

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// cloudformation calls an action, and gives the texts of some elements of its answer, by name.
func (c client) cloudformation(t *testing.T, action string, in params, names ...string) map[string][]string {
	t.Helper()
	form := url.Values{"Action": {action}, "Version": {"2010-05-15"}}
	for name, value := range in {
		form.Set(name, value)
	}
	a, err := c.call(t.Context(), http.MethodPost, "/", map[string]string{
		"Content-Type": "application/x-www-form-urlencoded", "Authorization": signed("cloudformation"),
	}, []byte(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	if a.status != http.StatusOK {
		t.Fatalf("%s: %s", action, a.body)
	}
	found := map[string][]string{}
	d := xml.NewDecoder(strings.NewReader(string(a.body)))
	for {
		token, err := d.Token()
		if err != nil {
			return found
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		for _, name := range names {
			var text string
			if start.Name.Local == name && d.DecodeElement(&text, &start) == nil {
				found[name] = append(found[name], text)
			}
		}
	}
}

// TestStacksKill9 kills the server in the middle of stacks, further on each time: they continue
// with the next start, and what they made is what they know of.
func TestStacksKill9(t *testing.T) {
	t.Parallel()
	const chain = 12
	var b strings.Builder
	b.WriteString("Resources:\n")
	for i := range chain {
		kind := "AWS::SQS::Queue"
		if i%3 == 2 {
			kind = "AWS::SNS::Topic"
		}
		fmt.Fprintf(&b, "  R%d: {Type: %s", i, kind)
		if i > 0 {
			fmt.Fprintf(&b, ", DependsOn: R%d", i-1)
		}
		b.WriteString("}\n")
	}
	addr, dir := freeAddress(t), t.TempDir()
	p := startAt(t, addr, dir)
	status := func(name string) string {
		s := p.cloudformation(t, "DescribeStacks", params{"StackName": name}, "StackStatus")["StackStatus"]
		return s[0]
	}
	passed := func(name, want string) (n int) {
		for _, s := range p.cloudformation(t, "DescribeStackResources", params{"StackName": name}, "ResourceStatus")["ResourceStatus"] {
			if s == want {
				n++
			}
		}
		return n
	}
	// killAt ends the process once so many resources have come so far, and begins another.
	killAt := func(name, want string, n int) {
		eventually(t, "the stack is under way", func() (bool, error) { return passed(name, want) >= n, nil })
		p.kill()
		p = startAt(t, addr, dir)
	}
	ends := func(name, want string) {
		eventually(t, "the stack is through", func() (bool, error) { return !strings.HasSuffix(status(name), "_IN_PROGRESS"), nil })
		if got := status(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	there := func() int {
		var out struct{ QueueUrls []string }
		p.mustSQS(t, "ListQueues", object{}, &out)
		topics, err := p.topics(t)
		if err != nil {
			t.Fatal(err)
		}
		return len(out.QueueUrls) + topics
	}
	for n := range 5 {
		name := fmt.Sprintf("s%d", n)
		id := p.cloudformation(t, "CreateStack", params{"StackName": name, "TemplateBody": b.String()}, "StackId")["StackId"][0]
		killAt(id, "CREATE_COMPLETE", 2*n)
		ends(id, "CREATE_COMPLETE")
		if got := there(); got != chain {
			t.Errorf("after %s there are %d resources, want %d", name, got, chain)
		}
		p.cloudformation(t, "DeleteStack", params{"StackName": name})
		killAt(id, "DELETE_COMPLETE", 2*n)
		ends(id, "DELETE_COMPLETE")
		if got := there(); got != 0 {
			t.Errorf("%s has left %d resources", name, got)
		}
	}
}

// topics is how many there are.
func (c client) topics(t *testing.T) (int, error) {
	var out struct {
		Topics []string `xml:"ListTopicsResult>Topics>member>TopicArn"`
	}
	err := c.sns(t.Context(), "ListTopics", params{}, &out)
	return len(out.Topics), err
}
