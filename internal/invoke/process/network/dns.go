package network

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/invoke/process/netns"
)

const (
	dnsPort = 53
	// answerTime bounds a DNS answer: it is the usual timeout of clients.
	answerTime = 5 * time.Second
	// answerLife is the TTL of an answer, in seconds. The process's resolver does not return
	// the real one.
	answerLife = 5
	// asking bounds the concurrent queries of a namespace.
	asking = 64
	// plainAnswer bounds an answer by UDP for clients that do not advertise a size, and
	// largestAnswer for those that do, in bytes.
	plainAnswer, largestAnswer = 512, 4096
)

// names answers DNS queries by this process's own resolver, which reads the machine's files
// and queries its servers.
type names struct {
	network *Network
	ctx     context.Context
	slots   chan struct{} // has a token for each query in progress
}

// serveNames answers at the resolver's address.
func (t *tunnel) serveNames(s *stack.Stack) error {
	at := tcpip.FullAddress{NIC: nicID, Addr: tcpip.AddrFrom4(netns.Resolver.As4()), Port: dnsPort}
	if failure := s.AddProtocolAddress(nicID, tcpip.ProtocolAddress{
		Protocol: ipv4.ProtocolNumber, AddressWithPrefix: at.Addr.WithPrefix(),
	}, stack.AddressProperties{}); failure != nil {
		return errors.New(failure.String())
	}
	packets, err := gonet.DialUDP(s, &at, nil, header.IPv4ProtocolNumber)
	if err != nil {
		return err
	}
	streams, err := gonet.ListenTCP(s, at, header.IPv4ProtocolNumber)
	if err != nil {
		_ = packets.Close()
		return err
	}
	d := &names{network: t.attachment.network, ctx: t.attachment.ctx, slots: make(chan struct{}, asking)}
	context.AfterFunc(d.ctx, func() { _, _ = packets.Close(), streams.Close() })
	go d.serve(packets)
	go d.listen(t.attachment, streams)
	return nil
}

// serve answers datagrams.
func (d *names) serve(c net.PacketConn) {
	buffer := make([]byte, largestAnswer)
	for {
		n, from, err := c.ReadFrom(buffer)
		if err != nil {
			return
		}
		select {
		case d.slots <- struct{}{}:
		default:
			continue // beyond the limit, queries are dropped
		}
		question := append([]byte(nil), buffer[:n]...)
		go func() {
			defer func() { <-d.slots }()
			if answer := d.answer(question, false); answer != nil {
				_, _ = c.WriteTo(answer, from)
			}
		}()
	}
}

// listen answers on connections, one question at a time.
func (d *names) listen(a *Attachment, l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		slot := a.reserve()
		if slot == nil {
			_ = c.Close()
			continue
		}
		go func() {
			defer slot.release()
			defer func() { _ = c.Close() }()
			for d.exchange(c) == nil {
			}
		}()
	}
}

func (d *names) exchange(c net.Conn) error {
	if err := c.SetDeadline(clock.System.Now().Add(2 * answerTime)); err != nil {
		return err
	}
	var size [2]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return err
	}
	question := make([]byte, binary.BigEndian.Uint16(size[:]))
	if _, err := io.ReadFull(c, question); err != nil {
		return err
	}
	answer := d.answer(question, true)
	if answer == nil {
		return errors.New("no question")
	}
	_, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...))
	return err
}

