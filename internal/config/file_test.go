package config_test

import (
	"slices"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/config"
)

func TestParseFile(t *testing.T) {
	f, err := config.ParseFile(strings.NewReader("# comment\nlisten: 0.0.0.0:80\naccount: 012345678901\nretry-429: false\njitter: 0.25\n"))
	if err != nil {
		t.Fatal(err)
	}
	// The account keeps its leading zero: it is not read as a number.
	for name, want := range map[string]string{
		"listen": "0.0.0.0:80", "account": "012345678901", "retry-429": "false", "jitter": "0.25",
	} {
		if got, ok := f.Value(name); !ok || got != want {
			t.Errorf("%s = %q, %v; want %q", name, got, ok, want)
		}
	}
	if got, ok := f.Value("data"); ok {
		t.Errorf("data, which is not set, = %q", got)
	}
}

func TestParseFileRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"twice":         {"listen: a\ndata: b\nlisten: c\n", "line 3: listen is set already in line 1"},
		"nested":        {"data: x\nlisten:\n  host: a\n", "line 2: listen: want a single value"},
		"nested list":   {"data: x\nhosts:\n  - a\n  - [b]\n", "line 4: hosts: want a list of single values"},
		"empty in list": {"hosts: [a, ~]\n", "line 1: hosts: want a list of single values"},
		"no value":      {"\nlisten:\n", "line 2: listen: want a single value"},
		"an alias":      {"data: &a x\nlisten: *a\n", "line 2: listen: want a single value"},
		"not a mapping": {"- listen\n", "line 1: want settings as name: value"},
		"a scalar":      {"listen\n", "line 1: want settings as name: value"},
		"complex name":  {"? [a]\n: b\n", "line 1: want settings as name: value"},
		"no YAML":       {"listen: [\n", "settings file: yaml: line"},
		"two documents": {"listen: a\n---\nlisten: b\n", "more than one YAML document"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := config.ParseFile(strings.NewReader(tt.text))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestParseFileOfNothing(t *testing.T) {
	for _, text := range []string{"", "\n", "# only a comment\n", "---\n", "null\n"} {
		f, err := config.ParseFile(strings.NewReader(text))
		if err != nil {
			t.Errorf("%q: %v", text, err)
		} else if err := f.Check(nil); err != nil {
			t.Errorf("%q sets something: %v", text, err)
		}
	}
}

func TestCheckNamesTheFirstUnknownSetting(t *testing.T) {
	f, err := config.ParseFile(strings.NewReader("listen: a\nlissen: b\ndatta: c\n"))
	if err != nil {
		t.Fatal(err)
	}
	err = f.Check([]string{"listen"})
	if err == nil || err.Error() != `settings file, line 2: there is no setting "lissen": is "listen" meant?` {
		t.Errorf("Check: %v", err)
	}
	if err := f.Check([]string{"listen", "lissen", "datta"}); err != nil {
		t.Errorf("Check of known settings: %v", err)
	}
}

func TestListsInAFile(t *testing.T) {
	f, err := config.ParseFile(strings.NewReader("roles: [a=b=c, 'd,e']\nnone: []\nlisten: a\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := f.List("roles"); !ok || !slices.Equal(got, []string{"a=b=c", "d,e"}) {
		t.Errorf("%q, %v", got, ok)
	}
	if got, ok := f.List("none"); !ok || len(got) != 0 {
		t.Errorf("%q, %v", got, ok)
	}
	if got, ok := f.List("listen"); ok {
		t.Errorf("a single value is %q", got)
	}
	if got, ok := f.Value("roles"); ok {
		t.Errorf("a list is %q", got)
	}
	if err := f.CheckSingle("listen"); err != nil {
		t.Error(err)
	}
	if err := f.CheckSingle("none"); err == nil || err.Error() != "settings file, line 2: none: want a single value" {
		t.Errorf("CheckSingle: %v", err)
	}
}

func FuzzParseFile(f *testing.F) {
	f.Add("listen: a\njitter: 0.1\n")
	f.Add("---\n")
	f.Add("? [a]\n: b\n")
	f.Add("a: &a b\nc: *a\n")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := config.ParseFile(strings.NewReader(text))
		if (file == nil) != (err != nil) {
			t.Fatalf("file %v and error %v", file, err)
		}
	})
}
