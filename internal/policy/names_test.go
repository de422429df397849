package policy

import (
	"strings"
	"testing"
)

func TestMapPrincipals(t *testing.T) {
	for name, c := range map[string]struct{ doc, want string }{
		"a name":        {`{"Statement":[{"Principal":{"AWS":"a"}}]}`, `{"Statement":[{"Principal":{"AWS":"<a>"}}]}`},
		"names":         {`{"Statement":[{"Principal":{"AWS":["a", "b"]}}]}`, `{"Statement":[{"Principal":{"AWS":["<a>", "<b>"]}}]}`},
		"white space":   {"{ \"Statement\" :\n{ \"NotPrincipal\": {\t\"AWS\" : \"a\" } } }", "{ \"Statement\" :\n{ \"NotPrincipal\": {\t\"AWS\" : \"<a>\" } } }"},
		"escapes":       {`{"Statement":{"Principal":{"AWS":"\u0061"}},"Id":"\u0061"}`, `{"Statement":{"Principal":{"AWS":"<a>"}},"Id":"\u0061"}`},
		"conditions":    {`{"Statement":{"Principal":{"AWS":"a"},"Condition":{"StringEquals":{"AWS":"a"}}}}`, `{"Statement":{"Principal":{"AWS":"<a>"},"Condition":{"StringEquals":{"AWS":"a"}}}}`},
		"other kinds":   {`{"Statement":{"Principal":{"Service":"a","Federated":"a"}}}`, ""},
		"everybody":     {`{"Statement":{"Principal":"*"}}`, ""},
		"nothing":       {``, ""},
		"no JSON":       {`{"Statement":{"Principal":{"AWS":"a"`, ""},
		"other objects": {`{"Principal":{"AWS":"a"},"Statement":[{"Sid":{"Principal":{"AWS":"a"}}}]}`, ""},
	} {
		if c.want == "" {
			c.want = c.doc
		}
		got := MapPrincipals(c.doc, func(name string) string { return "<" + name + ">" })
		if got = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(got); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func FuzzMapPrincipals(f *testing.F) {
	f.Add(`{"Statement":[{"Principal":{"AWS":["a","b"]},"Effect":"Allow"}],"Id":"x"}`)
	f.Add(`{"Statement":{"NotPrincipal" : {"AWS":"a"}}}`)
	f.Fuzz(func(t *testing.T, doc string) {
		var names []string
		MapPrincipals(doc, func(name string) string {
			names = append(names, name)
			return name
		})
		bound := MapPrincipals(doc, func(name string) string { return name + "x" })
		var i int
		back := MapPrincipals(bound, func(name string) string {
			if i >= len(names) || name != names[i]+"x" {
				t.Fatalf("%q became %q", doc, bound)
			}
			i++
			return names[i-1]
		})
		if i != len(names) {
			t.Fatalf("%q became %q: %d of %d names", doc, bound, i, len(names))
		}
		if len(names) == 0 && (bound != doc || back != doc) {
			t.Fatalf("%q became %q", doc, bound)
		}
	})
}