// answer answers a message; nil: it gets no answer.
func (d *names) answer(message []byte, stream bool) []byte {
	var p dnsmessage.Parser
	h, err := p.Start(message)
	if err != nil || h.Response {
		return nil
	}
	q, err := p.Question()
	if err != nil {
		return nil
	}
	reply := dnsmessage.Message{
		Header: dnsmessage.Header{
			ID: h.ID, Response: true, OpCode: h.OpCode, RecursionDesired: h.RecursionDesired, RecursionAvailable: true,
		},
		Questions: []dnsmessage.Question{q},
	}
	limit := plainAnswer
	if size := advertised(&p); size > 0 {
		limit = min(max(size, plainAnswer), largestAnswer)
		var option dnsmessage.ResourceHeader
		if option.SetEDNS0(largestAnswer, dnsmessage.RCodeSuccess, false) == nil {
			reply.Additionals = []dnsmessage.Resource{{Header: option, Body: &dnsmessage.OPTResource{}}}
		}
	}
	if h.OpCode != 0 || q.Class != dnsmessage.ClassINET {
		reply.RCode = dnsmessage.RCodeNotImplemented
	} else {
		ctx, cancel := context.WithTimeout(d.ctx, answerTime)
		reply.Answers, err = d.lookUp(ctx, q)
		cancel()
		reply.RCode = code(err)
	}
	packed, err := reply.Pack()
	if err != nil || len(packed) > limit && !stream || len(packed) > 0xffff {
		reply.Answers, reply.Truncated = nil, true // the client retries by TCP
		packed, err = reply.Pack()
	}
	if err != nil {
		return nil
	}
	return packed
}

// advertised is the largest UDP answer that the client accepts; 0: not advertised.
func advertised(p *dnsmessage.Parser) int {
	if p.SkipAllQuestions() != nil || p.SkipAllAnswers() != nil || p.SkipAllAuthorities() != nil {
		return 0
	}
	for {
		h, err := p.AdditionalHeader()
		if err != nil {
			return 0
		}
		if h.Type == dnsmessage.TypeOPT {
			return int(h.Class)
		}
		if p.SkipAdditional() != nil {
			return 0
		}
	}
}

func code(err error) dnsmessage.RCode {
	failure, ok := errors.AsType[*net.DNSError](err)
	switch {
	case err == nil:
		return dnsmessage.RCodeSuccess
	case errors.Is(err, errForbidden):
		return dnsmessage.RCodeRefused
	case ok && failure.IsNotFound:
		return dnsmessage.RCodeNameError
	default:
		return dnsmessage.RCodeServerFailure
	}
}

// lookUp answers a query. Types that the process's resolver does not support have no records.
func (d *names) lookUp(ctx context.Context, q dnsmessage.Question) ([]dnsmessage.Resource, error) {
	name := q.Name.String()
	if !d.mayAsk(name) {
		return nil, errForbidden
	}
	if own := d.ownAddress(name, q.Type); own != nil {
		return records(q, own), nil
	}
	r := d.network.resolver
	switch q.Type {
	case dnsmessage.TypeA, dnsmessage.TypeAAAA:
		all, err := r.LookupNetIP(ctx, "ip", name) // both: only so a name without one differs from one that is not there
		if err != nil {
			return nil, err
		}
		var bodies []dnsmessage.ResourceBody
		for _, a := range all {
			switch a = a.Unmap(); {
			case a.Is4() && q.Type == dnsmessage.TypeA:
				bodies = append(bodies, &dnsmessage.AResource{A: a.As4()})
			case a.Is6() && q.Type == dnsmessage.TypeAAAA:
				bodies = append(bodies, &dnsmessage.AAAAResource{AAAA: a.As16()})
			}
		}
		return records(q, bodies), nil
	case dnsmessage.TypePTR:
		return d.lookUpAddress(ctx, q)
	case dnsmessage.TypeTXT:
		all, err := r.LookupTXT(ctx, name)
		return collect(q, err, all, func(text string) dnsmessage.ResourceBody {
			var parts []string
			for len(text) > 255 {
				parts, text = append(parts, text[:255]), text[255:]
			}
			return &dnsmessage.TXTResource{TXT: append(parts, text)}
		})
	case dnsmessage.TypeMX:
		all, err := r.LookupMX(ctx, name)
		return collect(q, err, all, func(m *net.MX) dnsmessage.ResourceBody {
			return &dnsmessage.MXResource{Pref: m.Pref, MX: domain(m.Host)}
		})
	case dnsmessage.TypeNS:
		all, err := r.LookupNS(ctx, name)
		return collect(q, err, all, func(s *net.NS) dnsmessage.ResourceBody { return &dnsmessage.NSResource{NS: domain(s.Host)} })
	case dnsmessage.TypeSRV:
		_, all, err := r.LookupSRV(ctx, "", "", name)
		return collect(q, err, all, func(s *net.SRV) dnsmessage.ResourceBody {
			return &dnsmessage.SRVResource{Priority: s.Priority, Weight: s.Weight, Port: s.Port, Target: domain(s.Target)}
		})
	default:
		return nil, nil
	}
}

