package seal

// Sealer is the sealer of a purpose for data outside of the store, which cannot be sealed with
// the store's keys. Its values must be sealed again when the root key changes.
func (r *Root) Sealer(purpose string) *Sealer {
	s := &Sealer{}
	s.add(0, derive(r.key[:], "seals outside of the store "+purpose))
	return s
}
