package keyspace

import (
	"bytes"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

// random makes a key of a kind: numbers of any bytes, and texts of those that names
// are made of.
func random(r *rand.Rand, k *Kind) (key []byte) {
	for i, p := range k.Key {
		switch {
		case p.Name == "":
			key = append(key, p.End)
		case p.Size > 0:
			for range p.Size {
				key = append(key, byte(r.Uint32()))
			}
			if i == 0 { // a shard
				key[0], key[1] = 0, byte(r.IntN(64))
			}
		default:
			for range 1 + r.IntN(12) {
				key = append(key, "abcCLMRm-_.:09"[r.IntN(14)])
			}
			if p.Ends {
				key = append(key, p.End)
			}
		}
	}
	return key
}

// No two kinds have one tag: their keys differ in what they begin with, whatever their sizes. That
// is read off the table, not off examples.
func TestNoTagIsOfTwoKinds(t *testing.T) {
	for i := range Table {
		for j := range i {
			if a, b := &Table[i], &Table[j]; sameTag(a.Key, b.Key) {
				t.Errorf("a %s and a %s have one tag", a.Name, b.Name)
			}
		}
	}
}

// sameTag reports whether keys of both forms may begin alike.
func sameTag(a, b []Part) bool {
	at, bt := tags(a), tags(b)
	for i := range min(len(at), len(bt)) {
		if at[i] >= 0 && bt[i] >= 0 && at[i] != bt[i] {
			return false
		}
	}
	return true
}

// A key in a form of an earlier version is that of no kind besides: where both begin alike, their
// sizes differ.
func TestNoFormerKeyIsOfAnotherKind(t *testing.T) {
	for _, f := range former {
		for i := range Table {
			an, aFixed := size(f.key)
			bn, bFixed := size(Table[i].Key)
			if sameTag(f.key, Table[i].Key) && (!aFixed || !bFixed || an == bn) {
				t.Errorf("a key may be a former one of a %s, and that of a %s", Table[f.kind].Name, Table[i].Name)
			}
		}
		if len(f.key) != len(Table[f.kind].Key) {
			t.Errorf("the former key of a %s has other parts", Table[f.kind].Name)
		}
	}
}

// tags are the bytes that a key surely begins with; -1 is any.
func tags(form []Part) (all []int) {
	for i, p := range form {
		switch {
		case p.Name == "":
			all = append(all, int(p.End))
		case i == 0: // a shard
			all = append(all, int(ShardSpace), -1)
		case p.Size > 0:
			for range p.Size {
				all = append(all, -1)
			}
		default:
			return all
		}
	}
	return all
}

func size(form []Part) (n int, fixed bool) {
	for _, p := range form {
		switch {
		case p.Name == "":
			n++
		case p.Size > 0:
			n += p.Size
		default:
			return 0, false
		}
	}
	return n, true
}

// Two kinds under one tag are found, of one size or of two; two whose tags differ are not.
func TestSameTag(t *testing.T) {
	if sameTag(Table[KindReplay].Key, Table[KindSigningKey].Key) {
		t.Error("replays and signing keys have tags of their own")
	}
	if !sameTag(Table[KindReplay].Key, sharded(tag(Replays), number("other"))) {
		t.Error("two kinds under one tag, of one size, are not found")
	}
	if !sameTag(Table[KindReplay].Key, sharded(tag(Replays), id("other", 16))) {
		t.Error("two kinds under one tag, of two sizes, are not found")
	}
	if !sameTag(Table[KindQueue].Key, sharded(tag(Queues), number("other"))) {
		t.Error("two kinds under one tag, one of any size, are not found")
	}
}

// A key of an earlier version is that of its kind, with its parts, to who reads a whole store, and
// of none to who reads the kind.
func TestFormerKeys(t *testing.T) {
	old := []byte("\x00\x00R0123456789abcdef")
	k, err := Parse(old)
	if err != nil || k.ID != KindSigningKey || string(k.Bytes(PartSigningKey)) != "0123456789abcdef" || !bytes.Equal(k.Encoded(), old) {
		t.Errorf("%q is taken for a %s, %q: %v", old, k.Kind().Name, k.Bytes(PartSigningKey), err)
	}
	if _, err := ParseAs(KindSigningKey, old); !errors.Is(err, ErrKey) {
		t.Errorf("%q: %v", old, err)
	}
}

func TestParse(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for id := range Table {
		for range 100 {
			p := random(r, &Table[id])
			k, err := Parse(p)
			if err != nil || k.ID != ID(id) {
				t.Fatalf("%s %q is taken for a %s: %v", Table[id].Name, p, k.Kind().Name, err)
			}
			var again []byte
			for i, part := range k.Kind().Key {
				again = append(again, k.parts[i]...)
				if part.Ends {
					again = append(again, part.End)
				}
			}
			if !bytes.Equal(again, p) {
				t.Fatalf("the parts of %q are %q", p, k.parts)
			}
		}
	}
	for _, p := range []string{"", "\x00", "\x00\x01", "\x00\x01?", "m?", "z", "\x01\x01M", "\x00\x01M?", "\x00\x00R123456789", "\x00\x01Qaccount\x00region"} {
		if k, err := Parse([]byte(p)); !errors.Is(err, ErrUnknown) {
			t.Errorf("%q is taken for a %s", p, k.Kind().Name)
		}
	}
}

// A key of another kind, or with a byte too few or too many, is an error.
func TestParseAs(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for id := range Table {
		p := random(r, &Table[id])
		if k, err := ParseAs(ID(id), p); err != nil || k.ID != ID(id) || !bytes.Equal(k.Encoded(), p) {
			t.Errorf("%s %q: %v", Table[id].Name, p, err)
		}
		for other := range Table {
			if _, err := ParseAs(ID(other), p); other != id && !errors.Is(err, ErrKey) {
				t.Errorf("%s %q is taken for a %s", Table[id].Name, p, Table[other].Name)
			}
		}
		least, fixed := size(Table[id].Key)
		for n := range least {
			if _, err := ParseAs(ID(id), p[:n]); !errors.Is(err, ErrKey) {
				t.Errorf("%d bytes are taken for a %s", n, Table[id].Name)
			}
		}
		if _, err := ParseAs(ID(id), append(p, 0)); fixed && !errors.Is(err, ErrKey) {
			t.Errorf("a byte too many is taken for a %s", Table[id].Name)
		}
	}
}

func TestParts(t *testing.T) {
	k, err := Parse([]byte("\x00\x05D\x00\x00\x00\x00\x00\x00\x01\x02l\x00\x00\x00\x00\x00\x00\x00\x07"))
	if err != nil {
		t.Fatal(err)
	}
	shard, _ := k.Shard()
	inc, _ := k.Number(PartIncarnation)
	seq, _ := k.Number(PartSequence)
	if k.ID != KindLease || k.Module() != ModuleQueues || shard != 5 || inc != 258 || seq != 7 {
		t.Errorf("%+v: shard %d, incarnation %d, sequence %d", k, shard, inc, seq)
	}
	if _, ok := k.Text(PartName); ok {
		t.Error("a lease has a name")
	}
	if b := k.Bytes(PartIncarnation); string(b) != "\x00\x00\x00\x00\x00\x00\x01\x02" || k.Bytes(PartName) != nil || k.Bytes("") != nil {
		t.Errorf("the bytes of the incarnation are %q, and of no part %q, %q", b, k.Bytes(PartName), k.Bytes(""))
	}
	if whole := "\x00\x05D\x00\x00\x00\x00\x00\x00\x01\x02l\x00\x00\x00\x00\x00\x00\x00\x07"; string(k.Encoded()) != whole {
		t.Errorf("the key is %q", k.Encoded())
	}
	k, err = Parse([]byte("\x00\x05Q000000000000\x00us-east-1\x00orders"))
	if err != nil {
		t.Fatal(err)
	}
	account, _ := k.Text(PartAccount)
	region, _ := k.Text(PartRegion)
	name, _ := k.Text(PartName)
	if account != "000000000000" || region != "us-east-1" || name != "orders" {
		t.Errorf("%q %q %q", account, region, name)
	}
	if _, ok := k.Number(PartIncarnation); ok {
		t.Error("a queue's key has an incarnation")
	}
}

// The table is whole, and in the order of what keys begin with.
func TestTable(t *testing.T) {
	names := map[string]bool{}
	for id := range Table {
		k := &Table[id]
		if k.Name == "" || k.Module == "" || k.Value == "" || names[k.Name] || len(k.Key) > maxParts {
			t.Errorf("kind %d is incomplete or not its own: %+v", id, k)
		}
		names[k.Name] = true
	}
	if !slices.IsSortedFunc(Table[:], func(a, b Kind) int { return slices.Compare(tags(a.Key), tags(b.Key)) }) {
		t.Error("the table is not in order")
	}
}

// Each module of the table is called as its directory is, where a reader looks for it.
func TestModulesAreDirectories(t *testing.T) {
	found := map[Module]bool{"journal": true, "cluster": true} // which are no modules of the kernel
	for _, dir := range []string{"../shard", "../monitor"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			found[Module(e.Name())] = found[Module(e.Name())] || e.IsDir()
		}
	}
	for _, k := range Table {
		if !found[k.Module] {
			t.Errorf("the module of \"%s\", %s, is no directory", k.Name, k.Module)
		}
	}
}

