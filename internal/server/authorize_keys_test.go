package server

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/api"
	kmsapi "godwit.dev/godwit/internal/api/kms"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/kms"
	"godwit.dev/godwit/internal/policy"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/keys"
	"godwit.dev/godwit/internal/store/memory"
)

// keyWorld is a module of keys whose uses are decided by a case's policies.
type keyWorld struct {
	world
	module *keys.Module
	asked  []authorize.Need
}

func newKeyWorld(t *testing.T) *keyWorld {
	t.Helper()
	j := journal.Open(journal.Options{Store: memory.New()})
	t.Cleanup(j.Close)
	now := time.Unix(1772366400, 0)
	sealing, err := keys.OpenSealing(j, now, nil, func(string) (*seal.Root, error) { return seal.NewRoot(), nil })
	if err != nil {
		t.Fatal(err)
	}
	k := kernel.New(kernel.Options{Journal: j, Clock: clock.NewVirtual(now), Logger: slog.New(slog.DiscardHandler)})
	w := &keyWorld{module: keys.New(k, sealing)}
	if err := k.Load(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Close() })
	a := &authorize.Authorizer{Identities: &w.world, Resources: &w.world}
	w.module.Decide(func(own *policy.Policy, granted bool, need *authorize.Need, known *authorize.Context) error {
		w.asked = append(w.asked, *need)
		return useOfKey(a, own, granted, need, known)
	})
	return w
}

// kindOf is the spec and usage of a key that an operation is for.
func kindOf(operation string) (spec, usage string) {
	switch operation {
	case "Sign", "Verify", "GetPublicKey":
		return "ECC_NIST_P256", kms.SignVerify
	case "GenerateMac", "VerifyMac":
		return "HMAC_256", kms.GenerateVerifyMAC
	default:
		return kms.SymmetricDefault, kms.EncryptDecrypt
	}
}

// input is what an operation can be asked with for a key.
func (w *keyWorld) input(t *testing.T, op *api.Operation, k *kms.Key, n int) any {
	t.Helper()
	name, text := k.ARN().String(), func(s string) *string { return &s }
	values := map[string]any{
		"KeyId": name, "DestinationKeyId": name, "TargetKeyId": name, "Plaintext": []byte("x"), "Message": []byte("x"), "Signature": []byte("x"), "Mac": []byte("x"),
		"Description": text("d"), "Tags": []kmsapi.Tag{{TagKey: text("a"), TagValue: text("b")}}, "TagKeys": []string{"a"}, "GranteePrincipal": "arn:aws:iam::" + owner + ":user/anna",
		"Operations": []string{"Encrypt"}, "GrantId": text("none"), "KeyPairSpec": "ECC_NIST_P256", "KeySpec": text("AES_256"), "AliasName": fmt.Sprintf("alias/a%d", n),
		"SigningAlgorithm": "ECDSA_SHA_256", "MacAlgorithm": "HMAC_SHA_256", "Policy": text(kms.DefaultPolicy(owner)),
	}
	if k.Symmetric() {
		blob, err := w.module.Encrypt(k, []byte("x"), nil)
		if err != nil {
			t.Fatal(err)
		}
		values["CiphertextBlob"] = blob
	}
	in := op.New()
	v := reflect.ValueOf(in).Elem()
	for i := range v.NumField() {
		value, ok := values[v.Type().Field(i).Name]
		if !ok {
			continue
		}
		switch f, of := v.Field(i), reflect.ValueOf(value); {
		case of.Type() == f.Type():
			f.Set(of)
		case f.Kind() == reflect.Pointer && of.Type() == f.Type().Elem():
			f.Set(reflect.New(of.Type()))
			f.Elem().Set(of)
		case of.Kind() == reflect.Pointer && of.Type().Elem() == f.Type():
			f.Set(of.Elem())
		}
	}
	return in
}

// TestMatrixOfKeys: every operation that finds a key itself asks for the actions that it
// says, on that key, and does nothing for whom they are not allowed.
func TestMatrixOfKeys(t *testing.T) {
	w := newKeyWorld(t)
	n := 0
	for _, op := range kmsapi.New(w.module, api.Unbound{}).Operations() {
		in := op.New()
		needs, err := op.Access(t.Context(), &api.Call{Service: "kms", Operation: op.Name, Region: "us-east-1", Account: owner, Caller: authorize.RootOf(owner)}, in)
		if err != nil {
			t.Fatal(err)
		}
		var actions []string
		for i := range needs {
			if needs[i].Inside {
				actions = append(actions, needs[i].Action)
			}
		}
		if len(actions) > 0 {
			t.Run(op.Name, func(t *testing.T) { w.testOperation(t, &op, actions, &n) })
		}
	}
	if n < 9*30 {
		t.Errorf("only %d cases", n)
	}
}

