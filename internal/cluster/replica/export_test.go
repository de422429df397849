package replica

// Numbers are those of the latest record that was written, and of the latest that was
// accepted.
func (o *Owner) Numbers() (written, accepted uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.number, o.accepted
}
