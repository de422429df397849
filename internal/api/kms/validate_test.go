package kms

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/fault"
)

// refuses holds a refusal against its kind and text; an empty text is none.
func refuses(t *testing.T, what string, err error, kind fault.Kind, text string) {
	t.Helper()
	if text == "" {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		return
	}
	said, ok := refusal.Of(err)
	if !ok || said.Kind != kind || said.Message != text {
		t.Errorf("%s: %v, want %v %q", what, err, kind, text)
	}
}

// What a request names a key by.
func TestKeyNames(t *testing.T) {
	call := &api.Call{Region: "us-east-1", Account: "000000000000"}
	long := strings.Repeat("k", 400)
	for name, want := range map[string]struct {
		kind fault.Kind
		text string
	}{
		"1234abcd-12ab-34cd-56ef-1234567890ab": {},
		"alias/a":                              {},
		"arn:aws:kms:us-east-1:000000000000:key/1234abcd-12ab-34cd-56ef-1234567890ab": {},
		"arn:aws:kms:us-east-1:000000000000:alias/a":                                  {},
		"arn:aws:kms:eu-west-1:000000000000:alias/a":                                  {fault.KMSNotFound, "Invalid arn eu-west-1"},
		"arn:aws:kms:bad":                          {fault.InvalidARN, "arn:aws:kms:bad is not a valid ARN of a key"},
		"arn:aws:sqs:us-east-1:000000000000:queue": {fault.InvalidARN, "arn:aws:sqs:us-east-1:000000000000:queue is not a valid ARN of a key"},
		"1234ABCD-12ab-34cd-56ef-1234567890ab":     {fault.KMSNotFound, "Invalid keyId '1234ABCD-12ab-34cd-56ef-1234567890ab'"},
		long:                                       {fault.KMSNotFound, "Invalid keyId '" + shorten(long) + "'"},
	} {
		refuses(t, name, checkKeyID(call, name), want.kind, want.text)
	}
	if len(shorten(long)) >= len(long) {
		t.Error("a text of a stranger's is not cut")
	}
	for name, want := range map[string]bool{"alias/a": true, "arn:aws:kms:us-east-1:0:alias/a": true, "a": false, "arn:aws:kms:us-east-1:0:key/alias": false} {
		if isAlias(name) != want {
			t.Errorf("%s is an alias: %v", name, !want)
		}
	}
	for name, want := range map[string]struct {
		kind fault.Kind
		text string
	}{
		"alias/a_b/C-1":  {},
		"a":              {fault.ValidationFailed, `Alias must start with the prefix "alias/". Please see https://docs.aws.amazon.com/kms/latest/developerguide/kms-alias.html`},
		"alias/a:b":      {fault.ValidationFailed, "alias/a:b contains invalid characters for an alias"},
		"alias/aws/mine": {fault.InvalidAliasName, "Alias name alias/aws/mine is reserved: names that begin with alias/aws/ are of AWS managed keys."},
	} {
		refuses(t, name, checkAlias(name), want.kind, want.text)
	}
}

// Pages are as long as asked for, and continue where the last has ended, in their list alone.
func TestPages(t *testing.T) {
	for _, c := range []struct {
		asked *int
		want  int
		text  string
	}{
		{nil, 50, ""},
		{new(7), 7, ""},
		{new(100), 100, ""},
		{new(101), 0, "1 validation error detected: Value '101' at 'limit' failed to satisfy constraint: Member must have value less than or equal to 100"},
	} {
		got, err := limit(c.asked, 50, 100)
		refuses(t, fmt.Sprint(c.want), err, fault.ValidationFailed, c.text)
		if got != c.want {
			t.Errorf("%d, want %d", got, c.want)
		}
	}
	marker := next("keys", "k1", true)
	if after, err := from("keys", &marker); err != nil || after != "k1" {
		t.Errorf("%q, %v", after, err)
	}
	_, err := from("aliases", &marker)
	refuses(t, "another list's", err, fault.InvalidMarker, "The marker is not one of this list.")
	if next("keys", "k1", false) != "" {
		t.Error("a last page has a marker")
	}
}

// Tags have one value a key, and are not AWS's.
func TestTags(t *testing.T) {
	tag := func(key, value string) Tag { return Tag{&key, &value} }
	for _, c := range []struct {
		tags []Tag
		want map[string]string
		text string
	}{
		{nil, map[string]string{}, ""},
		{[]Tag{tag("a", ""), tag("A", "2")}, map[string]string{"a": "", "A": "2"}, ""},
		{[]Tag{tag("a", "1"), tag("a", "2")}, nil, "Duplicate tag keys"},
		{[]Tag{tag("AWS:a", "1")}, nil, "Tags beginning with aws: are reserved"},
	} {
		got, err := readTags(c.tags)
		refuses(t, fmt.Sprint(c.want), err, fault.InvalidTag, c.text)
		if !maps.Equal(got, c.want) {
			t.Errorf("%v, want %v", got, c.want)
		}
	}
}

// Every operation has what it needs declared, and is held to the model.
func TestOperationsAreDeclared(t *testing.T) {
	for _, op := range New(nil, nil).Operations() {
		if op.Access == nil || op.Check == nil {
			t.Errorf("%s: access %v, constraints %v", op.Name, op.Access != nil, op.Check != nil)
		}
	}
}
