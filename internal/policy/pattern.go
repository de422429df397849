package policy

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// pattern is a text in which * matches any characters, ? one, and ${key} the value of a
// condition key.
type pattern struct {
	tokens    []token
	variables bool
}

// token is a part of a pattern.
type token struct {
	kind tokenKind
	text string // of a literal; the key of a variable, in lower case
	// fallback is the default of a variable without a value, if there is one.
	fallback    string
	hasFallback bool
}

type tokenKind uint8

const (
	literal tokenKind = iota
	anyUnits
	oneUnit
	variable
)

// special says what in a pattern does not stand for itself.
type special struct {
	wildcards bool // * and ?
	variables bool // ${…}
}

func compile(s string, syntax special) pattern {
	var p pattern
	begin := 0
	flush := func(end int) {
		if end > begin {
			p.tokens = append(p.tokens, token{text: s[begin:end]})
		}
	}
	for i := 0; i < len(s); {
		switch {
		case syntax.wildcards && s[i] == '*':
			flush(i)
			if n := len(p.tokens); n == 0 || p.tokens[n-1].kind != anyUnits {
				p.tokens = append(p.tokens, token{kind: anyUnits})
			}
			i++
			begin = i
		case syntax.wildcards && s[i] == '?':
			flush(i)
			p.tokens = append(p.tokens, token{kind: oneUnit})
			i++
			begin = i
		case syntax.variables && strings.HasPrefix(s[i:], "${"):
			end := strings.IndexByte(s[i:], '}')
			if end < 0 {
				i = len(s)
				break
			}
			flush(i)
			p.add(s[i+2 : i+end])
			i += end + 1
			begin = i
		default:
			i++
		}
	}
	flush(len(s))
	return p
}

// add appends the content of ${…}.
func (p *pattern) add(name string) {
	if name == "*" || name == "?" || name == "$" { // the character itself
		p.tokens = append(p.tokens, token{text: name})
		return
	}
	t := token{kind: variable}
	key, rest, found := strings.Cut(name, ",")
	if rest = strings.TrimSpace(rest); found && len(rest) >= 2 && rest[0] == '\'' && rest[len(rest)-1] == '\'' {
		t.fallback, t.hasFallback = rest[1:len(rest)-1], true
	}
	t.text = strings.ToLower(strings.TrimSpace(key))
	p.tokens = append(p.tokens, t)
	p.variables = true
}

// usual is the number of tokens up to which matching a pattern with variables does not
// allocate.
const usual = 8

// resolve appends the tokens to dst, with variables replaced by values; false if one has none.
// Values are matched literally.
func (p *pattern) resolve(dst []token, r *Request) ([]token, bool) {
	for _, t := range p.tokens {
		if t.kind == variable {
			switch values := r.values(t.text); {
			case len(values) == 1:
				t = token{text: values[0]}
			case len(values) == 0 && t.hasFallback:
				t = token{text: t.fallback}
			default:
				return nil, false
			}
		}
		dst = append(dst, t)
	}
	return dst, true
}

// match reports whether all of s matches. fold makes it case-insensitive. r may be nil if the
// pattern has no variables.
func (p *pattern) match(s string, fold bool, r *Request) bool {
	if !p.variables {
		return glob(p.tokens, s, fold)
	}
	var few [usual]token
	tokens, ok := p.resolve(few[:0], r)
	return ok && glob(tokens, s, fold)
}

// place is a position in a text in units of UTF-16, as AWS counts: a character beyond the first
// 65,536 has two of them; half says that the position is between these.
type place struct {
	at   int // in bytes
	half bool
}

// next is the position one unit further; false at the end.
func (p place) next(s string) (place, bool) {
	if p.at == len(s) {
		return p, false
	}
	c, width := utf8.DecodeRuneInString(s[p.at:])
	if c > 0xffff && !p.half {
		return place{p.at, true}, true
	}
	return place{at: p.at + width}, true
}

// glob matches tokens with s. A * matches as little as possible, and more if the rest does not
// match; only the last one needs to be retried.
func glob(tokens []token, s string, fold bool) bool {
	if len(tokens) == 1 && tokens[0].kind == literal && !fold { // most are
		return s == tokens[0].text
	}
	at, i := 0, place{}
	star, from := -1, place{} // the last *, and where its match ends
	for {
		if at == len(tokens) && i.at == len(s) {
			return true
		}
		if at < len(tokens) {
			t := &tokens[at]
			if t.kind == anyUnits {
				star, from = at, i
				if at++; at == len(tokens) {
					return true
				}
				continue
			}
			if next, ok := t.step(s, i, fold); ok {
				at++
				i = next
				continue
			}
		}
		further, ok := from.next(s)
		if star < 0 || !ok {
			return false
		}
		from = further
		at, i = star+1, from
	}
}

