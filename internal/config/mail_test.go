package config

import "testing"

func TestParseMailRelay(t *testing.T) {
	for text, want := range map[string]MailServer{
		"smtp://mail.example.com":            {Address: "mail.example.com:587"},
		"smtp://ops@mail.example.com:25/":    {Address: "mail.example.com:25", User: "ops"},
		"smtps://a%40b.example@example.com":  {Address: "example.com:465", User: "a@b.example", TLS: true},
		"smtp://localhost:25":                {Address: "localhost:25", Local: true},
		"smtp://[::1]":                       {Address: "[::1]:587", Local: true},
		"mail.example.com":                   {},
		"http://mail.example.com":            {},
		"smtp://":                            {},
		"smtp://ops:secret@mail.example.com": {},
		"smtp://mail.example.com/?x=y":       {},
	} {
		got, err := ParseMailRelay(text)
		if got != want || (err == nil) != (want.Address != "") {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}
