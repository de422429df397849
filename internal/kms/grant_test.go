package kms_test

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/kms"
)

type context = map[string]string

// A grant allows its operations to its grantee, under its constraints where the operation has an
// encryption context.
func TestAllows(t *testing.T) {
	free := kms.Grant{Grantee: "zoe", Operations: []string{"Decrypt", "DescribeKey", "Sign"}}
	subset, equals, pair, twice, empty := free, free, free, free, free
	subset.Subset = context{"a": "b"}
	equals.Equals = context{"a": "b"}
	pair.Equals = context{"a": "b", "c": "d"}
	twice.Equals = context{"a": "b", "A": "b"}
	empty.Equals = context{}
	data := kms.Grant{Grantee: "zoe", Operations: []string{"GenerateDataKey"}, Subset: context{"a": "b"}}
	zoe := []string{"sqs.amazonaws.com", "zoe"}
	for _, tt := range []struct {
		name       string
		grant      kms.Grant
		principals []string
		operation  string
		context    context
		want       bool
	}{
		{"its grantee", free, zoe, "Decrypt", nil, true},
		{"another one", free, []string{"ann"}, "Decrypt", nil, false},
		{"nobody", free, nil, "Decrypt", nil, false},
		{"another operation", free, zoe, "Encrypt", nil, false},
		{"any context", free, zoe, "Decrypt", context{"c": "d"}, true},
		{"a part of the context", subset, zoe, "Decrypt", context{"a": "b", "c": "d"}, true},
		{"a name in another case", subset, zoe, "Decrypt", context{"A": "b"}, true},
		{"another value", subset, zoe, "Decrypt", context{"a": "B"}, false},
		{"another name", subset, zoe, "Decrypt", context{"c": "b"}, false},
		{"no context", subset, zoe, "Decrypt", nil, false},
		{"the whole context", equals, zoe, "Decrypt", context{"a": "b"}, true},
		{"more than the context", equals, zoe, "Decrypt", context{"a": "b", "c": "d"}, false},
		{"none of the context", equals, zoe, "Decrypt", nil, false},
		{"a name twice, in place of another one", pair, zoe, "Decrypt", context{"a": "b", "A": "b"}, false},
		{"another name in place of one that is there twice", twice, zoe, "Decrypt", context{"a": "b", "c": "d"}, false},
		{"an empty context", empty, zoe, "Decrypt", nil, true},
		{"more than an empty context", empty, zoe, "Decrypt", context{"a": "b"}, false},
		{"a data key", data, zoe, "GenerateDataKey", context{"a": "b"}, true},
		{"a data key in another context", data, zoe, "GenerateDataKey", context{"a": "c"}, false},
		{"an operation that has no context", equals, zoe, "DescribeKey", nil, true},
		{"a signature", equals, zoe, "Sign", nil, true},
	} {
		if got := tt.grant.Allows(tt.principals, tt.operation, tt.context); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}

// A key accepts grants of what it can do, while it is enabled.
func TestAccept(t *testing.T) {
	of := func(operations ...string) *kms.Grant { return &kms.Grant{Operations: operations} }
	within := &kms.Grant{Operations: []string{"DescribeKey"}, Subset: context{"a": "b"}}
	exactly := &kms.Grant{Operations: []string{"DescribeKey"}, Equals: context{"a": "b"}}
	for _, tt := range []struct {
		kind   string
		grant  *kms.Grant
		grants int
		want   *fault.Rule
	}{
		{"enabled", of("Decrypt", "GenerateDataKeyPair", "CreateGrant"), 0, nil},
		{"enabled", of("Decrypt", "Sign"), 0, kms.ErrGrantOperation},
		{"enabled", within, 49_999, nil},
		{"enabled", exactly, 50_000, kms.ErrTooManyGrants},
		{"managed", of("Decrypt"), 0, nil},
		{"disabled", of("Decrypt"), 0, kms.ErrDisabled},
		{"pending", of("Decrypt"), 0, kms.ErrPendingDeletion},
		{"asymmetric", of("Sign", "Verify", "DescribeKey"), 0, nil},
		{"asymmetric", of("Sign", "Encrypt"), 0, kms.ErrGrantOperation},
		{"asymmetric", of("GenerateDataKey"), 0, kms.ErrGrantOperation},
		{"asymmetric", of("VerifyMac"), 0, kms.ErrGrantOperation},
		{"asymmetric", within, 0, kms.ErrGrantContext},
		{"asymmetric", exactly, 0, kms.ErrGrantContext},
	} {
		err := kinds(t)[tt.kind].Accept(tt.grant, tt.grants)
		if tt.want == nil && err != nil || tt.want != nil && !errors.Is(err, tt.want) {
			t.Errorf("a grant of %v, behind %d others, of a key that is %s: %v", tt.grant.Operations, tt.grants, tt.kind, err)
		}
	}
}

// A request that is repeated with a name is for the same grant, one that differs in anything else
// is not.
func TestSame(t *testing.T) {
	g := kms.Grant{
		ID: "1", Name: "n", Grantee: "zoe", Retiring: "ann", Operations: []string{"Decrypt"},
		Subset: context{"a": "b"}, Equals: context{"c": "d"},
	}
	changed := func(change func(o *kms.Grant)) *kms.Grant {
		o := g
		o.ID, o.Operations, o.Subset, o.Equals = "2", slices.Clone(g.Operations), maps.Clone(g.Subset), maps.Clone(g.Equals)
		change(&o)
		return &o
	}
	if !g.Same(changed(func(*kms.Grant) {})) {
		t.Error("it is not the same as itself")
	}
	nameless := changed(func(o *kms.Grant) { o.Name = "" })
	if nameless.Same(nameless) {
		t.Error("one without a name is found again")
	}
	for what, o := range map[string]*kms.Grant{
		"name":       changed(func(o *kms.Grant) { o.Name = "m" }),
		"grantee":    changed(func(o *kms.Grant) { o.Grantee = "ann" }),
		"retiring":   changed(func(o *kms.Grant) { o.Retiring = "zoe" }),
		"operations": changed(func(o *kms.Grant) { o.Operations = []string{"Encrypt"} }),
		"subset":     changed(func(o *kms.Grant) { o.Subset = nil }),
		"equals":     changed(func(o *kms.Grant) { o.Equals["c"] = "e" }),
	} {
		if g.Same(o) {
			t.Errorf("it is the same as with another %s", what)
		}
	}
}
