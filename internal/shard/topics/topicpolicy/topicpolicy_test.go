package topicpolicy

import (
	"errors"
	"strings"
	"testing"
)

// TestCheck: a topic's policy is about actions on topics, of one resource a statement.
func TestCheck(t *testing.T) {
	statement := func(s string) string {
		return `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*",` + s + `}]}`
	}
	one := `"Resource":"arn:aws:sns:us-east-1:000000000000:t"`
	for doc, want := range map[string]error{
		"": nil,
		statement(`"Action":"sns:Publish",` + one):                       nil,
		statement(`"Action":["SNS:Publish","SNS:Subscribe"],` + one):     nil,
		statement(`"Action":"sns:*Attributes",` + one):                   ErrAction, // those of subscriptions, too
		statement(`"Action":"sns:*TopicAttributes",` + one):              nil,
		statement(`"Action":"sns:*",` + one):                             ErrAction,
		statement(`"Action":"sns:CreateTopic",` + one):                   ErrAction,
		statement(`"Action":"sqs:SendMessage",` + one):                   ErrAction,
		statement(`"NotAction":"sns:Publish",` + one):                    ErrAction,
		statement(`"Action":"sns:Publish","Resource":["arn:a","arn:b"]`): ErrResources,
		`{`: ErrDocument,
		statement(`"Action":"sns:Publish","Sid":"` + strings.Repeat("s", maxBytes) + `",` + one): ErrTooLong,
	} {
		if err := Check(doc); !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("%.200s: %v, want %v", doc, err, want)
		}
	}
}
