package iam_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/iam"
)

const account = "123456789012"

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const (
	allowAll = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}`
	trustAll = `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Principal":{"AWS":"*"},"Action":"sts:AssumeRole"}}`
)

var ids int

func user(name string) *iam.Entity {
	ids++
	return &iam.Entity{Kind: iam.User, Path: "/", Name: name, ID: fmt.Sprint("AIDA", ids), Created: now}
}

func group(name string) *iam.Entity {
	ids++
	return &iam.Entity{Kind: iam.Group, Path: "/", Name: name, ID: fmt.Sprint("AGPA", ids), Created: now}
}

func role(name string) *iam.Entity {
	ids++
	return &iam.Entity{Kind: iam.Role, Path: "/", Name: name, ID: fmt.Sprint("AROA", ids), Created: now, Role: &iam.RolePart{Trust: trustAll, MaxSession: 3600}}
}

func managed(name string) *iam.Entity {
	ids++
	return &iam.Entity{
		Kind: iam.Policy, Path: "/", Name: name, ID: fmt.Sprint("ANPA", ids), Created: now,
		Policy: &iam.PolicyPart{Versions: []iam.Version{{Number: 1, Document: allowAll, Created: now}}, Default: 1, Latest: 1},
	}
}

func ok(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func refused(t *testing.T, err error, rule *fault.Rule) {
	t.Helper()
	if !errors.Is(err, rule) {
		t.Errorf("refused with %v, want %v", err, rule)
	}
}

// A unique id holds its account, and nothing else reads as one that does.
func TestID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		account := rapid.StringMatching(`[0-9]{12}`).Draw(t, "account")
		var random iam.Random
		copy(random[:], rapid.SliceOfN(rapid.Byte(), len(random), len(random)).Draw(t, "random"))
		id := iam.NewID(iam.PrefixKey, account, random)
		if len(id) != 20 || strings.Trim(id[4:], "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
			t.Fatalf("%s has not the form of an id", id)
		}
		if got, ok := iam.AccountOf(id); !ok || got != account {
			t.Fatalf("%s is of %s, %v; want %s", id, got, ok, account)
		}
	})
	// As AWS's own documentation and clients decode it.
	if got, ok := iam.AccountOf("ASIAQNZGKIQY56JQ7WML"); !ok || got != "029608264753" {
		t.Errorf("a key of AWS's is of %s, %v", got, ok)
	}
	for _, id := range []string{"", "AKIA", "AKIA0000000000000000", strings.Repeat("A", 20), "AKIAIOSFODNN7EXAMPLE1"} {
		if got, ok := iam.AccountOf(id); ok {
			t.Errorf("%q is of %s", id, got)
		}
	}
}

// Nothing that something depends on goes.
func TestDelete(t *testing.T) {
	a := iam.NewAccount(account)
	p, aws := managed("p"), "arn:aws:iam::aws:policy/AdministratorAccess"
	ok(t, a.Create(user("u")), a.Create(group("g")), a.Create(role("r")), a.Create(p),
		a.Create(&iam.Entity{Kind: iam.Profile, Path: "/", Name: "i", ID: "AIPA1", Created: now}))
	arn := "arn:aws:iam::" + account + ":policy/p"

	ok(t, a.CreateKey("u", &iam.AccessKey{ID: "AKIA1", Created: now}))
	refused(t, a.Delete(iam.User, "u"), iam.ErrHasKeys)
	ok(t, a.DeleteKey("u", "AKIA1"), a.AddToGroup("g", "u"))
	refused(t, a.Delete(iam.User, "u"), iam.ErrHasMembers)
	refused(t, a.Delete(iam.Group, "g"), iam.ErrHasMembers)
	ok(t, a.RemoveFromGroup("g", "u"), a.Attach(iam.User, "u", arn), a.PutInline(iam.Group, "g", "in", allowAll))
	refused(t, a.Delete(iam.User, "u"), iam.ErrHasAttached)
	refused(t, a.Delete(iam.Group, "g"), iam.ErrHasInline)
	refused(t, a.Delete(iam.Policy, "p"), iam.ErrIsAttached)
	ok(t, a.Detach(iam.User, "u", arn), a.SetBoundary(iam.Role, "r", arn))
	refused(t, a.Delete(iam.Policy, "p"), iam.ErrIsAttached)
	ok(t, a.DeleteBoundary(iam.Role, "r"), a.AddToProfile("i", "r"))
	refused(t, a.Delete(iam.Role, "r"), iam.ErrHasProfiles)
	refused(t, a.Delete(iam.Profile, "i"), iam.ErrHasProfiles)
	refused(t, a.AddToProfile("i", "r"), iam.ErrQuota)
	ok(t, a.RemoveFromProfile("i", "r"), a.Delete(iam.Profile, "i"), a.Attach(iam.Role, "r", aws))
	refused(t, a.Delete(iam.Role, "r"), iam.ErrHasAttached)
	if _, err := a.AddVersion(arn, allowAll, true, now); err != nil {
		t.Fatal(err)
	}
	refused(t, a.Delete(iam.Policy, "p"), iam.ErrHasVersions)
	refused(t, a.DeleteVersion(arn, "v2", 2), iam.ErrDefaultVersion)
	refused(t, a.DeleteVersion(arn, "v3", 3), iam.ErrNoVersion)
	ok(t, a.DeleteVersion(arn, "v1", 1), a.Delete(iam.Policy, "p"), a.Detach(iam.Role, "r", aws), a.Delete(iam.Role, "r"),
		a.DeleteInline(iam.Group, "g", "in"), a.Delete(iam.Group, "g"), a.Delete(iam.User, "u"))
	if !a.Empty() {
		t.Error("something is left")
	}
}

