package message

// Encrypt has the message's record contain, in place of the body, the attributes, a
// notification's subject and token, and their digests, the ciphertext that seal makes of them.
// The message in memory stays readable. The plaintext is written into buf, which may be nil,
// and the buffer is returned, to be reused or cleared. Errors: seal's.
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

// Decrypt restores what Encrypt has encrypted, with the function open. Cipher stays set, so that
// the record can be encoded again without another encryption. Errors: open's, and ErrCorrupt.
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
