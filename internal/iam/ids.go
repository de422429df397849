package iam

import (
	"encoding/base32"
	"encoding/binary"
	"strconv"
)

// Prefixes of unique ids.
const (
	PrefixUser         = "AIDA"
	PrefixRole         = "AROA"
	PrefixGroup        = "AGPA"
	PrefixPolicy       = "ANPA"
	PrefixProfile      = "AIPA"
	PrefixKey          = "AKIA" // a long-term access key
	PrefixTemporaryKey = "ASIA" // an access key of a session
)

// Random is the random part of an id.
type Random [5]byte

const (
	idLength  = 20 // with the prefix
	idMark    = 1 << 47
	idAccount = idMark - 1<<7
)

// NewID makes a unique id: a prefix and 16 characters of base32; the first ten encode the
// account.
func NewID(prefix, account string, random Random) string {
	n, _ := strconv.ParseUint(account, 10, 40)
	var raw [10]byte
	binary.BigEndian.PutUint64(raw[:], (idMark|n<<7|uint64(random[0]&0x7f))<<16)
	copy(raw[6:], random[1:])
	return prefix + base32.StdEncoding.EncodeToString(raw[:])
}

// AccountOf is the account, in 12 digits, in an id of NewID; ok is false for an invalid id.
func AccountOf(id string) (account string, ok bool) {
	if len(id) != idLength {
		return "", false
	}
	raw, err := base32.StdEncoding.DecodeString(id[4:])
	if err != nil {
		return "", false
	}
	head := binary.BigEndian.Uint64(raw) >> 16
	if head&idMark == 0 {
		return "", false
	}
	digits := strconv.FormatUint(head&idAccount>>7, 10)
	if len(digits) > 12 {
		return "", false
	}
	return "000000000000"[len(digits):] + digits, true
}