// step matches a token other than * at a position.
func (t *token) step(s string, from place, fold bool) (place, bool) {
	if t.kind == oneUnit {
		return from.next(s)
	}
	if from.half {
		return from, false
	}
	if fold {
		width, ok := foldedPrefix(s[from.at:], t.text)
		return place{at: from.at + width}, ok
	}
	return place{at: from.at + len(t.text)}, strings.HasPrefix(s[from.at:], t.text)
}

// foldedPrefix reports whether s begins with prefix, ignoring case, and the length of that
// beginning of s.
func foldedPrefix(s, prefix string) (width int, ok bool) {
	at := 0
	for _, want := range prefix {
		if at == len(s) {
			return 0, false
		}
		got, size := rune(s[at]), 1
		if got >= utf8.RuneSelf {
			got, size = utf8.DecodeRuneInString(s[at:])
		}
		if got != want && !equalFold(got, want) {
			return 0, false
		}
		at += size
	}
	return at, true
}

func equalFold(a, b rune) bool {
	if a < utf8.RuneSelf && b < utf8.RuneSelf {
		return a|0x20 == b|0x20 && 'a' <= a|0x20 && a|0x20 <= 'z'
	}
	for c := unicode.SimpleFold(a); c != a; c = unicode.SimpleFold(c) {
		if c == b {
			return true
		}
	}
	return false
}

// arnParts is how many parts an ARN has.
const arnParts = 6

// arnPattern has a pattern for each part of an ARN, as conditions compare them: no wildcard
// matches a colon, except in the last part.
type arnPattern [arnParts]pattern

// compileARN compiles the pattern of an ARN. ok is false if parts are missing.
func compileARN(s string, variables bool) (p arnPattern, ok bool) {
	parts := splitARN(s, variables)
	if len(parts) < arnParts {
		return p, false
	}
	for i := range p {
		p[i] = compile(parts[i], special{wildcards: true, variables: variables})
	}
	return p, true
}

// splitARN splits at the first five colons that are not part of a variable.
func splitARN(s string, variables bool) []string {
	parts := make([]string, 0, arnParts)
	begin := 0
	for i := 0; i < len(s) && len(parts) < arnParts-1; i++ {
		if variables && strings.HasPrefix(s[i:], "${") {
			if end := strings.IndexByte(s[i:], '}'); end > 0 {
				i += end
				continue
			}
		}
		if s[i] == ':' {
			parts = append(parts, s[begin:i])
			begin = i + 1
		}
	}
	return append(parts, s[begin:])
}

func (p *arnPattern) match(s string, r *Request) bool {
	for i := range p {
		part, rest, found := strings.Cut(s, ":")
		if i == arnParts-1 {
			part = s // with its colons
		} else if !found {
			return false
		}
		if !p[i].match(part, false, r) {
			return false
		}
		s = rest
	}
	return true
}

// resourcePattern is "*" or the pattern of an ARN, in which a wildcard also matches colons and
// slashes. The zero value matches nothing.
type resourcePattern struct {
	all bool
	// forms are the pattern, and, if parts are missing at its end, the pattern with wildcards
	// for them.
	forms []pattern
}

// compileResource compiles a Resource. Missing parts at its end match anything.
func compileResource(s string, variables bool) (r resourcePattern, ok bool) {
	if strings.Trim(s, "*") == "" {
		return resourcePattern{all: true}, true
	}
	if !strings.HasPrefix(s, "arn:") {
		return r, false
	}
	r.forms = []pattern{compile(s, special{wildcards: true, variables: variables})}
	if missing := arnParts - len(splitARN(s, variables)); missing > 0 {
		r.forms = append(r.forms, compile(s+strings.Repeat(":*", missing), special{wildcards: true, variables: variables}))
	}
	return r, true
}

func (p *resourcePattern) match(s string, r *Request) bool {
	if p.all {
		return true
	}
	for i := range p.forms {
		if p.forms[i].match(s, false, r) {
			return true
		}
	}
	return false
}
