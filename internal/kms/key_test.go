package kms_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/kms"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

// kinds are keys in each state in which they may be found.
func kinds(t *testing.T) map[string]*kms.Key {
	t.Helper()
	made := func(spec, usage string, commands ...func(k *kms.Key) error) *kms.Key {
		k, err := kms.NewKey(kms.New{Account: "123456789012", Region: "us-east-1", ID: "k", Spec: spec, Usage: usage, Material: kms.Material{ID: "1"}, Now: now})
		for _, command := range commands {
			err = errors.Join(err, command(k))
		}
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	return map[string]*kms.Key{
		"enabled":    made(kms.SymmetricDefault, kms.EncryptDecrypt),
		"rotating":   made(kms.SymmetricDefault, kms.EncryptDecrypt, func(k *kms.Key) error { return k.EnableRotation(100, now) }),
		"disabled":   made(kms.SymmetricDefault, kms.EncryptDecrypt, (*kms.Key).Disable),
		"pending":    made(kms.SymmetricDefault, kms.EncryptDecrypt, func(k *kms.Key) error { return k.ScheduleDeletion(30, now) }),
		"asymmetric": made("RSA_2048", kms.SignVerify),
		"managed":    kms.NewManaged(kms.New{Account: "123456789012", Region: "us-east-1", ID: "k", Material: kms.Material{ID: "1"}, Now: now}, "sqs"),
	}
}

// Each command on each kind of key: what it does, or what refuses it, and then it has
// done nothing.
func TestCommands(t *testing.T) {
	type outcome struct {
		rule *fault.Rule // nil: it is done
		then func(k *kms.Key) bool
	}
	done := func(then func(k *kms.Key) bool) outcome { return outcome{then: then} }
	refused := func(rule *fault.Rule) outcome { return outcome{rule: rule} }
	in := func(s kms.State) func(k *kms.Key) bool { return func(k *kms.Key) bool { return k.State == s } }
	later := now.Add(day)
	for name, c := range map[string]struct {
		command  func(k *kms.Key) error
		outcomes map[string]outcome
	}{
		"Enable": {(*kms.Key).Enable, map[string]outcome{
			"enabled": done(in(kms.Enabled)), "rotating": done(in(kms.Enabled)), "disabled": done(in(kms.Enabled)),
			"pending": refused(kms.ErrPendingDeletion), "asymmetric": done(in(kms.Enabled)), "managed": refused(kms.ErrManaged),
		}},
		"Disable": {(*kms.Key).Disable, map[string]outcome{
			"enabled": done(in(kms.Disabled)), "rotating": done(func(k *kms.Key) bool {
				return k.State == kms.Disabled && k.Rotation.Days == 100 && k.NextDue().IsZero()
			}),
			"disabled": done(in(kms.Disabled)), "pending": refused(kms.ErrPendingDeletion), "asymmetric": done(in(kms.Disabled)), "managed": refused(kms.ErrManaged),
		}},
		"ScheduleDeletion": {func(k *kms.Key) error { return k.ScheduleDeletion(7, later) }, map[string]outcome{
			"enabled": done(func(k *kms.Key) bool {
				return k.State == kms.PendingDeletion && k.Deletion.Equal(later.Add(7*day)) && k.Window == 7
			}),
			"rotating": done(in(kms.PendingDeletion)), "disabled": done(in(kms.PendingDeletion)), "pending": refused(kms.ErrPendingDeletion),
			"asymmetric": done(in(kms.PendingDeletion)), "managed": refused(kms.ErrManaged),
		}},
		"ScheduleDeletion too soon": {func(k *kms.Key) error { return k.ScheduleDeletion(6, later) }, all(refused(kms.ErrWindow))},
		"ScheduleDeletion too late": {func(k *kms.Key) error { return k.ScheduleDeletion(31, later) }, all(refused(kms.ErrWindow))},
		"CancelDeletion": {(*kms.Key).CancelDeletion, map[string]outcome{
			"enabled": refused(kms.ErrNotPending), "rotating": refused(kms.ErrNotPending), "disabled": refused(kms.ErrNotPending),
			"pending":    done(func(k *kms.Key) bool { return k.State == kms.Disabled && k.Deletion.IsZero() && k.Window == 0 }),
			"asymmetric": refused(kms.ErrNotPending), "managed": refused(kms.ErrNotPending),
		}},
		"EnableRotation": {func(k *kms.Key) error { return k.EnableRotation(0, later) }, map[string]outcome{
			"enabled":  done(func(k *kms.Key) bool { return k.Rotation == (kms.Rotation{Days: 365, Next: later.Add(365 * day)}) }),
			"rotating": done(func(k *kms.Key) bool { return k.Rotation == (kms.Rotation{Days: 100, Next: now.Add(100 * day)}) }), // it has its period
			"disabled": refused(kms.ErrDisabled), "pending": refused(kms.ErrPendingDeletion), "asymmetric": refused(kms.ErrAsymmetric), "managed": refused(kms.ErrManaged),
		}},
		"EnableRotation too often":  {func(k *kms.Key) error { return k.EnableRotation(89, later) }, all(refused(kms.ErrRotationPeriod))},
		"EnableRotation too seldom": {func(k *kms.Key) error { return k.EnableRotation(2561, later) }, all(refused(kms.ErrRotationPeriod))},
		"DisableRotation":           {(*kms.Key).DisableRotation, rotation(func(k *kms.Key) bool { return k.Rotation == (kms.Rotation{}) }, done, refused)},
		"RotateOnDemand":            {func(k *kms.Key) error { return k.RotateOnDemand(kms.Material{ID: "2"}) }, rotation(func(k *kms.Key) bool { return k.Current().ID == "2" && len(k.Materials) == 2 && k.OnDemand == 1 }, done, refused)},
		"Describe":                  {func(k *kms.Key) error { return k.Describe("d") }, changes(func(k *kms.Key) bool { return k.Description == "d" }, done, refused)},
		"PutPolicy": {func(k *kms.Key) error { return k.PutPolicy("p") }, map[string]outcome{
			"": done(func(k *kms.Key) bool { return k.Policy == "p" }), "managed": refused(kms.ErrManaged),
		}},
		"Tag":                        {func(k *kms.Key) error { return k.Tag(map[string]string{"a": "b"}) }, changes(func(k *kms.Key) bool { return k.Tags["a"] == "b" }, done, refused)},
		"Untag":                      {func(k *kms.Key) error { return k.Untag([]string{"a"}) }, changes(func(k *kms.Key) bool { return len(k.Tags) == 0 }, done, refused)},
		"Usable for what it is":      {func(k *kms.Key) error { return k.Usable("Encrypt", k.Usage) }, usable(done, refused)},
		"Usable for something else":  {func(k *kms.Key) error { return k.Usable("GenerateMac", kms.GenerateVerifyMAC) }, otherUse(refused)},
		"CanBeAliased":               {func(k *kms.Key) error { return k.CanBeAliased(0) }, changes(func(*kms.Key) bool { return true }, done, refused)},
		"CanBeAliased once too much": {func(k *kms.Key) error { return k.CanBeAliased(kms.MaxAliases) }, tooMany(kms.ErrTooManyAliases, refused)},
	} {
		for kind, k := range kinds(t) {
			want, there := c.outcomes[kind]
			if !there {
				want = c.outcomes[""]
			}
			before, changed := k.Clone(), k.Clone()
			err := c.command(changed)
			switch {
			case want.rule == nil && (err != nil || !want.then(changed)):
				t.Errorf("%s of a key that is %s: %v, %+v", name, kind, err, changed)
			case want.rule != nil && !errors.Is(err, want.rule):
				t.Errorf("%s of a key that is %s: %v, want %v", name, kind, err, want.rule)
			case want.rule != nil && !cmp.Equal(changed, before):
				t.Errorf("%s of a key that is %s was refused and has changed it: %s", name, kind, cmp.Diff(before, changed))
			case !cmp.Equal(k, before):
				t.Errorf("%s of a key that is %s has changed what it is a clone of", name, kind)
			}
		}
	}
}

// all is one outcome for every kind.
func all[O any](o O) map[string]O { return map[string]O{"": o} }

func rotation[O any](then func(k *kms.Key) bool, done func(func(k *kms.Key) bool) O, refused func(*fault.Rule) O) map[string]O {
	return map[string]O{
		"enabled": done(then), "rotating": done(then), "disabled": refused(kms.ErrDisabled), "pending": refused(kms.ErrPendingDeletion),
		"asymmetric": refused(kms.ErrAsymmetric), "managed": refused(kms.ErrManaged),
	}
}

func changes[O any](then func(k *kms.Key) bool, done func(func(k *kms.Key) bool) O, refused func(*fault.Rule) O) map[string]O {
	return map[string]O{"": done(then), "pending": refused(kms.ErrPendingDeletion), "managed": refused(kms.ErrManaged)}
}

func usable[O any](done func(func(k *kms.Key) bool) O, refused func(*fault.Rule) O) map[string]O {
	return map[string]O{"": done(func(*kms.Key) bool { return true }), "disabled": refused(kms.ErrDisabled), "pending": refused(kms.ErrPendingDeletion)}
}

func otherUse[O any](refused func(*fault.Rule) O) map[string]O {
	return map[string]O{"": refused(kms.ErrUsage), "disabled": refused(kms.ErrDisabled), "pending": refused(kms.ErrPendingDeletion)}
}

func tooMany[O any](rule *fault.Rule, refused func(*fault.Rule) O) map[string]O {
	return map[string]O{"": refused(rule), "pending": refused(kms.ErrPendingDeletion), "managed": refused(kms.ErrManaged)}
}

// A grant never covers more than it is itself.
func TestCovers(t *testing.T) {
	subset := func(pairs ...string) *kms.Grant {
		g := &kms.Grant{Operations: []string{"Decrypt"}, Subset: map[string]string{}}
		for i := 0; i < len(pairs); i += 2 {
			g.Subset[pairs[i]] = pairs[i+1]
		}
		return g
	}
	equals := func(pairs ...string) *kms.Grant {
		g := subset(pairs...)
		g.Subset, g.Equals = nil, g.Subset
		return g
	}
	free := &kms.Grant{Operations: []string{"Decrypt", "Encrypt"}}
	for _, tt := range []struct {
		have, made *kms.Grant
		want       bool
	}{
		{free, free, true},
		{free, subset("a", "b"), true},
		{free, &kms.Grant{Operations: []string{"Decrypt", "CreateGrant"}}, false},
		{subset("a", "b"), &kms.Grant{Operations: []string{"Decrypt"}}, false},
		{subset("a", "b"), subset("a", "b", "c", "d"), true},
		{subset("a", "b"), subset("a", "c"), false},
		{subset("a", "b"), subset("A", "b"), true},
		{subset("a", "b"), subset("a", "B"), false},
		{subset("a", "b"), equals("A", "b"), true},
		{equals("a", "b"), equals("A", "b"), true},
		{subset("a", "b"), equals("a", "b"), true},
		{equals("a", "b"), subset("a", "b"), false},
		{equals("a", "b"), equals("a", "b"), true},
		{equals("a", "b"), equals("a", "b", "c", "d"), false},
		{equals(), &kms.Grant{Operations: []string{"Decrypt"}}, false},
	} {
		if got := tt.have.Covers(tt.made); got != tt.want {
			t.Errorf("%+v covers %+v: %t", tt.have, tt.made, got)
		}
	}
}

// AWS rotates a key 25 times on demand; the quota is not adjustable.
func TestRotationsOnDemand(t *testing.T) {
	k := &kms.Key{Spec: kms.SymmetricDefault, State: kms.Enabled, Materials: []kms.Material{{ID: "0"}}}
	for n := range 25 {
		if err := k.RotateOnDemand(kms.Material{}); err != nil {
			t.Fatalf("after %d: %v", n, err)
		}
	}
	if err := k.RotateOnDemand(kms.Material{}); !errors.Is(err, kms.ErrTooManyRotated) || len(k.Materials) != 26 {
		t.Errorf("%v, %d materials", err, len(k.Materials))
	}
}

// A key rotates after 90 to 2,560 days, and its deletion is at most 30 days away.
func TestBounds(t *testing.T) {
	for _, days := range []int{90, 2560} {
		k := kinds(t)["enabled"]
		if err := k.EnableRotation(days, now); err != nil || !k.DueRotation(now.Add(time.Duration(days)*day)) {
			t.Errorf("a rotation after %d days: %v, %+v", days, err, k.Rotation)
		}
	}
	k := kinds(t)["enabled"]
	if err := k.ScheduleDeletion(30, now); err != nil || k.DueDeletion(now.Add(30*day-1)) || !k.DueDeletion(now.Add(30*day)) {
		t.Errorf("a deletion in 30 days: %v, at %v", err, k.Deletion)
	}
}

// A rotation is due while the key is enabled, a deletion while it is pending. Rotations that were
// missed are one.
func TestRotations(t *testing.T) {
	if k := kinds(t)["enabled"]; k.DueRotation(now) || k.DueDeletion(now) || !k.NextDue().IsZero() {
		t.Errorf("something is due at %v of a key that does not rotate", k.NextDue())
	}
	k := kinds(t)["rotating"]
	due := now.Add(100 * day)
	if k.DueRotation(due.Add(-1)) || !k.DueRotation(due) || !k.NextDue().Equal(due) {
		t.Errorf("it is due at %v", k.NextDue())
	}
	if err := k.Disable(); err != nil || k.DueRotation(due) {
		t.Errorf("a disabled key rotates: %v", err)
	}
	if err := k.Enable(); err != nil || !k.DueRotation(due) {
		t.Errorf("it was due while it was disabled: %v", err)
	}
	k.Rotate(kms.Material{ID: "2"}, now.Add(350*day))
	if m := k.Current(); len(k.Materials) != 2 || m.ID != "2" || m.How != "AUTOMATIC" || !k.NextDue().Equal(now.Add(400*day)) {
		t.Errorf("%+v, next at %v", m, k.NextDue())
	}
	k.Rotate(kms.Material{ID: "3"}, now.Add(400*day))
	if !k.NextDue().Equal(now.Add(500 * day)) {
		t.Errorf("next at %v", k.NextDue())
	}
}
