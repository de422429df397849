package rpccbor

import "godwit.dev/godwit/internal/fault"

// What a body may hold in all. A list or a map takes one byte there, and a hundred in
// memory. AWS's largest inputs, 1,000 datapoints with 150 values and their counts or
// with 30 dimensions each, stay below both.
const (
	maxContainers = 50_000
	maxItems      = 400_000
)

// checkItems refuses a body that would take far more memory than it has bytes. What is
// not well-formed is left to the decoder.
func checkItems(body []byte) error {
	if len(body) <= maxContainers {
		return nil
	}
	items, containers := 0, 0
	for len(body) > 0 {
		major, size := body[0]>>5, body[0]&31
		body = body[1:]
		argument := uint64(size)
		if size >= 24 && size <= 27 {
			n := 1 << (size - 24)
			if len(body) < n {
				return nil
			}
			argument = 0
			for _, b := range body[:n] {
				argument = argument<<8 | uint64(b)
			}
			body = body[n:]
		}
		switch major << 5 {
		case majorBytes, majorText:
			if size == 31 { // in chunks, which are items
				break
			}
			if argument > uint64(len(body)) {
				return nil
			}
			body = body[argument:]
		case 4 << 5, 5 << 5:
			containers++
		}
		if items++; items > maxItems || containers > maxContainers {
			return fault.Newf(fault.MalformedInput, "The request has more than %d lists and maps, or more than %d items.", maxContainers, maxItems)
		}
	}
	return nil
}
