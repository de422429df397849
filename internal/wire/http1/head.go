package http1

import (
	"bytes"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
)

const (
	maxFields = 64 // of a plain head
	maxName   = 64 // bytes of a field's name that is remembered
)

var (
	endOfHead = []byte("\r\n\r\n")
	post      = []byte("POST ")
	version   = []byte(" HTTP/1.1\r\n")
)

// head is what a plain request says before its body. It belongs to a
// connection, which fills it again for each request.
type head struct {
	target string
	url    url.URL
	host   string
	length int64 // of the body, in bytes; negative: not said
	header http.Header

	// The fields in header, in their order. While a caller sends the same ones, only
	// their values change: the lists in header are cut from values.
	keys, values []string
	listed       bool   // header has just these keys and values, each key once
	names        []name // of the last request's fields, Host among them, in their order
}

// name is a field's name as it was sent, and as net/http spells it.
type name struct {
	sent, canonical string
	means           bool // its value says something to this package
}

// beginsPlain reports whether what b begins can be a plain head. Of b's first seen
// bytes that is known.
func beginsPlain(b []byte, seen int) bool {
	if n := min(len(b), len(post)); !bytes.Equal(b[:n], post[:n]) {
		return false
	}
	for {
		i := bytes.IndexByte(b[seen:], '\n')
		if i < 0 {
			return true
		}
		if seen += i + 1; seen < 2 || b[seen-2] != '\r' {
			return false
		}
	}
}

// parse reads a head with its blank line, and reports whether the request is
// plain; if not, h holds nothing of use.
func (h *head) parse(b []byte) (plain bool) {
	end := bytes.IndexByte(b, '\n') + 1
	if end < len(post)+len(version) || !bytes.HasPrefix(b, post) || !bytes.HasSuffix(b[:end], version) {
		return false
	}
	// One string for all: whoever keeps a part for long copies it.
	text := string(b[:len(b)-2])
	if !h.parseTarget(text[len(post) : end-len(version)]) {
		return false
	}
	h.host, h.length = "", -1
	count, same := 0, h.listed
	h.listed = false // until all is there
	for field := 0; end < len(text); field++ {
		size := strings.IndexByte(text[end:], '\n')
		if size < 1 || text[end+size-1] != '\r' || field == maxFields {
			return false
		}
		key, value, plain := h.parseField(field, count, text[end:end+size-1])
		if !plain {
			return false
		}
		end += size + 1
		switch {
		case key == "":
			continue
		case count < len(h.keys):
			same = same && h.keys[count] == key
			h.keys[count], h.values[count] = key, value
		default:
			same = false
			h.keys, h.values = append(h.keys, key), append(h.values, value)
		}
		count++
	}
	if !same || count != len(h.keys) || count != len(h.header) {
		h.keys, h.values = h.keys[:count], h.values[:count]
		h.list()
	} else {
		h.listed = true
	}
	h.length = max(h.length, 0)
	return h.host != ""
}

// list makes the header of the fields.
func (h *head) list() {
	if h.header == nil {
		h.header = make(http.Header, 16)
	}
	clear(h.header)
	for i, key := range h.keys {
		if earlier := h.header[key]; earlier != nil {
			h.header[key] = append(earlier, h.values[i])
		} else {
			h.header[key] = h.values[i : i+1 : i+1]
		}
	}
	h.listed = len(h.header) == len(h.keys)
}

// parseTarget takes a path that needs no decoding as it is.
func (h *head) parseTarget(target string) (plain bool) {
	if target == h.target && target != "" {
		return true
	}
	if target == "" || target[0] != '/' || strings.HasPrefix(target, "//") {
		return false
	}
	for i := range len(target) {
		if !isPlain[target[i]] {
			return false
		}
	}
	h.target = strings.Clone(target)
	h.url = url.URL{Path: h.target}
	return true
}

// parseField reads a line without its end, the i-th, and reports whether the request
// can still be plain. Host has no place in the header, and is returned without a key; of
// the others this one is the nth.
func (h *head) parseField(i, nth int, line string) (key, value string, plain bool) {
	name, colon, ok := h.name(i, line)
	if !ok {
		return "", "", false
	}
	value = trim(line[colon+1:])
	if nth >= len(h.values) || value != h.values[nth] { // else it was looked at
		for i := range len(value) {
			if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
				return "", "", false
			}
		}
	}
	if !name.means {
		return name.canonical, value, true
	}
	switch name.canonical {
	case "Host":
		plain = h.host == "" && isHost(value)
		h.host = value
		return "", "", plain
	case "Content-Length":
		if h.length >= 0 {
			return "", "", false
		}
		h.length, plain = parseLength(value)
	case "Connection":
		plain = strings.EqualFold(value, "keep-alive")
	}
	return name.canonical, value, plain
}

// meaningful are the fields that have a meaning here.
var meaningful = map[string]bool{
	"Host": true, "Content-Length": true, "Connection": true,
	"Transfer-Encoding": true, "Expect": true, "Upgrade": true, "Trailer": true, "Pragma": true, // not plain
}

// trim takes the blanks off both ends.
func trim(s string) string {
	if len(s) > 0 && s[0] == ' ' {
		s = s[1:]
	}
	if len(s) == 0 || s[0] > ' ' && s[len(s)-1] > ' ' {
		return s
	}
	return strings.Trim(s, " \t")
}

// name finds a line's name, and where it ends, and spells it as net/http does. A caller
// sends the same fields in the same order again and again.
func (h *head) name(i int, line string) (n name, colon int, ok bool) {
	if i < len(h.names) {
		n = h.names[i]
		if colon = len(n.sent); colon < len(line) && line[colon] == ':' && line[:colon] == n.sent {
			return n, colon, true
		}
	}
	if colon = strings.IndexByte(line, ':'); colon < 1 {
		return name{}, 0, false
	}
	sent := line[:colon]
	for i := range len(sent) {
		if !isToken[sent[i]] {
			return name{}, 0, false
		}
	}
	n.canonical = textproto.CanonicalMIMEHeaderKey(sent)
	n.means = meaningful[n.canonical]
	if len(sent) > maxName {
		return n, colon, true
	}
	n.sent = strings.Clone(sent)
	switch {
	case i < len(h.names):
		h.names[i] = n
	case i == len(h.names):
		h.names = append(h.names, n)
	}
	return n, colon, true
}

// parseLength reads a Content-Length of at most 15 digits.
func parseLength(s string) (n int64, ok bool) {
	if s == "" || len(s) > 15 {
		return 0, false
	}
	for i := range len(s) {
		digit := s[i] - '0'
		if digit > 9 {
			return 0, false
		}
		n = n*10 + int64(digit)
	}
	return n, true
}

func isHost(s string) bool {
	for i := range len(s) {
		if c := s[i]; !isPlain[c] && c != '[' && c != ']' || c == '/' {
			return false
		}
	}
	return s != ""
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

var (
	isToken = table(letters + "!#$%&'*+-.^_`|~")
	isPlain = table(letters + "/-._~:") // needs no decoding in a path
)

func table(chars string) (t [256]bool) {
	for _, c := range []byte(chars) {
		t[c] = true
	}
	return t
}
