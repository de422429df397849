package layer

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/sorted"
)

var begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// disk is what the mutations of a state leave behind.
type disk map[string]string

func (d disk) apply(t *testing.T, b *mutation.Batch) {
	t.Helper()
	err := b.Each(func(op mutation.Op, key, value []byte) error {
		switch op {
		case mutation.Set:
			d[string(key)] = string(value)
		case mutation.Delete:
			delete(d, string(key))
		default:
			return fmt.Errorf("unexpected write %d", op)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b.Reset()
}

func (d disk) load(t *testing.T, shard uint16) *State {
	t.Helper()
	s := New(shard)
	for key, value := range d {
		if err := CheckRecord([]byte(key), []byte(value)); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(key, string(Prefix(shard))) {
			if err := s.Load([]byte(key), []byte(value)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s
}

var internals = cmp.Options{
	cmp.AllowUnexported(State{}, Layer{}, Version{}, sorted.List[*Layer]{}, sorted.List[*Version]{}, place{}),
	cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Compare" }, cmp.Ignore()),
	cmpopts.EquateEmpty(),
}

// A random history leaves, after every command, records that give the same state again, and a command that
// is refused changes nothing. No number is given twice.
func TestHistory(t *testing.T) {
	done := map[int]int{}
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 0))
		s, d, now := New(3), disk{}, begin
		var b mutation.Batch
		highest := map[arn.ARN]uint64{}
		for step := range 100 {
			name := arn.Layer("us-east-1", []string{"000000000000", "111122223333"}[r.IntN(2)], []string{"a", "b"}[r.IntN(2)])
			number, what := max(highest[name], 3)-r.Uint64N(3), r.IntN(6)
			now = now.Add(time.Second)
			var err error
			switch what {
			case 0, 1:
				var last uint64
				if record, ok := d[string(s.NumberKey(name))]; ok {
					if last, err = DecodeNumber([]byte(record)); err != nil {
						t.Fatal(err)
					}
				}
				v := s.Publish(now, Publish{
					Layer: name, Last: last, Description: "d", Runtimes: []string{"python3.12"}, Code: function.Code{Upload: uint64(step + 1), Size: 5, SHA256: [32]byte{1}},
				}, &b)
				if v.Number != highest[name]+1 {
					t.Fatalf("%s has version %d after %d", name, v.Number, highest[name])
				}
				highest[name] = v.Number
			case 2:
				s.Delete(name, number, &b)
			case 3:
				v, there := s.Find(name, number)
				if upload := s.Drop(name, number, &b); (upload != 0) != (there && v.Deleted) {
					t.Fatalf("dropped %d of %+v", upload, v)
				}
			case 4:
				err = s.Permit(Permit{Layer: name, Number: number, Permission: function.NewPermission([]string{"s", "t"}[r.IntN(2)], "*", "a", "r", function.Conditions{}), Revision: fmt.Sprint(step)}, &b)
			case 5:
				err = s.Forbid(Forbid{Layer: name, Number: number, Sid: []string{"s", "t"}[r.IntN(2)], RevisionID: []string{"", "0"}[r.IntN(2)], Revision: fmt.Sprint(step)}, &b)
			}
			if err != nil && b.Len() > 0 {
				t.Fatalf("refused, and changed: %v", err)
			}
			if err == nil {
				done[what]++
			}
			d.apply(t, &b)
			if diff := cmp.Diff(s, d.load(t, 3), internals); diff != "" {
				t.Fatalf("seed %d, step %d, command %d: %s", seed, step, what, diff)
			}
		}
	}
	if len(done) != 6 {
		t.Errorf("not all commands were carried out: %v", done)
	}
}

// A number is not given twice where its record is gone, but not the version.
func TestNumberWithoutRecord(t *testing.T) {
	s, name := New(1), arn.Layer("us-east-1", "000000000000", "l")
	var b mutation.Batch
	s.Publish(begin, Publish{Layer: name}, &b)
	if v := s.Publish(begin, Publish{Layer: name}, &b); v.Number != 2 {
		t.Errorf("version %d", v.Number)
	}
}

func TestPolicyTooLong(t *testing.T) {
	s, name := New(1), arn.Layer("us-east-1", "000000000000", "l")
	var b mutation.Batch
	s.Publish(begin, Publish{Layer: name}, &b)
	permit := func(sid string) error {
		return s.Permit(Permit{Layer: name, Number: 1, Permission: function.NewPermission(sid, "*", "a", strings.Repeat("r", 11<<10), function.Conditions{})}, &b)
	}
	if err := permit("a"); err != nil {
		t.Fatal(err)
	}
	if err := permit("b"); fault.KindOf(err) != fault.PolicyLengthExceeded {
		t.Error(err)
	}
}
