package template

// transform puts the expanded template in place of the one that was read.
func (b *Bound) transform() error {
	return b.Template.root.Get("Transform").Refuse("No transform named " + b.Template.Transforms[0] + " found.")
}
