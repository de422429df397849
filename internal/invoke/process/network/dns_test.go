package network

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// zone answers a resolver's questions in place of a server.
var zone = map[string][]dnsmessage.ResourceBody{
	"db.test.":       {&dnsmessage.AResource{A: [4]byte{10, 0, 0, 5}}, &dnsmessage.AAAAResource{AAAA: [16]byte{0xfd, 15: 5}}},
	"four.test.":     {&dnsmessage.AResource{A: [4]byte{10, 0, 0, 4}}},
	"metadata.test.": {&dnsmessage.AResource{A: [4]byte{169, 254, 169, 254}}},
	"text.test.":     {&dnsmessage.TXTResource{TXT: []string{strings.Repeat("a", 255), "bc"}}},
	"mail.test.":     {&dnsmessage.MXResource{Pref: 10, MX: dnsmessage.MustNewName("mx.test.")}},
	"_x._tcp.test.":  {&dnsmessage.SRVResource{Priority: 1, Weight: 2, Port: 3, Target: dnsmessage.MustNewName("db.test.")}},
	"zone.test.":     {&dnsmessage.NSResource{NS: dnsmessage.MustNewName("ns.test.")}},

	"5.0.0.10.in-addr.arpa.": {&dnsmessage.PTRResource{PTR: dnsmessage.MustNewName("db.test.")}},
}

func init() {
	for i := range 60 {
		zone["many.test."] = append(zone["many.test."], &dnsmessage.AResource{A: [4]byte{10, 1, 0, byte(i)}})
	}
}

// testNames answers from zone.
func testNames(t *testing.T, o Options) *names {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	streams, err := net.Listen("tcp", server.LocalAddr().String())
	if err != nil {
		t.Skip("the port is taken: ", err)
	}
	t.Cleanup(func() { _, _ = server.Close(), streams.Close() })
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, from, err := server.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, _ = server.WriteTo(fromZone(buffer[:n]), from)
		}
	}()
	n := testNetwork(t, o)
	n.resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", server.LocalAddr().String())
	}}
	return &names{network: n, ctx: t.Context(), slots: make(chan struct{}, asking)}
}

func fromZone(question []byte) []byte {
	var m dnsmessage.Message
	if err := m.Unpack(question); err != nil {
		return nil
	}
	m.Response, m.Additionals = true, nil
	bodies, ok := zone[m.Questions[0].Name.String()]
	if !ok {
		m.RCode = dnsmessage.RCodeNameError
	}
	for _, body := range bodies {
		r := dnsmessage.Resource{Header: dnsmessage.ResourceHeader{Name: m.Questions[0].Name, Class: dnsmessage.ClassINET, TTL: 60}, Body: body}
		if strings.HasPrefix(fmt.Sprintf("%T", body), "*dnsmessage."+strings.TrimPrefix(m.Questions[0].Type.String(), "Type")+"Resource") {
			m.Answers = append(m.Answers, r)
		}
	}
	packed, _ := m.Pack()
	return packed
}

// ask asks and sums up the answer.
func ask(t *testing.T, d *names, name string, kind dnsmessage.Type, stream bool, sizes ...uint16) string {
	t.Helper()
	q := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}},
	}
	for _, size := range sizes {
		var h dnsmessage.ResourceHeader
		if err := h.SetEDNS0(int(size), 0, false); err != nil {
			t.Fatal(err)
		}
		q.Additionals = append(q.Additionals, dnsmessage.Resource{Header: h, Body: &dnsmessage.OPTResource{}})
	}
	packed, err := q.Pack()
	if err != nil {
		t.Fatal(err)
	}
	var m dnsmessage.Message
	if err := m.Unpack(d.answer(packed, stream)); err != nil {
		t.Fatal(err)
	}
	if m.ID != 7 || !m.Response || !m.RecursionAvailable || len(m.Questions) != 1 {
		t.Errorf("%s: %+v", name, m.Header)
	}
	var all []string
	for _, a := range m.Answers {
		switch b := a.Body.(type) {
		case *dnsmessage.AResource:
			all = append(all, net.IP(b.A[:]).String())
		case *dnsmessage.AAAAResource:
			all = append(all, net.IP(b.AAAA[:]).String())
		case *dnsmessage.TXTResource:
			all = append(all, fmt.Sprint(len(b.TXT), len(strings.Join(b.TXT, ""))))
		case *dnsmessage.MXResource:
			all = append(all, fmt.Sprint(b.Pref, b.MX))
		case *dnsmessage.SRVResource:
			all = append(all, fmt.Sprint(b.Priority, b.Weight, b.Port, b.Target))
		case *dnsmessage.NSResource:
			all = append(all, b.NS.String())
		case *dnsmessage.PTRResource:
			all = append(all, b.PTR.String())
		}
	}
	slices.Sort(all)
	text := strings.TrimPrefix(m.RCode.String(), "RCode")
	if m.Truncated {
		text += " truncated"
	}
	if len(all) > 10 {
		return fmt.Sprint(text, " ", len(all))
	}
	return strings.TrimSpace(text + " " + strings.Join(all, " "))
}