// What there may be of anything.
func TestQuotas(t *testing.T) {
	a := iam.NewAccount(account)
	ok(t, a.Create(user("u")), a.Create(managed("p")))
	refused(t, a.Create(user("U")), iam.ErrUserTaken) // names differ by more than case
	for n := range iam.MaxKeys {
		ok(t, a.CreateKey("u", &iam.AccessKey{ID: fmt.Sprint("AKIA", n), Created: now}))
	}
	refused(t, a.CreateKey("u", &iam.AccessKey{ID: "AKIA9", Created: now}), iam.ErrQuota)
	for n := range iam.MaxGroups + 1 {
		ok(t, a.Create(group(fmt.Sprint("g", n))))
	}
	for n := range iam.MaxGroups {
		ok(t, a.AddToGroup(fmt.Sprint("g", n), "u"), a.AddToGroup(fmt.Sprint("g", n), "u"))
	}
	refused(t, a.AddToGroup("g10", "u"), iam.ErrQuota)
	for n := range iam.MaxAttached + 1 {
		ok(t, a.Create(managed(fmt.Sprint("p", n))))
		err := a.Attach(iam.User, "u", fmt.Sprintf("arn:aws:iam::%s:policy/p%d", account, n))
		if n < iam.MaxAttached {
			ok(t, err)
		} else {
			refused(t, err, iam.ErrQuota)
		}
	}
	arn := "arn:aws:iam::" + account + ":policy/p"
	for range iam.MaxVersions - 1 {
		if _, err := a.AddVersion(arn, allowAll, false, now); err != nil {
			t.Fatal(err)
		}
	}
	_, err := a.AddVersion(arn, allowAll, false, now)
	refused(t, err, iam.ErrVersions)
	ok(t, a.DeleteVersion(arn, "v2", 2))
	if number, err := a.AddVersion(arn, allowAll, true, now); err != nil || number != 6 {
		t.Errorf("a version got the number %d, %v: numbers are given once", number, err)
	}
	long := strings.Repeat("x", 2048)
	refused(t, a.PutInline(iam.User, "u", "in", long+"x"), iam.ErrInlineSize)
	ok(t, a.PutInline(iam.User, "u", "in", long+" \n\t")) // white space does not count
	refused(t, a.PutInline(iam.User, "u", "other", "x"), iam.ErrInlineSize)
	many := make([]iam.Tag, iam.MaxTags)
	for i := range many {
		many[i].Key = fmt.Sprint(i)
	}
	ok(t, a.Tag(iam.User, "u", many), a.Tag(iam.User, "u", many[:1]))
	refused(t, a.Tag(iam.User, "u", []iam.Tag{{Key: "more"}}), iam.ErrTooManyTags)
	refused(t, a.Tag(iam.User, "u", []iam.Tag{{Key: "a"}, {Key: "A"}}), iam.ErrTagTwice)
	// Keys of users and roles are the same whatever their case; those of others are not.
	ok(t, a.Tag(iam.Policy, "p", []iam.Tag{{Key: "a", Value: "1"}, {Key: "A", Value: "2"}}), a.Untag(iam.Policy, "p", []string{"a"}))
	refused(t, a.Tag(iam.Policy, "p", []iam.Tag{{Key: "a"}, {Key: "a"}}), iam.ErrSameTag)
	if p, err := a.Managed(arn); err != nil || len(p.Tags) != 1 || p.Tags[0] != (iam.Tag{Key: "A", Value: "2"}) {
		t.Errorf("tags: %v, %v", p.Tags, err)
	}
	refused(t, a.SetBoundary(iam.User, "u", "arn:aws:iam::"+account+":policy/none"), iam.ErrNoBoundaryPolicy)
	refused(t, a.SetDefault("arn:aws:iam::aws:policy/AdministratorAccess", "v1", 1, now), iam.ErrAWSManaged)
	refused(t, a.Attach(iam.User, "u", "arn:aws:iam::aws:policy/None"), iam.ErrNotAttachable)
}

