package seal

// Sealer is a sealer of a purpose for what is not in the store, and so cannot be sealed
// with the store's keys. What it has sealed has to be sealed again when the root key
// changes.
func (r *Root) Sealer(purpose string) *Sealer {
	s := &Sealer{}
	s.add(0, derive(r.key[:], "seals outside of the store "+purpose))
	return s
}
