package pattern

import (
	"strings"
	"testing"
)

func TestMatch(t *testing.T) {
	const (
		apache = `127.0.0.1 Prod frank [10/Oct/2000:13:25:15 -0700] "GET /index.html HTTP/1.0" 404 1534`
		trail  = `{"eventType":"UpdateTrail","sourceIPAddress":"123.123.9.1","arrayKey":["value","another value"],` +
			`"objectList":[{"name":"a","id":1},{"name":"b","id":2}],"n":4.5,"s":"12","null":null,"yes":true,"no":false,` +
			`"cluster.name":"c","detail-type":"d","deep":{"er":{"est":"x"}},"user":{"id":1,"email":"John.Stiles@example.com"}}`
	)
	for _, c := range []struct {
		pattern, message string
		want             bool
	}{
		// Terms.
		{"", "anything", true},
		{`" "`, "anything", true},
		{"ERROR", "[ERROR 400] BAD", true},
		{"ERROR", "an error", false},
		{"ERROR BAD", "BAD [ERROR]", true},
		{"ERROR BAD", "ERROR only", false},
		{"?ERROR ?WARN", "WARN", true},
		{"?ERROR ?WARN", "INFO", false},
		{"?ERROR ?WARN INFO", "INFO", true}, // ignored beside others
		{"?ERROR -WARN", "INFO", true},
		{"-ERROR", "INFO", true},
		{"-ERROR", "ERROR", false},
		{"ERROR -EXITING", "ERROR EXITING", false},
		{`"INTERNAL SERVER"`, "500 INTERNAL SERVER ERROR", true},
		{`"INTERNAL SERVER"`, "SERVER INTERNAL", false},
		{`"a \"b\" \\ c"`, `x a "b" \ c`, true},
		{`-"two words"`, "two words", false},
		{`"[ERROR]"`, "[ERROR]", true},
		{"%AUTHORIZED%", "UNAUTHORIZED 401", true},
		{`%4\d\d% -%401%`, "status 404", true},
		{`%4\d\d% -%401%`, "status 401", false},
		{"ÄRGER", "großer ÄRGER", true},
		{"%^starting|^shutting down%", "shutting down now", true},
		{"%^starting|^shutting down%", "not shutting down", false},
		{"%^ba{,2}d%", "baad", true},
		{"%^ba{,2}d%", "baaad", false},
		{"%^[{,]2%", "{2", true},
		{"%^[{,]2%", "02", false},
		{`%^\[{,2}x%`, "[[x", true},
		{"%^[a-c]{,2}d%", "abd", true},
		// JSON.
		{`{ $.eventType = "UpdateTrail" }`, trail, true},
		{`{$.eventType="UpdateTrail"}`, trail, true},
		{`{ $.eventType = UpdateTrail }`, trail, true},
		{`{ $.eventType = "Update*" }`, trail, true},
		{`{ $.eventType = "*Trail" }`, trail, true},
		{`{ $.eventType = "*date*rail" }`, trail, true},
		{`{ $.eventType = "*date*x" }`, trail, false},
		{`{ $.eventType != "x" }`, trail, true},
		{`{ $.absent != "x" }`, trail, false},
		{`{ $.sourceIPAddress != 123.123.* }`, trail, false},
		{`{ $.sourceIPAddress = %123\.123% }`, trail, true},
		{`{ $.arrayKey[0] = "value" }`, trail, true},
		{`{ $.arrayKey[1] = "value" }`, trail, false},
		{`{ $.arrayKey[2] = "value" }`, trail, false},
		{`{ $.arrayKey[9] = "value" }`, trail, false},
		{`{ $.arrayKey[*] = "another value" }`, trail, true},
		{`{ $.objectList[*].name = "b" }`, trail, true},
		{`{ $.objectList[1].id = 2 }`, trail, true},
		{`{ $.arrayKey[*] = %val.{2}% }`, trail, true},
		{`{ $.* = %123\.123\.9\.[0-9]{1,2}% }`, trail, true},
		{`{ $.* = "another value" }`, trail, false},
		{`{ $.deep.*.est = "x" }`, trail, true},
		{`{ $.objectList[0].* = "a" }`, trail, true},
		{`{ $.arrayKey.* = "value" }`, trail, false}, // no object
		{`{ $.deep[*] = "*" }`, trail, false},        // no array
		{`{ $.* IS NULL && $.objectList[*].id = 1 || $.* = 0 }`, trail, true},
		{`{ $.n = 4.5 }`, trail, true},
		{`{ $.n = 45e-1 }`, trail, true},
		{`{ $.n > 4 && $.n <= 4.5 }`, trail, true},
		{`{ $.n < 4 || $.n >= 5 }`, trail, false},
		{`{ $.n >= 4.5 && $.n < 4.6 }`, trail, true},
		{`{ $.n < 4.5 }`, trail, false},
		{`{ $.n > 4.5 }`, trail, false},
		{`{ $.n != 4.5 }`, trail, false},
		{`{ $.n > -1e3 && $.n < +1E3 }`, trail, true},
		{`{ $.yes > 0 }`, trail, false},
		{`{ $.text = 0x10 }`, `{"text":"0x10"}`, true}, // which is no number
		{`{ $.text = 0x10 }`, `{"text":16}`, false},
		{`{ $.text = Inf }`, `{"text":"Inf"}`, true},
		{`{ $.n = "4.5" }`, trail, true}, // the text of a number, too
		{`{ $.n = "4.50" }`, trail, false},
		{`{ $.n = 4.50 }`, trail, true},
		{`{ $.n != "4.5" }`, trail, false},
		{`{ $.n = 4* }`, trail, true},
		{`{ $.n = "*" }`, trail, true}, // it is there
		{`{ $.yes = "*" }`, trail, true},
		{`{ $.no = "false" }`, trail, true},
		{`{ $.null = "*" }`, trail, false},
		{`{ $.s > 10 }`, trail, false}, // a string is no number
		{`{ $.s = 12 }`, trail, true},
		{`{ $.null IS NULL }`, trail, true},
		{`{ $.n IS NULL }`, trail, false},
		{`{ $.yes IS TRUE && $.no is false }`, trail, true},
		{`{ $.no IS TRUE }`, trail, false},
		{`{ $.absent NOT EXISTS }`, trail, true},
		{`{ $.null NOT EXISTS }`, trail, false},
		{`{ $.['cluster.name'] = "c" && $['cluster.name'] = c }`, trail, true},
		{`{ $.detail-type = "d" }`, trail, true},
		{`{ $.deep.er.est = x }`, trail, true},
		{`{ $.deep.er = "*" }`, trail, false}, // no scalar
		{`{ $.deep = "*" }`, trail, false},
		{`{ ($.user.id = 1) && ($.user.email = "John.*") }`, trail, true},
		{`{ $.user.id = 2 || ($.user.id = 1 && ($.n = 4.5)) }`, trail, true},
		{`{ $.user.id = 1 || $.user.id = 2 && $.n = 0 }`, trail, true}, // && binds closer
		{`{ ($.user.id = 1 || $.user.id = 2) && $.n = 0 }`, trail, false},
		{`{ $.a = 1 }`, `{"a":1}`, true},
		{`{ $.a = 1 }`, ` {"a":1} trailing`, false},
		{`{ $.a = 1 }`, `no JSON`, false},
		{`{ $[0].a = 1 }`, `[{"a":1}]`, true},
		// Fields.
		{"[ip, user, username, timestamp, request, status_code, bytes]", apache, true},
		{"[ip, user, username, timestamp, request, status_code = 404, bytes]", apache, true},
		{"[ip, user, username, timestamp, request =*.html*, status_code = 4*, bytes > 1000]", apache, true},
		{"[ip, user, username, timestamp, request, status_code = 404 || status_code = 410, bytes < 1000]", apache, false},
		{`[ip=%127\.0\.0\.[1-9]%, ...]`, apache, true},
		{`[..., request="GET*", status, bytes]`, apache, true},
		{"[ip, ..., status_code=404, bytes]", apache, true},
		{"[ip, ..., status_code=404]", apache, false},
		{"[a, b, c, d, e, f, g, h]", apache, false},
		{"[a, ..., b, c]", "x y", false},
		{"[a, ..., b, c]", "x", false},
		{"[a, ..., b, c]", "x y z", true},
		{"[ip, user, rest=frank*]", apache, true}, // the rest of the line
		{"[w1=ERROR, w2]", "ERROR 09/25/2014 12:00:02 Failed", true},
		{"[n > 9]", "ten", false},
		{"[n <= 9]", "ten", false},
		{"[n != 9]", "ten", true},
		{"[n = 9]", "9.0", true},
		{"[n = \"9\"]", "9.0", false},
		{"[w1=ERROR]", "ERROR and more", false},
		{"[w1=ERROR]", "ERROR", true},
		{"[w1=ERROR, w2]", "ERROR", false},
		{"[w1=ERROR || w1=WARN, ..., n>9]", "WARN a b 10", true},
		{"[w1=ERROR || w1=WARN, ..., n>9]", "WARN a b 9", false},
		{"[w1!=ERROR && w1!=WARN, w2]", "INFO x", true},
		{"[w1!=ERROR && w1!=WARN, w2]", "WARN x", false},
		{"[(w1=A || w1=B) && w1!=B, w2]", "B x", false},
		{"[..., request=GET*, status_code=4*,]", apache, true},
		{"[..., request=GET*, status_code=4*]", apache, false},
		{"[ip, , username=frank, ...]", apache, true},
		{"[a,]", "one", false},
		{"[...]", "", true},
		{"[]", "x", true},
		{"[a, b]", `"one field" [another one]`, true},
		{"[a=one*, b]", `"one field" [another one]`, true},
		{"[a, b]", `"unclosed`, false},
	} {
		p, err := Parse(c.pattern)
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		if got := p.Match(NewEvent(c.message)); got != c.want {
			t.Errorf("%s on %s: %v, want %v", c.pattern, c.message, got, c.want)
		}
	}
}

