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
// connection, which fills it anew for each request.
type head struct {
	target string
	url    url.URL
	host   string
	length int64 // of the body, in bytes
	header http.Header

	values []string // what the lists in header are cut from
	names  []name   // of the last request's fields, in their order
}

// name is a field's name as it was sent, and as net/http spells it.
type name struct{ sent, canonical string }

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
	// One string for all: the parts that are kept for long are copied by those
	// who keep them.
	text := string(b[:len(b)-2])
	if !h.parseTarget(text[len(post) : end-len(version)]) {
		return false
	}
	if h.header == nil {
		h.header = make(http.Header, 16)
	}
	clear(h.header)
	h.values, h.host, h.length = h.values[:0], "", -1
	for field := 0; end < len(text); field++ {
		size := strings.IndexByte(text[end:], '\n')
		if size < 1 || text[end+size-1] != '\r' || field == maxFields {
			return false
		}
		if !h.parseField(field, text[end:end+size-1]) {
			return false
		}
		end += size + 1
	}
	h.length = max(h.length, 0)
	return h.host != ""
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

// parseField adds a line without its end to the header, and reports whether
// the request can still be plain.
func (h *head) parseField(i int, line string) (plain bool) {
	colon := strings.IndexByte(line, ':')
	if colon < 1 {
		return false
	}
	key, ok := h.canonical(i, line[:colon])
	if !ok {
		return false
	}
	value := strings.Trim(line[colon+1:], " \t")
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	switch key {
	case "Host":
		plain = h.host == "" && isHost(value)
		h.host = value
		return plain
	case "Content-Length":
		if h.length, ok = parseLength(value); !ok || h.header[key] != nil {
			return false
		}
	case "Connection":
		if !strings.EqualFold(value, "keep-alive") {
			return false
		}
	case "Transfer-Encoding", "Expect", "Upgrade", "Trailer", "Pragma":
		return false
	}
	if earlier := h.header[key]; earlier != nil {
		h.header[key] = append(earlier, value)
		return true
	}
	h.values = append(h.values, value)
	last := len(h.values)
	h.header[key] = h.values[last-1 : last : last]
	return true
}

// canonical spells a field's name as net/http does. A caller sends the same
// fields in the same order again and again.
func (h *head) canonical(i int, sent string) (canonical string, ok bool) {
	if i < len(h.names) && h.names[i].sent == sent {
		return h.names[i].canonical, true
	}
	for i := range len(sent) {
		if !isToken[sent[i]] {
			return "", false
		}
	}
	if len(sent) > maxName {
		return textproto.CanonicalMIMEHeaderKey(sent), true
	}
	sent = strings.Clone(sent)
	known := name{sent, textproto.CanonicalMIMEHeaderKey(sent)}
	switch {
	case i < len(h.names):
		h.names[i] = known
	case i == len(h.names):
		h.names = append(h.names, known)
	}
	return known.canonical, true
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
