package sts

import (
	"encoding/json"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/authorize"
)

// claims are the claims of a token that are used.
type claims struct {
	Issuer, Subject string
	Audience        []string
	Party           string   // azp
	Issued, Expires *float64 // seconds of Unix time
	AMR             []string

	SourceIdentity string
	Tags           []Tag // of the session, sorted by key
	Transitive     []string
}

// The claims about the session. Providers without objects in claims write the members as
// separate claims, with the name of the first and a slash as the prefix. Source: the STS and
// IAM user guides, on session tags and source identity of AssumeRoleWithWebIdentity.
const (
	tagsClaim       = "https://aws.amazon.com/tags"
	tagClaim        = tagsClaim + "/principal_tags/"
	transitiveClaim = tagsClaim + "/transitive_tag_keys"
	sourceClaim     = "https://aws.amazon.com/source_identity"
)

// peek reads a token's claims before they are verified. The names of claims are
// case-sensitive: "SUB" is not the subject.
func peek(token string) (c claims, err error) {
	payload, ok := payloadOf(token)
	var all map[string]json.RawMessage
	if !ok || json.Unmarshal(payload, &all) != nil || !c.read(all) {
		return c, badToken("The ID Token provided is not a valid JWT. (You may see this error if you sent an Access Token)")
	}
	for _, of := range []struct {
		name  string
		there bool
	}{{"iss", c.Issuer != ""}, {"sub", c.Subject != ""}, {"aud", len(c.Audience) > 0}, {"iat", c.Issued != nil}, {"exp", c.Expires != nil}} {
		if !of.there {
			return c, badToken("Missing a required claim: " + of.name)
		}
	}
	return c, nil
}

// read decodes the claims; ok is false if one has another type.
func (c *claims) read(all map[string]json.RawMessage) (ok bool) {
	ok = true
	into := func(name string, v any) {
		if text, there := all[name]; there {
			ok = ok && json.Unmarshal(text, v) == nil
		}
	}
	into("iss", &c.Issuer)
	into("sub", &c.Subject)
	into("azp", &c.Party)
	into("iat", &c.Issued)
	into("exp", &c.Expires)
	into("amr", &c.AMR)
	into(sourceClaim, &c.SourceIdentity)
	into(transitiveClaim, (*texts)(&c.Transitive))
	into("aud", (*texts)(&c.Audience))
	var tags struct {
		Principal  map[string]texts `json:"principal_tags"`
		Transitive texts            `json:"transitive_tag_keys"`
	}
	into(tagsClaim, &tags)
	c.Transitive = append(c.Transitive, tags.Transitive...)
	if tags.Principal == nil {
		tags.Principal = map[string]texts{}
	}
	for name := range all {
		if key, is := strings.CutPrefix(name, tagClaim); is {
			var value texts
			into(name, &value)
			tags.Principal[key] = value
		}
	}
	for key, values := range tags.Principal {
		if len(values) != 1 { // a tag has only one value
			return false
		}
		c.Tags = append(c.Tags, Tag{&key, &values[0]})
	}
	slices.SortFunc(c.Tags, func(a, b Tag) int { return strings.Compare(*a.Key, *b.Key) })
	return ok
}

// texts is a text or a list of them.
type texts []string

// UnmarshalJSON decodes either form.
func (t *texts) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*t = texts{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(t))
}

// keys are the condition keys of the claims, with the provider's name as the prefix. They
// apply to the whole session. client is the client that the token was issued to.
func (c *claims) keys(provider, client string) map[string][]string {
	prefix := strings.ToLower(provider)
	keys := map[string][]string{prefix + ":aud": {client}, prefix + ":sub": {c.Subject}}
	if len(c.Audience) > 1 {
		keys[prefix+":oaud"] = c.Audience
	}
	if c.Party != "" {
		keys[prefix+":azp"] = []string{c.Party}
	}
	if len(c.AMR) > 0 {
		keys[prefix+":amr"] = c.AMR
	}
	return keys
}

// actions are the actions that the role's trust policy must allow.
func (c *claims) actions() []string {
	all := []string{"sts:AssumeRoleWithWebIdentity"}
	if len(c.Tags) > 0 {
		all = append(all, "sts:TagSession")
	}
	if c.SourceIdentity != "" {
		all = append(all, "sts:SetSourceIdentity")
	}
	return all
}

// tagging are the condition keys of the tags.
func (c *claims) tagging() *authorize.Need {
	n := &authorize.Need{Tags: map[string]string{}}
	for _, t := range c.Tags {
		n.TagKeys = append(n.TagKeys, *t.Key)
		n.Tags[*t.Key] = *t.Value
	}
	return n
}