func TestRefusals(t *testing.T) {
	const (
		early    = "Invalid filter pattern: it ends too early"
		tooLarge = "Invalid filter pattern: the regular expression repeats too much"
	)
	for pattern, want := range map[string]string{
		"Status: timeout": "Invalid character(s) in term ':'",
		"foo-bar":         "Invalid character(s) in term '-'",
		"(a)":             "Invalid character(s) in term '('",
		"?":               early,
		`"open`:           early,
		"%open":           early,
		"%a(b)%":          "Invalid character(s) in term '('",
		"%a!%":            "Invalid character(s) in term '!'",
		`%a\ b%`:          "Invalid character(s) in term ' '",
		"%ä%":             "Invalid character(s) in term 'ä'",
		`%\p{L}%`:         "Invalid character(s) in term 'p'",
		"%[z-a]%":         "Invalid filter pattern: the regular expression is not valid",
		"%x{200}y{200}%":  tooLarge,
		"%" + strings.Repeat("x{0,1000}", 100) + "%": tooLarge,
		"{ $.a = %x{200}% && $.b = %x{200}% }":       tooLarge,
		"%" + strings.Repeat("x*", 400) + "%":        tooLarge,
		"{ }":                                        "Invalid character(s) in term '}'",
		"{ $.a }":                                    "Invalid character(s) in term '}'",
		"{ $.a = }":                                  "Invalid character(s) in term '}'",
		"{ $.a == 1 }":                               "Invalid character(s) in term '='",
		"{ $.a = 1":                                  early,
		"{ $.a = 1 } x":                              "Invalid character(s) in term 'x'",
		"{ !($.a = 1) }":                             "Invalid character(s) in term '!'",
		"{ $.a = 1 AND $.b = 2 }":                    "Invalid character(s) in term 'A'",
		`{ $."a" = 1 }`:                              `Invalid character(s) in term '"'`,
		"{ $..a = 1 }":                               "Invalid character(s) in term '.'",
		"{ $ = 1 }":                                  "Invalid character(s) in term ' '",
		"{ $.a[-1] = 1 }":                            "Invalid character(s) in term '-'",
		"{ $.a[*][*] = 1 }":                          "Invalid filter pattern: a selector has one wildcard at most",
		"{ $.*.b[*] = 1 }":                           "Invalid filter pattern: a selector has one wildcard at most",
		"{ $.*=1||$.*=2||$[*]=3||$.*=4 }":            "Invalid filter pattern: it has more than 3 wildcards in selectors",
		"{ $.a > 0x10 }":                             "Invalid filter pattern: <, <=, > and >= want a number",
		"{ $.a > Inf }":                              "Invalid filter pattern: <, <=, > and >= want a number",
		`{ $.a > "x" }`:                              "Invalid filter pattern: <, <=, > and >= want a number",
		"{ $.a EXISTS }":                             "Invalid character(s) in term 'E'",
		"{ $.a IS NOT NULL }":                        "Invalid character(s) in term 'N'",
		"{ $.a=%a% && $.b=%b% && $.c=%c% }":          "Invalid filter pattern: it has more than 2 regular expressions",
		"[a":                                         early,
		"[(]":                                        "Invalid character(s) in term ']'",
		"[a=1 || ]":                                  "Invalid character(s) in term ']'",
		"[a b]":                                      "Invalid character(s) in term 'b'",
		"[a, ..., b, ...]":                           "Invalid filter pattern: it has more than one ellipsis",
		"[a=1 || b=2]":                               "Invalid filter pattern: a condition is about the field it stands at",
		"{" + strings.Repeat("(", 100) + "$.a=1" + strings.Repeat(")", 100) + "}": "Invalid filter pattern: too many parentheses",
		strings.Repeat("a", MaxLength+1):                                          "Invalid filter pattern: it has more than 1024 characters",
	} {
		if _, err := Parse(pattern); err == nil || err.Error() != want {
			t.Errorf("%.60s: %v, want %s", pattern, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, pattern := range []string{
		"", "a ?b -c", `"a b"`, "%a.*%", `{ $.a[0].['b'] = "x*" && ($.c > 1 || $.d IS NULL) }`, "[a, b=1||b!=2*, ..., c>9]", "{$[*]=1}",
	} {
		f.Add(pattern, `{"a":[{"b":"x"}],"c":2}`)
		f.Add(pattern, `x 1 "a b" [c] 10`)
	}
	f.Fuzz(func(t *testing.T, pattern, message string) {
		p, err := Parse(pattern)
		if err != nil {
			if err.Error() == "" {
				t.Error("a refusal without a text")
			}
			return
		}
		if first, again := p.Match(NewEvent(message)), p.Match(NewEvent(message)); first != again {
			t.Error("not the same answer twice")
		}
	})
}

// A pattern that takes longer says so.
func TestCost(t *testing.T) {
	for pattern, want := range map[string]int{
		"": 1, "error": 1, "%x{1,250}%": 26, "[" + strings.Repeat("a,", 500) + "...]": 10, `%\d\d:\d\d%`: 1,
	} {
		p, err := Parse(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Cost(); got != want {
			t.Errorf("%.40s costs %d, want %d", pattern, got, want)
		}
	}
}

// An event in JSON is decoded once, however many patterns and selectors look at it.
func TestEventIsDecodedOnce(t *testing.T) {
	p, err := Parse(`{ $.a = 1 && $.b = "x*" }`)
	if err != nil {
		t.Fatal(err)
	}
	s, err := p.ParseSelector("$.c")
	if err != nil {
		t.Fatal(err)
	}
	e := NewEvent(` {"a":1,"b":"xyz","c":"found"} `)
	look := func() {
		if value, ok := p.Value(e, s); !p.Match(e) || !ok || value != "found" {
			t.Errorf("%q, %t", value, ok)
		}
	}
	look()
	if n := testing.AllocsPerRun(10, look); n > 4 { // of closures; to decode it takes dozens
		t.Errorf("a second look allocates %v times", n)
	}
	if _, ok := p.Value(NewEvent(`{"c":"found"} and more`), s); ok {
		t.Error("there is a value in what is no JSON")
	}
}