func (w *keyWorld) testOperation(t *testing.T, op *api.Operation, actions []string, n *int) {
	user := &caller.Caller{Kind: caller.User, Account: owner, ARN: "arn:aws:iam::" + owner + ":user/anna", ID: "AIDAANNAANNAANNAANNA2", Name: "anna"}
	zoe := &caller.Caller{Kind: caller.User, Account: stranger, ARN: "arn:aws:iam::" + stranger + ":user/zoe", ID: "AIDAZOEZOEZOEZOEZOEZ2", Name: "zoe"}
	names := func(effect, who string) string {
		return `{"Version":"2012-10-17","Statement":{"Effect":"` + effect + `","Principal":{"AWS":"` + who + `"},"Action":"kms:*","Resource":"*"}}`
	}
	all, none := []*policy.Policy{identityPolicy(t, allowAll)}, identityPolicy(t, silent)
	denying := []*policy.Policy{all[0], identityPolicy(t, `{"Statement":{"Effect":"Deny","Action":"`+actions[0]+`","Resource":"*"}}`)}
	for _, tt := range []struct {
		name    string
		who     *caller.Caller
		w       world
		key     string // its policy
		allowed bool
	}{
		{"the account's root", authorize.RootOf(owner), world{}, names("Allow", owner), true},
		{"the account's root, whom the key does not name", authorize.RootOf(owner), world{}, names("Allow", zoe.ARN), false},
		{"no permission", user, world{}, names("Allow", owner), false},
		{"allowed by identity", user, world{identity: all}, names("Allow", owner), true},
		{"allowed by identity alone", user, world{identity: all}, names("Allow", zoe.ARN), false},
		{"allowed by the key", user, world{}, names("Allow", user.ARN), true},
		{"explicit deny", user, world{identity: denying}, names("Allow", user.ARN), false},
		{"denied by the key", user, world{identity: all}, names("Deny", owner), false},
		{"boundary", user, world{identity: all, boundary: none}, names("Allow", owner), false},
		{"session", user, world{identity: all, session: []*policy.Policy{none}}, names("Allow", owner), false},
		{"another account", zoe, world{identity: all}, names("Allow", owner), false},
		{"another account, without a permission of its own", zoe, world{}, names("Allow", stranger), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			*n++
			spec, usage := kindOf(op.Name)
			k, err := w.module.Create(kms.New{Account: owner, Region: "us-east-1", Spec: spec, Usage: usage})
			if err != nil {
				t.Fatal(err)
			}
			in := w.input(t, op, k, *n)
			if op.Name == "UpdateAlias" || op.Name == "DeleteAlias" {
				if err := w.module.CreateAlias(owner, "us-east-1", fmt.Sprintf("alias/a%d", *n), k.ID); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := w.module.Change(k.ID, func(k *kms.Key, _ time.Time) error { return k.PutPolicy(tt.key) }); err != nil {
				t.Fatal(err)
			}
			before := w.shown(k)
			w.world, w.asked = tt.w, nil
			call := &api.Call{
				Service: "kms", Operation: op.Name, Region: "us-east-1", Account: tt.who.Account, AccessKey: "AKIAX", Caller: tt.who, Authorized: true,
				Host: "https://localhost", RemoteAddr: "203.0.113.7:4711", Time: time.Unix(1772366400, 0),
			}
			_, err = op.Invoke(context.Background(), call, in)
			if tt.allowed && fault.KindOf(err) == fault.KMSAccessDenied {
				t.Errorf("it is refused: %v", err)
			}
			if !tt.allowed && (err == nil || w.shown(k) != before) {
				t.Errorf("it is not refused: %v, %s", err, w.shown(k))
			}
			if tt.who.Account != owner {
				return // what belongs to others only may not even be asked for
			}
			for _, action := range actions {
				if !slices.ContainsFunc(w.asked, func(n authorize.Need) bool { return n.Action == action && n.Resource == k.ARN().String() && n.Must }) && tt.allowed {
					t.Errorf("%s was not asked for: %v", action, w.asked)
				}
			}
			for _, need := range w.asked {
				if !slices.Contains(actions, need.Action) {
					t.Errorf("%s was asked for, which it does not say", need.Action)
				}
			}
		})
	}
}

// shown is all that can be changed of a key.
func (w *keyWorld) shown(k *kms.Key) string {
	all, _ := w.module.List(owner, "us-east-1", "", 100_000)
	var b strings.Builder
	for _, of := range all {
		if of.ID == k.ID {
			fmt.Fprintf(&b, "%s %s %v %v", of.State, of.Description, of.Tags, of.Materials)
		}
	}
	grants, _ := w.module.Grants("", 100_000, func(of *kms.Key, _ *kms.Grant) bool { return of.ID == k.ID })
	aliases, _ := w.module.Aliases(owner, "us-east-1", k.ID, "", 100)
	fmt.Fprint(&b, len(grants), len(aliases))
	return b.String()
}
