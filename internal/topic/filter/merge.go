package filter

// merge iterates over several ordered lists as one, without duplicates: a heap of the rests of
// the lists, by their first items.
type merge[H any] struct {
	compare func(a, b H) int
	heads   [][]H // none empty
}

func (m *merge[H]) run(yield func(H) bool) {
	for i := len(m.heads)/2 - 1; i >= 0; i-- {
		m.sink(i)
	}
	for len(m.heads) > 0 {
		first := m.heads[0][0]
		if !yield(first) {
			return
		}
		for len(m.heads) > 0 && m.compare(m.heads[0][0], first) == 0 {
			m.advance()
		}
	}
}

// advance removes the first item from all lists.
func (m *merge[H]) advance() {
	if m.heads[0] = m.heads[0][1:]; len(m.heads[0]) == 0 {
		last := len(m.heads) - 1
		m.heads[0] = m.heads[last]
		m.heads = m.heads[:last]
	}
	m.sink(0)
}

// sink moves the list at i down to its place.
func (m *merge[H]) sink(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(m.heads); child++ {
			if m.compare(m.heads[child][0], m.heads[least][0]) < 0 {
				least = child
			}
		}
		if least == i {
			return
		}
		m.heads[i], m.heads[least] = m.heads[least], m.heads[i]
		i = least
	}
}
