package publication

import (
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/topic"
)

// Encrypt encrypts the stored form of a publication: the message, and the body of each protocol
// that has its own. Errors are those of encrypt.
func (p *Publication) Encrypt(encrypt func(m *message.Message) error) error {
	m := message.Message{Attributes: p.Attributes, Body: p.Body, Notice: &message.Notice{Subject: p.Subject}}
	if err := encrypt(&m); err != nil {
		return err
	}
	all := &ciphers{message: m.Cipher}
	if len(p.Bodies) > 0 {
		all.own = make(map[string][]byte, len(p.Bodies))
	}
	for protocol, body := range p.Bodies {
		m.Body = []byte(body)
		if err := encrypt(&m); err != nil {
			return err
		}
		all.own[protocol] = m.Cipher
	}
	p.encrypted = all
	return nil
}

// Encrypted reports that its stored form is encrypted.
func (p *Publication) Encrypted() bool { return p.encrypted != nil }

// cipherFor is the ciphertext of the record for a subscription; nil: the record is in clear.
func (p *Publication) cipherFor(sub *topic.Subscription) []byte {
	if p.encrypted == nil {
		return nil
	}
	if cipher, ok := p.encrypted.own[sub.BodyName()]; ok {
		return cipher
	}
	return p.encrypted.message
}

// Open decrypts a publication that was read from the store. Errors are those of open.
func (r *Record) Open(open func(m *message.Message) error) error {
	if !r.P.Encrypted() {
		return nil
	}
	m := r.stored(&message.Notice{})
	if err := open(&m); err != nil {
		return err
	}
	r.P.Body, r.P.Attributes, r.P.Subject = m.Body, m.Attributes, m.Notice.Subject
	r.note = message.Message{}
	for protocol, cipher := range r.P.encrypted.own {
		own := message.Message{Cipher: cipher}
		if err := open(&own); err != nil {
			return err
		}
		if r.P.Bodies == nil {
			r.P.Bodies = map[string]string{}
		}
		r.P.Bodies[protocol] = string(own.Body)
	}
	return nil
}

// SealRecord encrypts an encoded record; nil: it is encrypted already. Errors:
// message.ErrCorrupt, and encrypt's.
func SealRecord(value []byte, encrypt func(m *message.Message) error) ([]byte, error) {
	r, err := Decode(value)
	if err != nil || r.P.Encrypted() {
		return nil, err
	}
	if err := r.P.Encrypt(encrypt); err != nil {
		return nil, err
	}
	return r.Encode(), nil
}