// mayAsk reports whether a name may be queried. If only names in Options.Allow are reachable,
// other queries could leak data.
func (d *names) mayAsk(name string) bool {
	if d.network.Mode != None {
		return true
	}
	bare := strings.TrimSuffix(name, ".")
	for _, entry := range d.network.allow {
		if strings.EqualFold(strings.TrimSuffix(entry.host, "."), bare) {
			return true
		}
	}
	return false
}

// ownAddress answers queries for this server's names: the function's loopback address.
func (d *names) ownAddress(name string, kind dnsmessage.Type) []dnsmessage.ResourceBody {
	for _, own := range d.network.names {
		if !strings.EqualFold(strings.TrimSuffix(name, "."), strings.TrimSuffix(own, ".")) {
			continue
		}
		switch kind {
		case dnsmessage.TypeA:
			return []dnsmessage.ResourceBody{&dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}}}
		case dnsmessage.TypeAAAA:
			return []dnsmessage.ResourceBody{&dnsmessage.AAAAResource{AAAA: netip.IPv6Loopback().As16()}}
		default:
			return nil
		}
	}
	return nil
}

func (d *names) lookUpAddress(ctx context.Context, q dnsmessage.Question) ([]dnsmessage.Resource, error) {
	address, ok := reversed(q.Name.String())
	if !ok {
		return nil, nil
	}
	all, err := d.network.resolver.LookupAddr(ctx, address.String())
	return collect(q, err, all, func(s string) dnsmessage.ResourceBody { return &dnsmessage.PTRResource{PTR: domain(s)} })
}

// reversed is the address whose name is asked for.
func reversed(name string) (netip.Addr, bool) {
	lower := strings.ToLower(strings.TrimSuffix(name, "."))
	if rest, ok := strings.CutSuffix(lower, ".in-addr.arpa"); ok {
		labels := strings.Split(rest, ".")
		if len(labels) != 4 {
			return netip.Addr{}, false
		}
		a, err := netip.ParseAddr(labels[3] + "." + labels[2] + "." + labels[1] + "." + labels[0])
		return a, err == nil
	}
	rest, ok := strings.CutSuffix(lower, ".ip6.arpa")
	labels := strings.Split(rest, ".")
	if !ok || len(labels) != 32 {
		return netip.Addr{}, false
	}
	var b strings.Builder
	for i := range labels {
		if i > 0 && i%4 == 0 {
			b.WriteByte(':')
		}
		b.WriteString(labels[31-i])
	}
	a, err := netip.ParseAddr(b.String())
	return a, err == nil
}

// domain is a name as messages have it; one that cannot be is the root.
func domain(s string) dnsmessage.Name {
	if !strings.HasSuffix(s, ".") {
		s += "."
	}
	name, err := dnsmessage.NewName(s)
	if err != nil {
		return dnsmessage.MustNewName(".")
	}
	return name
}

func collect[T any](q dnsmessage.Question, err error, all []T, body func(T) dnsmessage.ResourceBody) ([]dnsmessage.Resource, error) {
	var bodies []dnsmessage.ResourceBody
	for _, x := range all {
		bodies = append(bodies, body(x))
	}
	if len(bodies) > 0 {
		err = nil // some of it may have been malformed
	}
	return records(q, bodies), err
}

func records(q dnsmessage.Question, bodies []dnsmessage.ResourceBody) []dnsmessage.Resource {
	var all []dnsmessage.Resource
	for _, body := range bodies {
		all = append(all, dnsmessage.Resource{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: answerLife}, Body: body,
		})
	}
	return all
}
