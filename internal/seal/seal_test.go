package seal

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestSealer(t *testing.T) {
	keys, _, err := NewKeys(NewRoot())
	if err != nil {
		t.Fatal(err)
	}
	place := Context("secret", "AKIA1")
	for _, size := range []int{0, 1, 1024, 1 << 20} {
		plaintext := bytes.Repeat([]byte{7}, size)
		sealed, err := keys.Sealer("identity").Seal(plaintext, place)
		if err != nil || len(sealed) != size+Overhead || sealed[0] != Form {
			t.Fatalf("%d bytes were sealed as %d: %v", size, len(sealed), err)
		}
		opened, err := keys.Sealer("identity").Open(sealed, place)
		if err != nil || !bytes.Equal(opened, plaintext) {
			t.Fatalf("%d bytes were opened as %d: %v", size, len(opened), err)
		}
	}
	sealed, err := keys.Sealer("identity").Seal([]byte("secret"), place)
	if err != nil {
		t.Fatal(err)
	}
	again, err := keys.Sealer("identity").Seal([]byte("secret"), place)
	if err != nil || bytes.Equal(sealed, again) {
		t.Errorf("the same was sealed twice alike: %v", err)
	}
	if _, err := keys.Sealer("kms").Open(sealed, place); !errors.Is(err, ErrSealed) {
		t.Errorf("another purpose opened it: %v", err)
	}
	if _, err := keys.Sealer("identity").Open(sealed, Context("secret", "AKIA2")); !errors.Is(err, ErrSealed) {
		t.Errorf("it was opened at another place: %v", err)
	}
	for i := range sealed {
		for _, bit := range []byte{1, 0x80} {
			changed := bytes.Clone(sealed)
			changed[i] ^= bit
			if _, err := keys.Sealer("identity").Open(changed, place); !errors.Is(err, ErrSealed) {
				t.Errorf("with another byte %d it was opened: %v", i, err)
			}
		}
		if _, err := keys.Sealer("identity").Open(sealed[:i], place); !errors.Is(err, ErrSealed) {
			t.Errorf("its first %d bytes were opened: %v", i, err)
		}
	}
}

// Two lists of parts are two places.
func TestContext(t *testing.T) {
	seen := map[string][]string{}
	for _, parts := range [][]string{{}, {""}, {"", ""}, {"a"}, {"a", ""}, {"", "a"}, {"a", "b"}, {"ab"}, {"a\x01b"}, {"\x01a"}} {
		c := string(Context(parts...))
		if before, ok := seen[c]; ok {
			t.Errorf("%q and %q are one place", before, parts)
		}
		seen[c] = parts
	}
}

func TestRootFile(t *testing.T) {
	root := NewRoot()
	text := string(root.Encode())
	again, err := ParseRoot([]byte(text))
	if err != nil || again.ID() != root.ID() || again.key != root.key {
		t.Fatalf("%v: %v", again, err)
	}
	if _, err := ParseRoot([]byte("# a remark\r\n\r\n  " + strings.ReplaceAll(text, "\n", "\r\n"))); err != nil {
		t.Errorf("with other line ends: %v", err)
	}
	line := text[strings.Index(text, rootForm):]
	words := strings.Fields(line)
	for what, bad := range map[string]string{
		"nothing": "", "a word": "x", "a later form": strings.Replace(text, rootForm, "godwit-root-key-2", 1),
		"two keys": text + line, "no id": words[0] + " " + words[2], "a short key": words[0] + " " + words[1] + " aGVsbG8=",
		"another id":     words[0] + " 0123456789abcdef " + words[2],
		"a changed key":  words[0] + " " + words[1] + " " + NewRootKey(t),
		"no base64":      words[0] + " " + words[1] + " " + words[2][1:] + "*",
		"loose encoding": words[0] + " " + words[1] + " " + strings.TrimRight(words[2], "="),
	} {
		_, err := ParseRoot([]byte(bad))
		if !errors.Is(err, ErrRootFile) {
			t.Errorf("%s: %v", what, err)
		} else if strings.Contains(err.Error(), words[2]) {
			t.Errorf("%s: the error holds the key", what)
		}
	}
}

// NewRootKey is the third word of another root key's file.
func NewRootKey(t *testing.T) string {
	t.Helper()
	words := strings.Fields(string(NewRoot().Encode()))
	return words[len(words)-1]
}

// A store's keys survive another root key, and are opened with that only.
func TestRootRotation(t *testing.T) {
	first, second := NewRoot(), NewRoot()
	keys, record, err := NewKeys(first)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := keys.Sealer("x").Seal([]byte("secret"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenKeys(second, record); !errors.Is(err, ErrWrongRoot) ||
		!strings.Contains(err.Error(), first.ID()) || !strings.Contains(err.Error(), second.ID()) {
		t.Errorf("the wrong root key: %v", err)
	}
	record2, err := keys.Rewrap(second)
	if err != nil {
		t.Fatal(err)
	}
	for root, of := range map[*Root][]byte{first: record, second: record2} {
		if id, err := RootOf(of); err != nil || id != root.ID() {
			t.Errorf("the record is of %s, not of %s: %v", id, root.ID(), err)
		}
		opened, err := OpenKeys(root, of)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := opened.Sealer("x").Open(sealed, nil); err != nil || string(got) != "secret" {
			t.Errorf("%q: %v", got, err)
		}
	}
	if _, err := OpenKeys(first, record2); !errors.Is(err, ErrWrongRoot) {
		t.Errorf("the old root key: %v", err)
	}
	forged := bytes.Replace(record, []byte(first.ID()), []byte(second.ID()), 1)
	for what, bad := range map[string][]byte{"nothing": nil, "no JSON": []byte("{"), "no keys": []byte(`{"version":1}`), "a forged id": forged} {
		if _, err := OpenKeys(second, bad); !errors.Is(err, ErrRecord) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// No way of printing shows a key.
func TestNothingPrintsKeys(t *testing.T) {
	root := &Root{id: "0123456789abcdef"}
	copy(root.key[:], strings.Repeat("K", KeySize))
	keys, _, err := NewKeys(root)
	if err != nil {
		t.Fatal(err)
	}
	keys.keys[0].key = []byte(strings.Repeat("K", KeySize))
	data, err := WithKey(keys.keys[0].key)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []any{root, keys, keys.Sealer("x"), data} {
		var logged bytes.Buffer
		slog.New(slog.NewTextHandler(&logged, nil)).Info("x", "v", v)
		for _, text := range []string{fmt.Sprintf("%v", v), fmt.Sprintf("%+v", v), fmt.Sprintf("%#v", v), fmt.Sprintf("%s", v), logged.String()} {
			if strings.Contains(text, "KKKK") || strings.Contains(text, "75 75") || strings.Contains(text, "0x4b, 0x4b") {
				t.Errorf("%T prints as %s", v, text)
			}
		}
	}
}

func TestWithKey(t *testing.T) {
	if _, err := WithKey(make([]byte, KeySize-1)); err == nil {
		t.Error("a short key is taken")
	}
}

func BenchmarkSeal(b *testing.B) {
	s, err := WithKey(make([]byte, KeySize))
	if err != nil {
		b.Fatal(err)
	}
	plaintext := make([]byte, 1024)
	b.SetBytes(int64(len(plaintext)))
	for b.Loop() {
		if _, err := s.Seal(plaintext, nil); err != nil {
			b.Fatal(err)
		}
	}
}
