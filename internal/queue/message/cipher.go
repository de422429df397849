package message

// Encrypt keeps the body, the attributes and a notification's subject and token, with
// their digests, from standing in the message's record, which has what seal makes of them
// instead. In memory they stay. The plaintext is written over buf, which may be nil; it is
// returned, to be used again.
func (m *Message) Encrypt(buf []byte, seal func(plaintext []byte) ([]byte, error)) ([]byte, error) {
	secret := Message{Body: m.Body, BodyMD5: m.BodyMD5, Attributes: m.Attributes, AttributesMD5: m.AttributesMD5, Unsigned: m.Unsigned}
	if n := m.Notice; n != nil && (n.Subject != "" || n.Token != "") {
		secret.Notice = &Notice{Subject: n.Subject, Token: n.Token}
	}
	buf = secret.AppendRecord(buf[:0])
	sealed, err := seal(buf)
	if err == nil {
		m.Cipher = sealed
	}
	return buf, err
}

// Decrypt brings back what Encrypt has hidden, by the function that opens it. Cipher
// stays, so that the record is the same again. Errors: its own, and ErrCorrupt.
func (m *Message) Decrypt(open func(sealed []byte) ([]byte, error)) error {
	plaintext, err := open(m.Cipher)
	if err != nil {
		return err
	}
	secret, err := DecodeRecord(plaintext)
	if err != nil {
		return err
	}
	m.Body, m.BodyMD5, m.Attributes, m.AttributesMD5, m.Unsigned = secret.Body, secret.BodyMD5, secret.Attributes, secret.AttributesMD5, secret.Unsigned
	if m.Notice != nil && secret.Notice != nil {
		n := *m.Notice
		n.Subject, n.Token = secret.Notice.Subject, secret.Notice.Token
		m.Notice = &n
	}
	return nil
}

// sealed is an encrypted message as its record shows it.
func (m *Message) sealed() *Message {
	h := *m
	h.Body, h.BodyMD5, h.AttributesMD5, h.Attributes, h.Unsigned, h.Cipher = m.Cipher, [16]byte{}, [16]byte{}, nil, nil, nil
	if n := m.Notice; n != nil && (n.Subject != "" || n.Token != "") {
		shown := *n
		shown.Subject, shown.Token = "", ""
		h.Notice = &shown
	}
	return &h
}
