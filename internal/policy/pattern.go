package policy

import (
	"strings"
	"unicode/utf8"
)

// pattern is a text in which * stands for any characters, ? for one, and
// ${key} for the value of a condition key.
type pattern struct {
	tokens    []token
	variables bool
}

// token is a part of a pattern.
type token struct {
	kind tokenKind
	text string // of a literal; the key of a variable, in lower case
	// fallback is what a variable is without a value, if there is something.
	fallback    string
	hasFallback bool
}

type tokenKind uint8

const (
	literal tokenKind = iota
	anyRunes
	oneRune
	variable
)

// compile reads a pattern. wild says that * and ? are special, variables that
// ${…} is.
func compile(s string, wild, variables bool) pattern {
	var p pattern
	begin := 0
	flush := func(end int) {
		if end > begin {
			p.tokens = append(p.tokens, token{text: s[begin:end]})
		}
	}
	for i := 0; i < len(s); {
		switch {
		case wild && s[i] == '*':
			flush(i)
			if n := len(p.tokens); n == 0 || p.tokens[n-1].kind != anyRunes {
				p.tokens = append(p.tokens, token{kind: anyRunes})
			}
			i++
			begin = i
		case wild && s[i] == '?':
			flush(i)
			p.tokens = append(p.tokens, token{kind: oneRune})
			i++
			begin = i
		case variables && strings.HasPrefix(s[i:], "${"):
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

// add appends what stands between the braces of ${…}.
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

// resolve gives the tokens with values in place of variables; false if one has
// none. What a value holds is taken by the letter.
func (p *pattern) resolve(c Context) ([]token, bool) {
	if !p.variables {
		return p.tokens, true
	}
	out := make([]token, len(p.tokens))
	for i, t := range p.tokens {
		out[i] = t
		if t.kind != variable {
			continue
		}
		switch values := c.Values(t.text); {
		case len(values) == 1:
			out[i] = token{text: values[0]}
		case t.hasFallback:
			out[i] = token{text: t.fallback}
		default:
			return nil, false
		}
	}
	return out, true
}

// match reports whether all of s fits. fold compares letters of either case as
// equal.
func (p *pattern) match(s string, fold bool, c Context) bool {
	tokens, ok := p.resolve(c)
	return ok && glob(tokens, s, fold)
}

// glob matches tokens with s. A * takes as little as it can, and more when what
// follows does not fit; only the last one met needs to be tried again.
func glob(tokens []token, s string, fold bool) bool {
	if len(tokens) == 1 && tokens[0].kind == literal && !fold { // most are
		return s == tokens[0].text
	}
	at, i := 0, 0
	star, from := -1, 0 // the last *, and where its part of s ends
	for {
		switch fits, width := step(tokens, at, s[i:], fold); {
		case at == len(tokens) && i == len(s):
			return true
		case fits && tokens[at].kind == anyRunes:
			star, from = at, i
			at++
		case fits:
			at++
			i += width
		case star < 0 || from == len(s):
			return false
		default:
			_, width := utf8.DecodeRuneInString(s[from:])
			from += width
			at, i = star+1, from
		}
	}
}

// step matches the token at a place with the beginning of s.
func step(tokens []token, at int, s string, fold bool) (fits bool, width int) {
	if at == len(tokens) {
		return false, 0
	}
	switch t := &tokens[at]; t.kind {
	case anyRunes:
		return true, 0
	case oneRune:
		_, width := utf8.DecodeRuneInString(s)
		return s != "", width
	case literal:
		if fold {
			return len(s) >= len(t.text) && strings.EqualFold(s[:len(t.text)], t.text), len(t.text)
		}
		return strings.HasPrefix(s, t.text), len(t.text)
	default:
		return false, 0
	}
}

// arnParts is how many parts an ARN has.
const arnParts = 6

// arnPattern is a pattern for each part of an ARN: no wildcard reaches beyond
// a colon, but for one in the last part.
type arnPattern [arnParts]pattern

// compileARN reads the pattern of an ARN. ok is false if parts are missing.
func compileARN(s string, variables bool) (p arnPattern, ok bool) {
	parts := splitARN(s, variables)
	if len(parts) < arnParts {
		return p, false
	}
	for i := range p {
		p[i] = compile(parts[i], true, variables)
	}
	return p, true
}

// splitARN cuts at the first five colons that are not part of a variable.
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

func (p *arnPattern) match(s string, c Context) bool {
	for i := range p {
		part, rest, found := strings.Cut(s, ":")
		if i == arnParts-1 {
			part = s // with its colons
		} else if !found {
			return false
		}
		if !p[i].match(part, false, c) {
			return false
		}
		s = rest
	}
	return true
}

// resourcePattern is "*" or the pattern of an ARN. The zero value matches nothing.
type resourcePattern struct {
	all, named bool
	arn        arnPattern
}

// compileResource reads a Resource. Parts that are missing at its end are
// anything.
func compileResource(s string, variables bool) (r resourcePattern, ok bool) {
	if strings.Trim(s, "*") == "" {
		return resourcePattern{all: true}, true
	}
	if !strings.HasPrefix(s, "arn:") {
		return r, false
	}
	missing := arnParts - len(splitARN(s, variables))
	r.arn, r.named = compileARN(s+strings.Repeat(":*", missing), variables)
	return r, r.named
}

func (r *resourcePattern) match(s string, c Context) bool {
	return r.all || r.named && r.arn.match(s, c)
}
