package bootstrap

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"strconv"

	"godwit.dev/godwit/internal/config"
)

// NewAccessKey draws an access key of the root user of an account of 12 digits: AKIA and 16
// characters, the first of which encode the account like AWS's, and a secret of 40.
func NewAccessKey(account string) config.Root {
	number, _ := strconv.ParseUint(account, 10, 40) // config.Check has validated it
	var id [10]byte
	_, _ = rand.Read(id[:]) // it returns no error
	// 48 bits: one that is set, 40 of the account, seven random.
	var head [8]byte
	binary.BigEndian.PutUint64(head[:], 1<<47|number<<7|uint64(id[5]&0x7f))
	copy(id[:6], head[2:])
	secret := make([]byte, 30)
	_, _ = rand.Read(secret)
	return config.Root{
		AccessKeyID: "AKIA" + base32.StdEncoding.EncodeToString(id[:]),
		Secret:      base64.StdEncoding.EncodeToString(secret),
	}
}
