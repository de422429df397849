package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"time"
)

// header is one header of a request. Signed ones are kept by lower-case name,
// in order.
type header struct{ name, value string }

// signer computes the Authorization header of AWS Signature Version 4 for one
// service. It is the client's side only, written apart from the server's so
// that neither hides a fault of the other. Not safe for concurrent use.
type signer struct {
	accessKey, secret, region, service string

	day     string
	mac     hash.Hash // keyed for the day
	scratch []byte
}

const (
	dateForm = "20060102T150405Z"
	dayForm  = "20060102"
)

// authorize appends the value of the Authorization header to dst. The query is
// in canonical form, the headers are sorted and hold x-amz-date or date.
func (s *signer) authorize(dst []byte, at time.Time, method, path, query string, headers []header, body []byte) []byte {
	at = at.UTC()
	if day := at.Format(dayForm); day != s.day {
		s.day = day
		s.mac = hmac.New(sha256.New, s.key(day))
	}
	scope := s.day + "/" + s.region + "/" + s.service + "/aws4_request"

	canonical := append(s.scratch[:0], method...)
	canonical = append(append(canonical, '\n'), path...)
	canonical = append(append(canonical, '\n'), query...)
	canonical = append(canonical, '\n')
	for _, h := range headers {
		canonical = append(append(append(append(canonical, h.name...), ':'), h.value...), '\n')
	}
	canonical = append(appendNames(append(canonical, '\n'), headers), '\n')
	sum := sha256.Sum256(body)
	canonical = hex.AppendEncode(canonical, sum[:])
	sum = sha256.Sum256(canonical)

	text := append(canonical[:0], "AWS4-HMAC-SHA256\n"...)
	text = at.AppendFormat(text, dateForm)
	text = append(append(append(text, '\n'), scope...), '\n')
	text = hex.AppendEncode(text, sum[:])
	s.mac.Reset()
	s.mac.Write(text)
	s.scratch = text

	dst = append(append(append(append(dst, "AWS4-HMAC-SHA256 Credential="...), s.accessKey...), '/'), scope...)
	dst = appendNames(append(dst, ", SignedHeaders="...), headers)
	return hex.AppendEncode(append(dst, ", Signature="...), s.mac.Sum(sum[:0]))
}

func appendNames(dst []byte, headers []header) []byte {
	for i, h := range headers {
		if i > 0 {
			dst = append(dst, ';')
		}
		dst = append(dst, h.name...)
	}
	return dst
}

// key derives the signing key of a day.
func (s *signer) key(day string) []byte {
	key := []byte("AWS4" + s.secret)
	for _, part := range []string{day, s.region, s.service, "aws4_request"} {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	return key
}