func TestAnswers(t *testing.T) {
	d := testNames(t, Options{Mode: Public, PublicURL: "http://godwit.test"})
	for _, test := range []struct {
		name string
		kind dnsmessage.Type
		want string
	}{
		{"db.test.", dnsmessage.TypeA, "Success 10.0.0.5"},
		{"db.test.", dnsmessage.TypeAAAA, "Success fd00::5"},
		{"four.test.", dnsmessage.TypeAAAA, "Success"}, // it is a name, though without such an address
		{"nowhere.test.", dnsmessage.TypeA, "NameError"},
		{"nowhere.test.", dnsmessage.TypeTXT, "NameError"},
		{"metadata.test.", dnsmessage.TypeA, "Success 169.254.169.254"}, // which does not help
		{"text.test.", dnsmessage.TypeTXT, "Success 2 257"},
		{"mail.test.", dnsmessage.TypeMX, "Success 10 mx.test."},
		{"_x._tcp.test.", dnsmessage.TypeSRV, "Success 1 2 3 db.test."},
		{"zone.test.", dnsmessage.TypeNS, "Success ns.test."},
		{"5.0.0.10.in-addr.arpa.", dnsmessage.TypePTR, "Success db.test."},
		{"x.in-addr.arpa.", dnsmessage.TypePTR, "Success"},
		{"db.test.", dnsmessage.TypeSOA, "Success"},
		{"GODWIT.test.", dnsmessage.TypeA, "Success 127.0.0.1"},
		{"godwit.test.", dnsmessage.TypeAAAA, "Success ::1"},
		{"many.test.", dnsmessage.TypeA, "Success truncated"},
	} {
		if got := ask(t, d, test.name, test.kind, false); got != test.want {
			t.Errorf("%s %s: %s, want %s", test.name, test.kind, got, test.want)
		}
	}
	for what, got := range map[string]string{
		"by a stream":          ask(t, d, "many.test.", dnsmessage.TypeA, true),
		"with room for it":     ask(t, d, "many.test.", dnsmessage.TypeA, false, 1232),
		"with room for little": ask(t, d, "many.test.", dnsmessage.TypeA, false, 600),
	} {
		want := "Success 60"
		if what == "with room for little" {
			want = "Success truncated"
		}
		if got != want {
			t.Errorf("%s: %s", what, got)
		}
	}
}

// Where nothing is reached, no names are asked for either, but those that are allowed.
func TestNoAnswers(t *testing.T) {
	d := testNames(t, Options{Mode: None, Allow: []string{"db.test:5432"}})
	if got := ask(t, d, "db.test.", dnsmessage.TypeA, false); got != "Success 10.0.0.5" {
		t.Error(got)
	}
	for _, name := range []string{"four.test.", "secret.db.test."} {
		if got := ask(t, d, name, dnsmessage.TypeA, false); got != "Refused" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// An allowed name is what it means at the time.
func TestAllowedNames(t *testing.T) {
	n := testNames(t, Options{Mode: None, Allow: []string{"db.test:5432", "metadata.test:80"}}).network
	for to, want := range map[string]bool{
		"10.0.0.5:5432": true, "[fd00::5]:5432": true, "10.0.0.5:80": false, "10.0.0.6:5432": false, "169.254.169.254:80": false,
	} {
		if _, err := n.judge(t.Context(), mustAddrPort(to)); (err == nil) != want {
			t.Errorf("%s: %v", to, err)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	q := dnsmessage.Message{Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName("x.in-addr.arpa."), Type: dnsmessage.TypePTR, Class: dnsmessage.ClassINET}}}
	packed, _ := q.Pack()
	f.Add(packed, false)
	f.Add([]byte{}, true)
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // nobody is asked
	n, err := New(Options{Mode: Private, Port: 1})
	if err != nil {
		f.Fatal(err)
	}
	n.resolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, context.Canceled }}
	d := &names{network: n, ctx: ctx}
	f.Fuzz(func(t *testing.T, message []byte, stream bool) {
		answer := d.answer(message, stream)
		if answer == nil {
			return
		}
		var m dnsmessage.Message
		if err := m.Unpack(answer); err != nil || !m.Response {
			t.Errorf("%v: %x", err, answer)
		}
		if !stream && len(answer) > largestAnswer {
			t.Errorf("%d bytes", len(answer))
		}
	})
}