// A command that is refused has changed nothing, and what a history has put can be taken
// back: what is loaded from the records of its changes is the account.
func TestHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := iam.NewAccount(account)
		records := map[string]*iam.Entity{}
		keys := map[string]*iam.AccessKey{}
		names := rapid.SampledFrom([]string{"a", "B", "c"})
		kinds := rapid.SampledFrom([]iam.Kind{iam.User, iam.Group, iam.Role})
		arns := rapid.SampledFrom([]string{"arn:aws:iam::" + account + ":policy/a", "arn:aws:iam::" + account + ":policy/B", "arn:aws:iam::aws:policy/ReadOnlyAccess"})
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			name, other, kind, arn := names.Draw(t, "name"), names.Draw(t, "other"), kinds.Draw(t, "kind"), arns.Draw(t, "arn")
			before := dump(a)
			err := step(t, a, kind, name, other, arn)
			if rapid.IntRange(0, 4).Draw(t, "revert") == 0 {
				a.Revert()
				err = errors.New("reverted")
			}
			changes := a.Changes()
			if err != nil && (len(changes) > 0 || !cmp.Equal(before, dump(a))) {
				t.Fatalf("%v, and yet it changed: %s", err, cmp.Diff(before, dump(a)))
			}
			for _, c := range changes {
				if c.Before != nil {
					delete(records, string(rune(c.Before.Kind))+strings.ToLower(c.Before.Name))
				}
				if c.After != nil {
					records[string(rune(c.After.Kind))+strings.ToLower(c.After.Name)] = c.After
				}
				if c.BeforeKey != nil {
					delete(keys, c.BeforeKey.ID)
				}
				if c.AfterKey != nil {
					keys[c.AfterKey.ID] = c.AfterKey
				}
			}
		}
		loaded := iam.NewAccount(account)
		for _, e := range records {
			loaded.Load(e)
		}
		for _, k := range keys {
			loaded.LoadKey(k)
		}
		if d := cmp.Diff(dump(a), dump(loaded)); d != "" {
			t.Fatalf("the records are not the account: %s", d)
		}
	})
}

func step(t *rapid.T, a *iam.Account, kind iam.Kind, name, other, arn string) error {
	made := map[iam.Kind]func(string) *iam.Entity{iam.User: user, iam.Group: group, iam.Role: role, iam.Policy: managed}
	switch rapid.IntRange(0, 14).Draw(t, "step") {
	case 0, 1, 2:
		return a.Create(made[kind](name))
	case 3:
		return a.Create(managed(name))
	case 4:
		return a.Delete(kind, name)
	case 5:
		return a.Delete(iam.Policy, name)
	case 6:
		return a.Attach(kind, name, arn)
	case 7:
		return a.Detach(kind, name, arn)
	case 8:
		return a.AddToGroup(other, name)
	case 9:
		return a.RemoveFromGroup(other, name)
	case 10:
		return a.Rename(iam.User, name, other, "/p/")
	case 11:
		ids++
		return a.CreateKey(name, &iam.AccessKey{ID: fmt.Sprint("AKIA", ids), Created: now.Add(time.Duration(ids) * time.Second)})
	case 12:
		return a.SetBoundary(kind, name, arn)
	case 13:
		return a.PutInline(kind, name, other, allowAll)
	default:
		u, err := a.Find(iam.User, name)
		if err != nil || len(a.Keys(u)) == 0 {
			return iam.ErrNoKey
		}
		return a.DeleteKey(name, a.Keys(u)[0].ID)
	}
}

