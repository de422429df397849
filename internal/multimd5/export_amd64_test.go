package multimd5

// oneByOne has Sums do without vectors, until restore is called.
func oneByOne() (restore func()) {
	was := sideBySide
	sideBySide = false
	return func() { sideBySide = was }
}
