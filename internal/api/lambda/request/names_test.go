package request

import (
	"strings"
	"testing"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
)

// TestParse: the ways in which a request may name a function, and what is refused.
func TestParse(t *testing.T) {
	const account = "000000000000"
	call := &api.Call{Region: "us-east-1", Account: account, AccessKey: "test", Operation: "Invoke"}
	f := arn.Function("us-east-1", account, "f")
	for text, qualifier := range map[string]string{
		"f": "", "f:1": "1", "f:$LATEST": "$LATEST", account + ":function:f": "", "function:f": "", account + ":function:f:live": "live",
		f.String(): "", f.Qualify("live").String(): "live", account + ":f": "",
		"us-east-1:" + account + ":function:f:live": "live", "us-east-1:function:f": "", "arn:aws:lambda:us-east-1:function:f:1": "1", "arn:aws:lambda:f": "",
	} {
		if got, err := Read(call, text, nil, MaxLongName); err != nil || got.Function != f || got.Qualifier != qualifier {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	live, other := "live", "other"
	if got, err := Read(call, "f", &live, MaxLongName); err != nil || got.ARN() != f.Qualify(live) {
		t.Errorf("a qualifier beside the name: %+v, %v", got, err)
	}
	for _, c := range []struct {
		text      string
		qualifier *string
		kind      fault.Kind
		want      string
	}{
		{"", nil, fault.ValidationFailed, "greater than or equal to 1"},
		{"eu-west-1:" + account + ":function:f", nil, fault.ResourceNotFound, "eu-west-1"},
		{"f g", nil, fault.ValidationFailed, "regular expression pattern"},
		{strings.Repeat("f", MaxLongName+1), nil, fault.ValidationFailed, "less than or equal to 256"},
		{"f:live", &other, fault.InvalidParameter, "does not match the specified qualifier"},
		{"arn:aws:lambda:eu-west-1:" + account + ":function:f", nil, fault.ResourceNotFound, "eu-west-1"},
	} {
		_, err := Read(call, c.text, c.qualifier, MaxLongName)
		if fault.KindOf(err) != c.kind || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40s: kind %d, %v; want kind %d, %s", c.text, fault.KindOf(err), err, c.kind, c.want)
		}
	}
}

// TestConstraints: all that is wrong with a request is reported at once.
func TestConstraints(t *testing.T) {
	var c Constraints
	if err := c.Err(); err != nil {
		t.Error(err)
	}
	text, number := "long", 11
	c.Length("a", &text, 1, 3)
	c.Between("b", &number, 1, 10)
	c.Enum("c", &text, "x", "y")
	c.Length("absent", nil, 1, 3)
	err := c.Err()
	if fault.KindOf(err) != fault.ValidationFailed || !strings.HasPrefix(err.Error(), "3 validation errors detected: Value 'long' at 'a' failed") {
		t.Error(err)
	}
}
