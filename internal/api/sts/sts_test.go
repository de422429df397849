package sts

import (
	"encoding/base64"
	"errors"
	"reflect"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/fault"
)

func TestARNs(t *testing.T) {
	for text, want := range map[string]bool{
		"arn:aws:iam::000000000000:role/r": true, "arn:a:b::c:d:e": true,
		"": false, "nothing-valid-in-here": false, "arn::b:::something/test-role": false, "arn:a::::something/test-role": false,
		"arn:a:::something/test-role": false, "arn:a:a::aaaaaaaaaa:": false, "ARN:a:b:::c": false,
	} {
		if isARN(text) != want {
			t.Errorf("%q is an ARN: %v", text, !want)
		}
	}
}

func TestNames(t *testing.T) {
	for text, want := range map[string]bool{
		"ab": true, "a_b+c=d,e.f@g-h": true, strings.Repeat("s", 64): true,
		"": false, "a": false, "a b": false, "a:b": false, "ä1": false, strings.Repeat("s", 65): false,
	} {
		if isName(text) != want {
			t.Errorf("%q is a name: %v", text, !want)
		}
	}
}

// What a token says before anybody has verified it: by the exact names of claims.
func TestClaims(t *testing.T) {
	token := func(claims string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
	}
	const needed = `"iss":"https://i","sub":"s","aud":"c","iat":1,"exp":2`
	for name, c := range map[string]struct{ token, text string }{
		"all":             {token(`{` + needed + `}`), ""},
		"several aud":     {token(`{"iss":"https://i","sub":"s","aud":["c","d"],"azp":"d","iat":1,"exp":2}`), ""},
		"no JWT":          {"x", "The ID Token provided is not a valid JWT. (You may see this error if you sent an Access Token)"},
		"no JSON":         {token(`x`), "The ID Token provided is not a valid JWT. (You may see this error if you sent an Access Token)"},
		"a wrong type":    {token(`{"iss":1,"sub":"s","aud":"c","iat":1,"exp":2}`), "The ID Token provided is not a valid JWT. (You may see this error if you sent an Access Token)"},
		"no iss":          {token(`{"ISS":"https://i","sub":"s","aud":"c","iat":1,"exp":2}`), "Missing a required claim: iss"},
		"no sub":          {token(`{"iss":"https://i","Sub":"s","aud":"c","iat":1,"exp":2}`), "Missing a required claim: sub"},
		"no aud":          {token(`{"iss":"https://i","sub":"s","aud":[],"iat":1,"exp":2}`), "Missing a required claim: aud"},
		"no iat":          {token(`{"iss":"https://i","sub":"s","aud":"c","exp":2}`), "Missing a required claim: iat"},
		"no exp":          {token(`{"iss":"https://i","sub":"s","aud":"c","iat":1}`), "Missing a required claim: exp"},
		"a tag of two":    {token(`{` + needed + `,"https://aws.amazon.com/tags":{"principal_tags":{"a":["1","2"]}}}`), "The ID Token provided is not a valid JWT. (You may see this error if you sent an Access Token)"},
		"a tag, and flat": {token(`{` + needed + `,"https://aws.amazon.com/tags/principal_tags/a":"1"}`), ""},
	} {
		_, err := peek(c.token)
		said, _ := errors.AsType[*fault.Error](err)
		if c.text == "" && err != nil || c.text != "" && (said == nil || said.Kind != fault.InvalidIdentityToken || said.Message != c.text) {
			t.Errorf("%s: %v, want %q", name, err, c.text)
		}
	}
	c, err := peek(token(`{` + needed + `,"https://aws.amazon.com/tags":{"principal_tags":{"b":["2"]},"transitive_tag_keys":["b"]},"https://aws.amazon.com/tags/principal_tags/a":"1","https://aws.amazon.com/source_identity":"me"}`))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Tags) != 2 || *c.Tags[0].Key != "a" || *c.Tags[1].Value != "2" || c.SourceIdentity != "me" || !reflect.DeepEqual(c.Transitive, []string{"b"}) {
		t.Errorf("%+v", c)
	}
	if actions := c.actions(); !reflect.DeepEqual(actions, []string{"sts:AssumeRoleWithWebIdentity", "sts:TagSession", "sts:SetSourceIdentity"}) {
		t.Errorf("%v", actions)
	}
}

// Every operation has what it needs declared, and is held to the model.
func TestOperationsAreDeclared(t *testing.T) {
	for _, op := range New(Options{}).Operations() {
		if op.Access == nil || op.Check == nil {
			t.Errorf("%s: access %v, constraints %v", op.Name, op.Access != nil, op.Check != nil)
		}
	}
}
