package e2e_test

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"godwit.dev/godwit/test/programs"
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

// stacksUnderKills is a server that is killed in the middle of stacks.
type stacksUnderKills struct {
	*process

	t         *testing.T
	addr, dir string
}

func (s *stacksUnderKills) status(stack string) string {
	return s.cloudformation(s.t, "DescribeStacks", params{"StackName": stack}, "StackStatus")["StackStatus"][0]
}

// passed is how many resources of a stack are as wanted.
func (s *stacksUnderKills) passed(stack, want string) (n int) {
	for _, is := range s.cloudformation(s.t, "DescribeStackResources", params{"StackName": stack}, "ResourceStatus")["ResourceStatus"] {
		if is == want {
			n++
		}
	}
	return n
}

// killAt ends the process once so many resources have come so far, and begins another.
func (s *stacksUnderKills) killAt(stack, want string, n int) {
	s.t.Helper()
	eventually(s.t, "the stack is under way", func() (bool, error) { return s.passed(stack, want) >= n, nil })
	s.kill()
	s.process = startAt(s.t, s.addr, s.dir)
}

func (s *stacksUnderKills) ends(stack, want string) {
	s.t.Helper()
	eventually(s.t, "the stack is through", func() (bool, error) { return !strings.HasSuffix(s.status(stack), "_IN_PROGRESS"), nil })
	if got := s.status(stack); got != want {
		s.t.Errorf("%s is %s, want %s", stack, got, want)
	}
}

// there is how many queues and topics there are, of any stack or none.
func (s *stacksUnderKills) there() int {
	var out struct{ QueueUrls []string }
	s.mustSQS(s.t, "ListQueues", object{}, &out)
	topics, err := s.topics(s.t)
	if err != nil {
		s.t.Fatal(err)
	}
	return len(out.QueueUrls) + topics
}

// cycle makes a stack and deletes it, killing the server in the middle of each once n resources
// have come so far, and checks that as many queues and topics are there as belong to it.
func (s *stacksUnderKills) cycle(name string, in params, n, resources int) {
	s.t.Helper()
	in["StackName"] = name
	id := s.cloudformation(s.t, "CreateStack", in, "StackId")["StackId"][0]
	s.killAt(id, "CREATE_COMPLETE", n)
	s.ends(id, "CREATE_COMPLETE")
	if got := s.there(); got != resources {
		s.t.Errorf("after %s there are %d resources, want %d", name, got, resources)
	}
	s.cloudformation(s.t, "DeleteStack", params{"StackName": name})
	s.killAt(id, "DELETE_COMPLETE", n)
	s.ends(id, "DELETE_COMPLETE")
	if got := s.there(); got != 0 {
		s.t.Errorf("%s has left %d resources", name, got)
	}
}

// TestStacksKill9 kills the server in the middle of stacks, further on each time: they go on
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
	s := &stacksUnderKills{t: t, addr: freeAddress(t), dir: t.TempDir()}
	s.process = startAt(t, s.addr, s.dir)
	for n := range 5 {
		s.cycle(fmt.Sprintf("s%d", n), params{"TemplateBody": b.String()}, 2*n, chain)
	}
}

// TestRentalStackKill9 does so with the rental application, which has keys, a role, a function
// and what leads to it: behind each of its resources in make test-all, and behind some otherwise.
func TestRentalStackKill9(t *testing.T) {
	t.Parallel()
	template, err := os.ReadFile("../../examples/rental-orders/template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const resources, queuesAndTopics = 20, 7
	each := 7
	if programs.Allowed() {
		each = 1
	}
	s := &stacksUnderKills{t: t, addr: freeAddress(t), dir: t.TempDir()}
	s.process = startAt(t, s.addr, s.dir)
	for n := 0; n <= resources; n += each {
		in := params{
			"TemplateBody": string(template), "Capabilities.member.1": "CAPABILITY_IAM",
			"Parameters.member.1.ParameterKey": "AlarmHook", "Parameters.member.1.ParameterValue": "http://127.0.0.1:1/",
		}
		s.cycle(fmt.Sprintf("rental-%d", n), in, n, queuesAndTopics)
	}
	var functions struct {
		Functions []struct{ FunctionName string }
	}
	if got := s.lambda(t, http.MethodGet, "/2015-03-31/functions/", nil); json.Unmarshal(got.body, &functions) != nil || len(functions.Functions) > 0 {
		t.Errorf("functions are left: %s", got.body)
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