// dump is all that an account shows.
func dump(a *iam.Account) map[string]any {
	all := map[string]any{}
	for _, kind := range iam.Kinds {
		for _, e := range a.List(kind, "") {
			attached, boundaries := a.Attachments(e.ARN())
			all[e.ARN()] = []any{*e, attached, boundaries, a.ByID(e.ID) == e, a.ByARN(e.ARN()) == e}
			if kind == iam.User {
				all[e.ARN()+" keys"] = a.Keys(e)
				all[e.ARN()+" groups"] = a.GroupsOf(e)
			}
			if kind == iam.Group {
				all[e.ARN()+" members"] = a.Members(e.ID)
			}
		}
	}
	return all
}

// What a document must have, by its form, in AWS's words.
func TestDocuments(t *testing.T) {
	statement := func(elements string) string { return `{"Version":"2012-10-17","Statement":[{` + elements + `}]}` }
	for _, c := range []struct {
		form     iam.Form
		document string
		why      string // empty: it is taken
	}{
		{iam.Identity, allowAll, ""},
		{iam.Trust, trustAll, ""},
		{iam.Identity, `{"Statement":[]}`, "Syntax errors in policy."},
		{iam.Identity, `{"Statement":{}}`, "Syntax errors in policy."},
		{iam.Identity, `[]`, "Syntax errors in policy."},
		{iam.Identity, allowAll + "x", "Syntax errors in policy."},
		{iam.Identity, `{"Version":"2020-01-01","Statement":[]}`, "Syntax errors in policy."},
		{iam.Identity, statement(`"Effect":"Allow","Effect":"Deny","Action":"*","Resource":"*"`), "Syntax errors in policy."},
		{iam.Identity, statement(`"Effect":"Allow","Action":"*","Resource":"*","Extra":1`), "Syntax errors in policy."},
		{iam.Identity, statement(`"Effect":"Maybe","Action":"*","Resource":"*"`), "Syntax errors in policy."},
		{iam.Identity, statement(`"Effect":"Allow","Action":"*","NotAction":"a:b","Resource":"*"`), "Syntax errors in policy."},
		{iam.Identity, statement(`"Effect":"Allow","Principal":"*","Action":"*","Resource":"*"`), "Policy document should not specify a principal."},
		{iam.Identity, statement(`"Effect":"Allow","Resource":"*"`), "Policy statement must contain actions."},
		{iam.Identity, statement(`"Effect":"Allow","Action":"*"`), "Policy statement must contain resources."},
		{iam.Identity, statement(`"Effect":"Allow","Action":"publish","Resource":"*"`), "Actions/Conditions must be prefaced by a vendor, e.g., iam, sdb, ec2, etc."},
		{iam.Identity, statement(`"Effect":"Allow","Action":"a:b:c","Resource":"*"`), "Actions/Condition can contain only one colon."},
		{iam.Identity, statement(`"Effect":"Allow","Action":"a:b","Resource":"queue"`), `Resource queue must be in ARN format or "*".`},
		{iam.Identity, statement(`"Sid":"a b","Effect":"Allow","Action":"a:b","Resource":"*"`), "Statement IDs (SID) should be alpha numeric."},
		{iam.Identity, `{"Statement":[{"Sid":"a","Effect":"Allow","Action":"a:b","Resource":"*"},{"Sid":"a","Effect":"Deny","Action":"a:b","Resource":"*"}]}`, "Statement IDs (SID) in a single policy must be unique."},
		{iam.Trust, "no document", "This policy contains invalid Json"},
		{iam.Trust, statement(`"Effect":"Allow","Principal":"*","Action":"sts:AssumeRole","Resource":"*"`), "Has prohibited field Resource"},
		{iam.Trust, statement(`"Effect":"Allow","Action":"sts:AssumeRole"`), "Missing required field Principal"},
		{iam.Trust, statement(`"Effect":"Allow","Principal":"*","Action":"sqs:*"`), "AssumeRole policy may only specify STS AssumeRole actions."},
	} {
		err := iam.CheckDocument(c.form, c.document)
		if c.why == "" && err != nil || c.why != "" && (fault.KindOf(err) != fault.MalformedPolicyDocument || refusal.Text(err) != c.why) {
			t.Errorf("%s: %v, want %q", c.document, err, c.why)
		}
	}
}

func FuzzDocument(f *testing.F) {
	f.Add(allowAll)
	f.Add(trustAll)
	f.Fuzz(func(_ *testing.T, document string) {
		_ = iam.CheckDocument(iam.Identity, document)
		_ = iam.CheckDocument(iam.Managed, document)
		_ = iam.CheckDocument(iam.Trust, document)
	})
}
