package message

import (
	"crypto/md5" //nolint:gosec // the SQS protocol's checksum, not a protection
	"encoding/binary"
	"slices"
	"strings"
)

// AttributesMD5 is MD5OfMessageAttributes as the SDKs check it: over the
// attributes in the order of their names, each as length-prefixed name and
// type, a byte that is 1 for text and 2 for binary, and length-prefixed value.
// Source: the SQS developer guide, "Calculating the MD5 message digest for
// message attributes".
func AttributesMD5(attrs []Attribute) [md5.Size]byte {
	sorted := slices.Clone(attrs)
	slices.SortFunc(sorted, func(a, b Attribute) int { return strings.Compare(a.Name, b.Name) })
	size := 0
	for i := range sorted {
		size += 13 + len(sorted[i].Name) + len(sorted[i].Type) + len(sorted[i].Value)
	}
	buf := make([]byte, 0, size)
	for i := range sorted {
		a := &sorted[i]
		buf = binary.BigEndian.AppendUint32(buf, uint32(len(a.Name)))
		buf = append(buf, a.Name...)
		buf = binary.BigEndian.AppendUint32(buf, uint32(len(a.Type)))
		buf = append(buf, a.Type...)
		if a.Binary() {
			buf = append(buf, 2)
		} else {
			buf = append(buf, 1)
		}
		buf = binary.BigEndian.AppendUint32(buf, uint32(len(a.Value)))
		buf = append(buf, a.Value...)
	}
	return md5.Sum(buf) //nolint:gosec // see the import
}