func TestPrefix(t *testing.T) {
	for prefix, upper := range map[string]string{"a": "b", "a\xff": "b", "\x00\x01M": "\x00\x01N"} {
		if s := Prefix([]byte(prefix)); string(s.Lower) != prefix || string(s.Upper) != upper {
			t.Errorf("%q spans %q", prefix, s)
		}
	}
}

// docs/keyspace.md shows the table.
func TestDocs(t *testing.T) {
	const path = "../../docs/keyspace.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(text), "| Record |")
	var want strings.Builder
	want.WriteString(before + "| Record | Module | Key | Value |\n|---|---|---|---|\n")
	for _, k := range Table {
		var parts []string
		for _, p := range k.Key {
			parts = append(parts, p.String())
		}
		want.WriteString("| " + k.Name + " | " + string(k.Module) + " | `" + strings.Join(parts, " ") + "` | " + k.Value + " |\n")
	}
	if want.String() == string(text) {
		return
	}
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(path, []byte(want.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s is not the table; UPDATE=1 go test ./internal/keyspace -run Docs writes it anew", path)
}

// Whatever begins a record's key, a space or a tag, is in the table: what is declared and
// missing there would be written by a module, and read by nobody who looks through a store.
func TestEveryTagHasAKind(t *testing.T) {
	files := token.NewFileSet()
	declared, err := parser.ParseFile(files, "keyspace.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	table, err := parser.ParseFile(files, "table.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	ast.Inspect(table, func(n ast.Node) bool {
		if name, ok := n.(*ast.Ident); ok {
			used[name.Name] = true
		}
		return true
	})
	found := 0
	ast.Inspect(declared, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		of, _ := spec.Type.(*ast.Ident)
		if of == nil || of.Name != "byte" {
			return true
		}
		for _, name := range spec.Names {
			if found++; !used[name.Name] && name.Name != "ShardSpace" { // which numbers of shards begin with
				t.Errorf("no kind of record in the table has %s in its key", name.Name)
			}
		}
		return true
	})
	if found < 50 {
		t.Errorf("only %d tags were found", found)
	}
}
