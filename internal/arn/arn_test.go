package arn

import (
	"cmp"
	"errors"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	queue := Queue("eu-west-1", "123456789012", "jobs.fifo")
	for text, want := range map[string]ARN{
		queue.String(): queue,
		"arn:aws:sns:us-east-1:000000000000:t:6f9619ff-8b86-d011-b42d-00cf4fc964ff": Topic("us-east-1", "000000000000", "t").Subscription("6f9619ff-8b86-d011-b42d-00cf4fc964ff"),
		"arn:aws-cn:sqs:cn-north-1:123456789012:q":                                  Queue("cn-north-1", "123456789012", "q"), // the partition is not kept
		"arn:aws:s3:::bucket/key":                                                   {Service: "s3", Resource: "bucket/key"},
		"arn:aws:sqs:us-east-1:1:":                                                  {Service: "sqs", Region: "us-east-1", Account: "1"},
	} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "arn", "arn:aws:sqs:us-east-1:123456789012", "urn:aws:sqs:us-east-1:123456789012:q", "ARN:aws:sqs:r:a:q", " arn:aws:sqs:r:a:q",
		"arn:aws:sqs:r:a:" + strings.Repeat("q", maxLength),
	} {
		if got, err := Parse(text); !errors.Is(err, ErrMalformed) || !got.IsZero() {
			t.Errorf("%.40q: %+v, %v", text, got, err)
		}
	}
	longest := "arn:aws:sqs:r:a:"
	longest += strings.Repeat("q", maxLength-len(longest))
	if got, err := Parse(longest); err != nil || got.String() != longest {
		t.Errorf("the longest: %v", err)
	}
	if got := (ARN{}).String(); got != "" {
		t.Errorf("the zero ARN is %q", got)
	}
	if own := queue.Own(); own != queue {
		t.Errorf("its own copy is %v", own)
	}
}

func TestElements(t *testing.T) {
	for text, want := range map[string]int{"": 1, "a": 1, "arn:aws": 2, "arn:aws:sqs:r:a:q": 6, "arn:aws:sns:r:a:t:id": 6, "::::::::": 6} {
		if got := Elements(text); got != want {
			t.Errorf("%q has %d elements, want %d", text, got, want)
		}
	}
}

func TestSplitSubscription(t *testing.T) {
	topic := Topic("r", "a", "news.fifo")
	sub := topic.Subscription("id")
	if got, id, ok := sub.SplitSubscription(); !ok || got != topic || id != "id" {
		t.Errorf("%v, %q, %t", got, id, ok)
	}
	for _, no := range []ARN{topic, topic.Subscription(""), sub.Subscription("more"), {Service: "sns", Resource: ":id"}, {Service: "sqs", Resource: "t:id"}} {
		if got, id, ok := no.SplitSubscription(); ok || !got.IsZero() || id != "" {
			t.Errorf("%v is split into %v and %q", no, got, id)
		}
	}
	if !topic.FIFO() || sub.FIFO() || Queue("r", "a", "fifo").FIFO() {
		t.Error("a FIFO topic is one whose name ends so")
	}
}

func TestSplitFunction(t *testing.T) {
	f := Function("r", "a", "f")
	for _, c := range []struct {
		a         ARN
		function  ARN
		qualifier string
		ok        bool
	}{
		{f, f, "", true},
		{f.Qualify(""), f, "", true},
		{f.Qualify("$LATEST"), f, "$LATEST", true},
		{f.Qualify("7"), f, "7", true},
		{ARN{Service: "lambda", Resource: "function:"}, ARN{}, "", false},
		{ARN{Service: "lambda", Resource: "function:f:"}, ARN{}, "", false},
		{f.Qualify("a").Qualify("b"), ARN{}, "", false},
		{ARN{Service: "lambda", Resource: "layer:f"}, ARN{}, "", false},
		{ARN{Service: "sqs", Resource: "function:f"}, ARN{}, "", false},
	} {
		if function, qualifier, ok := c.a.SplitFunction(); function != c.function || qualifier != c.qualifier || ok != c.ok {
			t.Errorf("%v: %v, %q, %t", c.a, function, qualifier, ok)
		}
	}
	if name := f.FunctionName(); name != "f" {
		t.Errorf("its name is %q", name)
	}
}

func TestValidLogGroupName(t *testing.T) {
	for name, valid := range map[string]bool{
		"": false, "/aws/lambda/f": true, "a.b-c_d/e#F9": true, "a b": false, "a:b": false, "ä": false, "a\n": false,
		strings.Repeat("g", 512): true, strings.Repeat("g", 513): false,
	} {
		if ValidLogGroupName(name) != valid {
			t.Errorf("%q: valid %t", name, !valid)
		}
	}
}

func TestLogGroupName(t *testing.T) {
	g := LogGroup("r", "a", "/aws/lambda/f")
	streams := g
	streams.Resource += ":*"
	for _, c := range []struct {
		a    ARN
		name string
		ok   bool
	}{
		{g, "/aws/lambda/f", true},
		{streams, "/aws/lambda/f", true},
		{LogGroup("r", "a", ""), "", false},
		{ARN{Service: "logs", Resource: "destination:d"}, "", false},
		{ARN{Service: "sqs", Resource: "log-group:g"}, "", false},
	} {
		if name, ok := c.a.LogGroupName(); ok != c.ok || ok && name != c.name {
			t.Errorf("%v: %q, %t", c.a, name, ok)
		}
	}
}

func TestNames(t *testing.T) {
	for _, s := range []string{
		"arn:aws:sns:eu-west-1:000000000000:orders", "arn:aws:sns:eu-west-1:000000000000:orders:id", "arn:aws:sns:::x",
		"arn:aws-cn:sns:eu-west-1:000000000000:orders", "arn:aws:sns:eu-west-1:000000000000:", "arn::sns:eu-west-1:000000000000:orders",
		"arn:aws:::::", "arn:aws:sns:a:b:c:d:e",
	} {
		a, err := Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := a.Names(s), a.String() == s; got != want {
			t.Errorf("%s: %v", s, got)
		}
		for _, other := range []string{s + "x", s[:len(s)-1], "", "arn", "arn:aws", strings.Replace(s, "sns", "sqs", 1) + "y"} {
			if a.Names(other) {
				t.Errorf("%s names %s", a, other)
			}
		}
	}
	if (ARN{}).Names("arn:aws::::") || (ARN{}).Names("") {
		t.Error("the zero ARN has a name")
	}
}

// TestCompare: the order is that of the keys of records.
func TestCompare(t *testing.T) {
	ordered := []ARN{
		Queue("us-east-1", "1", "b"), Queue("us-west-2", "1", "a"), Queue("us-west-2", "1", "aa"), Queue("us-east-1", "2", "a"),
	}
	for i := range ordered {
		for j := range ordered {
			if got := Compare(ordered[i], ordered[j]); got != cmp.Compare(i, j) {
				t.Errorf("%s and %s: %d", ordered[i], ordered[j], got)
			}
		}
	}
}

func TestIsAccount(t *testing.T) {
	for text, want := range map[string]bool{
		"000000000000": true, "123456789012": true, "": false, "12345678901": false, "1234567890123": false,
		"12345678901a": false, "/23456789012": false, "12345678901:": false, "12345678901\u0663": false,
	} {
		if IsAccount(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}
