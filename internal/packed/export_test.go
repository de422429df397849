package packed

// Bytes is what a map takes.
func (m *Map) Bytes() (n int) {
	for _, p := range m.pieces {
		n += cap(p)
	}
	return n + 8*cap(m.slots) + 32*cap(m.pieces)
}
