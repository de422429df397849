package seal

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"testing"

	"github.com/c2sp/wycheproof"
	aead "github.com/tink-crypto/tink-go/v2/aead/subtle"
	"github.com/tink-crypto/tink-go/v2/subtle"
)

// vectors reads a file of Project Wycheproof.
func vectors[T any](t *testing.T, name string) (all T) {
	t.Helper()
	text, err := fs.ReadFile(wycheproof.TestVectors, name)
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestWycheproofAEAD holds the AEAD against the vectors, those that must be refused too.
func TestWycheproofAEAD(t *testing.T) {
	file := vectors[struct {
		TestGroups []struct {
			KeySize, IvSize, TagSize int
			Tests                    []struct {
				TcID                               int
				Key, Iv, Aad, Msg, Ct, Tag, Result string
			}
		}
	}](t, "xchacha20_poly1305_test.json")
	tried := 0
	for _, group := range file.TestGroups {
		if group.KeySize != KeySize*8 || group.IvSize != 192 || group.TagSize != 128 {
			continue // no nonces of other sizes can come here
		}
		for _, v := range group.Tests {
			tried++
			c, err := aead.NewXChaCha20Poly1305(unhex(t, v.Key))
			if err != nil {
				t.Fatal(err)
			}
			opened, err := c.Decrypt(unhex(t, v.Iv+v.Ct+v.Tag), unhex(t, v.Aad))
			switch {
			case v.Result == "valid" && (err != nil || !bytes.Equal(opened, unhex(t, v.Msg))):
				t.Errorf("vector %d is opened as %x: %v", v.TcID, opened, err)
			case v.Result != "valid" && err == nil:
				t.Errorf("vector %d is opened", v.TcID)
			}
		}
	}
	if tried < 100 {
		t.Errorf("only %d vectors", tried)
	}
}

// TestWycheproofHKDF holds the derivation of keys against the vectors.
func TestWycheproofHKDF(t *testing.T) {
	file := vectors[struct {
		TestGroups []struct {
			Tests []struct {
				TcID                         int
				Ikm, Salt, Info, Okm, Result string
				Size                         int
			}
		}
	}](t, "hkdf_sha256_test.json")
	tried := 0
	for _, group := range file.TestGroups {
		for _, v := range group.Tests {
			key := unhex(t, v.Ikm)
			if len(key) != KeySize || v.Size > 1<<13 { // no others come here
				continue
			}
			tried++
			got, err := subtle.ComputeHKDF("SHA256", key, unhex(t, v.Salt), unhex(t, v.Info), uint32(v.Size))
			switch {
			case v.Result == "valid" && v.Size >= 10 && (err != nil || !bytes.Equal(got, unhex(t, v.Okm))):
				t.Errorf("vector %d is %x: %v", v.TcID, got, err)
			case v.Result == "invalid" && err == nil:
				t.Errorf("vector %d is derived", v.TcID)
			}
		}
	}
	if tried == 0 {
		t.Error("there are no vectors")
	}
}
